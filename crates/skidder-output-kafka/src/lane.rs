//! The way of records to one partition: a batch in progress, waiting ones, those in flight, all in the order in
//! which they were read.
//!
//! From the front: `flying`, then `sealed`, `groups`, `open`, `parked`. While a lane is held nothing of it is encoded:
//! only places of events wait, in `groups` where batches must stay what they were, and in `parked`.

use crate::flights::Item;
use crate::record::Records;
use skidder_outputs::Backoff;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Why nothing of a topic or a lane is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It is.
    No,
    /// Some came back: until all that fly have landed, so that they keep their order.
    Draining,
    /// Until this time; then metadata is requested.
    Until(Instant),
    /// Metadata is requested.
    Asking,
}

/// The number that a batch was sent with, as this producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Which of the producer's identities that was.
    pub(crate) generation: u32,
    /// The number of its first record.
    pub(crate) first: i32,
}

/// A batch, encoded.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<Item>,
    pub(crate) records: Records,
    pub(crate) mark: Option<Mark>,
}

/// Events that are to be a batch, not encoded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) items: Vec<Item>,
    pub(crate) mark: Option<Mark>,
}

/// A batch on its way.
#[derive(Debug)]
pub(crate) struct Flying {
    pub(crate) group: Group,
    /// The counted bytes of its records.
    pub(crate) bytes: usize,
    /// The link that has it.
    pub(crate) link: u64,
}

/// Encoded records, here and in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) records: usize,
    pub(crate) bytes: usize,
}

impl Load {
    /// Whether there is room for a record below these bounds.
    #[inline]
    pub(crate) fn is_within(&self, max: &Self) -> bool {
        self.records < max.records && self.bytes < max.bytes
    }
}

/// See the module's text.
pub(crate) struct Lane {
    pub(crate) topic: u16,
    pub(crate) partition: i32,
    /// The broker that takes its records; below zero if there is none.
    pub(crate) leader: i32,
    pub(crate) hold: Hold,
    pub(crate) flying: VecDeque<Flying>,
    /// Batches that came back since it is draining.
    pub(crate) returned: Vec<Group>,
    /// How long to wait when it has drained.
    pub(crate) pause: Option<Duration>,
    /// From which number on nothing was taken for good.
    pub(crate) rewind: Option<i32>,
    pub(crate) sealed: VecDeque<Batch>,
    pub(crate) groups: VecDeque<Group>,
    pub(crate) open: Batch,
    /// When the first record came into `open`.
    pub(crate) since: Option<Instant>,
    pub(crate) parked: VecDeque<Item>,
    /// The recent maximum size of a batch: room that the next one gets at once.
    pub(crate) usual: Load,
    /// The number of the next record, for the identity of this generation.
    pub(crate) next: Mark,
    /// Failures in a row.
    pub(crate) tries: u32,
    pub(crate) backoff: Backoff,
}

impl Lane {
    pub(crate) fn new(topic: u16, partition: i32, backoff: Backoff) -> Self {
        Self {
            topic,
            partition,
            leader: -1,
            hold: Hold::No,
            flying: VecDeque::new(),
            returned: Vec::new(),
            pause: None,
            rewind: None,
            sealed: VecDeque::new(),
            groups: VecDeque::new(),
            open: Batch::default(),
            since: None,
            parked: VecDeque::new(),
            usual: Load::default(),
            next: Mark { generation: 0, first: 0 },
            tries: 0,
            backoff,
        }
    }

    /// Whether nothing is here and nothing flies.
    pub(crate) fn is_idle(&self) -> bool {
        self.hold == Hold::No
            && self.flying.is_empty()
            && self.sealed.is_empty()
            && self.open.records.is_empty()
            && !self.has_waiting()
    }

    /// Whether events wait that are not encoded.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.groups.is_empty() || !self.parked.is_empty()
    }

    /// How many these are.
    pub(crate) fn waiting(&self) -> usize {
        self.parked.len() + self.groups.iter().map(|group| group.items.len()).sum::<usize>()
    }

    /// Whether there is a batch to be sent: `open` is one when it is urgent or was begun so long ago.
    pub(crate) fn is_due(&self, now: Instant, is_urgent: bool, linger: Duration) -> bool {
        !self.sealed.is_empty()
            || self.since.is_some_and(|since| is_urgent || since + linger <= now)
    }

    /// `open` takes no more.
    pub(crate) fn seal(&mut self) {
        if !self.open.records.is_empty() {
            let of_late = |before: usize, now: usize| (before - before / 8).max(now + now / 8);
            self.usual.records = of_late(self.usual.records, self.open.items.len());
            self.usual.bytes = of_late(self.usual.bytes, self.open.records.bytes.len());
            self.sealed.push_back(std::mem::take(&mut self.open));
            self.since = None;
        }
    }

    /// The batch that is to be sent next.
    pub(crate) fn take(&mut self) -> Option<Batch> {
        if self.sealed.is_empty() {
            self.seal();
        }
        self.sealed.pop_front()
    }

    /// Numbers a batch that is about to be sent, for the identity of this generation. One that was sent with it before
    /// keeps its number, by which the broker knows it.
    pub(crate) fn number(&mut self, generation: u32, mark: Option<Mark>, count: usize) -> Mark {
        if let Some(mark) = mark.filter(|mark| mark.generation == generation) {
            return mark;
        }
        if self.next.generation != generation {
            self.next = Mark { generation, first: 0 };
        }
        let mark = self.next;
        // After the largest number comes zero.
        self.next.first = (mark.first.wrapping_add(count as i32)) & i32::MAX;
        mark
    }

    /// A batch came back, to be sent again when all have landed.
    pub(crate) fn give_back(&mut self, group: Group) {
        self.hold = Hold::Draining;
        self.returned.push(group);
    }

    /// A batch was refused, or a part of it: it is not written, and nor is what was sent behind it.
    pub(crate) fn refused(&mut self, mark: Option<Mark>) {
        self.hold = Hold::Draining;
        if let Some(mark) = mark.filter(|mark| mark.generation == self.next.generation) {
            self.rewind.get_or_insert(mark.first);
        }
    }

    /// Sets the pause before the next try to at least this.
    pub(crate) fn want_pause(&mut self, pause: Duration) {
        self.pause = Some(self.pause.map_or(pause, |before| before.max(pause)));
    }

    /// Nothing flies any more: puts returned batches to the front. Gives rows that are not encoded now, and memory to
    /// `free`.
    pub(crate) fn settle_down(&mut self, free: &mut dyn FnMut(Vec<u8>)) -> Load {
        let load = self.put_down(free);
        for group in std::mem::take(&mut self.returned).into_iter().rev() {
            if !group.items.is_empty() {
                self.groups.push_front(group);
            }
        }
        if let Some(first) = self.rewind.take() {
            self.next.first = first;
            let generation = self.next.generation;
            for group in &mut self.groups {
                let is_behind = |mark: Mark| {
                    let distance = mark.first.wrapping_sub(first) & i32::MAX;
                    mark.generation == generation && distance < i32::MAX / 2
                };
                if group.mark.is_some_and(is_behind) {
                    group.mark = None;
                }
            }
        }
        load
    }

    /// Nothing stays encoded. Gives what was, and its memory to `free`.
    fn put_down(&mut self, free: &mut dyn FnMut(Vec<u8>)) -> Load {
        let mut load = Load::default();
        let mut put = |batch: Batch, free: &mut dyn FnMut(Vec<u8>)| {
            load.records += batch.items.len();
            load.bytes += batch.records.bytes.len();
            free(batch.records.bytes);
            Group { items: batch.items, mark: batch.mark }
        };
        let open = put(std::mem::take(&mut self.open), free);
        for item in open.items.into_iter().rev() {
            self.parked.push_front(item);
        }
        self.since = None;
        for batch in std::mem::take(&mut self.sealed).into_iter().rev() {
            let group = put(batch, free);
            self.groups.push_front(group);
        }
        load
    }

    /// All events that wait, if the lane has landed and none of them may have been written as part of a batch that
    /// must stay what it was; unless there is no such partition any more.
    pub(crate) fn evacuate(
        &mut self,
        exists: bool,
        free: &mut dyn FnMut(Vec<u8>),
    ) -> Option<(Vec<Item>, Load)> {
        let is_bound = self.groups.iter().any(|group| group.mark.is_some())
            || self.sealed.iter().any(|batch| batch.mark.is_some());
        if !self.flying.is_empty() || self.hold == Hold::Draining || (is_bound && exists) {
            return None;
        }
        let load = self.put_down(free);
        let groups = std::mem::take(&mut self.groups).into_iter().flat_map(|group| group.items);
        let items = groups.chain(std::mem::take(&mut self.parked)).collect();
        self.hold = Hold::No;
        Some((items, load))
    }
}

#[cfg(test)]
mod tests;
