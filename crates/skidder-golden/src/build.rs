//! Batches and documents for tests, and fields as JSON.

use serde_json::Value as Json;
use skidder_event::*;
use std::sync::Arc;

/// When the lines of [`batch`] were read: 2026-11-21T20:52:57.123Z.
pub const TIME: i64 = 1_795_294_377_123_000_000;

/// A field path.
///
/// # Panics
/// If it is none.
pub fn path(text: &str) -> Path {
    Path::parse(text).expect("a field path")
}

/// The fields of a JSON object; dots in keys make objects.
///
/// # Panics
/// If it is no object.
pub fn map(json: &Json) -> Map {
    let mut map = Map::new();
    for (key, value) in json.as_object().expect("an object") {
        map.insert_path(key, value_of(value));
    }
    map
}

/// A JSON value as one of a configuration.
pub fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::UInt(number),
            (None, None) => Value::Float(number.as_f64().expect("a number")),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::List(items.iter().map(value_of).collect()),
        Json::Object(_) => Value::Map(map(json)),
    }
}

/// A batch of one event for each message.
pub fn batch(messages: &[&str], base: &Arc<Base>) -> Batch {
    let mut bytes = Vec::new();
    let mut rows = Vec::new();
    for message in messages {
        let text = Text { start: bytes.len() as u32, len: message.len() as u32 };
        rows.push(Row::new(bytes.len() as u64, text.len + 1, text, TIME));
        bytes.extend_from_slice(message.as_bytes());
        bytes.push(b'\n');
    }
    let provenance = Provenance::new(SourceId(1), 0..bytes.len() as u64);
    let mut batch = Batch::new(bytes, true, Arc::clone(base), provenance);
    for row in rows {
        batch.push(row);
    }
    batch
}

/// The document of an event with its `@metadata`, without what the output adds to that.
pub fn document(batch: &Batch, row: usize) -> Json {
    let mut out = Vec::new();
    Encoder::with_metadata(Precision::Millisecond, "", "").write(&mut out, batch, row);
    let mut json: Json = serde_json::from_slice(&out)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)));
    let metadata = json["@metadata"].as_object_mut().expect("the encoder writes it");
    for own in ["beat", "type", "version"] {
        metadata.remove(own);
    }
    json
}
