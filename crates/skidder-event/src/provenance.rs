//! Where the bytes of a batch come from: what the settle needs to move a cursor.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// Names one source inside one run of the program. Never reused, never stored. Its upper bits are the number of the input that
/// reads it, so that whoever has a batch knows whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u64);

impl SourceId {
    /// Bits that tell the sources of an input apart: a trillion; the other 24 are for the inputs.
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

/// The part of a source that a batch holds.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The source.
    pub source: SourceId,
    /// The source's generation when it was read; results of an older one no longer move its cursor.
    pub generation: u32,
    /// Decompressed bytes `start..end` of the source, whole lines with their terminators.
    pub range: Range<u64>,
    /// Whether `range.end` is the verified end of a finished compressed file.
    pub end_of_file: bool,
    /// Proof for the cursor at `range.end`.
    pub tail: Option<Tail>,
    /// The newest decoder state at or before `range.end`, when there is a new one.
    pub resume: Option<Arc<dyn ResumePoint>>,
}

impl Provenance {
    /// Lines of the first generation of a source, without a proof and a decoder's state.
    pub fn new(source: SourceId, range: Range<u64>) -> Self {
        Self { source, generation: 0, range, end_of_file: false, tail: None, resume: None }
    }
}

/// Why an event was not delivered and is not in the dead letters either. Each has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// The line had no text.
    Empty,
    /// `include_lines` or `exclude_lines` said so.
    LineFilter,
    /// A parser of the input said so: `include_message`, or a stream that `container` does not take.
    Parser,
    /// `drop_event` said so.
    Processor,
    /// The raw line was longer than four times `message_max_bytes`.
    LineTooLong,
    /// The output can never take it and dead letters are off or full.
    Rejected,
    /// The condition under which the input feeds this output does not hold.
    NotForOutput,
    /// It was in a place of the disk queue that cannot be read any more.
    QueueDamaged,
}

impl DropReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 8] = [
        Self::Empty,
        Self::LineFilter,
        Self::Parser,
        Self::Processor,
        Self::LineTooLong,
        Self::Rejected,
        Self::NotForOutput,
        Self::QueueDamaged,
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
