//! One compressed file being read: members, checksums, checkpoints.
//!
//! A [`GzipReader`] is a state machine over the compressed bytes: between members, header, body,
//! trailer. It holds no input: each call reads from the file at its own offset into a buffer lent
//! by the caller, and what a call did not use is read again by the next one. So a file costs the
//! decoder's 46 KiB while it is inside a member, and next to nothing outside.
//!
//! Promises: output is the concatenation of all members, whatever the sizes of the buffers; what
//! was decoded before damage is handed out before the damage is reported; nothing is handed out
//! twice, errors included.

use super::checkpoint::Checkpoint;
use super::header::{HeaderError, HeaderParser, Parsed};
use super::pool::{InflatePool, Pooled};
use crate::deflate::Stop;
use crate::progress::{Damage, DecodeError, MismatchKind, Note, Progress, ReadState};
use crate::source::read_some;
use crate::tail::Tail;
use crc32fast::Hasher;
use skidder_os::File;

mod resume;

pub use resume::{CHECKPOINT_INTERVAL, ResumeError};

/// An interval that never ends: no checkpoints, not even free ones.
const NEVER: u64 = u64::MAX;

/// Compressed bytes one call reads at most, so that a call is short also where they produce
/// nothing (padding, empty members).
const CALL_COMPRESSED_MAX: u64 = 1024 * 1024;

/// From this much output of a member on, its ratio predicts how much input an output buffer needs.
const RATIO_KNOWN: u64 = 64 * 1024;

/// The least input to read inside a member: a page.
const INPUT_MIN: u128 = 4096;

/// Bytes of a member behind the deflate stream: CRC-32 and size.
const TRAILER_BYTES: usize = 8;

/// Decoder of one gzip file (RFC 1952).
#[derive(Debug)]
pub struct GzipReader {
    pool: InflatePool,
    /// Needed inside a body only; kept from member to member, given back at a clean end.
    inflate: Option<Pooled>,
    phase: Phase,
    /// Compressed bytes consumed.
    compressed: u64,
    /// Decompressed bytes handed out, over all members.
    decompressed: u64,
    /// Compressed offset of the current member.
    member_start: u64,
    /// Decompressed bytes of the current member.
    member_out: u64,
    /// CRC-32 of these.
    crc: Hasher,
    tail: Tail,
    /// Decompressed bytes from one checkpoint to the next.
    interval: u64,
    /// Decompressed offset of the newest checkpoint.
    checkpoint_last: u64,
    /// The newest checkpoint that was not taken yet.
    checkpoint: Option<Checkpoint>,
    /// Memory of a checkpoint that was given back.
    spare: Vec<u8>,
}

/// What the next compressed byte belongs to.
#[derive(Debug)]
enum Phase {
    /// The first member, another one, or padding.
    Between,
    Header(HeaderParser),
    Body,
    Trailer {
        bytes: [u8; TRAILER_BYTES],
        have: usize,
    },
    /// Nothing that belongs to the stream; its end, for good.
    Garbage,
    Failed(Damage),
}

/// The result of one move of the machine.
#[derive(Default)]
struct Moved {
    consumed: usize,
    produced: usize,
    note: Option<Note>,
}

impl GzipReader {
    /// A reader at the start of a file. Takes a decoder from `pool` only once it needs one.
    pub fn new(pool: &InflatePool) -> Self {
        Self {
            pool: pool.clone(),
            inflate: None,
            phase: Phase::Between,
            compressed: 0,
            decompressed: 0,
            member_start: 0,
            member_out: 0,
            crc: Hasher::new(),
            tail: Tail::EMPTY,
            interval: CHECKPOINT_INTERVAL,
            checkpoint_last: 0,
            checkpoint: None,
            spare: Vec::new(),
        }
    }

    /// Sets the decompressed bytes between two checkpoints; with 0 each block boundary makes one.
    pub fn with_checkpoint_interval(mut self, interval: u64) -> Self {
        self.interval = interval;
        self
    }

    /// Takes no checkpoints, for readers that will not be resumed.
    pub fn without_checkpoints(self) -> Self {
        self.with_checkpoint_interval(NEVER)
    }

    /// Compressed bytes consumed so far.
    pub fn compressed_offset(&self) -> u64 {
        self.compressed
    }

    /// Decompressed bytes handed out so far, over all members.
    pub fn decompressed_offset(&self) -> u64 {
        self.decompressed
    }

    /// Decodes the next bytes into `out`, using `scratch` for compressed bytes (64 KiB serve
    /// best, 32 KiB cost 5 %; their content does not matter before or after). Neither may be empty.
    ///
    /// A file that shrank below [`GzipReader::compressed_offset`] looks as one that has no more
    /// bytes: truncation is for the caller to notice.
    pub fn read(
        &mut self,
        file: &dyn File,
        scratch: &mut [u8],
        out: &mut [u8],
    ) -> Result<Progress, DecodeError> {
        assert!(!scratch.is_empty() && !out.is_empty(), "a read needs room for input and output");
        let begin = self.compressed;
        let mut produced = 0;
        let mut pieces = 0;
        while produced < out.len() && self.compressed - begin < CALL_COMPRESSED_MAX {
            let piece = match self.read_piece(file, scratch, &mut out[produced..], pieces) {
                Ok(piece) => piece,
                // The cause is still there at the next call.
                Err(_) if produced > 0 => break,
                Err(error) => return Err(error),
            };
            pieces += 1;
            produced += piece.produced;
            if piece.note.is_some() || piece.state != ReadState::More {
                return Ok(Progress { produced, ..piece });
            }
        }
        Ok(Progress::new(produced, ReadState::More))
    }

    /// Decodes and discards up to `target` (a decompressed offset), in pieces of at most
    /// `out_scratch`. `produced` of the answer is what was discarded.
    ///
    /// Done when [`GzipReader::decompressed_offset`] has reached `target`; until then it must be
    /// called again while the state is `More`. Does nothing at or behind `target`.
    pub fn skip_to(
        &mut self,
        file: &dyn File,
        scratch: &mut [u8],
        out_scratch: &mut [u8],
        target: u64,
    ) -> Result<Progress, DecodeError> {
        let mut skipped = 0;
        while self.decompressed < target {
            let left = usize::try_from(target - self.decompressed).unwrap_or(usize::MAX);
            let piece = left.min(out_scratch.len());
            let progress = match self.read(file, scratch, &mut out_scratch[..piece]) {
                Ok(progress) => progress,
                // The cause is still there at the next call.
                Err(_) if skipped > 0 => break,
                Err(error) => return Err(error),
            };
            skipped += progress.produced;
            if progress.note.is_some() || progress.state != ReadState::More {
                return Ok(Progress { produced: skipped, ..progress });
            }
        }
        Ok(Progress::new(skipped, ReadState::More))
    }

    /// Reads one piece of the file, after `pieces` others in the same call, and decodes it.
    fn read_piece(
        &mut self,
        file: &dyn File,
        scratch: &mut [u8],
        out: &mut [u8],
        pieces: u32,
    ) -> Result<Progress, DecodeError> {
        match self.phase {
            Phase::Failed(damage) => return Err(damage.into()),
            Phase::Garbage => return Ok(Progress::new(0, ReadState::End)),
            _ => {}
        }
        let wanted = self.input_wanted(out.len(), pieces).min(scratch.len());
        let count = read_some(file, &mut scratch[..wanted], self.compressed)?;
        if count > 0 {
            return self.feed(&scratch[..count], out);
        }
        if matches!(self.phase, Phase::Body) {
            // The decoder may hold output that found no room before.
            let moved = self.body(&[], out)?;
            if moved.produced > 0 || !matches!(self.phase, Phase::Body) {
                return Ok(Progress::new(moved.produced, ReadState::More));
            }
        }
        Ok(Progress::new(0, self.at_end_of_file()))
    }

    /// How much input to read for `room` bytes of output, going by the member's ratio so far. What
    /// is read too much is read again; where the data became less compressible, the pieces of one
    /// call grow.
    fn input_wanted(&self, room: usize, pieces: u32) -> usize {
        if !matches!(self.phase, Phase::Body) || self.member_out < RATIO_KNOWN {
            return usize::MAX;
        }
        let member_in = u128::from(self.compressed - self.member_start);
        let expected = room as u128 * member_in / u128::from(self.member_out);
        let wanted = (expected + expected / 8).max(INPUT_MIN) << pieces.min(8);
        usize::try_from(wanted).unwrap_or(usize::MAX)
    }

    /// Runs the machine over `input` until it or `out` is used up, or there is something to report.
    fn feed(&mut self, mut input: &[u8], out: &mut [u8]) -> Result<Progress, DecodeError> {
        let mut produced = 0;
        while !input.is_empty() && produced < out.len() {
            let moved = match &mut self.phase {
                Phase::Between => self.between(input),
                Phase::Header(_) => self.header(input),
                Phase::Body => match self.body(input, &mut out[produced..]) {
                    Ok(moved) => moved,
                    // The cause is still there at the next call.
                    Err(_) if produced > 0 => break,
                    Err(error) => return Err(error),
                },
                Phase::Trailer { .. } => self.trailer(input),
                Phase::Garbage | Phase::Failed(_) => break,
            };
            input = &input[moved.consumed..];
            produced += moved.produced;
            if moved.note.is_some() {
                return Ok(Progress { produced, state: ReadState::More, note: moved.note });
            }
        }
        Ok(Progress::new(produced, ReadState::More))
    }

    /// Marks `bytes` as consumed.
    fn consume(&mut self, bytes: &[u8]) {
        self.compressed += bytes.len() as u64;
        self.tail.push(bytes);
    }

    fn between(&mut self, input: &[u8]) -> Moved {
        // Padding is allowed behind a member (as on tapes), not before the first.
        let padding = match self.compressed {
            0 => 0,
            _ => input.iter().position(|&byte| byte != 0).unwrap_or(input.len()),
        };
        self.consume(&input[..padding]);
        if padding < input.len() {
            self.member_start = self.compressed;
            self.phase = Phase::Header(HeaderParser::new());
        }
        Moved { consumed: padding, ..Moved::default() }
    }

    fn header(&mut self, input: &[u8]) -> Moved {
        let Phase::Header(parser) = &mut self.phase else { return Moved::default() };
        let (consumed, parsed) = match parser.feed(input) {
            Ok(parsed) => parsed,
            Err(error) => return self.not_a_header(error),
        };
        self.consume(&input[..consumed]);
        let note = match parsed {
            Parsed::Incomplete => return Moved { consumed, ..Moved::default() },
            Parsed::Complete => None,
            Parsed::CrcMismatch { expected, found } => {
                Some(self.mismatch(MismatchKind::Header, expected.into(), found.into()))
            }
        };
        self.member_out = 0;
        self.crc = Hasher::new();
        self.phase = Phase::Body;
        Moved { consumed, note, produced: 0 }
    }

    fn not_a_header(&mut self, error: HeaderError) -> Moved {
        let member_offset = self.member_start;
        let damage = match error {
            HeaderError::NotGzip if member_offset == 0 => Damage::NotGzip,
            HeaderError::NotGzip => {
                self.phase = Phase::Garbage;
                self.compressed = member_offset;
                self.inflate = None;
                let note = Some(Note::TrailingGarbage { offset: member_offset });
                return Moved { note, ..Moved::default() };
            }
            HeaderError::Method(value) => {
                Damage::Unsupported { member_offset, what: "compression method", value }
            }
            HeaderError::Flags(value) => {
                Damage::Unsupported { member_offset, what: "header flags", value }
            }
        };
        self.fail(damage);
        Moved::default()
    }

    fn body(&mut self, input: &[u8], out: &mut [u8]) -> Result<Moved, DecodeError> {
        let due =
            self.interval != NEVER && self.decompressed - self.checkpoint_last >= self.interval;
        let inflate = self.inflate.get_or_insert_with(|| self.pool.take());
        let step = inflate.inflate(input, out, due);
        if step.stop == Stop::End {
            inflate.reset();
        }
        self.consume(&input[..step.consumed]);
        self.crc.update(&out[..step.produced]);
        self.member_out += step.produced as u64;
        self.decompressed += step.produced as u64;
        let stuck = step.consumed == 0 && step.produced == 0 && !input.is_empty();
        match step.stop {
            Stop::End => self.phase = Phase::Trailer { bytes: [0; TRAILER_BYTES], have: 0 },
            // At the end of the last block a free checkpoint is near.
            Stop::Block { last: true, .. } => {}
            Stop::Block { bits, last: false } => self.mark_in_body(bits, None),
            Stop::Exhausted if stuck => self.corrupt("the decoder makes no progress"),
            Stop::Exhausted => self.mark_in_block(),
            Stop::Damaged(reason) => self.corrupt(reason),
        }
        Ok(Moved { consumed: step.consumed, produced: step.produced, note: None })
    }

    fn trailer(&mut self, input: &[u8]) -> Moved {
        let Phase::Trailer { mut bytes, mut have } = self.phase else { return Moved::default() };
        let consumed = input.len().min(TRAILER_BYTES - have);
        bytes[have..have + consumed].copy_from_slice(&input[..consumed]);
        have += consumed;
        self.consume(&input[..consumed]);
        if have < TRAILER_BYTES {
            self.phase = Phase::Trailer { bytes, have };
            return Moved { consumed, ..Moved::default() };
        }
        let [crc @ .., s0, s1, s2, s3] = bytes;
        let crc_stored = u32::from_le_bytes(crc);
        let size_stored = u32::from_le_bytes([s0, s1, s2, s3]);
        let crc_found = std::mem::take(&mut self.crc).finalize();
        let size_found = self.member_out as u32;
        let note = if crc_stored != crc_found {
            Some(self.mismatch(MismatchKind::Crc, crc_stored.into(), crc_found.into()))
        } else if size_stored != size_found {
            Some(self.mismatch(MismatchKind::Size, size_stored.into(), size_found.into()))
        } else {
            None
        };
        self.phase = Phase::Between;
        self.member_start = self.compressed;
        self.member_out = 0;
        self.mark_free();
        Moved { consumed, note, produced: 0 }
    }

    fn mismatch(&self, kind: MismatchKind, expected: u64, found: u64) -> Note {
        Note::Mismatch {
            kind,
            member_offset: self.member_start,
            decompressed_offset: self.decompressed,
            expected,
            found,
        }
    }

    fn corrupt(&mut self, reason: &'static str) {
        self.fail(Damage::Corrupt {
            compressed_offset: self.compressed,
            decompressed_offset: self.decompressed,
            reason,
        });
    }

    fn fail(&mut self, damage: Damage) {
        self.phase = Phase::Failed(damage);
        self.inflate = None;
    }

    /// The file has no more bytes: whether that is a good place to end.
    fn at_end_of_file(&mut self) -> ReadState {
        match self.phase {
            Phase::Between if self.compressed > 0 => {
                self.inflate = None;
                ReadState::End
            }
            Phase::Garbage => ReadState::End,
            _ => ReadState::Waiting,
        }
    }
}
