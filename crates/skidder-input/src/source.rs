//! A source that an input has open: its events go through the processors of each output into its queue.

use crate::acknowledge;
use crate::facts::SourceFacts;
use crate::intake::{Lane, Shared};
use skidder_event::{
    Batch, Bound, DropReason, Map, Parts, Progress, Provenance, Row, SourceId, Text,
};
use skidder_registry::{CURSOR_BYTES_MAX, SourceAbout, SourceCursor};
use std::sync::Arc;

/// Nothing more is taken: every output that the input feeds has ended, or the program ends. What was not taken is counted
/// as dropped if the source cannot send it again, and else left to the far side. The input ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program ends")]
pub struct Stopped;

/// A source: a connection, a peer, a partition, a subscription. It ends when this is dropped.
pub struct Source {
    shared: Arc<Shared>,
    lanes: Vec<SourceLane>,
    about: SourceAbout,
    /// Of all its events.
    fields: Map,
    /// Events so far.
    number: u64,
    saved: Option<SourceCursor>,
    /// Its number among the sources of the input.
    opened: u64,
    facts: Arc<SourceFacts>,
}

/// A source as one output knows it.
pub(crate) struct SourceLane {
    id: SourceId,
    epoch: u64,
    bound: Arc<dyn Bound>,
}

impl SourceLane {
    pub(crate) fn new(id: SourceId, lane: &Lane, fields: &Map) -> Self {
        Self { id, epoch: lane.bind.epoch(), bound: lane.bind.bind(fields) }
    }

    /// Binds the processors anew if what was bound is out of date.
    fn refresh(&mut self, lane: &Lane, fields: &Map) {
        let epoch = lane.bind.epoch();
        if epoch != self.epoch {
            *self = Self { id: self.id, epoch, bound: lane.bind.bind(fields) };
        }
    }
}

impl Source {
    pub(crate) fn new(
        shared: Arc<Shared>,
        opened: u64,
        lanes: Vec<SourceLane>,
        about: SourceAbout,
        fields: Map,
        saved: Option<SourceCursor>,
    ) -> Self {
        let facts = shared.metrics.sources.begin(opened, Arc::clone(&about.name));
        Self { shared, lanes, about, fields, number: 0, saved, opened, facts }
    }

    /// Where it continues: the cursor behind the last event that was settled in an earlier run, or before a reload.
    pub fn saved(&self) -> Option<&SourceCursor> {
        self.saved.as_ref()
    }

    /// What it is called.
    pub fn about(&self) -> &SourceAbout {
        &self.about
    }

    /// A batch to fill: `bytes` are in it already, for texts that stand in them; `utf8` of them from the start were checked
    /// to be UTF-8.
    pub fn batch(&mut self, bytes: Vec<u8>, utf8: usize) -> Batch {
        self.batch_of(Parts { bytes, ..Parts::default() }, utf8)
    }

    /// The same with rows that stand in the bytes already; they get the numbers that follow.
    pub fn batch_of(&mut self, mut parts: Parts, utf8: usize) -> Batch {
        for row in &mut parts.rows {
            row.offset = self.number;
            self.number += 1;
        }
        let lanes = self.lanes.iter_mut().zip(&self.shared.lanes);
        for (of, lane) in lanes {
            of.refresh(lane, &self.fields);
        }
        let first = &self.lanes[0];
        let provenance = Provenance { source: first.id, progress: Progress::Nothing(0) };
        Batch::with_lines(parts, utf8, Arc::clone(first.bound.base()), provenance)
    }

    /// Adds an event to a batch of this source; `bytes` is how many bytes of the source are its own, `time` its
    /// `@timestamp` in nanoseconds since 1970-01-01 UTC. Returns its row.
    pub fn push(&mut self, batch: &mut Batch, message: Text, bytes: u32, time: i64) -> usize {
        batch.push(Row::numbered(self.number, bytes, message, time));
        self.number += 1;
        batch.len() - 1
    }

    /// Sends events, waiting for room in the queue of every output. `progress` is what follows from their verdicts.
    ///
    /// A task that is dropped while it waits gives up what no output has taken yet, which is counted as [`Stopped`] says.
    ///
    /// # Errors
    /// [`Stopped`] if no output takes anything any more.
    ///
    /// # Panics
    /// If a cursor has more than [`CURSOR_BYTES_MAX`] bytes: the registry would refuse it for ever, and with it the
    /// cursors of all other sources.
    pub async fn send(&mut self, batch: Batch, progress: Progress) -> Result<(), Stopped> {
        let events = batch.len() as u64;
        let mut unsent = self.for_each_lane(batch, progress);
        let mut is_taken = false;
        while let Some((at, batch)) = unsent.next() {
            let queue = &self.shared.lanes[at].queue;
            match queue.push_async(batch, &*self.shared.clock).await {
                Ok(()) => is_taken = true,
                // This output has ended; others may go on.
                Err(batch) => queue.give_up(batch, DropReason::Stopped),
            }
        }
        if !is_taken {
            return Err(Stopped);
        }
        self.shared.metrics.published.add(events);
        Ok(())
    }

    /// Offers events: an output that has no room for them now drops them, and counts them as `queue_full`, or rejects them
    /// if the far side waits for an acknowledgement. Returns whether all outputs took them. With [`crate::Intake::absorb`]
    /// they wait for room first.
    pub fn offer(&mut self, batch: Batch, progress: Progress) -> bool {
        let events = batch.len() as u64;
        let mut unsent = self.for_each_lane(batch, progress);
        let mut is_taken = true;
        while let Some((at, batch)) = unsent.next() {
            let queue = &self.shared.lanes[at].queue;
            let offered = match self.shared.backlogs.get() {
                Some(backlogs) => backlogs[at].offer(queue, batch),
                None => queue.try_push(batch),
            };
            if let Err(batch) = offered {
                is_taken = false;
                self.shared.metrics.refused.add(batch.len() as u64);
                queue.give_up(batch, DropReason::QueueFull);
            }
        }
        if is_taken {
            self.shared.metrics.published.add(events);
        }
        is_taken
    }

    /// Takes note of something that went wrong with this source, for the status page, and counts it.
    pub fn failed(&self, error: &str) {
        self.shared.metrics.errors.add(1);
        self.facts.failed(error);
    }

    /// A batch for each output, with which its processors are done.
    fn for_each_lane(&self, batch: Batch, progress: Progress) -> Unsent {
        if let Progress::Cursor(part) = &progress {
            let bytes = part.cursor.len();
            assert!(bytes <= CURSOR_BYTES_MAX, "a cursor of {bytes} bytes: {:?}", self.about);
        }
        let (events, bytes) = (batch.len() as u64, bytes_of(&progress));
        self.shared.metrics.events.add(events);
        self.facts.received(events, bytes, self.shared.clock.wall());
        let progress = acknowledge::for_each(progress, self.lanes.len());
        let mut batches = Vec::with_capacity(self.lanes.len());
        // The copies first: processors change what they run over.
        let mut progress = progress.into_iter();
        let first = progress.next();
        for (lane, progress) in self.lanes[1..].iter().zip(progress) {
            let provenance = Provenance { source: lane.id, progress };
            batches.push(batch.copy_over(Arc::clone(lane.bound.base()), provenance));
        }
        let mut batch = batch;
        if let Some(progress) = first {
            batch.set_provenance(Provenance { source: self.lanes[0].id, progress });
        }
        batches.insert(0, batch);
        for (lane, batch) in self.lanes.iter().zip(&mut batches) {
            lane.bound.run(batch);
        }
        Unsent { shared: Arc::clone(&self.shared), batches: batches.into_iter().enumerate() }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        for (of, lane) in self.lanes.iter().zip(&self.shared.lanes) {
            lane.queue.settle().end_source(of.id);
        }
        self.shared.metrics.open.sub(1);
        self.shared.metrics.sources.end(self.opened);
    }
}

/// Bytes of the source that go with the events.
fn bytes_of(progress: &Progress) -> u64 {
    match progress {
        Progress::Nothing(bytes) | Progress::Acknowledge(_, bytes) => *bytes,
        Progress::Cursor(part) => part.bytes,
        Progress::File(_) => 0,
    }
}

/// Batches that their outputs do not have yet; what is left is given up.
struct Unsent {
    shared: Arc<Shared>,
    batches: std::iter::Enumerate<std::vec::IntoIter<Batch>>,
}

impl Unsent {
    fn next(&mut self) -> Option<(usize, Batch)> {
        self.batches.next()
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        for (at, batch) in self.batches.by_ref() {
            self.shared.lanes[at].queue.give_up(batch, DropReason::Stopped);
        }
    }
}
