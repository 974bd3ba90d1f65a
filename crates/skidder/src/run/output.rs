//! One output while it runs: its registry, queue, readers and threads. Nothing of it is shared with another output, so
//! that one that is stuck holds up no other, and goes on from the files when it can.

use super::Happened;
use super::inputs::{DECODERS_IDLE_MAX, Inputs, Shared, Slots, Tasks};
use super::left_queues::{self, LeftQueues, UsedQueue};
use crate::input_print::InputPrint;
use crate::outputs::OutputParts;
use crate::system::System;
use anyhow::{Context as _, Result};
use skidder_event::DropReason;
use skidder_input::{TaskDriver, TaskInputs};
use skidder_input_file::{
    FileDriver, FileDriverSettings, FileInputs, Looks, SavedCursors, Scanner,
};
use skidder_observe::{Counts, Describe, InputList, InputSource, Survey};
use skidder_os::{Clock, Fs};
use skidder_pipeline::{
    DeadLetters, DeadLettersLimits, DiskQueue, DiskQueueOpened, DiskQueueSettings, Driver, Feed,
    Output, OutputMetrics, Patience, Pipeline, Queue, QueueLimits, Queues, Registrar,
    RegistrarMetrics, Settle,
};
use skidder_read::{BufferPool, DecoderPool, Readers, ReadersLimits, SourceIds};
use skidder_registry::{Opened, Options, Registry};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;
use tokio::runtime::Runtime;
use tracing::{Instrument as _, Span};

/// One output and all stages before it: nothing of this is shared with another output.
pub(crate) struct RunningOutput {
    /// Its id; `None` for the one of `output`.
    pub(crate) id: Option<String>,
    pub(crate) kind: &'static str,
    pub(crate) settle: Arc<Settle>,
    /// Where its readers put batches in.
    pub(crate) queue: Queue,
    /// The queue behind that, if it is on the disk.
    pub(crate) disk: Option<Arc<DiskQueue>>,
    used: Option<UsedQueue>,
    /// Queues found at its start that it does not use.
    pub(crate) left: LeftQueues,
    /// The inputs that feed it, in the order of the configuration.
    pub(crate) inputs: Vec<RunningInput>,
    /// The same for observers.
    pub(crate) list: InputList,
    pub(super) slots: Slots,
    pub(super) shared: Shared,
    pub(crate) metrics: Arc<OutputMetrics>,
    pub(crate) dead_letters: Option<Arc<DeadLetters>>,
    pub(crate) registrar_metrics: Arc<RegistrarMetrics>,
    /// It has ended by itself.
    pub(crate) ended: Arc<AtomicBool>,
    registry: Arc<Registry>,
    pub(super) files: FileInputs,
    pub(super) tasks: TaskInputs,
    looks: Arc<Looks>,
    pipeline: Pipeline,
}

/// One input of an output.
pub(crate) struct RunningInput {
    /// Its number in the configuration.
    pub(crate) number: usize,
    /// Its number in the pipeline, which it keeps.
    pub(crate) slot: usize,
    /// What it was configured to be.
    pub(super) print: InputPrint,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) counts: Counts,
    /// The plan, to show it.
    pub(crate) plan: Arc<dyn Describe>,
    /// If it reads files.
    pub(crate) survey: Option<Arc<Survey>>,
}

impl RunningOutput {
    /// Where to ask what the files are doing.
    pub(crate) fn looks(&self) -> Arc<Looks> {
        Arc::clone(&self.looks)
    }

    /// Compressed files that are damaged or fail their check, and files that vanished before they were read.
    pub(crate) fn spoiled(&self) -> u64 {
        let of = |input: &RunningInput| {
            let read = input.counts.read();
            read.gzip_errors + read.files_lost
        };
        self.inputs.iter().map(of).sum()
    }

    /// Whether events of its disk queues are lost, or may be, without being counted: a queue is gone, or its record
    /// of how far it was written.
    pub(crate) fn may_have_lost(&self) -> bool {
        self.left.gone || self.disk.as_ref().is_some_and(|disk| disk.state_was_lost())
    }

    /// Lines for the end of a run about its disk queue, and those that it had before.
    pub(super) fn queue_lines(&self) -> Vec<String> {
        let lost = self.settle.total().dropped().get(DropReason::QueueDamaged);
        let loss = self.used.as_ref().filter(|_| lost > 0).map(|used| used.loss(lost));
        let state = self.disk.as_ref().filter(|disk| disk.state_was_lost());
        let state = state.zip(self.used.as_ref()).map(|(_, used)| used.lost_state());
        self.left.lines.iter().cloned().chain(loss).chain(state).collect()
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// No more reading, see [`Pipeline::stop_reading`].
    pub(super) fn stop_reading(&mut self, patience: Patience<'_>) {
        self.pipeline.stop_reading(patience);
    }

    /// Waits until all that was read has its verdict, at most `limit`; returns whether it has.
    pub(super) fn drain(&self, limit: Duration) -> bool {
        self.pipeline.drain(limit)
    }

    /// Drops the rest, and closes the registry. Returns whether all cursors are durable.
    ///
    /// The program ends: with very many files, freeing their state would take longer than all the rest, and the
    /// system does it at once.
    pub(super) fn finish(mut self) -> bool {
        let saved = self.pipeline.finish();
        if let (Some(disk), Some(used)) = (&self.disk, &self.used)
            && saved
            && disk.filled().events == 0
        {
            used.is_empty_now();
        }
        close_registry(&self.registry);
        std::mem::forget(self);
        saved
    }
}

/// What the start of each output needs.
pub(super) struct Start<'a> {
    pub(super) system: &'a System,
    pub(super) send: &'a Sender<Happened>,
    /// Log files that may be open for one output.
    pub(super) open_files: usize,
    /// Threads that read, decode, split and process.
    pub(super) workers: usize,
    /// `filebeat.registry.flush`.
    pub(super) flush: Duration,
    /// Read all existing data once, instead of for ever.
    pub(super) once: bool,
}

impl Start<'_> {
    /// Starts the pipeline of an output over its registry.
    pub(super) fn output(
        &self,
        number: usize,
        parts: OutputParts,
        registry: Arc<Registry>,
        runtime: &Runtime,
        tasks: &mut Tasks,
    ) -> Result<RunningOutput> {
        let system = self.system;
        let settle = Settle::new();
        let data = &parts.place.data;
        let left = left_queues::look(system, data, parts.disk.as_ref().map(|disk| &*disk.path));
        let (queues, out) = queues(system, parts.disk, parts.queue, &settle)?;
        let used = used_queue(system, data, &queues)?;
        let readers = self.readers();
        let shared = self.shared(&settle, &registry, &readers, &queues);
        let mut slots = Slots::default();
        let Inputs { running: inputs, files, lanes } =
            shared.inputs(parts.inputs, &mut slots, tasks)?;
        let list = InputList::new(inputs.iter().map(RunningInput::source).collect());
        tasks.count_drops(parts.id.as_deref(), &list, &settle);
        let files = files.into_iter().map(|(_, file)| file).collect();
        let scanner = Scanner::new(files, &*system.fs).with_queue_waiting(queues.waits_for_more());
        let dead_letters = parts.dead_letters.map(|limits| dead_letters(system, data, limits));
        let metrics = Arc::new(OutputMetrics::new(Arc::clone(&system.clock)));
        let feed = Feed {
            queue: out,
            dead_letters: dead_letters.clone(),
            metrics: Arc::clone(&metrics),
            clock: Arc::clone(&system.clock),
        };
        let kind = self.spawn(number, parts.output, feed, runtime);
        let registrar = Registrar::new(Arc::clone(&settle), Arc::clone(&registry))
            .with_disk(queues.disk.clone());
        let registrar_metrics = registrar.metrics();
        let settings = FileDriverSettings { workers: self.workers, once: self.once };
        let driver = FileDriver::new(settings, scanner, readers);
        let (files, looks) = (driver.inputs(), driver.looks());
        let of_tasks = TaskDriver::new(lanes);
        let tasks = of_tasks.inputs();
        let clock = Arc::clone(&system.clock);
        let drivers: Vec<Box<dyn Driver>> = vec![Box::new(driver), Box::new(of_tasks)];
        let pipeline = Pipeline::start(self.flush, drivers, queues.clone(), registrar, clock)
            .context("cannot start the threads of the pipeline")?;
        if self.once {
            report_read_once(&pipeline, number, self.send.clone())?;
        }
        Ok(RunningOutput {
            id: parts.id,
            kind,
            settle,
            queue: queues.inputs,
            disk: queues.disk,
            used,
            left,
            list,
            slots,
            inputs,
            shared,
            metrics,
            dead_letters,
            registrar_metrics,
            ended: Arc::default(),
            registry,
            files,
            tasks,
            looks,
            pipeline,
        })
    }

    fn readers(&self) -> Arc<Readers> {
        let limits =
            ReadersLimits { open_files: self.open_files, decoders: ReadersLimits::DECODERS };
        Arc::new(Readers::new(limits))
    }

    fn shared(
        &self,
        settle: &Arc<Settle>,
        registry: &Arc<Registry>,
        readers: &Arc<Readers>,
        queues: &Queues,
    ) -> Shared {
        let cursors = SavedCursors::new(Arc::clone(settle), Arc::clone(registry));
        Shared {
            registry: Arc::clone(registry),
            fs: Arc::clone(&self.system.fs),
            clock: Arc::clone(&self.system.clock),
            cursors: Arc::new(cursors),
            buffers: Arc::new(BufferPool::default()),
            decoders: DecoderPool::new(DECODERS_IDLE_MAX),
            readers: Arc::clone(readers),
            ids: Arc::new(SourceIds::default()),
            rows_max: (queues.inputs.limits().events / 4).max(1),
            once: self.once,
        }
    }

    /// Runs the output in its runtime; reports its end, also after a panic. Returns its kind.
    fn spawn(
        &self,
        number: usize,
        output: Box<dyn Output>,
        feed: Feed,
        runtime: &Runtime,
    ) -> &'static str {
        let kind = output.kind();
        let work = output.run(feed);
        let ended = ReportEnd { number, send: self.send.clone() };
        let work = async move {
            let _ended = ended;
            work.await;
        };
        runtime.spawn(work.instrument(Span::current()));
        kind
    }
}

/// Reports the end of an output when dropped.
struct ReportEnd {
    number: usize,
    send: Sender<Happened>,
}

impl Drop for ReportEnd {
    fn drop(&mut self) {
        // The main thread may be gone already.
        drop(self.send.send(Happened::OutputEnded(self.number)));
    }
}

impl RunningInput {
    /// Whether it reads files, and is not a task.
    pub(crate) fn reads_files(&self) -> bool {
        matches!(self.counts, Counts::Files(_))
    }

    /// Number of read errors.
    pub(crate) fn errors(&self) -> u64 {
        let read = self.counts.read();
        read.errors + read.gzip_errors + read.files_lost + read.sources.errors
    }

    /// Where its numbers are.
    pub(super) fn source(&self) -> InputSource {
        InputSource {
            id: self.id.clone(),
            title: self.name.clone(),
            kind: self.kind.to_owned(),
            number: self.number,
            slot: self.slot,
            counts: self.counts.clone(),
            plan: Some(Arc::clone(&self.plan)),
            survey: self.survey.clone(),
        }
    }
}

/// Opens the registry and logs what it finds.
pub(super) fn open_registry(
    fs: &Arc<dyn Fs>,
    clock: &Arc<dyn Clock>,
    path: &Path,
) -> Result<Arc<Registry>> {
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

/// The queue of an output, and the end of it where the output takes events.
fn queues(
    system: &System,
    disk: Option<DiskQueueSettings>,
    limits: QueueLimits,
    settle: &Arc<Settle>,
) -> Result<(Queues, Queue)> {
    let Some(disk) = disk else {
        let queue = Queue::new(limits, Arc::clone(settle));
        return Ok((Queues { inputs: queue.clone(), disk: None }, queue));
    };
    let disk = open_disk_queue(system, disk, settle)?;
    let (front, back) = (disk.front().clone(), disk.back().clone());
    Ok((Queues { inputs: front, disk: Some(disk) }, back))
}

/// Writes down where the disk queue is, if there is one.
fn used_queue(system: &System, data: &Path, queues: &Queues) -> Result<Option<UsedQueue>> {
    let disk = queues.disk.as_ref();
    disk.map(|disk| UsedQueue::new(system, data, &disk.settings().path)).transpose()
}

fn dead_letters(system: &System, data: &Path, limits: DeadLettersLimits) -> Arc<DeadLetters> {
    let (fs, clock) = (Arc::clone(&system.fs), Arc::clone(&system.clock));
    Arc::new(DeadLetters::new(fs, clock, data, limits))
}

/// Opens the disk queue and logs what it finds.
fn open_disk_queue(
    system: &System,
    settings: DiskQueueSettings,
    settle: &Arc<Settle>,
) -> Result<Arc<DiskQueue>> {
    let path = settings.path.clone();
    let fresh = uuid::Uuid::new_v4().into_bytes();
    let (queue, found) = DiskQueue::open(Arc::clone(&system.fs), settings, fresh, settle)?;
    let DiskQueueOpened { events, segments, torn_bytes, cut_events, state_is_lost } = found;
    let path = path.display();
    if state_is_lost {
        tracing::error!(
            events, %path,
            "`queue.state` of the disk queue is gone or damaged: events may be missing before the first segment and behind \
             the last one. All that is in it is delivered, some of it perhaps again; what the files still hold can be \
             read again with `skidder registry forget`"
        );
    }
    if cut_events > 0 {
        tracing::error!(
            events = cut_events, torn_bytes, %path,
            "the end of the disk queue was cut off or damaged after it was written: its events are lost, and are counted \
             as dropped (`queue_damaged`); what their files still hold can be read again with `skidder registry forget`"
        );
    } else if torn_bytes > 0 {
        tracing::warn!(torn_bytes, %path, "a write to the disk queue was cut off; its lines are read again from their files");
    }
    tracing::info!(events, segments, %path, "the queue is on the disk");
    Ok(queue)
}

/// Closes the registry, which writes its snapshot: what a damaged registry is recovered from.
fn close_registry(registry: &Registry) {
    if let Err(error) = registry.close_shared() {
        // All cursors that could be saved are; only the snapshot is older.
        let error: &(dyn std::error::Error + 'static) = &error;
        tracing::warn!(error, "the registry could not be closed properly");
    }
}

/// Reports when an output's inputs have read everything that was there.
fn report_read_once(pipeline: &Pipeline, number: usize, send: Sender<Happened>) -> Result<()> {
    let read_once = pipeline.read_once();
    let work = move || {
        if read_once() {
            drop(send.send(Happened::ReadOnce(number)));
        }
    };
    std::thread::Builder::new()
        .name("once".to_owned())
        .spawn(work)
        .context("cannot start a thread")?;
    Ok(())
}
