//! Events between the queue and the workers of an output that keeps no finished requests.
//!
//! A feeder keeps one share of events ready, so that it fills while the workers send. What a worker could not
//! bring to its server goes back to the front, for the next free worker: a dead host holds nothing back.

use skidder_pipeline::{Delivery, Queue, TakeLimits};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Events that one worker sends together.
pub type Share = Vec<Delivery>;

/// See the module's text.
#[derive(Debug, Default)]
pub struct Supply {
    state: Mutex<State>,
    /// Workers wait here for events, or for the end.
    changed: Notify,
    /// The feeder waits here until the share that was ready is taken.
    taken: Notify,
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<Share>,
    /// Shares that workers hold.
    held: usize,
    /// The queue has nothing more.
    queue_ended: bool,
}

impl State {
    fn ended(&self) -> bool {
        self.queue_ended && self.held == 0 && self.ready.is_empty()
    }
}

impl Supply {
    /// Takes events from the queue until it ends; runs in parallel to the workers.
    pub async fn feed(&self, queue: &Queue, limits: TakeLimits) {
        loop {
            let taken = self.taken.notified();
            if !self.lock().ready.is_empty() {
                taken.await;
                continue;
            }
            let mut share = Vec::new();
            let more = queue.take(limits, &mut share).await;
            let mut state = self.lock();
            if !more {
                state.queue_ended = true;
                drop(state);
                self.changed.notify_waiters();
                return;
            }
            state.ready.push_back(share);
            drop(state);
            self.changed.notify_waiters();
        }
    }

    /// The next share; nothing when there will be no more. Each one must be followed by [`Supply::done`] or
    /// [`Supply::give_back`]. May be dropped while it waits.
    pub async fn take(&self) -> Option<Share> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                if let Some(share) = state.ready.pop_front() {
                    state.held += 1;
                    let empty = state.ready.is_empty();
                    drop(state);
                    if empty {
                        self.taken.notify_one();
                    }
                    return Some(share);
                }
                if state.ended() {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// So many shares are settled.
    pub fn done(&self, shares: usize) {
        let mut state = self.lock();
        state.held -= shares;
        let ended = state.ended();
        drop(state);
        if ended {
            self.changed.notify_waiters();
        }
    }

    /// Puts back the unsent rest of `held` shares, oldest first, for another worker.
    pub fn give_back(&self, held: usize, left: Vec<Share>) {
        let mut state = self.lock();
        state.held -= held;
        for share in left.into_iter().rev().filter(|share| !share.is_empty()) {
            state.ready.push_front(share);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits until there will be no more events.
    pub async fn ended(&self) {
        loop {
            let changed = self.changed.notified();
            if self.lock().ended() {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::batch_with;
    use skidder_event::Map;
    use skidder_pipeline::{QueueLimits, Settle};
    use std::time::Duration;

    const LIMITS: TakeLimits = TakeLimits { events: 1, bytes: usize::MAX };

    fn queue(lines: &[&str]) -> Queue {
        let limits = QueueLimits { flush_min_events: 0, ..QueueLimits::default() };
        let queue = Queue::new(limits, Settle::new());
        for line in lines {
            let batch = batch_with(&[line], &Map::new(), &Map::new());
            queue.push(batch).expect("the queue is open");
        }
        queue
    }

    fn text(share: &Share) -> Vec<&[u8]> {
        let message = |delivery: &Delivery| delivery.batch.rows()[0].message;
        share.iter().map(|delivery| delivery.batch.text(message(delivery))).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_back_is_first_and_the_end_waits_for_it() {
        let queue = queue(&["a", "b", "c"]);
        queue.close();
        let supply = Supply::default();
        let worker = async {
            let first = supply.take().await.unwrap();
            let second = supply.take().await.unwrap();
            assert_eq!((text(&first), text(&second)), (vec![&b"a"[..]], vec![&b"b"[..]]));
            supply.give_back(2, vec![first, Vec::new(), second]);
            let mut order = Vec::new();
            for _ in 0..3 {
                let share = supply.take().await.unwrap();
                order.extend(text(&share).concat());
            }
            assert_eq!(order, b"abc");
            // The queue is empty, but three shares may come back.
            let waiting = tokio::time::timeout(Duration::from_secs(9), supply.ended()).await;
            waiting.unwrap_err();
            supply.done(3);
            supply.ended().await;
            assert!(supply.take().await.is_none());
        };
        tokio::join!(supply.feed(&queue, LIMITS), worker);
    }

    #[tokio::test]
    async fn an_empty_queue_ends_workers_that_never_took_anything() {
        let queue = queue(&[]);
        queue.close();
        let supply = Supply::default();
        tokio::join!(supply.feed(&queue, LIMITS), supply.ended());
        assert!(supply.take().await.is_none());
    }
}
