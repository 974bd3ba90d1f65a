//! What the steps of a plan cost on live events, measured on request.
//!
//! Each request has the next [`BATCHES`] batches of the input timed: the steps run as always, and the clock is read
//! before and behind each. The cost of reading it is subtracted. Without a request this is one load of a number for
//! each batch.

use skidder_observe::StepCost;
use skidder_os::{Clock, Monotonic};
use skidder_processors::Watch;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Batches that are timed behind a question.
const BATCHES: u32 = 20;
/// How often the clock is read to know what that takes.
const CALIBRATION: u32 = 16;

/// The times of one input's plan.
pub(crate) struct StepTimes {
    clock: Arc<dyn Clock>,
    /// Batches left to time.
    left: AtomicU32,
    /// By the number of steps: sources differ in the steps that are done once for them.
    costs: Mutex<HashMap<usize, Vec<StepCost>>>,
}

/// A batch that is timed.
pub(crate) struct Timed<'a> {
    times: &'a StepTimes,
    costs: Vec<StepCost>,
    reading: u64,
    begun: Monotonic,
}

impl std::fmt::Debug for StepTimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepTimes").finish_non_exhaustive()
    }
}

impl StepTimes {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, left: AtomicU32::new(0), costs: Mutex::default() }
    }

    /// Nothing is measured yet.
    pub(crate) fn anew(&self) -> Self {
        Self::new(Arc::clone(&self.clock))
    }

    /// Times the next batches.
    pub(crate) fn ask(&self) {
        self.left.store(BATCHES, Ordering::Relaxed);
    }

    /// What the steps of a plan with so many have cost.
    pub(crate) fn of(&self, steps: usize) -> Option<Vec<StepCost>> {
        self.lock().get(&steps).cloned()
    }

    /// What times the next batch, if that is wanted.
    #[inline]
    pub(crate) fn next(&self, steps: usize) -> Option<Timed<'_>> {
        if self.left.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.begin(steps)
    }

    #[cold]
    fn begin(&self, steps: usize) -> Option<Timed<'_>> {
        let less = |left: u32| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
        let nanoseconds = |begun: Monotonic| {
            u64::try_from(self.clock.monotonic().since(begun).as_nanos()).unwrap_or(u64::MAX)
        };
        let reading = (0..CALIBRATION).map(|_| nanoseconds(self.clock.monotonic())).min();
        let (reading, begun) = (reading.unwrap_or(0), self.clock.monotonic());
        Some(Timed { times: self, costs: vec![StepCost::default(); steps], reading, begun })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Vec<StepCost>>> {
        self.costs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Timed<'_> {
    fn begin(&mut self) {
        self.begun = self.times.clock.monotonic();
    }

    fn end(&mut self, step: usize, dropped: bool) {
        let took = self.times.clock.monotonic().since(self.begun);
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        if let Some(cost) = self.costs.get_mut(step) {
            cost.events += 1;
            cost.dropped += u64::from(dropped);
            cost.nanoseconds += took.saturating_sub(self.reading);
        }
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        let mut all = self.times.lock();
        let sums = all
            .entry(self.costs.len())
            .or_insert_with(|| vec![StepCost::default(); self.costs.len()]);
        for (sum, cost) in sums.iter_mut().zip(&self.costs) {
            sum.events += cost.events;
            sum.dropped += cost.dropped;
            sum.nanoseconds += cost.nanoseconds;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_testkit::SimClock;
    use std::time::Duration;

    #[test]
    fn only_batches_behind_a_question_are_timed_and_reading_the_clock_costs_nothing() {
        let clock = SimClock::new();
        let times = StepTimes::new(Arc::new(clock.clone()));
        assert!(times.next(2).is_none(), "nobody has asked");
        times.ask();
        let mut batches = 0;
        while let Some(mut timed) = times.next(2) {
            batches += 1;
            timed.begin();
            clock.advance(Duration::from_nanos(100));
            timed.end(0, false);
            timed.begin();
            timed.end(1, true);
        }
        assert_eq!(batches, BATCHES);
        let first = StepCost { events: 20, dropped: 0, nanoseconds: 2_000 };
        let second = StepCost { events: 20, dropped: 20, nanoseconds: 0 };
        assert_eq!(times.of(2), Some(vec![first, second]));
        assert_eq!((times.of(1), times.anew().of(2)), (None, None));
    }
}
