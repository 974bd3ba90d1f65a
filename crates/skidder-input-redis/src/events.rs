//! From what a server answers to batches of events.

use skidder_event::{Batch, Cell, EventMut, Parts, Path, Row, Text};
use skidder_input::Source;
use std::sync::{Arc, LazyLock};

static FLAGS: LazyLock<Path> = LazyLock::new(|| path("log.flags"));

/// A path that is right.
pub(crate) fn path(text: &str) -> Path {
    Path::parse(text).expect("a constant that is a path")
}

/// Texts on their way into a batch.
#[derive(Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    /// Rows whose text was cut.
    cut: Vec<usize>,
    /// Bytes of the texts, as the server sent them.
    pub(crate) taken: u64,
}

impl Texts {
    /// Adds a message, of which at most `most` bytes are kept.
    pub(crate) fn push(&mut self, text: &[u8], most: usize, time: i64) {
        let kept = cut(text, most);
        if kept.len() < text.len() {
            self.cut.push(self.rows.len());
        }
        let (start, len) = (self.bytes.len() as u32, kept.len() as u32);
        self.bytes.extend_from_slice(kept);
        // Between two of them, so that all of them are UTF-8 if the whole is.
        self.bytes.push(b'\n');
        self.rows.push(Row::numbered(0, len, Text { start, len }, time));
        self.taken += text.len() as u64;
    }

    /// A batch of them.
    pub(crate) fn into_batch(self, source: &mut Source) -> Batch {
        let Self { bytes, rows, cut, .. } = self;
        let utf8 = if simdutf8::basic::from_utf8(&bytes).is_ok() { bytes.len() } else { 0 };
        let mut batch = source.batch_of(Parts { bytes, rows, ..Parts::default() }, utf8);
        for row in cut {
            edit(&mut batch, row, |event| {
                let flag = Cell::Str(event.store_text(b"truncated"));
                let flags = event.store_list(&[flag]);
                event.put_cell(&FLAGS, flags).is_ok()
            });
        }
        batch
    }
}

/// Changes an event; `change` returns whether it could.
pub(crate) fn edit(batch: &mut Batch, row: usize, change: impl FnOnce(&mut EventMut<'_>) -> bool) {
    let base = Arc::clone(batch.base());
    let is_put = change(&mut batch.event_mut(row, &base));
    debug_assert!(is_put, "the fields of a source leave room for those of its events");
}

/// The beginning of a text, which ends with a whole character.
fn cut(text: &[u8], most: usize) -> &[u8] {
    if text.len() <= most {
        return text;
    }
    let mut end = most;
    // Bytes that continue a character; of a text that is no UTF-8 at most three are given up.
    while end > most.saturating_sub(3) && text[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_two_characters() {
        assert_eq!(cut(b"abc", 3), b"abc");
        assert_eq!(cut(b"abcd", 3), b"abc");
        assert_eq!(cut("aüb".as_bytes(), 2), b"a");
        assert_eq!(cut("a😀b".as_bytes(), 4), b"a");
        assert_eq!(cut(&[0x80; 9], 6), [0x80; 3]);
    }
}
