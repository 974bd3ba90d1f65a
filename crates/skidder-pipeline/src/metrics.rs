//! Counters that outputs and the queue keep, under the names that `/stats` gives them.

pub use skidder_event::{Counter, Gauge};

use crate::last_failure::{Failing, LastFailure};
use crate::missing::{AllMissing, Missing};
use skidder_os::{Clock, SystemClock, Timestamp};
use std::fmt::{self, Display};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What one output counts (`libbeat.output.*` in `/stats`).
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
    failure: LastFailure,
    refusals: Mutex<Option<Refusals>>,
    missing: AllMissing,
    clock: Arc<dyn Clock>,
}

/// Events that the other side refused for good, since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// When the first was refused.
    pub first: Timestamp,
    /// When the last was refused.
    pub last: Timestamp,
    /// How many.
    pub events: u64,
    /// The first reason.
    pub reason: String,
}

impl Default for OutputMetrics {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock::new()))
    }
}

impl fmt::Debug for OutputMetrics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (acked, failure) = (self.acked.get(), self.failure.get());
        out.debug_struct("OutputMetrics")
            .field("acked", &acked)
            .field("failure", &failure)
            .finish_non_exhaustive()
    }
}

impl OutputMetrics {
    /// Nothing has happened yet; `clock` dates failures.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            total: Counter::default(),
            acked: Counter::default(),
            failed: Counter::default(),
            dropped: Counter::default(),
            duplicates: Counter::default(),
            dead_letter: Counter::default(),
            too_many: Counter::default(),
            batches: Counter::default(),
            split: Counter::default(),
            active: Gauge::default(),
            write_bytes: Counter::default(),
            write_errors: Counter::default(),
            read_bytes: Counter::default(),
            read_errors: Counter::default(),
            latency_ns: Counter::default(),
            failed_at: AtomicU64::new(0),
            failure: LastFailure::default(),
            refusals: Mutex::default(),
            missing: AllMissing::default(),
            clock,
        }
    }

    /// Counts a failed request, or a connection that was not made, and keeps its error. `place` is the host, or the path.
    pub fn write_error(&self, place: impl Display, error: impl Display) {
        self.write_error_with(place, error, None);
    }

    /// As [`Self::write_error`], with what to do about it.
    pub fn write_error_with(&self, place: impl Display, error: impl Display, remedy: Option<&str>) {
        self.write_errors.add(1);
        self.note_failure(place, error, remedy);
    }

    /// Keeps the reason why events are sent again, where the request itself was answered (429, a dead-letter file that
    /// cannot be written).
    pub fn note_failure(&self, place: impl Display, error: impl Display, remedy: Option<&str>) {
        let again = self.is_failing();
        self.failure.failed(self.clock.wall(), &place, &error, remedy, again);
        self.failed_at.store(self.verdicts() + 1, Ordering::Relaxed);
    }

    /// The last failure, also if it is over.
    pub fn last_failure(&self) -> Option<Failing> {
        self.failure.get()
    }

    /// Keeps count of refused events, and the first reason, which must not quote the event.
    pub fn note_refused(&self, events: u64, reason: impl Display) {
        let now = self.clock.wall();
        let mut kept = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let refusals = kept.get_or_insert_with(|| Refusals {
            first: now,
            last: now,
            events: 0,
            reason: reason.to_string(),
        });
        refusals.last = now;
        refusals.events += events;
    }

    /// The refused events, if there were any.
    pub fn refusals(&self) -> Option<Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps what the other side lacks now, instead of what it lacked before.
    pub fn set_missing(&self, all: Vec<Missing>) {
        self.missing.set(all);
    }

    /// What the other side lacks and some input needs.
    pub fn missing(&self) -> Vec<Missing> {
        self.missing.get()
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
    /// Why the last commit failed; nothing once one worked.
    pub failure: LastFailure,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_fails_from_an_error_until_the_next_verdict() {
        let metrics = OutputMetrics::default();
        assert!(!metrics.is_failing());
        for verdict in [&metrics.acked, &metrics.dropped, &metrics.dead_letter] {
            metrics.write_error("h", "away");
            assert!(metrics.is_failing());
            verdict.add(2);
            assert!(!metrics.is_failing());
        }
        assert_eq!(metrics.write_errors.get(), 3);
        assert_eq!(metrics.last_failure().unwrap().times, 1, "a verdict ends a row of failures");
        metrics.write_error("h:1", "away");
        metrics.note_failure("h:2", "429", None);
        let failing = metrics.last_failure().unwrap();
        assert_eq!((failing.times, &*failing.place, &*failing.error), (2, "h:2", "429"));
        assert_eq!(metrics.write_errors.get(), 4);
    }
}
