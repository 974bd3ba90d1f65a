//! skidder in the simulated world: the same calls as the threads of a pipeline make, in any order.

use crate::disk::Disk;
use crate::truth::{MESSAGE_BYTES_MAX, Truth, Way};
use skidder_event::{Base, Batch, DropReason, Map, SourceId};
use skidder_os::{Clock, Fs};
use skidder_pipeline::{
    Delivery, FileInput, Ledger, Queue, QueueLimits, Registrar, SavedCursors, Settle, TakeLimits,
};
use skidder_read::glob::Pattern;
use skidder_read::scan::ScanSettings;
use skidder_read::{
    Bind, Bound, BufferPool, Compression, FilestreamSettings, InputContext, Next, Now, ReadMetrics,
    Readers, ReadersLimits, Scratch, SourceIds, Turn, TurnEnd,
};
use skidder_registry::{Options, Registry};
use skidder_testkit::{Fault, Operation, Random, SimClock, SimFs};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Where the registry is.
const REGISTRY: &str = "/data/registry";

/// Processors that do nothing.
#[derive(Debug)]
struct Nothing(Arc<Base>);

impl Bind for Nothing {
    fn bind(&self, fields: &Map) -> Arc<dyn Bound> {
        Arc::new(Self(Arc::new(Base::new(fields, &Map::new()))))
    }

    fn epoch(&self) -> u64 {
        0
    }
}

impl Bound for Nothing {
    fn base(&self) -> &Arc<Base> {
        &self.0
    }

    fn run(&self, _batch: &mut Batch) {}
}

/// What stays the same from one life of the program to the next.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    readers: ReadersLimits,
    queue: QueueLimits,
    rows_max: usize,
    harvester_limit: Option<usize>,
    on_eof: bool,
    inactive: Duration,
    after_interval: Option<Duration>,
    renamed: bool,
    removed: bool,
}

impl Config {
    pub(crate) fn random(random: &mut Random) -> Self {
        Self {
            readers: ReadersLimits {
                open_files: 2 + random.below(12) as usize,
                decoders: 1 + random.below(3) as usize,
            },
            queue: QueueLimits {
                events: 4 + random.below(200) as usize,
                bytes: 20_000 + random.below(1 << 20) as usize,
                flush_min_events: 0,
                flush_timeout: Duration::ZERO,
            },
            rows_max: 1 + random.below(60) as usize,
            harvester_limit: random.one_in(3).then(|| 1 + random.below(3) as usize),
            on_eof: random.one_in(5),
            inactive: Duration::from_secs(5 + random.below(300)),
            after_interval: random.one_in(5).then(|| Duration::from_secs(1 + random.below(60))),
            renamed: random.one_in(6),
            removed: random.one_in(6),
        }
    }
}

/// A thread that reads, between two of its steps.
#[expect(clippy::large_enum_variant, reason = "there are two of them")]
enum Worker {
    Free,
    Has(Turn),
    Ran(Turn, TurnEnd, Option<Batch>),
    Pushed(Turn, TurnEnd, bool),
}

/// A delivery at an output, some rows of which have no verdict yet.
struct Sending {
    delivery: Delivery,
    rows_left: std::ops::Range<u32>,
}

/// One life of the program.
struct Life {
    settle: Arc<Settle>,
    queue: Queue,
    registrar: Registrar,
    registry: Arc<Registry>,
    readers: Arc<Readers>,
    inputs: Vec<FileInput>,
    workers: Vec<Worker>,
    sending: Vec<Sending>,
    scratch: Scratch,
    ledgers: HashMap<SourceId, Ledger>,
}

/// The program and all that the judge watches of it.
pub(crate) struct Program {
    fs: SimFs,
    clock: SimClock,
    config: Config,
    /// Whether it dies now and then, and whether the system refuses something now and then.
    deaths: bool,
    faults: bool,
    life: Option<Life>,
    way: Way,
}

impl Program {
    pub(crate) fn start(
        fs: SimFs,
        clock: SimClock,
        config: Config,
        deaths: bool,
        faults: bool,
    ) -> Self {
        let life = Some(Life::new(&fs, &clock, &config));
        Self { fs, clock, config, deaths, faults, life, way: Way::default() }
    }

    fn life(&mut self) -> &mut Life {
        self.life.as_mut().expect("a dead program is started at once")
    }

    fn now(&self) -> Now {
        Now { wall: self.clock.wall(), monotonic: self.clock.monotonic() }
    }

    /// One action. Anything that must not be is an error.
    pub(crate) fn act(
        &mut self,
        random: &mut Random,
        truth: &mut Truth,
        disk: &mut Disk,
    ) -> Result<(), String> {
        match random.below(1000) {
            0..120 => self.scan(random, disk),
            120..600 => self.work(random, truth)?,
            600..720 => self.take(random),
            720..880 => self.verdict(random, truth),
            880..930 => self.flush()?,
            930..970 => {
                let span = Duration::from_millis(random.below(15_000));
                self.clock.advance(span);
            }
            970..985 if self.faults => self.fault(random, truth, disk),
            985..992 => self.fs.clear_faults(),
            992..996 if self.deaths => self.die(random, truth, disk, false)?,
            996..1000 if self.deaths => self.die(random, truth, disk, true)?,
            _ => self.work(random, truth)?,
        }
        self.adds_up()
    }

    fn scan(&mut self, random: &mut Random, disk: &mut Disk) {
        let now = self.now();
        let life = self.life();
        let count = life.inputs.len() as u64;
        disk.story.push("scan".to_owned());
        life.inputs[random.below(count) as usize].scan(now);
    }

    /// A step of one worker.
    fn work(&mut self, random: &mut Random, truth: &mut Truth) -> Result<(), String> {
        let (monotonic, wall) = (self.clock.monotonic(), self.clock.wall());
        let way = &mut self.way;
        let Some(life) = &mut self.life else { return Ok(()) };
        let count = life.workers.len() as u64;
        let worker = &mut life.workers[random.below(count) as usize];
        *worker = match std::mem::replace(worker, Worker::Free) {
            Worker::Free => match life.readers.next(monotonic) {
                Next::Turn(turn) => Worker::Has(turn),
                Next::Wait(_) => Worker::Free,
                Next::Stopped => return Err("the readers stopped by themselves".to_owned()),
            },
            Worker::Has(mut turn) => {
                let (batch, end) = turn.run(&mut life.scratch, wall);
                Worker::Ran(turn, end, batch)
            }
            Worker::Ran(turn, end, None) => Worker::Pushed(turn, end, false),
            Worker::Ran(turn, end, Some(batch)) => {
                let rows = rows_of(&batch);
                let first = rows
                    .first()
                    .map(|(_, text)| String::from_utf8_lossy(&text[..text.len().min(12)]));
                tracing::debug!(source = batch.provenance().source.0, range = ?batch.provenance().range,
                    rows = rows.len(), ?first, "read");
                let provenance = batch.provenance();
                let (source, generation) = (provenance.source.0, provenance.generation);
                match life.queue.try_push(batch) {
                    Ok(()) => {
                        for (offset, message) in rows {
                            way.add(source, generation, offset, truth.read(&message)?);
                        }
                        Worker::Pushed(turn, end, true)
                    }
                    Err(batch) => Worker::Ran(turn, end, Some(batch)),
                }
            }
            Worker::Pushed(turn, end, had_data) => {
                life.readers.finish(turn, &end, had_data, monotonic);
                Worker::Free
            }
        };
        Ok(())
    }

    fn take(&mut self, random: &mut Random) {
        let life = self.life();
        let limits = TakeLimits {
            events: random.below(40) as usize,
            bytes: 1 + random.below(20_000) as usize,
        };
        let mut out = Vec::new();
        life.queue.try_take(limits, &mut out);
        for delivery in out {
            let rows_left = delivery.rows.clone();
            life.sending.push(Sending { delivery, rows_left });
        }
    }

    /// Some rows of one delivery get their verdict.
    fn verdict(&mut self, random: &mut Random, truth: &mut Truth) {
        let Some(life) = &mut self.life else { return };
        if life.sending.is_empty() {
            return;
        }
        let at = random.below(life.sending.len() as u64) as usize;
        let mut sending = life.sending.swap_remove(at);
        let rows = match random.below(3) {
            0 => 1,
            _ => sending.rows_left.len() as u32,
        };
        let batch = &sending.delivery.batch;
        let provenance = batch.provenance();
        let first = sending.rows_left.start;
        for row in first..first + rows {
            let offset = batch.rows()[row as usize].offset;
            let line = self.way.settle(provenance.source.0, provenance.generation, offset);
            if let Some(line) = line {
                truth.get(line).settled += 1;
            }
        }
        let ticket = &sending.delivery.ticket;
        match random.below(10) {
            0 => ticket.dropped(DropReason::Rejected, rows),
            1 => ticket.dead_lettered(rows),
            _ => ticket.delivered(rows),
        }
        sending.rows_left.start += rows;
        if !sending.rows_left.is_empty() {
            life.sending.push(sending);
        }
    }

    /// Saves cursors, and checks them before.
    fn flush(&mut self) -> Result<(), String> {
        let clock = self.clock.clone();
        let mut cursors = Vec::new();
        let Some(life) = &mut self.life else { return Ok(()) };
        life.settle.for_each(|status| {
            cursors.push((status.source.0, status.cursor.generation, status.cursor.offset));
        });
        for &(source, generation, offset) in &cursors {
            self.way.check(source, generation, offset)?;
        }
        if life.registrar.flush(&clock) {
            for (source, generation, offset) in cursors {
                self.way.durable(source, generation, offset);
            }
        }
        Ok(())
    }

    fn fault(&mut self, random: &mut Random, truth: &mut Truth, disk: &mut Disk) {
        let kind = [io::ErrorKind::PermissionDenied, io::ErrorKind::Other, io::ErrorKind::TimedOut]
            [random.below(3) as usize];
        let operation = [Operation::Open, Operation::Read, Operation::Stat, Operation::List]
            [random.below(4) as usize];
        // What cannot be looked at cannot be known again: it may be read twice, but is not lost.
        truth.forgetful = true;
        disk.story.push(format!("fault {operation:?} {kind}"));
        let fault = Fault::nth(1 + random.below(20), kind).of(operation).on("/logs");
        self.fs.inject(fault.times(1 + random.below(5)));
    }

    /// The program or the machine dies, sometimes in the middle of a commit, and starts again.
    fn die(
        &mut self,
        random: &mut Random,
        truth: &mut Truth,
        disk: &mut Disk,
        machine: bool,
    ) -> Result<(), String> {
        self.fs.clear_faults();
        if random.one_in(2) {
            self.fs.halt_at(1 + random.below(30));
            let clock = self.clock.clone();
            self.life().registrar.flush(&clock);
        }
        // What goes out of scope now must not reach the disk.
        self.fs.halt_at(1);
        self.life = None;
        if machine {
            self.fs.crash_torn(random.number());
        } else {
            self.fs.kill();
        }
        self.fs.clear_faults();
        disk.story.push(format!("=== died, machine: {machine}"));
        for line in self.way.die() {
            truth.get(line).reads_allowed += 1;
        }
        for content in disk.gone(truth.contents.len()) {
            truth.excuse_unsettled(content);
        }
        truth.next_life();
        self.life = Some(Life::new(&self.fs, &self.clock, &self.config));
        for sentence in self.life().saved() {
            disk.story.push(sentence);
        }
        Ok(())
    }

    /// All sources, for the story.
    pub(crate) fn sources(&mut self) -> Vec<String> {
        let mut sources = Vec::new();
        let life = self.life();
        life.settle.for_each(|status| {
            let key = &status.key[status.key.len() - 8..];
            let look = life.readers.look(status.source);
            let look = look.map(|look| (look.state, look.generation, look.offset, look.trouble));
            sources.push(format!(
                "source {} {key} {} {:?} {look:?}",
                status.source.0,
                status.meta.source.display(),
                status.cursor
            ));
        });
        sources
    }

    /// The counts add up: each source's, the total, and both together.
    pub(crate) fn adds_up(&mut self) -> Result<(), String> {
        let life = self.life();
        let total = life.settle.total();
        if !total.adds_up() {
            return Err(format!("the total does not add up: {total:?}"));
        }
        let mut wrong = None;
        let ledgers = &mut life.ledgers;
        life.settle.for_each(|status| {
            if !status.ledger.adds_up() {
                wrong = Some(format!("{} does not add up: {:?}", status.key, status.ledger));
            }
            // A source that was forgotten keeps its last counts here.
            ledgers.insert(status.source, status.ledger);
        });
        let sum = |of: fn(&Ledger) -> u64| ledgers.values().map(of).sum::<u64>();
        if sum(Ledger::read) != total.read()
            || sum(Ledger::delivered) != total.delivered()
            || sum(Ledger::in_flight) != total.in_flight()
            || sum(Ledger::read_bytes) != total.read_bytes()
        {
            wrong = wrong.or(Some("the sources do not add up to the total".to_owned()));
        }
        wrong.map_or(Ok(()), Err)
    }

    /// Reads and delivers until nothing moves any more.
    pub(crate) fn drain(
        &mut self,
        random: &mut Random,
        truth: &mut Truth,
        rounds: usize,
    ) -> Result<(), String> {
        self.fs.clear_faults();
        for _ in 0..rounds {
            let now = self.now();
            for input in &mut self.life().inputs {
                input.scan(now);
            }
            let mut idle = 0;
            while idle < 40 {
                self.work(random, truth)?;
                let busy = self.life().workers.iter().any(|worker| !matches!(worker, Worker::Free));
                idle = if busy { 0 } else { idle + 1 };
                if random.one_in(4) {
                    self.take(random);
                    self.verdict(random, truth);
                }
            }
            while self.life().settle.in_flight() > 0 {
                self.take(random);
                self.verdict(random, truth);
            }
            self.adds_up()?;
            self.flush()?;
            self.clock.advance(Duration::from_secs(11));
        }
        Ok(())
    }
}

/// Offsets and messages of a batch.
fn rows_of(batch: &Batch) -> Vec<(u64, Vec<u8>)> {
    batch.rows().iter().map(|row| (row.offset, batch.text(row.message).to_vec())).collect()
}

impl Life {
    fn new(fs: &SimFs, clock: &SimClock, config: &Config) -> Self {
        let shared_fs: Arc<dyn Fs> = Arc::new(fs.clone());
        let shared_clock: Arc<dyn Clock> = Arc::new(clock.clone());
        let (registry, _) = Registry::open(
            Arc::clone(&shared_fs),
            shared_clock,
            Path::new(REGISTRY),
            Options::default(),
        )
        .expect("the registry opens after every death");
        let registry = Arc::new(registry);
        let settle = Settle::new();
        let queue = Queue::new(config.queue, Arc::clone(&settle));
        let cursors = Arc::new(SavedCursors::new(Arc::clone(&settle), Arc::clone(&registry)));
        let readers = Arc::new(Readers::new(config.readers));
        let ids = Arc::new(SourceIds::default());
        let metrics = Arc::new(ReadMetrics::default());
        let buffers = Arc::new(BufferPool::default());
        let inputs = [("a", "/logs/a/*.log*"), ("b", "/logs/b/**/*.log*")].map(|(id, pattern)| {
            let context = InputContext {
                settings: settings(id, pattern, config),
                bind: Arc::new(Nothing(Arc::new(Base::new(&Map::new(), &Map::new())))),
                cursors: cursors.clone(),
                fs: Arc::clone(&shared_fs),
                metrics: Arc::clone(&metrics),
                buffers: Arc::clone(&buffers),
                inflates: skidder_decode::gzip::InflatePool::new(2),
                rows_max: config.rows_max,
            };
            FileInput::new(Arc::new(context), Arc::clone(&readers), Arc::clone(&ids))
        });
        Self {
            registrar: Registrar::new(Arc::clone(&settle), Arc::clone(&registry)),
            registry,
            settle,
            queue,
            readers,
            inputs: inputs.into(),
            workers: vec![Worker::Free, Worker::Free],
            sending: Vec::new(),
            scratch: Scratch::default(),
            ledgers: HashMap::new(),
        }
    }
}

impl Life {
    /// What the registry holds, for the story.
    fn saved(&self) -> Vec<String> {
        let mut saved = Vec::new();
        let told = self.registry.for_each(|key, entry| {
            let (path, cursor) = (entry.meta.source.display(), entry.cursor);
            let key = &key[key.len() - 8..];
            saved.push(format!("saved {path} {key} {:?} {cursor:?}", entry.meta.fingerprint_len));
        });
        told.expect("the registry can be read");
        saved
    }
}

fn settings(id: &str, pattern: &str, config: &Config) -> FilestreamSettings {
    let pattern = Pattern::parse(pattern, Path::new("/"), true).expect("a good pattern");
    let scan = ScanSettings { patterns: vec![pattern], ..ScanSettings::default() };
    let mut settings = FilestreamSettings::new(id, scan);
    settings.compression = Compression::Auto;
    settings.message_max_bytes = MESSAGE_BYTES_MAX;
    settings.harvester_limit = config.harvester_limit;
    settings.close.on_eof = config.on_eof;
    settings.close.inactive = Some(config.inactive);
    settings.close.after_interval = config.after_interval;
    settings.close.renamed = config.renamed;
    settings.close.removed = config.removed;
    settings
}
