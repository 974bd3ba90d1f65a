//! Many fields at once: lists that a parser builds in the order of its text, and putting them into an
//! event without looking for each of them.

use crate::base::{BaseNode, BaseValue, position};
use crate::batch::{Cell, Node, NodeId, Row, Text};
use crate::edit::{EventMut, Head};
use crate::filter::{KeyBit, KeyFilter};

/// The nodes of a batch, to be added to while its bytes are read.
#[derive(Debug)]
pub struct Arena<'a>(pub(crate) &'a mut Vec<Node>);

/// Fields of one object in the order of their text, each key once. Made with [`Arena`].
#[derive(Clone, Copy, Debug)]
pub struct FieldList {
    /// The first field, or nothing.
    pub first: NodeId,
    /// The last field, or nothing.
    pub last: NodeId,
    /// Their keys, and perhaps more.
    pub keys: KeyFilter,
    /// `@timestamp` may be among them.
    pub timestamp: bool,
}

impl FieldList {
    /// No fields.
    pub const EMPTY: Self =
        Self { first: NodeId::NONE, last: NodeId::NONE, keys: KeyFilter::NONE, timestamp: false };

    /// One field.
    pub fn one(field: NodeId) -> Self {
        Self { first: field, last: field, keys: KeyFilter::ANY, timestamp: true }
    }
}

impl Arena<'_> {
    /// In the place of a length for [`Arena::push`]: `"key":` stands in the batch's bytes, from the byte before `key`,
    /// and may be copied. The value is written anew.
    pub const KEY: u32 = Node::KEY;

    /// Adds a field behind `before` (an element of a list if `key` is empty). `raw` is the length of
    /// `"key":value` if it stands in the batch's bytes exactly so, from the byte before `key`: one
    /// member of valid JSON and UTF-8 that means this field and has no line break in it. Else 0.
    #[inline(always)]
    pub fn push(&mut self, before: NodeId, key: Text, cell: Cell, raw: u32) -> NodeId {
        const EMPTY: Node =
            Node { key: Text { start: 0, len: 0 }, cell: Cell::Null, next: NodeId::NONE, raw: 0 };
        let id = NodeId(self.0.len() as u32);
        // Field by field in its place: a node that is made elsewhere and moved here costs a stall of a dozen cycles, as
        // it is written in small pieces and read in large ones.
        self.0.push(EMPTY);
        if let Some(node) = self.0.last_mut() {
            node.key.start = key.start;
            node.key.len = key.len;
            node.cell = cell;
            node.raw = raw;
        }
        if let Some(node) = self.0.get_mut(before.0 as usize) {
            node.next = id;
        }
        id
    }

    /// Sets the value of a field that was added, as [`Arena::push`] would have.
    #[inline]
    pub fn set(&mut self, id: NodeId, cell: Cell, raw: u32) {
        let node = &mut self.0[id.0 as usize];
        node.cell = cell;
        node.raw = raw;
    }

    /// Takes the field behind `before` (the first, if nothing) out of `list`.
    pub fn unlink(&mut self, list: &mut FieldList, before: NodeId) {
        let id = if before.is_none() { list.first } else { self.next(before) };
        let next = self.next(id);
        if before.is_none() {
            list.first = next;
        } else {
            self.0[before.0 as usize].next = next;
        }
        if list.last == id {
            list.last = before;
        }
    }

    /// The field behind another one.
    #[inline]
    pub fn next(&self, id: NodeId) -> NodeId {
        self.0[id.0 as usize].next
    }

    /// The key of a field.
    #[inline]
    pub fn key(&self, id: NodeId) -> Text {
        self.0[id.0 as usize].key
    }

    /// The value of a field.
    #[inline]
    pub fn cell(&self, id: NodeId) -> Cell {
        self.0[id.0 as usize].cell
    }

    /// The name of the node that will be added next.
    #[inline]
    pub fn next_id(&self) -> NodeId {
        NodeId(self.0.len() as u32)
    }

    /// Puts another key and value in the place of a field that was added.
    pub fn replace(&mut self, id: NodeId, key: Text, cell: Cell, raw: u32) {
        let node = &mut self.0[id.0 as usize];
        *node = Node { key, cell, next: node.next, raw };
    }

    /// No field from `len` on may be copied as it stands.
    pub fn forget_raw(&mut self, len: usize) {
        for node in self.0.iter_mut().skip(len) {
            node.forget_raw();
        }
    }

    /// Length of the text that may be copied for a field, as for [`Arena::push`].
    #[inline]
    pub fn raw(&self, id: NodeId) -> u32 {
        self.0[id.0 as usize].raw()
    }

    /// Number of nodes; [`Arena::truncate`] takes back what was added since.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the batch has no node.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes back all nodes from `len` on; nothing may name them any more.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}

impl<'a> EventMut<'a> {
    /// The batch's bytes and its nodes, for a parser that reads the one while it adds to the other.
    pub fn arena(&mut self) -> (&[u8], Arena<'_>) {
        (&self.batch.bytes, Arena(&mut self.batch.nodes))
    }

    /// The text of a span of this batch.
    pub fn text(&self, text: Text) -> &[u8] {
        self.batch.text(text)
    }

    /// Whether a span of this batch is UTF-8.
    #[inline]
    pub fn is_utf8(&self, text: Text) -> bool {
        self.batch.known_utf8(text) || simdutf8::basic::from_utf8(self.batch.text(text)).is_ok()
    }

    /// Number of bytes in the batch: where the next [`EventMut::store_text`] will stand.
    pub fn bytes_len(&self) -> u32 {
        self.batch.bytes.len() as u32
    }

    /// The span of the message, if the event still has one as text of its own.
    #[inline]
    pub fn own_message(&self) -> Option<Text> {
        let row = self.row();
        row.has(Row::MESSAGE).then_some(row.message)
    }

    /// Makes this span the row's own message.
    pub fn set_message(&mut self, message: Text) {
        let row = &mut self.batch.rows[self.row];
        row.message = message;
        row.flags |= Row::MESSAGE;
    }

    /// Takes the row's own message from the event.
    pub fn clear_message(&mut self) {
        self.batch.rows[self.row].flags &= !Row::MESSAGE;
    }

    /// Puts fields into the event. Objects are merged deeply with objects that are there; of everything
    /// else the new value stays if `overwrite`, else what the event had. `@timestamp` is set by a time
    /// only, and only if `overwrite`.
    pub fn merge_list_over(&mut self, fields: FieldList, overwrite: bool) {
        self.settle();
        if self.is_beside(&fields) {
            if !fields.last.is_none() {
                self.batch.nodes[fields.last.0 as usize].next = self.row().own;
                self.batch.rows[self.row].own = fields.first;
            }
            return;
        }
        let mut own = self.own_keys();
        let mut rest = FieldList::EMPTY;
        let mut next = fields.first;
        while !next.is_none() {
            let id = next;
            next = self.batch.node(id).next;
            if self.merge_root(id, &mut own, overwrite) {
                continue;
            }
            if rest.last.is_none() {
                rest.first = id;
            } else if self.batch.node(rest.last).next != id {
                self.batch.nodes[rest.last.0 as usize].next = id;
            }
            rest.last = id;
        }
        if !rest.last.is_none() {
            self.batch.nodes[rest.last.0 as usize].next = self.row().own;
            self.batch.rows[self.row].own = rest.first;
        }
    }

    /// Whether no field has the name of one that the event has, without looking at each: `true` is certain.
    #[inline]
    pub fn is_beside(&self, fields: &FieldList) -> bool {
        let row = self.row();
        if fields.keys.may_share(self.base.filter())
            || (fields.timestamp && fields.keys.may_have(KeyBit::of(b"@timestamp")))
            || (row.has(Row::OFFSET) && fields.keys.may_have(KeyBit::of(b"log")))
            || (row.has(Row::MESSAGE) && fields.keys.may_have(KeyBit::of(b"message")))
        {
            return false;
        }
        if self.has_slots() {
            return false;
        }
        let mut next = row.own;
        while !next.is_none() {
            let node = self.batch.node(next);
            if fields.keys.may_have(KeyBit::of(self.batch.text(node.key))) {
                return false;
            }
            next = node.next;
        }
        true
    }

    /// Merges fields into what is said about the event (`@metadata`), over what is there.
    pub fn merge_metadata_list(&mut self, first: NodeId) {
        let mut next = first;
        while !next.is_none() {
            let id = next;
            let node = *self.batch.node(id);
            next = node.next;
            let below = self.base.metadata();
            let under = position(below, self.batch.text(node.key)).map(|at| &below[at]);
            self.merge_one(Head::Metadata, under, id, true);
        }
    }

    /// The keys of the fields that the event has of its own.
    fn own_keys(&self) -> KeyFilter {
        let mut keys = KeyFilter::NONE;
        let mut next = self.row().own;
        while !next.is_none() {
            let node = self.batch.node(next);
            keys.add(KeyBit::of(self.batch.text(node.key)));
            next = node.next;
        }
        keys
    }

    /// Merges one field where something of its name may be; returns `false` if nothing is. `own_keys` are the keys
    /// of the event's own fields, also of those that come.
    #[inline]
    fn merge_root(&mut self, id: NodeId, own_keys: &mut KeyFilter, overwrite: bool) -> bool {
        let row = self.row();
        let key = self.batch.text(self.batch.node(id).key);
        let of_row = match key {
            b"message" => row.has(Row::MESSAGE),
            b"log" => row.has(Row::OFFSET),
            b"@timestamp" => true,
            _ => false,
        };
        let below = self.base.position(key);
        let bit = KeyBit::of(key);
        let own = if own_keys.may_have(bit) { self.batch.find(row.own, key) } else { None };
        if !of_row && below.is_none() && own.is_none() {
            return false;
        }
        own_keys.add(bit);
        if !of_row || self.merge_row(id, overwrite) {
            self.merge_one(Head::Own, below.map(|at| &self.base.nodes()[at]), id, overwrite);
        }
        true
    }

    /// Merges what is the row's own; returns whether there is more to do.
    fn merge_row(&mut self, id: NodeId, overwrite: bool) -> bool {
        let node = *self.batch.node(id);
        match (self.batch.text(node.key), node.cell) {
            (b"@timestamp", cell) => {
                if let Cell::Time(time) = cell
                    && overwrite
                {
                    self.set_time(time);
                }
                return false;
            }
            (b"message", Cell::Str(text)) if overwrite => {
                self.set_message(text);
                return false;
            }
            (b"message", _) if overwrite => self.clear_message(),
            (b"log", Cell::Map { first, .. }) => {
                self.batch.nodes[id.0 as usize].forget_raw();
                self.merge_offset(first, overwrite);
                return true;
            }
            (b"log", _) if overwrite => self.batch.rows[self.row].flags &= !Row::OFFSET,
            _ => {}
        }
        overwrite
    }

    /// `log.offset` of an object `log` that is about to be merged: the row's own goes or stays.
    fn merge_offset(&mut self, first: NodeId, overwrite: bool) {
        let Some(id) = self.batch.find(first, b"offset") else { return };
        if overwrite {
            self.batch.rows[self.row].flags &= !Row::OFFSET;
        } else {
            self.batch.nodes[id.0 as usize].cell = Cell::Gone;
        }
    }

    /// Merges one field into a list: `below` is what the base has in its place.
    fn merge_one(&mut self, head: Head, below: Option<&'a BaseNode>, id: NodeId, overwrite: bool) {
        let node = *self.batch.node(id);
        if node.cell == Cell::Gone {
            return;
        }
        let first = self.first(head);
        let own =
            if first.is_none() { None } else { self.batch.find(first, self.batch.text(node.key)) };
        let there = match own.map(|own| self.batch.node(own).cell) {
            Some(Cell::Gone) => None,
            Some(cell) => Some(matches!(cell, Cell::Map { .. })),
            None => below.map(|below| matches!(below.value, BaseValue::Map(_))),
        };
        match (there, node.cell) {
            (Some(true), Cell::Map { first, .. }) => {
                self.merge_inside(head, below, node.key, own, first, overwrite);
            }
            (Some(_), _) if !overwrite => {}
            _ => {
                let Some(own) = own else {
                    self.prepend_node(head, node);
                    return;
                };
                // What the event removed or replaced hides the base's, and so does what comes now.
                let hides = below.is_some() || self.batch.node(own).cell == Cell::Gone;
                let cell = match node.cell {
                    Cell::Map { first, .. } => Cell::Map { first, opaque: hides },
                    cell => cell,
                };
                self.replace(own, cell);
            }
        }
    }

    /// Merges an object into one that is there.
    fn merge_inside(
        &mut self,
        head: Head,
        below: Option<&'a BaseNode>,
        key: Text,
        own: Option<NodeId>,
        first: NodeId,
        overwrite: bool,
    ) {
        let (inside, below) = match own {
            Some(own) => {
                self.unraw(own);
                let opaque = matches!(self.batch.node(own).cell, Cell::Map { opaque: true, .. });
                (own, below.filter(|_| !opaque))
            }
            None => {
                let cell = Cell::Map { first: NodeId::NONE, opaque: false };
                (self.prepend_node(head, Node::new(key, cell, NodeId::NONE)), below)
            }
        };
        let below = below.map_or(&[][..], BaseNode::children);
        let mut next = first;
        while !next.is_none() {
            let id = next;
            next = self.batch.node(id).next;
            let under = position(below, self.batch.text(self.batch.node(id).key));
            self.merge_one(Head::Inside(inside), under.map(|at| &below[at]), id, overwrite);
        }
    }
}
