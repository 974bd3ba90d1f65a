//! One input as a task: it starts when all outputs that it feeds are there, and ends once.

use crate::intake::{Intake, Lane, Shared};
use crate::metrics::InputMetrics;
use crate::{Input, InputError};
use skidder_os::Clock;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tracing::Instrument as _;

/// The part of the program that an input can use.
#[derive(Clone)]
pub struct Setup {
    /// Its id; empty if it has none.
    pub id: Arc<str>,
    /// Its name in messages: its id, or what else distinguishes it from other inputs.
    pub name: Arc<str>,
    /// A name that no other run of the program has.
    pub run: Arc<str>,
    /// Read what is there once, instead of for ever.
    pub once: bool,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// The state of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputState {
    /// Not all outputs that it feeds have started.
    Waiting,
    /// It takes events.
    Running,
    /// It takes no more, and waits until there is room for those that it has.
    Finishing,
    /// It was stopped, or has read everything there was.
    Ended,
    /// It ended by itself, for this reason.
    Failed(InputError),
}

/// One input, and the outputs that it feeds.
pub struct InputTask {
    kind: &'static str,
    stops_last: bool,
    ends_when_read: bool,
    has_a_name: bool,
    setup: Setup,
    metrics: Arc<InputMetrics>,
    runtime: Handle,
    /// How many outputs it feeds.
    outputs: usize,
    stop: watch::Sender<bool>,
    /// Set when it is to end as soon as its far side has no more.
    end: watch::Sender<bool>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Until it starts.
    input: Option<Box<dyn Input>>,
    lanes: Vec<Lane>,
    task: Option<AbortHandle>,
    now: InputState,
}

impl InputTask {
    /// An input that feeds so many outputs and runs in `runtime`. It starts when all of them have started.
    pub fn new(input: Box<dyn Input>, setup: Setup, outputs: usize, runtime: Handle) -> Arc<Self> {
        Self::with_metrics(input, setup, outputs, runtime, Arc::default())
    }

    /// The same in the place of another one: what was lost before it is counted on.
    pub fn after(
        before: &Self,
        input: Box<dyn Input>,
        setup: Setup,
        outputs: usize,
        runtime: Handle,
    ) -> Arc<Self> {
        let metrics = Arc::new(InputMetrics::after(&before.metrics));
        Self::with_metrics(input, setup, outputs, runtime, metrics)
    }

    fn with_metrics(
        input: Box<dyn Input>,
        setup: Setup,
        outputs: usize,
        runtime: Handle,
        metrics: Arc<InputMetrics>,
    ) -> Arc<Self> {
        metrics.set_clock(Arc::clone(&setup.clock));
        let (stop, _) = watch::channel(false);
        let (end, _) = watch::channel(false);
        let (kind, stops_last) = (input.kind(), input.stops_last());
        let (ends_when_read, has_a_name) = (input.ends_when_read(), input.has_a_name());
        let state =
            State { input: Some(input), lanes: Vec::new(), task: None, now: InputState::Waiting };
        Arc::new(Self {
            kind,
            stops_last,
            ends_when_read,
            has_a_name,
            setup,
            metrics,
            runtime,
            outputs,
            stop,
            end,
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// Its type.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// See [`Input::stops_last`].
    pub(crate) fn stops_last(&self) -> bool {
        self.stops_last
    }

    /// See [`Input::ends_when_read`].
    pub(crate) fn ends_when_read(&self) -> bool {
        self.ends_when_read
    }

    /// Its id; empty if it has none.
    pub fn id(&self) -> &str {
        &self.setup.id
    }

    /// Its name in messages: see [`Setup::name`].
    pub fn name(&self) -> &str {
        &self.setup.name
    }

    /// Its counters.
    pub fn metrics(&self) -> &Arc<InputMetrics> {
        &self.metrics
    }

    /// Whether a run of it goes on where another one was settled.
    pub(crate) fn has_cursors(&self) -> bool {
        self.metrics.has_cursors.load(Ordering::Relaxed)
    }

    /// See [`Input::has_a_name`].
    pub(crate) fn has_a_name(&self) -> bool {
        self.has_a_name
    }

    /// Its state.
    pub fn state(&self) -> InputState {
        self.lock().now.clone()
    }

    /// An output that it feeds has started; the last one of them starts the input.
    pub(crate) fn add_lane(self: &Arc<Self>, lane: Lane) {
        let mut state = self.lock();
        state.lanes.push(lane);
        if state.lanes.len() < self.outputs || *self.stop.borrow() {
            return;
        }
        let Some(input) = state.input.take() else { return };
        let shared = Shared {
            kind: self.kind,
            id: Arc::clone(&self.setup.id),
            run: Arc::clone(&self.setup.run),
            lanes: std::mem::take(&mut state.lanes),
            clock: Arc::clone(&self.setup.clock),
            metrics: Arc::clone(&self.metrics),
            stop: self.stop.subscribe(),
            end: self.end.subscribe(),
            once: self.setup.once,
            opened: std::sync::atomic::AtomicU64::new(0),
            backlogs: std::sync::OnceLock::new(),
            task: Arc::downgrade(self),
        };
        state.now = InputState::Running;
        let work = input.run(Intake { shared: Arc::new(shared) });
        let ending = Ending(Arc::clone(self));
        let span = tracing::info_span!("input", r#type = self.kind, id = &*self.setup.id);
        let work = async move {
            let ending = ending;
            ending.end(work.await);
        };
        state.task = Some(self.runtime.spawn(work.instrument(span)).abort_handle());
    }

    /// Asks it to take nothing more.
    pub fn stop(&self) {
        self.stop.send_replace(true);
        let mut state = self.lock();
        // It never starts then.
        if state.input.take().is_some() {
            state.now = InputState::Ended;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Asks it to end when its far side has no more; one that cannot ([`Input::ends_when_read`]) stops at once.
    pub(crate) fn end_when_read(&self) {
        if self.ends_when_read && self.state() != InputState::Waiting {
            self.end.send_replace(true);
        } else {
            self.stop();
        }
    }

    /// Waits until it has ended, at most `limit`; returns whether it has.
    pub fn wait_ended(&self, limit: Duration) -> bool {
        use InputState::{Finishing, Running, Waiting};
        self.wait_while(limit, |now| matches!(now, Waiting | Running | Finishing))
    }

    /// Waits until it takes nothing more from its far side, at most `limit`; returns whether it does not.
    pub fn wait_finishing(&self, limit: Duration) -> bool {
        self.wait_while(limit, |now| matches!(now, InputState::Waiting | InputState::Running))
    }

    fn wait_while(&self, limit: Duration, is_so: impl Fn(&InputState) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |state| is_so(&state.now));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !is_so(&state.now)
    }

    /// It takes nothing more.
    pub(crate) fn set_finishing(&self) {
        let mut state = self.lock();
        if state.now == InputState::Running {
            state.now = InputState::Finishing;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Aborts it: events that no output has taken are given up.
    pub(crate) fn abort(&self) {
        let task = self.lock().task.take();
        if let Some(task) = task {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for InputTask {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = out.debug_struct("InputTask");
        out.field("kind", &self.kind).field("id", &self.setup.id).finish_non_exhaustive()
    }
}

/// Notes the end of an input when it goes, also if it is a bug or was aborted.
struct Ending(Arc<InputTask>);

impl Ending {
    fn end(&self, result: Result<(), InputError>) {
        let now = match result {
            Ok(()) => InputState::Ended,
            Err(error) => {
                tracing::error!(%error, "the input has ended");
                InputState::Failed(error)
            }
        };
        self.0.lock().now = now;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if matches!(state.now, InputState::Running | InputState::Finishing) {
            let what = if *self.0.stop.borrow() {
                "it did not stop when asked, and was aborted"
            } else {
                "it ended by a bug"
            };
            state.now = InputState::Failed(InputError(what.to_owned()));
        }
        drop(state);
        self.0.changed.notify_all();
    }
}
