//! Counters that outputs and the queue keep, under the names that `/stats` gives them.

pub use skidder_event::{Counter, Gauge};

/// What one output counts (`libbeat.output.*` in `/stats`).
#[derive(Debug, Default)]
pub struct OutputMetrics {
    /// Events handed to the output, retries included: `events.total`.
    pub total: Counter,
    /// Events the other side accepted: `events.acked`.
    pub acked: Counter,
    /// Events that failed and are tried again: `events.failed`.
    pub failed: Counter,
    /// Events dropped for good: `events.dropped`.
    pub dropped: Counter,
    /// Events the other side had already (409): `events.duplicates`.
    pub duplicates: Counter,
    /// Events in the dead letters: `events.dead_letter`.
    pub dead_letter: Counter,
    /// Events refused with 429: `events.toomany`.
    pub too_many: Counter,
    /// Requests sent, retries included: `events.batches`.
    pub batches: Counter,
    /// Requests that were cut in two after a 413: `batches.split`.
    pub split: Counter,
    /// Events in requests under way: `events.active`.
    pub active: Gauge,
    /// Bytes written, as sent (compressed when they are): `write.bytes`.
    pub write_bytes: Counter,
    /// Failed requests: `write.errors`.
    pub write_errors: Counter,
    /// Bytes of answers: `read.bytes`.
    pub read_bytes: Counter,
    /// Answers that could not be read: `read.errors`.
    pub read_errors: Counter,
    /// Nanoseconds from request to answer, summed: with `batches` the mean latency.
    pub latency_ns: Counter,
}

/// What a queue counts (`libbeat.pipeline.queue.*`).
#[derive(Debug, Default)]
pub struct QueueMetrics {
    /// Events that were put in.
    pub added: Counter,
    /// Events that workers took out.
    pub consumed: Counter,
    /// Events whose batch is settled and that no longer count against the bound.
    pub removed: Counter,
}

/// What the registrar counts (`registrar.writes.*`).
#[derive(Debug, Default)]
pub struct RegistrarMetrics {
    /// Commits that are durable.
    pub succeeded: Counter,
    /// Commits that failed and are tried again with the next one.
    pub failed: Counter,
}
