//! Fields that several events of a batch have in common: made once, and copied for an event that is changed.

use crate::batch::{Batch, Cell, Node, NodeId, Row};
use crate::escape::is_plain;
use crate::fields::Arena;
use crate::merge::append_member;

/// Fields of one event of a batch, for others of the same batch. Made with [`Batch::share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedFields(NodeId);

impl Batch {
    /// Lets other events of this batch have the fields that `row` has of its own (`message`, `@timestamp` and
    /// `@metadata` are none of them). They are written once as outputs write them, which then copy them.
    ///
    /// # Panics
    /// If `row` is none of the batch, or beyond [`Batch::BYTES_MAX`] bytes.
    pub fn share(&mut self, row: usize) -> SharedFields {
        if self.rows[row].layout != 0 {
            self.make_nodes(row);
        }
        let mut text = std::mem::take(&mut self.decoded);
        text.clear();
        let first = self.copy_nodes(self.rows[row].own, |batch, of, mut node| {
            node.raw = 0;
            if node.cell != Cell::Gone && is_plain(batch.text(node.key)) {
                if !text.is_empty() {
                    text.push(b',');
                }
                // Behind the quote.
                node.key.start = (batch.bytes.len() + text.len() + 1) as u32;
                let before = text.len();
                append_member(&mut text, batch, of);
                node.raw = (text.len() - before) as u32;
            }
            node
        });
        self.push_text(&text);
        self.decoded = text;
        let row = &mut self.rows[row];
        row.own = first;
        row.flags |= Row::SHARED;
        SharedFields(first)
    }

    /// Gives `row` the fields of another event of this batch, if it has none of its own yet; else `false`, and nothing
    /// happened. Both must have been made over the same base.
    ///
    /// # Panics
    /// If `row` is none of the batch.
    #[inline]
    #[must_use]
    pub fn put_shared(&mut self, row: usize, fields: SharedFields) -> bool {
        let is_free = self.rows[row].own.is_none() && !self.slots.is_live(row);
        if is_free {
            let row = &mut self.rows[row];
            row.own = fields.0;
            row.flags |= Row::SHARED;
        }
        is_free
    }

    /// The fields that `row` shares with other events, if it does.
    ///
    /// # Panics
    /// If `row` is none of the batch.
    #[inline]
    pub fn shared(&self, row: usize) -> Option<SharedFields> {
        let Row { own, flags, layout, .. } = self.rows[row];
        let is_shared = flags & Row::SHARED != 0 && layout == 0 && !self.slots.is_live(row);
        is_shared.then_some(SharedFields(own))
    }

    /// Gives `row` the fields of another event of this batch in the place of those that it shares.
    ///
    /// # Panics
    /// If `row` is none of the batch, or shares no fields.
    #[inline]
    pub fn replace_shared(&mut self, row: usize, fields: SharedFields) {
        assert!(self.shared(row).is_some(), "the event has fields of its own");
        self.rows[row].own = fields.0;
    }

    /// Gives a row nodes of its own in the place of the values that are kept instead, or of those that it shares.
    #[cold]
    pub(crate) fn own_nodes(&mut self, row: usize) {
        if self.rows[row].layout != 0 {
            self.make_nodes(row);
            return;
        }
        let own = self.copy_list(self.rows[row].own);
        let row = &mut self.rows[row];
        row.own = own;
        row.flags &= !Row::SHARED;
    }

    /// Copies a list of fields and the objects in it. Lists are never changed, and not copied.
    fn copy_list(&mut self, list: NodeId) -> NodeId {
        self.copy_nodes(list, |batch, _, mut node| {
            if let Cell::Map { first, opaque } = node.cell {
                node.cell = Cell::Map { first: batch.copy_list(first), opaque };
            }
            node
        })
    }

    /// Copies the nodes of a list, each as `change` returns it.
    #[inline]
    fn copy_nodes(
        &mut self,
        mut next: NodeId,
        mut change: impl FnMut(&mut Self, NodeId, Node) -> Node,
    ) -> NodeId {
        let (mut first, mut last) = (NodeId::NONE, NodeId::NONE);
        while !next.is_none() {
            let node = *self.node(next);
            let Node { key, cell, raw, .. } = change(self, next, node);
            last = Arena(&mut self.nodes).push(last, key, cell, raw);
            if first.is_none() {
                first = last;
            }
            next = node.next;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Base;
    use crate::batch::Text;
    use crate::encode::{Encoder, Precision};
    use crate::path::Path;
    use crate::provenance::{Provenance, SourceId};
    use crate::stored::Bases;
    use crate::value::{Map, Value};
    use std::sync::Arc;

    /// Events of sources that are no files (`numbered`), or are.
    fn batch(base: &Arc<Base>, numbered: bool) -> Batch {
        let provenance = Provenance::new(SourceId(1), 0..4);
        let mut batch = Batch::new(b"abcd".to_vec(), true, Arc::clone(base), provenance);
        let row = if numbered { Row::numbered } else { Row::new };
        for at in 0..4 {
            batch.push(row(u64::from(at), 1, Text { start: at, len: 1 }, 0));
        }
        batch
    }

    fn put(batch: &mut Batch, row: usize, path: &str, value: Value) {
        let base = Arc::clone(batch.base());
        let path = Path::parse(path).unwrap();
        batch.event_mut(row, &base).put(&path, &value).unwrap();
    }

    fn documents(batch: &Batch) -> Vec<String> {
        let mut encoder = Encoder::new(Precision::default());
        let document = |row| {
            let mut out = Vec::new();
            encoder.write(&mut out, batch, row);
            String::from_utf8(out).unwrap()
        };
        (0..batch.len()).map(document).collect()
    }

    fn nested() -> Value {
        let mut inner = Map::new();
        inner.insert("c", 2_i64);
        inner.insert("d\n\"", "x\ny");
        Value::Map(inner)
    }

    #[test]
    fn shared_fields_are_written_as_the_same_fields_of_each_event() {
        let mut fields = Map::new();
        fields.insert("of_base", 1_i64);
        fields.insert("a", nested());
        for (numbered, fields) in
            [(true, Map::new()), (false, Map::new()), (true, fields.clone()), (false, fields)]
        {
            let base = Arc::new(Base::new(&fields, &Map::new()));
            let (mut alone, mut together) = (batch(&base, numbered), batch(&base, numbered));
            let all = |batch: &mut Batch, row| {
                put(batch, row, "a.b", Value::Str("é\"".into()));
                put(batch, row, "key\"", Value::Null);
                put(batch, row, "e", nested());
            };
            (0..4).for_each(|row| all(&mut alone, row));
            all(&mut together, 1);
            put(&mut together, 3, "own", Value::Bool(true));
            let shared = together.share(1);
            assert!(together.put_shared(0, shared) && together.put_shared(2, shared));
            assert!(!together.put_shared(3, shared), "it has fields");
            let (alone, found) = (documents(&alone), documents(&together));
            assert_eq!(found[..3], alone[..3]);
            assert!(found[3].contains("\"own\":true") && !found[3].contains("key"), "{}", found[3]);
            let mut stored = Vec::new();
            together.store(0..4, &mut stored);
            let provenance = Provenance::new(SourceId(1), 0..4);
            let restored = Batch::restore(&stored, provenance, &mut Bases::default()).unwrap();
            assert_eq!(documents(&restored).len(), 4);
            for (restored, found) in documents(&restored).iter().zip(found) {
                let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
                assert_eq!(value(restored), value(&found));
            }
        }
    }

    #[test]
    fn an_event_that_is_changed_changes_alone() {
        let base = Arc::new(Base::new(&Map::new(), &Map::new()));
        let mut batch = batch(&base, true);
        put(&mut batch, 0, "e", nested());
        put(&mut batch, 0, "f", Value::Int(1));
        let shared = batch.share(0);
        for row in 1..4 {
            assert!(batch.put_shared(row, shared));
        }
        let before = documents(&batch);
        put(&mut batch, 0, "e.c", Value::Int(7));
        put(&mut batch, 1, "f", Value::Int(7));
        let path = Path::parse("e.c").unwrap();
        assert!(batch.event_mut(2, &base).delete(&path));
        let mut event = batch.event_mut(3, &base);
        let mark = event.mark();
        event.put(&path, &Value::Int(8)).unwrap();
        event.rollback(mark);
        let after = documents(&batch);
        assert_eq!(after[0], before[0].replace("\"c\":2", "\"c\":7"));
        assert_eq!(after[1], before[1].replace("\"f\":1", "\"f\":7"));
        assert_eq!(after[2], before[2].replace(",\"c\":2", ""));
        assert_eq!(after[3], before[3]);
    }
}
