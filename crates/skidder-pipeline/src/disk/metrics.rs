//! What a disk queue counts.

use crate::last_failure::LastFailure;
use crate::metrics::Counter;

/// Counts of a disk queue since the start.
#[derive(Debug, Default)]
pub struct DiskMetrics {
    /// Frames that are durable.
    pub written_frames: Counter,
    /// Their bytes, headers included.
    pub written_bytes: Counter,
    /// Times that writing failed; it is tried again.
    pub write_errors: Counter,
    /// Times that reading failed; it is tried again.
    pub read_errors: Counter,
    /// Times that a damaged place was found: a frame, or a stretch without one.
    pub damaged: Counter,
    /// Events that were in damaged places: dropped as `queue_damaged`.
    pub damaged_events: Counter,
    /// Bytes of a write that a crash has cut off, found at the start: those events were not acknowledged.
    pub torn_bytes: Counter,
    /// Why writing or reading failed last; nothing once it worked.
    pub failure: LastFailure,
}
