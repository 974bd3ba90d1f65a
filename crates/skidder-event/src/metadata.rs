//! A first field of `@metadata`, for many events of a batch.

use crate::batch::{Batch, Cell, Node, NodeId, Text};

impl Batch {
    /// Stores the name of a field of `@metadata`, for [`Batch::begin_metadata`]. It is no path: it has no dots.
    pub fn metadata_name(&mut self, name: &str) -> Text {
        debug_assert!(!name.contains('.'), "a name and no path");
        self.push_text(name.as_bytes())
    }

    /// Gives an event its first field of `@metadata` of its own, as [`crate::EventMut::put_text`] does, without a look at
    /// what may be there. Does nothing, and returns `false`, if there is one already
    /// ([`crate::EventRef::has_own_metadata`]). `name` comes from [`Batch::metadata_name`] of this batch, and can be that of
    /// many events.
    #[inline]
    pub fn begin_metadata(&mut self, row: usize, name: Text, text: &[u8]) -> bool {
        if !self.rows[row].metadata.is_none() {
            return false;
        }
        let cell = Cell::Str(self.push_text(text));
        self.rows[row].metadata = self.push_node(Node::new(name, cell, NodeId::NONE));
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::{Base, Batch, Map, Path, Progress, Provenance, Row, SourceId, Text, ValueRef};
    use std::sync::Arc;

    #[test]
    fn many_events_get_a_field_whose_name_is_stored_once() {
        let base = Arc::new(Base::new(&Map::new(), &Map::new()));
        let provenance = Provenance { source: SourceId(1), progress: Progress::Nothing(8) };
        let mut batch = Batch::new(b"one\ntwo\n".to_vec(), true, Arc::clone(&base), provenance);
        batch.push(Row::new(0, 4, Text { start: 0, len: 3 }, 0));
        batch.push(Row::new(4, 4, Text { start: 4, len: 3 }, 0));
        let pipeline = Path::parse("@metadata.pipeline").unwrap();
        batch.event_mut(1, &base).put_text(&pipeline, b"p").unwrap();
        let name = batch.metadata_name("_id");
        assert!(batch.begin_metadata(0, name, b"a-0"));
        assert!(!batch.begin_metadata(0, name, b"a-1") && !batch.begin_metadata(1, name, b"a-1"));
        let id = Path::parse("@metadata._id").unwrap();
        assert!(matches!(batch.event(0).get(&id), Some(ValueRef::Str(b"a-0"))));
        assert!(!batch.event(1).has(&id));
        // It is a field as any other.
        batch.event_mut(0, &base).put_text(&id, b"b").unwrap();
        assert!(matches!(batch.event(0).get(&id), Some(ValueRef::Str(b"b"))));
    }
}
