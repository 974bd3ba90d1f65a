//! What an input counts, whatever its type.

use crate::facts::OpenSources;
use skidder_event::{Counter, Gauge, Sample};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
    /// Events that the far side sent and that were lost before this program saw them, as far as the system counts them.
    pub lost_before: Counter,
    /// What the input could not read or take, and the network's errors.
    pub errors: Counter,
    /// The sources that are open.
    pub sources: OpenSources,
    /// Of an input that listens.
    pub listening: Listening,
    trouble: Mutex<Option<Arc<str>>>,
    /// A source was opened that has a cursor.
    pub(crate) has_cursors: AtomicBool,
}

/// What an input that listens reports as Filebeat does under `/inputs/`.
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
    queue: OnceLock<ReceiveQueue>,
}

type QueueLength = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// Asks the system for a number.
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

    /// `receive_queue_length`: what waits in the system for this program, in its own unit. Asks the system, so not to be
    /// called often. Nothing if it is not known.
    pub fn receive_queue_length(&self) -> Option<u64> {
        self.queue.get().and_then(|queue| queue.0())
    }
}

impl InputMetrics {
    /// What keeps the input from its work at the moment; it tries again by itself.
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets or ends what [`InputMetrics::trouble`] reports.
    pub fn set_trouble(&self, trouble: Option<&str>) {
        let trouble = trouble.map(Arc::from);
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}
