//! What reading the objects of a bucket or queue needs, and the reading of one: from its name to its events.

use crate::cloud::{Cloud, First, Selector, Sent, Wanted as _};
use crate::hand::{Claim, Claimed, InHand};
use crate::ids::WithIds;
use crate::read::{Contexts, Outcome, ReadError, Reading, read_seen};
use crate::seen::{Buckets, InFlight, Seen};
use crate::store::StoreError;
use crate::turns::Turns;
use skidder_event::{Bind, SourceId};
use skidder_input::{InputError, Intake, ObjectNumbers, OpenError};
use skidder_input_file::SavedCursors;
use skidder_os::{Fs, Monotonic};
use skidder_pipeline::Settle;
use skidder_read::{
    BufferPool, Cursors, CursorsError, DecoderPool, FilestreamSettings, InputContext, Layout,
    ReadMetrics,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Decoders kept for reuse; each has about 50 KiB.
const DECODERS_IDLE_MAX: usize = 8;
/// Pause until an object is looked at again that another task reads.
const BUSY_PAUSE: Duration = Duration::from_millis(200);
/// Tries of an object whose bytes cannot be had for now, before it is given back to what named it: some five minutes.
const TRIES: u32 = 10;
/// First pause between these; doubled with each that follows.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest of these.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// See the module's text. Shared by all tasks that read from one bucket or queue.
pub struct Objects<C> {
    /// The handle of the input.
    pub intake: Intake,
    /// Where the objects are.
    pub cloud: Arc<C>,
    /// Knows which objects have all their verdicts.
    pub settle: Arc<Settle>,
    /// Knows which objects were read by earlier runs.
    pub cursors: Arc<dyn Cursors>,
    /// What the keys of the input's objects begin with in the registry.
    pub prefix: Arc<str>,
    /// Of the input.
    pub(crate) numbers: Arc<ObjectNumbers>,
    pub(crate) buckets: Buckets,
    pub(crate) hand: InHand,
    ways: Vec<Way>,
    /// It was said that a setting has no effect on some objects.
    has_warned: AtomicBool,
}

/// How some objects are read.
struct Way {
    selector: Selector,
    contexts: Arc<Contexts>,
}

/// Why an object was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The program ends.
    #[error("the program ends")]
    Stopped,
    /// There is no object of this name.
    #[error("the object is gone")]
    Gone,
    /// As [`ObjectError::Failed`]; it is not the object's fault.
    #[error("{0}")]
    Passing(String),
    /// The same; it does not pass by itself.
    #[error("{0}")]
    Refused(String),
    /// It may be tried again, and goes on where it was settled. The text says why.
    #[error("{0}")]
    Failed(String),
}

impl From<StoreError> for ObjectError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Gone => Self::Gone,
            StoreError::Passing(text) => Self::Passing(text),
            StoreError::Refused(text) => Self::Refused(text),
            StoreError::Changed => Self::Failed(error.to_string()),
        }
    }
}

impl From<ReadError> for ObjectError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Stopped => Self::Stopped,
            ReadError::Store(error) => error.into(),
            ReadError::Cursors(error) => error.into(),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<CursorsError> for ObjectError {
    fn from(error: CursorsError) -> Self {
        Self::Passing(error.to_string())
    }
}

/// What the contexts share.
struct Shared {
    bind: Arc<dyn Bind>,
    cursors: Arc<dyn Cursors>,
    fs: Arc<dyn Fs>,
    metrics: Arc<ReadMetrics>,
    buffers: Arc<BufferPool>,
    decoders: DecoderPool,
    turns: Arc<Turns>,
}

/// Both contexts of objects with these settings.
fn contexts_of(
    intake: &Intake,
    reading: &FilestreamSettings,
    shared: &Shared,
) -> Result<Arc<Contexts>, OpenError> {
    let lane = intake.lane()?;
    let context = |settings| InputContext {
        settings,
        bind: Arc::clone(&shared.bind),
        cursors: Arc::clone(&shared.cursors),
        fs: Arc::clone(&shared.fs),
        metrics: Arc::clone(&shared.metrics),
        buffers: Arc::clone(&shared.buffers),
        decoders: shared.decoders.clone(),
        rows_max: (lane.queue.limits().events / 4).max(1),
    };
    let arriving = FilestreamSettings { final_line: false, read_once: false, ..reading.clone() };
    let whole = FilestreamSettings { final_line: true, read_once: true, ..reading.clone() };
    let turns = Arc::clone(&shared.turns);
    Ok(Arc::new(Contexts { arriving: context(arriving), whole: context(whole), turns }))
}

impl<C: Cloud> Objects<C> {
    /// For one run of the input. Of the selectors the first that is for an object counts; other objects are not read.
    ///
    /// # Errors
    ///
    /// The input feeds several outputs.
    pub fn new(
        intake: Intake,
        cloud: Arc<C>,
        selectors: impl IntoIterator<Item = Selector>,
        fs: Arc<dyn Fs>,
    ) -> Result<Arc<Self>, InputError> {
        let failed = |error: OpenError| InputError(error.to_string());
        let lane = intake.lane().map_err(failed)?;
        let settle = Arc::clone(lane.queue.settle());
        let cursors = SavedCursors::new(Arc::clone(&settle), Arc::clone(&lane.registry));
        let cursors: Arc<dyn Cursors> = Arc::new(cursors);
        let (_, prefix) = intake.number(lane, "");
        let bind = cloud.bind(Arc::clone(&lane.bind));
        let shared = Shared {
            bind: Arc::new(WithIds(bind)),
            cursors: Arc::clone(&cursors),
            fs,
            metrics: Arc::default(),
            buffers: Arc::default(),
            decoders: DecoderPool::new(DECODERS_IDLE_MAX),
            turns: Arc::new(Turns::of_runtime()),
        };
        let way = |selector: Selector| {
            let contexts = contexts_of(&intake, &selector.reading, &shared)?;
            Ok(Way { selector, contexts })
        };
        let ways: Result<Vec<Way>, OpenError> = selectors.into_iter().map(way).collect();
        let ways = ways.map_err(failed)?;
        Ok(Arc::new(Self {
            cloud,
            settle,
            cursors,
            prefix,
            numbers: intake.metrics().objects(),
            buckets: Buckets::default(),
            hand: InHand::default(),
            ways,
            has_warned: AtomicBool::new(false),
            intake,
        }))
    }

    /// The place of the selector for objects of this name, and how they are read; nothing if they are not.
    fn way(&self, key: &str) -> Option<(usize, &Way)> {
        self.ways.iter().enumerate().find(|(_, way)| way.selector.selects(key))
    }

    /// Whether objects of this name are read.
    pub fn selects(&self, key: &str) -> bool {
        self.way(key).is_some()
    }

    /// Whether all of an object was read and settled in an earlier run, or by another task. `name` is that in the registry.
    ///
    /// # Errors
    ///
    /// The registry cannot be read.
    pub fn is_finished(&self, name: &str) -> Result<bool, CursorsError> {
        let saved = self.cursors.saved(&format!("{}{name}", self.prefix))?;
        Ok(saved.is_some_and(|entry| entry.cursor.eof))
    }

    /// An object that was asked for could not be read to its end: reports it to the input. `error` is for people.
    pub fn failed(&self, (bucket, key): (&str, &str), error: &str) {
        self.numbers.failed.add(1);
        self.intake.metrics().failed(&format!("{bucket}/{key}"), error);
        if let Some(row) = self.buckets.of(&self.intake, bucket) {
            row.failed(&format!("{key}: {error}"));
        }
    }

    /// Forgets objects in hand that have been settled for some time: the registry has them. To be called from time to time.
    pub fn forget_settled(&self, now: Monotonic) {
        self.hand.forget(now, |source| self.settle.is_settled(source));
    }

    /// Reads an object to its end, also if its bytes cannot be had for some time. Nothing if none of its name is read.
    ///
    /// # Errors
    ///
    /// See [`ObjectError`]. What was read stays settled.
    pub async fn read(&self, wanted: &C::Wanted) -> Result<Option<Sent<C::Wanted>>, ObjectError> {
        if !self.selects(wanted.key()) {
            tracing::debug!(key = wanted.key(), "no selector is for this object");
            return Ok(None);
        }
        self.numbers.selected.add(1);
        let _in_flight = InFlight::new(&self.numbers);
        let part = wanted.bucket();
        let metrics = self.intake.metrics();
        for times in 0..TRIES {
            let error = match self.try_read(wanted).await {
                Err(ObjectError::Passing(error)) => error,
                read => {
                    if times > 0 {
                        metrics.set_trouble_of(&part, None);
                    }
                    return read;
                }
            };
            metrics.set_trouble_of(&part, Some(&error));
            let key = wanted.key();
            if times + 1 == TRIES {
                return Err(ObjectError::Passing(error));
            }
            tracing::warn!(
                bucket = part,
                key,
                error,
                "an object cannot be read for now; trying again"
            );
            let pause = PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(times)).min(PAUSE_MAX);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.intake.stopped() => break,
            }
        }
        Err(ObjectError::Stopped)
    }

    async fn try_read(&self, wanted: &C::Wanted) -> Result<Option<Sent<C::Wanted>>, ObjectError> {
        let Some((number, way)) = self.way(wanted.key()) else { return Ok(None) };
        let since = self.intake.clock().monotonic();
        self.numbers.requested.add(1);
        let first = tokio::select! {
            first = self.cloud.begin(wanted, number) => first?,
            () = self.intake.stopped() => return Err(ObjectError::Stopped),
        };
        let First { reading, version, content_type } = first;
        let sent = |source| Sent { source, wanted: wanted.clone(), version };
        let claimed = match self.claim(&reading.key).await? {
            Ok(claimed) => claimed,
            Err(source) => return Ok(Some(sent(Some(source)))),
        };
        if self.is_finished(&reading.key)? {
            return Ok(Some(sent(None)));
        }
        let layout = way.selector.layout(&content_type);
        self.warn_of_settings(&way.selector, &layout, &content_type, wanted);
        let names = (&*wanted.bucket(), wanted.key());
        let seen = Seen::new(self, names, since, reading.store.size());
        let source = self.read_claimed(claimed, way, &layout, &reading, &seen).await?;
        Ok(Some(sent(source)))
    }

    /// Reads an object of which this task is the only reader. Returns its source; nothing if it was known.
    async fn read_claimed(
        &self,
        claimed: Claimed<'_>,
        way: &Way,
        layout: &Layout,
        reading: &Reading,
        seen: &Seen,
    ) -> Result<Option<SourceId>, ObjectError> {
        match read_seen(&self.intake, &way.contexts, layout, reading, Some(seen)).await? {
            Outcome::Read(id) => {
                seen.sent(self.intake.clock().monotonic());
                self.numbers.add_sent(id, &self.settle);
                // It is forgotten when it is settled and saved.
                self.settle.end_source(id);
                claimed.read(id, self.intake.clock().monotonic());
                Ok(Some(id))
            }
            Outcome::Known => Ok(None),
            Outcome::Damaged(id, why) => {
                self.numbers.damaged.add(1);
                self.settle.end_source(id);
                Err(ObjectError::Failed(why))
            }
        }
    }

    /// Waits until no other task reads an object. The source if another one has read it.
    async fn claim(&self, name: &str) -> Result<Result<Claimed<'_>, SourceId>, ObjectError> {
        loop {
            match self.hand.claim(name) {
                Claim::Mine(claimed) => return Ok(Ok(claimed)),
                Claim::Read(source) => return Ok(Err(source)),
                Claim::Busy => {}
            }
            tokio::select! {
                () = tokio::time::sleep(BUSY_PAUSE) => {}
                () = self.intake.stopped() => return Err(ObjectError::Stopped),
            }
        }
    }

    /// Says once that a setting has no effect on an object, as it has none in Filebeat.
    fn warn_of_settings(
        &self,
        selector: &Selector,
        layout: &Layout,
        content_type: &str,
        wanted: &C::Wanted,
    ) {
        let has_parsers = !selector.reading.parsers.parsers().is_empty();
        let message = match layout {
            Layout::Csv(_) | Layout::Table(_) if has_parsers => {
                "its rows are events, over which no `parsers` run; leave `decoding` out if its lines are to be events"
            }
            Layout::Csv(_) | Layout::Table(_) if selector.expand.has_field() => {
                "its rows are events: `expand_event_list_from_field` has no effect beside `decoding`"
            }
            Layout::Json(_) if has_parsers => {
                "its values of JSON are events, over which no `parsers` run; set `content_type: text/plain` (with \
                 `override_content_type: true`, where the input has it) if its lines are to be events"
            }
            Layout::Lines if selector.expand.has_field() => {
                "its lines are events, as its type is not JSON: `expand_event_list_from_field` has no effect; set \
                 `content_type: application/json` (with `override_content_type: true`, where the input has it) if it is JSON"
            }
            Layout::Json(_)
            | Layout::JsonOrLines(_)
            | Layout::Csv(_)
            | Layout::Table(_)
            | Layout::Lines => return,
        };
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(key = wanted.key(), content_type, "{message}");
        }
    }
}
