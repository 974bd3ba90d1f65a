//! The counters of an input, whatever its type.

use crate::clouds::{GroupNumbers, ObjectNumbers, QueueNumbers};
use crate::facts::OpenSources;
use crate::hub::HubCounts;
use crate::subscribed::Subscribed;
use crate::troubles::{LastError, Trouble, Troubles};
use skidder_event::{Counter, Gauge, Sample};
use skidder_os::Clock;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

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
    /// Events that the queue of each output took.
    pub published: Counter,
    /// Events that were offered and for which there was no room in some queue.
    pub refused: Counter,
    /// Batches that wait for room in the queue of an output.
    pub waiting: Gauge,
    /// Events that the far side sent and that were lost before this program saw them, as far as the system counts them.
    pub lost_before: LostBefore,
    /// What the input could not read or take, and the network's errors. [`InputMetrics::failed`] counts them.
    pub errors: Counter,
    /// The sources that are open.
    pub sources: OpenSources,
    /// Allocated at its first use: most inputs read files, and there can be hundreds of them.
    listening: OnceLock<Box<Listening>>,
    subscribed: OnceLock<Arc<Subscribed>>,
    objects: OnceLock<Arc<ObjectNumbers>>,
    queue: OnceLock<Arc<QueueNumbers>>,
    groups: OnceLock<Arc<GroupNumbers>>,
    hub: OnceLock<Arc<HubCounts>>,
    troubles: Troubles,
    /// A source was opened that has a cursor.
    pub(crate) has_cursors: AtomicBool,
}

/// Events that were lost before an input saw them. An input that is configured anew goes on counting where the one before
/// it ends.
#[derive(Debug, Default)]
pub struct LostBefore {
    here: Counter,
    /// Of this input and those before it.
    all: Arc<Counter>,
}

impl LostBefore {
    /// Counts events.
    pub fn add(&self, events: u64) {
        self.here.add(events);
        self.all.add(events);
    }

    /// Those of this input, for sums over all inputs that there were.
    pub fn get(&self) -> u64 {
        self.here.get()
    }

    /// Those of this input and of the ones before it.
    pub fn total(&self) -> u64 {
        self.all.get()
    }

    /// Whether one goes on where the other one ends.
    pub fn continues(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.all, &other.all)
    }
}

/// The numbers that an input that listens reports as Filebeat does under `/inputs/`.
#[derive(Debug, Default)]
pub struct Listening {
    /// `device` or `path`: where it listens, as in the settings.
    pub device: OnceLock<String>,
    /// `received_bytes_total`: bytes of messages, without what separates them.
    pub message_bytes: Counter,
    /// `arrival_period`: nanoseconds between two events. Events that were read at once count with their mean.
    pub arrival_period: Sample,
    /// `processing_time`: nanoseconds from the receipt of an event until the queue took it.
    pub processing_time: Sample,
    /// `udp_read_buffer_length_gauge`: bytes of the socket's receive buffer that the system granted.
    pub read_buffer: Gauge,
    /// Of an input that acknowledges batches.
    pub batches: Batches,
    /// Of an input that decodes flows.
    pub flows: OnceLock<Flows>,
    queue: OnceLock<ReceiveQueue>,
}

/// The numbers that an input which acknowledges batches reports as Filebeat's `lumberjack` does under `/inputs/`.
#[derive(Debug, Default)]
pub struct Batches {
    /// `bind_address`: where it listens, as `tcp://127.0.0.1:5044`, or `tls://…`.
    pub address: OnceLock<String>,
    /// `batches_received_total`: batches that were read to their end and have events.
    pub received: Counter,
    /// `messages_received_total`: the events of these batches.
    pub messages: Counter,
    /// `batches_acked_total`: batches whose acknowledgement was sent.
    pub acknowledged: Counter,
    /// `batch_processing_time`: nanoseconds from the end of a batch until its acknowledgement was sent.
    pub processing_time: Sample,
}

/// The numbers of an input that decodes flows, since it began or since the one before it did.
#[derive(Debug, Default)]
pub struct Flows {
    /// `flows_total`: flows, records of options, and sFlow's counters of interfaces.
    pub flows: Gauge,
    /// Packets that were decoded to their end.
    pub packets: Gauge,
    /// `decode_errors_total`: packets that could not be decoded to their end.
    pub errors: Gauge,
    /// `open_connections`: sources of exporters whose templates are known, and agents of sFlow.
    pub sources: Gauge,
    /// Sets of data that came before their template.
    pub without_template: Gauge,
    /// Of these, sets that were decoded when their template came.
    pub decoded_later: Gauge,
    /// Of these, sets that were given up.
    pub given_up: Gauge,
    /// Templates for which there was no room.
    pub templates_refused: Gauge,
    /// Templates that were forgotten.
    pub templates_forgotten: Gauge,
    /// How often an exporter began to count anew.
    pub resets: Gauge,
    /// Samples and records of sFlow in a format that is not decoded.
    pub skipped: Gauge,
    /// Datagrams of sFlow that are missing in the numbers of their agent.
    pub lost: Gauge,
}

type QueueLength = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// Reads the length of a queue from the system.
struct ReceiveQueue(QueueLength);

impl std::fmt::Debug for ReceiveQueue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ReceiveQueue")
    }
}

impl Listening {
    /// How [`Listening::receive_queue_length`] is found out. The first one stays.
    pub fn set_receive_queue(&self, length: QueueLength) {
        self.queue.get_or_init(|| ReceiveQueue(length));
    }

    /// `receive_queue_length`: what waits in the system for this program, in its own unit. Each call is a
    /// system call, so do not call it often. `None` if it is not known.
    pub fn receive_queue_length(&self) -> Option<u64> {
        self.queue.get().and_then(|queue| queue.0())
    }
}

impl InputMetrics {
    /// Of an input that takes the place of another one.
    pub(crate) fn after(before: &Self) -> Self {
        let all = Arc::clone(&before.lost_before.all);
        let lost_before = LostBefore { here: Counter::default(), all };
        Self { lost_before, ..Self::default() }
    }

    /// The numbers of an input that listens.
    pub fn listening(&self) -> &Listening {
        self.listening.get_or_init(Box::default)
    }

    /// The same to read; `None` for an input that does not listen, or has not begun to.
    pub fn listens(&self) -> Option<&Listening> {
        self.listening.get().map(|listening| &**listening)
    }

    /// The numbers of an input that acknowledges messages of a subscription.
    pub fn subscribed(&self) -> Arc<Subscribed> {
        Arc::clone(self.subscribed.get_or_init(Arc::default))
    }

    /// The same to read; `None` for an input that is none, or has not begun.
    pub fn subscribes(&self) -> Option<&Subscribed> {
        self.subscribed.get().map(|subscribed| &**subscribed)
    }

    /// The numbers of an input that reads objects.
    pub fn objects(&self) -> Arc<ObjectNumbers> {
        Arc::clone(self.objects.get_or_init(Arc::default))
    }

    /// The same to read; `None` for an input that reads none, or has not begun.
    pub fn reads_objects(&self) -> Option<&ObjectNumbers> {
        self.objects.get().map(|objects| &**objects)
    }

    /// The numbers of an input that reads a queue of messages.
    pub fn queue(&self) -> Arc<QueueNumbers> {
        Arc::clone(self.queue.get_or_init(Arc::default))
    }

    /// The same to read; `None` for an input that reads none, or has not begun.
    pub fn reads_queue(&self) -> Option<&QueueNumbers> {
        self.queue.get().map(|queue| &**queue)
    }

    /// The numbers of an input that reads log groups.
    pub fn groups(&self) -> Arc<GroupNumbers> {
        Arc::clone(self.groups.get_or_init(Arc::default))
    }

    /// The same to read; `None` for an input that reads none, or has not begun.
    pub fn reads_groups(&self) -> Option<&GroupNumbers> {
        self.groups.get().map(|groups| &**groups)
    }

    /// The numbers of an input that reads an event hub.
    pub fn hub(&self) -> Arc<HubCounts> {
        Arc::clone(self.hub.get_or_init(Arc::default))
    }

    /// The same to read; `None` for an input that reads none, or has not begun.
    pub fn reads_hub(&self) -> Option<&HubCounts> {
        self.hub.get().map(|counts| &**counts)
    }

    /// The current problem of the input, or of one of its sources; it retries by itself.
    pub fn trouble(&self) -> Option<Arc<str>> {
        let troubles = self.troubles();
        let Trouble { part, text, .. } = troubles.first()?;
        let more = match troubles.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        Some(match &**part {
            "" if more.is_empty() => Arc::clone(text),
            "" => format!("{text}{more}").into(),
            part => format!("{part}: {text}{more}").into(),
        })
    }

    /// All current problems; the one of the whole input comes first.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.troubles.all()
    }

    /// Counts an error, and keeps it as the last one. `source` is the one that had it, or empty.
    pub fn failed(&self, source: &str, error: &str) {
        self.errors.add(1);
        self.troubles.failed(source, error);
    }

    /// The last error, which may be over; `None` if there never was one.
    pub fn last_error(&self) -> Option<LastError> {
        self.troubles.last_error()
    }

    /// Where the beginnings of problems get their time from.
    pub(crate) fn set_clock(&self, clock: Arc<dyn Clock>) {
        self.troubles.set_clock(clock);
    }

    /// Sets or ends the problem of the whole input.
    pub fn set_trouble(&self, trouble: Option<&str>) {
        self.set_trouble_of("", trouble);
    }

    /// Sets or ends the problem of a part of the input: a container, a journal, a key of Redis.
    pub fn set_trouble_of(&self, name: &str, trouble: Option<&str>) {
        self.troubles.set(name, trouble);
    }
}

/// Counts a batch as one that waits for room, until it is dropped.
pub(crate) struct WaitingBatch(Arc<InputMetrics>);

impl WaitingBatch {
    pub(crate) fn new(metrics: &Arc<InputMetrics>) -> Self {
        metrics.waiting.add(1);
        Self(Arc::clone(metrics))
    }
}

impl Drop for WaitingBatch {
    fn drop(&mut self) {
        self.0.waiting.sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_an_input_has_a_trouble_of_its_own() {
        let metrics = InputMetrics::default();
        let trouble = || metrics.trouble().map(|text| text.to_string());
        assert_eq!(trouble(), None);
        metrics.set_trouble_of("b", Some("refused"));
        metrics.set_trouble_of("a", Some("away"));
        assert_eq!(trouble().as_deref(), Some("a: away (and 1 more)"));
        metrics.set_trouble_of("a", None);
        assert_eq!(trouble().as_deref(), Some("b: refused"));
        metrics.set_trouble(Some("all of it"));
        assert_eq!(trouble().as_deref(), Some("all of it (and 1 more)"));
        metrics.set_trouble_of("b", None);
        assert_eq!(trouble().as_deref(), Some("all of it"));
    }

    #[test]
    fn what_was_lost_goes_on_in_the_next_input_and_is_in_the_sum_once() {
        let one = InputMetrics::default();
        one.lost_before.add(3);
        let next = InputMetrics::after(&one);
        // The one before ends later than the next one begins.
        one.lost_before.add(2);
        next.lost_before.add(10);
        assert_eq!((one.lost_before.get(), next.lost_before.get()), (5, 10));
        assert_eq!((one.lost_before.total(), next.lost_before.total()), (15, 15));
        let other = InputMetrics::default();
        assert!(next.lost_before.continues(&one.lost_before));
        assert!(!next.lost_before.continues(&other.lost_before));
    }
}
