//! Threads and tasks whose batch stands in line, because the queue is full.

use super::Queue;
use skidder_event::{Batch, DropReason, Progress};
use skidder_os::Clock;
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::Duration;
use tokio::sync::Notify;

/// The thread or task that waits until a batch is in the queue.
#[derive(Debug)]
pub(super) enum Waiter {
    Thread(Thread),
    Task(Arc<Notify>),
}

impl Waiter {
    pub(super) fn wake(&self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(task) => task.notify_one(),
        }
    }
}

/// A batch of a task that stands in line. A task that is dropped while it waits takes its batch out again.
struct InLine<'a> {
    queue: &'a Queue,
    number: u64,
}

/// The state of a batch in line.
enum Standing {
    /// It is in the queue.
    In,
    /// The queue was closed before.
    Closed(Box<Batch>),
    Waiting,
}

impl InLine<'_> {
    fn look(&self) -> Standing {
        let mut state = self.queue.shared.lock();
        let at = state.blocked.iter().position(|blocked| blocked.number == self.number);
        let Some(at) = at else { return Standing::In };
        if !state.closed {
            return Standing::Waiting;
        }
        match state.blocked.remove(at) {
            Some(blocked) => Standing::Closed(Box::new(blocked.batch)),
            None => Standing::In,
        }
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.shared.lock();
        let at = state.blocked.iter().position(|blocked| blocked.number == self.number);
        let gone = at.and_then(|at| state.blocked.remove(at));
        // Others behind it may have room now that it no longer stands before them.
        let is_enough = gone.is_some() && self.queue.shared.let_in(&mut state);
        drop(state);
        if is_enough {
            self.queue.shared.work.notify_one();
        }
        // Outside of the lock: a far side that waits for the batch learns that it must send it again.
        if let Some(gone) = gone {
            self.queue.give_up(gone.batch, DropReason::Stopped);
        }
    }
}

impl Queue {
    /// Gives up a batch for which there is no room: if its source cannot send it again, its events are counted as dropped
    /// for this reason; else the far side sends it again, or the cursor stays before it.
    pub fn give_up(&self, mut batch: Batch, reason: DropReason) {
        if let Progress::Nothing(_) = batch.provenance().progress {
            batch.drop_all(reason);
            self.shared.settle.admit(&mut batch, None);
        }
    }

    /// Puts a batch in as [`Queue::push`] does, for a task: while there is no room the task waits, and its thread does
    /// not. A task that is dropped while it waits takes its batch with it.
    pub async fn push_async(&self, batch: Batch, clock: &dyn Clock) -> Result<(), Batch> {
        let Err(batch) = self.try_push(batch) else { return Ok(()) };
        let room = Arc::new(Notify::new());
        let waiter = Waiter::Task(Arc::clone(&room));
        let Some(number) = self.shared.stand_in_line(batch, None, waiter)? else { return Ok(()) };
        let line = InLine { queue: self, number };
        self.note_blocked(clock.monotonic());
        loop {
            // Letting the batch in leaves a permit there, also before this waits.
            room.notified().await;
            match line.look() {
                Standing::In => return Ok(()),
                Standing::Closed(batch) => return Err(*batch),
                Standing::Waiting => {}
            }
        }
    }

    /// Waits until the batch with this number is in; does `again` each time that `every` has passed.
    #[expect(clippy::result_large_err, reason = "one move a batch, and only at the end")]
    pub(super) fn wait_in_line(
        &self,
        number: u64,
        every: Duration,
        mut again: impl FnMut(),
    ) -> Result<(), Batch> {
        loop {
            let mut state = self.shared.lock();
            let Some(at) = state.blocked.iter().position(|blocked| blocked.number == number) else {
                return Ok(());
            };
            if state.closed
                && let Some(blocked) = state.blocked.remove(at)
            {
                return Err(blocked.batch);
            }
            drop(state);
            thread::park_timeout(every);
            again();
        }
    }
}
