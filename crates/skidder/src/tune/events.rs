//! The events of a sample, kept in memory as a disk queue stores them, to be sent again and again.

use crate::assemble::Parts;
use crate::input_plan::SourcePlan;
use crate::sample::{Sample, only, run};
use crate::system::System;
use anyhow::{Result, bail};
use skidder_event::{Bases, Batch, Map, Provenance, SourceId};
use skidder_pipeline::{Feed, Output, OutputFuture, TakeLimits};
use skidder_read::Bound as _;
use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum bytes kept of a sample; the rest is left out.
const BYTES_MAX: usize = 64 << 20;

/// Stored events, in batches.
pub(crate) struct Events {
    pub(crate) batches: Vec<Vec<u8>>,
    /// How many events.
    pub(crate) count: u64,
    /// Bytes of memory of one, in a queue.
    pub(crate) memory_bytes: usize,
    /// The sample was longer than the kept part.
    pub(crate) is_cut: bool,
}

#[derive(Default)]
struct Kept {
    batches: Vec<Vec<u8>>,
    bytes: usize,
    count: u64,
    memory_bytes: usize,
    is_cut: bool,
}

impl Events {
    /// Sends a sample through the one input of `parts`.
    pub(crate) fn of(mut parts: Parts, system: &System, sample: &Sample) -> Result<Self> {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let (output, _) = only(&mut parts);
        output.output = Box::new(Keeper(Arc::clone(&kept)));
        output.disk = None;
        let look = |plan: &SourcePlan, _: &Map, batch: &mut Batch| plan.run(batch);
        run(parts, &system.clone().for_trial(), sample, Arc::new(look))?;
        let kept = take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
        if kept.count == 0 {
            bail!("the sample has no event that would be delivered");
        }
        Ok(Self {
            batches: kept.batches,
            count: kept.count,
            memory_bytes: kept.memory_bytes / kept.count as usize + 1,
            is_cut: kept.is_cut,
        })
    }

    /// One of the batches as it was; the next one after the last is the first.
    pub(crate) fn batch(&self, number: usize, bases: &mut Bases) -> Result<Batch> {
        let provenance = Provenance::new(SourceId(0), 0..0);
        let stored = &self.batches[number % self.batches.len()];
        Ok(Batch::restore(stored, provenance, bases)?)
    }
}

/// An output that keeps its events.
struct Keeper(Arc<Mutex<Kept>>);

impl Output for Keeper {
    fn kind(&self) -> &'static str {
        "tune"
    }

    fn run(self: Box<Self>, feed: Feed) -> OutputFuture {
        Box::pin(async move {
            let limits = TakeLimits { events: 0, bytes: usize::MAX };
            let mut taken = Vec::new();
            while feed.queue.take(limits, &mut taken).await {
                for delivery in taken.drain(..) {
                    let rows = delivery.rows.end - delivery.rows.start;
                    self.0.lock().unwrap_or_else(PoisonError::into_inner).keep(&delivery);
                    delivery.ticket.delivered(rows);
                }
            }
        })
    }
}

impl Kept {
    fn keep(&mut self, delivery: &skidder_pipeline::Delivery) {
        if self.bytes >= BYTES_MAX {
            self.is_cut = true;
            return;
        }
        let (batch, rows) = (&delivery.batch, delivery.rows.clone());
        let count = u64::from(rows.end - rows.start);
        let mut stored = Vec::new();
        batch.store(rows, &mut stored);
        self.bytes += stored.len();
        self.count += count;
        self.memory_bytes += batch.memory_bytes() * count as usize / batch.len().max(1);
        self.batches.push(stored);
    }
}
