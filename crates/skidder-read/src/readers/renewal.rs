//! Workers that make room for others: what the allocator keeps for a thread is given back only with the thread.

use super::Readers;
use std::sync::atomic::Ordering;

impl Readers {
    /// Asks all workers to make room for others when they have nothing to do.
    pub fn renew_workers(&self) {
        self.renewals.fetch_add(1, Ordering::Relaxed);
        self.work.notify_all();
    }

    /// How often the workers were asked to make room for others. One that began before the last time ends when it has
    /// nothing to do.
    pub fn renewals(&self) -> u64 {
        self.renewals.load(Ordering::Relaxed)
    }
}
