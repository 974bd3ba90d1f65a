//! Zstandard (RFC 8878): frames of blocks.
//!
//! The library decodes, block by block: the shape of a frame is walked here, so that all before a
//! damaged block is handed out, and the content checksum is compared here, so that it is reported
//! without ending the file. Skippable frames, among them the seek table of the seekable format, are
//! passed over.
//!
//! Memory: the window of the frame, at most [`WINDOW_BYTES_MAX`], and 0.3 MiB. A checkpoint can be
//! between two frames: `pzstd` and the seekable format make many, `zstd` makes one, which is
//! decoded again from its start.

use super::frames::{self, Next};
use super::input::{Input, PEEK_BYTES_MAX};
use super::{Mismatch, Step, Stop};
use crate::codec::Codec;
use crate::pool::{Context, DecoderPool, Loan, Pool};
use crate::progress::{Damage, MismatchKind, WINDOW_BYTES_MAX};
use std::hash::Hasher;
use twox_hash::XxHash64;
use zstd_safe::{InBuffer, OutBuffer, ResetDirective};

/// Begins every frame, little-endian.
pub(crate) const MAGIC: u32 = 0xfd2f_b528;

/// Bytes of a block's header.
const BLOCK_HEAD_BYTES: usize = 3;

pub(super) struct Zstd {
    pool: Pool<Context>,
    context: Option<Loan<Context>>,
    phase: Phase,
    frame_start: u64,
    /// Whether the content checksum follows the last block.
    has_checksum: bool,
    hash: XxHash64,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Between,
    /// Inside a skippable frame.
    Skip {
        left: u64,
    },
    /// Before the header of a block.
    Block,
    /// Inside a block.
    Data {
        left: u32,
        last: bool,
    },
    /// The decoder may hold output of a block.
    Drain {
        last: bool,
    },
    Checksum,
}

impl Phase {
    /// With this much left of a skippable frame.
    fn skipping(left: u64) -> Self {
        if left > 0 { Self::Skip { left } } else { Self::Between }
    }
}

/// The header of a frame.
struct Header {
    bytes: usize,
    window: u64,
    dictionary: bool,
    checksum: bool,
}

impl Zstd {
    pub(super) fn new(pool: &DecoderPool) -> Self {
        Self {
            pool: pool.zstd.clone(),
            context: None,
            phase: Phase::Between,
            frame_start: 0,
            has_checksum: false,
            hash: XxHash64::with_seed(0),
        }
    }

    pub(super) fn is_between(&self) -> bool {
        matches!(self.phase, Phase::Between)
    }

    pub(super) fn release(&mut self) {
        self.context = None;
    }

    pub(super) fn step(&mut self, input: &mut Input<'_>, out: &mut [u8]) -> Result<Step, Stop> {
        match self.phase {
            Phase::Between => self.between(input),
            Phase::Skip { left } => {
                self.phase = Phase::skipping(frames::skip(input, left)?);
                Ok(Step::Produced(0))
            }
            Phase::Block => self.block(input),
            Phase::Data { left, last } => self.data(input, out, left, last),
            Phase::Drain { last } => {
                let (_, produced) = self.decode(&[], out)?;
                if produced < out.len() {
                    self.end_of_block(last);
                }
                Ok(Step::Produced(produced))
            }
            Phase::Checksum => self.checksum(input),
        }
    }

    fn between(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        match frames::next(input, Codec::Zstd, MAGIC)? {
            Next::End => {
                self.context = None;
                Ok(Step::End)
            }
            Next::Garbage => {
                self.context = None;
                Ok(Step::Garbage)
            }
            Next::Skippable(left) => {
                self.phase = Phase::skipping(left);
                Ok(Step::Produced(0))
            }
            Next::Frame => self.begin_frame(input),
        }
    }

    fn begin_frame(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        let start = input.offset();
        let header = Header::read(input)?;
        let (codec, compressed_offset) = (Codec::Zstd, start);
        if header.window > WINDOW_BYTES_MAX {
            let bytes = header.window;
            return Err(Stop::Damaged(Damage::Window { codec, compressed_offset, bytes }));
        }
        if header.dictionary {
            let what = "a dictionary";
            return Err(Stop::Damaged(Damage::Feature { codec, compressed_offset, what }));
        }
        let context = match &mut self.context {
            Some(context) => context,
            None => self.context.insert(self.pool.take().ok_or(Stop::Memory)?),
        };
        context.0.reset(ResetDirective::SessionOnly).map_err(|code| Stop::Corrupt(reason(code)))?;
        let mut bytes = [0; PEEK_BYTES_MAX];
        let bytes = &mut bytes[..header.bytes];
        input.peek_at(start, bytes)?;
        // The library requires room; a header needs none.
        self.decode(bytes, &mut [0])?;
        input.advance(header.bytes as u64);
        self.frame_start = start;
        self.has_checksum = header.checksum;
        self.hash = XxHash64::with_seed(0);
        self.phase = Phase::Block;
        Ok(Step::Produced(0))
    }

    fn block(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        let bytes: [u8; BLOCK_HEAD_BYTES] = input.peek()?;
        let head = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
        let last = head & 1 == 1;
        let left = match head >> 1 & 3 {
            // One byte, repeated.
            1 => 1,
            3 => return Err(Stop::Corrupt("a block of an unknown type")),
            _ => head >> 3,
        };
        self.decode(&bytes, &mut [0])?;
        input.advance(BLOCK_HEAD_BYTES as u64);
        self.phase = if left > 0 { Phase::Data { left, last } } else { Phase::Drain { last } };
        Ok(Step::Produced(0))
    }

    fn data(
        &mut self,
        input: &mut Input<'_>,
        out: &mut [u8],
        left: u32,
        last: bool,
    ) -> Result<Step, Stop> {
        let piece = input.piece(left as usize)?;
        if piece.is_empty() {
            return Err(Stop::Short);
        }
        let (consumed, produced) = self.decode(piece, out)?;
        if consumed == 0 && produced == 0 {
            return Err(Stop::Corrupt("the decoder makes no progress"));
        }
        input.advance(consumed as u64);
        let left = left - consumed as u32;
        if left > 0 {
            self.phase = Phase::Data { left, last };
        } else if produced < out.len() {
            self.end_of_block(last);
        } else {
            self.phase = Phase::Drain { last };
        }
        Ok(Step::Produced(produced))
    }

    fn end_of_block(&mut self, last: bool) {
        self.phase = match (last, self.has_checksum) {
            (false, _) => Phase::Block,
            (true, true) => Phase::Checksum,
            (true, false) => Phase::Between,
        };
    }

    fn checksum(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        let expected = u64::from(u32::from_le_bytes(input.peek()?));
        input.advance(4);
        self.phase = Phase::Between;
        let found = self.hash.finish() & 0xffff_ffff;
        if expected == found {
            return Ok(Step::Produced(0));
        }
        let (kind, frame_start) = (MismatchKind::Crc, self.frame_start);
        Ok(Step::Mismatch(Mismatch { kind, frame_start, expected, found }))
    }

    /// Passes `bytes` to the library; returns how many it took, and how many it put out.
    fn decode(&mut self, bytes: &[u8], out: &mut [u8]) -> Result<(usize, usize), Stop> {
        let context = self.context.as_mut().ok_or(Stop::Memory)?;
        let mut source = InBuffer::around(bytes);
        let mut target = OutBuffer::around(out);
        let result = context.0.decompress_stream(&mut target, &mut source);
        let (consumed, produced) = (source.pos(), target.pos());
        result.map_err(|code| Stop::Corrupt(reason(code)))?;
        if self.has_checksum {
            self.hash.write(&out[..produced]);
        }
        Ok((consumed, produced))
    }
}

impl Header {
    /// Reads the header at the place of `input`, the magic included (RFC 8878, 3.1.1.1).
    fn read(input: &mut Input<'_>) -> Result<Self, Stop> {
        let [_, _, _, _, descriptor] = input.peek::<5>()?;
        if descriptor & 0x08 != 0 {
            return Err(Stop::Corrupt("a reserved bit of the frame header is set"));
        }
        let single_segment = descriptor & 0x20 != 0;
        let window_bytes = usize::from(!single_segment);
        let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let size_bytes = match descriptor >> 6 {
            0 => usize::from(single_segment),
            flag => 1 << flag,
        };
        let bytes = 5 + window_bytes + dictionary_bytes + size_bytes;
        let mut header = [0; PEEK_BYTES_MAX];
        input.peek_at(input.offset(), &mut header[..bytes])?;
        let dictionary = header[5 + window_bytes..][..dictionary_bytes].iter().any(|&b| b != 0);
        let window = if single_segment {
            let mut size = [0; 8];
            size[..size_bytes].copy_from_slice(&header[bytes - size_bytes..bytes]);
            // A size of two bytes begins at 256.
            u64::from_le_bytes(size) + if size_bytes == 2 { 256 } else { 0 }
        } else {
            let (exponent, mantissa) = (header[5] >> 3, header[5] & 7);
            let base = 1_u64 << (10 + exponent);
            base + base / 8 * u64::from(mantissa)
        };
        Ok(Self { bytes, window, dictionary, checksum: descriptor & 4 != 0 })
    }
}

fn reason(code: usize) -> &'static str {
    zstd_safe::get_error_name(code)
}

impl std::fmt::Debug for Zstd {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Zstd").field("phase", &self.phase).finish_non_exhaustive()
    }
}
