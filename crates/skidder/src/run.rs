//! Running a checked configuration: start, watch, drain with a deadline, account.

use crate::assemble::{Input, Parts};
use crate::commands::World;
use crate::watch::{About, Watch};
use anyhow::{Context as _, Result};
use skidder_os::{Clock, Fs, Monotonic};
use skidder_pipeline::{
    DeadLetters, DeadLettersLimits, Feed, FileInput, Looks, Output, OutputMetrics, Pipeline,
    PipelineSettings, Queue, Registrar, RegistrarMetrics, SavedCursors, Scanner, Settle,
};
use skidder_read::{
    BufferPool, Cursors, DecoderPool, InputContext, ReadMetrics, Readers, ReadersLimits, SourceIds,
};
use skidder_registry::{Opened, Options, Registry};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Descriptors kept for everything that is not a log file.
const DESCRIPTORS_RESERVED: u64 = 256;

/// Decoders kept for reuse; each has about 50 KiB.
const DECODERS_IDLE_MAX: usize = 8;

/// Threads for sockets and encoding, at most. There is no more than one for each request under way:
/// passing work between threads costs more than it gains.
const SOCKET_THREADS_MAX: usize = 4;

/// How long the runtime may take to let go of its tasks.
const RUNTIME_END: Duration = Duration::from_secs(1);

/// What the main thread waits for.
enum Happened {
    /// SIGINT, SIGTERM or SIGHUP.
    Signal,
    /// With `once`: everything that was there is read.
    ReadOnce,
    /// The output has ended: the queue is closed and empty, or it cannot go on.
    OutputEnded,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// All that was read has its verdict.
    pub(crate) settled: bool,
    /// All cursors are durable.
    pub(crate) saved: bool,
}

/// How often it is looked whether memory should be given back.
const TRIM_EVERY: Duration = Duration::from_secs(20);

/// So many lines, since memory was given back last, leave enough behind to do it again: a start with very many files
/// takes memory for each that is free afterwards and lies between what is kept.
const TRIM_LINES: u64 = 100_000;

/// Gives memory back to the system after a burst, when nothing is in flight.
struct Trimming {
    due: Monotonic,
    /// Lines read when it was done last.
    read: u64,
}

impl Trimming {
    fn new(now: Monotonic) -> Self {
        Self { due: now + TRIM_EVERY, read: 0 }
    }

    fn step(&mut self, settle: &Settle, now: Monotonic) {
        if now < self.due {
            return;
        }
        self.due = now + TRIM_EVERY;
        let total = settle.total();
        if total.in_flight() == 0 && total.read() >= self.read + TRIM_LINES {
            self.read = total.read();
            crate::allocator::give_back();
        }
    }
}

/// Everything that runs, for who watches it.
pub(crate) struct Running {
    pub(crate) settle: Arc<Settle>,
    pub(crate) queue: Queue,
    /// Counters of each input, in the order of the configuration.
    pub(crate) read_metrics: Vec<Arc<ReadMetrics>>,
    pub(crate) output_metrics: Arc<OutputMetrics>,
    pub(crate) dead_letters: Option<Arc<DeadLetters>>,
    pub(crate) registrar_metrics: Arc<RegistrarMetrics>,
    registry: Arc<Registry>,
    pipeline: Pipeline,
    runtime: Runtime,
    happened: Receiver<Happened>,
    clock: Arc<dyn Clock>,
    shutdown_timeout: Duration,
    output_ended: bool,
}

/// Runs until a signal comes or, with `once`, until everything is delivered.
pub(crate) fn run(parts: Parts, world: &World, once: bool) -> Result<ExitCode> {
    let http = parts.http.clone();
    let period = parts.metrics_period;
    let registry = parts.registry.clone();
    let about = About {
        agent: parts.agent.clone(),
        output: parts.output.kind(),
        inputs: parts
            .inputs
            .iter()
            .map(|input| (input.settings.id.clone(), input.settings.kind))
            .collect(),
    };
    let mut running = Running::start(parts, world, &registry, once)?;
    let mut watch = Watch::new(&running, &about, Some(&http), period, world)?;
    tracing::info!(output = about.output, inputs = about.inputs.len(), once, "skidder is running");
    running.watch(once, period, |_| watch.tick());
    watch.close_endpoint(&running);
    let settle = Arc::clone(&running.settle);
    let outcome = running.end(once);
    crate::commands::print_beside(about.output, &watch.end())?;
    if !outcome.settled {
        tracing::warn!(
            in_flight = settle.in_flight(),
            "ended before everything was delivered; the next start repeats it"
        );
    }
    let good = outcome.saved && (outcome.settled || !once);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A runtime for sockets.
pub(crate) fn runtime(threads: usize) -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.max(1))
        .thread_name("sockets")
        .enable_all()
        .build()
        .context("cannot start the threads for sockets")
}

impl Running {
    /// Opens the registry and starts everything.
    pub(crate) fn start(parts: Parts, world: &World, registry: &Path, once: bool) -> Result<Self> {
        let registry = open_registry(&world.fs, &world.clock, registry)?;
        let settle = Settle::new();
        let queue = Queue::new(parts.queue, Arc::clone(&settle));
        let readers = Arc::new(Readers::new(ReadersLimits {
            open_files: open_files_max(),
            decoders: ReadersLimits::DECODERS,
        }));
        let read_metrics: Vec<Arc<ReadMetrics>> =
            parts.inputs.iter().map(|_| Arc::default()).collect();
        let cursors: Arc<dyn Cursors> =
            Arc::new(SavedCursors::new(Arc::clone(&settle), Arc::clone(&registry)));
        let shared = Shared {
            world,
            cursors,
            buffers: Arc::new(BufferPool::default()),
            readers: Arc::clone(&readers),
            ids: Arc::new(SourceIds::default()),
            rows_max: (parts.queue.events / 4).max(1),
            once,
        };
        let inputs = parts.inputs.into_iter().zip(&read_metrics);
        let inputs = inputs.map(|(input, metrics)| shared.input(input, metrics)).collect();
        let scanner = scanner(inputs, world, once);
        let dead_letters =
            parts.dead_letters.map(|limits| open_dead_letters(world, &parts.data, limits));
        let output_metrics = Arc::new(OutputMetrics::default());
        let threads = parts.output.parallelism().min(world.cores).min(SOCKET_THREADS_MAX);
        let runtime = runtime(threads)?;
        let (send, happened) = channel();
        let feed = Feed {
            queue: queue.clone(),
            dead_letters: dead_letters.clone(),
            metrics: Arc::clone(&output_metrics),
            clock: Arc::clone(&world.clock),
        };
        start_output(&runtime, parts.output, feed, send.clone());
        let settings = PipelineSettings { workers: parts.workers, flush: parts.flush, once };
        let registrar = Registrar::new(Arc::clone(&settle), Arc::clone(&registry));
        let registrar_metrics = registrar.metrics();
        let pipeline = Pipeline::start(
            settings,
            scanner,
            Arc::clone(&readers),
            queue.clone(),
            registrar,
            Arc::clone(&world.clock),
        )
        .context("cannot start the threads of the pipeline")?;
        listen(&send)?;
        if once {
            tell_read_once(&pipeline, send)?;
        }
        Ok(Self {
            settle,
            queue,
            read_metrics,
            output_metrics,
            dead_letters,
            registrar_metrics,
            registry,
            pipeline,
            runtime,
            happened,
            clock: Arc::clone(&world.clock),
            shutdown_timeout: parts.shutdown_timeout,
            output_ended: false,
        })
    }

    /// Where to ask what the files are doing.
    pub(crate) fn looks(&self) -> Arc<Looks> {
        self.pipeline.looks()
    }

    /// The runtime that the output lives in.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Waits for the end, calling `tick` every `period`.
    pub(crate) fn watch(
        &mut self,
        once: bool,
        period: Option<Duration>,
        mut tick: impl FnMut(&Self),
    ) {
        let period = period.unwrap_or(Duration::from_hours(1));
        let mut due = self.clock.monotonic() + period;
        let mut trimming = Trimming::new(self.clock.monotonic());
        loop {
            let now = self.clock.monotonic();
            if now >= due {
                tick(self);
                due = now + period;
            }
            trimming.step(&self.settle, now);
            match self.happened.recv_timeout(due.min(trimming.due).since(now)) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Happened::ReadOnce) if once => {
                    // The workers finish what is queued; then the output ends.
                    self.pipeline.stop_reading();
                }
                Ok(Happened::Signal) => {
                    tracing::info!("a signal asks to stop");
                    return;
                }
                Ok(Happened::OutputEnded) | Err(RecvTimeoutError::Disconnected) => {
                    self.output_ended = true;
                    return;
                }
                // Only `once` sends it.
                Ok(Happened::ReadOnce) => return,
            }
        }
    }

    /// Stops reading, waits for verdicts as long as is allowed, saves the cursors.
    pub(crate) fn end(mut self, once: bool) -> Outcome {
        self.pipeline.stop_reading();
        // Nobody is left who could give a verdict, or nobody needs to.
        let over = self.output_ended || (once && self.settle.in_flight() == 0);
        let limit = if over { Duration::ZERO } else { self.shutdown_timeout };
        let settled = self.pipeline.drain(limit);
        self.runtime.shutdown_timeout(if settled { RUNTIME_END } else { Duration::ZERO });
        let saved = self.pipeline.finish();
        close_registry(self.registry);
        Outcome { settled, saved }
    }
}

/// Runs the output in the runtime; its end is told.
fn start_output(runtime: &Runtime, output: Box<dyn Output>, feed: Feed, ended: Sender<Happened>) {
    let work = output.run(feed);
    runtime.spawn(async move {
        work.await;
        // The main thread may be gone already.
        drop(ended.send(Happened::OutputEnded));
    });
}

fn scanner(inputs: Vec<FileInput>, world: &World, once: bool) -> Scanner {
    // What is read once needs no news.
    if once { Scanner::without_notification(inputs) } else { Scanner::new(inputs, &*world.fs) }
}

fn open_dead_letters(world: &World, data: &Path, limits: DeadLettersLimits) -> Arc<DeadLetters> {
    let (fs, clock) = (Arc::clone(&world.fs), Arc::clone(&world.clock));
    Arc::new(DeadLetters::new(fs, clock, data, limits))
}

/// What the inputs share.
struct Shared<'a> {
    world: &'a World,
    cursors: Arc<dyn Cursors>,
    buffers: Arc<BufferPool>,
    readers: Arc<Readers>,
    ids: Arc<SourceIds>,
    rows_max: usize,
    once: bool,
}

impl Shared<'_> {
    fn input(&self, mut input: Input, metrics: &Arc<ReadMetrics>) -> FileInput {
        input.settings.read_once = self.once;
        let context = InputContext {
            settings: input.settings,
            bind: input.bind,
            cursors: Arc::clone(&self.cursors),
            fs: Arc::clone(&self.world.fs),
            metrics: Arc::clone(metrics),
            buffers: Arc::clone(&self.buffers),
            decoders: DecoderPool::new(DECODERS_IDLE_MAX),
            rows_max: self.rows_max,
        };
        FileInput::new(Arc::new(context), Arc::clone(&self.readers), Arc::clone(&self.ids))
    }
}

/// Opens the registry and says what was found.
fn open_registry(fs: &Arc<dyn Fs>, clock: &Arc<dyn Clock>, path: &Path) -> Result<Arc<Registry>> {
    let opened = Registry::open(Arc::clone(fs), Arc::clone(clock), path, Options::default());
    let (registry, found) =
        opened.with_context(|| format!("cannot open the registry in `{}`", path.display()))?;
    match found {
        Opened::New => tracing::info!(path = %path.display(), "a new registry"),
        Opened::Clean => tracing::debug!(path = %path.display(), "the registry is in order"),
        Opened::Repaired => {
            tracing::info!(path = %path.display(), "the registry was not closed and is in order again");
        }
        Opened::Damaged { set_aside, recovered } => tracing::error!(
            path = %path.display(), ?set_aside, recovered,
            "the registry was damaged and is set aside; what could be recovered may repeat lines"
        ),
    }
    Ok(Arc::new(registry))
}

/// Closes the registry, which writes its snapshot: what a damaged registry is recovered from.
fn close_registry(registry: Arc<Registry>) {
    match Arc::into_inner(registry).map(Registry::close) {
        Some(Ok(())) => {}
        // All cursors that could be saved are; only the snapshot is older.
        Some(Err(error)) => {
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::warn!(error, "the registry could not be closed properly");
        }
        None => tracing::debug!("the registry is closed by the last who uses it"),
    }
}

/// How many log files may be open: what the system allows, less a reserve.
fn open_files_max() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Raising it is a try; what is really allowed is asked for below.
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::debug!(%error, "the limit on open files stays");
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    (current.saturating_sub(DESCRIPTORS_RESERVED) as usize).max(16)
}

/// Sends what SIGINT, SIGTERM and SIGHUP ask for.
fn listen(send: &Sender<Happened>) -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])
        .context("cannot listen to signals")?;
    let send = send.clone();
    let work = move || {
        for (count, _) in signals.forever().enumerate() {
            if count >= 1 {
                // A second one does not wait for anything.
                std::process::exit(1);
            }
            drop(send.send(Happened::Signal));
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(work)
        .context("cannot start a thread")?;
    Ok(())
}

/// Sends word when everything that was there is read.
fn tell_read_once(pipeline: &Pipeline, send: Sender<Happened>) -> Result<()> {
    let read_once = pipeline.read_once();
    let work = move || {
        if read_once.wait() {
            drop(send.send(Happened::ReadOnce));
        }
    };
    std::thread::Builder::new()
        .name("once".to_owned())
        .spawn(work)
        .context("cannot start a thread")?;
    Ok(())
}
