//! The topics in use: their partitions, and records that wait for them.

use crate::flights::Item;
use crate::native::{self, TopicState};
use crate::partition::Chooser;
use skidder_outputs::{Backoff, Failures};
use std::collections::{BTreeSet, HashMap, VecDeque};
use tokio::time::Instant;

/// Topics at once; their numbers are of 16 bits. At the bound those without records under way are forgotten.
pub(crate) const TOPICS_MAX: usize = 1 << 16;

/// Why no records of a topic are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// They are.
    No,
    /// Some came back: until all that are under way have, so that they keep their order.
    Draining,
    /// Until this time; then the brokers are asked.
    Until(Instant),
    /// The brokers are asked about it.
    Asking,
}

/// One topic.
pub(crate) struct Topic {
    pub(crate) name: Box<str>,
    pub(crate) native: native::Topic,
    /// Numbers of the partitions that records go to.
    pub(crate) partitions: Vec<i32>,
    pub(crate) chooser: Chooser,
    pub(crate) hold: Hold,
    /// Records that wait, the oldest first unless it drains.
    pub(crate) parked: VecDeque<Item>,
    /// Records in librdkafka.
    pub(crate) under_way: usize,
    /// Size of the group of suspects that is under way, alone; 0 = none.
    pub(crate) probing: u32,
    /// Some of those that came back want a pause.
    pub(crate) wants_pause: bool,
    /// Questions in a row that had no good answer.
    pub(crate) tries: u32,
    pub(crate) backoff: Backoff,
    pub(crate) failures: Failures,
    /// Since the last refresh.
    pub(crate) used: bool,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Topics {
    list: Vec<Option<Topic>>,
    free: Vec<u16>,
    numbers: HashMap<Box<str>, u16>,
    /// Those that something has to be done about: they wait, or records wait for them.
    pub(crate) busy: BTreeSet<u16>,
}

impl Topics {
    pub(crate) fn find(&self, name: &str) -> Option<u16> {
        self.numbers.get(name).copied()
    }

    /// Adds a topic, if there is room.
    pub(crate) fn add(&mut self, topic: Topic) -> Option<u16> {
        if self.numbers.len() == TOPICS_MAX {
            self.forget(|_| true);
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                let number = u16::try_from(self.list.len()).ok()?;
                self.list.push(None);
                number
            }
        };
        self.numbers.insert(topic.name.clone(), number);
        self.list[usize::from(number)] = Some(topic);
        self.busy.insert(number);
        Some(number)
    }

    /// Forgets topics without records that are meant.
    pub(crate) fn forget(&mut self, meant: impl Fn(&Topic) -> bool) {
        for (number, slot) in self.list.iter_mut().enumerate() {
            let gone = slot.as_ref().is_some_and(|topic| {
                let is_idle = topic.under_way == 0 && topic.parked.is_empty();
                is_idle && topic.hold != Hold::Asking && meant(topic)
            });
            if gone && let Some(topic) = slot.take() {
                self.numbers.remove(&topic.name);
                self.busy.remove(&(number as u16));
                self.free.push(number as u16);
            }
        }
    }

    pub(crate) fn get(&mut self, number: u16) -> &mut Topic {
        self.list[usize::from(number)].as_mut().expect("a topic with records is not forgotten")
    }

    /// Whoever was to be asked about may be forgotten meanwhile.
    pub(crate) fn try_get(&mut self, number: u16) -> Option<&mut Topic> {
        self.list[usize::from(number)].as_mut()
    }

    /// Those that there are, with their numbers.
    pub(crate) fn iter(&mut self) -> impl Iterator<Item = (u16, &mut Topic)> {
        let known = self.list.iter_mut().enumerate();
        known.filter_map(|(number, slot)| Some((number as u16, slot.as_mut()?)))
    }
}

/// The partitions that records may go to, of what the brokers told; the error is why there are none.
pub(crate) fn usable(state: &TopicState, reachable_only: bool) -> Result<Vec<i32>, native::Code> {
    /// `LEADER_NOT_AVAILABLE`.
    const NO_LEADER: native::Code = native::Code(5);
    if !state.code.is_ok() {
        return Err(state.code);
    }
    let partitions = state.partitions.iter();
    let partitions: Vec<i32> = partitions
        .filter(|partition| !reachable_only || partition.leader >= 0)
        .map(|partition| partition.id)
        .collect();
    if partitions.is_empty() { Err(NO_LEADER) } else { Ok(partitions) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Code, PartitionState};

    #[test]
    fn partitions_without_a_leader_count_unless_only_reachable_ones_do() {
        let partition = |id, leader| PartitionState { id, leader };
        let partitions = vec![partition(0, 1), partition(1, -1), partition(2, 3)];
        let state = TopicState { code: Code(0), partitions };
        assert_eq!(usable(&state, false), Ok(vec![0, 1, 2]));
        assert_eq!(usable(&state, true), Ok(vec![0, 2]));
        let none = TopicState { code: Code(0), partitions: vec![partition(0, -1)] };
        assert_eq!(usable(&none, true), Err(Code(5)));
        assert_eq!(usable(&TopicState { code: Code(3), partitions: vec![] }, false), Err(Code(3)));
    }
}
