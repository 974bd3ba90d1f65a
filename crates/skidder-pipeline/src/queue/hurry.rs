//! For outputs that keep events to themselves until they have enough of them: when to let go earlier.
//!
//! What they keep counts against the bounds of the queue. If it fills them, nothing more comes in, and waiting for more
//! would be waiting for ever.

use super::{Queue, Shared};

impl Queue {
    /// Whether the readers have nothing more, or the program is to stop: what an output keeps should be sent.
    pub fn is_draining(&self) -> bool {
        let state = self.shared.lock();
        state.draining || state.closed
    }

    /// Waits until [`Queue::is_draining`] holds; or, with `or_full`, until a batch waits for room. May be dropped while it
    /// waits.
    pub async fn hurried(&self, or_full: bool) {
        loop {
            let notified = self.shared.hurry.notified();
            {
                let state = self.shared.lock();
                if state.draining || state.closed || (or_full && !state.blocked.is_empty()) {
                    return;
                }
            }
            notified.await;
        }
    }
}

impl Shared {
    /// Wakes all that wait for a change of the state.
    pub(super) fn wake(&self) {
        self.work.notify_one();
        self.hurry.notify_waiters();
    }
}
