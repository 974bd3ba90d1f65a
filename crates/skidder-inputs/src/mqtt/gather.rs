//! From messages to batches of events, with Filebeat's fields.

use super::decode::Message;
use super::inbox::Place;
use crate::common::known_utf8;
use skidder_event::{Batch, Cell, Parts, Path, Row, Text};
use skidder_input::Source;
use std::sync::{Arc, LazyLock};

/// Events of a batch, at most.
const BATCH_EVENTS_MAX: usize = 2048;

/// Bytes of a batch that are enough.
const BATCH_BYTES: usize = 1 << 20;

fn path(text: &str) -> Path {
    Path::parse(text).expect("a constant that is a path")
}

static DUPLICATE: LazyLock<Path> = LazyLock::new(|| path("mqtt.duplicate"));
static MESSAGE_ID: LazyLock<Path> = LazyLock::new(|| path("mqtt.message_id"));
static QOS: LazyLock<Path> = LazyLock::new(|| path("mqtt.qos"));
static RETAINED: LazyLock<Path> = LazyLock::new(|| path("mqtt.retained"));
static TOPIC: LazyLock<Path> = LazyLock::new(|| path("mqtt.topic"));
static FLAGS: LazyLock<Path> = LazyLock::new(|| path("log.flags"));

/// Messages on their way into a batch.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Payloads and topics.
    bytes: Vec<u8>,
    facts: Vec<Fact>,
    /// Those of QoS 1 and 2.
    places: Vec<Place>,
    /// Bytes of payloads.
    taken: u64,
}

/// A message.
#[derive(Debug)]
struct Fact {
    text: Text,
    topic: Text,
    id: u16,
    qos: u8,
    is_duplicate: bool,
    is_retained: bool,
    is_cut: bool,
}

/// A batch that was gathered.
pub(super) struct Ready {
    pub(super) batch: Batch,
    /// Its messages of QoS 1 and 2.
    pub(super) places: Vec<Place>,
    /// Bytes of payloads.
    pub(super) bytes: u64,
}

impl Gathered {
    pub(super) fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.facts.len() >= BATCH_EVENTS_MAX || self.bytes.len() >= BATCH_BYTES
    }

    /// Whether a message of this quality may come into the same batch: those that the broker cannot send again have
    /// batches of their own.
    pub(super) fn fits(&self, qos: u8) -> bool {
        self.is_empty() || self.places.is_empty() == (qos == 0)
    }

    /// Adds a message; `place` is of one of QoS 1 or 2.
    pub(super) fn push(&mut self, message: &Message<'_>, place: Option<Place>) {
        let text = self.append(message.payload);
        let topic = self.append(message.topic.as_bytes());
        self.taken += message.payload.len() as u64;
        self.places.extend(place);
        self.facts.push(Fact {
            text,
            topic,
            id: message.id,
            qos: message.qos,
            is_duplicate: message.is_duplicate,
            is_retained: message.is_retained,
            is_cut: message.is_cut,
        });
    }

    fn append(&mut self, bytes: &[u8]) -> Text {
        let text = Text { start: self.bytes.len() as u32, len: bytes.len() as u32 };
        self.bytes.extend_from_slice(bytes);
        text
    }

    /// What was gathered, as a batch of events that were received at `now`.
    pub(super) fn take(&mut self, source: &mut Source, now: i64) -> Ready {
        let Self { bytes, facts, places, taken } = std::mem::take(self);
        let row = |fact: &Fact| Row::numbered(0, fact.text.len, fact.text, now);
        let rows: Vec<Row> = facts.iter().map(row).collect();
        let utf8 = known_utf8(&bytes, &rows);
        let mut batch = source.batch_of(Parts { bytes, rows, ..Parts::default() }, utf8);
        for (row, fact) in facts.iter().enumerate() {
            fact.put(&mut batch, row);
        }
        batch.forget_changes();
        Ready { batch, places, bytes: taken }
    }
}

impl Fact {
    fn put(&self, batch: &mut Batch, row: usize) {
        let base = Arc::clone(batch.base());
        let mut event = batch.event_mut(row, &base);
        let mut is_put = event.put_cell(&DUPLICATE, Cell::Bool(self.is_duplicate)).is_ok();
        is_put &= event.put_cell(&MESSAGE_ID, Cell::Int(i64::from(self.id))).is_ok();
        is_put &= event.put_cell(&QOS, Cell::Int(i64::from(self.qos))).is_ok();
        is_put &= event.put_cell(&RETAINED, Cell::Bool(self.is_retained)).is_ok();
        is_put &= event.put_cell(&TOPIC, Cell::Str(self.topic)).is_ok();
        if self.is_cut {
            let flag = Cell::Str(event.store_text(b"truncated"));
            let flags = event.store_list(&[flag]);
            is_put &= event.put_cell(&FLAGS, flags).is_ok();
        }
        debug_assert!(is_put, "`mqtt` and `log` are objects");
    }
}
