//! For tests: a batch of one line, and its event as a document.

use skidder_event::{Base, Batch, Encoder, Map, Precision, Provenance, Row, SourceId, Text};
use std::sync::Arc;

/// What a reader gives: the file of the line.
pub(crate) fn base() -> Arc<Base> {
    let mut fields = Map::new();
    fields.insert_path("log.file.path", "/var/log/a.log");
    Arc::new(Base::new(&fields, &Map::new()))
}

pub(crate) fn batch_of(line: &[u8], base: &Arc<Base>) -> Batch {
    let provenance = Provenance {
        source: SourceId(1),
        generation: 0,
        range: 0..line.len() as u64,
        end_of_file: false,
        tail: None,
        resume: None,
    };
    let utf8 = std::str::from_utf8(line).is_ok();
    let mut batch = Batch::new(line.to_vec(), utf8, base.clone(), provenance);
    let text = Text { start: 0, len: line.len() as u32 };
    batch.push(Row::new(7, text.len + 1, text, 1_795_294_377_123_000_000));
    batch
}

pub(crate) fn document(batch: &Batch) -> serde_json::Value {
    let mut out = Vec::new();
    Encoder::new(Precision::Nanosecond).write(&mut out, batch, 0);
    serde_json::from_slice(&out)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)))
}
