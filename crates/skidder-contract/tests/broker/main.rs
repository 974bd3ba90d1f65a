//! Inputs with acknowledgements over a simulated broker, through the real driver and two outputs, from seeds: messages are
//! rejected, expire and are sent again, another consumer takes over, the input is replaced (as in a reload), stopped, and
//! started again, while the outputs settle in parts and in any order.
//!
//! Judged are: each message comes at least once; it is acknowledged when every output has a verdict for each of its
//! lines, and not before; what a fenced consumer says does not count; the ledgers add up.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod consumer;
mod far_side;

use consumer::{Bug, Consumer};
use far_side::{Broker, OUTPUTS, Seen};
use skidder_event::{DropReason, Unprocessed};
use skidder_input::{InputState, InputTask, LaneOf, Setup, TaskDriver, TaskInputs, TasksChange};
use skidder_os::{Clock, RealFs, SystemClock};
use skidder_pipeline::{
    Delivery, Patience, Pipeline, Queue, QueueLimits, Queues, Registrar, Settle, TakeLimits,
};
use skidder_registry::{Options, Registry};
use skidder_testkit::Random;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Seeds of a usual run.
const SEEDS: u64 = 40;

/// Seeds within which a deliberate bug is found.
const SEEDS_OF_BUG: u64 = 12;

/// Actions of a seed.
const ACTIONS: usize = 150;

/// When nothing happens for so long, nothing happens any more.
const SILENCE: Duration = Duration::from_secs(4);

/// How long an input that is stopped may take.
const END: Duration = Duration::from_secs(5);

struct Output {
    queue: Queue,
    settle: Arc<Settle>,
    registry: Arc<Registry>,
    inputs: TaskInputs,
    pipeline: Pipeline,
    _directory: tempfile::TempDir,
}

/// Something that an output has taken, with the number of rows that have a verdict.
type Held = (usize, Delivery, u32);

struct World {
    random: Random,
    broker: Broker,
    consumer: Consumer,
    input: Arc<InputTask>,
    outputs: Vec<Output>,
    held: Vec<Held>,
    slot: usize,
    room: usize,
}

fn task(consumer: &Consumer) -> Arc<InputTask> {
    let clock = SystemClock::new();
    let run = clock.wall().0.to_string();
    let (id, name) = ("broker".into(), "broker".into());
    let setup = Setup { id, name, run: run.into(), once: false, clock: Arc::new(clock) };
    InputTask::new(Box::new(consumer.clone()), setup, OUTPUTS, Handle::current())
}

fn lane(input: &Arc<InputTask>, slot: usize, registry: &Arc<Registry>) -> LaneOf {
    let (input, registry) = (Arc::clone(input), Arc::clone(registry));
    LaneOf { input, slot, bind: Unprocessed::bind(), registry }
}

impl Output {
    fn start(input: &Arc<InputTask>, events: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settle = Settle::new();
        let flush_timeout = Duration::from_millis(1);
        let limits = QueueLimits { events, bytes: usize::MAX, flush_min_events: 0, flush_timeout };
        let queue = Queue::new(limits, Arc::clone(&settle));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let fs = Arc::new(RealFs);
        let opened = Registry::open(fs, Arc::clone(&clock), directory.path(), Options::default());
        let registry = Arc::new(opened.unwrap().0);
        let driver = TaskDriver::new(vec![lane(input, 0, &registry)]);
        let inputs = driver.inputs();
        let registrar = Registrar::new(Arc::clone(&settle), Arc::clone(&registry));
        let queues = Queues { inputs: queue.clone(), disk: None };
        let flush = Duration::from_millis(20);
        let pipeline = Pipeline::start(flush, vec![Box::new(driver)], queues, registrar, clock);
        let pipeline = pipeline.unwrap();
        Self { queue, settle, registry, inputs, pipeline, _directory: directory }
    }
}

impl World {
    fn start(seed: u64, bug: Bug) -> Self {
        let mut random = Random::new(seed);
        let broker = Broker::default();
        let consumer = Consumer { broker: broker.clone(), bug, had: Arc::default() };
        let room = if random.one_in(2) { 12 } else { 200 };
        let input = task(&consumer);
        let outputs = (0..OUTPUTS).map(|_| Output::start(&input, room)).collect();
        Self { random, broker, consumer, input, outputs, held: Vec::new(), slot: 0, room }
    }

    async fn act(&mut self) -> Result<(), String> {
        match self.random.below(50) {
            0 => self.restart().await?,
            1 | 2 => self.replace().await?,
            3 | 4 => self.broker.take_elsewhere(&mut self.random),
            5..8 => self.broker.expire(&mut self.random),
            8..20 => self.broker.produce(&mut self.random),
            20..30 => tokio::time::sleep(Duration::from_millis(self.random.below(3))).await,
            30..38 => self.take(),
            _ => self.settle_some(),
        }
        self.check()
    }

    /// The outputs take something.
    fn take(&mut self) {
        for (number, output) in self.outputs.iter().enumerate() {
            let events = 1 + self.random.below(9) as usize;
            let mut taken = Vec::new();
            output.queue.try_take(TakeLimits { events, bytes: usize::MAX }, &mut taken);
            self.held.extend(taken.into_iter().map(|delivery| (number, delivery, 0)));
        }
    }

    /// A verdict for some rows of something that an output has taken, also in an earlier run.
    fn settle_some(&mut self) {
        let count = self.held.len() as u64;
        if count == 0 {
            return;
        }
        let at = self.random.below(count) as usize;
        let (output, delivery, done) = self.held.swap_remove(at);
        let left = delivery.len() as u32 - done;
        let rows = 1 + self.random.below(u64::from(left)) as u32;
        let first = delivery.rows.start + done;
        for row in &delivery.batch.rows()[first as usize..(first + rows) as usize] {
            let text = String::from_utf8_lossy(delivery.batch.text(row.message)).into_owned();
            let (tag, line) = text.split_once(' ').unwrap();
            self.broker.settle(output, tag.parse().unwrap(), line.parse().unwrap());
        }
        match self.random.below(4) {
            0 => delivery.ticket.dead_lettered(rows),
            1 => delivery.ticket.dropped(DropReason::Rejected, rows),
            _ => delivery.ticket.delivered(rows),
        }
        if rows < left {
            self.held.push((output, delivery, done + rows));
        }
    }

    fn check(&self) -> Result<(), String> {
        for output in &self.outputs {
            let total = output.settle.total();
            if !total.adds_up() {
                return Err(format!("{total:?}"));
            }
        }
        self.broker.check()
    }

    /// Another input takes its place, as in a reload, while the outputs go on.
    async fn replace(&mut self) -> Result<(), String> {
        let next = task(&self.consumer);
        self.slot += 1;
        let (send, mut done) = tokio::sync::mpsc::channel(OUTPUTS);
        for output in &self.outputs {
            let send = send.clone();
            let change = TasksChange {
                remove: vec![self.slot - 1],
                when_read: false,
                add: vec![lane(&next, self.slot, &output.registry)],
                done: Box::new(move || send.try_send(()).unwrap_or_default()),
            };
            output.inputs.change(change).unwrap();
        }
        let start = Instant::now();
        let mut changed = 0;
        while changed < OUTPUTS {
            changed += usize::from(done.try_recv().is_ok());
            self.take();
            self.settle_some();
            self.check()?;
            tokio::time::sleep(Duration::from_millis(1)).await;
            if start.elapsed() > END {
                return Err("the next input never begins".to_owned());
            }
        }
        self.input = next;
        Ok(())
    }

    /// Stops the input and what is behind it.
    async fn stop(&mut self) -> Result<(), String> {
        let (outputs, input) = (std::mem::take(&mut self.outputs), Arc::clone(&self.input));
        let stopped = tokio::task::spawn_blocking(move || {
            let interrupt = AtomicBool::new(false);
            let mut outputs = outputs;
            // All at the same time, as the program does: an input that waits for one may be held up by another.
            std::thread::scope(|scope| {
                for output in &mut outputs {
                    let patience = Patience { limit: END, interrupt: &interrupt };
                    scope.spawn(move || output.pipeline.stop_reading(patience));
                }
            });
            let state = input.state();
            for output in &mut outputs {
                if !output.pipeline.finish() || !output.settle.total().adds_up() {
                    return Err(format!("at the end: {:?}", output.settle.total()));
                }
            }
            if state == InputState::Ended { Ok(()) } else { Err(format!("the input: {state:?}")) }
        });
        stopped.await.unwrap()
    }

    /// The program stops and starts again; verdicts of the outputs before may still come, or never do.
    async fn restart(&mut self) -> Result<(), String> {
        self.stop().await?;
        if self.random.one_in(2) {
            self.held.clear();
        }
        self.slot = 0;
        self.input = task(&self.consumer);
        let start = |_| Output::start(&self.input, self.room);
        self.outputs = (0..OUTPUTS).map(start).collect();
        self.check()
    }

    /// Everything that is left gets its verdict.
    async fn drain(&mut self) -> Result<(), String> {
        let (mut last, mut since) = (self.broker.progress(), Instant::now());
        while let Some(message) = self.broker.open() {
            self.take();
            while !self.held.is_empty() {
                self.settle_some();
            }
            self.check()?;
            let now = self.broker.progress();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            if since.elapsed() > SILENCE {
                return Err(format!("message {message} is never acknowledged"));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.stop().await?;
        self.broker.check()
    }
}

async fn run(seed: u64, bug: Bug) -> Result<Seen, String> {
    let mut world = World::start(seed, bug);
    for _ in 0..ACTIONS {
        world.act().await?;
    }
    world.drain().await?;
    Ok(world.broker.seen())
}

/// Runs seeds side by side: they sleep most of the time. Returns what each of them said.
async fn run_all(seeds: u64, bug: Bug) -> Vec<(u64, Result<Seen, String>)> {
    let mut running = JoinSet::new();
    for seed in 0..seeds {
        running.spawn(async move { (seed, run(seed, bug).await) });
    }
    running.join_all().await
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_broker_does_nothing_is_lost_or_acknowledged_before_all_verdicts() {
    let mut all = Seen::default();
    for (seed, ended) in run_all(SEEDS, Bug::None).await {
        let seen = ended.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        all.again += seen.again;
        all.refused += seen.refused;
        all.rejected += seen.rejected;
        all.elsewhere += seen.elsewhere;
    }
    let happened = [all.again, all.refused, all.rejected, all.elsewhere];
    assert!(happened.iter().all(|times| *times > 0), "seeds without trouble: {all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_deliberate_bug_is_found() {
    let bugs = [
        (Bug::Early, "has no verdict"),
        (Bug::Polite, "has no verdict"),
        (Bug::Reborn, "has no verdict"),
        (Bug::Partial, "has no verdict"),
        (Bug::Forgets, "is never acknowledged"),
        (Bug::Twice, "came twice"),
    ];
    let tries = bugs.map(|(bug, by)| (bug, by, tokio::spawn(run_all(SEEDS_OF_BUG, bug))));
    for (bug, by, tried) in tries {
        let ended = tried.await.unwrap();
        let found: Vec<String> = ended.into_iter().filter_map(|(_, ended)| ended.err()).collect();
        assert!(found.iter().any(|what| what.contains(by)), "{bug:?}: {found:?}");
    }
}
