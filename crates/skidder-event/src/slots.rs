//! An event whose fields are in slots: reading, writing, and making nodes of them.
//!
//! The processors know nothing of it. [`crate::Batch::begin_slots`] begins with an event that has no fields of its own;
//! whatever is not done by the number of a field makes nodes of all slots first ([`EventMut::settle`]).

use crate::base::{Base, BaseNode};
use crate::batch::{Batch, Cell, Node, NodeId, Row, Text};
use crate::edit::EventMut;
use crate::event::{EventRef, MapRef, ValueRef};
use crate::form::{Entry, Form, base_node};
use crate::path::Path;
use smallvec::SmallVec;
use std::sync::Arc;

/// No row.
const NO_ROW: u32 = u32::MAX;

/// The slots of the event that a list runs on.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Nothing as long as no list runs that has one.
    form: Option<Arc<Form>>,
    /// Where its names stand in the batch.
    names: u32,
    /// The row whose fields are in slots, and not in nodes.
    live: u32,
    /// Those that were written.
    touched: u64,
    cells: Vec<Cell>,
    /// Slots as they were before a change, and whether they were written, for [`EventMut::rollback`].
    journal: Vec<(u8, bool, Cell)>,
    last: Layout,
}

/// The nodes of an event as they are made of its slots. The next event mostly has the same fields.
#[derive(Debug)]
struct Layout {
    /// The slots that were written, and those of them that get nodes.
    of: (u64, u64),
    /// Without values; their places count from the first of them.
    nodes: Vec<Node>,
    /// Which of them are fields, with their slots.
    fields: Vec<(u32, u8)>,
}

/// A point in the history of the slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotsMark {
    live: u32,
    journal: u32,
}

impl Slots {
    pub(crate) const EMPTY: Self = Self {
        form: None,
        names: 0,
        live: NO_ROW,
        touched: 0,
        cells: Vec::new(),
        journal: Vec::new(),
        last: Layout::EMPTY,
    };

    #[inline]
    pub(crate) fn is_live(&self, row: usize) -> bool {
        self.live == row as u32
    }

    /// The slot of a path.
    #[inline]
    fn slot(&self, path: &Path) -> Option<usize> {
        self.form.as_ref()?.slot(path)
    }

    /// What was written to a slot; nothing if it was not.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<Cell> {
        if self.touched >> slot & 1 == 0 { None } else { Some(self.cells[slot]) }
    }

    #[inline]
    fn set(&mut self, slot: usize, cell: Cell) {
        let was = self.touched >> slot & 1 == 1;
        let place = &mut self.cells[slot];
        self.journal.push((slot as u8, was, *place));
        *place = cell;
        self.touched |= 1 << slot;
    }

    pub(crate) fn mark(&self) -> SlotsMark {
        SlotsMark { live: self.live, journal: self.journal.len() as u32 }
    }

    pub(crate) fn rollback(&mut self, mark: SlotsMark) {
        while self.journal.len() > mark.journal as usize {
            if let Some((slot, was, cell)) = self.journal.pop() {
                self.cells[usize::from(slot)] = cell;
                self.touched = self.touched & !(1 << slot) | u64::from(was) << slot;
            }
        }
        self.live = mark.live;
    }

    /// Adds the nodes of the fields of `wanted`, and of the objects around all that were written. Gives the first.
    fn add_to(&mut self, nodes: &mut Vec<Node>, wanted: u64) -> NodeId {
        let Some(form) = &self.form else { return NodeId::NONE };
        let from = nodes.len();
        let last = &mut self.last;
        if last.of == (self.touched, wanted) {
            nodes.extend_from_slice(&last.nodes);
        } else {
            *last = Layout { of: (self.touched, wanted), ..Layout::EMPTY };
            last.add(form.entries(), self.names);
            nodes.extend_from_slice(&last.nodes);
        }
        let added = &mut nodes[from..];
        for node in &mut *added {
            // Places count from the first of them.
            if !node.next.is_none() {
                node.next.0 += from as u32;
            }
            if let Cell::Map { first, .. } = &mut node.cell
                && !first.is_none()
            {
                first.0 += from as u32;
            }
        }
        for &(at, slot) in &last.fields {
            added[at as usize].cell = self.cells[usize::from(slot)];
        }
        if added.is_empty() { NodeId::NONE } else { NodeId(from as u32) }
    }
}

impl Layout {
    const EMPTY: Self = Self { of: (0, 0), nodes: Vec::new(), fields: Vec::new() };

    /// Adds the nodes of these entries.
    fn add(&mut self, entries: &[Entry], names: u32) -> NodeId {
        let (mut first, mut last) = (NodeId::NONE, NodeId::NONE);
        let (touched, wanted) = self.of;
        let mut at = 0;
        while let Some(entry) = entries.get(at) {
            let inside = &entries[at + 1..at + 1 + entry.inside];
            at += 1 + entry.inside;
            let among = if entry.slot.is_some() { wanted } else { touched };
            if entry.slots & among == 0 {
                continue;
            }
            let key = Text { start: names + entry.key.start, len: entry.key.len };
            let id = NodeId(self.nodes.len() as u32);
            let node = Node { key, cell: Cell::Null, next: NodeId::NONE, raw: entry.raw };
            self.nodes.push(node);
            match entry.slot {
                Some(slot) => self.fields.push((id.0, slot)),
                None => {
                    let first = self.add(inside, names);
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
}

impl Batch {
    /// The fields that the list which runs now works on; its steps have bases that know it ([`Base::know`]).
    pub fn set_form(&mut self, form: &Arc<Form>) {
        let names = self.push_text(form.names());
        self.slots = Slots {
            form: Some(Arc::clone(form)),
            names: names.start,
            cells: vec![Cell::Gone; form.paths().len()],
            ..Slots::EMPTY
        };
    }

    /// Keeps the fields of an event in slots from now on, if it has none of its own yet and there is a form.
    #[inline]
    pub fn begin_slots(&mut self, row: usize) {
        let slots = &mut self.slots;
        slots.touched = 0;
        slots.journal.clear();
        slots.live = NO_ROW;
        if slots.form.is_some() && self.rows[row].own.is_none() {
            slots.live = row as u32;
        }
    }

    /// Makes nodes of the fields of an event that are still in slots: no step runs on it any more. What was removed
    /// and is not in the batch's base needs no node.
    #[inline]
    pub fn end_slots(&mut self, row: usize) {
        if !self.slots.is_live(row) {
            return;
        }
        let Some(known) = self.base().slots().copied() else {
            self.settle(row, self.slots.touched);
            return;
        };
        let mut wanted = self.slots.touched;
        let mut left = wanted & !known.present;
        while left != 0 {
            let slot = left.trailing_zeros();
            left &= left - 1;
            if self.slots.cells[slot as usize] == Cell::Gone {
                wanted &= !(1 << slot);
            }
        }
        self.settle(row, wanted);
    }

    /// Makes nodes of the fields of an event that are in slots: the next step does not know them by number.
    #[inline]
    pub fn settle_slots(&mut self, row: usize) {
        if self.slots.is_live(row) {
            self.settle(row, self.slots.touched);
        }
    }

    fn settle(&mut self, row: usize, wanted: u64) {
        self.rows[row].own = self.slots.add_to(&mut self.nodes, wanted);
        self.slots.live = NO_ROW;
    }
}

impl<'a> EventMut<'a> {
    /// Whether fields are in slots, where they are found by their number.
    #[inline]
    pub fn has_slots(&self) -> bool {
        self.batch.slots.is_live(self.row)
    }

    /// Makes nodes of all fields that are in slots.
    #[inline]
    pub fn settle(&mut self) {
        if self.batch.slots.is_live(self.row) {
            self.batch.settle(self.row, self.batch.slots.touched);
        }
    }

    /// The slot of a field. If it has none, nodes were made of all, unless it is of the row itself.
    #[inline]
    pub(crate) fn slot_of(&mut self, path: &Path) -> Option<usize> {
        if !self.batch.slots.is_live(self.row) {
            return None;
        }
        if path.is_plain() && self.base.slots().is_some() {
            let slot = self.batch.slots.slot(path);
            if slot.is_some() {
                return slot;
            }
        }
        self.settle_for(path);
        None
    }

    #[cold]
    fn settle_for(&mut self, path: &Path) {
        let row = self.row();
        let of_row = (path.is_message() && row.has(Row::MESSAGE))
            || (path.is_log_offset() && row.has(Row::OFFSET));
        if !of_row && !path.is_metadata() {
            self.settle();
        }
    }

    /// Sets several fields, which are values of this batch, if all have slots, none of them is there and nothing is in
    /// their way. Else `false`, and nothing happened.
    pub fn put_new(&mut self, paths: &[Option<Path>], cells: &[Cell]) -> bool {
        let Some(known) = self.base.slots().filter(|_| self.has_slots()) else { return false };
        let slots = &mut self.batch.slots;
        let mut places: SmallVec<[u8; 32]> = SmallVec::new();
        let taken = slots.touched | known.present | known.blocked;
        for path in paths {
            match path.as_ref().filter(|path| path.is_plain()).and_then(|path| slots.slot(path)) {
                Some(slot) if taken >> slot & 1 == 0 => places.push(slot as u8),
                _ => return false,
            }
        }
        for (&slot, &cell) in places.iter().zip(cells) {
            slots.set(usize::from(slot), cell);
        }
        true
    }

    /// Makes nodes of all fields unless this one has a slot: for one that is looked at and was not named before.
    pub fn prepare(&mut self, path: &Path) {
        self.slot_of(path);
    }

    /// Sets a field in its slot; `false` if something that is no object is around it.
    #[inline]
    pub(crate) fn set_slot(&mut self, slot: usize, cell: Cell) -> bool {
        let blocked = self.base.slots().is_some_and(|known| known.blocked >> slot & 1 == 1);
        if !blocked {
            self.batch.slots.set(slot, cell);
        }
        !blocked
    }
}

impl<'a> EventRef<'a> {
    /// The slots that were written, if fields are in slots.
    #[inline]
    pub fn touched_slots(&self) -> Option<u64> {
        self.batch.slots.is_live(self.row).then_some(self.batch.slots.touched)
    }

    /// What was written to the slot of a field, and whether the base has something there. Nothing if it has no slot.
    #[inline]
    pub(crate) fn in_slot(&self, path: &Path) -> Option<(Option<Cell>, bool)> {
        let slots = &self.batch.slots;
        let slot = slots.slot(path)?;
        let present = self.base.slots().is_none_or(|known| known.present >> slot & 1 == 1);
        Some((slots.get(slot), present))
    }

    /// The value of a field that has no slot and is inside one that was written.
    ///
    /// An object around several slots is never looked at: the steps that do so come behind [`Batch::settle_slots`].
    #[cold]
    #[expect(clippy::option_option, reason = "whether it is inside one, and whether it is there")]
    pub(crate) fn inside_slot(&self, path: &Path) -> Option<Option<ValueRef<'a>>> {
        let slots = &self.batch.slots;
        let mut paths = slots.form.as_ref()?.paths().iter().enumerate();
        let (slot, around) = paths.find(|(_, own)| own.overlaps(path))?;
        let rest = path.segments().get(around.segments().len()..).unwrap_or_default();
        debug_assert!(!rest.is_empty(), "`{path}` is looked at by a step that does not say so");
        let Cell::Map { first, opaque } = slots.get(slot)? else { return Some(None) };
        let below = if opaque { None } else { base_node(self.base, around) };
        let (last, parents) = rest.split_last()?;
        let (mut own, mut below) = (first, below.map_or(&[][..], BaseNode::children));
        for segment in parents {
            match self.batch.inside(own, below, segment) {
                Some(found) => (own, below) = found,
                None => return Some(None),
            }
        }
        Some(MapRef::of(self.batch, own, below).get(last))
    }

    /// Whether a top-level field has a slot that was written.
    pub(crate) fn has_own_slot(&self, key: &str) -> bool {
        let slots = &self.batch.slots;
        slots.form.as_ref().is_some_and(|form| form.slots_below(key) & slots.touched != 0)
    }
}

impl Base {
    /// Looks once for the fields of a form; only the first form that it is asked for counts.
    pub fn know(&self, form: &Form) {
        self.know_slots(|| form.look_at(self));
    }
}
