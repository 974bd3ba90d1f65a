//! Texts that are any JSON value.

use super::{Frame, KeyId, NO_KEY, Open, Scan, Scanner};
use crate::json::JsonError;
use skidder_event::{Cell, EventMut, FieldList, NodeId, Text};

/// A JSON value in a batch.
#[derive(Clone, Copy, Debug)]
pub enum JsonValue {
    /// An object: its fields.
    Object(FieldList),
    /// A list, a text, a number, …
    Other(Cell),
}

impl Scanner {
    /// Makes a value of the JSON that `text` is, in the batch of `event`, which itself stays as it is.
    pub fn value(&mut self, event: &mut EventMut<'_>, text: Text) -> Result<JsonValue, JsonError> {
        self.read(event, text, |scan| scan.any())
    }
}

impl Scan<'_> {
    fn any(&mut self) -> Result<JsonValue, JsonError> {
        let byte = self.peek();
        if byte == b'{' {
            let fields = self.document()?;
            return self.nothing_more().map(|()| JsonValue::Object(fields));
        }
        let mut root = Frame {
            node: NodeId::NONE,
            first: NodeId::NONE,
            last: NodeId::NONE,
            object: Open::LIST,
            key: KeyId::ROOT,
            last_key: KeyId::ROOT,
            member: 0,
            altered: false,
        };
        let cell = if byte == b'[' {
            self.at += 1;
            Cell::List(self.containers(root)?.first)
        } else {
            self.value(&mut root, NO_KEY, byte)?;
            self.arena.cell(root.first)
        };
        self.nothing_more()?;
        Ok(JsonValue::Other(cell))
    }
}
