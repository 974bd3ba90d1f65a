//! Counters that outputs and the queue keep, under the names that `/stats` gives them.

pub use skidder_event::{Counter, Gauge};

use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Events that had a verdict when something failed last, and one; 0: nothing has failed.
    failed_at: AtomicU64,
}

impl OutputMetrics {
    /// Counts a failed request, or a connection that was not made.
    pub fn write_error(&self) {
        self.write_errors.add(1);
        self.failed_at.store(self.verdicts() + 1, Ordering::Relaxed);
    }

    /// Counts so many events as active until it is dropped.
    pub fn hold_active(&self, events: u64) -> Active<'_> {
        self.active.add(events);
        Active(&self.active, events)
    }

    /// Whether no event had a verdict since something failed.
    pub fn is_failing(&self) -> bool {
        self.failed_at.load(Ordering::Relaxed) == self.verdicts() + 1
    }

    fn verdicts(&self) -> u64 {
        self.acked.get() + self.dropped.get() + self.dead_letter.get()
    }
}

/// Events in a request under way.
#[derive(Debug)]
#[must_use = "they count only as long as it is held"]
pub struct Active<'a>(&'a Gauge, u64);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.sub(self.1);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_fails_from_an_error_until_the_next_verdict() {
        let metrics = OutputMetrics::default();
        assert!(!metrics.is_failing());
        for verdict in [&metrics.acked, &metrics.dropped, &metrics.dead_letter] {
            metrics.write_error();
            assert!(metrics.is_failing());
            verdict.add(2);
            assert!(!metrics.is_failing());
        }
        assert_eq!(metrics.write_errors.get(), 3);
    }
}
