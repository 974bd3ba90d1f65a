//! What the tests of events share: a base, events over it, and their documents.

use skidder_event::*;
use std::sync::Arc;

pub(crate) const TIME: i64 = 1_795_294_377_123_000_000;

pub(crate) fn map(pairs: &[(&str, Value)]) -> Map {
    let mut map = Map::new();
    for (path, value) in pairs {
        map.insert_path(path, value.clone());
    }
    map
}

pub(crate) fn base() -> Arc<Base> {
    let fields = map(&[
        ("agent.name", "web".into()),
        ("host.name", "web".into()),
        ("input.type", "filestream".into()),
        ("log.file.path", "/var/log/a.log".into()),
        ("log.zone", "z".into()),
        ("tags", Value::List(vec!["a".into(), "b".into()])),
    ]);
    Arc::new(Base::new(&fields, &Map::new()))
}

pub(crate) fn batch_of(line: &str, base: Arc<Base>) -> Batch {
    let provenance = Provenance::new(SourceId(1), 0..line.len() as u64 + 1);
    let text = Text { start: 0, len: line.len() as u32 };
    let mut batch = Batch::new(format!("{line}\n").into_bytes(), true, base, provenance);
    batch.push(Row::new(7, line.len() as u32 + 1, text, TIME));
    batch
}

pub(crate) fn document(batch: &Batch) -> serde_json::Value {
    let mut out = Vec::new();
    Encoder::new(Precision::Millisecond).write(&mut out, batch, 0);
    serde_json::from_slice(&out).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&out));
    })
}

pub(crate) fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}
