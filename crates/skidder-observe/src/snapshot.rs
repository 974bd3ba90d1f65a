//! One consistent look at all counters of a run.

use crate::process::{Process, System, cores};
use skidder_event::DropReason;
use skidder_os::{Clock, Fs, Monotonic, Timestamp};
use skidder_pipeline::{Ledger, Looks, OutputMetrics, Queue, RegistrarMetrics, Settle};
use skidder_read::ReadMetrics;
use std::sync::Arc;
use std::time::Duration;

/// Who runs: constant for the life of the process.
#[derive(Clone, Debug)]
pub struct Program {
    /// Filebeat's `beat`: `filebeat`, so that dashboards match.
    pub beat: String,
    /// The `name` setting, by default the host's name.
    pub name: String,
    /// The version shown as the beat's.
    pub version: String,
    /// The host's name.
    pub hostname: String,
    /// Identifies the data directory; stays over restarts.
    pub uuid: String,
    /// Identifies this process; new with each start.
    pub ephemeral_id: String,
    /// Commit it was built from, if known.
    pub build_commit: Option<String>,
    /// When it was built, in RFC 3339, if known.
    pub build_time: Option<String>,
    /// Kind of the output: `elasticsearch`, `console`, …
    pub output: String,
    /// When it started.
    pub start: Start,
}

/// When the process started, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// For the uptime.
    pub monotonic: Monotonic,
    /// For `process_start_time_seconds`.
    pub wall: Timestamp,
}

impl Start {
    /// The start is now.
    pub fn now(clock: &dyn Clock) -> Self {
        Self { monotonic: clock.monotonic(), wall: clock.wall() }
    }
}

/// One configured input.
#[derive(Clone, Debug)]
pub struct InputSource {
    /// Its `id`.
    pub id: String,
    /// Its `type`: `filestream`, `stdin`, …
    pub kind: String,
    /// What its readers count. Inputs that share the counters show the same numbers; the totals count
    /// them once.
    pub metrics: Arc<ReadMetrics>,
}

/// Where all numbers of a run are.
#[derive(Clone)]
pub struct Sources {
    /// Who runs.
    pub program: Arc<Program>,
    /// The configured inputs.
    pub inputs: Vec<InputSource>,
    /// Holds the ledger.
    pub settle: Arc<Settle>,
    /// The queue before the output.
    pub queue: Queue,
    /// What the output counts.
    pub output: Arc<OutputMetrics>,
    /// Where to ask what the files are doing; `None` if there is nobody to ask.
    pub looks: Option<Arc<Looks>>,
    /// What the registrar counts; `None` leaves `registrar.*` out.
    pub registrar: Option<Arc<RegistrarMetrics>>,
    /// For the uptime.
    pub clock: Arc<dyn Clock>,
    /// For `/proc/self` and `/etc/passwd`.
    pub fs: Arc<dyn Fs>,
}

/// The counts of readers, of one input or of all. See [`ReadMetrics`] for their meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of `ReadMetrics`")]
pub struct ReadNumbers {
    pub opened: u64,
    pub closed: u64,
    pub open: u64,
    pub gzip_opened: u64,
    pub bytes: u64,
    pub lines: u64,
    pub truncated: u64,
    pub raw_lines: u64,
    pub lines_discarded: u64,
    pub parse_errors: u64,
    pub errors: u64,
    pub gzip_errors: u64,
    pub files_truncated: u64,
    pub files_renamed: u64,
    pub resume_skipped_bytes: u64,
    pub files_matched: u64,
    pub files_held: u64,
    pub files_lost: u64,
    pub bytes_lost: u64,
    pub pinned_files: u64,
    pub pinned_bytes: u64,
    pub pins_given_up: u64,
    pub files_stalled: u64,
}

/// One input and its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputNumbers {
    /// Its `id`.
    pub id: String,
    /// Its `type`.
    pub kind: String,
    /// Its counts.
    pub read: ReadNumbers,
}

/// The counts of the output. See [`OutputMetrics`] for their meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of `OutputMetrics`")]
pub struct OutputNumbers {
    pub total: u64,
    pub acked: u64,
    pub failed: u64,
    pub dropped: u64,
    pub duplicates: u64,
    pub dead_letter: u64,
    pub too_many: u64,
    pub batches: u64,
    pub split: u64,
    pub active: u64,
    pub write_bytes: u64,
    pub write_errors: u64,
    pub read_bytes: u64,
    pub read_errors: u64,
    pub latency_ns: u64,
}

/// The state of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueNumbers {
    /// Bound in events.
    pub events_max: u64,
    /// Bound in bytes.
    pub bytes_max: u64,
    /// Events queued and in flight.
    pub events: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Events that were put in.
    pub added: u64,
    /// Events that workers took out.
    pub consumed: u64,
    /// Events that are settled.
    pub removed: u64,
}

/// The counts of the registrar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegistrarNumbers {
    /// Commits that are durable.
    pub succeeded: u64,
    /// Commits that failed.
    pub failed: u64,
}

/// All numbers at one moment. The ledger is taken once and adds up; counters of other stages are read
/// one after the other and may be some events ahead of it or behind.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Who runs.
    pub program: Arc<Program>,
    /// Time since the start.
    pub uptime: Duration,
    /// The total of all sources.
    pub ledger: Ledger,
    /// The queue.
    pub queue: QueueNumbers,
    /// The output.
    pub output: OutputNumbers,
    /// All readers together.
    pub read: ReadNumbers,
    /// The inputs, in the order of the configuration.
    pub inputs: Vec<InputNumbers>,
    /// The registrar, if there is one.
    pub registrar: Option<RegistrarNumbers>,
    /// This process.
    pub process: Process,
    /// The machine.
    pub system: System,
}

impl Sources {
    /// Takes all numbers.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            program: Arc::clone(&self.program),
            uptime: self.clock.monotonic().since(self.program.start.monotonic),
            ledger: self.settle.total(),
            queue: QueueNumbers::of(&self.queue),
            output: OutputNumbers::of(&self.output),
            read: self.read_total(),
            inputs: self.inputs.iter().map(InputNumbers::of).collect(),
            registrar: self.registrar.as_deref().map(|metrics| RegistrarNumbers {
                succeeded: metrics.succeeded.get(),
                failed: metrics.failed.get(),
            }),
            process: Process::look(&*self.fs),
            system: System::look(cores()),
        }
    }

    /// The sum over the inputs; counters that several of them share are counted once.
    fn read_total(&self) -> ReadNumbers {
        let mut total = ReadNumbers::default();
        for (index, input) in self.inputs.iter().enumerate() {
            let seen = &self.inputs[..index];
            if !seen.iter().any(|other| Arc::ptr_eq(&other.metrics, &input.metrics)) {
                total.add(&ReadNumbers::of(&input.metrics));
            }
        }
        total
    }
}

impl Snapshot {
    /// Lines that became events: all but those that the readers and parsers dropped.
    pub(crate) fn events_total(&self) -> u64 {
        let dropped = self.ledger.dropped();
        let before = [
            DropReason::Empty,
            DropReason::LineFilter,
            DropReason::Parser,
            DropReason::LineTooLong,
        ];
        self.ledger.read() - before.into_iter().map(|reason| dropped.get(reason)).sum::<u64>()
    }

    /// Lines with a verdict.
    pub(crate) fn lines_done(&self) -> u64 {
        self.ledger.read() - self.ledger.in_flight()
    }
}

impl InputNumbers {
    fn of(source: &InputSource) -> Self {
        Self {
            id: source.id.clone(),
            kind: source.kind.clone(),
            read: ReadNumbers::of(&source.metrics),
        }
    }
}

impl ReadNumbers {
    fn of(metrics: &ReadMetrics) -> Self {
        Self {
            opened: metrics.opened.get(),
            closed: metrics.closed.get(),
            open: metrics.open.get(),
            gzip_opened: metrics.gzip_opened.get(),
            bytes: metrics.bytes.get(),
            lines: metrics.lines.get(),
            truncated: metrics.truncated.get(),
            raw_lines: metrics.raw_lines.get(),
            lines_discarded: metrics.lines_discarded.get(),
            parse_errors: metrics.parse_errors.get(),
            errors: metrics.errors.get(),
            gzip_errors: metrics.gzip_errors.get(),
            files_truncated: metrics.files_truncated.get(),
            files_renamed: metrics.files_renamed.get(),
            resume_skipped_bytes: metrics.resume_skipped_bytes.get(),
            files_matched: metrics.files_matched.get(),
            files_held: metrics.files_held.get(),
            files_lost: metrics.files_lost.get(),
            bytes_lost: metrics.bytes_lost.get(),
            pinned_files: metrics.pinned_files.get(),
            pinned_bytes: metrics.pinned_bytes.get(),
            pins_given_up: metrics.pins_given_up.get(),
            files_stalled: metrics.files_stalled.get(),
        }
    }

    fn add(&mut self, other: &Self) {
        // Taken apart, so that a new field cannot be forgotten.
        let Self {
            opened,
            closed,
            open,
            gzip_opened,
            bytes,
            lines,
            truncated,
            raw_lines,
            lines_discarded,
            parse_errors,
            errors,
            gzip_errors,
            files_truncated,
            files_renamed,
            resume_skipped_bytes,
            files_matched,
            files_held,
            files_lost,
            bytes_lost,
            pinned_files,
            pinned_bytes,
            pins_given_up,
            files_stalled,
        } = other;
        self.opened += opened;
        self.closed += closed;
        self.open += open;
        self.gzip_opened += gzip_opened;
        self.bytes += bytes;
        self.lines += lines;
        self.truncated += truncated;
        self.raw_lines += raw_lines;
        self.lines_discarded += lines_discarded;
        self.parse_errors += parse_errors;
        self.errors += errors;
        self.gzip_errors += gzip_errors;
        self.files_truncated += files_truncated;
        self.files_renamed += files_renamed;
        self.resume_skipped_bytes += resume_skipped_bytes;
        self.files_matched += files_matched;
        self.files_held += files_held;
        self.files_lost += files_lost;
        self.bytes_lost += bytes_lost;
        self.pinned_files += pinned_files;
        self.pinned_bytes += pinned_bytes;
        self.pins_given_up += pins_given_up;
        self.files_stalled += files_stalled;
    }
}

impl OutputNumbers {
    fn of(metrics: &OutputMetrics) -> Self {
        Self {
            total: metrics.total.get(),
            acked: metrics.acked.get(),
            failed: metrics.failed.get(),
            dropped: metrics.dropped.get(),
            duplicates: metrics.duplicates.get(),
            dead_letter: metrics.dead_letter.get(),
            too_many: metrics.too_many.get(),
            batches: metrics.batches.get(),
            split: metrics.split.get(),
            active: metrics.active.get(),
            write_bytes: metrics.write_bytes.get(),
            write_errors: metrics.write_errors.get(),
            read_bytes: metrics.read_bytes.get(),
            read_errors: metrics.read_errors.get(),
            latency_ns: metrics.latency_ns.get(),
        }
    }
}

impl QueueNumbers {
    fn of(queue: &Queue) -> Self {
        let (events, bytes) = queue.filled();
        let (limits, metrics) = (queue.limits(), queue.metrics());
        Self {
            events_max: limits.events as u64,
            bytes_max: limits.bytes as u64,
            events: events as u64,
            bytes: bytes as u64,
            added: metrics.added.get(),
            consumed: metrics.consumed.get(),
            removed: metrics.removed.get(),
        }
    }
}
