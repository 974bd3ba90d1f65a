//! The numbers of inputs that read from clouds: objects of buckets, queues of messages, log groups.
//!
//! Names and meanings are those that Filebeat's inputs have under `/inputs/`.

use skidder_event::{Counter, Gauge, Sample, SourceId};
use skidder_os::{Monotonic, Timestamp};
use skidder_pipeline::Settle;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// So many objects without all verdicts are kept at least before it is looked which of them have theirs by now.
const UNSETTLED_MIN: usize = 64;

/// What an input that reads objects reports, whatever service keeps them.
#[derive(Debug, Default)]
pub struct ObjectNumbers {
    /// `url`: what is listed; nothing if that has no URL.
    pub url: OnceLock<String>,
    /// Objects that listings had.
    pub listed: Counter,
    /// Objects that a selector is for, each time that they were named or listed to be read.
    pub selected: Counter,
    /// Requests for an object from its first byte on, those that were repeated included.
    pub requested: Counter,
    /// Objects that were sent on to their end.
    pub sent: Counter,
    /// Objects that could not be read to their end. They may be tried again.
    pub failed: Counter,
    /// Of these, objects whose content is damaged.
    pub damaged: Counter,
    /// Bytes of objects, as they are stored.
    pub bytes: Counter,
    /// Events of them.
    pub events: Counter,
    /// Objects that are being read.
    pub in_flight: Gauge,
    /// Objects of the last listing that the registry knows, or that are being read.
    pub tracked: Gauge,
    /// Nanoseconds from the request for an object until its last event was sent on.
    pub processing_time: Sample,
    /// Bytes of an object that was sent on, as it is stored.
    pub size: Sample,
    /// Events of an object that was sent on. Of one that goes on where it was settled, those of this run.
    pub events_per_object: Sample,
    /// Objects of a page of a listing that were to be read.
    pub scheduled: Sample,
    /// Nanoseconds from when an object was put until it was to be read.
    pub lag: Sample,
    acknowledged: Counter,
    unsettled: Mutex<Unsettled>,
}

/// Objects that were sent on, and whose events have no verdict yet.
#[derive(Default)]
struct Unsettled {
    settle: Option<Arc<Settle>>,
    sources: Vec<SourceId>,
    /// Look which are settled when there are so many.
    look_at: usize,
}

impl fmt::Debug for Unsettled {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Unsettled").field("sources", &self.sources.len()).finish_non_exhaustive()
    }
}

impl Unsettled {
    /// Forgets those that are settled. Returns how many they are.
    fn look(&mut self) -> u64 {
        let Some(settle) = &self.settle else { return 0 };
        let before = self.sources.len();
        self.sources.retain(|source| !settle.is_settled(*source));
        self.look_at = UNSETTLED_MIN.max(2 * self.sources.len());
        (before - self.sources.len()) as u64
    }
}

impl ObjectNumbers {
    /// An object was sent on to its end, as a source of this ledger.
    pub fn add_sent(&self, source: SourceId, settle: &Arc<Settle>) {
        self.sent.add(1);
        let mut unsettled = self.unsettled();
        unsettled.settle.get_or_insert_with(|| Arc::clone(settle));
        unsettled.sources.push(source);
        if unsettled.sources.len() >= unsettled.look_at.max(UNSETTLED_MIN) {
            self.acknowledged.add(unsettled.look());
        }
    }

    /// Objects whose events all have their verdict.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.add(self.unsettled().look());
        self.acknowledged.get()
    }

    fn unsettled(&self) -> MutexGuard<'_, Unsettled> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an input that reads a queue of messages reports, with the names of Filebeat's `aws-s3`.
#[derive(Debug)]
pub struct QueueNumbers {
    /// `sqs_messages_received_total`: messages received, those that came again included.
    pub received: Counter,
    /// `sqs_messages_processed_total`: messages whose objects were all sent on.
    pub processed: Counter,
    /// `sqs_visibility_timeout_extensions_total`: how often a message was hidden for longer.
    pub extended: Counter,
    /// `sqs_messages_deleted_total`: messages that the server has deleted.
    pub deleted: Counter,
    /// `sqs_messages_returned_total`: messages that were left to the queue, or given back.
    pub returned: Counter,
    /// `sqs_message_processing_time`: nanoseconds from the receipt of a message until it was deleted or left.
    pub processing_time: Sample,
    /// `sqs_lag_time`: nanoseconds from when a message was sent until it was received.
    pub lag: Sample,
    /// `u64::MAX` while it is not known.
    waiting: AtomicU64,
    held: OnceLock<Held>,
    workers: Mutex<Workers>,
}

type CountHeld = Box<dyn Fn() -> (u64, Option<Timestamp>) + Send + Sync>;

/// Counts the messages that are held.
struct Held(CountHeld);

impl fmt::Debug for Held {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Held")
    }
}

/// How busy the workers are.
#[derive(Debug, Default)]
struct Workers {
    /// Those that have a message.
    busy: u32,
    /// When that was counted, and for how long workers had messages until then in the present span.
    at: Monotonic,
    worked: Duration,
    /// When the present span began.
    since: Monotonic,
    /// The part of the time in the last span: 0 to 1.
    part: f64,
}

impl Workers {
    fn count(&mut self, now: Monotonic) {
        self.worked += now.since(self.at) * self.busy;
        self.at = now;
    }
}

impl Default for QueueNumbers {
    fn default() -> Self {
        Self {
            received: Counter::default(),
            processed: Counter::default(),
            extended: Counter::default(),
            deleted: Counter::default(),
            returned: Counter::default(),
            processing_time: Sample::default(),
            lag: Sample::default(),
            waiting: AtomicU64::new(u64::MAX),
            held: OnceLock::new(),
            workers: Mutex::default(),
        }
    }
}

impl QueueNumbers {
    /// `sqs_messages_waiting_gauge`: messages that the queue had at the last look and that are not hidden; `None` if it was
    /// not said.
    pub fn waiting(&self) -> Option<u64> {
        Some(self.waiting.load(Ordering::Relaxed)).filter(|waiting| *waiting != u64::MAX)
    }

    /// The queue was looked at.
    pub fn set_waiting(&self, waiting: Option<u64>) {
        self.waiting.store(waiting.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How [`QueueNumbers::held`] is found out. The first one stays.
    pub fn set_held(&self, held: impl Fn() -> (u64, Option<Timestamp>) + Send + Sync + 'static) {
        self.held.get_or_init(|| Held(Box::new(held)));
    }

    /// `sqs_messages_inflight_gauge`: messages that were received and are neither deleted nor left to the queue, and when the
    /// oldest of them was sent.
    pub fn held(&self) -> (u64, Option<Timestamp>) {
        self.held.get().map_or((0, None), |held| (held.0)())
    }

    /// A worker begins to read the objects of a message.
    pub fn worker_begins(&self, now: Monotonic) {
        let mut workers = self.workers();
        workers.count(now);
        workers.busy += 1;
    }

    /// A worker is free again.
    pub fn worker_ends(&self, now: Monotonic) {
        let mut workers = self.workers();
        workers.count(now);
        workers.busy = workers.busy.saturating_sub(1);
    }

    /// A span of `sqs_worker_utilization` ends, and the next one begins. There are `most` workers.
    pub fn end_span(&self, most: usize, now: Monotonic) {
        let mut workers = self.workers();
        workers.count(now);
        let all = now.since(workers.since).as_secs_f64() * most as f64;
        workers.part = if all > 0.0 { (workers.worked.as_secs_f64() / all).min(1.0) } else { 0.0 };
        workers.worked = Duration::ZERO;
        workers.since = now;
    }

    /// `sqs_worker_utilization`: 0 if all workers were idle in the last span, 1 if none was.
    pub fn utilization(&self) -> f64 {
        self.workers().part
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an input that reads log groups reports, with the names of Filebeat's `aws-cloudwatch`.
#[derive(Debug, Default)]
pub struct GroupNumbers {
    /// `log_events_received_total`: events of answers, those that were known included.
    pub received: Counter,
    /// `cloudwatch_events_created_total`: events that were sent on.
    pub created: Counter,
    /// `log_groups_total`: groups that are there.
    pub groups: Gauge,
    /// `api_calls_total`: requests, those that failed included.
    pub calls: Counter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_acknowledged_when_all_of_it_is_settled() {
        let numbers = ObjectNumbers::default();
        assert_eq!(numbers.acknowledged(), 0);
        let settle = Settle::new();
        for source in 0..200 {
            numbers.add_sent(SourceId(source), &settle);
        }
        // Nothing of them is pending in this ledger.
        assert!(numbers.unsettled().sources.len() < 200, "they are not kept");
        assert_eq!((numbers.sent.get(), numbers.acknowledged()), (200, 200));
        assert_eq!(numbers.acknowledged(), 200);
    }

    #[test]
    fn how_busy_workers_are_is_counted_in_spans() {
        let numbers = QueueNumbers::default();
        let at = |seconds| Monotonic(Duration::from_secs(seconds));
        assert_eq!(
            (numbers.utilization(), numbers.waiting(), numbers.held()),
            (0.0, None, (0, None))
        );
        numbers.end_span(2, at(100));
        numbers.worker_begins(at(100));
        numbers.worker_begins(at(102));
        numbers.worker_ends(at(104));
        numbers.end_span(2, at(105));
        assert_eq!(numbers.utilization(), 0.7, "5 s and 2 s of twice 5 s");
        numbers.end_span(2, at(110));
        assert_eq!(numbers.utilization(), 0.5, "one still works");
        numbers.worker_ends(at(110));
        numbers.end_span(2, at(115));
        assert_eq!(numbers.utilization(), 0.0);
        numbers.set_waiting(Some(3));
        assert_eq!(numbers.waiting(), Some(3));
        numbers.set_waiting(None);
        assert_eq!(numbers.waiting(), None);
    }
}
