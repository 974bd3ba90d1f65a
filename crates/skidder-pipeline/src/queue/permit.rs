//! The room of a batch, given back when it is settled.

use super::Shared;
use std::sync::Arc;

/// Room in the queue that a batch takes until it is settled.
#[derive(Debug)]
pub struct Permit {
    queue: Arc<Shared>,
    events: usize,
    bytes: usize,
}

impl Permit {
    /// Of so much, which was counted already.
    pub(super) fn new(queue: &Arc<Shared>, events: usize, bytes: usize) -> Self {
        Self { queue: Arc::clone(queue), events, bytes }
    }

    /// Gives back many at once: one lock and one wake-up instead of many.
    pub(crate) fn give_back(permits: Vec<Self>) {
        let mut all: Option<Self> = None;
        for mut permit in permits {
            match &mut all {
                Some(all) if Arc::ptr_eq(&all.queue, &permit.queue) => {
                    all.events += std::mem::take(&mut permit.events);
                    all.bytes += std::mem::take(&mut permit.bytes);
                }
                _ => all = Some(permit),
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.events == 0 {
            // Its room was given to another.
            return;
        }
        self.queue.metrics.removed.add(self.events as u64);
        self.queue.make_room(self.events, self.bytes);
    }
}
