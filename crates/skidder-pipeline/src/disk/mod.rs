//! The disk queue (`queue.disk`): events between readers and an output that outlive the program.
//!
//! ```text
//! readers ─▶ front ─▶ writer ─▶ segments ─▶ reader ─▶ back ─▶ workers of the output
//!            write_ahead   │ durable: the cursor passes      read_ahead
//!                          ▼                                    │ verdicts
//!                       settle                                  ▼
//!                                       how far it was delivered (`queue.state`)
//! ```
//!
//! Both ends are [`Queue`]s in memory, so that readers and outputs see no difference. Bytes on the disk are described in
//! `FORMAT.md`, the reasons in `docs/decisions/0016-disk-queue.md`.

mod acks;
mod cipher;
mod foreign;
mod format;
mod inspect;
mod metrics;
mod payload;
mod reader;
mod repair;
mod state;
mod store;
mod survey;
mod threads;
mod walk;
mod writer;

pub use cipher::DiskQueueKey;
pub use inspect::{DiskQueueReport, SegmentReport, inspect_disk_queue};
pub use metrics::DiskMetrics;
pub use payload::Origin;
pub use repair::{DiskQueueRepaired, repair_disk_queue};
pub(crate) use store::Store;
pub use store::{DiskQueueOpened, waiting_in_disk_queue};

use crate::queue::{Delivery, Queue, QueueLimits, TakeLimits};
use crate::settle::{Settle, TicketOf};
use reader::{Next, Reader};
use skidder_os::Fs;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use writer::Writer;

/// Bytes that are made durable together at most, one frame excepted.
const FLUSH_BYTES: usize = 4 << 20;

/// After so many successful writes, larger ones are tried again.
const GOOD_WRITES: u32 = 16;

/// `queue.disk`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskQueueSettings {
    /// `path`: the directory, of this queue alone.
    pub path: PathBuf,
    /// `max_size`: bytes on the disk; 0 = as many as there is room for. A frame above it is written to an empty queue.
    pub max_size: u64,
    /// `segment_size`: bytes of a file of frames; a frame above it has a file of its own.
    pub segment_size: u64,
    /// `read_ahead`: events that wait in memory for the output.
    pub read_ahead: usize,
    /// `write_ahead`: events that wait in memory for the disk.
    pub write_ahead: usize,
    /// `retry_interval`: how long after a failure the disk is tried again for the first time.
    pub retry_interval: Duration,
    /// `max_retry_interval`: how long at most; it doubles with each failure.
    pub max_retry_interval: Duration,
    /// `encryption`: the key that encrypts new frames and decrypts old ones.
    pub key: Option<DiskQueueKey>,
}

impl DiskQueueSettings {
    /// Default of `max_size`.
    pub const MAX_SIZE: u64 = 10_000_000_000;
    /// Least `max_size`, but for 0.
    pub const MAX_SIZE_MIN: u64 = 10_000_000;
    /// Least `segment_size`.
    pub const SEGMENT_SIZE_MIN: u64 = 1_000_000;
    /// `segment_size` without bounds for the whole.
    pub const SEGMENT_SIZE_UNBOUNDED: u64 = 100 << 20;
    /// Default of `read_ahead`.
    pub const READ_AHEAD: usize = 512;
    /// Default of `write_ahead`.
    pub const WRITE_AHEAD: usize = 2048;
    /// Default of `retry_interval`.
    pub const RETRY_INTERVAL: Duration = Duration::from_secs(1);
    /// Default of `max_retry_interval`.
    pub const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(30);
    /// Name of the directory in the data directory, if `path` does not say it.
    pub const DIRECTORY: &str = "diskqueue";
}

/// Why a queue cannot be opened. None of these is passed over: events would be missed.
#[derive(Debug, thiserror::Error)]
pub enum DiskQueueError {
    /// The system refuses something: try again when it does not.
    #[error("the disk queue cannot use `{path}`: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another program or output has it.
    #[error("the disk queue in `{directory}` is in use; give each its own `queue.disk.path`")]
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// Filebeat's queue, with events for Filebeat to deliver.
    #[error(
        "`{directory}` holds a disk queue of Filebeat with events that were not delivered: let Filebeat deliver them (start it with this configuration and no inputs until its queue is empty), or set another `queue.disk.path`"
    )]
    Filebeat {
        /// The directory.
        directory: PathBuf,
    },
    /// Written by a later program: use that one.
    #[error("`{path}` has version {version} of a disk queue, this program knows {known}")]
    Newer {
        /// The segment.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The version of this program.
        known: u32,
    },
    /// Events in it wait and are encrypted: start with the key, or nothing can be read.
    #[error(
        "`{path}` is encrypted, and `queue.disk.encryption` {what}: start with the key it was written with until the queue is empty, or set another `queue.disk.path`; nothing was changed"
    )]
    Key {
        /// The segment.
        path: PathBuf,
        /// The problem with the key.
        what: &'static str,
    },
    /// A file of another queue was put here: take it away.
    #[error("`{path}` belongs to another disk queue")]
    Another {
        /// The segment.
        path: PathBuf,
    },
    /// All that names the queue is damaged, so that no frame can be checked: set the directory aside.
    #[error("the segments in `{directory}` cannot be read: state and all headers are damaged")]
    Unknown {
        /// The directory.
        directory: PathBuf,
    },
}

impl DiskQueueError {
    fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }
}

/// The current size of a disk queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskQueueFilled {
    /// Events without a verdict.
    pub events: u64,
    /// Bytes on the disk.
    pub bytes: u64,
    /// Files of frames.
    pub segments: usize,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskStep {
    /// There is nothing to do.
    Idle,
    /// Something was done, and there may be more.
    Done,
    /// `max_size` is reached: nothing can be done before segments were delivered.
    Full,
    /// The queue is closed.
    Closed,
}

/// A disk queue with both its ends.
pub struct DiskQueue {
    store: Arc<Store>,
    state_was_lost: bool,
    front: Queue,
    back: Queue,
    filling: Mutex<Filling>,
    reader: Mutex<Reader>,
}

impl fmt::Debug for DiskQueue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("DiskQueue").field("path", &self.settings().path).finish_non_exhaustive()
    }
}

/// The side of the readers.
struct Filling {
    writer: Writer,
    /// Taken from the front, in order; none of it is durable.
    held: Vec<Delivery>,
    /// How many of them the writer has.
    added: usize,
    /// How many of them are durable.
    durable: usize,
    /// Bytes that are made durable together: less after a failure, for there may be room for less.
    together: usize,
    /// Successful writes since then.
    good: u32,
}

impl DiskQueue {
    /// Opens the queue, or makes one, which is then called `fresh`: a random number. What is in it is on the ledger
    /// of `settle` as recovered.
    pub fn open(
        fs: Arc<dyn Fs>,
        settings: DiskQueueSettings,
        fresh: [u8; 16],
        settle: &Arc<Settle>,
    ) -> Result<(Arc<Self>, DiskQueueOpened), DiskQueueError> {
        let none = Duration::ZERO;
        let (bytes, flush_min_events) = (QueueLimits::BYTES, 0);
        let events = settings.write_ahead;
        let front = QueueLimits { events, bytes, flush_min_events, flush_timeout: none };
        // Events in flight do not count against `read_ahead`; see `DiskQueue::read_step`.
        let back = QueueLimits { events: usize::MAX / 2, ..front };
        let (store, opened) = Store::open(fs, settings, fresh)?;
        settle.recovered(opened.events);
        let writer = Writer::new(Arc::clone(&store));
        let filling = Filling {
            writer,
            held: Vec::new(),
            added: 0,
            durable: 0,
            together: FLUSH_BYTES,
            good: 0,
        };
        let queue = Self {
            front: Queue::new(front, Arc::clone(settle)),
            back: Queue::new(back, Arc::clone(settle)),
            filling: Mutex::new(filling),
            reader: Mutex::new(Reader::new(Arc::clone(&store))),
            state_was_lost: opened.state_is_lost,
            store,
        };
        Ok((Arc::new(queue), opened))
    }

    /// Where readers put batches in.
    pub fn front(&self) -> &Queue {
        &self.front
    }

    /// Where the output takes events.
    pub fn back(&self) -> &Queue {
        &self.back
    }

    /// Its settings.
    pub fn settings(&self) -> &DiskQueueSettings {
        &self.store.settings
    }

    /// Its counts.
    pub fn metrics(&self) -> &DiskMetrics {
        &self.store.metrics
    }

    /// Whether its state was lost when it was opened: nothing shows how many events are missing.
    pub fn state_was_lost(&self) -> bool {
        self.state_was_lost
    }

    /// Its current size.
    pub fn filled(&self) -> DiskQueueFilled {
        let shared = self.store.lock();
        let segments = shared.segments.len();
        DiskQueueFilled { events: shared.events(), bytes: shared.bytes(), segments }
    }

    /// Makes durable what waits in front, and lets cursors pass it. After an error nothing is lost; the next step tries
    /// again.
    pub fn write_step(&self) -> io::Result<DiskStep> {
        let done = self.filling().step(&self.front);
        // All that is durable is on the ledger now: it may get its verdict.
        self.store.change(|shared| shared.released = shared.durable);
        done
    }

    /// Brings a frame to the output if few events wait for it. After an error the next step tries again.
    pub fn read_step(&self) -> io::Result<DiskStep> {
        if self.back.waiting() >= self.settings().read_ahead {
            return Ok(DiskStep::Full);
        }
        let next = self.reader().next()?;
        match next {
            Next::Nothing => return Ok(DiskStep::Idle),
            Next::Lost(events) => {
                let path = self.settings().path.display();
                tracing::error!(events, %path, "a damaged place of the disk queue is passed over");
                self.store.settle_lost(&self.back, events);
            }
            Next::Events(sequence, batch, _) if batch.is_empty() => self.store.end(sequence),
            Next::Events(sequence, batch, origin) => {
                let place = TicketOf::Frame(Arc::clone(&self.store), sequence, origin);
                if self.back.push_of(batch, place).is_err() {
                    return Ok(DiskStep::Closed);
                }
            }
        }
        Ok(DiskStep::Done)
    }

    /// Makes durable how far the queue was delivered, and removes what is not needed any more. Call it now and then.
    pub fn maintain(&self) {
        self.store.maintain();
    }

    /// Makes durable how far the queue was written and delivered; returns whether it is.
    pub(crate) fn save(&self) -> bool {
        self.store.save_state()
    }

    /// Hands no more events to the output.
    pub fn stop_feeding(&self) {
        self.back.clear();
        self.store.change(|shared| shared.fed = true);
    }

    /// Ends the threads of the queue.
    pub fn stop(&self) {
        self.front.abort();
        self.stop_feeding();
        self.back.abort();
        self.store.change(|shared| shared.stopped = true);
    }

    fn filling(&self) -> MutexGuard<'_, Filling> {
        self.filling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    fn settle_lost(&self, back: &Queue, events: u64) {
        back.settle().lost(events);
    }
}

impl Filling {
    fn step(&mut self, front: &Queue) -> io::Result<DiskStep> {
        if self.held.is_empty() {
            let limits = TakeLimits { events: 0, bytes: FLUSH_BYTES };
            if !front.try_take(limits, &mut self.held) {
                return Ok(DiskStep::Idle);
            }
        }
        let filled = self.fill();
        for delivery in self.held.drain(..self.durable) {
            delivery.ticket.stored(delivery.len() as u32);
        }
        let durable = std::mem::take(&mut self.durable);
        self.added = 0;
        match filled {
            Ok(()) if durable == 0 => Ok(DiskStep::Full),
            Ok(()) => {
                self.good += 1;
                if self.good >= GOOD_WRITES {
                    self.good = 0;
                    self.together = (self.together * 2).min(FLUSH_BYTES);
                }
                Ok(DiskStep::Done)
            }
            Err(error) => {
                self.good = 0;
                self.together = (self.together / 2).max(1);
                Err(error)
            }
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let Self { writer, held, added, durable, together, .. } = self;
        while let Some(delivery) = held.get(*added) {
            if writer.pending_bytes() >= *together {
                break;
            }
            let origin = delivery.ticket.origin();
            let rows = delivery.rows.clone();
            let before = *added;
            let mut flushed = || *durable = before;
            if !writer.add(&delivery.batch, rows, origin.as_ref(), &mut flushed)? {
                break;
            }
            *added += 1;
        }
        writer.flush()?;
        *durable = *added;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
