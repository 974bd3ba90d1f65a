//! A plan bound to a source: its base layer, and the steps that are left for each event.

use super::compiled::{Compiled, Flow};
use super::shared::{Edits, Uniform};
use skidder_event::{Base, Batch, DropReason, EventMut, EventRef, Form, KeyBit, KeyFilter, Path};
use std::sync::Arc;

/// What processors do to the events of one source.
#[derive(Debug)]
pub struct BoundPlan {
    pub(crate) base: Arc<Base>,
    pub(crate) input_base: Arc<Base>,
    pub(crate) steps: Box<[BoundStep]>,
    /// If all steps are folded: for which events there is something left to do.
    pub(crate) guards: Option<GuardFilter>,
    pub(crate) drops: bool,
    /// If the steps make the same of all events that share their fields.
    pub(crate) uniform: Option<Uniform>,
    /// The fields that the first steps work on, which are in slots meanwhile.
    pub(crate) form: Option<Arc<Form>>,
    /// Number of these steps.
    pub(crate) steps_in_slots: usize,
}

/// Looks on while steps run on an event.
pub trait Watch {
    /// A step begins.
    fn begin(&mut self);

    /// The step with this number has ended, and has perhaps dropped the event.
    fn end(&mut self, step: usize, dropped: bool);
}

/// Does nothing.
struct Unwatched;

impl Watch for Unwatched {
    #[inline(always)]
    fn begin(&mut self) {}

    #[inline(always)]
    fn end(&mut self, _: usize, _: bool) {}
}

/// A step that runs on each event.
#[derive(Debug)]
pub(crate) struct BoundStep {
    /// The layer at this step of the list.
    pub(crate) base: Arc<Base>,
    pub(crate) step: Compiled,
    /// If the step's work is done for the usual event.
    pub(crate) folded: Option<Folded>,
}

/// A step whose work is in the layers already. That work is right for
/// events that have nothing of their own at the fields the step reads or writes.
#[derive(Debug)]
pub(crate) struct Folded {
    /// The layer with the step's work.
    pub(crate) after: Arc<Base>,
    /// The top-level fields that the step's condition reads.
    pub(crate) condition: Guards,
    /// The top-level fields that the step reads and writes.
    pub(crate) fields: Guards,
    /// Where the two layers differ.
    pub(crate) changes: Box<[Path]>,
    /// The step and its condition look at nothing in which events that share their fields differ.
    pub(crate) is_uniform: bool,
    /// The step may run over its own work, see [`crate::Processor::is_repeatable`].
    pub(crate) repeatable: bool,
}

/// Several top-level fields.
#[derive(Debug)]
pub(crate) struct Guards {
    pub(crate) all: Box<[Guard]>,
    /// The slots of all that is in those of the event.
    pub(crate) slots: u64,
    /// Some of them are of `@metadata`.
    pub(crate) metadata: bool,
    /// All of them: most events have none.
    pub(crate) filter: GuardFilter,
}

impl Guards {
    /// Takes note of where the fields are in slots.
    pub(crate) fn know(&mut self, form: &Form) {
        let of_event = self.all.iter().filter(|guard| !guard.metadata);
        self.slots = of_event.fold(0, |all, guard| all | form.slots_below(&guard.key));
    }

    /// Whether an event has something of its own there.
    #[inline]
    fn are_own(&self, event: EventRef<'_>) -> bool {
        match event.touched_slots() {
            Some(touched) => {
                let mut about = self.all.iter().filter(|guard| guard.metadata);
                touched & self.slots != 0
                    || (self.metadata && about.any(|guard| event.has_own_at(&guard.key, true)))
            }
            None => {
                self.filter.may_concern(event)
                    && self.all.iter().any(|guard| event.has_own_at(&guard.key, guard.metadata))
            }
        }
    }
}

/// A top-level field, of the event or of `@metadata`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) key: Box<str>,
    pub(crate) metadata: bool,
}

/// The top-level fields of all guards of a list. An event that has none of them of its own is as
/// the list leaves it.
#[derive(Debug)]
pub(crate) struct GuardFilter {
    own: KeyFilter,
    metadata: KeyFilter,
}

impl GuardFilter {
    const NONE: Self = Self { own: KeyFilter::NONE, metadata: KeyFilter::NONE };

    /// `None` if a step is not folded.
    pub(crate) fn of(steps: &[BoundStep]) -> Option<Self> {
        let mut filter = Self::NONE;
        for step in steps {
            let folded = step.folded.as_ref()?;
            filter.add(&folded.condition.all);
            filter.add(&folded.fields.all);
        }
        Some(filter)
    }

    /// Of these.
    pub(crate) fn of_guards(guards: &[Guard]) -> Self {
        let mut filter = Self::NONE;
        filter.add(guards);
        filter
    }

    fn add(&mut self, guards: &[Guard]) {
        for guard in guards {
            let keys = if guard.metadata { &mut self.metadata } else { &mut self.own };
            keys.add(KeyBit::of(guard.key.as_bytes()));
        }
    }

    #[inline]
    fn may_concern(&self, event: EventRef<'_>) -> bool {
        event.may_have_own(&self.own, false) || event.may_have_own(&self.metadata, true)
    }
}

impl BoundPlan {
    /// The layer under the events after all processors.
    pub fn base(&self) -> &Arc<Base> {
        &self.base
    }

    /// The layer under the events before processors run: parsers need it, since
    /// whatever they change is changed relative to it. For [`crate::Shape::Lines`] there is nothing
    /// to be changed, and it is the same as [`BoundPlan::base`].
    pub fn input_base(&self) -> &Arc<Base> {
        &self.input_base
    }

    /// Whether nothing is left to do for each event.
    pub fn is_constant(&self) -> bool {
        self.steps.is_empty()
    }

    /// Number of steps that are left to do for each event.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Processes all events of a batch and takes out those that were dropped.
    pub fn run(&self, batch: &mut Batch) {
        self.run_watched(batch, &mut Unwatched);
    }

    /// The same, and reports each step to `watch`.
    pub fn run_watched(&self, batch: &mut Batch, watch: &mut impl Watch) {
        batch.set_base(Arc::clone(&self.base));
        if self.steps.is_empty() {
            return;
        }
        if let Some(form) = &self.form {
            batch.set_form(form);
        }
        let mut edits = Edits::default();
        for row in 0..batch.len() {
            let is_done = self
                .guards
                .as_ref()
                .is_some_and(|guards| !guards.may_concern(batch.event_over(row, &self.base)));
            if is_done {
                continue;
            }
            if let Some(uniform) = &self.uniform {
                edits.edit(uniform, batch, row, |batch| self.run_event(batch, row, watch));
            } else {
                self.run_event(batch, row, watch);
            }
        }
        if self.drops {
            batch.remove_dropped(DropReason::Processor);
        }
        batch.finish();
    }

    /// All steps on one event, so that a mark is valid until the step ends.
    #[inline(always)]
    fn run_event(&self, batch: &mut Batch, row: usize, watch: &mut impl Watch) -> Flow {
        batch.forget_changes();
        let mut event = batch.event_mut(row, &self.base);
        event.begin_slots();
        for (number, bound) in self.steps.iter().enumerate() {
            if number == self.steps_in_slots {
                event.settle();
            }
            watch.begin();
            let flow = bound.run(&mut event);
            watch.end(number, flow == Flow::Dropped);
            if flow == Flow::Dropped {
                return flow;
            }
        }
        event.end_slots();
        Flow::Next
    }
}

impl BoundStep {
    /// Takes note of what its layers have where the fields of a form are.
    pub(crate) fn know(&mut self, form: &Form) {
        self.base.know(form);
        if let Some(folded) = &mut self.folded {
            folded.after.know(form);
            folded.condition.know(form);
            folded.fields.know(form);
        }
    }

    /// Whether its layers have keys with dots in them.
    pub(crate) fn has_dots(&self) -> bool {
        self.base.has_dots() || self.folded.as_ref().is_some_and(|folded| folded.after.has_dots())
    }

    /// Runs on one event. Its base is another one behind it.
    #[inline(always)]
    pub(crate) fn run<'a>(&'a self, event: &mut EventMut<'a>) -> Flow {
        event.set_base(&self.base);
        match &self.folded {
            None => self.step.run(event),
            Some(folded) => run_folded(self, folded, event),
        }
    }
}

/// A folded step on an event that may be unusual.
#[inline(never)]
fn run_folded<'a>(bound: &'a BoundStep, folded: &'a Folded, event: &mut EventMut<'a>) -> Flow {
    let seen = event.as_ref();
    let own_fields = folded.fields.are_own(seen);
    if !own_fields && !folded.condition.are_own(seen) {
        return Flow::Next;
    }
    // A step that works on a key with dots has left the field inside objects alone.
    let repeatable = folded.repeatable && !seen.has_dots();
    if repeatable && !folded.changes.is_empty() && bound.step.applies(seen) {
        if own_fields {
            return bound.step.run(event);
        }
        return Flow::Next;
    }
    // Restores the event as before the step, then runs the step as if nothing was folded.
    for path in &folded.changes {
        event.set_base(&bound.base);
        let before = event.copy(path);
        event.set_base(&folded.after);
        match before {
            Some(cell) => {
                let mark = event.mark();
                if event.put_cell(path, cell).is_err() {
                    // The event hides this part of both layers.
                    event.rollback(mark);
                }
            }
            None => {
                event.delete(path);
            }
        }
    }
    event.set_base(&bound.base);
    bound.step.run(event)
}
