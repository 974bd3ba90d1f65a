//! The contract of inputs: what each of them promises, whatever its protocol.
//!
//! An input's tests describe its far side as an [`InputTrial`] and call [`keep_input`]: numbered lines come from the
//! far side while the queue is full, the input is stopped in the middle, another one takes its place, and garbage
//! comes in between. A judge counts where each line ended: delivered, dropped with a reason, or left to the far side;
//! the answers to the far side must agree, and so must the ledger of every output.

use skidder_event::Unprocessed;
use skidder_input::{
    Input, InputState, InputTask, LaneOf, Setup, TaskDriver, TaskInputs, TasksChange,
};
use skidder_os::{Clock, RealFs, SystemClock};
use skidder_pipeline::{
    Delivery, Patience, Pipeline, Queue, QueueLimits, Queues, Registrar, Settle, TakeLimits,
};
use skidder_registry::{Options, Registry};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::runtime::Handle;

/// Something that takes longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Lines that do not come for so long do not come any more.
const SILENCE: Duration = Duration::from_secs(10);

/// How long nothing may happen before it is taken for rest.
const REST: Duration = Duration::from_millis(200);

/// How long an input that is stopped may take to end.
const END: Duration = Duration::from_secs(5);

/// The field with the line of an event that has no message, as one of a flow.
const LINE_WITHOUT_MESSAGE: &str = "network.name";

/// What a verdict means to the sources of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing: what was handed over cannot be sent again.
    Nothing,
    /// A cursor moves: another run goes on behind it.
    Cursor,
    /// The far side gets an acknowledgement, and sends again what has none.
    Acknowledgement,
}

/// Work of a far side.
pub type FarSideFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The far side of an input, as its tests describe it.
pub trait InputTrial: Send + Sync {
    /// Another run of the input, over the same far side.
    fn input(&self) -> Box<dyn Input>;

    /// What a verdict means to it.
    fn meaning(&self) -> Meaning;

    /// Hands over the lines with these numbers ([`crate::line`]), waiting as long as the input does not take them.
    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_>;

    /// Hands over something that is no event. `None` if there is no such thing.
    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        None
    }

    /// Lines that were acknowledged to the far side.
    fn acknowledged(&self) -> BTreeSet<usize> {
        BTreeSet::new()
    }

    /// Whether the input may make the far side wait. One that cannot is offered events, and drops are counted.
    fn waits(&self) -> bool {
        true
    }

    /// The most lines that are on their way outside of the queue when the input waits: in its buffers, those of the system,
    /// and of the far side.
    fn on_the_way_max(&self) -> usize {
        4000
    }
}

/// One output without a destination: the test gives the verdicts.
struct Output {
    queue: Queue,
    settle: Arc<Settle>,
    registry: Arc<Registry>,
    inputs: TaskInputs,
    pipeline: Pipeline,
    /// How often each line was delivered.
    delivered: BTreeMap<usize, u32>,
}

/// A run of the program: the input, and the outputs that it feeds.
struct Run {
    input: Arc<InputTask>,
    outputs: Vec<Output>,
    name: &'static str,
}

fn setup() -> Setup {
    let clock = SystemClock::new();
    let run = clock.wall().0.to_string();
    let (id, name) = ("trial".into(), "trial".into());
    Setup { id, name, run: run.into(), once: false, clock: Arc::new(clock) }
}

fn task(trial: &dyn InputTrial, outputs: usize) -> Arc<InputTask> {
    InputTask::new(trial.input(), setup(), outputs, Handle::current())
}

fn lane(input: &Arc<InputTask>, slot: usize, registry: &Arc<Registry>) -> LaneOf {
    LaneOf {
        input: Arc::clone(input),
        slot,
        bind: Unprocessed::bind(),
        registry: Arc::clone(registry),
    }
}

impl Output {
    fn start(input: &Arc<InputTask>, events: usize, directory: &Path) -> Self {
        let settle = Settle::new();
        let limits = QueueLimits {
            events,
            bytes: usize::MAX,
            flush_min_events: 0,
            flush_timeout: Duration::from_millis(10),
        };
        let queue = Queue::new(limits, Arc::clone(&settle));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let opened =
            Registry::open(Arc::new(RealFs), Arc::clone(&clock), directory, Options::default());
        let registry = Arc::new(opened.unwrap().0);
        let driver = TaskDriver::new(vec![lane(input, 0, &registry)]);
        let inputs = driver.inputs();
        let registrar = Registrar::new(Arc::clone(&settle), Arc::clone(&registry));
        let queues = Queues { inputs: queue.clone(), disk: None };
        let flush = Duration::from_millis(20);
        let pipeline =
            Pipeline::start(flush, vec![Box::new(driver)], queues, registrar, clock).unwrap();
        Self { queue, settle, registry, inputs, pipeline, delivered: BTreeMap::new() }
    }

    /// Takes what is in the queue, without a verdict.
    fn take(&self) -> Vec<Delivery> {
        let mut out = Vec::new();
        self.queue.try_take(TakeLimits { events: 0, bytes: usize::MAX }, &mut out);
        out
    }

    /// Gives the rows of a delivery their verdict.
    fn deliver(&mut self, delivery: &Delivery) {
        for line in lines_of(delivery) {
            *self.delivered.entry(line).or_default() += 1;
        }
        delivery.ticket.delivered(delivery.len() as u32);
    }

    fn check(&self, name: &str) {
        let total = self.settle.total();
        assert!(total.adds_up(), "{name}: {total:?}");
    }
}

fn lines_of(delivery: &Delivery) -> Vec<usize> {
    let path = skidder_event::Path::parse(LINE_WITHOUT_MESSAGE).expect("a constant that is a path");
    let rows = delivery.rows.start as usize..delivery.rows.end as usize;
    let number = |row: usize| {
        let batch = &delivery.batch;
        let text = match batch.event(row).get(&path) {
            Some(skidder_event::ValueRef::Str(text)) => text,
            // Also if the event has it in another field, as objects of JSON do.
            _ => batch.text(batch.rows()[row].message),
        };
        crate::number(&String::from_utf8_lossy(text))
    };
    rows.map(number).collect()
}

impl Run {
    fn start(name: &'static str, trial: &dyn InputTrial, events: usize, places: &[&Path]) -> Self {
        let input = task(trial, places.len());
        let outputs = places.iter().map(|place| Output::start(&input, events, place)).collect();
        Self { input, outputs, name }
    }

    /// Delivers what comes until each output has had so many lines, or nothing comes any more.
    async fn deliver(&mut self, lines: usize) {
        let (name, input) = (self.name, &self.input);
        for output in &mut self.outputs {
            let mut newest = tokio::time::Instant::now();
            while output.delivered.len() < lines {
                for delivery in output.take() {
                    output.deliver(&delivery);
                    newest = tokio::time::Instant::now();
                }
                output.check(name);
                tokio::time::sleep(Duration::from_millis(1)).await;
                let had = output.delivered.len();
                let is_quiet = newest.elapsed() > SILENCE && had < lines;
                assert!(
                    !is_quiet,
                    "{name}: {had} of {lines} lines came; the input is {:?}",
                    input.state()
                );
            }
        }
    }

    /// Stops the input, and what is behind it.
    async fn stop(mut self) -> Vec<BTreeMap<usize, u32>> {
        let name = self.name;
        let mut pipelines = Vec::new();
        let mut delivered = Vec::new();
        for output in self.outputs.drain(..) {
            delivered.push(output.delivered.clone());
            pipelines.push(output);
        }
        let input = Arc::clone(&self.input);
        let stopped = tokio::task::spawn_blocking(move || {
            let interrupt = AtomicBool::new(false);
            for output in &mut pipelines {
                let patience = Patience { limit: END, interrupt: &interrupt };
                output.pipeline.stop_reading(patience);
            }
            let state = input.state();
            assert_eq!(state, InputState::Ended, "{name}: an input that must stop ends");
            for mut output in pipelines {
                output.check(name);
                assert!(output.pipeline.finish(), "{name}: the cursors are saved");
                output.check(name);
            }
        });
        let stopped = tokio::time::timeout(PATIENCE, stopped);
        let stopped = stopped.await.unwrap_or_else(|_| panic!("{name}: it does not stop"));
        if let Err(error) = stopped {
            std::panic::resume_unwind(error.into_panic());
        }
        delivered
    }
}

/// Tries the contract on an input; `fresh` makes a far side that has handed nothing over yet, for each case. A runtime with
/// several threads is needed.
///
/// # Panics
/// If the input breaks it; the message says which case.
pub async fn keep_input<T: InputTrial>(fresh: impl Fn() -> T) {
    every_line_comes_once(&fresh()).await;
    nothing_is_acknowledged_before_its_verdict(&fresh()).await;
    a_full_queue_makes_the_far_side_wait(&fresh()).await;
    a_stop_in_the_middle_loses_nothing(&fresh()).await;
    another_takes_its_place(&fresh()).await;
    garbage_costs_nothing_else(&fresh()).await;
    two_outputs_have_every_line(&fresh()).await;
}

/// Numbers that no case before has used: a far side may keep what it was sent.
fn fresh(count: usize) -> Range<usize> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let start = NEXT.fetch_add(count, Ordering::Relaxed);
    start..start + count
}

fn assert_once(delivered: &BTreeMap<usize, u32>, lines: &Range<usize>, case: &str) {
    for line in lines.clone() {
        let times = delivered.get(&line).copied().unwrap_or_default();
        assert_eq!(times, 1, "{case}: line {line} came {times} times");
    }
}

async fn await_acknowledged(trial: &dyn InputTrial, lines: &Range<usize>, case: &str) {
    if trial.meaning() != Meaning::Acknowledgement {
        return;
    }
    let all = async {
        while !trial.acknowledged().is_superset(&lines.clone().collect()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, all).await.is_err() {
        let missing = lines.clone().filter(|line| !trial.acknowledged().contains(line)).count();
        panic!("{case}: {missing} lines were delivered and never acknowledged");
    }
}

/// In order, once each, and acknowledged.
async fn every_line_comes_once(trial: &dyn InputTrial) {
    const CASE: &str = "every line comes once";
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::start(CASE, trial, 1000, &[directory.path()]);
    let lines = fresh(5000);
    tokio::join!(trial.send(lines.clone()), run.deliver(lines.len()));
    await_acknowledged(trial, &lines, CASE).await;
    let ledger = run.outputs[0].settle.total();
    assert_eq!((ledger.read(), ledger.delivered(), ledger.in_flight()), (5000, 5000, 0), "{CASE}");
    let delivered = run.stop().await;
    assert_once(&delivered[0], &lines, CASE);
}

/// Not when it was read, queued or taken; and with the last verdict of its batch.
async fn nothing_is_acknowledged_before_its_verdict(trial: &dyn InputTrial) {
    const CASE: &str = "nothing is acknowledged before its verdict";
    if trial.meaning() != Meaning::Acknowledgement {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::start(CASE, trial, 10_000, &[directory.path()]);
    let lines = fresh(500);
    trial.send(lines.clone()).await;
    let mut taken: Vec<Delivery> = Vec::new();
    let came = async {
        while taken.iter().map(Delivery::len).sum::<usize>() < lines.len() {
            taken.extend(run.outputs[0].take());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, came)
        .await
        .unwrap_or_else(|_| panic!("{CASE}: they do not come"));
    tokio::time::sleep(REST).await;
    let early: Vec<usize> =
        trial.acknowledged().into_iter().filter(|line| lines.contains(line)).collect();
    assert!(early.is_empty(), "{CASE}: {} lines were, {:?} first", early.len(), early.first());
    for delivery in &taken {
        run.outputs[0].deliver(delivery);
    }
    await_acknowledged(trial, &lines, CASE).await;
    run.stop().await;
}

/// Memory is bounded by the queue; or, where the far side cannot wait, each event that was refused is on the ledger.
async fn a_full_queue_makes_the_far_side_wait(trial: &dyn InputTrial) {
    const CASE: &str = "a full queue makes the far side wait";
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::start(CASE, trial, 100, &[directory.path()]);
    let lines = fresh(20_000);
    let send = trial.send(lines.clone());
    tokio::pin!(send);
    // No output takes anything for a while.
    let is_sent = tokio::time::timeout(REST * 3, &mut send).await.is_ok();
    let read = run.outputs[0].settle.total().read();
    let bound = 100 + trial.on_the_way_max() as u64;
    if trial.waits() {
        assert!(read <= bound, "{CASE}: {read} lines were read with room for 100");
        // A far side that keeps what it has does not notice.
        let keeps = trial.meaning() != Meaning::Nothing;
        assert!(keeps || !is_sent, "{CASE}: all {} lines were handed over", lines.len());
        let rest = async {
            if !is_sent {
                send.await;
            }
        };
        tokio::join!(rest, run.deliver(lines.len()));
        let ledger = run.outputs[0].settle.total();
        assert_eq!((ledger.delivered(), ledger.dropped().total()), (20_000, 0), "{CASE}");
    } else {
        if !is_sent {
            send.await;
        }
        let refused =
            run.outputs[0].settle.total().dropped().get(skidder_event::DropReason::QueueFull);
        assert!(refused > 0, "{CASE}: nothing says that events were dropped");
    }
    run.outputs[0].check(CASE);
    run.stop().await;
}

/// Events without a verdict come again, if the source can send them again; others are delivered or counted as
/// dropped.
async fn a_stop_in_the_middle_loses_nothing(trial: &dyn InputTrial) {
    const CASE: &str = "a stop in the middle loses nothing";
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::start(CASE, trial, 200, &[directory.path()]);
    let lines = fresh(600);
    let (first, rest) = (lines.start..lines.start + 100, lines.start + 100..lines.end);
    tokio::join!(trial.send(first.clone()), run.deliver(first.len()));
    await_acknowledged(trial, &first, CASE).await;
    // These are stuck: some in the queue, some before it, some with the far side.
    let mut send = trial.send(rest.clone());
    let is_sent = tokio::time::timeout(REST, &mut send).await.is_ok();
    let held = run.outputs[0].take();
    let mut all = BTreeMap::new();
    let settle = Arc::clone(&run.outputs[0].settle);
    merge(&mut all, run.stop().await.remove(0));
    let ledger = settle.total();
    drop(held);
    drop(settle);
    assert!(ledger.adds_up(), "{CASE}: {ledger:?}");
    let acknowledged = trial.acknowledged();
    let early = rest.clone().filter(|line| acknowledged.contains(line)).count();
    assert_eq!(early, 0, "{CASE}: {early} lines without a verdict were acknowledged");
    if trial.meaning() == Meaning::Nothing {
        let accounted = ledger.delivered() + ledger.dropped().total() + ledger.in_flight();
        assert_eq!(accounted, ledger.read(), "{CASE}");
        // What the far side did not hand over it cannot hand over to the next run.
        return;
    }
    let mut run = Run::start(CASE, trial, 1000, &[directory.path()]);
    if is_sent {
        run.deliver(rest.len()).await;
    } else {
        tokio::join!(send, run.deliver(rest.len()));
    }
    await_acknowledged(trial, &lines, CASE).await;
    merge(&mut all, run.stop().await.remove(0));
    assert_once(&all, &lines, CASE);
}

fn merge(all: &mut BTreeMap<usize, u32>, more: BTreeMap<usize, u32>) {
    for (line, times) in more {
        *all.entry(line).or_default() += times;
    }
}

/// A reload: another run begins when this one has ended and all it read has its verdict.
async fn another_takes_its_place(trial: &dyn InputTrial) {
    const CASE: &str = "another takes its place";
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::start(CASE, trial, 1000, &[directory.path()]);
    let lines = fresh(2000);
    let (first, rest) = (lines.start..lines.start + 1000, lines.start + 1000..lines.end);
    tokio::join!(trial.send(first.clone()), run.deliver(first.len()));
    let next = task(trial, 1);
    let (sender, done) = tokio::sync::oneshot::channel();
    let change = TasksChange {
        remove: vec![0],
        when_read: false,
        add: vec![lane(&next, 1, &run.outputs[0].registry)],
        done: Box::new(move || sender.send(()).unwrap_or_default()),
    };
    run.outputs[0].inputs.change(change).unwrap();
    let changed = tokio::time::timeout(PATIENCE, done).await;
    changed.unwrap_or_else(|_| panic!("{CASE}: the other one never begins")).unwrap();
    run.input = next;
    tokio::join!(trial.send(rest), run.deliver(lines.len()));
    await_acknowledged(trial, &lines, CASE).await;
    run.outputs[0].check(CASE);
    let delivered = run.stop().await;
    assert_once(&delivered[0], &lines, CASE);
}

/// It is counted; what comes before and behind it comes.
async fn garbage_costs_nothing_else(trial: &dyn InputTrial) {
    const CASE: &str = "garbage costs nothing else";
    let Some(garbage) = trial.send_garbage() else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::start(CASE, trial, 1000, &[directory.path()]);
    let lines = fresh(200);
    let middle = lines.start + 100;
    let send = async {
        trial.send(lines.start..middle).await;
        garbage.await;
        trial.send(middle..lines.end).await;
    };
    tokio::join!(send, run.deliver(lines.len()));
    await_acknowledged(trial, &lines, CASE).await;
    // What is read beside the lines may be found out behind them.
    let tries = PATIENCE.as_millis() / REST.as_millis();
    for _ in (0..tries).take_while(|_| run.input.metrics().errors.get() == 0) {
        tokio::time::sleep(REST).await;
    }
    assert!(run.input.metrics().errors.get() > 0, "{CASE}: nothing says that there was any");
    let delivered = run.stop().await;
    assert_once(&delivered[0], &lines, CASE);
}

/// Each output has its own ledger, and the far side gets its acknowledgement when both have a verdict.
async fn two_outputs_have_every_line(trial: &dyn InputTrial) {
    const CASE: &str = "two outputs have every line";
    if trial.meaning() == Meaning::Cursor {
        // Each output has a run of its own.
        return;
    }
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut run = Run::start(CASE, trial, 10_000, &[one.path(), two.path()]);
    let lines = fresh(300);
    trial.send(lines.clone()).await;
    let second = run.outputs.pop().unwrap();
    run.deliver(lines.len()).await;
    if trial.meaning() == Meaning::Acknowledgement {
        tokio::time::sleep(REST).await;
        let acknowledged = trial.acknowledged();
        let early = lines.clone().filter(|line| acknowledged.contains(line)).count();
        assert_eq!(early, 0, "{CASE}: {early} lines are with one output only");
    }
    run.outputs.push(second);
    run.deliver(lines.len()).await;
    await_acknowledged(trial, &lines, CASE).await;
    for delivered in run.stop().await {
        assert_once(&delivered, &lines, CASE);
    }
}
