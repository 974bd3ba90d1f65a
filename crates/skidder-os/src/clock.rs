//! Time as a value: wall clock and monotonic clock behind one trait.

use std::time::Duration;

/// Wall-clock time in nanoseconds since 1970-01-01 00:00 UTC. Covers the years 1678 to 2262.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Whole seconds since the epoch, rounded towards the past.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000_000)
    }

    /// Time from `earlier` to `self`; zero when `earlier` is later (clocks are set back).
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The time this long before.
    #[must_use]
    pub fn earlier_by(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
    }
}

/// Monotonic time since an arbitrary start; only differences mean something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(pub Duration);

impl Monotonic {
    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl std::ops::Add<Duration> for Monotonic {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

/// Where the time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock; may jump.
    fn wall(&self) -> Timestamp;
    /// The monotonic clock; never goes back.
    fn monotonic(&self) -> Monotonic;
}

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    pub fn new() -> Self {
        Self { start: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    fn wall(&self) -> Timestamp {
        match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
            Ok(span) => Timestamp(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)),
            Err(before) => {
                Timestamp(-i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX))
            }
        }
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic(self.start.elapsed())
    }
}
