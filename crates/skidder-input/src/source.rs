//! A source that an input has open: its events go through the processors of each output into its queue.

use crate::acknowledge;
use crate::facts::SourceFacts;
use crate::intake::{Lane, Shared};
use crate::metrics::WaitingBatch;
use skidder_event::{
    Batch, Bound, DropReason, Map, Parts, Progress, Provenance, Row, SourceId, Text,
};
use skidder_os::Timestamp;
use skidder_pipeline::Queue;
use skidder_registry::{CURSOR_BYTES_MAX, SourceAbout, SourceCursor};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Nothing more is taken: every output that the input feeds has ended, or the program ends. What was not taken is counted
/// as dropped if the source cannot send it again, and else left to the far side. The input ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program ends")]
pub struct Stopped;

/// A source: a connection, a peer, a partition, a subscription. It ends when this is dropped, and everything that it sends
/// has got in or was given up.
pub struct Source {
    open: Arc<Open>,
    lanes: Vec<SourceLane>,
    about: SourceAbout,
    /// Of all its events.
    fields: Map,
    /// Events so far.
    number: u64,
    saved: Option<SourceCursor>,
    facts: Arc<SourceFacts>,
}

/// What has to stay as long as a batch of a source may still come: batches name their source.
struct Open {
    shared: Arc<Shared>,
    /// Its number for each output.
    ids: Vec<SourceId>,
    /// Its number among the sources of the input.
    opened: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        for (id, lane) in self.ids.iter().zip(&self.shared.lanes) {
            lane.queue.settle().end_source(*id);
        }
        self.shared.metrics.open.sub(1);
        self.shared.metrics.sources.end(self.opened);
    }
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
        let sources = &shared.metrics.sources;
        let facts = sources.begin(opened, Arc::clone(&about.name), &*shared.clock);
        let ids = lanes.iter().map(|lane| lane.id).collect();
        let open = Arc::new(Open { shared, ids, opened });
        Self { open, lanes, about, fields, number: 0, saved, facts }
    }

    /// Where it continues: the cursor behind the last event that was settled in an earlier run, or before a reload.
    pub fn saved(&self) -> Option<&SourceCursor> {
        self.saved.as_ref()
    }

    /// How the status page learns what the far side has beyond the last event with a verdict; `None` while it is not known.
    pub fn set_behind(&self, behind: impl Fn() -> Option<u64> + Send + Sync + 'static) {
        self.facts.set_behind(behind);
    }

    /// How the status page learns the time of the oldest thing that is not done; `None` if there is none.
    pub fn set_oldest(&self, oldest: impl Fn() -> Option<Timestamp> + Send + Sync + 'static) {
        self.facts.set_oldest(oldest);
    }

    /// Counts a request to the far side, for the status page.
    pub fn requested(&self) {
        self.facts.requested();
    }

    /// An event of this time was read: how old the newest one is is on the status page.
    pub fn read_until(&self, time: Timestamp) {
        self.facts.read_until(time);
    }

    /// Its name.
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
        let lanes = self.lanes.iter_mut().zip(&self.open.shared.lanes);
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

    /// Sends events: outputs that have room get theirs at once, and what is returned waits for room in the others.
    /// `progress` is what follows from their verdicts.
    ///
    /// What is returned may outlive the source. If it is dropped while it waits, it gives up what no output has taken yet,
    /// which is counted as [`Stopped`] says. It resolves to that if no output takes anything any more.
    ///
    /// # Panics
    /// If a cursor has more than [`CURSOR_BYTES_MAX`] bytes: the registry would refuse it for ever, and with it the
    /// cursors of all other sources.
    pub fn send(&mut self, batch: Batch, progress: Progress) -> Sending {
        let events = batch.len() as u64;
        let mut is_taken = false;
        let mut waiting = Vec::new();
        for unsent in self.for_each_lane(batch, progress) {
            match unsent.try_push() {
                Ok(()) => is_taken = true,
                Err(unsent) => waiting.push(unsent),
            }
        }
        if waiting.is_empty() {
            self.open.shared.metrics.published.add(events);
            return Sending(None);
        }
        let open = Arc::clone(&self.open);
        Sending(Some(Box::pin(async move {
            if !(push_all(waiting).await || is_taken) {
                return Err(Stopped);
            }
            open.shared.metrics.published.add(events);
            Ok(())
        })))
    }

    /// Offers events: an output that has no room for them now drops them, and counts them as `queue_full`, or rejects them
    /// if the far side waits for an acknowledgement. Returns whether all outputs took them. With [`crate::Intake::absorb`]
    /// they wait for room first.
    pub fn offer(&mut self, batch: Batch, progress: Progress) -> bool {
        let events = batch.len() as u64;
        let mut is_taken = true;
        for unsent in self.for_each_lane(batch, progress) {
            is_taken &= unsent.offer();
        }
        if is_taken {
            self.open.shared.metrics.published.add(events);
        }
        is_taken
    }

    /// Takes note of something that went wrong with this source, for the status page, and counts it.
    pub fn failed(&self, error: &str) {
        self.open.shared.metrics.failed(&self.about.name, error);
        self.facts.failed(error, self.open.shared.clock.wall());
    }

    /// A batch for each output, with which its processors are done.
    fn for_each_lane(
        &self,
        batch: Batch,
        progress: Progress,
    ) -> impl Iterator<Item = Unsent> + use<> {
        if let Progress::Cursor(part) = &progress {
            let bytes = part.cursor.len();
            assert!(bytes <= CURSOR_BYTES_MAX, "a cursor of {bytes} bytes: {:?}", self.about);
        }
        let (events, bytes) = (batch.len() as u64, bytes_of(&progress));
        let shared = &self.open.shared;
        shared.metrics.events.add(events);
        self.facts.received(events, bytes, shared.clock.wall());
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
        let open = Arc::clone(&self.open);
        let batches = batches.into_iter().enumerate();
        batches.map(move |(at, batch)| Unsent { open: Arc::clone(&open), at, batch: Some(batch) })
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

/// Events on their way into the queues of those outputs that had no room for them.
#[must_use = "what waits is given up when this is dropped"]
pub struct Sending(Option<Waiting>);

type Waiting = Pin<Box<dyn Future<Output = Result<(), Stopped>> + Send>>;

impl Sending {
    /// Whether an output has no room yet.
    pub fn is_waiting(&self) -> bool {
        self.0.is_some()
    }
}

impl Future for Sending {
    type Output = Result<(), Stopped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(waiting) = &mut self.0 else { return Poll::Ready(Ok(())) };
        let sent = waiting.as_mut().poll(context);
        if sent.is_ready() {
            self.0 = None;
        }
        sent
    }
}

impl std::fmt::Debug for Sending {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sending").field("is_waiting", &self.is_waiting()).finish()
    }
}

/// A batch that its output does not have yet; it is given up when this is dropped.
struct Unsent {
    open: Arc<Open>,
    /// Which output.
    at: usize,
    batch: Option<Batch>,
}

impl Unsent {
    fn queue(&self) -> Queue {
        self.open.shared.lanes[self.at].queue.clone()
    }

    /// Puts it into the queue if there is room.
    #[expect(clippy::result_large_err, reason = "one move a batch, and only when full")]
    fn try_push(mut self) -> Result<(), Self> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        self.batch = self.open.shared.lanes[self.at].queue.try_push(batch).err();
        if self.batch.is_some() { Err(self) } else { Ok(()) }
    }

    /// Waits for room; returns whether the output took it.
    async fn push(mut self) -> bool {
        let Some(batch) = self.batch.take() else { return true };
        let queue = self.queue();
        let _waiting = WaitingBatch::new(&self.open.shared.metrics);
        // What is dropped in there is given up there.
        match queue.push_async(batch, &*self.open.shared.clock).await {
            Ok(()) => true,
            // This output has ended; others may go on.
            Err(batch) => {
                queue.give_up(batch, DropReason::Stopped);
                false
            }
        }
    }

    /// Puts it into the queue, or lets it wait in memory; returns whether there was room.
    fn offer(mut self) -> bool {
        let Some(batch) = self.batch.take() else { return true };
        let Shared { lanes, backlogs, metrics, .. } = &*self.open.shared;
        let queue = &lanes[self.at].queue;
        let offered = match backlogs.get() {
            Some(backlogs) => backlogs[self.at].offer(queue, batch),
            None => queue.try_push(batch),
        };
        let Err(batch) = offered else { return true };
        metrics.refused.add(batch.len() as u64);
        queue.give_up(batch, DropReason::QueueFull);
        false
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        if let Some(batch) = self.batch.take() {
            self.queue().give_up(batch, DropReason::Stopped);
        }
    }
}

/// Waits for room in all queues at the same time: one that is stuck holds up no other. Returns whether any took its batch.
async fn push_all(unsent: Vec<Unsent>) -> bool {
    let mut pushes: Vec<_> = unsent.into_iter().map(|unsent| Box::pin(unsent.push())).collect();
    let mut is_taken = false;
    poll_fn(|context| {
        pushes.retain_mut(|push| match push.as_mut().poll(context) {
            Poll::Ready(taken) => {
                is_taken |= taken;
                false
            }
            Poll::Pending => true,
        });
        if pushes.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    is_taken
}
