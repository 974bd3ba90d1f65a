//! Sizes that find themselves: how many requests are under way, and how large they are.
//!
//! Users who write `auto` for `worker`, `bulk_max_size` or `compression_level` leave these to the server's
//! answers: see [`search`]. Numbers that users wrote stay as they are.

mod search;

pub(crate) use search::{Bounds, Ended, Sizes};

use search::{Effect, Report, Search};
use skidder_os::Clock;
use skidder_pipeline::{Feed, Queue};
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The sizes of one output, shared by its workers.
pub(crate) struct Tuner {
    search: Mutex<Search>,
    /// The sizes of `search`, to be read without a lock.
    workers: AtomicUsize,
    events: AtomicUsize,
    level: AtomicU32,
    /// Nothing is to be found: all sizes are given.
    fixed: bool,
    /// Workers beyond those allowed wait here.
    more: Notify,
    /// The queue has ended: no worker waits any longer.
    ended: std::sync::atomic::AtomicBool,
    queue: Queue,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Tuner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuner").field("search", &self.search).finish_non_exhaustive()
    }
}

impl Tuner {
    /// Begins with `sizes`.
    pub(crate) fn new(bounds: Bounds, sizes: Sizes, feed: &Feed) -> Self {
        Self {
            search: Mutex::new(Search::new(bounds, sizes)),
            workers: AtomicUsize::new(sizes.workers),
            events: AtomicUsize::new(sizes.events),
            level: AtomicU32::new(sizes.level),
            fixed: bounds.workers.0 == bounds.workers.1
                && bounds.events.0 == bounds.events.1
                && !bounds.plain,
            more: Notify::new(),
            ended: false.into(),
            queue: feed.queue.clone(),
            clock: Arc::clone(&feed.clock),
        }
    }

    /// Requests under way at once, to each host.
    pub(crate) fn workers(&self) -> usize {
        self.workers.load(Ordering::Acquire)
    }

    /// Most events of the next request.
    pub(crate) fn events(&self) -> usize {
        self.events.load(Ordering::Relaxed)
    }

    /// The level at which its body is compressed.
    pub(crate) fn level(&self) -> u32 {
        self.level.load(Ordering::Relaxed)
    }

    /// Waits until the worker with this number, from 0, is one of those that may send.
    pub(crate) async fn may_send(&self, worker: usize) {
        self.allowed(worker, false).await;
    }

    /// Waits until the worker with this number, from 0, is one of those that may take events; or until the end.
    pub(crate) async fn may_take(&self, worker: usize) {
        self.allowed(worker, true).await;
    }

    async fn allowed(&self, worker: usize, or_ended: bool) {
        loop {
            let more = self.more.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            let ended = or_ended && self.ended.load(Ordering::Acquire);
            if ended || worker < self.workers() {
                return;
            }
            more.await;
        }
    }

    /// The queue has nothing more: those that wait end too.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.more.notify_waiters();
    }

    /// Whether there is more to send than the server takes: the queue is half full.
    fn wanted(&self) -> bool {
        let (events, bytes) = self.queue.filled();
        let limits = self.queue.limits();
        events >= limits.events / 2 || bytes >= limits.bytes / 2
    }

    /// A request ended. `true` if it was too much, and those from now on are fewer or smaller: that is pause enough.
    pub(crate) fn report(&self, events: u64, bytes: u64, ended: Ended) -> bool {
        if self.fixed {
            return false;
        }
        let now = self.clock.monotonic();
        let wanted = self.wanted();
        let mut search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        let effect = search.report(Report { now, events, bytes, ended, wanted });
        let yielded =
            ended == Ended::TooMany && (effect == Effect::Changed || effect == Effect::Known);
        if effect != Effect::Changed {
            return yielded;
        }
        let sizes = search.sizes();
        self.events.store(sizes.events, Ordering::Relaxed);
        self.level.store(sizes.level, Ordering::Relaxed);
        self.workers.store(sizes.workers, Ordering::Release);
        drop(search);
        tracing::debug!(
            workers = sizes.workers,
            bulk_max_size = sizes.events,
            compression_level = sizes.level,
            "sizes of requests changed"
        );
        self.more.notify_waiters();
        yielded
    }
}
