//! Questions about a queue from outside.

use super::{Queue, Tap};
use skidder_os::Monotonic;

impl Queue {
    /// Events queued and in flight, and their bytes.
    pub fn filled(&self) -> (usize, usize) {
        let state = self.shared.lock();
        (state.events, state.bytes)
    }

    /// Events that wait for a worker.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.lock().queued
    }

    /// The tap to watch admitted batches. Those of a disk queue are admitted at its front.
    pub fn tap(&self) -> &Tap {
        &self.shared.tap
    }

    /// Whether a reader waits for room.
    pub fn is_blocked(&self) -> bool {
        !self.shared.lock().blocked.is_empty()
    }

    /// Since when the batch at the front of the line waits for room. As long as the output takes events that is not long ago.
    /// `None` if none waits.
    pub fn blocked_since(&self) -> Option<Monotonic> {
        self.shared.lock().blocked.front()?.since
    }

    /// Notes `now` as the start of the wait for batches that wait for room.
    pub fn note_blocked(&self, now: Monotonic) {
        let mut state = self.shared.lock();
        for blocked in state.blocked.iter_mut().rev() {
            if blocked.since.is_some() {
                return;
            }
            blocked.since = Some(now);
        }
    }
}
