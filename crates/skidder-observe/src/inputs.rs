//! The inputs of an output: a list that changes when the configuration is read again.

use crate::numbers::ReadNumbers;
use crate::snapshot::InputSource;
use skidder_read::ReadMetrics;
use std::sync::{Arc, PoisonError, RwLock};

/// The inputs of an output. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct InputList(Arc<RwLock<Lists>>);

#[derive(Clone, Debug, Default)]
struct Lists {
    now: Arc<[InputSource]>,
    /// What inputs count that are not in the list any more, while they still read or wait for verdicts.
    leaving: Vec<Arc<ReadMetrics>>,
    /// What all others have counted that were in the list.
    gone: ReadNumbers,
}

impl InputList {
    /// These inputs.
    pub fn new(inputs: Vec<InputSource>) -> Self {
        let list = Self::default();
        list.replace(inputs);
        list
    }

    /// The inputs as they are now, in the order of the configuration.
    pub fn list(&self) -> Arc<[InputSource]> {
        Arc::clone(&self.read().now)
    }

    /// Other inputs from now on. What those have counted that are not among them stays in the sums.
    pub fn replace(&self, inputs: Vec<InputSource>) {
        let mut lists = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let stays = |metrics: &Arc<ReadMetrics>| {
            inputs.iter().any(|input| Arc::ptr_eq(&input.metrics, metrics))
        };
        let before = Arc::clone(&lists.now);
        for input in before.iter().filter(|input| !stays(&input.metrics)) {
            let is_new = |other: &Arc<ReadMetrics>| !Arc::ptr_eq(other, &input.metrics);
            if lists.leaving.iter().all(is_new) {
                lists.leaving.push(Arc::clone(&input.metrics));
            }
        }
        lists.now = inputs.into();
    }

    /// Those that have left the list count nothing any more.
    pub fn forget_gone(&self) {
        let mut lists = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for metrics in std::mem::take(&mut lists.leaving) {
            lists.gone.add(&ReadNumbers::of(&metrics));
        }
    }

    /// What all have counted, each once.
    pub(crate) fn total(&self) -> ReadNumbers {
        let lists = self.read();
        let mut total = lists.gone;
        let mut seen: Vec<&Arc<ReadMetrics>> = Vec::new();
        let now = lists.now.iter().map(|input| &input.metrics);
        for metrics in now.chain(&lists.leaving) {
            if !seen.iter().any(|other| Arc::ptr_eq(other, metrics)) {
                total.add(&ReadNumbers::of(metrics));
                seen.push(metrics);
            }
        }
        total
    }

    fn read(&self) -> Lists {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(number: usize) -> InputSource {
        let metrics = Arc::new(ReadMetrics::default());
        let (id, kind) = ("i".to_owned(), "filestream".to_owned());
        InputSource { id, kind, number, slot: number, metrics, plan: None, survey: None }
    }

    #[test]
    fn what_was_counted_stays_in_the_sum_when_its_input_goes() {
        let (one, two) = (input(0), input(1));
        let list = InputList::new(vec![one.clone(), two.clone()]);
        one.metrics.lines.add(3);
        two.metrics.lines.add(4);
        assert_eq!(list.total().lines, 7);
        list.replace(vec![two.clone()]);
        one.metrics.lines.add(10);
        assert_eq!((list.total().lines, list.list().len()), (17, 1), "it still reads");
        list.forget_gone();
        one.metrics.lines.add(100);
        assert_eq!(list.total().lines, 17);
        list.replace(vec![two.clone(), two.clone()]);
        assert_eq!(list.total().lines, 17, "shared counters count once");
    }
}
