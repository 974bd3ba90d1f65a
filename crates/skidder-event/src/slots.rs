//! An event whose fields are in slots: reading, writing, and making nodes of them.
//!
//! The processors know nothing of it. [`EventMut::begin_slots`] begins with an event that has no fields of its own;
//! whatever is not done by the number of a field makes nodes of all slots first ([`EventMut::settle`]).

use crate::base::{Base, BaseNode};
use crate::batch::{Batch, Cell, NodeId, Row, Text};
use crate::edit::EventMut;
use crate::event::{EventRef, MapRef, ValueRef, base_value, own_value};
use crate::form::{BaseSlots, Form, base_node};
use crate::layout::{LAYOUTS_MAX, Layout, Wanted};
use crate::path::Path;
use std::ops::Range;
use std::sync::Arc;

/// No row.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// The slots of the event that a list runs on.
///
/// `touched` and `gone` do not stand side by side: they are written one by one, and would be read in one piece by
/// [`Slots::mark`], for which a processor waits until both are in its cache.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Slots {
    /// Those that were written.
    touched: u64,
    /// Nothing as long as no list runs that has one.
    form: Option<Arc<Form>>,
    /// Those of the written whose field was removed.
    gone: u64,
    /// The row whose fields are in slots, and not in nodes.
    live: u32,
    cells: Vec<Cell>,
    /// Slots that were written as they were before another change, for [`EventMut::rollback`]. (Behind a number of
    /// one byte a cell is copied through the stack in pieces that overlap, which a processor waits for.)
    journal: Vec<(usize, Cell)>,
}

/// A point in the history of the slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotsMark {
    live: u32,
    journal: u32,
    touched: u64,
    gone: u64,
}

impl Slots {
    pub(crate) const EMPTY: Self = Self {
        form: None,
        live: NO_ROW,
        touched: 0,
        gone: 0,
        cells: Vec::new(),
        journal: Vec::new(),
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

    /// The value written to a slot; `None` if there is none.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<Cell> {
        if self.touched >> slot & 1 == 0 { None } else { Some(self.cells[slot]) }
    }

    #[inline]
    pub(crate) fn set(&mut self, slot: usize, cell: Cell) {
        let bit = 1 << slot;
        if self.touched & bit != 0 {
            self.keep(slot);
        }
        self.cells[slot] = cell;
        self.touched |= bit;
        self.gone &= !bit;
        self.gone |= if matches!(cell, Cell::Gone) { bit } else { 0 };
    }

    /// Remembers what a slot had before another change.
    #[inline(never)]
    fn keep(&mut self, slot: usize) {
        self.journal.push((slot, self.cells[slot]));
    }

    pub(crate) fn mark(&self) -> SlotsMark {
        SlotsMark {
            live: self.live,
            journal: self.journal.len() as u32,
            touched: self.touched,
            gone: self.gone,
        }
    }

    pub(crate) fn rollback(&mut self, mark: SlotsMark) {
        while self.journal.len() > mark.journal as usize {
            if let Some((slot, cell)) = self.journal.pop() {
                self.cells[slot] = cell;
            }
        }
        self.live = mark.live;
        (self.touched, self.gone) = (mark.touched, mark.gone);
    }
}

/// Fields of an event that are about to be set.
#[derive(Debug)]
pub struct NewFields<'a> {
    paths: std::slice::Iter<'a, Option<Path>>,
    form: &'a Form,
    /// A slot that was not written means nothing, so that those of the new fields can be filled before all are known.
    cells: &'a mut [Cell],
    /// Where the text begins in the batch.
    start: u32,
    taken: u64,
    new: u64,
    /// One of them cannot be set like this.
    refused: bool,
}

impl NewFields<'_> {
    /// The next field is this part of the text.
    #[inline]
    pub fn put(&mut self, part: Range<usize>) {
        let (start, len) = (self.start + part.start as u32, part.len() as u32);
        self.put_cell(Cell::Str(Text { start, len }));
    }

    /// The next field is this value, a number or a truth.
    #[inline]
    pub fn put_cell(&mut self, cell: Cell) {
        let path = self.paths.next().and_then(Option::as_ref).filter(|path| path.is_plain());
        match path.and_then(|path| self.form.slot(path)) {
            Some(slot) if self.taken >> slot & 1 == 0 => {
                self.cells[slot] = cell;
                self.new |= 1 << slot;
            }
            _ => self.refused = true,
        }
    }

    /// The text says nothing about the next field: it stays as it is.
    #[inline]
    pub fn skip(&mut self) {
        self.paths.next();
    }
}

impl Batch {
    /// The fields that the list which runs now works on; its steps have bases that know it ([`Base::know`]).
    pub fn set_form(&mut self, form: &Arc<Form>) {
        let names = self.push_text(form.names());
        self.names = names.start;
        self.slots = Slots {
            form: Some(Arc::clone(form)),
            cells: vec![Cell::Gone; form.paths().len()],
            ..Slots::EMPTY
        };
    }

    #[inline]
    fn begin_slots(&mut self, row: usize) {
        let slots = &mut self.slots;
        (slots.touched, slots.gone) = (0, 0);
        slots.journal.clear();
        slots.live = NO_ROW;
        if slots.form.is_some() && self.rows[row].own.is_none() {
            slots.live = row as u32;
        }
    }

    #[inline]
    fn end_slots(&mut self, row: usize) {
        if !self.slots.is_live(row) {
            return;
        }
        let touched = self.slots.touched;
        let present = self.base().slots().map_or(u64::MAX, |known| known.present);
        let fields = touched & !(self.slots.gone & !present);
        let message = self.rows[row].has(Row::MESSAGE);
        self.settle(row, Wanted { touched, fields, last: true, message });
    }

    #[inline]
    fn settle_slots(&mut self, row: usize) {
        if self.slots.is_live(row) {
            let touched = self.slots.touched;
            let of = Wanted { touched, fields: touched, last: false, message: true };
            self.settle(row, of);
        }
    }

    fn settle(&mut self, row: usize, of: Wanted) {
        self.slots.live = NO_ROW;
        if of.touched == 0 {
            return;
        }
        let at = match self.layouts.iter().position(|layout| layout.of == of) {
            Some(at) => at,
            None => {
                let Some(form) = &self.slots.form else { return };
                if self.layouts.len() == LAYOUTS_MAX {
                    // So many are rare, and not worth to be remembered.
                    let layout = Layout::new(form, self.base(), Wanted { last: false, ..of });
                    self.rows[row].own = self.add_nodes(&layout);
                    return;
                }
                let layout = self.base().layout(form, of);
                self.layouts.push(layout);
                self.layouts.len() - 1
            }
        };
        let layout = &self.layouts[at];
        if layout.has_document()
            && self.rows[row].flags | Row::MESSAGE == Row::MESSAGE | Row::OFFSET
        {
            let own = NodeId(self.cells.len() as u32);
            self.cells.extend(layout.values(&self.slots.cells));
            (self.rows[row].own, self.rows[row].layout) = (own, at as u16 + 1);
        } else {
            let layout = Arc::clone(layout);
            self.rows[row].own = self.add_nodes(&layout);
        }
    }

    /// Adds the nodes of the event whose fields are in slots.
    fn add_nodes(&mut self, layout: &Layout) -> NodeId {
        let mut values = layout.values(&self.slots.cells);
        layout.add_to(&mut self.nodes, self.names, |_| values.next().unwrap_or(Cell::Gone))
    }
}

impl<'a> EventMut<'a> {
    /// Keeps the fields in slots from now on, if the event has none of its own yet and there is a form.
    #[inline]
    pub fn begin_slots(&mut self) {
        self.batch.begin_slots(self.row);
    }

    /// Makes nodes of the fields that are still in slots: no step runs on the event any more. What was removed and is
    /// not in the batch's base needs no node.
    #[inline]
    pub fn end_slots(&mut self) {
        self.batch.end_slots(self.row);
    }

    /// Whether fields are in slots, where they are found by their number.
    #[inline]
    pub fn has_slots(&self) -> bool {
        self.batch.slots.is_live(self.row)
    }

    /// Makes nodes of all fields that are in slots: the next step does not know them by number.
    #[inline]
    pub fn settle(&mut self) {
        self.batch.settle_slots(self.row);
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

    /// Makes nodes of all fields that are in slots, for one that has none and is not of the row itself.
    #[cold]
    pub(crate) fn settle_for(&mut self, path: &Path) {
        let row = self.row();
        let of_row = (path.is_message() && row.has(Row::MESSAGE))
            || (path.is_log_offset() && row.has(Row::OFFSET));
        if !of_row && !path.is_metadata() {
            self.settle();
        }
    }

    /// Sets fields to parts of one text of this batch, which `cut` returns in the order of `paths`, if all have
    /// slots, none of them is there and nothing is in their way. Else `false`, and nothing happened.
    ///
    /// # Errors
    /// Those of `cut`; nothing happened then.
    #[inline]
    pub fn put_new<E>(
        &mut self,
        paths: &[Option<Path>],
        text: Text,
        cut: impl FnOnce(&[u8], &mut NewFields<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let Some(known) = self.base.slots().filter(|_| self.has_slots()) else { return Ok(false) };
        let slots = &mut self.batch.slots;
        let Some(form) = &slots.form else { return Ok(false) };
        let end = text.start + text.len;
        let bytes = &self.batch.bytes[text.start as usize..end as usize];
        let mut fields = NewFields {
            paths: paths.iter(),
            form,
            cells: &mut slots.cells,
            start: text.start,
            taken: slots.touched | known.present | known.blocked,
            new: 0,
            refused: false,
        };
        cut(bytes, &mut fields)?;
        let NewFields { new, refused, .. } = fields;
        if !refused {
            slots.touched |= new;
            slots.gone &= !new;
        }
        Ok(!refused)
    }

    /// Makes nodes of all fields unless this one has a slot: for one that is looked at and was not named before.
    pub fn prepare(&mut self, path: &Path) {
        self.slot_of(path);
    }

    /// The slot of a field, if it has one and nothing is in its way.
    #[inline]
    pub(crate) fn slot_to_set(&self, path: &Path) -> Option<usize> {
        let slots = &self.batch.slots;
        if !slots.is_live(self.row) || !path.is_plain() {
            return None;
        }
        let slot = slots.slot(path)?;
        (self.base.slots()?.blocked >> slot & 1 == 0).then_some(slot)
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

    /// The slot of a field, and what the base has at the fields with slots. `None` if it has no slot, or is not
    /// looked for by it now.
    #[inline]
    pub(crate) fn slot_of(&self, path: &Path) -> Option<(usize, &'a BaseSlots)> {
        let slots = &self.batch.slots;
        if !slots.is_live(self.row) || !path.is_plain() {
            return None;
        }
        Some((slots.slot(path)?, self.base.slots()?))
    }

    /// The value of the field with this slot.
    #[inline]
    pub(crate) fn get_slot(
        &self,
        slot: usize,
        known: &BaseSlots,
        path: &Path,
    ) -> Option<ValueRef<'a>> {
        match self.batch.slots.get(slot) {
            Some(Cell::Str(text)) => Some(ValueRef::Str(self.batch.text(text))),
            Some(Cell::Int(number)) => Some(ValueRef::Int(number)),
            None if known.present >> slot & 1 == 0 => None,
            cell => self.get_layered(slot, known, path, cell),
        }
    }

    /// The same where both the event and the base may have a part in it.
    fn get_layered(
        &self,
        slot: usize,
        known: &BaseSlots,
        path: &Path,
        cell: Option<Cell>,
    ) -> Option<ValueRef<'a>> {
        match cell {
            Some(cell @ Cell::Map { opaque: false, .. }) => {
                own_value(self.batch, cell, base_node(self.base, path))
            }
            Some(cell) => own_value(self.batch, cell, None),
            None => {
                let node = known.node(slot, self.base).or_else(|| base_node(self.base, path))?;
                Some(base_value(self.batch, node))
            }
        }
    }

    /// Whether there is a value at the field with this slot.
    #[inline]
    pub(crate) fn has_slot(&self, slot: usize, known: &BaseSlots) -> bool {
        match self.batch.slots.get(slot) {
            Some(cell) => cell != Cell::Gone,
            None => known.present >> slot & 1 == 1,
        }
    }

    /// The value of a field that has no slot and is inside one that was written.
    ///
    /// An object around several slots is never looked at: the steps that do so come behind [`EventMut::settle`].
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
        let below = below.map_or(&[][..], BaseNode::children);
        let inner = MapRef::of(self.batch, first, below);
        Some(inner.value_at(path, around.segments().len()))
    }

    /// Whether a top-level field has a slot that was written.
    pub(crate) fn has_own_slot(&self, key: &str) -> bool {
        let slots = &self.batch.slots;
        slots.form.as_ref().is_some_and(|form| form.slots_below(key) & slots.touched != 0)
    }
}

impl Base {
    /// Looks once for the fields of a form; only the first form counts.
    pub fn know(&self, form: &Form) {
        self.know_slots(|| form.look_at(self));
    }
}
