//! An event whose fields are in slots: reading, writing, and making nodes of them.
//!
//! The processors know nothing of it. [`crate::Batch::begin_slots`] begins with an event that has no fields of its own;
//! whatever is not done by the number of a field makes nodes of all slots first ([`EventMut::settle`]).

use crate::base::{Base, BaseNode};
use crate::batch::{Batch, Cell, Row};
use crate::edit::EventMut;
use crate::event::{EventRef, MapRef, ValueRef};
use crate::form::{Form, base_node};
use crate::layout::{LAYOUTS_MAX, Layout, Wanted};
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
        let touched = self.slots.touched;
        let mut fields = touched;
        let mut left = touched & !self.base().slots().map_or(u64::MAX, |known| known.present);
        while left != 0 {
            let slot = left.trailing_zeros();
            left &= left - 1;
            if self.slots.cells[slot as usize] == Cell::Gone {
                fields &= !(1 << slot);
            }
        }
        self.settle(row, Wanted { touched, fields, last: true });
    }

    /// Makes nodes of the fields of an event that are in slots: the next step does not know them by number.
    #[inline]
    pub fn settle_slots(&mut self, row: usize) {
        if self.slots.is_live(row) {
            let touched = self.slots.touched;
            self.settle(row, Wanted { touched, fields: touched, last: false });
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
                    let (names, cells) = (self.slots.names, &self.slots.cells);
                    self.rows[row].own = layout.add_to(&mut self.nodes, names, cells);
                    return;
                }
                let layout = self.base().layout(form, of);
                self.layouts.push(layout);
                self.layouts.len() - 1
            }
        };
        let layout = &self.layouts[at];
        let own = layout.add_to(&mut self.nodes, self.slots.names, &self.slots.cells);
        let row = &mut self.rows[row];
        row.own = own;
        row.layout = if layout.has_document() { at as u16 + 1 } else { 0 };
    }

    /// How an event is written whose nodes are as they were made of slots.
    #[inline]
    pub(crate) fn layout(&self, row: &Row) -> Option<&Layout> {
        let usual = row.layout != 0 && row.flags == Row::MESSAGE | Row::OFFSET;
        self.layouts
            .get(usize::from(row.layout).wrapping_sub(1))
            .filter(|_| usual)
            .map(|all| &**all)
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

    /// What the base has at a field with a slot.
    #[inline]
    pub(crate) fn below_slot(&self, path: &Path) -> Option<&'a BaseNode> {
        let slot = self.batch.slots.slot(path)?;
        self.base.slots()?.node(slot, self.base)
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
