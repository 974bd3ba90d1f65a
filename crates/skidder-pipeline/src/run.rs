//! The running pipeline: what drives the inputs, the disk queue and the registrar. Outputs run where sockets live, in the
//! caller's runtime; the queue is what both sides share.

use crate::commits::Commits;
use crate::disk::DiskQueue;
use crate::driver::{Driver, Patience, ReadOnce, Stage};
use crate::queue::Queue;
use crate::registrar::Registrar;
use crate::saving::save;
use crate::settle::Settle;
use skidder_os::Clock;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::Duration;

/// The queue between the inputs and an output.
#[derive(Clone)]
pub struct Queues {
    /// Where inputs put batches in.
    pub inputs: Queue,
    /// The queue on the disk, of which that is one end.
    pub disk: Option<Arc<DiskQueue>>,
}

impl Queues {
    /// How long an event waits there for others before it is sent alone. On the disk it does not wait.
    pub fn waits_for_more(&self) -> Duration {
        let limits = self.inputs.limits();
        if self.disk.is_some() || limits.flush_min_events == 0 {
            return Duration::ZERO;
        }
        limits.flush_timeout
    }
}

/// Everything from the inputs to the queue, and from the settle to the registry.
pub struct Pipeline {
    commits: Commits,
    drivers: Vec<Box<dyn Driver>>,
    queue: Queue,
    disk: Option<Arc<DiskQueue>>,
    /// Threads of the disk queue.
    movers: Vec<JoinHandle<()>>,
    settle: Arc<Settle>,
    registrar: Option<JoinHandle<Registrar>>,
    clock: Arc<dyn Clock>,
}

impl Pipeline {
    /// Starts the threads, and the drivers in their order. Cursors are saved `flush` after they moved
    /// (`filebeat.registry.flush`), or earlier.
    ///
    /// # Errors
    /// Those of the system, when threads cannot be started.
    pub fn start(
        flush: Duration,
        mut drivers: Vec<Box<dyn Driver>>,
        Queues { inputs: queue, disk }: Queues,
        registrar: Registrar,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let movers = disk.as_ref().map(DiskQueue::start).transpose()?.unwrap_or_default();
        let commits = Commits::default();
        // The span of the caller, which names the output, holds for the threads, too.
        let span = tracing::Span::current();
        let stage =
            Stage { queue: queue.clone(), commits: commits.clone(), clock: Arc::clone(&clock) };
        for driver in &mut drivers {
            driver.start(&stage)?;
        }
        let saver = {
            let (commits, clock, disk) = (commits.clone(), Arc::clone(&clock), disk.clone());
            let settle = Arc::clone(queue.settle());
            let due = commits.clone();
            settle.set_on_commit_due(move || due.set_due());
            let save = move || save(registrar, disk.as_deref(), flush, &commits, &settle, &*clock);
            let work = move || span.in_scope(save);
            std::thread::Builder::new().name("registrar".to_owned()).spawn(work)?
        };
        let (settle, registrar) = (Arc::clone(queue.settle()), Some(saver));
        Ok(Self { commits, drivers, queue, disk, movers, settle, registrar, clock })
    }

    /// What waits until everything that was there is read, by all drivers. Only if they read once.
    pub fn read_once(&self) -> ReadOnce {
        let waits: Vec<ReadOnce> = self.drivers.iter().map(|driver| driver.read_once()).collect();
        Box::new(move || waits.into_iter().all(|wait| wait()))
    }

    /// Stops reading, except for files that must be read to their end (`read_until_eof`). Queued events are still
    /// sent.
    pub fn stop_reading(&mut self, patience: Patience<'_>) {
        for driver in &mut self.drivers {
            driver.stop();
        }
        self.queue.close();
        // Batches still being read are not admitted any more: a file may be left in the middle.
        let (done, ended) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if ended.recv_timeout(patience.limit) == Err(RecvTimeoutError::Timeout) {
                    tracing::warn!(
                        "a processor does not end; it is interrupted, and its lines are read again by the next start"
                    );
                    patience.interrupt.store(true, Ordering::Relaxed);
                }
            });
            for driver in &mut self.drivers {
                driver.join();
            }
            drop(done);
        });
    }

    /// Waits until all that was read is settled, at most `limit`; returns whether it is. With a queue on the disk: until
    /// all is there, and what the output took from it is settled; it gets no more.
    pub fn drain(&self, limit: Duration) -> bool {
        if let Some(disk) = &self.disk {
            disk.stop_feeding();
        }
        self.settle.wait_until_settled(limit)
    }

    /// Drops events that are not settled, saves all cursors and ends. Returns whether the cursors are durable.
    pub fn finish(&mut self) -> bool {
        self.queue.abort();
        if let Some(disk) = &self.disk {
            disk.stop();
        }
        // What they made durable is behind the cursors that are saved now.
        for mover in self.movers.drain(..) {
            join(mover);
        }
        self.commits.finish();
        let saved = match self.registrar.take().map(JoinHandle::join) {
            Some(Ok(mut registrar)) => registrar.flush_last(&*self.clock),
            _ => false,
        };
        if let Some(disk) = &self.disk {
            disk.maintain();
        }
        saved
    }
}

/// Waits for a thread. A panic of it is a bug; its message was printed, and the rest still wants to end in order.
pub fn join<T>(thread: JoinHandle<T>) -> Option<T> {
    let joined = thread.join().ok();
    if joined.is_none() {
        tracing::error!("a thread of the pipeline ended by a bug");
    }
    joined
}
