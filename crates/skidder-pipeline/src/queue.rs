//! The memory queue: whole batches between readers and the workers of one output.
//!
//! Bounded in events and in bytes; both count what is queued *and* what is in flight, as Filebeat's
//! `queue.mem.events` does. A batch larger than a bound is admitted alone, so that nothing is ever
//! too large to be read.

mod blocked;
mod delivery;
mod hurry;
mod limits;
mod permit;
mod tap;
mod watched;

use blocked::Waiter;
pub use delivery::Delivery;
pub use limits::{QueueLimits, TakeLimits};
pub(crate) use permit::Permit;
pub use tap::Tap;

use crate::metrics::QueueMetrics;
use crate::settle::{Settle, Ticket, TicketOf};
use skidder_event::Batch;
use skidder_os::Monotonic;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The queue of one output. Cloning gives another handle to the same queue.
#[derive(Clone, Debug)]
pub struct Queue {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: QueueLimits,
    settle: Arc<Settle>,
    state: Mutex<State>,
    /// Workers wait here for events.
    work: Notify,
    /// Outputs that collect events wait here until they should send them.
    hurry: Notify,
    metrics: QueueMetrics,
    tap: Tap,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Delivery>,
    /// Events in `waiting`.
    queued: usize,
    /// So many of them wake a worker that waits; the maximum once one was woken.
    wake_at: usize,
    /// Events queued and in flight.
    events: usize,
    /// Bytes queued and in flight.
    bytes: usize,
    /// Batches for which there is no room yet, in order of arrival, so that small ones do not overtake a large
    /// one for ever.
    blocked: VecDeque<Blocked>,
    /// Numbers drawn so far.
    drawn: u64,
    /// No more events are admitted; workers take what is there without waiting.
    closed: bool,
    /// No more events are handed out either.
    aborted: bool,
    /// Workers take what is there without waiting for a full batch.
    draining: bool,
    /// The same until they have taken all of it.
    flushing: bool,
    /// The thread that brings events from the disk and waits until some are taken.
    feeder: Option<Thread>,
    /// When a worker took events last.
    taken_at: Option<Instant>,
}

/// A batch that waits for room. It is not on the ledger yet.
#[derive(Debug)]
struct Blocked {
    /// The number that was drawn for it.
    number: u64,
    batch: Batch,
    events: usize,
    bytes: usize,
    /// Its place in the disk queue, if it comes from there.
    frame: Option<TicketOf>,
    /// The thread or task that waits until it is in.
    waiter: Waiter,
    /// Since when, if noted ([`Queue::note_blocked`]).
    since: Option<Monotonic>,
}

/// What a look into the queue found.
#[derive(Debug)]
enum Look {
    Taken,
    Wait,
    /// There are some, but few. Any are taken when none were for `flush_timeout`; the last ones were at this time.
    WaitForMore(Option<Instant>),
    Ended,
}

impl Queue {
    /// An empty queue whose batches are settled by `settle`.
    pub fn new(limits: QueueLimits, settle: Arc<Settle>) -> Self {
        let shared = Shared {
            limits,
            settle,
            state: Mutex::default(),
            work: Notify::new(),
            hurry: Notify::new(),
            metrics: QueueMetrics::default(),
            tap: Tap::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The settle behind this queue.
    pub fn settle(&self) -> &Arc<Settle> {
        &self.shared.settle
    }

    /// Its bounds.
    pub fn limits(&self) -> &QueueLimits {
        &self.shared.limits
    }

    /// Its counters.
    pub fn metrics(&self) -> &QueueMetrics {
        &self.shared.metrics
    }

    /// Puts a batch in, waiting for room. Returns the batch when the queue was closed: it is not
    /// on the ledger then.
    #[expect(clippy::result_large_err, reason = "one move a batch, and only at the end")]
    pub fn push(&self, batch: Batch) -> Result<(), Batch> {
        self.push_meanwhile(batch, || {}, Duration::MAX, || {})
    }

    /// The same; if there is no room, it calls `meanwhile` first, and `again` each time that `every` has passed
    /// without room. The batch gets in as soon as there is room, even before these calls return.
    #[expect(clippy::result_large_err, reason = "one move a batch, and only at the end")]
    pub fn push_meanwhile(
        &self,
        batch: Batch,
        meanwhile: impl FnOnce(),
        every: Duration,
        again: impl FnMut(),
    ) -> Result<(), Batch> {
        let Err(batch) = self.try_push(batch) else { return Ok(()) };
        let thread = Waiter::Thread(thread::current());
        let Some(number) = self.shared.stand_in_line(batch, None, thread)? else { return Ok(()) };
        meanwhile();
        self.wait_in_line(number, every, again)
    }

    /// Puts the events of a frame of the disk queue in, of which there is at least one, as [`Queue::push`] does.
    #[expect(clippy::result_large_err, reason = "one move a batch, and only at the end")]
    pub(crate) fn push_of(&self, batch: Batch, frame: TicketOf) -> Result<(), Batch> {
        match self.shared.stand_in_line(batch, Some(frame), Waiter::Thread(thread::current()))? {
            Some(number) => self.wait_in_line(number, Duration::MAX, || {}),
            None => Ok(()),
        }
    }

    /// Puts a batch in if there is room, or returns it.
    #[expect(clippy::result_large_err, reason = "one move a batch, and only when full")]
    pub fn try_push(&self, batch: Batch) -> Result<(), Batch> {
        let (events, bytes) = (batch.len(), batch.memory_bytes());
        let mut state = self.shared.lock();
        let has_room = state.has_room(&self.shared.limits, events, bytes);
        if state.closed || !state.blocked.is_empty() || !has_room {
            return Err(batch);
        }
        let is_enough = self.shared.put(&mut state, batch, events, bytes, None);
        drop(state);
        if is_enough {
            self.shared.work.notify_one();
        }
        Ok(())
    }

    /// Takes events for one request into `out`, waiting as the flush settings say. `false` means
    /// that the queue is closed and empty: the worker's end.
    pub async fn take(&self, limits: TakeLimits, out: &mut Vec<Delivery>) -> bool {
        let wanted = self.wanted(limits);
        let mut deadline: Option<Instant> = None;
        loop {
            let notified = self.shared.work.notified();
            let expired = deadline.is_some_and(|at| at <= Instant::now());
            match self.look(limits, if expired { 1 } else { wanted }, out) {
                Look::Taken => return true,
                Look::Ended => {
                    // The others must learn it too.
                    self.shared.work.notify_one();
                    return false;
                }
                Look::Wait => {
                    deadline = None;
                    notified.await;
                }
                Look::WaitForMore(taken_at) => {
                    let limits = &self.shared.limits;
                    let until = *deadline.get_or_insert_with(|| limits.flush_at(taken_at));
                    // Either way the next look decides.
                    drop(tokio::time::timeout_at(until, notified).await);
                }
            }
        }
    }

    /// Waits until there is something to take; `false` if there will never be.
    pub(crate) async fn wait_for_work(&self) -> bool {
        loop {
            let notified = self.shared.work.notified();
            let known = self.shared.lock().has_work();
            if let Some(more) = known {
                return more;
            }
            notified.await;
        }
    }

    /// Takes what is there, without waiting for anything; returns whether there was something.
    pub fn try_take(&self, limits: TakeLimits, out: &mut Vec<Delivery>) -> bool {
        matches!(self.look(limits, 1, out), Look::Taken)
    }

    /// Admits no more events. Workers end when they have taken what is there.
    pub fn close(&self) {
        let mut state = self.shared.lock();
        state.close();
        state.draining = true;
        drop(state);
        self.shared.wake();
    }

    /// Closes the queue and drops what is in it; those events stay in flight and are read again
    /// by the next start.
    pub fn abort(&self) {
        self.close();
        let mut state = self.shared.lock();
        state.aborted = true;
        let waiting = std::mem::take(&mut state.waiting);
        state.queued = 0;
        drop(state);
        // Outside the lock: a ticket gives its permit back when it goes.
        drop(waiting);
        self.shared.work.notify_one();
    }

    /// Takes out what no worker has taken, and admits no more events; those in flight may still get their verdict.
    pub(crate) fn clear(&self) {
        let mut state = self.shared.lock();
        state.close();
        let waiting = std::mem::take(&mut state.waiting);
        state.queued = 0;
        drop(state);
        drop(waiting);
        self.shared.wake();
    }

    /// Waits until fewer than so many events wait for a worker; `false` if the queue is closed.
    pub(crate) fn wait_below(&self, events: usize) -> bool {
        loop {
            let mut state = self.shared.lock();
            if state.closed || state.queued < events {
                return !state.closed;
            }
            state.feeder = Some(thread::current());
            drop(state);
            thread::park();
        }
    }

    fn wanted(&self, limits: TakeLimits) -> usize {
        let most = match limits.events {
            0 => self.shared.limits.events / 2,
            events => events,
        };
        // Waiting for more than half of the room could wait for what cannot come.
        self.shared.limits.flush_min_events.min(most).min(self.shared.limits.events / 2).max(1)
    }

    fn look(&self, limits: TakeLimits, wanted: usize, out: &mut Vec<Delivery>) -> Look {
        let mut state = self.shared.lock();
        if state.waiting.is_empty() {
            // The first event begins the time that a worker waits for more.
            state.wake_at = 1;
            state.flushing = false;
            return if state.closed { Look::Ended } else { Look::Wait };
        }
        if state.queued < wanted && !(state.draining || state.flushing) && state.blocked.is_empty()
        {
            state.wake_at = state.wake_at.min(wanted);
            return Look::WaitForMore(state.taken_at);
        }
        let most = match limits.events {
            0 => usize::MAX,
            events => events,
        };
        let most = match self.shared.limits.flush_min_events {
            0 | 1 => most,
            events => most.min(events),
        };
        let taken = state.cut(most, limits.bytes, out);
        state.taken_at = Some(Instant::now());
        // Others may be waiting.
        state.wake_at = 1;
        let more = !state.waiting.is_empty() || state.closed;
        let feeder = state.feeder.take();
        drop(state);
        if let Some(feeder) = feeder {
            feeder.unpark();
        }
        self.shared.metrics.consumed.add(taken as u64);
        if more {
            self.shared.work.notify_one();
        }
        Look::Taken
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a batch for which there was no room a place in the line, and its number; `None` if there is room
    /// after all.
    #[expect(clippy::result_large_err, reason = "one move a batch, and only at the end")]
    fn stand_in_line(
        self: &Arc<Self>,
        batch: Batch,
        frame: Option<TicketOf>,
        waiter: Waiter,
    ) -> Result<Option<u64>, Batch> {
        let (events, bytes) = (batch.len(), batch.memory_bytes());
        let mut state = self.lock();
        if state.closed {
            return Err(batch);
        }
        let number = state.drawn;
        state.drawn += 1;
        state.blocked.push_back(Blocked {
            number,
            batch,
            events,
            bytes,
            frame,
            waiter,
            since: None,
        });
        let is_enough = self.let_in(&mut state);
        let is_in = state.blocked.back().is_none_or(|blocked| blocked.number != number);
        // A worker that waits for a fuller batch would wait in vain.
        let is_looked_at = is_enough || !(is_in || state.waiting.is_empty());
        drop(state);
        if is_looked_at {
            self.work.notify_one();
        }
        if !is_in {
            self.hurry.notify_waiters();
        }
        Ok((!is_in).then_some(number))
    }

    /// Takes back the room of settled events, for batches that wait for it.
    fn make_room(self: &Arc<Self>, events: usize, bytes: usize) {
        let mut state = self.lock();
        state.events -= events;
        state.bytes -= bytes;
        let is_enough = self.let_in(&mut state);
        drop(state);
        if is_enough {
            self.work.notify_one();
        }
    }

    /// Admits batches from the front of the line, as long as there is room. Their readers need not run for
    /// that. Returns whether a worker should look.
    fn let_in(self: &Arc<Self>, state: &mut State) -> bool {
        let mut is_enough = false;
        while let Some(front) = state.blocked.front()
            && !state.closed
            && state.has_room(&self.limits, front.events, front.bytes)
            && let Some(first) = state.blocked.pop_front()
        {
            is_enough |= self.put(state, first.batch, first.events, first.bytes, first.frame);
            first.waiter.wake();
        }
        is_enough
    }

    /// Admits a batch for which there is room. Returns whether a worker should look.
    fn put(
        self: &Arc<Self>,
        state: &mut State,
        mut batch: Batch,
        events: usize,
        bytes: usize,
        frame: Option<TicketOf>,
    ) -> bool {
        if events == 0 {
            self.settle.admit(&mut batch, None);
            return false;
        }
        state.events += events;
        state.bytes += bytes;
        let permit = Some(Permit::new(self, events, bytes));
        // Admitted under the queue's lock, so that ranges of a source are in line in its order.
        let ticket = match frame {
            None => self.settle.admit(&mut batch, permit),
            Some(frame) => Ticket::new(&self.settle, frame, events as u32, permit),
        };
        let rows = 0..events as u32;
        let batch = Arc::new(batch);
        self.tap.offer(&batch);
        state.waiting.push_back(Delivery { batch, rows, ticket });
        state.queued += events;
        self.metrics.added.add(events as u64);
        let is_enough = state.queued >= state.wake_at || state.draining;
        if is_enough {
            state.wake_at = usize::MAX;
        }
        is_enough
    }
}

impl State {
    /// Closes the queue, and wakes all that wait for room.
    fn close(&mut self) {
        self.closed = true;
        self.blocked.iter().for_each(|blocked| blocked.waiter.wake());
        if let Some(feeder) = &self.feeder {
            feeder.unpark();
        }
    }

    /// Whether there is something to take, or nothing will ever be; if neither, the next event wakes.
    fn has_work(&mut self) -> Option<bool> {
        let is_known = !self.waiting.is_empty() || self.closed;
        self.wake_at = 1;
        is_known.then_some(!self.waiting.is_empty())
    }

    fn has_room(&self, limits: &QueueLimits, events: usize, bytes: usize) -> bool {
        self.events == 0
            || (self.events + events <= limits.events && self.bytes + bytes <= limits.bytes)
    }

    /// Moves up to `most` events and `bytes` bytes of messages to `out`; returns how many events.
    fn cut(&mut self, most: usize, bytes: usize, out: &mut Vec<Delivery>) -> usize {
        let (mut events, mut weight) = (0, 0);
        while let Some(front) = self.waiting.front_mut() {
            let rows = &front.batch.rows()[front.rows.start as usize..front.rows.end as usize];
            let mut count = 0;
            for row in rows {
                let more = row.message.len as usize;
                if events + count == most || (events + count > 0 && weight + more > bytes) {
                    break;
                }
                weight += more;
                count += 1;
            }
            events += count;
            if count == rows.len() {
                out.extend(self.waiting.pop_front());
                continue;
            }
            if count > 0 {
                let middle = front.rows.start + count as u32;
                let mut head = front.clone();
                head.rows.end = middle;
                front.rows.start = middle;
                out.push(head);
            }
            break;
        }
        self.queued -= events;
        events
    }
}

#[cfg(test)]
mod tests;
