//! From messages to batches of events, with Filebeat's fields (`x-pack/filebeat/input/gcppubsub/input.go`).

use crate::messages::PubsubMessage;
use ring::digest::{Context, SHA256};
use skidder_event::{Batch, Cell, Map, Parts, Path, Row, Text, Value};
use skidder_input::Source;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

/// Events of a batch, at most, but for those that come in one answer.
const BATCH_EVENTS_MAX: usize = 1000;
/// Bytes of a batch that are enough.
const BATCH_BYTES: usize = 1 << 20;
/// Digits of the hash that ids begin with.
const HASH_DIGITS: usize = 10;

fn path(text: &str) -> Path {
    Path::parse(text).expect("a constant that is a path")
}

static ID: LazyLock<Path> = LazyLock::new(|| path("event.id"));
static CREATED: LazyLock<Path> = LazyLock::new(|| path("event.created"));
static LABELS: LazyLock<Path> = LazyLock::new(|| path("labels"));
static DOCUMENT_ID: LazyLock<Path> = LazyLock::new(|| path("@metadata._id"));

/// What the ids of a topic's events begin with: ids of messages are unique in their topic only.
pub(crate) fn id_prefix(project: &str, topic: &str) -> String {
    let mut context = Context::new(&SHA256);
    context.update(project.as_bytes());
    context.update(topic.as_bytes());
    let mut text = String::with_capacity(HASH_DIGITS + 1);
    for byte in &context.finish().as_ref()[..HASH_DIGITS / 2] {
        write!(text, "{byte:02x}").expect("a text takes everything");
    }
    text.push('-');
    text
}

/// Messages on their way into a batch.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Their data.
    bytes: Vec<u8>,
    facts: Vec<Fact>,
    /// The numbers of their leases.
    numbers: Vec<u64>,
    /// Bytes of their data.
    taken: u64,
}

#[derive(Debug)]
struct Fact {
    text: Text,
    id: String,
    time: i64,
    attributes: BTreeMap<String, String>,
}

/// A batch that was gathered.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) batch: Batch,
    /// The numbers of its messages' leases.
    pub(crate) numbers: Vec<u64>,
    /// Bytes of their data.
    pub(crate) bytes: u64,
}

impl Gathered {
    pub(crate) fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.facts.len() >= BATCH_EVENTS_MAX || self.bytes.len() >= BATCH_BYTES
    }

    /// The numbers of the messages, which are no events.
    pub(crate) fn into_numbers(self) -> Vec<u64> {
        self.numbers
    }

    /// Adds a message; `now` is the time of one that has none.
    pub(crate) fn push(&mut self, number: u64, message: PubsubMessage, now: i64) {
        let PubsubMessage { data, attributes, message_id, publish_time } = message;
        let text = Text { start: self.bytes.len() as u32, len: data.len() as u32 };
        self.bytes.extend_from_slice(&data);
        // Between two of them, so that all of them are UTF-8 if the whole is.
        self.bytes.push(b'\n');
        self.taken += data.len() as u64;
        let time = publish_time.map_or(now, |time| time.nanoseconds());
        self.facts.push(Fact { text, id: message_id, time, attributes });
        self.numbers.push(number);
    }

    /// What was gathered, as a batch of events that were received at `now`.
    pub(crate) fn take(&mut self, source: &mut Source, prefix: &str, now: i64) -> Ready {
        let Self { bytes, facts, numbers, taken } = std::mem::take(self);
        let row = |fact: &Fact| Row::numbered(0, fact.text.len, fact.text, fact.time);
        let rows = facts.iter().map(row).collect();
        let utf8 = if simdutf8::basic::from_utf8(&bytes).is_ok() { bytes.len() } else { 0 };
        let mut batch = source.batch_of(Parts { bytes, rows, ..Parts::default() }, utf8);
        for (row, fact) in facts.into_iter().enumerate() {
            fact.put(&mut batch, row, prefix, now);
        }
        batch.forget_changes();
        Ready { batch, numbers, bytes: taken }
    }
}

impl Fact {
    fn put(self, batch: &mut Batch, row: usize, prefix: &str, now: i64) {
        let base = Arc::clone(batch.base());
        let mut event = batch.event_mut(row, &base);
        let id = Cell::Str(event.store_text(format!("{prefix}{}", self.id).as_bytes()));
        let mut is_put = event.put_cell(&ID, id).is_ok();
        is_put &= event.put_cell(&CREATED, Cell::Time(now)).is_ok();
        is_put &= event.put_cell(&DOCUMENT_ID, id).is_ok();
        if !self.attributes.is_empty() {
            let mut labels = Map::new();
            for (name, value) in self.attributes {
                labels.insert(&name, value);
            }
            is_put &= event.put(&LABELS, &Value::Map(labels)).is_ok();
        }
        debug_assert!(is_put, "`event` and `@metadata` are objects");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_begin_as_those_of_filebeat() {
        // printf vpcflow | sha256sum: project `vpc`, topic `flow`.
        assert_eq!(id_prefix("vpc", "flow"), id_prefix("vpcf", "low"));
        let prefix = id_prefix("vpc", "flow");
        assert_eq!((prefix.len(), prefix.ends_with('-')), (11, true));
        // The hash of nothing.
        assert_eq!(id_prefix("", ""), "e3b0c44298-");
    }
}
