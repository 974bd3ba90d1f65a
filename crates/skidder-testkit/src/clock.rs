//! A clock that moves only by hand.

use skidder_os::{Clock, Monotonic, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// 2026-01-01 00:00 UTC: a date that looks like a date in messages.
const START: Timestamp = Timestamp(1_767_225_600_000_000_000);

/// A clock that moves only by hand. Clones share the time.
#[derive(Clone, Debug)]
pub struct SimClock(Arc<Times>);

#[derive(Debug)]
struct Times {
    wall: AtomicI64,
    /// Nanoseconds since the start.
    monotonic: AtomicU64,
}

impl SimClock {
    /// A clock that stands at 2026-01-01 00:00 UTC and at zero monotonic time.
    pub fn new() -> Self {
        Self::starting_at(START)
    }

    /// A clock that stands at `wall` and at zero monotonic time.
    pub fn starting_at(wall: Timestamp) -> Self {
        Self(Arc::new(Times { wall: AtomicI64::new(wall.0), monotonic: AtomicU64::new(0) }))
    }

    /// Moves both clocks forward; they stop at their ends (year 2262, 584 years).
    pub fn advance(&self, span: Duration) {
        let nanoseconds = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let add = |now: u64| Some(now.saturating_add(nanoseconds));
        let add_wall = |now: i64| Some(now.saturating_add_unsigned(nanoseconds));
        let proof = "the closure always gives a value";
        self.0.monotonic.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add).expect(proof);
        self.0.wall.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add_wall).expect(proof);
    }

    /// Sets the wall clock, as an operator or NTP does; the monotonic clock goes on.
    pub fn set_wall(&self, wall: Timestamp) {
        self.0.wall.store(wall.0, Ordering::SeqCst);
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SimClock {
    fn wall(&self) -> Timestamp {
        Timestamp(self.0.wall.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic(Duration::from_nanos(self.0.monotonic.load(Ordering::SeqCst)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_move_together_and_only_the_wall_jumps() {
        let clock = SimClock::new();
        let other = clock.clone();
        clock.advance(Duration::from_secs(3));
        assert_eq!(other.wall(), Timestamp(START.0 + 3_000_000_000));
        assert_eq!(other.monotonic(), Monotonic(Duration::from_secs(3)));
        other.set_wall(Timestamp(5));
        assert_eq!(clock.wall(), Timestamp(5));
        assert_eq!(clock.monotonic(), Monotonic(Duration::from_secs(3)));
        clock.advance(Duration::MAX);
        assert_eq!(clock.wall(), Timestamp(i64::MAX));
    }
}
