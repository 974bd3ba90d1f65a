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
    let provenance = Provenance::new(SourceId(1), 0..line.len() as u64);
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

/// Broken variants of a text, the same in every run: bytes changed, taken out, doubled, cut off,
/// taken from elsewhere in it.
#[derive(Debug)]
pub(crate) struct Mutations {
    text: Vec<u8>,
    state: u64,
}

impl Mutations {
    pub(crate) fn new(text: &[u8]) -> Self {
        Self { text: text.to_vec(), state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// A number below `bound`, by xorshift.
    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % bound.max(1)
    }
}

impl Iterator for Mutations {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        const SPECIAL: &[u8] = b"\"\\{}[]:,=<>-'? \n\0\xff09eutn";
        let mut text = self.text.clone();
        for _ in 0..=self.below(3) {
            if text.is_empty() {
                break;
            }
            let (at, len) = (self.below(text.len()), self.below(8));
            let end = (at + len).min(text.len());
            match self.below(6) {
                0 => text[at] = SPECIAL[self.below(SPECIAL.len())],
                1 => text[at] = self.below(256) as u8,
                2 => drop(text.drain(at..end)),
                3 => text.truncate(at),
                4 => text.insert(at, SPECIAL[self.below(SPECIAL.len())]),
                _ => {
                    let piece = text[at..end].to_vec();
                    let to = self.below(text.len());
                    text.splice(to..to, piece);
                }
            }
        }
        Some(text)
    }
}

/// Runs `parse` on broken variants of lines. What it leaves must be a document, and the same as
/// before where it says it changed nothing.
pub(crate) fn survives(
    lines: &[&str],
    mut parse: impl FnMut(&mut skidder_event::EventMut<'_>) -> bool,
) {
    let base = base();
    for line in lines {
        for broken in Mutations::new(line.as_bytes()).take(1000) {
            let mut batch = batch_of(&broken, &base);
            let before = document(&batch);
            let done = parse(&mut batch.event_mut(0, &base));
            let mut after = document(&batch);
            if !done {
                after.as_object_mut().map(|event| event.remove("error"));
                assert_eq!(after, before, "{}", String::from_utf8_lossy(&broken));
            }
        }
    }
}
