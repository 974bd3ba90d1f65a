//! Batches of events that a face makes one by one.

use super::super::decode::{BATCH_BYTES, Decoder, EVENTS_MAX, too_many};
use super::super::in_flight::Counted;
use super::super::refused::left_out;
use super::Refusal;
use hyper::StatusCode;
use skidder_event::{Batch, EventMut, Map, Path, Text, Value};
use skidder_input::Source;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Labels or attributes of an event, and members of an object in one, at most.
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
            left_out(self.source, &what.to_string());
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

/// Fields of an event whose names its sender chooses. None is lost: one that has no place becomes a label,
/// and labels of the same name become a list.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    fields: Map,
    labels: BTreeMap<String, Vec<Value>>,
}

impl Chosen {
    /// Sets a field whose name may have dots. If its place is taken by something else, or is none, it
    /// becomes a label.
    pub(super) fn insert(&mut self, name: &str, value: Value) {
        // Something else as `labels` would be in the way of labels.
        let is_free = name != LABELS || matches!(value, Value::Map(_));
        let is_place = is_free && !name.starts_with('@') && Path::parse(name).is_ok();
        if is_place && self.fields.get_path(name).is_none() && !self.fields.is_blocking(name) {
            self.fields.insert_path(name, value);
        } else {
            self.insert_label(name, value);
        }
    }

    /// Sets a label; dots in its name become `_`, as in labels of Elastic's APM.
    pub(super) fn insert_label(&mut self, name: &str, value: Value) {
        let name = if name.is_empty() { "_".to_owned() } else { name.replace('.', "_") };
        self.labels.entry(name).or_default().push(value);
    }

    /// Keeps the place of a field without dots for something that is not of these: what is there becomes
    /// a label, and what comes later as well. The field is `null`.
    pub(super) fn reserve(&mut self, name: &'static str) {
        if let Some(there) = self.fields.get(name).cloned() {
            self.insert_label(name, there);
        }
        self.fields.insert_constant(name, Value::Null);
    }

    /// The fields, with the labels among them.
    pub(super) fn into_map(self) -> Map {
        let Self { mut fields, labels } = self;
        for (name, mut values) in labels {
            let path = format!("{LABELS}.{name}");
            if let Some(there) = fields.get_path(&path) {
                values.insert(0, there.clone());
            }
            fields.insert_path(&path, one_or_list(values));
        }
        fields
    }
}

/// An object of members whose names its sender chooses. Values of the same name become a list.
pub(super) fn object_of(mut members: Vec<(String, Value)>) -> Map {
    // Those of the same name stay in their order.
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut members = members.into_iter().peekable();
    let mut object = Map::new();
    while let Some((name, value)) = members.next() {
        let mut values = vec![value];
        while let Some((_, value)) = members.next_if(|(next, _)| *next == name) {
            values.push(value);
        }
        object.insert(&name, one_or_list(values));
    }
    object
}

fn one_or_list(values: Vec<Value>) -> Value {
    match <[Value; 1]>::try_from(values) {
        Ok([value]) => value,
        Err(values) => Value::List(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_without_a_place_becomes_a_label() {
        let mut fields = Chosen::default();
        for name in ["a.b", "a.b.c", "a", "", "x..y", "@timestamp", "ok", "labels"] {
            fields.insert(name, Value::from(name));
        }
        let fields = fields.into_map();
        assert_eq!(fields.get_path("a.b"), Some(&"a.b".into()));
        assert_eq!(fields.get_path("ok"), Some(&"ok".into()));
        let Some(Value::Map(labels)) = fields.get("labels") else { panic!("{fields:?}") };
        let names: Vec<&str> = labels.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["@timestamp", "_", "a", "a_b_c", "labels", "x__y"]);
    }

    #[test]
    fn labels_of_the_same_name_become_a_list() {
        let number = Value::Int;
        for (given, path, expected) in [
            (&["k", "k", "k"][..], "k", number(0)),
            (&["k", "k", "k"], "labels.k", Value::List(vec![number(1), number(2)])),
            (&["labels.a", "a.b", "a"], "labels.a", Value::List(vec![number(0), number(2)])),
            (&["a.b", "a", "labels.a"], "labels.a", Value::List(vec![number(2), number(1)])),
            (&["a.b", "a.b", "a_b", "a_b"], "labels.a_b", Value::List(vec![number(1), number(3)])),
        ] {
            let mut fields = Chosen::default();
            for (at, name) in given.iter().enumerate() {
                fields.insert(name, number(at as i64));
            }
            assert_eq!(fields.into_map().get_path(path), Some(&expected), "{given:?} {path}");
        }
    }

    #[test]
    fn a_reserved_place_takes_no_field() {
        let mut fields = Chosen::default();
        for name in ["m", "n"] {
            fields.insert(name, Value::from(name));
        }
        fields.reserve("m");
        for name in ["m", "m.x"] {
            fields.insert(name, Value::from("later"));
        }
        let fields = fields.into_map();
        assert_eq!(fields.get("m"), Some(&Value::Null));
        let both = Value::List(vec!["m".into(), "later".into()]);
        assert_eq!(fields.get_path("labels.m"), Some(&both));
        assert_eq!(fields.get_path("labels.m_x"), Some(&"later".into()));
    }

    #[test]
    fn members_of_the_same_name_become_a_list() {
        let members = [("b", 1), ("a", 2), ("b", 3), ("b", 0)];
        let members = members.map(|(name, number)| (name.to_owned(), Value::Int(number)));
        let object = object_of(members.to_vec());
        assert_eq!(object.get("a"), Some(&Value::Int(2)));
        let all = [1, 3, 0].map(Value::Int).to_vec();
        assert_eq!(object.get("b"), Some(&Value::List(all)));
    }
}
