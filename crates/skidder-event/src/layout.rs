//! The nodes of events whose fields were in slots, and the document around their values: both are the same for most
//! events of a source, and made once.

use crate::base::{Base, BaseNode, find};
use crate::batch::{Batch, Cell, Node, NodeId, Row, Text};
use crate::escape::write_string;
use crate::form::{Entry, Form};
use crate::merge::{write_cell, write_int, write_time, write_uint};
use crate::short::{PADDING, copy_padded, write_span};
use crate::time::TimeText;
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
    /// The event has the message of its row.
    pub(crate) message: bool,
}

/// The nodes of an event and its document.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) of: Wanted,
    /// Without values; places count from the first of them, keys from the names of the form.
    nodes: Vec<Node>,
    /// For each of them which of the fields it is; [`NO_FIELD`] for an object around some.
    places: Vec<u8>,
    /// The slots of the fields, in the order in which their values are kept.
    fields: Vec<u8>,
    /// Nothing if the document needs another look at the base, or the event is not complete.
    template: Option<Template>,
}

/// Not a field.
const NO_FIELD: u8 = u8::MAX;

impl Layout {
    /// The layout over a base that is the one of the outputs.
    pub(crate) fn new(form: &Form, base: &Base, of: Wanted) -> Self {
        let mut layout =
            Self { of, nodes: Vec::new(), places: Vec::new(), fields: Vec::new(), template: None };
        layout.add(form.entries());
        let is_beside = base.slots().is_some_and(|known| known.present & of.fields == 0);
        if of.last && is_beside && !layout.nodes.is_empty() {
            layout.template = Some(Template::new(&layout, form.names(), base));
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
            let place = if entry.slot.is_some() { self.fields.len() as u8 } else { NO_FIELD };
            self.places.push(place);
            match entry.slot {
                Some(slot) => self.fields.push(slot),
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

    /// The values of an event, in the order in which they are kept, out of all slots.
    #[inline]
    pub(crate) fn values(&self, slots: &[Cell]) -> impl Iterator<Item = Cell> {
        self.fields.iter().map(|slot| slots[usize::from(*slot)])
    }

    /// How many values are kept of an event.
    pub(crate) fn values_len(&self) -> usize {
        self.fields.len()
    }

    /// Adds the nodes of an event with these values. `names` is where the names of the form stand in the batch. Gives
    /// the first.
    pub(crate) fn add_to(
        &self,
        nodes: &mut Vec<Node>,
        names: u32,
        mut values: impl FnMut(usize) -> Cell,
    ) -> NodeId {
        let from = nodes.len() as u32;
        for (node, &place) in self.nodes.iter().zip(&self.places) {
            let mut node = *node;
            node.key.start += names;
            if !node.next.is_none() {
                node.next.0 += from;
            }
            if place != NO_FIELD {
                node.cell = values(usize::from(place));
            } else if let Cell::Map { first, .. } = &mut node.cell
                && !first.is_none()
            {
                first.0 += from;
            }
            nodes.push(node);
        }
        if self.nodes.is_empty() { NodeId::NONE } else { NodeId(from) }
    }

    /// Appends the members of an event behind its timestamp, each with a leading comma, and the closing brace. `values`
    /// are the values of the row, which has its own offset, and its own message if the layout has one.
    fn write(
        &self,
        out: &mut Vec<u8>,
        (batch, row): (&Batch, &Row),
        values: &[Cell],
        times: &mut TimeText,
    ) {
        let Some(template) = &self.template else { return };
        let mut from = 0;
        for &(end, hole) in &template.holes {
            copy_padded(out, &template.text, from..end as usize);
            from = end as usize;
            match hole {
                Hole::Field(at) => match values[usize::from(at)] {
                    Cell::Str(text) if batch.known_utf8(text) => {
                        write_span(out, &batch.bytes, text.start as usize, text.len as usize);
                    }
                    Cell::Int(number) => write_int(out, number),
                    Cell::Time(time) => write_time(out, time, times),
                    cell => write_cell(out, batch, cell),
                },
                Hole::Offset => write_uint(out, row.offset),
                Hole::Message => {
                    write_string(out, batch.text(row.message), batch.known_utf8(row.message));
                }
            }
        }
        copy_padded(out, &template.text, from..template.text.len() - PADDING);
    }
}

/// The fields of an event of which values are kept instead of nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Laid<'a> {
    layout: &'a Layout,
    values: &'a [Cell],
    /// Where the names of the form stand in the batch.
    names: u32,
}

impl<'a> Laid<'a> {
    /// Where the list of all fields begins.
    pub(crate) const FIRST: NodeId = NodeId(0);

    /// A field as it would be as a node, and whether it is an object around others of this event. Places of other
    /// nodes in it count from the first.
    pub(crate) fn node(&self, id: NodeId) -> (Node, bool) {
        let mut node = self.layout.nodes[id.0 as usize];
        let place = self.layout.places[id.0 as usize];
        node.key.start += self.names;
        if place != NO_FIELD {
            node.cell = self.values[usize::from(place)];
        }
        (node, place == NO_FIELD)
    }
}

impl Batch {
    /// The fields of a row of which values are kept instead of nodes.
    #[inline]
    pub(crate) fn laid(&self, row: &Row) -> Option<Laid<'_>> {
        let layout = self.layouts.get(usize::from(row.layout).wrapping_sub(1))?;
        let from = row.own.0 as usize;
        let values = &self.cells[from..from + layout.values_len()];
        Some(Laid { layout, values, names: self.names })
    }

    /// Appends the members of a row of which values are kept instead of nodes, as [`Layout::write`]; `false` if it has
    /// nodes.
    #[inline]
    pub(crate) fn write_laid(&self, out: &mut Vec<u8>, row: &Row, times: &mut TimeText) -> bool {
        if row.layout == 0 {
            return false;
        }
        let Some(laid) = self.laid(row) else { return false };
        laid.layout.write(out, (self, row), laid.values, times);
        true
    }

    /// Makes nodes of the values of a row.
    #[cold]
    pub(crate) fn make_nodes(&mut self, row: usize) {
        let mut nodes = std::mem::take(&mut self.nodes);
        let laid = self.laid(&self.rows[row]).expect("only asked for a row with a layout");
        let own = laid.layout.add_to(&mut nodes, laid.names, |at| laid.values[at]);
        self.nodes = nodes;
        (self.rows[row].own, self.rows[row].layout) = (own, 0);
    }
}

/// A document, cut at what is another in each event.
#[derive(Debug)]
struct Template {
    /// With [`PADDING`] behind it.
    text: Vec<u8>,
    /// Places to write into the text, in its order.
    holes: Vec<(u32, Hole)>,
}

/// A part to write into a document.
#[derive(Clone, Copy, Debug)]
enum Hole {
    /// One of the values that are kept.
    Field(u8),
    Offset,
    Message,
}

/// A template in the making.
struct Draft<'a> {
    template: Template,
    nodes: &'a [Node],
    places: &'a [u8],
    names: &'a [u8],
    base: &'a Base,
    /// Nothing was written into the object yet.
    empty: bool,
}

impl Template {
    /// The document of an event with these nodes over a base that has none of their fields.
    fn new(layout: &Layout, names: &[u8], base: &Base) -> Self {
        let template = Self { text: Vec::new(), holes: Vec::new() };
        let Layout { nodes, places, .. } = layout;
        let mut draft = Draft { template, nodes, places, names, base, empty: false };
        let first = if nodes.is_empty() { NodeId::NONE } else { NodeId(0) };
        draft.members(base.nodes(), first, "log");
        draft.template.text.extend_from_slice(b",\"log\":{\"offset\":");
        draft.hole(Hole::Offset);
        let log = find(base.nodes(), "log").map_or(&[][..], BaseNode::children);
        let own = draft.find(first, "log");
        draft.members(log, own.map_or(NodeId::NONE, |id| draft.inside(id)), "");
        draft.template.text.push(b'}');
        if layout.of.message {
            draft.template.text.extend_from_slice(b",\"message\":");
            draft.hole(Hole::Message);
        }
        draft.template.text.push(b'}');
        draft.template.text.extend_from_slice(&[0; PADDING]);
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
            self.hole(Hole::Field(self.places[id.0 as usize]));
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
