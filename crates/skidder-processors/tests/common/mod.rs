//! Batches and documents for the tests of this crate.

#![allow(dead_code, reason = "every test program uses a part of it")]
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

pub(crate) mod tree;

use serde_json::{Value as Json, json};
use skidder_event::*;
use std::sync::Arc;

pub(crate) const TIME: i64 = 1_795_294_377_123_000_000;

pub(crate) fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

/// The fields of a JSON object; dots in keys make objects.
pub(crate) fn map(json: &Json) -> Map {
    let mut map = Map::new();
    for (key, value) in json.as_object().unwrap() {
        map.insert_path(key, value_of(value));
    }
    map
}

pub(crate) fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::UInt(number),
            (None, None) => Value::Float(number.as_f64().unwrap()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::List(items.iter().map(value_of).collect()),
        Json::Object(_) => Value::Map(map(json)),
    }
}

/// A batch of one event for each message.
pub(crate) fn batch(messages: &[&str], base: &Arc<Base>) -> Batch {
    let mut bytes = Vec::new();
    let mut rows = Vec::new();
    for message in messages {
        let text = Text { start: bytes.len() as u32, len: message.len() as u32 };
        rows.push(Row::new(bytes.len() as u64, text.len + 1, text, TIME));
        bytes.extend_from_slice(message.as_bytes());
        bytes.push(b'\n');
    }
    let provenance = Provenance {
        source: SourceId(1),
        generation: 0,
        range: 0..bytes.len() as u64,
        end_of_file: false,
        tail: None,
        resume: None,
    };
    let mut batch = Batch::new(bytes, true, Arc::clone(base), provenance);
    for row in rows {
        batch.push(row);
    }
    batch
}

/// The document of an event with its `@metadata`, without what the output adds to that.
pub(crate) fn document(batch: &Batch, row: usize) -> Json {
    let mut out = Vec::new();
    Encoder::with_metadata(Precision::Millisecond, "", "").write(&mut out, batch, row);
    let mut json: Json = serde_json::from_slice(&out)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)));
    let metadata = json["@metadata"].as_object_mut().unwrap();
    for own in ["beat", "type", "version"] {
        metadata.remove(own);
    }
    json
}

/// The fields of a source as an input gives them.
pub(crate) fn source_fields() -> Json {
    json!({
        "log": {"file": {"path": "/var/log/a.log"}},
        "input": {"type": "filestream"},
    })
}
