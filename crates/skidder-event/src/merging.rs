//! Merging a map of fields over an event.

use crate::base::{BaseNode, find};
use crate::batch::Row;
use crate::edit::{EventMut, Head};
use crate::value::{Map, Value};

impl<'a> EventMut<'a> {
    /// Merges fields over the event: objects deeply, everything else replaced. `@timestamp` is
    /// replaced only by a time.
    pub fn merge(&mut self, fields: &Map) {
        self.settle();
        self.merge_list(Head::Own, Some(self.base.nodes()), fields, true);
    }

    /// Merges into `@metadata`.
    pub fn merge_metadata(&mut self, fields: &Map) {
        self.merge_list(Head::Metadata, Some(self.base.metadata()), fields, false);
    }

    fn merge_list(&mut self, head: Head, below: Option<&'a [BaseNode]>, fields: &Map, root: bool) {
        // No key is twice in a map: those that are put before this one need not be looked through again, which would take
        // the square of their number.
        let start = self.first(head);
        for (key, value) in fields.iter() {
            if root && self.merge_own(key, value) {
                continue;
            }
            self.note_key(key.as_bytes());
            let Value::Map(inner) = value else {
                let cell = self.store(value);
                self.set_from(start, head, key.as_bytes(), cell);
                continue;
            };
            let node = below.and_then(|below| find(below, key));
            match self.object_from(start, head, key.as_bytes(), || node) {
                Some((head, below)) => self.merge_list(head, below, inner, false),
                None => {
                    let cell = self.store(value);
                    self.set_from(start, head, key.as_bytes(), cell);
                }
            }
        }
    }

    /// Merges what is the row's own; returns whether that was all there was to do.
    fn merge_own(&mut self, key: &str, value: &Value) -> bool {
        match (key, value) {
            ("message", Value::Str(text)) if self.row().has(Row::MESSAGE) => {
                let text = self.batch.push_text(text.as_bytes());
                self.batch.rows[self.row].message = text;
                true
            }
            ("message", _) => {
                self.batch.rows[self.row].flags &= !Row::MESSAGE;
                false
            }
            ("@timestamp", value) => {
                if let Value::Time(time) = value {
                    self.set_time(*time);
                }
                true
            }
            ("log", Value::Map(map)) if map.get("offset").is_none() => false,
            ("log", _) => {
                self.batch.rows[self.row].flags &= !Row::OFFSET;
                false
            }
            _ => false,
        }
    }
}
