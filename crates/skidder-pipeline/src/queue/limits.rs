//! Bounds: of a queue, and of what a worker takes.

use std::time::Duration;

/// Bounds of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// `queue.mem.events`: events queued and in flight.
    pub events: usize,
    /// `queue.mem.bytes`, our own: bytes of the batches queued and in flight.
    pub bytes: usize,
    /// `queue.mem.flush.min_events`: how many an output waits for; 0 or 1 means none.
    pub flush_min_events: usize,
    /// `queue.mem.flush.timeout`: how long it waits for them.
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
