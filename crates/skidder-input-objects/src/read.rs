//! Reads one object to its end.
//!
//! Bytes are asked for from where the object was settled; when the connection breaks, from where they stopped. While the
//! queue is full nothing more is taken from the store.

use crate::seen::Seen;
use crate::store::{Body, Range, Store, StoreError};
use crate::turns::{Place, Turns};
use skidder_event::{Batch, Map};
use skidder_input::Intake;
use skidder_input::OpenError;
use skidder_os::Clock;
use skidder_pipeline::Queue;
use skidder_read::{
    HEAD_BYTES, InputContext, Layout, Object, ObjectContext, ObjectName, Start, Step,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Pause after a failure that may pass; doubled with each that follows.
const PAUSE_FIRST: Duration = Duration::from_millis(500);

/// The longest of these.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// Tries of an object without any byte between them, before it is given back to who asked for it.
const TRIES: u32 = 5;

/// Turns of an object before another one has its place.
const TURNS_MAX: u32 = 8;

/// How the objects of an input are read, for one output.
pub struct Contexts {
    /// While an object arrives.
    pub arriving: InputContext,
    /// When all of it is there; see [`ObjectContext::whole`].
    pub whole: InputContext,
    /// When which object has its turn; the same for all objects of an input.
    pub turns: Arc<Turns>,
}

impl Contexts {
    fn of_object(&self) -> ObjectContext<'_> {
        ObjectContext { arriving: &self.arriving, whole: &self.whole }
    }
}

/// An object that is to be read.
pub struct Reading {
    /// Which one, for the registry: store, name and version.
    pub key: String,
    /// As events show it.
    pub path: Arc<Path>,
    /// What all its events have.
    pub fields: Arc<Map>,
    /// Who gives its bytes.
    pub store: Box<dyn Store>,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it was sent on. It is settled when [`skidder_pipeline::Settle::is_settled`] says so of this source.
    Read(skidder_event::SourceId),
    /// An earlier run has read and settled all of it.
    Known,
    /// Its end cannot be decoded, and why; what comes before was sent on. It was reported.
    Damaged(skidder_event::SourceId, String),
}

/// Why an object was not read to its end. What was read stays settled.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Its bytes cannot be had.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its cursor cannot be had.
    #[error(transparent)]
    Cursors(#[from] skidder_read::CursorsError),
    /// The input feeds several outputs.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be read.
    #[error("cannot read the object: {0}")]
    Read(std::io::Error),
    /// The program ends.
    #[error("the program ends")]
    Stopped,
}

/// Reads an object, whose content consists of this, to its end, or until the input is to stop.
///
/// # Errors
/// See [`ReadError`]: it may be asked for again, and goes on where it was settled.
pub async fn read(
    intake: &Intake,
    contexts: &Arc<Contexts>,
    layout: &Layout,
    reading: &Reading,
) -> Result<Outcome, ReadError> {
    read_seen(intake, contexts, layout, reading, None).await
}

/// The same, while users see how far it is.
pub(crate) async fn read_seen(
    intake: &Intake,
    contexts: &Arc<Contexts>,
    layout: &Layout,
    reading: &Reading,
    seen: Option<&Seen>,
) -> Result<Outcome, ReadError> {
    let lane = intake.lane()?;
    let (id, key) = intake.number(lane, &reading.key);
    let name = ObjectName {
        id,
        key,
        path: Arc::clone(&reading.path),
        fields: Arc::clone(&reading.fields),
        layout: layout.clone(),
    };
    let object = Object::open(contexts.of_object(), &name)?;
    let settle = lane.queue.settle();
    if object.is_finished() {
        settle.retire(&[id]);
        return Ok(Outcome::Known);
    }
    let run = Run { intake, queue: &lane.queue, contexts, store: &*reading.store, seen };
    let open = contexts.turns.open();
    let read = run.read(object).await;
    drop(open);
    match read {
        Ok(None) => Ok(Outcome::Read(id)),
        Ok(Some(damage)) => Ok(Outcome::Damaged(id, damage)),
        Err(error) => {
            settle.end_source(id);
            Err(error)
        }
    }
}

/// The way of one object.
struct Run<'a> {
    intake: &'a Intake,
    queue: &'a Queue,
    contexts: &'a Arc<Contexts>,
    store: &'a dyn Store,
    seen: Option<&'a Seen>,
}

/// Puts a batch into the queue, or returns it if there is no room.
fn offer(intake: &Intake, queue: &Queue, batch: Batch) -> Option<Batch> {
    let metrics = intake.metrics();
    let events = batch.len() as u64;
    metrics.events.add(batch.lines());
    let left = queue.try_push(batch).err();
    if left.is_none() {
        metrics.published.add(events);
    }
    left
}

/// Failures since the last byte.
#[derive(Default)]
struct Failures(u32);

impl Failures {
    /// The pause before the next try; the error if there were enough.
    fn pause(&mut self, error: StoreError) -> Result<Duration, StoreError> {
        let StoreError::Passing(_) = error else { return Err(error) };
        self.0 += 1;
        if self.0 >= TRIES {
            return Err(error);
        }
        Ok((PAUSE_FIRST * 2_u32.pow(self.0 - 1)).min(PAUSE_MAX))
    }
}

impl Run<'_> {
    /// Returns why its end cannot be decoded, if it cannot.
    async fn read(&self, mut object: Object) -> Result<Option<String>, ReadError> {
        let mut failures = Failures::default();
        let mut body = self.begin(&mut object, &mut failures).await?;
        // A small object is there as a whole before its first turn, and needs no other one.
        let mut is_whole = !self.take(&mut object, &mut body, &mut failures).await?;
        loop {
            let place = self.place().await?;
            let (back, left, step) = self.turns(object, is_whole).await?;
            object = back;
            // Others wait as well while the queue is full, without a batch.
            if let Some(batch) = left {
                self.push(batch).await?;
            }
            drop(place);
            match step {
                Step::More => {}
                Step::Wants => {
                    is_whole = !self.take(&mut object, &mut body, &mut failures).await?;
                }
                Step::Done => return Ok(None),
                Step::Damaged => return Ok(Some(object.damage())),
                Step::Held(span) => self.wait(span).await?,
                Step::Anew => {
                    body = self.begin(&mut object, &mut failures).await?;
                    is_whole = !self.take(&mut object, &mut body, &mut failures).await?;
                }
                Step::Failed(error) => return Err(ReadError::Read(error)),
            }
        }
    }

    /// Asks for the bytes from where they are needed, and for the head.
    async fn begin(
        &self,
        object: &mut Object,
        failures: &mut Failures,
    ) -> Result<Box<dyn Body>, ReadError> {
        let start = object.starts_at(self.contexts.of_object())?;
        loop {
            match self.ask(start).await {
                Ok((head, body)) => {
                    object.begin(self.contexts.of_object(), start, &head);
                    if let Some(seen) = self.seen {
                        seen.begins_at(start.from);
                    }
                    return Ok(body);
                }
                Err(error) => self.wait(failures.pause(error)?).await?,
            }
        }
    }

    async fn ask(&self, start: Start) -> Result<(Vec<u8>, Box<dyn Body>), StoreError> {
        let mut head = Vec::new();
        if start.head {
            let range = Range { from: 0, to: Some(HEAD_BYTES as u64) };
            let mut body = self.store.get(range).await?;
            while let Some(bytes) = body.next().await? {
                head.extend_from_slice(&bytes);
            }
        }
        let body = self.store.get(Range { from: start.from, to: None }).await?;
        Ok((head, body))
    }

    /// Takes what has arrived, about the share of an object. Returns whether there may be more.
    async fn take(
        &self,
        object: &mut Object,
        body: &mut Box<dyn Body>,
        failures: &mut Failures,
    ) -> Result<bool, ReadError> {
        let wanted = object.arrived() + self.contexts.turns.share() as u64;
        while object.arrived() < wanted {
            let next = tokio::select! {
                next = body.next() => next,
                () = self.intake.stopped() => return Err(ReadError::Stopped),
            };
            let error = match next {
                Ok(None) => match self.missing(object) {
                    None => return Ok(false),
                    Some(error) => error,
                },
                Ok(Some(bytes)) => {
                    *failures = Failures::default();
                    object.append(&bytes);
                    if let Some(seen) = self.seen {
                        seen.arrived(bytes.len(), object.arrived());
                    }
                    continue;
                }
                Err(error) => error,
            };
            *body = self.resume(object.arrived(), failures, error).await?;
        }
        Ok(true)
    }

    /// Why what has arrived is not the whole object, if it is not: the end of an answer is believed only if it is not before
    /// that of the first one.
    fn missing(&self, object: &Object) -> Option<StoreError> {
        let (size, arrived) = (self.store.size()?, object.arrived());
        (arrived < size).then(|| {
            StoreError::Passing(format!(
                "only {arrived} of {size} bytes came: a later answer ends before the first one"
            ))
        })
    }

    /// Asks for the same content from where it stopped, because of this error.
    async fn resume(
        &self,
        from: u64,
        failures: &mut Failures,
        mut error: StoreError,
    ) -> Result<Box<dyn Body>, ReadError> {
        loop {
            self.wait(failures.pause(error)?).await?;
            match self.store.get(Range { from, to: None }).await {
                Ok(body) => return Ok(body),
                Err(again) => error = again,
            }
        }
    }

    async fn place(&self) -> Result<Place<'_>, ReadError> {
        tokio::select! {
            place = self.contexts.turns.place() => place.ok_or(ReadError::Stopped),
            () = self.intake.stopped() => Err(ReadError::Stopped),
        }
    }

    /// Turns, on a thread that may take its time: until there is more to do than to read on, or a batch for which the queue
    /// has no room, which is returned.
    async fn turns(
        &self,
        mut object: Object,
        is_whole: bool,
    ) -> Result<(Object, Option<Batch>, Step), ReadError> {
        let contexts = Arc::clone(self.contexts);
        let (queue, intake) = (self.queue.clone(), self.intake.clone());
        let turns = tokio::task::spawn_blocking(move || {
            let mut scratch = contexts.turns.lend();
            let mut made = 0;
            let mut turn = || {
                let now = intake.clock().wall();
                let (batch, step) = object.turn(contexts.of_object(), is_whole, &mut scratch, now);
                made += batch.as_ref().map_or(0, Batch::lines);
                (batch.and_then(|batch| offer(&intake, &queue, batch)), step)
            };
            let (mut left, mut step) = turn();
            for _ in 1..TURNS_MAX {
                if left.is_some() || !matches!(step, Step::More) {
                    break;
                }
                (left, step) = turn();
            }
            contexts.turns.give_back(scratch);
            ((object, left, step), made)
        });
        // It is cancelled only when the program ends.
        let (done, made) = turns.await.map_err(|_| ReadError::Stopped)?;
        if let Some(seen) = self.seen {
            seen.made(made);
        }
        Ok(done)
    }

    /// Waits for room for a batch that was offered.
    async fn push(&self, batch: Batch) -> Result<(), ReadError> {
        let clock: &dyn Clock = &**self.intake.clock();
        let events = batch.len() as u64;
        self.queue.push_async(batch, clock).await.map_err(|_| ReadError::Stopped)?;
        self.intake.metrics().published.add(events);
        Ok(())
    }

    async fn wait(&self, span: Duration) -> Result<(), ReadError> {
        tokio::select! {
            () = tokio::time::sleep(span) => Ok(()),
            () = self.intake.stopped() => Err(ReadError::Stopped),
        }
    }
}
