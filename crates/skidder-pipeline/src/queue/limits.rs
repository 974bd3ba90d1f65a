//! Bounds: of a queue, and of what a worker takes.

use std::time::Duration;
use tokio::time::Instant;

/// Bounds of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// `queue.mem.events`: events queued and in flight.
    pub events: usize,
    /// `queue.mem.bytes`, our own: bytes of the batches queued and in flight.
    pub bytes: usize,
    /// `queue.mem.flush.min_events`: how many an output waits for; 0 or 1 means none.
    pub flush_min_events: usize,
    /// `queue.mem.flush.timeout`: how long it waits for them, since it took the last ones.
    pub flush_timeout: Duration,
}

impl QueueLimits {
    /// Default of `queue.mem.events`.
    pub const EVENTS: usize = 3200;
    /// Default of `queue.mem.bytes`.
    pub const BYTES: usize = 16 << 20;
    /// Default of `queue.mem.flush.min_events`.
    pub const FLUSH_MIN_EVENTS: usize = 1600;
    /// Default of `queue.mem.flush.timeout`.
    pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);
    /// How long events wait for others if none were taken for the time above: those of one burst go together.
    pub const QUIET_PAUSE: Duration = Duration::from_millis(20);

    /// Until when events that have just come wait for others, if the last ones were taken at this time. Requests that
    /// are not full begin `flush_timeout` after each other.
    pub(super) fn flush_at(&self, taken_at: Option<Instant>) -> Instant {
        let soon = Instant::now() + Self::QUIET_PAUSE.min(self.flush_timeout);
        taken_at.map_or(soon, |at| soon.max(at + self.flush_timeout))
    }
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            events: Self::EVENTS,
            bytes: Self::BYTES,
            flush_min_events: Self::FLUSH_MIN_EVENTS,
            flush_timeout: Self::FLUSH_TIMEOUT,
        }
    }
}

/// How much a worker takes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeLimits {
    /// Most events; 0 means that the queue decides.
    pub events: usize,
    /// Most bytes of messages; one event is taken even if it is larger.
    pub bytes: usize,
}
