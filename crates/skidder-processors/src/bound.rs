//! A plan bound to a source: its base layer, and the steps that are left for each event.

use crate::compiled::{Compiled, Flow};
use skidder_event::{Base, Batch, DropReason, Path};
use std::sync::{Arc, LazyLock};

/// Where a processor that failed says so.
pub(crate) static ERROR_MESSAGE: LazyLock<Path> =
    LazyLock::new(|| Path::parse("error.message").expect("a constant that is a path"));

/// What processors do to the events of one source.
#[derive(Debug)]
pub struct BoundPlan {
    pub(crate) base: Arc<Base>,
    pub(crate) input_base: Arc<Base>,
    pub(crate) steps: Box<[BoundStep]>,
    pub(crate) drops: bool,
}

/// A step that runs on each event.
#[derive(Debug)]
pub(crate) struct BoundStep {
    /// The layer as it stands when the list comes to this step.
    pub(crate) base: Arc<Base>,
    /// If there are any: the step's work is in the base already, and it runs only on events that
    /// have something of their own at one of these top-level fields.
    pub(crate) guards: Box<[Guard]>,
    pub(crate) step: Compiled,
}

/// A top-level field, of the event or of `@metadata`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) key: Box<str>,
    pub(crate) metadata: bool,
}

impl BoundPlan {
    /// The layer that lies under the events when all processors have run.
    pub fn base(&self) -> &Arc<Base> {
        &self.base
    }

    /// The layer that lies under the events before processors run: what parsers must see, since
    /// whatever they change is changed relative to it. For [`crate::Shape::Lines`] there is nothing
    /// to be changed, and it is the same as [`BoundPlan::base`].
    pub fn input_base(&self) -> &Arc<Base> {
        &self.input_base
    }

    /// Whether nothing is left to do for each event.
    pub fn is_constant(&self) -> bool {
        self.steps.is_empty()
    }

    /// Processes all events of a batch and takes out those that were dropped.
    pub fn run(&self, batch: &mut Batch) {
        batch.set_base(Arc::clone(&self.base));
        if self.steps.is_empty() {
            return;
        }
        for row in 0..batch.len() {
            self.run_event(batch, row);
        }
        if self.drops {
            batch.remove_dropped(DropReason::Processor);
        }
        batch.finish();
    }

    /// All steps on one event, so that a mark is valid until the step ends.
    fn run_event(&self, batch: &mut Batch, row: usize) {
        for bound in &self.steps {
            let mut event = batch.event_mut(row, &bound.base);
            if !bound.guards.is_empty() {
                let event = event.as_ref();
                if !bound.guards.iter().any(|guard| event.has_own(&guard.key, guard.metadata)) {
                    continue;
                }
            }
            if bound.step.run(&mut event) == Flow::Dropped {
                return;
            }
        }
    }
}
