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

/// How long they may take in all, as long as the output settles what it gets.
const STOP_MAX: Duration = Duration::from_secs(10);

/// How long they may take behind that, before they are ended wherever they are.
const END_GRACE: Duration = Duration::from_secs(1);

/// How long those that end may take until they take nothing more; behind that a change is over without them.
const LEAVE_MAX: Duration = Duration::from_secs(10);

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

/// Changes to the inputs of a running output.
pub struct TasksChange {
    /// The numbers of those that end.
    pub remove: Vec<usize>,
    /// These end when their far side has no more, if they can ([`crate::Input::ends_when_read`]).
    pub when_read: bool,
    /// Those that begin at once, and take over what only one input can have. One of a type of which an input with cursors, or
    /// with a name ([`crate::Input::has_a_name`]), ends begins when that has ended, all it read has its verdict, and its
    /// cursors are saved.
    pub add: Vec<LaneOf>,
    /// Called when all of these have begun, and those that end take nothing more.
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
    /// Those that a change ends.
    ending: Vec<Arc<InputTask>>,
    /// Of changes under way.
    changing: Vec<JoinHandle<()>>,
    stopped: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that may run.
    fn inputs(&self) -> Vec<Arc<InputTask>> {
        let state = self.lock();
        let running = state.running.iter().map(|(_, input)| input);
        running.chain(&state.ending).map(Arc::clone).collect()
    }

    /// Waits until all is to end, at most `limit`.
    fn wait_stopped(&self, limit: Duration) {
        let waited = self.ending.wait_timeout_while(self.lock(), limit, |state| !state.stopped);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Connects an input to its output; does nothing if everything must end.
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

    /// Asks inputs to end.
    fn end(&self, slots: &[usize], when_read: bool) -> Ending {
        let mut state = self.lock();
        let State { running, ending, .. } = &mut *state;
        ending.retain(|input| !input.wait_ended(Duration::ZERO));
        let inputs: Vec<_> = running.extract_if(.., |(slot, _)| slots.contains(slot)).collect();
        ending.extend(inputs.iter().map(|(_, input)| Arc::clone(input)));
        drop(state);
        for (_, input) in &inputs {
            if when_read { input.end_when_read() } else { input.stop() }
        }
        Ending { inputs, when_read }
    }

    /// Waits for inputs that are ending, and starts those that need what they have settled. Returns `false` if
    /// everything must end before that.
    fn await_end(&self, ending: &Ending, late: Vec<LaneOf>, stage: &Stage) -> bool {
        let limit = stage.clock.monotonic() + LEAVE_MAX;
        while !ending.take_nothing() && (ending.has_no_limit() || stage.clock.monotonic() < limit) {
            if self.lock().stopped {
                return false;
            }
            self.wait_stopped(LOOK_AGAIN);
        }
        if late.is_empty() {
            return true;
        }
        let mut commit = None;
        while !(ending.are_over(stage)
            && stage.commits.is_done(*commit.get_or_insert_with(|| stage.commits.request())))
        {
            if self.lock().stopped {
                // Cursors stand where they were.
                return false;
            }
            self.wait_stopped(LOOK_AGAIN);
        }
        for of in late {
            self.begin(of);
        }
        true
    }

    /// Forgets the counts of inputs when they have ended: what they had may have come after a change was over.
    fn forget(&self, ending: &Ending, stage: &Stage) {
        while !ending.are_over(stage) {
            if self.lock().stopped {
                return;
            }
            self.wait_stopped(LOOK_AGAIN);
        }
        let slots: Vec<usize> = ending.inputs.iter().map(|(slot, _)| *slot).collect();
        stage.queue.settle().forget_inputs(&slots);
    }
}

/// Inputs that are ending, and their numbers.
struct Ending {
    inputs: Vec<(usize, Arc<InputTask>)>,
    /// They were asked to end when their far sides have no more.
    when_read: bool,
}

impl Ending {
    /// Whether an input of this type must be over before another one begins.
    fn is_awaited(&self, kind: &str) -> bool {
        let is_awaited = |input: &InputTask| input.has_cursors() || input.has_a_name();
        self.inputs.iter().any(|(_, input)| input.kind() == kind && is_awaited(input))
    }

    /// Whether one reads on as long as its far side has something.
    fn has_no_limit(&self) -> bool {
        self.when_read && self.inputs.iter().any(|(_, input)| input.ends_when_read())
    }

    /// Whether none takes anything more.
    fn take_nothing(&self) -> bool {
        self.inputs.iter().all(|(_, input)| input.wait_finishing(Duration::ZERO))
    }

    /// Whether all have ended, and what they read has its verdict: nothing is counted for them any more.
    fn are_over(&self, stage: &Stage) -> bool {
        let has_ended = |input: &InputTask| {
            // What another input sends for one that has ended keeps the source open.
            input.wait_ended(Duration::ZERO) && input.metrics().open.get() == 0
        };
        self.inputs.iter().all(|(_, input)| has_ended(input)) && {
            let (_, inputs) = stage.queue.settle().ledgers();
            let is_settled = |slot: &usize| inputs.get(slot).is_none_or(|of| of.in_flight() == 0);
            self.inputs.iter().all(|(slot, _)| is_settled(slot))
        }
    }
}

impl TaskDriver {
    /// Over these inputs.
    pub fn new(inputs: Vec<LaneOf>) -> Self {
        let state = State { waiting: inputs, ..State::default() };
        let shared = Shared { state: Mutex::new(state), ending: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// The handle that changes its inputs.
    pub fn inputs(&self) -> TaskInputs {
        TaskInputs(Arc::clone(&self.shared))
    }
}

impl TaskInputs {
    /// Changes the inputs: see [`TasksChange`]. What of it is not over when the driver stops is left.
    ///
    /// # Errors
    /// Those of the system, when a thread cannot be started.
    pub fn change(&self, change: TasksChange) -> io::Result<()> {
        let shared = Arc::clone(&self.0);
        let Some(stage) = self.0.lock().stage.clone() else { return Ok(()) };
        let TasksChange { remove, when_read, add, done } = change;
        let ending = shared.end(&remove, when_read);
        let (late, now): (Vec<LaneOf>, Vec<LaneOf>) =
            add.into_iter().partition(|of| ending.is_awaited(of.input.kind()));
        for of in now {
            shared.begin(of);
        }
        let work = move || {
            if shared.await_end(&ending, late, &stage) {
                done();
                shared.forget(&ending, &stage);
            }
        };
        let thread = std::thread::Builder::new().name("inputs".to_owned()).spawn(work)?;
        let mut state = self.0.lock();
        state.changing.retain(|thread| !thread.is_finished());
        state.changing.push(thread);
        Ok(())
    }
}

/// Asks inputs to stop, and waits until they have sent what they have, as long as they may take.
fn stop_all(inputs: &[Arc<InputTask>], stage: &Stage) {
    for input in inputs {
        input.stop();
    }
    let have_ended = |within: Duration| {
        let deadline = stage.clock.monotonic() + within;
        let left = || deadline.since(stage.clock.monotonic());
        inputs.iter().all(|input| input.wait_ended(left()))
    };
    let limit = stage.clock.monotonic() + STOP_MAX;
    let mut before = stage.queue.settle().total();
    // Whether something else than this output may have held the inputs up: another one, whose queue closes now.
    let mut may_be_held_up = true;
    while !have_ended(STOP_GRACE) && stage.clock.monotonic() < limit {
        let now = stage.queue.settle().total();
        if now == before {
            // An output that settles nothing is stuck: inputs that wait for room in its queue go on when that closes.
            if stage.queue.blocked_since().is_some() || !may_be_held_up {
                return;
            }
            may_be_held_up = false;
        }
        before = now;
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
        let (last, first): (Vec<_>, Vec<_>) =
            inputs.into_iter().partition(|input| input.stops_last());
        stop_all(&first, &stage);
        stop_all(&last, &stage);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Setup;
    use crate::{Input, InputFuture, Intake};
    use skidder_event::Unprocessed;
    use skidder_os::{RealFs, SystemClock};
    use skidder_pipeline::{Commits, Queue, QueueLimits, Settle};
    use skidder_registry::Options;

    /// Takes its time to stop, unless it is to stop last, and writes down what happens.
    struct Slow {
        stops_last: bool,
        seen: Arc<Mutex<Vec<&'static str>>>,
    }

    impl Input for Slow {
        fn kind(&self) -> &'static str {
            "slow"
        }

        fn stops_last(&self) -> bool {
            self.stops_last
        }

        fn run(self: Box<Self>, intake: Intake) -> InputFuture {
            Box::pin(async move {
                intake.stopped().await;
                let what =
                    if self.stops_last { "the last one is asked" } else { "another one has ended" };
                if !self.stops_last {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(what);
                Ok(())
            })
        }
    }

    #[test]
    fn what_nobody_sends_again_is_taken_until_all_other_inputs_have_ended() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.expect("threads");
        let clock: Arc<dyn skidder_os::Clock> = Arc::new(SystemClock::new());
        let place = tempfile::tempdir().expect("a directory");
        let opened =
            Registry::open(Arc::new(RealFs), Arc::clone(&clock), place.path(), Options::default());
        let registry = Arc::new(opened.expect("an empty directory").0);
        let seen = Arc::<Mutex<Vec<_>>>::default();
        let lane = |(slot, stops_last)| {
            let input = Box::new(Slow { stops_last, seen: Arc::clone(&seen) });
            let setup = Setup {
                id: "".into(),
                name: "".into(),
                run: "run".into(),
                once: false,
                clock: Arc::clone(&clock),
            };
            let input = InputTask::new(input, setup, 1, runtime.handle().clone());
            LaneOf { input, slot, bind: Unprocessed::bind(), registry: Arc::clone(&registry) }
        };
        let mut driver = TaskDriver::new([(0, true), (1, false)].map(lane).into());
        let queue = Queue::new(QueueLimits::default(), Settle::new());
        driver.start(&Stage { queue, commits: Commits::default(), clock }).expect("it starts");
        driver.stop();
        driver.join();
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(*seen, ["another one has ended", "the last one is asked"]);
    }
}
