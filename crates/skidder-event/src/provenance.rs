//! Where the events of a batch come from: what the settle needs to move a cursor or to answer the far side.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// Names one source inside one run of the program. Never reused, never stored. Its upper bits are the number of the input that
/// reads it, so that a batch shows which input it is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u64);

impl SourceId {
    /// Bits that distinguish the sources of an input: a trillion; the other 24 are for the inputs.
    const NUMBER_BITS: u32 = 40;

    /// The name of a source of this input.
    pub fn of_input(input: usize, number: u64) -> Self {
        Self((input as u64) << Self::NUMBER_BITS | (number & ((1 << Self::NUMBER_BITS) - 1)))
    }

    /// The number of its input.
    pub fn input(self) -> usize {
        (self.0 >> Self::NUMBER_BITS) as usize
    }
}

/// Saved decoder state that makes a cursor cheap to reach. Rendered only when it is stored.
pub trait ResumePoint: Send + Sync + Debug {
    /// Offset in decompressed bytes at which the decoder would continue.
    fn offset(&self) -> u64;
    /// The bytes that the registry keeps.
    fn to_bytes(&self) -> Vec<u8>;
}

/// Check value over the last bytes before a cursor: proof that the file still holds what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Number of decompressed bytes before the cursor that are covered.
    pub len: u32,
    /// CRC-32 of them.
    pub crc: u32,
}

/// Where the events of a batch come from, and what their verdicts mean there.
#[derive(Debug)]
pub struct Provenance {
    /// The source.
    pub source: SourceId,
    /// The progress of the source when all events of the batch have their verdict.
    pub progress: Progress,
}

/// What follows when all events of a batch have their verdict: what a source wants to know of it.
#[derive(Debug)]
pub enum Progress {
    /// Nothing: the source cannot send again what was lost (tcp, udp, syslog). The number is how many of its bytes the
    /// batch takes up.
    Nothing(u64),
    /// The cursor of a file moves, in the order of its batches.
    File(FilePart),
    /// A cursor that only the input can read moves, in the order of the batches (a journal, a partition, a polled API).
    Cursor(SourcePart),
    /// The far side gets an acknowledgement, in the order of the verdicts (a message of a queue, a request that waits). The number is
    /// how many of its bytes the batch takes up.
    Acknowledge(Acknowledgement, u64),
}

/// The part of a file that a batch holds.
#[derive(Clone, Debug)]
pub struct FilePart {
    /// The file's generation when it was read; results of an older one no longer move its cursor.
    pub generation: u32,
    /// Decompressed bytes `start..end` of the file, whole lines with their terminators.
    pub range: Range<u64>,
    /// Whether `range.end` is the verified end of a finished compressed file.
    pub end_of_file: bool,
    /// Proof for the cursor at `range.end`.
    pub tail: Option<Tail>,
    /// The newest decoder state at or before `range.end`, when there is a new one.
    pub resume: Option<Arc<dyn ResumePoint>>,
}

impl FilePart {
    /// Lines of the first generation of a file, without a proof and a decoder's state.
    pub fn new(range: Range<u64>) -> Self {
        Self { generation: 0, range, end_of_file: false, tail: None, resume: None }
    }
}

/// The part of another source that a batch holds.
#[derive(Clone, Debug)]
pub struct SourcePart {
    /// Version of the form of `cursor`, the input's own.
    pub version: u32,
    /// Where the source continues behind the batch.
    pub cursor: Arc<str>,
    /// How many bytes of the source the batch takes up.
    pub bytes: u64,
}

/// Reports the outcome of a batch to the far side of a source. Exactly one of the two is called, once.
pub trait Acknowledge: Send + Sync + Debug {
    /// Every event was delivered, dropped for a reason, kept as a dead letter, or stored in a disk queue: the far side may
    /// forget them.
    fn accept(self: Box<Self>);

    /// At least one event will get no verdict in this run: the far side must send all of them again.
    fn reject(self: Box<Self>);
}

/// An acknowledgement that is owed to the far side of a source. Dropping it is a rejection, so that no way of losing a
/// batch forgets it.
#[derive(Debug)]
pub struct Acknowledgement(Option<Box<dyn Acknowledge>>);

impl Acknowledgement {
    /// One that reports to `far_side`.
    pub fn new(far_side: impl Acknowledge + 'static) -> Self {
        Self(Some(Box::new(far_side)))
    }

    /// The far side may forget the events.
    pub fn accept(mut self) {
        if let Some(far_side) = self.0.take() {
            far_side.accept();
        }
    }
}

impl Drop for Acknowledgement {
    fn drop(&mut self) {
        if let Some(far_side) = self.0.take() {
            far_side.reject();
        }
    }
}

impl Provenance {
    /// Lines of the first generation of a file, without a proof and a decoder's state.
    pub fn new(source: SourceId, range: Range<u64>) -> Self {
        Self::of_file(source, FilePart::new(range))
    }

    /// A part of a file.
    pub fn of_file(source: SourceId, part: FilePart) -> Self {
        Self { source, progress: Progress::File(part) }
    }

    /// The part of a file; `None` for another source.
    pub fn file(&self) -> Option<&FilePart> {
        match &self.progress {
            Progress::File(part) => Some(part),
            _ => None,
        }
    }

    /// The generation of a file; 0 for another source.
    pub fn generation(&self) -> u32 {
        self.file().map_or(0, |part| part.generation)
    }

    /// Bytes of the source that the batch takes up, those of dropped lines and of terminators included.
    pub fn bytes(&self) -> u64 {
        match &self.progress {
            Progress::Nothing(bytes) | Progress::Acknowledge(_, bytes) => *bytes,
            Progress::File(part) => part.range.end - part.range.start,
            Progress::Cursor(part) => part.bytes,
        }
    }
}

/// Why an event was not delivered and is not in the dead letters either. Each has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// The line had no text.
    Empty,
    /// By `include_lines` or `exclude_lines`.
    LineFilter,
    /// By a parser of the input: `include_message`, or a stream that `container` does not take.
    Parser,
    /// By `drop_event`.
    Processor,
    /// The raw line was longer than four times `message_max_bytes`.
    LineTooLong,
    /// The output can never take it and dead letters are off or full.
    Rejected,
    /// The condition under which the input feeds this output does not hold.
    NotForOutput,
    /// It was in a place of the disk queue that cannot be read any more.
    QueueDamaged,
    /// There was no room in the queue, and the source can neither wait nor send again (datagrams).
    QueueFull,
    /// The program or the input was stopped before there was room in the queue, and the source cannot send again.
    Stopped,
}

impl DropReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 10] = [
        Self::Empty,
        Self::LineFilter,
        Self::Parser,
        Self::Processor,
        Self::LineTooLong,
        Self::Rejected,
        Self::NotForOutput,
        Self::QueueDamaged,
        Self::QueueFull,
        Self::Stopped,
    ];

    /// The name in metrics and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty_line",
            Self::LineFilter => "line_filter",
            Self::Parser => "parser",
            Self::Processor => "drop_event",
            Self::LineTooLong => "line_too_long",
            Self::Rejected => "rejected",
            Self::NotForOutput => "not_for_output",
            Self::QueueDamaged => "queue_damaged",
            Self::QueueFull => "queue_full",
            Self::Stopped => "stopped",
        }
    }
}

/// Number of events dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounts([u64; DropReason::ALL.len()]);

impl DropCounts {
    /// Adds `count` drops for `reason`.
    pub fn add(&mut self, reason: DropReason, count: u64) {
        self.0[reason as usize] += count;
    }

    /// Adds all counts of `other`.
    pub fn add_all(&mut self, other: &Self) {
        for (ours, theirs) in self.0.iter_mut().zip(other.0) {
            *ours += theirs;
        }
    }

    /// Drops for one reason.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Drops for all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Debug)]
    struct Note(Arc<Mutex<Vec<&'static str>>>);

    impl Acknowledge for Note {
        fn accept(self: Box<Self>) {
            self.0.lock().expect("no panic").push("accept");
        }

        fn reject(self: Box<Self>) {
            self.0.lock().expect("no panic").push("reject");
        }
    }

    #[test]
    fn an_acknowledgement_that_goes_unused_is_a_rejection_and_an_accepted_one_is_none() {
        let notes = Arc::default();
        Acknowledgement::new(Note(Arc::clone(&notes))).accept();
        assert_eq!(*notes.lock().expect("no panic"), ["accept"]);
        drop(Acknowledgement::new(Note(Arc::clone(&notes))));
        assert_eq!(*notes.lock().expect("no panic"), ["accept", "reject"]);
    }
}
