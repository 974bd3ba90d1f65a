//! Values taken out of one event, to be put elsewhere in it.

use crate::base::{BaseNode, BaseValue, find};
use crate::batch::{Cell, Node, NodeId, Row};
use crate::edit::EventMut;
use crate::path::Path;

impl<'a> EventMut<'a> {
    /// The value of a field as a value of this batch, everything inside included.
    pub fn copy(&mut self, path: &Path) -> Option<Cell> {
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
        if *path.as_str() == *"log" && row.has(Row::OFFSET) {
            self.own_offset();
        }
        let (mut first, mut below) = self.lists(path.is_metadata());
        let (last, parents) = path.segments().split_last()?;
        for segment in parents {
            let node = find(below, segment);
            match self.batch.find(first, segment.as_bytes()).map(|id| self.batch.node(id).cell) {
                None => {
                    first = NodeId::NONE;
                    below = node?.children();
                }
                Some(Cell::Map { first: inner, opaque }) => {
                    first = inner;
                    below = if opaque { &[] } else { node.map_or(&[][..], BaseNode::children) };
                }
                Some(_) => return None,
            }
        }
        let node = find(below, last);
        match self.batch.find(first, last.as_bytes()).map(|id| self.batch.node(id).cell) {
            None => node.map(|node| self.store_base(node)),
            Some(Cell::Gone) => None,
            Some(Cell::Map { first, opaque }) => {
                let below = if opaque { &[] } else { node.map_or(&[][..], BaseNode::children) };
                Some(self.store_layers(first, below))
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
