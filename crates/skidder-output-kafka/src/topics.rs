//! The topics in use: their partitions, and events that wait for these to be known.

use crate::codes::Code;
use crate::flights::Item;
use crate::lane::Hold;
use crate::messages::TopicState;
use crate::partition::Chooser;
use skidder_outputs::{Backoff, Failures};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// Topics at once; their numbers are of 16 bits. At the bound those without records under way are forgotten.
pub(crate) const TOPICS_MAX: usize = 1 << 16;

/// One topic.
pub(crate) struct Topic {
    pub(crate) name: Arc<str>,
    /// The lane of each partition.
    pub(crate) lanes: BTreeMap<i32, u32>,
    /// Lanes of the partitions that records go to, in the order of their numbers.
    pub(crate) usable: Vec<u32>,
    pub(crate) chooser: Chooser,
    /// Never `Draining`.
    pub(crate) hold: Hold,
    /// Events that have no partition yet, the oldest first.
    pub(crate) parked: VecDeque<Item>,
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
    numbers: HashMap<Arc<str>, u16>,
    /// Those that something has to be done about: they wait, or events wait for them.
    pub(crate) busy: BTreeSet<u16>,
}

impl Topics {
    pub(crate) fn find(&self, name: &str) -> Option<u16> {
        self.numbers.get(name).copied()
    }

    /// Adds a topic, if there is room.
    pub(crate) fn add(&mut self, topic: Topic) -> Option<u16> {
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                let number = u16::try_from(self.list.len()).ok()?;
                self.list.push(None);
                number
            }
        };
        self.numbers.insert(Arc::clone(&topic.name), number);
        self.list[usize::from(number)] = Some(topic);
        self.busy.insert(number);
        Some(number)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.numbers.len() == TOPICS_MAX
    }

    /// Forgets a topic.
    pub(crate) fn remove(&mut self, number: u16) -> Option<Topic> {
        let topic = self.list[usize::from(number)].take()?;
        self.numbers.remove(&topic.name);
        self.busy.remove(&number);
        self.free.push(number);
        Some(topic)
    }

    pub(crate) fn get(&mut self, number: u16) -> &mut Topic {
        self.list[usize::from(number)].as_mut().expect("a topic with records is not forgotten")
    }

    /// A topic may be forgotten between request and answer.
    pub(crate) fn try_get(&mut self, number: u16) -> Option<&mut Topic> {
        self.list[usize::from(number)].as_mut()
    }

    pub(crate) fn peek(&self, number: u16) -> Option<&Topic> {
        self.list[usize::from(number)].as_ref()
    }

    /// Those that there are, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &Topic)> {
        let known = self.list.iter().enumerate();
        known.filter_map(|(number, slot)| Some((number as u16, slot.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u16, &mut Topic)> {
        let known = self.list.iter_mut().enumerate();
        known.filter_map(|(number, slot)| Some((number as u16, slot.as_mut()?)))
    }
}

/// The partitions for records, from the brokers' metadata; the error is why there are none.
pub(crate) fn usable(state: &TopicState, reachable_only: bool) -> Result<Vec<i32>, Code> {
    if !state.code.is_ok() {
        return Err(state.code);
    }
    let partitions = state.partitions.iter();
    let partitions: Vec<i32> = partitions
        .filter(|partition| !reachable_only || partition.leader >= 0)
        .map(|partition| partition.id)
        .collect();
    if partitions.is_empty() { Err(Code::NO_LEADER) } else { Ok(partitions) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::PartitionState;

    #[test]
    fn partitions_without_a_leader_count_unless_only_reachable_ones_do() {
        let partition = |id, leader| PartitionState { id, leader };
        let partitions = vec![partition(0, 1), partition(1, -1), partition(2, 3)];
        let state = TopicState { code: Code(0), partitions, may_write: None };
        assert_eq!(usable(&state, false), Ok(vec![0, 1, 2]));
        assert_eq!(usable(&state, true), Ok(vec![0, 2]));
        let none = TopicState { partitions: vec![partition(0, -1)], ..state };
        assert_eq!(usable(&none, true), Err(Code(5)));
        assert_eq!(usable(&TopicState { code: Code(3), ..none }, false), Err(Code(3)));
    }
}
