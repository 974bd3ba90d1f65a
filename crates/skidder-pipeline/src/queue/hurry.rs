//! When to send earlier than full batches say, also for outputs that collect events until they have enough of them.
//!
//! Collected events count against the bounds of the queue. If they fill it, no more events come in, and a wait for
//! more would never end.

use super::{Queue, Shared};

impl Queue {
    /// From now on workers take what is there without waiting for full batches: the readers are at the end, or
    /// the program is stopping.
    pub fn drain(&self) {
        self.shared.lock().draining = true;
        self.shared.wake();
    }

    /// Workers take what is there now without waiting for full batches: an input waits for its verdicts.
    pub fn flush(&self) {
        self.shared.lock().flushing = true;
        self.shared.work.notify_one();
    }

    /// Whether the readers are at the end, or the program is stopping: an output should send what it has collected.
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
