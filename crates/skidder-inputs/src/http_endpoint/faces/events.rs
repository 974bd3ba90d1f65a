//! Batches of events that a face makes one by one.

use super::super::decode::{BATCH_BYTES, Decoder, EVENTS_MAX, too_many};
use super::super::in_flight::Counted;
use super::Refusal;
use hyper::StatusCode;
use skidder_event::{Batch, EventMut, Map, Path, Text, Value};
use skidder_input::Source;
use std::sync::Arc;

/// Labels or attributes of an event, and members of an object in one, at most: what they cost grows with their square.
pub(super) const FIELDS_MAX: usize = 4096;

/// Memory of the events of a request, and of all requests without an answer yet: many small records can share many
/// attributes, of which each event gets its own.
#[cfg(not(test))]
const MEMORY_BYTES_MAX: usize = 512 << 20;
/// Tests reach it sooner.
#[cfg(test)]
const MEMORY_BYTES_MAX: usize = 16 << 20;

/// The field for what cannot have its own place.
const LABELS: &str = "labels";

/// Why nothing of a body is used.
#[derive(Debug)]
pub(super) struct Unused(pub(super) Refusal, pub(super) String);

impl From<String> for Unused {
    fn from(message: String) -> Self {
        Self(Refusal::Wrong(StatusCode::BAD_REQUEST), message)
    }
}

/// Makes batches.
pub(super) struct Events<'a> {
    source: &'a mut Source,
    decoder: &'a Decoder,
    /// Headers of the request, which each event gets.
    headers: Option<&'a Value>,
    counted: &'a mut Counted,
    open: Option<Batch>,
    /// Bytes of its texts.
    bytes: u64,
    done: Vec<(Batch, u64)>,
    /// Events, also those of batches that are dropped because there are too many.
    count: usize,
    /// Memory of the events of all requests without an answer yet.
    memory_of_all: u64,
    has_left_out: bool,
}

impl<'a> Events<'a> {
    pub(super) fn new(
        source: &'a mut Source,
        decoder: &'a Decoder,
        headers: Option<&'a Value>,
        counted: &'a mut Counted,
    ) -> Self {
        Self {
            source,
            decoder,
            headers,
            counted,
            open: None,
            bytes: 0,
            done: Vec::new(),
            count: 0,
            memory_of_all: 0,
            has_left_out: false,
        }
    }

    /// Adds an event whose message is `text`; `fill` gives it fields, and may take the message away.
    pub(super) fn add<T>(
        &mut self,
        text: &[u8],
        time: i64,
        fill: impl FnOnce(&mut EventMut<'_>, Text) -> T,
    ) -> T {
        let batch = self.open.get_or_insert_with(|| self.source.batch(Vec::new(), 0));
        let text = batch.append(text);
        let row = self.source.push(batch, text, text.len, time);
        let base = Arc::clone(batch.base());
        let mut event = batch.event_mut(row, &base);
        let filled = fill(&mut event, text);
        self.decoder.add_headers(&mut event, self.headers);
        batch.forget_changes();
        self.bytes += u64::from(text.len);
        self.count += 1;
        if batch.memory_bytes() >= BATCH_BYTES {
            self.close();
        }
        filled
    }

    /// Whether nothing of the request will be used, because it has too many events or they take too much memory: the rest
    /// of it need not be read.
    pub(super) fn is_beyond(&self) -> bool {
        self.count > EVENTS_MAX || self.memory_of_all > MEMORY_BYTES_MAX as u64
    }

    /// Reports what could not be put into an event: the first of them.
    pub(super) fn leave_out(&mut self, what: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.has_left_out, true) {
            self.source.failed(&what.to_string());
            tracing::warn!(source = %self.source.about().name, "{what}");
        }
    }

    fn close(&mut self) {
        if let Some(batch) = self.open.take() {
            self.memory_of_all = self.counted.add_made(batch.memory_bytes());
            self.done.push((batch, std::mem::take(&mut self.bytes)));
        }
        if self.is_beyond() {
            self.done.clear();
        }
    }

    /// The batches.
    ///
    /// # Errors
    /// There are more than [`EVENTS_MAX`] events, or they, or those of all requests, take more than [`MEMORY_BYTES_MAX`].
    pub(super) fn finish(mut self) -> Result<Vec<(Batch, u64)>, Unused> {
        self.close();
        if self.count > EVENTS_MAX {
            let (status, message) = too_many();
            return Err(Unused(Refusal::Wrong(status), message));
        }
        if self.counted.made() > MEMORY_BYTES_MAX as u64 {
            let message =
                format!("the events of a request take more than {MEMORY_BYTES_MAX} bytes");
            return Err(Unused(Refusal::Wrong(StatusCode::PAYLOAD_TOO_LARGE), message));
        }
        if self.is_beyond() {
            let message =
                format!("the events of all requests take more than {MEMORY_BYTES_MAX} bytes");
            return Err(Unused(Refusal::Busy, message));
        }
        Ok(self.done)
    }
}

/// Sets a field whose name may have dots. If its place is taken by something else, or is none, it becomes a label.
pub(super) fn insert(fields: &mut Map, name: &str, value: Value) {
    // Something else as `labels` would be in the way of labels.
    let is_free = name != LABELS || matches!(value, Value::Map(_));
    let is_place = is_free && !name.starts_with('@') && Path::parse(name).is_ok();
    if is_place && fields.get_path(name).is_none() && !fields.is_blocking(name) {
        fields.insert_path(name, value);
        return;
    }
    insert_label(fields, name, value);
}

/// Sets a label; dots in its name become `_`, as in labels of Elastic's APM.
pub(super) fn insert_label(fields: &mut Map, name: &str, value: Value) {
    let name = if name.is_empty() { "_".to_owned() } else { name.replace('.', "_") };
    fields.insert_path(&format!("{LABELS}.{name}"), value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_without_a_place_becomes_a_label() {
        let mut fields = Map::new();
        for name in ["a.b", "a.b.c", "a", "", "x..y", "@timestamp", "ok", "labels"] {
            insert(&mut fields, name, Value::from(name));
        }
        assert_eq!(fields.get_path("a.b"), Some(&"a.b".into()));
        assert_eq!(fields.get_path("ok"), Some(&"ok".into()));
        let Some(Value::Map(labels)) = fields.get("labels") else { panic!("{fields:?}") };
        let names: Vec<&str> = labels.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["@timestamp", "_", "a", "a_b_c", "labels", "x__y"]);
    }
}
