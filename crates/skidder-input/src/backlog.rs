//! Events that were offered while a queue was full: they wait here, up to a bound in bytes, and go in in their order.

use crate::intake::Waiting;
use crate::metrics::{InputMetrics, WaitingBatch};
use skidder_event::{Batch, DropReason};
use skidder_os::Clock;
use skidder_pipeline::Queue;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The batches that wait for room in the queue of one output.
#[derive(Debug)]
pub(crate) struct Backlog {
    bytes_max: usize,
    /// What waits of inputs before this one counts as well.
    before: Vec<Waiting>,
    state: Mutex<State>,
    /// Notified when there is a batch to put into the queue.
    more: Notify,
    /// Notified when none is left.
    empty: Notify,
}

#[derive(Debug, Default)]
struct State {
    batches: VecDeque<Batch>,
    /// Of these, and of the one that is on its way into the queue.
    bytes: usize,
    /// One is on its way into the queue.
    is_pushing: bool,
    /// Nothing empties it any more.
    is_closed: bool,
}

impl State {
    fn is_empty(&self) -> bool {
        self.batches.is_empty() && !self.is_pushing
    }
}

/// Gives up the rest of a backlog when nothing empties it any more.
struct GiveUp<'a>(&'a Backlog, &'a Queue);

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        (state.is_pushing, state.bytes) = (false, 0);
        let left = std::mem::take(&mut state.batches);
        drop(state);
        for batch in left {
            self.1.give_up(batch, DropReason::Stopped);
        }
        self.0.empty.notify_waiters();
    }
}

impl Backlog {
    /// An empty one with room for so many bytes of batches.
    pub(crate) fn new(bytes_max: usize, before: Vec<Waiting>) -> Self {
        let (state, more, empty) = (Mutex::default(), Notify::new(), Notify::new());
        Self { bytes_max, before, state, more, empty }
    }

    /// Bytes of what waits.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Puts a batch into the queue, or behind those that wait for room there. Gives it back if there is no room either way.
    #[expect(clippy::result_large_err, reason = "one move a batch, and only when full")]
    pub(crate) fn offer(&self, queue: &Queue, mut batch: Batch) -> Result<(), Batch> {
        let mut state = self.lock();
        if state.is_empty() {
            match queue.try_push(batch) {
                Ok(()) => return Ok(()),
                Err(back) => batch = back,
            }
        }
        let bytes = batch.memory_bytes();
        let before: usize = self.before.iter().map(Waiting::bytes).sum();
        if state.is_closed || before + state.bytes + bytes > self.bytes_max {
            return Err(batch);
        }
        state.bytes += bytes;
        state.batches.push_back(batch);
        drop(state);
        self.more.notify_one();
        Ok(())
    }

    /// Moves batches into the queue as there is room, without end. Batches left when this is dropped are given up.
    pub(crate) async fn empty_into(
        &self,
        queue: &Queue,
        clock: &dyn Clock,
        metrics: &Arc<InputMetrics>,
    ) {
        let _rest = GiveUp(self, queue);
        loop {
            let next = {
                let mut state = self.lock();
                let next = state.batches.pop_front();
                state.is_pushing = next.is_some();
                next
            };
            let Some(batch) = next else {
                self.empty.notify_waiters();
                self.more.notified().await;
                continue;
            };
            let bytes = batch.memory_bytes();
            let _waiting = WaitingBatch::new(metrics);
            if let Err(batch) = queue.push_async(batch, clock).await {
                // The output has ended.
                queue.give_up(batch, DropReason::Stopped);
            }
            self.lock().bytes -= bytes;
        }
    }

    /// Waits until nothing is left.
    pub(crate) async fn wait_empty(&self) {
        loop {
            let empty = self.empty.notified();
            tokio::pin!(empty);
            empty.as_mut().enable();
            if self.is_empty() {
                return;
            }
            empty.await;
        }
    }
}
