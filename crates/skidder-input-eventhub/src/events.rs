//! From messages to batches of events, with Filebeat's fields (`x-pack/filebeat/input/azureeventhub/v2_input.go`).

use crate::decode::{Decoded, decode};
use crate::sanitize::Sanitizer;
use skidder_amqp::{Item, Malformed, Message};
use skidder_event::{Batch, Cell, Parts, Path, Row, Text};
use skidder_input::Source;
use std::sync::{Arc, LazyLock};

/// Bytes of a batch that are enough.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// Nanoseconds of a millisecond.
const MILLISECOND: i64 = 1_000_000;

fn path(text: &str) -> Path {
    Path::parse(text).expect("a constant that is a path")
}

static OFFSET: LazyLock<Path> = LazyLock::new(|| path("azure.offset"));
static SEQUENCE: LazyLock<Path> = LazyLock::new(|| path("azure.sequence_number"));
static ENQUEUED: LazyLock<Path> = LazyLock::new(|| path("azure.enqueued_time"));
static KEY: LazyLock<Path> = LazyLock::new(|| path("azure.partition_key"));

/// The place of a message in its partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sequence: i64,
    /// A number, but for hubs that are replicated to other regions.
    pub(crate) offset: String,
    /// Nanoseconds since 1970-01-01 UTC.
    pub(crate) enqueued: Option<i64>,
}

impl Place {
    /// That of a message. The error says what is missing.
    pub(crate) fn of(message: &Message) -> Result<Self, Malformed> {
        let number = message.annotation("x-opt-sequence-number")?.and_then(|item| item.number());
        let offset = message.annotation("x-opt-offset")?;
        let offset = match offset {
            Some(item) => match (item.text(), item.number()) {
                (Some(text), _) => Some(text.to_owned()),
                (None, number) => number.map(|number| number.to_string()),
            },
            None => None,
        };
        let enqueued = match message.annotation("x-opt-enqueued-time")? {
            Some(Item::Time(milliseconds)) => Some(milliseconds.saturating_mul(MILLISECOND)),
            _ => None,
        };
        Ok(Self {
            sequence: number.ok_or(Malformed::Expected("`x-opt-sequence-number`"))?,
            offset: offset.ok_or(Malformed::Expected("`x-opt-offset`"))?,
            enqueued,
        })
    }
}

/// Messages on their way into a batch.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Their texts.
    bytes: Vec<u8>,
    /// Where each event's text stands, and which message it is of.
    texts: Vec<(Text, u32)>,
    facts: Vec<Fact>,
    /// Bytes of the messages.
    taken: u64,
}

#[derive(Debug)]
struct Fact {
    place: Place,
    key: Option<String>,
}

/// A batch that was gathered.
pub(crate) struct Ready {
    pub(crate) batch: Batch,
    /// Of its last message.
    pub(crate) last: Place,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Gathered {
    pub(crate) fn messages(&self) -> usize {
        self.facts.len()
    }

    pub(crate) fn is_full(&self, messages_max: usize) -> bool {
        self.facts.len() >= messages_max || self.bytes.len() >= BATCH_BYTES
    }

    /// Adds the events of a message. One with a body that is neither bytes nor a text is an event without a text, as in
    /// Filebeat.
    pub(crate) fn push(
        &mut self,
        message: &Message,
        place: Place,
        sanitizers: &[Sanitizer],
    ) -> Decoded {
        let key = message.annotation("x-opt-partition-key").ok().flatten();
        let key = key.and_then(|key| key.text().map(str::to_owned));
        let body = message.body().ok().flatten().unwrap_or_default();
        self.taken += body.len() as u64;
        let number = self.facts.len() as u32;
        self.facts.push(Fact { place, key });
        let Self { bytes, texts, .. } = self;
        decode(&body, sanitizers, |text| {
            let (start, len) = (bytes.len() as u32, text.len() as u32);
            bytes.extend_from_slice(text);
            // Between two of them, so that all of them are UTF-8 if the whole is.
            bytes.push(b'\n');
            texts.push((Text { start, len }, number));
        })
    }

    /// What was gathered, as a batch of events of the time `now`; `None` if there were no messages.
    pub(crate) fn take(&mut self, source: &mut Source, now: i64) -> Option<Ready> {
        let Self { bytes, texts, facts, taken } = std::mem::take(self);
        let last = facts.last()?.place.clone();
        let rows = texts.iter().map(|(text, _)| Row::numbered(0, text.len, *text, now)).collect();
        let utf8 = if simdutf8::basic::from_utf8(&bytes).is_ok() { bytes.len() } else { 0 };
        let mut batch = source.batch_of(Parts { bytes, rows, ..Parts::default() }, utf8);
        for (row, (_, number)) in texts.iter().enumerate() {
            facts[*number as usize].put(&mut batch, row);
        }
        batch.forget_changes();
        Some(Ready { batch, last, messages: facts.len() as u64, bytes: taken })
    }
}

impl Fact {
    fn put(&self, batch: &mut Batch, row: usize) {
        let base = Arc::clone(batch.base());
        let mut event = batch.event_mut(row, &base);
        let Place { sequence, offset, enqueued } = &self.place;
        let mut is_put = event.put_cell(&SEQUENCE, Cell::Int(*sequence)).is_ok();
        is_put &= match offset.parse() {
            Ok(number) => event.put_cell(&OFFSET, Cell::Int(number)).is_ok(),
            Err(_) => event.put_text(&OFFSET, offset.as_bytes()).is_ok(),
        };
        if let Some(time) = enqueued {
            is_put &= event.put_cell(&ENQUEUED, Cell::Time(*time)).is_ok();
        }
        if let Some(key) = &self.key {
            is_put &= event.put_text(&KEY, key.as_bytes()).is_ok();
        }
        debug_assert!(is_put, "`azure` is an object");
    }
}
