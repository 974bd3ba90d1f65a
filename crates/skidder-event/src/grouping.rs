//! Operations on a batch for the parsers of an input: taking events out again, joining texts, merging fields.
//!
//! A parser that makes one event of several lines holds the [`Row`] of the first outside of the batch
//! until it is complete. Its fields stay in the arena meanwhile: a row only names them.

use crate::batch::{Batch, Cell, Node, NodeId, Parts, Row, Text};
use crate::fields::Arena;
use crate::provenance::Provenance;
use std::ops::Range;

impl Row {
    /// The message, if it is the row's own.
    #[inline]
    pub fn text(&self) -> Option<Text> {
        self.has(Self::MESSAGE).then_some(self.message)
    }

    /// Whether the event says anything of its own besides message, time and offset (and `@metadata`).
    #[inline]
    pub fn has_own(&self) -> bool {
        !self.own.is_none()
    }
}

impl Batch {
    /// Takes the newest event out, as if it had not been pushed: its line does not count any more.
    pub fn pop(&mut self) -> Option<Row> {
        let row = self.rows.pop()?;
        self.lines -= 1;
        Some(row)
    }

    /// Takes out all events that `keep` refuses, as if they had not been pushed; the order is kept.
    pub fn withdraw(&mut self, keep: impl FnMut(&Row) -> bool) {
        let before = self.rows.len();
        self.rows.retain(keep);
        self.lines -= (before - self.rows.len()) as u64;
    }

    /// Replaces what is known of the place of the lines, once it is known which of them are used.
    pub fn set_provenance(&mut self, provenance: Provenance) {
        self.provenance = provenance;
    }

    /// Returns the large parts of the batch, to be used again; the rest is dropped.
    pub fn into_parts(mut self) -> Parts {
        self.recycle = None;
        Parts {
            bytes: std::mem::take(&mut self.bytes),
            rows: std::mem::take(&mut self.rows),
            nodes: std::mem::take(&mut self.nodes),
            cells: std::mem::take(&mut self.cells),
        }
    }

    /// All bytes: those of the lines, and behind them what was appended.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Marks which of the appended bytes were checked to be UTF-8. A text that begins and ends
    /// inside is taken for UTF-8 without another look.
    pub fn set_utf8_appended(&mut self, appended: Range<usize>) {
        self.utf8_appended = appended.start as u32..appended.end as u32;
    }

    /// Appends text to the batch's bytes.
    ///
    /// # Panics
    /// Beyond [`Batch::BYTES_MAX`] bytes: texts are bounded by the lines they come from.
    pub fn append(&mut self, text: &[u8]) -> Text {
        self.push_unchecked(text)
    }

    /// Appends to the batch's bytes what `write` appends to them; it may not change what is there.
    ///
    /// # Panics
    /// As [`Batch::append`].
    pub fn append_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Text {
        let start = self.bytes.len();
        write(&mut self.bytes);
        assert!((start..=Self::BYTES_MAX).contains(&self.bytes.len()), "a batch beyond its bound");
        Text { start: start as u32, len: (self.bytes.len() - start) as u32 }
    }

    /// Appends the line `line` of the batch's own bytes as `decode` renders it.
    ///
    /// # Panics
    /// As [`Batch::append`].
    pub fn append_decoded(
        &mut self,
        line: Range<usize>,
        decode: impl FnOnce(&[u8], &mut Vec<u8>),
    ) -> Text {
        // The line is in the vector that grows.
        let mut out = std::mem::take(&mut self.decoded);
        out.clear();
        decode(&self.bytes[line], &mut out);
        let text = self.push_unchecked(&out);
        self.decoded = out;
        text
    }

    /// Appends a copy of texts of this batch, joined by `separator`.
    ///
    /// # Panics
    /// As [`Batch::append`].
    pub fn append_joined(&mut self, texts: &[Text], separator: &[u8]) -> Text {
        let start = self.bytes.len();
        for (at, text) in texts.iter().enumerate() {
            if at > 0 {
                self.bytes.extend_from_slice(separator);
            }
            let from = text.start as usize;
            self.bytes.extend_from_within(from..from + text.len as usize);
        }
        assert!(self.bytes.len() <= Self::BYTES_MAX, "a batch beyond its bound");
        Text { start: start as u32, len: (self.bytes.len() - start) as u32 }
    }

    /// Makes a text of this batch the message of a row, whatever was the message before.
    #[inline]
    pub fn set_text(&mut self, row: &mut Row, text: Text) {
        if !row.has(Row::MESSAGE) {
            row.flags |= Row::MESSAGE;
            if let Some(id) = self.find(row.own, b"message") {
                let node = &mut self.nodes[id.0 as usize];
                (node.cell, node.raw) = (Cell::Gone, 0);
            }
        }
        row.message = text;
    }

    /// Gives a row that is not in the batch its first field of its own; neither the base nor the row itself has one of
    /// this name. `raw` as for [`crate::Arena::push`].
    #[inline]
    pub fn set_first(&mut self, row: &mut Row, key: Text, cell: Cell, raw: u32) {
        debug_assert!(row.own.is_none(), "a row that has fields gets another one as its first");
        row.own = Arena(&mut self.nodes).push(NodeId::NONE, key, cell, raw);
    }

    /// Merges the fields of a later row into an earlier one: of those at the top level that both have, the
    /// later one's stay (`Update` of Filebeat's `mapstr.M`). Neither row is in the batch; `later` is not
    /// used again.
    pub fn absorb(&mut self, row: &mut Row, later: &Row) {
        debug_assert!(!row.has(Row::SHARED), "fields of other events would change, too");
        row.own = self.merge_lists(row.own, later.own);
        row.metadata = self.merge_lists(row.metadata, later.metadata);
    }

    fn merge_lists(&mut self, first: NodeId, later: NodeId) -> NodeId {
        if first.is_none() || later.is_none() {
            return if first.is_none() { later } else { first };
        }
        let mut merged = first;
        let mut next = later;
        while !next.is_none() {
            let node = *self.node(next);
            match self.find(first, self.text(node.key)) {
                Some(id) => {
                    let following = self.node(id).next;
                    self.nodes[id.0 as usize] = Node { next: following, ..node };
                }
                None => merged = self.push_node(Node { next: merged, ..node }),
            }
            next = node.next;
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Base;
    use crate::encode::{Encoder, Precision};
    use crate::path::Path;
    use crate::provenance::SourceId;
    use crate::value::{Map, Value};
    use std::sync::Arc;

    fn batch(bytes: &[u8]) -> Batch {
        let provenance = Provenance::new(SourceId(1), 0..0);
        let base = Arc::new(Base::new(&Map::new(), &Map::new()));
        Batch::new(bytes.to_vec(), true, base, provenance)
    }

    fn put(batch: &mut Batch, row: usize, path: &str, value: i64) {
        let base = Arc::clone(batch.base());
        let path = Path::parse(path).expect("a good path");
        batch.event_mut(row, &base).put(&path, &Value::Int(value)).expect("no value in the way");
    }

    #[test]
    fn what_is_taken_out_does_not_count() {
        let mut batch = batch(b"one\ntwo\nthree\n");
        for (offset, len) in [(0, 3), (4, 3), (8, 5)] {
            batch.push(Row::new(offset, len + 1, Text { start: offset as u32, len }, 0));
        }
        assert_eq!(batch.pop().map(|row| row.offset), Some(8));
        assert_eq!(batch.lines(), 2);
        batch.withdraw(|row| row.offset > 0);
        assert_eq!((batch.lines(), batch.len()), (1, 1));
        assert_eq!(batch.rows()[0].offset, 4);
    }

    #[test]
    fn texts_are_joined_behind_the_lines() {
        let mut batch = batch(b"one\r\ntwo\r\n");
        let texts = [Text { start: 0, len: 3 }, Text { start: 5, len: 3 }];
        let joined = batch.append_joined(&texts, b"\n");
        assert_eq!(batch.text(joined), b"one\ntwo");
        let decoded = batch.append_decoded(5..8, |line, out| out.extend(line.iter().rev()));
        assert_eq!(batch.text(decoded), b"owt");
        assert_eq!(batch.text(joined), b"one\ntwo");
    }

    #[test]
    fn fields_of_the_later_row_win_at_the_top_level() {
        let mut batch = batch(b"one\ntwo\n");
        batch.push(Row::new(0, 4, Text { start: 0, len: 3 }, 0));
        put(&mut batch, 0, "a.x", 1);
        put(&mut batch, 0, "b", 1);
        let mut first = batch.pop().expect("it was pushed");
        batch.push(Row::new(4, 4, Text { start: 4, len: 3 }, 0));
        put(&mut batch, 0, "a.y", 2);
        put(&mut batch, 0, "c", 2);
        let later = batch.pop().expect("it was pushed");
        batch.absorb(&mut first, &later);
        batch.push(first);
        let mut out = Vec::new();
        Encoder::new(Precision::Millisecond).write(&mut out, &batch, 0);
        let text = String::from_utf8(out).expect("JSON is UTF-8");
        let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(json["a"], serde_json::json!({"y": 2}));
        assert_eq!((&json["b"], &json["c"]), (&1.into(), &2.into()));
    }
}
