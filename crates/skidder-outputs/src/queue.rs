//! What an output says about the queue before it.

use std::time::Duration;

/// Settings of the queue that an output implies; `None` leaves the user's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// `queue.mem.events`.
    pub events: Option<usize>,
    /// `queue.mem.flush.min_events`.
    pub flush_min_events: Option<usize>,
    /// `queue.mem.flush.timeout`.
    pub flush_timeout: Option<Duration>,
    /// They give way to a `queue` that the user wrote, instead of winning over it.
    pub gives_way: bool,
}

impl QueueSettings {
    /// For sizes that are `auto`: the queue is bounded by its bytes, and not by a number of events that would
    /// bound the sizes too.
    pub fn bounded_in_bytes() -> Self {
        Self {
            events: Some(1 << 20),
            flush_min_events: Some(1 << 20),
            flush_timeout: Some(Duration::from_secs(1)),
            gives_way: true,
        }
    }
}
