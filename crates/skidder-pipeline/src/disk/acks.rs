//! Which frames have their verdict: frames are begun in the order of the queue and end in any order.

use super::format::Place;
use skidder_os::sabotage::{self, Sabotage};
use std::collections::VecDeque;

/// Frames between the disk and their verdict.
#[derive(Debug)]
pub(crate) struct Acks {
    /// Those that were begun, and whether they have ended; the first has not.
    frames: VecDeque<(Place, bool)>,
    /// Behind the last one that was begun.
    next: Place,
}

impl Acks {
    pub(crate) fn new(next: Place) -> Self {
        Self { frames: VecDeque::new(), next }
    }

    /// A frame is read; what lies between it and the one before is lost, and was reported.
    pub(crate) fn begin(&mut self, place: Place, end: Place) {
        self.frames.push_back((place, false));
        self.next = end;
    }

    /// Nothing up to here is left to be read.
    pub(crate) fn pass(&mut self, place: Place) {
        self.next = place;
    }

    /// All events of a frame have their verdict.
    pub(crate) fn end(&mut self, sequence: u64) {
        let at = self.frames.partition_point(|(place, _)| place.sequence < sequence);
        match self.frames.get_mut(at) {
            Some((place, ended)) if place.sequence == sequence => *ended = true,
            _ => debug_assert!(false, "a frame that was not begun has ended"),
        }
        while self.frames.front().is_some_and(|(_, ended)| *ended) {
            self.frames.pop_front();
        }
    }

    /// All before it have their verdict.
    pub(crate) fn settled(&self) -> Place {
        if sabotage::is_on(Sabotage::FrameAckedEarly) {
            return self.next;
        }
        self.frames.front().map_or(self.next, |(place, _)| *place)
    }
}
