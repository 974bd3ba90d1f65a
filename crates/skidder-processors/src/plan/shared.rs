//! Events that share their fields: what the steps make of the first is given to the others.
//!
//! A source such as a journal gives many events of a batch the same fields. Steps that look at nothing else make the same
//! of all of them. Without this, each event would get a copy of all fields as soon as one step adds one.

use super::bound::BoundStep;
use super::compiled::{FailureCount, Flow};
use skidder_event::{Batch, SharedFields};
use std::collections::HashMap;
use std::sync::Arc;

/// Steps that look at nothing in which events that share their fields differ.
#[derive(Debug, Default)]
pub(crate) struct Uniform {
    /// The failures of their processors.
    failures: Box<[Arc<FailureCount>]>,
}

impl Uniform {
    /// `None` if the steps are not uniform.
    pub(super) fn of(steps: &[BoundStep]) -> Option<Self> {
        let mut processors = Vec::new();
        for step in steps {
            step.folded.as_ref().filter(|folded| folded.is_uniform)?;
            step.step.collect(&mut processors);
        }
        let failing = processors.iter().filter(|(processor, _)| processor.can_fail());
        Some(Self { failures: failing.map(|(_, failures)| Arc::clone(failures)).collect() })
    }

    fn failures(&self) -> u64 {
        self.failures.iter().map(|failures| failures.get()).sum()
    }
}

/// What became of shared fields.
enum Done {
    /// This event has the result alone so far.
    Row(usize),
    Shared(SharedFields),
}

/// What became of all shared fields of a batch so far.
#[derive(Default)]
pub(super) struct Edits(HashMap<SharedFields, Done, foldhash::fast::FixedState>);

impl Edits {
    /// Does the steps of a plan on an event: by `run`, unless it has the fields of an event before it.
    pub(super) fn edit(
        &mut self,
        uniform: &Uniform,
        batch: &mut Batch,
        row: usize,
        run: impl FnOnce(&mut Batch) -> Flow,
    ) {
        let Some(before) = batch.shared(row) else {
            run(batch);
            return;
        };
        if let Some(done) = self.0.get_mut(&before) {
            let fields = match done {
                Done::Shared(fields) => *fields,
                Done::Row(first) => {
                    let fields = batch.share(*first);
                    *done = Done::Shared(fields);
                    fields
                }
            };
            batch.replace_shared(row, fields);
            return;
        }
        let failures = uniform.failures();
        // A step that fails is counted for each event, and one that drops it drops all of them.
        if run(batch) == Flow::Next && uniform.failures() == failures {
            let done = batch.shared(row).map_or(Done::Row(row), Done::Shared);
            self.0.insert(before, done);
        }
    }
}
