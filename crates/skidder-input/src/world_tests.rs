//! A small simulated world of sources that are no files: far sides that send again, an output that settles in any order
//! and in parts, commits that fail, crashes; from seeds, with numbered lines and the ledger as judges.

use crate::intake::Shared;
use crate::{Intake, Lane, Source};
use skidder_event::{
    Acknowledge, Acknowledgement, Batch, DropReason, Map, Progress, SourcePart, Unprocessed,
};
use skidder_os::{Clock, Fs};
use skidder_pipeline::{Delivery, Queue, QueueLimits, Registrar, Settle, TakeLimits};
use skidder_registry::{Entry, Options, Registry};
use skidder_testkit::{Fault, Random, SimClock, SimFs};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// Seeds of a usual run.
const SEEDS: u64 = 400;

/// Actions of a seed.
const ACTIONS: u32 = 300;

/// A bug of the input of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// Its cursor is further than what it has sent.
    Hasty,
    /// It acknowledges what it has read.
    Early,
    /// It goes on behind a record that the queue had no room for.
    Careless,
}

/// What both ends know.
#[derive(Debug, Default)]
struct Truth {
    /// Lines with a verdict, in any life.
    settled: BTreeSet<u64>,
    /// Messages that wait, and those that were handed over, with their lines.
    waiting: VecDeque<(u64, Vec<u64>)>,
    given: BTreeMap<u64, Vec<u64>>,
    acknowledged: BTreeSet<u64>,
    /// What went wrong.
    broken: Option<String>,
}

/// What a message queue gets to know of a message.
#[derive(Debug)]
struct Receipt(Arc<Mutex<Truth>>, u64);

impl Acknowledge for Receipt {
    fn accept(self: Box<Self>) {
        let mut truth = self.0.lock().expect("no panic");
        let Some(lines) = truth.given.remove(&self.1) else {
            truth.broken = Some(format!("message {} is acknowledged twice", self.1));
            return;
        };
        if let Some(line) = lines.iter().find(|line| !truth.settled.contains(line)) {
            truth.broken = Some(format!("message {} has no verdict for line {line}", self.1));
        }
        truth.acknowledged.insert(self.1);
    }

    fn reject(self: Box<Self>) {
        let mut truth = self.0.lock().expect("no panic");
        if let Some(lines) = truth.given.remove(&self.1) {
            truth.waiting.push_back((self.1, lines));
        }
    }
}

/// One life of the program.
struct Life {
    messages: Source,
    journal: Source,
    peer: Source,
    /// The next record of the journal to be read.
    at: usize,
    queue: Queue,
    registry: Arc<Registry>,
    registrar: Registrar,
    held: Vec<(Delivery, u32)>,
}

struct World {
    bug: Bug,
    random: Random,
    fs: SimFs,
    clock: SimClock,
    truth: Arc<Mutex<Truth>>,
    /// The lines of each record.
    records: Vec<Vec<u64>>,
    next_line: u64,
    next_message: u64,
    life: Option<Life>,
}

impl World {
    fn new(seed: u64, bug: Bug) -> Self {
        let clock = SimClock::new();
        let fs = SimFs::new(&clock);
        fs.create_dir_as_other("/data");
        let mut world = Self {
            bug,
            random: Random::new(seed),
            fs,
            clock,
            truth: Arc::default(),
            records: Vec::new(),
            next_line: 0,
            next_message: 0,
            life: None,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        let (fs, clock): (Arc<dyn Fs>, Arc<dyn Clock>) =
            (Arc::new(self.fs.clone()), Arc::new(self.clock.clone()));
        let opened =
            Registry::open(fs, Arc::clone(&clock), Path::new("/data/r"), Options::default());
        let registry = Arc::new(opened.expect("the disk is in order at a start").0);
        let settle = Settle::new();
        let limits = QueueLimits { events: 12, ..QueueLimits::default() };
        let queue = Queue::new(limits, Arc::clone(&settle));
        let lane = Lane {
            slot: 0,
            queue: queue.clone(),
            bind: Unprocessed::bind(),
            registry: Arc::clone(&registry),
        };
        let shared = Shared {
            kind: "world",
            id: "id".into(),
            run: "run".into(),
            lanes: vec![lane],
            clock,
            metrics: Arc::default(),
            stop: watch::channel(false).1,
            end: tokio::sync::watch::channel(false).1,
            once: false,
            opened: std::sync::atomic::AtomicU64::new(0),
            backlogs: std::sync::OnceLock::new(),
            task: std::sync::Weak::new(),
        };
        let intake = Intake { shared: Arc::new(shared) };
        let journal = intake.open_at_cursor("j", Map::new()).expect("the registry can be read");
        let at = journal.saved().map_or(0, |saved| saved.text.parse().expect("it is ours"));
        self.life = Some(Life {
            messages: intake.open("queue", Map::new()),
            peer: intake.open("peer", Map::new()),
            journal,
            at,
            registrar: Registrar::new(settle, Arc::clone(&registry)),
            queue,
            registry,
            held: Vec::new(),
        });
    }

    fn life(&mut self) -> &mut Life {
        self.life.as_mut().expect("it lives")
    }

    fn lines(&mut self) -> Vec<u64> {
        let count = 1 + self.random.below(4);
        let first = self.next_line;
        self.next_line += count;
        (first..first + count).collect()
    }

    /// The input takes a message, if one waits.
    fn take_message(&mut self) {
        let mut truth = self.truth.lock().expect("no panic");
        let Some((number, lines)) = truth.waiting.pop_front() else { return };
        truth.given.insert(number, lines.clone());
        drop(truth);
        let receipt = Receipt(Arc::clone(&self.truth), number);
        if self.bug == Bug::Early {
            Box::new(Receipt(Arc::clone(&self.truth), number)).accept();
        }
        let owed = Acknowledgement::new(receipt);
        let source = &mut self.life().messages;
        let batch = batch_of(source, &lines);
        // One for which there is no room is rejected, and comes again.
        source.offer(batch, Progress::Acknowledge(owed, 1));
    }

    /// The input reads a record of the journal, if there is one.
    fn read_record(&mut self) {
        let (at, bug, end) = (self.life().at, self.bug, self.records.len());
        let Some(lines) = self.records.get(at).cloned() else { return };
        let source = &mut self.life().journal;
        let batch = batch_of(source, &lines);
        let ahead = if bug == Bug::Hasty { 2 } else { 1 };
        let cursor = (at + ahead).min(end).to_string().into();
        let part = SourcePart { version: 1, cursor, bytes: 1 };
        if source.offer(batch, Progress::Cursor(part)) || bug == Bug::Careless {
            self.life().at += 1;
        }
    }

    /// A verdict for some rows of something that the output has.
    fn settle_some(&mut self) {
        let count = self.life().held.len() as u64;
        if count == 0 {
            return;
        }
        let at = self.random.below(count) as usize;
        let (delivery, done) = self.life().held.swap_remove(at);
        let left = delivery.len() as u32 - done;
        let rows = 1 + self.random.below(u64::from(left)) as u32;
        let first = delivery.rows.start + done;
        for row in &delivery.batch.rows()[first as usize..(first + rows) as usize] {
            let text = String::from_utf8_lossy(delivery.batch.text(row.message)).into_owned();
            let line = text.parse().expect("a number");
            self.truth.lock().expect("no panic").settled.insert(line);
        }
        match self.random.below(4) {
            0 => delivery.ticket.dead_lettered(rows),
            1 => delivery.ticket.dropped(DropReason::Rejected, rows),
            _ => delivery.ticket.delivered(rows),
        }
        if rows < left {
            self.life().held.push((delivery, done + rows));
        }
    }

    fn take_deliveries(&mut self) {
        let limits = TakeLimits { events: 1 + self.random.below(5) as usize, bytes: usize::MAX };
        let mut taken = Vec::new();
        let life = self.life();
        life.queue.try_take(limits, &mut taken);
        life.held.extend(taken.into_iter().map(|delivery| (delivery, 0)));
    }

    /// Saves cursors, and checks what was saved: no record before the cursor is without a verdict.
    fn commit(&mut self) -> Result<(), String> {
        let clock = self.clock.clone();
        let life = self.life();
        life.registrar.flush(&clock);
        let saved = life.registry.get("world::id::j").ok().flatten().and_then(Entry::into_source);
        let at: usize = saved.map_or(0, |saved| saved.cursor.text.parse().expect("it is ours"));
        let truth = self.truth.lock().expect("no panic");
        let before = self.records[..at].iter().flatten();
        match before.into_iter().find(|line| !truth.settled.contains(line)) {
            Some(line) => Err(format!("the cursor {at} has passed line {line}")),
            None => Ok(()),
        }
    }

    /// The program dies, at best in order; a power cut takes what was not synced.
    fn die(&mut self) {
        if let Some(life) = self.life.take() {
            if self.random.one_in(2) {
                life.queue.abort();
            }
            drop(life);
        }
        // A program that is killed rejects nothing: the far side waits for it in vain, and then gives messages out again.
        let mut truth = self.truth.lock().expect("no panic");
        let given = std::mem::take(&mut truth.given);
        truth.waiting.extend(given);
        drop(truth);
        if self.random.one_in(2) {
            self.fs.crash();
        } else {
            self.fs.kill();
        }
        self.fs.clear_faults();
        self.start();
    }

    fn act(&mut self) -> Result<(), String> {
        match self.random.below(20) {
            0 | 1 => {
                let lines = self.lines();
                self.next_message += 1;
                let message = (self.next_message, lines);
                self.truth.lock().expect("no panic").waiting.push_back(message);
            }
            2 | 3 => {
                let lines = self.lines();
                self.records.push(lines);
            }
            4 => {
                let lines = self.lines();
                let source = &mut self.life().peer;
                let batch = batch_of(source, &lines);
                source.offer(batch, Progress::Nothing(1));
            }
            5..=7 => self.take_message(),
            8..=10 => self.read_record(),
            11 | 12 => self.take_deliveries(),
            13..=16 => self.settle_some(),
            17 | 18 => self.commit()?,
            _ if self.random.one_in(4) => self.die(),
            _ => {
                let fault = Fault::nth(1 + self.random.below(3), ErrorKind::StorageFull);
                self.fs.inject(fault.on("/data").times(2));
            }
        }
        self.check()
    }

    fn check(&mut self) -> Result<(), String> {
        let total = self.life().queue.settle().total();
        if !total.adds_up() {
            return Err(format!("{total:?}"));
        }
        match self.truth.lock().expect("no panic").broken.take() {
            Some(broken) => Err(broken),
            None => Ok(()),
        }
    }

    /// Everything that is left gets its verdict.
    fn drain(&mut self) -> Result<(), String> {
        self.fs.clear_faults();
        for _ in 0..10_000 {
            self.take_message();
            self.read_record();
            self.take_deliveries();
            self.settle_some();
            self.check()?;
            let truth = self.truth.lock().expect("no panic");
            let is_over = truth.waiting.is_empty() && truth.given.is_empty();
            drop(truth);
            let end = self.records.len();
            let life = self.life();
            if is_over && life.at == end && life.queue.settle().in_flight() == 0 {
                break;
            }
        }
        self.commit()?;
        let truth = self.truth.lock().expect("no panic");
        let messages = truth.acknowledged.len() as u64;
        if messages != self.next_message {
            return Err(format!("{messages} of {} messages were acknowledged", self.next_message));
        }
        match self.records.iter().flatten().find(|line| !truth.settled.contains(line)) {
            Some(line) => Err(format!("line {line} of the journal never came")),
            None => Ok(()),
        }
    }
}

fn batch_of(source: &mut Source, lines: &[u64]) -> Batch {
    let mut batch = source.batch(Vec::new(), 0);
    for line in lines {
        let text = batch.append(line.to_string().as_bytes());
        source.push(&mut batch, text, 1, 0);
    }
    batch
}

fn run(seed: u64, bug: Bug) -> Result<(), String> {
    let mut world = World::new(seed, bug);
    for _ in 0..ACTIONS {
        world.act()?;
    }
    world.drain()
}

#[test]
fn whatever_fails_nothing_is_lost_and_nothing_is_acknowledged_or_passed_before_its_verdict() {
    for seed in 0..SEEDS {
        if let Err(what) = run(seed, Bug::None) {
            panic!("seed {seed}: {what}");
        }
    }
}

#[test]
fn each_deliberate_bug_is_found() {
    for bug in [Bug::Hasty, Bug::Early, Bug::Careless] {
        assert!((0..20).any(|seed| run(seed, bug).is_err()), "{bug:?}");
    }
}
