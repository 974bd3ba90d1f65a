//! Changing one event of a batch: writes and deletes shadow the base, with undo.

use crate::base::{Base, BaseNode, BaseValue, find};
use crate::batch::{Batch, Cell, Mark, Node, NodeId, Row, Text};
use crate::event::{EventRef, ValueRef, own_value};
use crate::path::Path;
use crate::value::Value;
use smallvec::SmallVec;
use std::sync::Arc;

/// Why a change was refused. The event is as it was, but for empty objects on the way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// A part of the path before the last is there and is no object.
    #[error("cannot set `{0}`: a part of it has a value that is no object")]
    NotAnObject(Arc<str>),
    /// `@timestamp` takes only a time.
    #[error("`@timestamp` can only be set to a time")]
    NotATime,
}

/// An event to be changed.
#[derive(Debug)]
pub struct EventMut<'a> {
    pub(crate) batch: &'a mut Batch,
    pub(crate) row: usize,
    pub(crate) base: &'a Base,
}

/// Where a linked list of fields begins.
#[derive(Clone, Copy)]
pub(crate) enum Head {
    Own,
    Metadata,
    Inside(NodeId),
}

impl<'a> EventMut<'a> {
    pub(crate) fn new(batch: &'a mut Batch, row: usize, base: &'a Base) -> Self {
        if batch.rows[row].layout != 0 || batch.rows[row].has(Row::SHARED) {
            batch.own_nodes(row);
        }
        Self { batch, row, base }
    }

    /// The next step sees the event over this base.
    #[inline]
    pub fn set_base(&mut self, base: &'a Base) {
        self.base = base;
    }

    /// The same event, to be read.
    pub fn as_ref(&self) -> EventRef<'_> {
        EventRef::new(self.batch, self.row, self.base)
    }

    /// The event's row.
    pub fn row(&self) -> &Row {
        &self.batch.rows[self.row]
    }

    /// Remembers the event as it is now.
    pub fn mark(&self) -> Mark {
        Mark {
            row: *self.row(),
            nodes: self.batch.nodes.len() as u32,
            journal: self.batch.journal.len() as u32,
            bytes: self.batch.bytes.len() as u32,
            slots: self.batch.slots.mark(),
        }
    }

    /// Takes the event back to `mark`, which must be the newest one not yet rolled back, of the same
    /// event, with no other event changed since.
    pub fn rollback(&mut self, mark: Mark) {
        while self.batch.journal.len() > mark.journal as usize {
            if let Some((id, before)) = self.batch.journal.pop() {
                self.batch.nodes[id.0 as usize] = before;
            }
        }
        self.batch.nodes.truncate(mark.nodes as usize);
        self.batch.cut_bytes(mark.bytes);
        self.batch.rows[self.row] = mark.row;
        self.batch.slots.rollback(mark.slots);
    }

    /// Drops the event; it is still there until [`Batch::remove_dropped`].
    pub fn set_dropped(&mut self) {
        self.batch.rows[self.row].flags |= Row::DROPPED;
    }

    /// Sets `@timestamp`.
    pub fn set_time(&mut self, nanoseconds: i64) {
        self.batch.rows[self.row].time = nanoseconds;
    }

    /// Stores text in the batch for use in a [`Cell::Str`].
    pub fn store_text(&mut self, text: &[u8]) -> Text {
        self.batch.push_text(text)
    }

    /// Stores a text that `write` makes of the event, in room that is kept from one to the next.
    ///
    /// # Errors
    /// Those of `write`; nothing is stored then.
    pub fn store_with<E>(
        &mut self,
        write: impl FnOnce(EventRef<'_>, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Text, E> {
        let mut text = std::mem::take(&mut self.batch.decoded);
        text.clear();
        let stored = write(self.as_ref(), &mut text).map(|()| self.batch.push_text(&text));
        self.batch.decoded = text;
        stored
    }

    /// Sets a field to a value, replacing what was there.
    pub fn put(&mut self, path: &Path, value: &Value) -> Result<(), EditError> {
        let cell = self.store(value);
        self.put_cell(path, cell)
    }

    /// Sets a field to text.
    #[inline]
    pub fn put_text(&mut self, path: &Path, text: &[u8]) -> Result<(), EditError> {
        let text = self.batch.push_text(text);
        self.put_cell(path, Cell::Str(text))
    }

    /// Sets a field to a value that is stored in this batch.
    #[inline(always)]
    pub fn put_cell(&mut self, path: &Path, cell: Cell) -> Result<(), EditError> {
        match self.slot_to_set(path) {
            Some(slot) => {
                self.batch.slots.set(slot, cell);
                Ok(())
            }
            None => self.put_anywhere(path, cell),
        }
    }

    /// The same wherever the field is.
    #[inline(never)]
    fn put_anywhere(&mut self, path: &Path, cell: Cell) -> Result<(), EditError> {
        if path.is_timestamp() {
            let Cell::Time(time) = cell else { return Err(EditError::NotATime) };
            self.set_time(time);
            return Ok(());
        }
        match self.slot_of(path) {
            Some(slot) if self.set_slot(slot, cell) => Ok(()),
            Some(_) => Err(EditError::NotAnObject(path.shared())),
            None => self.put_node(path, cell),
        }
    }

    /// The same for a field without a slot.
    fn put_node(&mut self, path: &Path, cell: Cell) -> Result<(), EditError> {
        if let Some(depth) = self.as_ref().key_with_dots(path) {
            return self.set_at(path, depth, cell);
        }
        let row = &mut self.batch.rows[self.row];
        if path.is_message() {
            if let Cell::Str(text) = cell
                && row.has(Row::MESSAGE)
            {
                row.message = text;
                return Ok(());
            }
            row.flags &= !Row::MESSAGE;
        } else if path.is_log_offset() || path.is_log() {
            row.flags &= !Row::OFFSET;
        }
        if !path.is_metadata() {
            self.settle();
        }
        self.set_at(path, path.segments().len() - 1, cell)
    }

    /// Sets the field of which the parts from `depth` on are the key.
    fn set_at(&mut self, path: &Path, depth: usize, cell: Cell) -> Result<(), EditError> {
        let (head, _) = self.parent(path, depth)?;
        if depth + 1 < path.segments().len() || path.is_of_keys() {
            self.note_dots();
        }
        self.set_in(head, path.rest(depth).as_bytes(), cell);
        Ok(())
    }

    /// Removes a field; returns whether there was one. `@timestamp` cannot be removed.
    pub fn delete(&mut self, path: &Path) -> bool {
        if let Some((slot, known)) = self.as_ref().slot_of(path) {
            let there = self.as_ref().has_slot(slot, known);
            // What is there has nothing in its way.
            return there && self.set_slot(slot, Cell::Gone);
        }
        if path.is_timestamp() || !self.as_ref().has(path) {
            return false;
        }
        self.settle_for(path);
        if let Some(depth) = self.as_ref().key_with_dots(path) {
            return self.set_at(path, depth, Cell::Gone).is_ok();
        }
        let row = &mut self.batch.rows[self.row];
        if path.is_message() && row.has(Row::MESSAGE) {
            row.flags &= !Row::MESSAGE;
            return true;
        }
        if path.is_log_offset() && row.has(Row::OFFSET) {
            row.flags &= !Row::OFFSET;
            return true;
        }
        if path.is_log() {
            row.flags &= !Row::OFFSET;
        }
        self.set_at(path, path.segments().len() - 1, Cell::Gone).is_ok()
    }

    /// Removes a field and gives its value, everything inside included.
    #[inline]
    pub fn take(&mut self, path: &Path) -> Option<Cell> {
        if let Some((slot, cell)) = self.plain_slot(path) {
            // What is there has nothing in its way.
            self.batch.slots.set(slot, Cell::Gone);
            return Some(cell).filter(|cell| *cell != Cell::Gone);
        }
        let cell = self.copy(path)?;
        self.delete(path);
        Some(cell)
    }

    /// Stores an owned value in the batch.
    pub fn store(&mut self, value: &Value) -> Cell {
        match value {
            Value::Null => Cell::Null,
            Value::Bool(truth) => Cell::Bool(*truth),
            Value::Int(number) => Cell::Int(*number),
            Value::UInt(number) => Cell::UInt(*number),
            Value::Float(number) => Cell::Float(*number),
            Value::Str(text) => Cell::Str(self.batch.push_text(text.as_bytes())),
            Value::Time(time) => Cell::Time(*time),
            Value::List(items) => self.store_items(items),
            Value::Map(map) => {
                let mut first = NodeId::NONE;
                for (key, item) in map.iter() {
                    self.note_key(key.as_bytes());
                    let cell = self.store(item);
                    let key = self.batch.push_text(key.as_bytes());
                    first = self.batch.push_node(Node::new(key, cell, first));
                }
                Cell::Map { first, opaque: true }
            }
        }
    }

    /// Stores a list of owned values.
    pub fn store_items(&mut self, items: &[Value]) -> Cell {
        let mut first = NodeId::NONE;
        for item in items.iter().rev() {
            let cell = self.store(item);
            first = self.batch.push_node(Node::new(Text::default(), cell, first));
        }
        Cell::List(first)
    }

    /// Stores a list of values that are in this batch already.
    pub fn store_list(&mut self, cells: &[Cell]) -> Cell {
        let mut first = NodeId::NONE;
        for &cell in cells.iter().rev() {
            first = self.batch.push_node(Node::new(Text::default(), cell, first));
        }
        Cell::List(first)
    }

    /// The elements of a list of this batch.
    pub fn list_cells(&self, list: Cell) -> SmallVec<[Cell; 16]> {
        let mut cells = SmallVec::new();
        if let Cell::List(mut next) = list {
            while !next.is_none() {
                let node = self.batch.node(next);
                cells.push(node.cell);
                next = node.next;
            }
        }
        cells
    }

    /// A value of this batch, to be looked at. `None` if it says that a field is removed.
    pub fn view(&self, cell: Cell) -> Option<ValueRef<'_>> {
        own_value(self.batch, cell, None)
    }

    pub(crate) fn lists(&self, metadata: bool) -> (NodeId, &'a [BaseNode]) {
        let row = self.row();
        if metadata { (row.metadata, self.base.metadata()) } else { (row.own, self.base.nodes()) }
    }

    /// Turns the row's offset into an ordinary field.
    pub(crate) fn own_offset(&mut self) {
        self.settle();
        let row = &mut self.batch.rows[self.row];
        row.flags &= !Row::OFFSET;
        let cell = Cell::UInt(row.offset);
        let log = find(self.base.nodes(), "log");
        let head = self.object_in(Head::Own, b"log", || log).map(|(head, _)| head);
        if let Some(head) = head {
            self.set_in(head, b"offset", cell);
        }
    }

    /// The list that holds what is behind the first `depth` parts of a path; objects on the way are made.
    fn parent(
        &mut self,
        path: &Path,
        depth: usize,
    ) -> Result<(Head, Option<&'a [BaseNode]>), EditError> {
        let not_an_object = || EditError::NotAnObject(path.shared());
        let (mut head, mut below) = if path.is_metadata() {
            (Head::Metadata, Some(self.base.metadata()))
        } else {
            (Head::Own, Some(self.base.nodes()))
        };
        let parents = &path.segments()[..depth];
        if !path.is_metadata() && !parents.is_empty() {
            let row = self.row();
            let over_message = *parents[0] == *"message" && row.has(Row::MESSAGE);
            let over_offset = parents.len() > 1
                && *parents[0] == *"log"
                && *parents[1] == *"offset"
                && row.has(Row::OFFSET);
            if over_message || over_offset || *parents[0] == *"@timestamp" {
                return Err(not_an_object());
            }
        }
        for segment in parents {
            let node = || below.and_then(|below| find(below, segment));
            (head, below) =
                self.object_in(head, segment.as_bytes(), node).ok_or_else(not_an_object)?;
        }
        Ok((head, below))
    }

    /// The object `key` of a list, made if it is missing; `None` if something else is there. `below` gives
    /// what the base has of this name.
    pub(crate) fn object_in(
        &mut self,
        head: Head,
        key: &[u8],
        below: impl FnOnce() -> Option<&'a BaseNode>,
    ) -> Option<(Head, Option<&'a [BaseNode]>)> {
        self.object_from(self.first(head), head, key, below)
    }

    /// The same where the key can only be in the part of the list that begins at `start`.
    pub(crate) fn object_from(
        &mut self,
        start: NodeId,
        head: Head,
        key: &[u8],
        below: impl FnOnce() -> Option<&'a BaseNode>,
    ) -> Option<(Head, Option<&'a [BaseNode]>)> {
        match self.batch.find(start, key) {
            Some(id) => match self.batch.node(id).cell {
                Cell::Map { opaque, .. } => {
                    self.unraw(id);
                    // What is hidden need not be looked for.
                    let below = if opaque { None } else { below() };
                    let children = below.map(BaseNode::children);
                    Some((Head::Inside(id), children))
                }
                Cell::Gone => {
                    self.replace(id, Cell::Map { first: NodeId::NONE, opaque: true });
                    Some((Head::Inside(id), None))
                }
                _ => None,
            },
            None => {
                let below = below();
                if let Some(node) = below
                    && matches!(node.value, BaseValue::Leaf(_))
                {
                    return None;
                }
                let cell = Cell::Map { first: NodeId::NONE, opaque: false };
                let id = self.prepend(head, key, cell);
                Some((Head::Inside(id), below.map(BaseNode::children)))
            }
        }
    }

    pub(crate) fn first(&self, head: Head) -> NodeId {
        match head {
            Head::Own => self.row().own,
            Head::Metadata => self.row().metadata,
            Head::Inside(id) => match self.batch.node(id).cell {
                Cell::Map { first, .. } => first,
                _ => NodeId::NONE,
            },
        }
    }

    pub(crate) fn set_in(&mut self, head: Head, key: &[u8], cell: Cell) {
        self.set_from(self.first(head), head, key, cell);
    }

    /// The same where the key can only be in the part of the list that begins at `start`.
    pub(crate) fn set_from(&mut self, start: NodeId, head: Head, key: &[u8], cell: Cell) {
        match self.batch.find(start, key) {
            Some(id) => self.replace(id, cell),
            None => {
                self.prepend(head, key, cell);
            }
        }
    }

    pub(crate) fn prepend(&mut self, head: Head, key: &[u8], cell: Cell) -> NodeId {
        let key = self.batch.push_text(key);
        self.prepend_node(head, Node::new(key, cell, NodeId::NONE))
    }

    /// Puts a node at the front of a list.
    pub(crate) fn prepend_node(&mut self, head: Head, node: Node) -> NodeId {
        let next = self.first(head);
        let id = self.batch.push_node(Node { next, ..node });
        match head {
            Head::Own => self.batch.rows[self.row].own = id,
            Head::Metadata => self.batch.rows[self.row].metadata = id,
            Head::Inside(parent) => {
                if let Cell::Map { opaque, .. } = self.batch.node(parent).cell {
                    self.replace(parent, Cell::Map { first: id, opaque });
                }
            }
        }
        id
    }

    pub(crate) fn replace(&mut self, id: NodeId, cell: Cell) {
        let before = *self.batch.node(id);
        self.batch.journal.push((id, before));
        let node = &mut self.batch.nodes[id.0 as usize];
        node.cell = cell;
        node.forget_raw();
    }

    /// What is inside this object is about to change: its text is not it any more.
    pub(crate) fn unraw(&mut self, id: NodeId) {
        if self.batch.node(id).raw() > 0 {
            let before = *self.batch.node(id);
            self.batch.journal.push((id, before));
            self.batch.nodes[id.0 as usize].raw = 0;
        }
    }
}
