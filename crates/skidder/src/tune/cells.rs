//! One cell of the grid: an output with its sizes takes events for some seconds.

use super::events::Events;
use crate::system::System;
use anyhow::{Context as _, Result};
use skidder_event::{Bases, Batch};
use skidder_outputs::{Trial, TrialSizes};
use skidder_pipeline::{Feed, OutputMetrics, Queue, QueueLimits, Settle};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;

/// The part of a cell's time that is not measured: connections and first requests.
const WARM_UP: u32 = 5;
/// Threads that make events, at most.
const MAKERS_MAX: usize = 4;
/// Requests that an output has ready or under way, for each worker.
const REQUESTS: usize = 2;

/// What a cell is tried with.
pub(crate) struct Bench<'a> {
    pub(crate) system: &'a System,
    pub(crate) runtime: &'a Runtime,
    pub(crate) events: &'a Events,
    /// How long a cell lasts.
    pub(crate) seconds: Duration,
}

/// The result of a cell; numbers are per second unless noted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) sizes: TrialSizes,
    /// Events that the server took.
    pub(crate) rate: f64,
    /// Bytes as they were sent.
    pub(crate) bytes: f64,
    /// Mean time from a request to its answer, in milliseconds.
    pub(crate) latency_ms: f64,
    /// Events that were answered 429, all in all.
    pub(crate) too_many: u64,
    /// Events that were refused for good, all in all.
    pub(crate) refused: u64,
    /// Requests that failed as a whole: another status than 2xx, no answer, no connection; all in all.
    pub(crate) failed: u64,
}

/// Counts at one time.
#[derive(Clone, Copy, Debug)]
struct Counts {
    acked: u64,
    bytes: u64,
    requests: u64,
    latency_ns: u64,
}

impl Counts {
    fn of(metrics: &OutputMetrics) -> Self {
        Self {
            acked: metrics.acked.get(),
            bytes: metrics.write_bytes.get(),
            requests: metrics.batches.get(),
            latency_ns: metrics.latency_ns.get(),
        }
    }
}

impl Bench<'_> {
    /// Tries sizes. `None` after a signal.
    pub(crate) fn run(
        &self,
        trial: &dyn Trial,
        sizes: TrialSizes,
        stop: &Receiver<()>,
    ) -> Result<Option<Cell>> {
        let queue = Queue::new(self.limits(sizes), Settle::new());
        let metrics = Arc::new(OutputMetrics::default());
        let feed = Feed {
            queue: queue.clone(),
            dead_letters: None,
            metrics: Arc::clone(&metrics),
            clock: Arc::clone(&self.system.clock),
        };
        let output = self.runtime.spawn(trial.output(sizes).run(feed));
        let next = AtomicUsize::new(0);
        let measured = std::thread::scope(|scope| {
            let makers: Result<Vec<_>> = (0..self.system.cores.min(MAKERS_MAX))
                .map(|_| {
                    let maker = std::thread::Builder::new()
                        .name("maker".to_owned())
                        .stack_size(Batch::RESTORE_STACK_BYTES);
                    let spawned = maker.spawn_scoped(scope, || self.make(&queue, &next));
                    spawned.context("cannot start a thread")
                })
                .collect();
            let measured =
                makers.and_then(|makers| self.measure(sizes, &metrics, stop, makers, &queue));
            // Ends the makers too.
            queue.abort();
            measured
        });
        output.abort();
        // It was aborted: there is nothing to learn from how it ended, unless it panicked.
        match self.runtime.block_on(output) {
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            _ => measured,
        }
    }

    /// The queue: as recommended, and not below the default.
    fn limits(&self, sizes: TrialSizes) -> QueueLimits {
        let default = QueueLimits::default();
        let events = queue_events(sizes);
        QueueLimits {
            events,
            bytes: queue_bytes(sizes, self.events.memory_bytes).max(default.bytes),
            flush_min_events: sizes.events,
            flush_timeout: Duration::from_secs(1),
        }
    }

    /// Puts events into the queue until it is closed.
    fn make(&self, queue: &Queue, next: &AtomicUsize) -> Result<()> {
        let mut bases = Bases::default();
        loop {
            let batch = self.events.batch(next.fetch_add(1, Ordering::Relaxed), &mut bases)?;
            if queue.push(batch).is_err() {
                return Ok(());
            }
        }
    }

    fn measure(
        &self,
        sizes: TrialSizes,
        metrics: &OutputMetrics,
        stop: &Receiver<()>,
        makers: Vec<ScopedJoinHandle<'_, Result<()>>>,
        queue: &Queue,
    ) -> Result<Option<Cell>> {
        let warm_up = self.seconds / WARM_UP;
        if stop.recv_timeout(warm_up) != Err(RecvTimeoutError::Timeout) {
            return Ok(None);
        }
        let (began, before) = (self.system.clock.monotonic(), Counts::of(metrics));
        if stop.recv_timeout(self.seconds.saturating_sub(warm_up)) != Err(RecvTimeoutError::Timeout)
        {
            return Ok(None);
        }
        let (ended, after) = (self.system.clock.monotonic(), Counts::of(metrics));
        queue.abort();
        for maker in makers {
            maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        let seconds = ended.since(began).as_secs_f64();
        let requests = (after.requests - before.requests).max(1) as f64;
        Ok(Some(Cell {
            sizes,
            rate: (after.acked - before.acked) as f64 / seconds,
            bytes: (after.bytes - before.bytes) as f64 / seconds,
            latency_ms: (after.latency_ns - before.latency_ns) as f64 / 1e6 / requests,
            too_many: metrics.too_many.get(),
            refused: metrics.dropped.get(),
            failed: metrics.write_errors.get(),
        }))
    }
}

/// `queue.mem.events` that sizes need, with one more request for the one being built.
pub(crate) fn queue_events(sizes: TrialSizes) -> usize {
    ((REQUESTS * sizes.workers + 1) * sizes.events).max(QueueLimits::default().events)
}

/// `queue.mem.bytes` that they need, with a quarter more for events that are longer.
pub(crate) fn queue_bytes(sizes: TrialSizes, event_bytes: usize) -> usize {
    queue_events(sizes) * event_bytes * 5 / 4
}
