//! Running a bound plan step by step, to measure each.

use super::bound::BoundPlan;
use skidder_event::{Batch, DropReason};
use std::sync::Arc;

/// What a step did to the events of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCounts {
    /// Events that came to it.
    pub events: u64,
    /// Of these, how many it dropped.
    pub dropped: u64,
    /// Failures of the processors in it.
    pub failed: u64,
}

/// Looks on while steps run.
pub trait Meter {
    /// A step begins on a batch.
    fn begin(&mut self);

    /// The step number `step` of [`BoundPlan`] has ended.
    fn end(&mut self, step: usize, counts: StepCounts);
}

impl BoundPlan {
    /// Does what [`BoundPlan::run`] does, but each step over the whole batch before the next one. Failures
    /// are counted right only if no other thread runs the same plan meanwhile.
    pub fn run_measured(&self, batch: &mut Batch, meter: &mut dyn Meter) {
        batch.set_base(Arc::clone(&self.base));
        for (number, bound) in self.steps.iter().enumerate() {
            let mut failures = Vec::new();
            bound.step.collect(&mut failures);
            let failed = || failures.iter().map(|(_, failures)| failures.get()).sum::<u64>();
            let mut counts = StepCounts::default();
            let before = failed();
            meter.begin();
            for row in 0..batch.len() {
                if !batch.rows()[row].is_dropped() {
                    counts.events += 1;
                    bound.run(&mut batch.event_mut(row, &bound.base));
                    counts.dropped += u64::from(batch.rows()[row].is_dropped());
                }
            }
            counts.failed = failed() - before;
            meter.end(number, counts);
        }
        if self.drops {
            batch.remove_dropped(DropReason::Processor);
        }
        batch.finish();
    }
}
