//! Batches for the tests of this crate.

use skidder_event::{Base, Batch, FilePart, Map, Progress, Provenance, Row, SourceId, Tail, Text};
use skidder_registry::{Cursor, Meta};
use std::path::Path;
use std::sync::Arc;

/// Lines of ten bytes with their line feed, from `start` on.
pub(crate) fn batch(source: u64, generation: u32, start: u64, lines: u32) -> Batch {
    let mut bytes = Vec::new();
    for _ in 0..lines {
        bytes.extend_from_slice(b"123456789\n");
    }
    let range = start..start + u64::from(lines) * 10;
    let tail = Some(Tail { len: 9, crc: range.end as u32 });
    let part = FilePart { generation, tail, ..FilePart::new(range) };
    let provenance = Provenance::of_file(SourceId(source), part);
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    let mut batch = Batch::new(bytes, true, base, provenance);
    for line in 0..lines {
        let text = Text { start: line * 10, len: 9 };
        batch.push(Row::new(start + u64::from(line) * 10, 10, text, 0));
    }
    batch
}

/// Events of a source that is no file, of ten bytes each; the first one has the number `first`.
pub(crate) fn numbered(source: u64, first: u64, events: u32) -> Batch {
    numbered_of(source, first, events, Progress::Nothing(u64::from(events) * 10))
}

/// The same, with this progress after their verdicts.
pub(crate) fn numbered_of(source: u64, first: u64, events: u32, progress: Progress) -> Batch {
    let bytes = b"123456789\n".repeat(events as usize);
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    let provenance = Provenance { source: SourceId(source), progress };
    let mut batch = Batch::new(bytes, true, base, provenance);
    for event in 0..events {
        let text = Text { start: event * 10, len: 9 };
        batch.push(Row::numbered(first + u64::from(event), 10, text, 0));
    }
    batch
}

/// A cursor at the beginning.
pub(crate) fn at_zero() -> Cursor {
    Cursor::default()
}

/// The metadata of a source at `path`.
pub(crate) fn meta(path: &str) -> Meta {
    Meta { source: Arc::from(Path::new(path)), ..Meta::default() }
}
