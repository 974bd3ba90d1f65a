//! zstd, bzip2, xz and lz4: files made of frames (streams, blocks) that can be decoded each by itself.
//!
//! A [`FramedReader`] is the shell that all of them share: offsets, damage, checkpoints, and what
//! happens at the end of the file. Inside it a machine for the format takes one step after the
//! other over an `Input`. Headers and other short pieces are only consumed whole, so that a file
//! which is still being written is simply tried again.
//!
//! The promises are those of [`crate::gzip::GzipReader`]: the output is the concatenation of all
//! frames, whatever the sizes of the buffers; what was decoded before damage is handed out before
//! the damage is reported; nothing twice.

pub(crate) mod bzip2;
mod checkpoint;
mod frames;
mod input;
pub(crate) mod lz4;
mod xxh32;
pub(crate) mod xz;
pub(crate) mod zstd;

pub use checkpoint::FramePoint;
pub(crate) use checkpoint::MAGIC as POINT_MAGIC;

use crate::codec::Codec;
use crate::gzip::{CHECKPOINT_INTERVAL, CheckpointError, ResumeError};
use crate::pool::DecoderPool;
use crate::progress::{Damage, DecodeError, MismatchKind, Note, Progress, ReadState};
use crate::tail::Tail;
use input::Input;
use skidder_os::File;
use std::io;

/// No checkpoints.
const NEVER: u64 = u64::MAX;

/// Compressed bytes that one call consumes at most, or one step more.
const CALL_COMPRESSED_MAX: u64 = 1 << 20;

/// Decoder of one file of zstd, bzip2, xz or lz4.
#[derive(Debug)]
pub struct FramedReader {
    machine: Machine,
    /// Compressed bytes consumed.
    compressed: u64,
    /// Where the file ended when more was wanted; less than `compressed` since.
    ended_at: u64,
    /// Decompressed bytes handed out.
    decompressed: u64,
    /// Why there is no more.
    over: Option<Over>,
    interval: u64,
    /// Decompressed offset of the newest checkpoint.
    checkpoint_last: u64,
    checkpoint: Option<FramePoint>,
}

#[derive(Clone, Copy, Debug)]
enum Over {
    /// What follows belongs to no frame.
    Garbage,
    Failed(Damage),
}

#[derive(Debug)]
enum Machine {
    Zstd(zstd::Zstd),
    Bzip2(bzip2::Bzip2),
    Xz(xz::Xz),
    Lz4(lz4::Lz4),
}

/// The result of one step of a machine.
enum Step {
    /// This many bytes were handed out; perhaps none, if only input was consumed.
    Produced(usize),
    /// A note that belongs after the bytes handed out before.
    Mismatch(Mismatch),
    /// The file is complete where it ends.
    End,
    /// What follows is no frame.
    Garbage,
}

/// A stored value that differs from what was decoded.
struct Mismatch {
    kind: MismatchKind,
    frame_start: u64,
    expected: u64,
    found: u64,
}

/// Why a step could not be taken. Nothing was consumed or produced.
enum Stop {
    /// The file ends here for now.
    Short,
    /// No memory.
    Memory,
    /// The system did not give the bytes.
    Read(DecodeError),
    /// The data are invalid.
    Corrupt(&'static str),
    /// They are valid and cannot be decoded.
    Damaged(Damage),
}

impl FramedReader {
    /// A reader at the start of a file. gzip has its own, which is why it gives nothing for it.
    pub fn new(codec: Codec, pool: &DecoderPool) -> Option<Self> {
        let machine = match codec {
            Codec::Gzip => return None,
            Codec::Zstd => Machine::Zstd(zstd::Zstd::new(pool)),
            Codec::Bzip2 => Machine::Bzip2(bzip2::Bzip2::new(pool)),
            Codec::Xz => Machine::Xz(xz::Xz::new()),
            Codec::Lz4 => Machine::Lz4(lz4::Lz4::new(pool)),
        };
        Some(Self {
            machine,
            compressed: 0,
            ended_at: 0,
            decompressed: 0,
            over: None,
            interval: CHECKPOINT_INTERVAL,
            checkpoint_last: 0,
            checkpoint: None,
        })
    }

    /// Sets the decompressed bytes between two checkpoints; with 0 each place where one can be makes one.
    pub fn with_checkpoint_interval(mut self, interval: u64) -> Self {
        self.interval = interval;
        self
    }

    /// Takes no checkpoints, for readers that will not be resumed.
    pub fn without_checkpoints(self) -> Self {
        self.with_checkpoint_interval(NEVER)
    }

    /// A reader at `checkpoint`, after making sure that `file` still has the same 64 bytes before
    /// it. Continue with [`crate::Decoder::skip_to`] to the exact byte.
    pub fn resume(
        checkpoint: &FramePoint,
        file: &dyn File,
        pool: &DecoderPool,
    ) -> Result<Self, ResumeError> {
        let offset = checkpoint.compressed_offset;
        Tail::check(file, offset, checkpoint.tail_crc)?;
        let mut reader = Self::new(checkpoint.codec, pool).ok_or(ResumeError::Stale)?;
        // Headers that are read again are short.
        let mut scratch = [0; 64];
        let mut input = Input::new(file, &mut scratch, offset);
        reader.machine.restore(&checkpoint.state, &mut input).map_err(|stop| match stop {
            Stop::Memory => ResumeError::Read { offset, source: io::ErrorKind::OutOfMemory.into() },
            Stop::Read(DecodeError::Read { offset, source }) => {
                ResumeError::Read { offset, source }
            }
            _ => ResumeError::Stale,
        })?;
        reader.compressed = offset;
        reader.decompressed = checkpoint.decompressed_offset;
        reader.checkpoint_last = checkpoint.decompressed_offset;
        Ok(reader)
    }

    /// What it decodes.
    pub fn codec(&self) -> Codec {
        match self.machine {
            Machine::Zstd(_) => Codec::Zstd,
            Machine::Bzip2(_) => Codec::Bzip2,
            Machine::Xz(_) => Codec::Xz,
            Machine::Lz4(_) => Codec::Lz4,
        }
    }

    /// Compressed bytes consumed so far.
    pub fn compressed_offset(&self) -> u64 {
        self.compressed
    }

    /// The same, and what was looked at and is no whole block yet.
    pub fn seen_offset(&self) -> u64 {
        self.compressed.max(self.ended_at)
    }

    /// Decompressed bytes handed out so far, over all frames.
    pub fn decompressed_offset(&self) -> u64 {
        self.decompressed
    }

    /// Decodes the next bytes into `out`, using `scratch` for compressed bytes (64 KiB serve best).
    /// Neither may be empty. See [`crate::gzip::GzipReader::read`].
    pub fn read(
        &mut self,
        file: &dyn File,
        scratch: &mut [u8],
        out: &mut [u8],
    ) -> Result<Progress, DecodeError> {
        assert!(!scratch.is_empty() && !out.is_empty(), "a read needs room for input and output");
        match self.over {
            Some(Over::Failed(damage)) => return Err(damage.into()),
            Some(Over::Garbage) => return Ok(Progress::new(0, ReadState::End)),
            None => {}
        }
        let begin = self.compressed;
        let mut input = Input::new(file, scratch, self.compressed);
        let mut produced = 0;
        while produced < out.len() && self.compressed - begin < CALL_COMPRESSED_MAX {
            let step = self.machine.step(&mut input, &mut out[produced..]);
            self.compressed = input.offset();
            match step {
                Ok(Step::Produced(count)) => {
                    produced += count;
                    self.decompressed += count as u64;
                    if self.interval != NEVER
                        && self.decompressed - self.checkpoint_last >= self.interval
                    {
                        self.mark(file);
                    }
                }
                Ok(Step::Mismatch(mismatch)) => {
                    let note = Some(self.note(&mismatch));
                    return Ok(Progress { produced, state: ReadState::More, note });
                }
                Ok(Step::End) => {
                    self.mark_end(file);
                    return Ok(Progress::new(produced, ReadState::End));
                }
                Ok(Step::Garbage) => {
                    self.over = Some(Over::Garbage);
                    let note = Some(Note::TrailingGarbage { offset: self.compressed });
                    return Ok(Progress { produced, state: ReadState::More, note });
                }
                Err(Stop::Short) => {
                    self.ended_at = input.seen();
                    return Ok(Progress::new(produced, ReadState::Waiting));
                }
                // The cause is still there at the next call.
                Err(_) if produced > 0 => break,
                Err(stop) => return Err(self.fail(stop)),
            }
        }
        Ok(Progress::new(produced, ReadState::More))
    }

    /// The newest checkpoint since the last call, if any; never behind `decompressed_offset`.
    pub fn take_checkpoint(&mut self) -> Option<FramePoint> {
        self.checkpoint.take()
    }

    fn note(&self, mismatch: &Mismatch) -> Note {
        Note::Mismatch {
            kind: mismatch.kind,
            member_offset: mismatch.frame_start,
            decompressed_offset: self.decompressed,
            expected: mismatch.expected,
            found: mismatch.found,
        }
    }

    fn fail(&mut self, stop: Stop) -> DecodeError {
        let damage = match stop {
            Stop::Read(error) => return error,
            Stop::Memory => return DecodeError::Memory,
            Stop::Damaged(damage) => damage,
            Stop::Corrupt(reason) => self.corrupt(reason),
            Stop::Short => self.corrupt("cut off"),
        };
        self.over = Some(Over::Failed(damage));
        self.machine.release();
        damage.into()
    }

    fn corrupt(&self, reason: &'static str) -> Damage {
        Damage::Corrupt {
            compressed_offset: self.compressed,
            decompressed_offset: self.decompressed,
            reason,
        }
    }

    /// The end makes a checkpoint too, so that what is appended is read on without decoding what precedes it.
    fn mark_end(&mut self, file: &dyn File) {
        if self.interval != NEVER && self.decompressed > self.checkpoint_last {
            self.mark(file);
        }
    }

    /// Takes a checkpoint, if there can be one where the machine stands.
    fn mark(&mut self, file: &dyn File) {
        let Some(state) = self.machine.point() else { return };
        // Without these bytes there is no checkpoint this time; an error shows when they are decoded.
        let Ok(tail) = Tail::read(file, self.compressed) else { return };
        self.checkpoint_last = self.decompressed;
        self.checkpoint = Some(FramePoint {
            codec: self.codec(),
            compressed_offset: self.compressed,
            decompressed_offset: self.decompressed,
            tail_crc: tail.crc(),
            state,
        });
    }
}

impl Machine {
    /// Moves on. `out` is not empty.
    fn step(&mut self, input: &mut Input<'_>, out: &mut [u8]) -> Result<Step, Stop> {
        match self {
            Self::Zstd(machine) => machine.step(input, out),
            Self::Bzip2(machine) => machine.step(input, out),
            Self::Xz(machine) => machine.step(input, out),
            Self::Lz4(machine) => machine.step(input, out),
        }
    }

    /// What a checkpoint has to hold to go on from here; `None` if that cannot be.
    fn point(&self) -> Option<Vec<u8>> {
        match self {
            Self::Zstd(machine) => machine.is_between().then(Vec::new),
            Self::Bzip2(machine) => machine.point(),
            Self::Xz(machine) => machine.point(),
            Self::Lz4(machine) => machine.point(),
        }
    }

    /// Goes on where a checkpoint was taken; `input` stands there.
    fn restore(&mut self, state: &[u8], input: &mut Input<'_>) -> Result<(), Stop> {
        match self {
            Self::Zstd(_) if state.is_empty() => Ok(()),
            Self::Zstd(_) => Err(Stop::Corrupt("a state where none belongs")),
            Self::Bzip2(machine) => machine.restore(state),
            Self::Xz(machine) => machine.restore(state, input),
            Self::Lz4(machine) => machine.restore(state, input),
        }
    }

    /// Releases memory that is no longer needed.
    fn release(&mut self) {
        match self {
            Self::Zstd(machine) => machine.release(),
            Self::Bzip2(machine) => machine.release(),
            Self::Xz(machine) => machine.release(),
            Self::Lz4(machine) => machine.release(),
        }
    }
}

/// Takes fixed-size fields off the front of a stored state.
fn take<const N: usize>(state: &mut &[u8]) -> Result<[u8; N], Stop> {
    let (field, rest) =
        state.split_first_chunk().ok_or(Stop::Corrupt("the state of a checkpoint is too short"))?;
    *state = rest;
    Ok(*field)
}
