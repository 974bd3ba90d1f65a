//! Helpers of this crate's unit tests.

use skidder_event::{Base, Batch, Map, Provenance, Row, SourceId, Text, Value};
use skidder_outputs::Context;
use std::sync::Arc;

/// 2026-01-02 03:04:05 UTC.
pub(crate) const TIME: i64 = 1_767_323_045_000_000_000;

/// The context of the outputs in tests.
pub(crate) fn context() -> Context {
    Context::sample()
}

/// One event with the message `line` and these fields.
pub(crate) fn event(fields: &[(&str, &str)]) -> Batch {
    let mut map = Map::new();
    for (name, text) in fields {
        map.insert_path(name, Value::from(*text));
    }
    let provenance = Provenance::new(SourceId(1), 0..5);
    let base = Arc::new(Base::new(&map, &Map::new()));
    let mut batch = Batch::new(b"line\n".to_vec(), true, base, provenance);
    batch.push(Row::new(0, 5, Text { start: 0, len: 4 }, TIME));
    batch
}
