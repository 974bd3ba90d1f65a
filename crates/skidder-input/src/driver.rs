//! Drives the inputs of an output that are tasks.

use crate::intake::Lane;
use crate::task::{InputState, InputTask};
use skidder_event::Bind;
use skidder_pipeline::{Driver, ReadOnce, Stage, join};
use skidder_registry::Registry;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long inputs may take after the request to stop to send what they have, before the queue closes.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// How long they may take behind that, before they are ended wherever they are.
const END_GRACE: Duration = Duration::from_secs(1);

/// How long until the next look at inputs that end.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// An input, and what it needs for one output.
pub struct LaneOf {
    /// The input, which other outputs may have as well.
    pub input: Arc<InputTask>,
    /// Its number among the inputs of this output, which no other input has or had.
    pub slot: usize,
    /// Its processors for this output.
    pub bind: Arc<dyn Bind>,
    /// Where cursors for this output are saved.
    pub registry: Arc<Registry>,
}

/// What is to change about the inputs of a running output.
pub struct TasksChange {
    /// The numbers of those that end.
    pub remove: Vec<usize>,
    /// Those that begin when these have ended, all they read has its verdict, and their cursors are saved.
    pub add: Vec<LaneOf>,
    /// Called when it is done.
    pub done: Box<dyn FnOnce() + Send>,
}

/// Drives inputs of one output.
pub struct TaskDriver {
    shared: Arc<Shared>,
}

/// Changes the inputs of a driver while it runs.
#[derive(Clone)]
pub struct TaskInputs(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when all is to end.
    ending: Condvar,
}

#[derive(Default)]
struct State {
    stage: Option<Stage>,
    /// Until it starts.
    waiting: Vec<LaneOf>,
    running: Vec<(usize, Arc<InputTask>)>,
    /// Of changes under way.
    changing: Vec<JoinHandle<()>>,
    stopped: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inputs(&self) -> Vec<Arc<InputTask>> {
        self.lock().running.iter().map(|(_, input)| Arc::clone(input)).collect()
    }

    /// Waits until all is to end, at most `limit`.
    fn wait_stopped(&self, limit: Duration) {
        let waited = self.ending.wait_timeout_while(self.lock(), limit, |state| !state.stopped);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Gives an input its output; nothing if all is to end.
    fn begin(&self, of: LaneOf) {
        let mut state = self.lock();
        if state.stopped {
            return;
        }
        let Some(stage) = &state.stage else { return };
        let LaneOf { input, slot, bind, registry } = of;
        let lane = Lane { slot, queue: stage.queue.clone(), bind, registry };
        state.running.push((slot, Arc::clone(&input)));
        drop(state);
        input.add_lane(lane);
    }

    /// Ends inputs, waits until others may read the same, and lets these begin.
    fn change(&self, change: TasksChange, stage: &Stage) {
        let TasksChange { remove, add, done } = change;
        let mut ending = Vec::new();
        self.lock().running.retain(|(slot, input)| {
            let ends = remove.contains(slot);
            if ends {
                ending.push(Arc::clone(input));
            }
            !ends
        });
        for input in &ending {
            input.stop();
        }
        let is_over = || {
            ending.iter().all(|input| input.wait_ended(Duration::ZERO)) && {
                // Only what has a cursor goes on behind its verdicts.
                let (_, inputs) = stage.queue.settle().ledgers();
                let is_settled =
                    |slot: &usize| inputs.get(slot).is_none_or(|of| of.in_flight() == 0);
                !ending.iter().any(|input| input.has_cursors()) || remove.iter().all(is_settled)
            }
        };
        let mut commit = None;
        loop {
            if self.lock().stopped {
                return;
            }
            if is_over()
                && stage.commits.is_done(*commit.get_or_insert_with(|| stage.commits.ask()))
            {
                break;
            }
            self.wait_stopped(LOOK_AGAIN);
        }
        for of in add {
            self.begin(of);
        }
        done();
    }
}

impl TaskDriver {
    /// Over these inputs.
    pub fn new(inputs: Vec<LaneOf>) -> Self {
        let state = State { waiting: inputs, ..State::default() };
        let shared = Shared { state: Mutex::new(state), ending: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// What changes its inputs.
    pub fn inputs(&self) -> TaskInputs {
        TaskInputs(Arc::clone(&self.shared))
    }
}

impl TaskInputs {
    /// Changes the inputs: see [`TasksChange`]. A change that is not over when the driver stops is left.
    ///
    /// # Errors
    /// Those of the system, when a thread cannot be started.
    pub fn change(&self, change: TasksChange) -> io::Result<()> {
        let shared = Arc::clone(&self.0);
        let mut state = self.0.lock();
        let Some(stage) = state.stage.clone() else { return Ok(()) };
        let work = move || shared.change(change, &stage);
        let thread = std::thread::Builder::new().name("inputs".to_owned()).spawn(work)?;
        state.changing.push(thread);
        Ok(())
    }
}

impl Driver for TaskDriver {
    fn start(&mut self, stage: &Stage) -> io::Result<()> {
        let mut state = self.shared.lock();
        state.stage = Some(stage.clone());
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for of in waiting {
            self.shared.begin(of);
        }
        Ok(())
    }

    fn read_once(&self) -> ReadOnce {
        let inputs = self.shared.inputs();
        let shared = Arc::clone(&self.shared);
        Box::new(move || {
            for input in inputs {
                while !input.wait_ended(Duration::from_hours(1)) {}
            }
            !shared.lock().stopped
        })
    }

    fn stop(&mut self) {
        let stage = {
            let mut state = self.shared.lock();
            state.stopped = true;
            state.stage.clone()
        };
        self.shared.ending.notify_all();
        let Some(stage) = stage else { return };
        let inputs = self.shared.inputs();
        for input in &inputs {
            input.stop();
        }
        let deadline = stage.clock.monotonic() + STOP_GRACE;
        for input in inputs {
            // One that waits for room in the queue of a stuck output goes on when that closes.
            input.wait_ended(deadline.since(stage.clock.monotonic()));
        }
    }

    fn join(&mut self) {
        for input in self.shared.inputs() {
            if !input.wait_ended(END_GRACE) {
                tracing::warn!(
                    input = input.kind(),
                    id = input.id(),
                    "an input does not end; it is left"
                );
                input.abort();
                input.wait_ended(END_GRACE);
            }
            if let InputState::Failed(error) = input.state() {
                tracing::debug!(%error, input = input.kind(), "the input had ended before");
            }
        }
        let changing = std::mem::take(&mut self.shared.lock().changing);
        for thread in changing {
            join(thread);
        }
    }
}
