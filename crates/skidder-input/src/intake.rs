//! The handle that an input gets: it opens sources with it, and learns when to stop.

use crate::backlog::Backlog;
use crate::metrics::InputMetrics;
use crate::source::{Source, SourceLane};
use crate::task::InputTask;
use skidder_event::{Bind, Map, SourceId};
use skidder_os::Clock;
use skidder_pipeline::Queue;
use skidder_registry::{Entry, KEY_BYTES_MAX, Registry, SourceAbout, SourceCursor};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long verdicts may take before outputs are asked to hurry. Events that come in this time go out together.
const HURRY_AFTER: Duration = Duration::from_millis(10);

/// The longest time until they are asked again.
const HURRY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// One output that an input feeds.
#[derive(Clone)]
pub struct Lane {
    /// The number of the input among those of this output, which no other input has or had.
    pub slot: usize,
    /// Where its batches go in.
    pub queue: Queue,
    /// Its processors.
    pub bind: Arc<dyn Bind>,
    /// Where the cursors of its sources are saved.
    pub registry: Arc<Registry>,
}

/// The handle that an input gets. Cloning returns another handle to the same.
#[derive(Clone)]
pub struct Intake {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) kind: &'static str,
    /// The id of the input; empty if it has none.
    pub(crate) id: Arc<str>,
    /// A name that no other run of the program has: keys of sources that are not saved begin with it.
    pub(crate) run: Arc<str>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Arc<InputMetrics>,
    pub(crate) stop: watch::Receiver<bool>,
    /// End when the far side has no more.
    pub(crate) end: watch::Receiver<bool>,
    /// Read what is there once, instead of for ever.
    pub(crate) once: bool,
    /// Sources opened so far.
    pub(crate) opened: AtomicU64,
    /// For each output what was offered and waits for room; nothing as long as nothing may wait.
    pub(crate) backlogs: OnceLock<Vec<Backlog>>,
    /// The input as others see it.
    pub(crate) task: Weak<InputTask>,
}

/// What was offered to an input and waits for room: what takes its place waits behind that ([`Intake::absorb`]).
#[derive(Clone)]
pub struct Waiting(Arc<Shared>);

impl Waiting {
    /// Whether anything waits still.
    pub fn is_some(&self) -> bool {
        self.0.backlogs.get().into_iter().flatten().any(|backlog| !backlog.is_empty())
    }

    /// Bytes of batches that wait for the output of which most wait.
    pub(crate) fn bytes(&self) -> usize {
        let backlogs = self.0.backlogs.get().into_iter().flatten();
        backlogs.map(Backlog::bytes).max().unwrap_or(0)
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Waiting").field("bytes", &self.bytes()).finish()
    }
}

/// Why a source cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Try again later.
    #[error("cannot read the cursor of `{name}`: {source}")]
    Registry {
        /// The source.
        name: Arc<str>,
        /// What the registry says.
        source: skidder_registry::ReadError,
    },
    /// Give the source another name: the key belongs to a file.
    #[error("the key of `{name}` belongs to a file")]
    Taken {
        /// The source.
        name: Arc<str>,
    },
    /// Give the source a shorter name.
    #[error("the key of a source would have {length} bytes; at most {KEY_BYTES_MAX} can be stored")]
    LongName {
        /// The key's length.
        length: usize,
    },
    /// A bug in the code that starts the input: cursors of several outputs differ, so that each needs a run of its own.
    #[error("`{name}` has a cursor, and its input feeds {outputs} outputs at once")]
    Shared {
        /// The source.
        name: Arc<str>,
        /// How many.
        outputs: usize,
    },
}

impl Intake {
    /// Resolves when the input is to end: it takes nothing more from its far side, sends what it has, and returns.
    pub async fn stopped(&self) {
        let mut stop = self.shared.stop.clone();
        // The sender is gone: that means the same.
        drop(stop.wait_for(|stop| *stop).await);
    }

    /// Whether the input is to end.
    pub fn is_stopped(&self) -> bool {
        *self.shared.stop.borrow()
    }

    /// Resolves when the input is to end as soon as its far side has no more ([`crate::Input::ends_when_read`]).
    pub async fn ending(&self) {
        let mut end = self.shared.end.clone();
        if end.wait_for(|end| *end).await.is_err() {
            // The sender is gone, and with it the input: it stops.
            std::future::pending::<()>().await;
        }
    }

    /// Whether the input is to end as soon as its far side has no more.
    pub fn is_ending(&self) -> bool {
        *self.shared.end.borrow()
    }

    /// Whether to read what is there once, instead of for ever (`--once`).
    pub fn is_once(&self) -> bool {
        self.shared.once
    }

    /// The time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// The counters of the input.
    pub fn metrics(&self) -> &Arc<InputMetrics> {
        &self.shared.metrics
    }

    /// Reports that the input takes nothing more from its far side, so that another one may: it only waits for room
    /// for what it has. Without it that is so when the input has ended.
    pub fn set_finishing(&self) {
        if let Some(task) = self.shared.task.upgrade() {
            task.set_finishing();
        }
    }

    /// Lets events that are offered ([`Source::offer`]) wait while a queue is full, up to so many bytes of batches for each
    /// output, together with what waits of the inputs `before`; only what is beyond is dropped. The future moves them into
    /// the queues and never ends by itself. What is left when it is dropped is given up: wait for [`Intake::absorbed`]
    /// before. Call it once, before the first offer.
    pub fn absorb(
        &self,
        bytes_max: usize,
        before: &[Waiting],
    ) -> impl Future<Output = ()> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        let backlog = |_| Backlog::new(bytes_max, before.to_vec());
        shared.backlogs.get_or_init(|| shared.lanes.iter().map(backlog).collect());
        async move {
            let mut lanes = JoinSet::new();
            for at in 0..shared.lanes.len() {
                let shared = Arc::clone(&shared);
                lanes.spawn(async move {
                    if let Some(backlog) = shared.backlogs.get().and_then(|all| all.get(at)) {
                        let Shared { lanes, clock, metrics, .. } = &*shared;
                        backlog.empty_into(&lanes[at].queue, &**clock, metrics).await;
                    }
                });
            }
            while lanes.join_next().await.is_some() {}
        }
    }

    /// Waits until everything that was offered is in a queue, or was given up because its output has ended.
    pub async fn absorbed(&self) {
        for backlog in self.shared.backlogs.get().into_iter().flatten() {
            backlog.wait_empty().await;
        }
    }

    /// The input waits for the verdicts of what it sent: outputs take it now, instead of waiting for more.
    pub fn flush(&self) {
        for lane in &self.shared.lanes {
            lane.queue.flush();
        }
    }

    /// Waits for something that ends with verdicts. If they do not come at once, outputs take what there is instead of
    /// waiting for more events: a client that is owed an answer sends no more before it has it.
    pub async fn await_verdicts<T>(&self, verdicts: impl Future<Output = T>) -> T {
        let mut verdicts = std::pin::pin!(verdicts);
        // An output that is busy takes what has come meanwhile as one batch; one that is stuck is not asked for ever.
        let mut pause = HURRY_AFTER;
        loop {
            match tokio::time::timeout(pause, &mut verdicts).await {
                Ok(ended) => return ended,
                Err(_) => self.flush(),
            }
            pause = (2 * pause).min(HURRY_PAUSE_MAX);
        }
    }

    /// What was offered and waits for room, for the input that takes the place of this one.
    pub fn waiting(&self) -> Option<Waiting> {
        self.has_backlog().then(|| Waiting(Arc::clone(&self.shared)))
    }

    /// Whether offered events wait for room. Sources must stay open until they are in.
    pub fn has_backlog(&self) -> bool {
        self.shared.backlogs.get().into_iter().flatten().any(|backlog| !backlog.is_empty())
    }

    /// Opens a source of which nothing is saved: one that cannot send again, or whose far side knows what was settled.
    /// `name` is for people; `fields` are the same for all its events.
    pub fn open(&self, name: &str, fields: Map) -> Source {
        let number = self.shared.opened.fetch_add(1, Ordering::Relaxed);
        let Shared { kind, id, run, .. } = &*self.shared;
        // Not in the registry, but in ids of events: no other run may have the same.
        let key: Arc<str> = format!("{kind}::{id}::{run}::{number}").into();
        let about = self.about(name);
        let lane = |lane: &Lane| {
            let id = SourceId::of_input(lane.slot, number);
            lane.queue.settle().begin_unsaved(id, Arc::clone(&key), about.clone());
            id
        };
        self.source(number, lane, about.clone(), fields, None)
    }

    /// Opens a source with a cursor, which goes on where it was settled: [`Source::saved`]. `name` is part of its key, and
    /// no two sources of the input that are open at once may share it.
    ///
    /// # Errors
    /// If the registry cannot be read, the name is too long, or the input feeds several outputs.
    pub fn open_at_cursor(&self, name: &str, fields: Map) -> Result<Source, OpenError> {
        let Shared { kind, id, lanes, .. } = &*self.shared;
        let [lane] = &lanes[..] else {
            return Err(OpenError::Shared { name: name.into(), outputs: lanes.len() });
        };
        let key: Arc<str> = format!("{kind}::{id}::{name}").into();
        if key.len() > KEY_BYTES_MAX {
            // The registry would refuse it for ever, and with it the cursors of all other sources.
            return Err(OpenError::LongName { length: key.len() });
        }
        self.shared.metrics.has_cursors.store(true, Ordering::Relaxed);
        let saved = match lane.registry.get(&key) {
            Ok(Some(Entry::Source(entry))) => Some(entry.cursor),
            Ok(None) => None,
            Ok(Some(Entry::File(_))) => return Err(OpenError::Taken { name: name.into() }),
            Err(source) => return Err(OpenError::Registry { name: name.into(), source }),
        };
        let number = self.shared.opened.fetch_add(1, Ordering::Relaxed);
        let about = self.about(name);
        let begin = |lane: &Lane| {
            let id = SourceId::of_input(lane.slot, number);
            let cursor = saved.clone().unwrap_or_default();
            lane.queue.settle().begin_source(id, Arc::clone(&key), about.clone(), cursor);
            id
        };
        Ok(self.source(number, begin, about.clone(), fields, saved.clone()))
    }

    /// The output that an input with cursors feeds, for sources that are read as files are.
    ///
    /// # Errors
    /// If the input feeds several outputs.
    pub fn lane(&self) -> Result<&Lane, OpenError> {
        let Shared { kind, lanes, .. } = &*self.shared;
        let [lane] = &lanes[..] else {
            return Err(OpenError::Shared { name: (*kind).into(), outputs: lanes.len() });
        };
        Ok(lane)
    }

    /// The number of a source that is opened now, and its key in the registry.
    pub fn number(&self, lane: &Lane, name: &str) -> (SourceId, Arc<str>) {
        let number = self.shared.opened.fetch_add(1, Ordering::Relaxed);
        let Shared { kind, id, .. } = &*self.shared;
        (SourceId::of_input(lane.slot, number), format!("{kind}::{id}::{name}").into())
    }

    fn about(&self, name: &str) -> SourceAbout {
        SourceAbout { input: self.shared.kind.into(), name: name.into() }
    }

    fn source(
        &self,
        number: u64,
        begin: impl Fn(&Lane) -> SourceId,
        about: SourceAbout,
        mut fields: Map,
        saved: Option<SourceCursor>,
    ) -> Source {
        self.shared.metrics.opened.add(1);
        self.shared.metrics.open.add(1);
        fields.insert_path("input.type", self.shared.kind);
        let lanes = self.shared.lanes.iter();
        let lanes = lanes.map(|lane| SourceLane::new(begin(lane), lane, &fields)).collect();
        Source::new(Arc::clone(&self.shared), number, lanes, about, fields, saved)
    }
}
