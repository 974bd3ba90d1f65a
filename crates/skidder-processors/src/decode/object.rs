//! Objects that are built in the batch of an event, without a copy of their own.

use skidder_event::{Cell, EventMut, NodeId, Text};

/// An object under construction: a list of fields in the batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    first: NodeId,
    last: NodeId,
}

impl Object {
    /// One without fields.
    pub(crate) const EMPTY: Self = Self { first: NodeId::NONE, last: NodeId::NONE };

    /// Whether it has no field.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The object as a value.
    pub(crate) fn cell(&self) -> Cell {
        Cell::Map { first: self.first, opaque: true }
    }

    /// The object as fields to be merged into an event.
    pub(crate) fn list(&self) -> skidder_event::FieldList {
        use skidder_event::{FieldList, KeyFilter};
        FieldList { first: self.first, last: self.last, keys: KeyFilter::ANY, timestamp: true }
    }

    /// Adds a field whose name is not there yet.
    pub(crate) fn push(&mut self, event: &mut EventMut<'_>, name: &str, cell: Cell) {
        event.note_key(name.as_bytes());
        let key = event.store_text(name.as_bytes());
        self.push_key(event, key, cell);
    }

    /// Adds a new field whose name is in the batch.
    pub(crate) fn push_key(&mut self, event: &mut EventMut<'_>, key: Text, cell: Cell) {
        self.last = event.arena().1.push(self.last, key, cell, 0);
        if self.first.is_none() {
            self.first = self.last;
        }
    }

    /// Sets the field of this name, dots in it included; a later value replaces an earlier one.
    pub(crate) fn set(&mut self, event: &mut EventMut<'_>, name: &str, cell: Cell) {
        event.note_key(name.as_bytes());
        let key = event.store_text(name.as_bytes());
        match find(event, self.first, key) {
            Some(id) => event.arena().1.set(id, cell, 0),
            None => self.push_key(event, key, cell),
        }
    }

    /// Whether there is a field at a dotted name in the batch.
    pub(crate) fn has_path(&self, event: &mut EventMut<'_>, key: Text) -> bool {
        let (mut first, mut rest) = (self.first, key);
        loop {
            let dot = memchr::memchr(b'.', event.text(rest));
            let head = Text { len: dot.map_or(rest.len, |dot| dot as u32), ..rest };
            let Some(found) = find(event, first, head) else { return false };
            let Some(dot) = dot else { return true };
            first = first_of(event.arena().1.cell(found));
            rest = Text { start: rest.start + dot as u32 + 1, len: rest.len - dot as u32 - 1 };
        }
    }

    /// Sets the field at a dotted name in the batch; a later value replaces an earlier
    /// one. `false`, and nothing happens, if a value that is not an object is in the way.
    pub(crate) fn set_path(&mut self, event: &mut EventMut<'_>, key: Text, cell: Cell) -> bool {
        let mut inside = None;
        let mut rest = key;
        loop {
            let dot = memchr::memchr(b'.', event.text(rest));
            let head = Text { len: dot.map_or(rest.len, |dot| dot as u32), ..rest };
            let first = match inside {
                None => self.first,
                Some(id) => first_of(event.arena().1.cell(id)),
            };
            let found = find(event, first, head);
            let Some(dot) = dot else {
                match found {
                    Some(id) => event.arena().1.set(id, cell, 0),
                    None => {
                        self.append(event, inside, head, cell);
                    }
                }
                return true;
            };
            rest = Text { start: rest.start + dot as u32 + 1, len: rest.len - dot as u32 - 1 };
            inside = match found.map(|id| (id, event.arena().1.cell(id))) {
                Some((id, Cell::Map { .. })) => Some(id),
                Some(_) => return false,
                None => Some(self.append(event, inside, head, Self::EMPTY.cell())),
            };
        }
    }

    /// Adds a field at the end of this object, or of the one at the node `inside`.
    fn append(
        &mut self,
        event: &mut EventMut<'_>,
        inside: Option<NodeId>,
        key: Text,
        cell: Cell,
    ) -> NodeId {
        let Some(parent) = inside else {
            self.push_key(event, key, cell);
            return self.last;
        };
        let (_, mut arena) = event.arena();
        let first = first_of(arena.cell(parent));
        let (mut last, mut next) = (NodeId::NONE, first);
        while !next.is_none() {
            last = next;
            next = arena.next(next);
        }
        let id = arena.push(last, key, cell, 0);
        if first.is_none() {
            arena.set(parent, Cell::Map { first: id, opaque: true }, 0);
        }
        id
    }
}

fn first_of(cell: Cell) -> NodeId {
    match cell {
        Cell::Map { first, .. } => first,
        _ => NodeId::NONE,
    }
}

/// The field with the name at this span of the batch.
fn find(event: &mut EventMut<'_>, first: NodeId, name: Text) -> Option<NodeId> {
    let (bytes, arena) = event.arena();
    let text = |text: Text| &bytes[text.start as usize..(text.start + text.len) as usize];
    let mut next = first;
    while !next.is_none() {
        if text(arena.key(next)) == text(name) {
            return Some(next);
        }
        next = arena.next(next);
    }
    None
}
