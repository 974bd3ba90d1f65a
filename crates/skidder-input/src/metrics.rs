//! What an input counts, whatever its type.

use skidder_event::{Counter, Gauge};

/// Counters of one input.
#[derive(Debug, Default)]
pub struct InputMetrics {
    /// Sources opened so far.
    pub opened: Counter,
    /// Sources open now.
    pub open: Gauge,
    /// Bytes received, as the far side sent them.
    pub bytes: Counter,
    /// Events received.
    pub events: Counter,
    /// Events that were offered and for which there was no room in some queue.
    pub refused: Counter,
    /// Events that the far side sent and that were lost before this program saw them, as far as the system counts them.
    pub lost_before: Counter,
    /// What the input could not read or take, and the network's errors.
    pub errors: Counter,
}
