//! The counts of the stages, as plain numbers.

use crate::inputs::InputError;
use crate::lag::LagNumbers;
use crate::snapshot::InputSource;
use crate::states::{InputState, OutputState};
use skidder_event::DropReason;
use skidder_input::{InputMetrics, InputTask};
use skidder_pipeline::{DiskQueue, Ledger, OutputMetrics, Queue, RegistrarMetrics};
use skidder_read::ReadMetrics;
use std::sync::Arc;
use std::time::Duration;

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
    pub files_rotated_before: u64,
    pub logs_unseen: u64,
    pub files_lost: u64,
    pub bytes_lost: u64,
    pub pinned_files: u64,
    pub pinned_bytes: u64,
    pub pins_given_up: u64,
    pub files_stalled: u64,
    /// The counts of inputs that are tasks.
    pub sources: SourceNumbers,
}

/// The counts of inputs that are tasks, of one or of all. See [`skidder_input::InputMetrics`] for their meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of `InputMetrics`")]
pub struct SourceNumbers {
    pub opened: u64,
    pub open: u64,
    pub bytes: u64,
    pub events: u64,
    pub published: u64,
    pub refused: u64,
    pub lost_before: u64,
    pub errors: u64,
}

/// One input and its counts.
#[derive(Clone, Debug)]
pub struct InputNumbers {
    /// Its `id`.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// Its unique name: its `id`, or also its number if another one has the same or it has none.
    pub name: String,
    /// Its `type`.
    pub kind: String,
    /// The id of the output that it feeds here, if there are several.
    pub output: Option<String>,
    /// Its number in the configuration; the first is 0.
    pub number: usize,
    /// Its number in requests to the scanner.
    pub slot: usize,
    /// The task, if it reads no files.
    pub task: Option<Arc<InputTask>>,
    /// Its counts.
    pub read: ReadNumbers,
    /// Where its lines are.
    pub ledger: Ledger,
    /// The last error that was met with one of its files or other sources.
    pub error: Option<InputError>,
    /// How far behind its files are, if measured.
    pub lag: Option<LagNumbers>,
    /// Its state, if measured.
    pub state: Option<InputState>,
    /// The output that it is blocked on, and for how long.
    pub blocked: Option<(String, Duration)>,
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
    /// The numbers of the disk, with `queue.disk`.
    pub disk: Option<DiskNumbers>,
}

/// The state of a queue on the disk, and its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskNumbers {
    /// Files of frames.
    pub segments: u64,
    /// Bytes made durable.
    pub written_bytes: u64,
    /// Times that writing failed.
    pub write_errors: u64,
    /// Times that reading failed.
    pub read_errors: u64,
    /// Damaged places.
    pub damaged: u64,
    /// Bytes of a write that a crash has cut off.
    pub torn_bytes: u64,
}

/// The counts of the registrar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegistrarNumbers {
    /// Commits that are durable.
    pub succeeded: u64,
    /// Commits that failed.
    pub failed: u64,
}

impl InputNumbers {
    /// If its id is not its name, its title is its address, or its number next to its id.
    pub(crate) fn of(
        source: &InputSource,
        output: Option<&String>,
        is_name: bool,
        ledger: Ledger,
    ) -> Self {
        let InputSource { id, number, .. } = source;
        Self {
            name: match source.counts.task() {
                _ if is_name => id.clone(),
                Some(_) if id.is_empty() => source.title.clone(),
                _ => format!("{id}#{number}"),
            },
            title: source.title.clone(),
            slot: source.slot,
            ledger,
            error: source.counts.last_error(),
            lag: None,
            state: None,
            blocked: None,
            id: source.id.clone(),
            kind: source.kind.clone(),
            output: output.cloned(),
            number: source.number,
            task: source.counts.task().cloned(),
            read: source.counts.read(),
        }
    }
}

impl InputNumbers {
    /// Takes in how far behind its files are; `output` is the name of the one that it feeds.
    pub(crate) fn take_lag(
        &mut self,
        lag: LagNumbers,
        state: Option<(OutputState, Option<Duration>)>,
        output: &str,
    ) {
        self.state = state.map(|(state, _)| match &self.task {
            Some(task) => {
                let metrics = task.metrics();
                let in_trouble = metrics.trouble().is_some();
                // What waits for room is not in the ledger yet.
                let has_events = self.ledger.in_flight() > 0 || metrics.waiting.get() > 0;
                InputState::of_task(&task.state(), in_trouble, has_events, state)
            }
            None => InputState::of(&lag, state),
        });
        let blocked = state.and_then(|(_, blocked)| blocked);
        let is_blocked = self.state == Some(InputState::Blocked);
        self.blocked = blocked.filter(|_| is_blocked).map(|span| (output.to_owned(), span));
        // Nothing is known of what the far side of a task still has.
        self.lag = Some(lag).filter(|_| self.task.is_none());
    }

    /// Its lines that became events.
    pub(crate) fn events(&self) -> u64 {
        events_of(&self.ledger)
    }
}

/// Lines that became events: all but those that the readers and parsers dropped.
pub(crate) fn events_of(ledger: &Ledger) -> u64 {
    let before =
        [DropReason::Empty, DropReason::LineFilter, DropReason::Parser, DropReason::LineTooLong];
    ledger.read() - before.into_iter().map(|reason| ledger.dropped().get(reason)).sum::<u64>()
}

impl ReadNumbers {
    pub(crate) fn of(metrics: &ReadMetrics) -> Self {
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
            files_rotated_before: metrics.files_rotated_before.get(),
            logs_unseen: metrics.logs_unseen.get(),
            files_lost: metrics.files_lost.get(),
            bytes_lost: metrics.bytes_lost.get(),
            pinned_files: metrics.pinned_files.get(),
            pinned_bytes: metrics.pinned_bytes.get(),
            pins_given_up: metrics.pins_given_up.get(),
            files_stalled: metrics.files_stalled.get(),
            sources: SourceNumbers::default(),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
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
            files_rotated_before,
            logs_unseen,
            files_lost,
            bytes_lost,
            pinned_files,
            pinned_bytes,
            pins_given_up,
            files_stalled,
            sources,
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
        self.files_rotated_before += files_rotated_before;
        self.logs_unseen += logs_unseen;
        self.files_lost += files_lost;
        self.bytes_lost += bytes_lost;
        self.pinned_files += pinned_files;
        self.pinned_bytes += pinned_bytes;
        self.pins_given_up += pins_given_up;
        self.files_stalled += files_stalled;
        self.sources.add(sources);
    }
}

impl SourceNumbers {
    pub(crate) fn of(metrics: &InputMetrics) -> Self {
        Self {
            opened: metrics.opened.get(),
            open: metrics.open.get(),
            bytes: metrics.bytes.get(),
            events: metrics.events.get(),
            published: metrics.published.get(),
            refused: metrics.refused.get(),
            lost_before: metrics.lost_before.get(),
            errors: metrics.errors.get(),
        }
    }

    fn add(&mut self, other: &Self) {
        // Taken apart, so that a new field cannot be forgotten.
        let Self { opened, open, bytes, events, published, refused, lost_before, errors } = other;
        self.opened += opened;
        self.open += open;
        self.bytes += bytes;
        self.events += events;
        self.published += published;
        self.refused += refused;
        self.lost_before += lost_before;
        self.errors += errors;
    }
}

impl OutputNumbers {
    pub(crate) fn of(metrics: &OutputMetrics) -> Self {
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

    pub(crate) fn add(&mut self, other: &Self) {
        // Taken apart, so that a new field cannot be forgotten.
        let Self {
            total,
            acked,
            failed,
            dropped,
            duplicates,
            dead_letter,
            too_many,
            batches,
            split,
            active,
            write_bytes,
            write_errors,
            read_bytes,
            read_errors,
            latency_ns,
        } = other;
        self.total += total;
        self.acked += acked;
        self.failed += failed;
        self.dropped += dropped;
        self.duplicates += duplicates;
        self.dead_letter += dead_letter;
        self.too_many += too_many;
        self.batches += batches;
        self.split += split;
        self.active += active;
        self.write_bytes += write_bytes;
        self.write_errors += write_errors;
        self.read_bytes += read_bytes;
        self.read_errors += read_errors;
        self.latency_ns += latency_ns;
    }
}

impl QueueNumbers {
    /// Of the queue that readers fill; with `queue.disk` its place on the disk is the queue.
    pub(crate) fn of(queue: &Queue, disk: Option<&DiskQueue>) -> Self {
        if let Some(disk) = disk {
            return Self::of_disk(queue, disk);
        }
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
            disk: None,
        }
    }

    fn of_disk(front: &Queue, disk: &DiskQueue) -> Self {
        let (filled, counts, back) = (disk.filled(), disk.metrics(), disk.back().metrics());
        Self {
            events_max: 0,
            bytes_max: disk.settings().max_size,
            events: filled.events + front.filled().0 as u64,
            bytes: filled.bytes,
            added: front.metrics().added.get(),
            consumed: back.consumed.get(),
            removed: back.removed.get(),
            disk: Some(DiskNumbers {
                segments: filled.segments as u64,
                written_bytes: counts.written_bytes.get(),
                write_errors: counts.write_errors.get(),
                read_errors: counts.read_errors.get(),
                damaged: counts.damaged.get(),
                torn_bytes: counts.torn_bytes.get(),
            }),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let Self { events_max, bytes_max, events, bytes, added, consumed, removed, disk } = other;
        if let Some(disk) = disk {
            self.disk.get_or_insert_default().add(disk);
        }
        self.events_max += events_max;
        self.bytes_max += bytes_max;
        self.events += events;
        self.bytes += bytes;
        self.added += added;
        self.consumed += consumed;
        self.removed += removed;
    }
}

impl DiskNumbers {
    fn add(&mut self, other: &Self) {
        let Self { segments, written_bytes, write_errors, read_errors, damaged, torn_bytes } =
            other;
        self.segments += segments;
        self.written_bytes += written_bytes;
        self.write_errors += write_errors;
        self.read_errors += read_errors;
        self.damaged += damaged;
        self.torn_bytes += torn_bytes;
    }
}

impl RegistrarNumbers {
    pub(crate) fn of(metrics: &RegistrarMetrics) -> Self {
        Self { succeeded: metrics.succeeded.get(), failed: metrics.failed.get() }
    }
}
