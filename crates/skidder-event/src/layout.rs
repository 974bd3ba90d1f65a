//! The nodes of events whose fields were in slots, and the document around their values: both are the same for most
//! events of a source, and made once.

use crate::base::{Base, BaseNode, find};
use crate::batch::{Batch, Cell, Node, NodeId, Row, Text};
use crate::escape::write_string;
use crate::form::{Entry, Form};
use crate::merge::{write_cell, write_uint};
use std::sync::Arc;

/// Most layouts that a base or a batch remembers.
pub(crate) const LAYOUTS_MAX: usize = 64;

/// Which nodes an event gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The slots that were written: objects around them are there.
    pub(crate) touched: u64,
    /// Those of them that get a node.
    pub(crate) fields: u64,
    /// No step runs on the event any more.
    pub(crate) last: bool,
}

/// The nodes of an event and its document.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) of: Wanted,
    /// Without values; places count from the first of them, keys from the names of the form.
    nodes: Vec<Node>,
    /// Which of them are fields, with their slots.
    fields: Vec<(u32, u8)>,
    /// Nothing if the document needs another look at the base, or the event is not complete.
    template: Option<Template>,
}

impl Layout {
    /// The layout over a base that is the one of the outputs.
    pub(crate) fn new(form: &Form, base: &Base, of: Wanted) -> Self {
        let mut layout = Self { of, nodes: Vec::new(), fields: Vec::new(), template: None };
        layout.add(form.entries());
        let is_beside = base.slots().is_some_and(|known| known.present & of.fields == 0);
        if of.last && is_beside && !layout.nodes.is_empty() {
            layout.template = Some(Template::new(&layout.nodes, form.names(), base));
        }
        layout
    }

    /// Whether events of it can be written by [`Layout::write`].
    pub(crate) fn has_document(&self) -> bool {
        self.template.is_some()
    }

    /// Adds the nodes of these entries.
    fn add(&mut self, entries: &[Entry]) -> NodeId {
        let (mut first, mut last) = (NodeId::NONE, NodeId::NONE);
        let mut at = 0;
        while let Some(entry) = entries.get(at) {
            let inside = &entries[at + 1..at + 1 + entry.inside];
            at += 1 + entry.inside;
            let among = if entry.slot.is_some() { self.of.fields } else { self.of.touched };
            if entry.slots & among == 0 {
                continue;
            }
            let id = NodeId(self.nodes.len() as u32);
            let (key, raw) = (entry.key, entry.raw);
            self.nodes.push(Node { key, cell: Cell::Null, next: NodeId::NONE, raw });
            match entry.slot {
                Some(slot) => self.fields.push((id.0, slot)),
                None => {
                    let first = self.add(inside);
                    self.nodes[id.0 as usize].cell = Cell::Map { first, opaque: false };
                }
            }
            if last.is_none() {
                first = id;
            } else {
                self.nodes[last.0 as usize].next = id;
            }
            last = id;
        }
        first
    }

    /// Adds the nodes of an event with these values. `names` is where the names of the form stand in the batch. Gives
    /// the first.
    pub(crate) fn add_to(&self, nodes: &mut Vec<Node>, names: u32, cells: &[Cell]) -> NodeId {
        let from = nodes.len();
        nodes.extend_from_slice(&self.nodes);
        let added = &mut nodes[from..];
        for node in &mut *added {
            node.key.start += names;
            if !node.next.is_none() {
                node.next.0 += from as u32;
            }
            if let Cell::Map { first, .. } = &mut node.cell
                && !first.is_none()
            {
                first.0 += from as u32;
            }
        }
        for &(at, slot) in &self.fields {
            added[at as usize].cell = cells[usize::from(slot)];
        }
        if added.is_empty() { NodeId::NONE } else { NodeId(from as u32) }
    }

    /// Appends the members of an event behind its timestamp, each with a leading comma, and the closing brace. The row
    /// has its own message and offset, and its nodes are as they were added.
    pub(crate) fn write(&self, out: &mut Vec<u8>, batch: &Batch, row: &Row) {
        let Some(template) = &self.template else { return };
        let nodes = batch.nodes.get(row.own.0 as usize..).unwrap_or_default();
        let mut from = 0;
        for &(end, hole) in &template.holes {
            out.extend_from_slice(&template.text[from..end as usize]);
            from = end as usize;
            match hole {
                Hole::Field(at) => write_cell(out, batch, nodes[at as usize].cell),
                Hole::Offset => write_uint(out, row.offset),
                Hole::Message => {
                    write_string(out, batch.text(row.message), batch.known_utf8(row.message));
                }
            }
        }
        out.extend_from_slice(&template.text[from..]);
    }
}

/// A document, cut at what is another in each event.
#[derive(Debug)]
struct Template {
    text: Vec<u8>,
    /// Where something is to be written into the text, in its order.
    holes: Vec<(u32, Hole)>,
}

/// What is written into a document.
#[derive(Clone, Copy, Debug)]
enum Hole {
    /// The value of a node, which is counted from the first of the event.
    Field(u32),
    Offset,
    Message,
}

/// A template in the making.
struct Draft<'a> {
    template: Template,
    nodes: &'a [Node],
    names: &'a [u8],
    base: &'a Base,
    /// Nothing was written into the object yet.
    empty: bool,
}

impl Template {
    /// The document of an event with these nodes over a base that has none of their fields.
    fn new(nodes: &[Node], names: &[u8], base: &Base) -> Self {
        let template = Self { text: Vec::new(), holes: Vec::new() };
        let mut draft = Draft { template, nodes, names, base, empty: false };
        let first = if nodes.is_empty() { NodeId::NONE } else { NodeId(0) };
        draft.members(base.nodes(), first, "log");
        draft.template.text.extend_from_slice(b",\"log\":{\"offset\":");
        draft.hole(Hole::Offset);
        let log = find(base.nodes(), "log").map_or(&[][..], BaseNode::children);
        let own = draft.find(first, "log");
        draft.members(log, own.map_or(NodeId::NONE, |id| draft.inside(id)), "");
        draft.template.text.extend_from_slice(b"},\"message\":");
        draft.hole(Hole::Message);
        draft.template.text.push(b'}');
        draft.template
    }
}

impl Draft<'_> {
    fn key(&self, key: Text) -> &[u8] {
        &self.names[key.start as usize..(key.start + key.len) as usize]
    }

    fn find(&self, mut next: NodeId, key: &str) -> Option<NodeId> {
        while let Some(node) = self.nodes.get(next.0 as usize) {
            if self.key(node.key) == key.as_bytes() {
                return Some(next);
            }
            next = node.next;
        }
        None
    }

    /// The first field in an object.
    fn inside(&self, id: NodeId) -> NodeId {
        match self.nodes[id.0 as usize].cell {
            Cell::Map { first, .. } => first,
            _ => NodeId::NONE,
        }
    }

    fn hole(&mut self, hole: Hole) {
        self.template.holes.push((self.template.text.len() as u32, hole));
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.empty) {
            self.template.text.push(b',');
        }
    }

    /// The members of an object of the base with those of the event, but for `skip`.
    fn members(&mut self, below: &[BaseNode], first: NodeId, skip: &str) {
        for node in below.iter().filter(|node| *node.key != *skip) {
            match self.find(first, &node.key) {
                Some(id) => self.member(id, node.children()),
                None => {
                    self.separate();
                    self.template.text.extend_from_slice(self.base.rendered(node));
                }
            }
        }
        let mut next = first;
        while let Some(node) = self.nodes.get(next.0 as usize) {
            let key = self.key(node.key);
            let is_over = below.iter().any(|below| below.key.as_bytes() == key);
            if !is_over && key != skip.as_bytes() {
                self.member(next, &[]);
            }
            next = node.next;
        }
    }

    fn member(&mut self, id: NodeId, below: &[BaseNode]) {
        self.separate();
        let node = self.nodes[id.0 as usize];
        let names = self.names;
        let key = &names[node.key.start as usize..(node.key.start + node.key.len) as usize];
        write_string(&mut self.template.text, key, true);
        self.template.text.push(b':');
        let Cell::Map { first, .. } = node.cell else {
            self.hole(Hole::Field(id.0));
            return;
        };
        self.template.text.push(b'{');
        self.empty = true;
        self.members(below, first, "");
        self.empty = false;
        self.template.text.push(b'}');
    }
}

impl Base {
    /// The layout of events over this base, which is the one of the outputs.
    #[cold]
    pub(crate) fn layout(&self, form: &Form, of: Wanted) -> Arc<Layout> {
        let mut known = self.layouts();
        if let Some(layout) = known.iter().find(|layout| layout.of == of) {
            return Arc::clone(layout);
        }
        let layout = Arc::new(Layout::new(form, self, of));
        if known.len() < LAYOUTS_MAX {
            known.push(Arc::clone(&layout));
        }
        layout
    }
}
