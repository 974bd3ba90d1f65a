//! Values taken out of one event, to be put elsewhere in it.

use crate::base::{BaseNode, BaseValue, find};
use crate::batch::{Cell, Node, NodeId, Row, Text};
use crate::edit::{EventMut, Head};
use crate::form::base_node;
use crate::path::Path;
use smallvec::SmallVec;

impl<'a> EventMut<'a> {
    /// The value of a field as a value of this batch, everything inside included.
    #[inline]
    pub fn copy(&mut self, path: &Path) -> Option<Cell> {
        let Some((slot, known)) = self.as_ref().slot_of(path) else { return self.copy_any(path) };
        match self.batch.slots.get(slot) {
            Some(Cell::Gone) => None,
            None if known.present >> slot & 1 == 0 => None,
            None | Some(Cell::Map { .. }) => self.copy_any(path),
            cell => cell,
        }
    }

    /// The slot of a field, if it has one, and what was written to it, if that is no object.
    #[inline]
    pub(crate) fn plain_slot(&self, path: &Path) -> Option<(usize, Cell)> {
        let (slot, _) = self.as_ref().slot_of(path)?;
        let cell = self.batch.slots.get(slot)?;
        (!matches!(cell, Cell::Map { .. })).then_some((slot, cell))
    }

    /// The span of a text that was written to the slot of a field.
    #[inline]
    pub fn slot_text(&self, path: &Path) -> Option<Text> {
        match self.plain_slot(path) {
            Some((_, Cell::Str(text))) => Some(text),
            _ => None,
        }
    }

    /// The same wherever the value is.
    fn copy_any(&mut self, path: &Path) -> Option<Cell> {
        if !self.has_slots()
            && let Some(depth) = self.as_ref().key_with_dots(path)
        {
            return self.copy_at(path, depth);
        }
        let row = self.row();
        if path.is_message() && row.has(Row::MESSAGE) {
            return Some(Cell::Str(row.message));
        }
        if path.is_timestamp() {
            return Some(Cell::Time(row.time));
        }
        if path.is_log_offset() && row.has(Row::OFFSET) {
            return Some(Cell::UInt(row.offset));
        }
        if path.is_log() && row.has(Row::OFFSET) {
            self.own_offset();
        }
        if let Some(slot) = self.slot_of(path) {
            match self.batch.slots.get(slot) {
                Some(Cell::Gone) => return None,
                Some(Cell::Map { first, opaque }) => {
                    let node = if opaque { None } else { base_node(self.base, path) };
                    return Some(
                        self.store_layers(first, node.map_or(&[][..], BaseNode::children)),
                    );
                }
                Some(cell) => return Some(cell),
                None => {}
            }
        }
        let depth = self.as_ref().key_with_dots(path).unwrap_or(path.segments().len() - 1);
        self.copy_at(path, depth)
    }

    /// The value of the field of which the parts from `depth` on are the key.
    fn copy_at(&mut self, path: &Path, depth: usize) -> Option<Cell> {
        let (mut first, mut below) = self.lists(path.is_metadata());
        for segment in &path.segments()[..depth] {
            (first, below) = self.batch.inside(first, below, segment)?;
        }
        let last = path.rest(depth);
        let node = || find(below, last);
        match self.batch.find(first, last.as_bytes()).map(|id| self.batch.node(id).cell) {
            None => node().map(|node| self.store_base(node)),
            Some(Cell::Gone) => None,
            Some(Cell::Map { first, opaque }) => {
                let node = if opaque { None } else { node() };
                Some(self.store_layers(first, node.map_or(&[][..], BaseNode::children)))
            }
            Some(cell) => Some(cell),
        }
    }

    /// A copy of the value of a field that shares nothing with it: whatever is changed inside one of them, the
    /// other stays as it is. ([`EventMut::copy`] is for a value that goes elsewhere.)
    pub fn duplicate(&mut self, path: &Path) -> Option<Cell> {
        let cell = self.copy(path)?;
        Some(self.duplicate_cell(cell))
    }

    /// The same for a value that is in this batch already, such as an element of a list. Objects inside lists
    /// are never changed, so that lists are shared.
    pub fn duplicate_cell(&mut self, cell: Cell) -> Cell {
        let Cell::Map { first: mut next, .. } = cell else { return cell };
        let mut first = NodeId::NONE;
        while !next.is_none() {
            let node = *self.batch.node(next);
            if node.cell != Cell::Gone {
                let cell = self.duplicate_cell(node.cell);
                first = self.batch.push_node(Node::new(node.key, cell, first));
            }
            next = node.next;
        }
        Cell::Map { first, opaque: true }
    }

    /// Removes all fields but `@timestamp`; `message` stays with `keep_message` if it is the row's own text.
    pub fn clear(&mut self, keep_message: bool) {
        self.settle();
        let row = &mut self.batch.rows[self.row];
        row.own = NodeId::NONE;
        row.flags &= !Row::OFFSET;
        if !keep_message {
            row.flags &= !Row::MESSAGE;
        }
        for node in self.base.nodes() {
            self.prepend(Head::Own, node.key.as_bytes(), Cell::Gone);
        }
    }

    /// All fields but `@timestamp` as one object; the event stays as it is.
    pub fn copy_all(&mut self) -> Cell {
        self.settle();
        let row = *self.row();
        if row.has(Row::OFFSET) {
            self.own_offset();
        }
        let Cell::Map { mut first, opaque } = self.store_layers(self.row().own, self.base.nodes())
        else {
            unreachable!("layers are stored as an object");
        };
        if row.has(Row::MESSAGE) {
            let key = self.batch.push_text(b"message");
            first = self.batch.push_node(Node::new(key, Cell::Str(row.message), first));
        }
        Cell::Map { first, opaque }
    }

    /// The fields of an object of this batch that shows nothing of the base: of one that was copied or stored.
    pub fn object_cells(&self, object: Cell) -> SmallVec<[(Text, Cell); 16]> {
        let mut cells = SmallVec::new();
        if let Cell::Map { first: mut next, .. } = object {
            while !next.is_none() {
                let node = self.batch.node(next);
                if node.cell != Cell::Gone {
                    cells.push((node.key, node.cell));
                }
                next = node.next;
            }
        }
        cells
    }

    /// Stores an object of keys, each once, and values that are in this batch already.
    pub fn store_object(&mut self, fields: &[(Text, Cell)]) -> Cell {
        let mut first = NodeId::NONE;
        for &(key, cell) in fields.iter().rev() {
            first = self.batch.push_node(Node::new(key, cell, first));
        }
        Cell::Map { first, opaque: true }
    }

    /// Sets a field at the top by its key as it is, which may have dots in it.
    pub fn put_key(&mut self, key: &[u8], cell: Cell) {
        self.settle();
        self.note_key(key);
        self.set_in(Head::Own, key, cell);
    }

    fn store_base(&mut self, node: &'a BaseNode) -> Cell {
        match &node.value {
            BaseValue::Leaf(value) => self.store(value),
            BaseValue::Map(children) => self.store_layers(NodeId::NONE, children),
        }
    }

    /// One object out of the event's own fields and the base's.
    fn store_layers(&mut self, own: NodeId, below: &'a [BaseNode]) -> Cell {
        let mut first = NodeId::NONE;
        for node in below {
            let cell = match self.batch.find(own, node.key.as_bytes()) {
                None => self.store_base(node),
                Some(id) => match self.batch.node(id).cell {
                    Cell::Map { first, opaque: false } => self.store_layers(first, node.children()),
                    cell => cell,
                },
            };
            if cell != Cell::Gone {
                let key = self.batch.push_text(node.key.as_bytes());
                first = self.batch.push_node(Node::new(key, cell, first));
            }
        }
        let mut next = own;
        while !next.is_none() {
            let node = *self.batch.node(next);
            let in_base = below
                .binary_search_by(|base| base.key.as_bytes().cmp(self.batch.text(node.key)))
                .is_ok();
            if !in_base && node.cell != Cell::Gone {
                first = self.batch.push_node(Node::new(node.key, node.cell, first));
            }
            next = node.next;
        }
        Cell::Map { first, opaque: true }
    }
}
