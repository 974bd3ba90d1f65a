//! LZ4 frames (format 1.6): blocks that are independent, or refer to the 64 KiB before them.
//!
//! A block is read whole and decoded at once. A checkpoint can be between any two blocks: with
//! independent ones it is free, with dependent ones it holds what they may refer to. Skippable
//! frames are passed over; the legacy format, which has another magic and no checksums, is not
//! known.
//!
//! Memory: a block as stored and as decoded, 8 MiB at most, and 64 KiB.

use super::frames::{self, Next};
use super::input::Input;
use super::xxh32::{STATE_BYTES, Xxh32};
use super::{Mismatch, Step, Stop, take};
use crate::codec::Codec;
use crate::pool::{Blocks, DecoderPool, Loan, Pool};
use crate::progress::{Damage, MismatchKind};

/// Begins every frame, little-endian.
pub(crate) const MAGIC: u32 = 0x184d_2204;

/// How far back a block can refer.
const WINDOW_BYTES: usize = 64 << 10;

/// Set in the size of a block that is stored as it is.
const STORED: u32 = 1 << 31;

#[derive(Debug)]
pub(super) struct Lz4 {
    pool: Pool<Blocks>,
    blocks: Option<Loan<Blocks>>,
    phase: Phase,
    frame: Frame,
    /// What the frame holds so far.
    hash: Xxh32,
    size: u64,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Between,
    /// Inside a skippable frame.
    Skip {
        left: u64,
    },
    /// Before the size of a block.
    Block,
    /// A decoded block is being handed out; this much is.
    Drain {
        done: usize,
    },
    /// Behind the last block.
    End,
}

impl Phase {
    /// With this much left of a skippable frame.
    fn skipping(left: u64) -> Self {
        if left > 0 { Self::Skip { left } } else { Self::Between }
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    start: u64,
    /// Bytes of the header.
    bytes: usize,
    block_bytes_max: usize,
    independent: bool,
    block_checksums: bool,
    checksum: bool,
    size: Option<u64>,
}

impl Lz4 {
    pub(super) fn new(pool: &DecoderPool) -> Self {
        Self {
            pool: pool.lz4.clone(),
            blocks: None,
            phase: Phase::Between,
            frame: Frame::default(),
            hash: Xxh32::new(),
            size: 0,
        }
    }

    pub(super) fn release(&mut self) {
        self.blocks = None;
    }

    pub(super) fn step(&mut self, input: &mut Input<'_>, out: &mut [u8]) -> Result<Step, Stop> {
        match self.phase {
            Phase::Between => self.between(input),
            Phase::Skip { left } => {
                self.phase = Phase::skipping(frames::skip(input, left)?);
                Ok(Step::Produced(0))
            }
            Phase::Block => self.block(input),
            Phase::Drain { done } => Ok(Step::Produced(self.drain(done, out))),
            Phase::End => self.end(input),
        }
    }

    fn between(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        match frames::next(input, Codec::Lz4, MAGIC)? {
            Next::End => {
                self.blocks = None;
                Ok(Step::End)
            }
            Next::Garbage => {
                self.blocks = None;
                Ok(Step::Garbage)
            }
            Next::Skippable(left) => {
                self.phase = Phase::skipping(left);
                Ok(Step::Produced(0))
            }
            Next::Frame => {
                self.begin_frame(Frame::read(input, input.offset())?)?;
                input.advance(self.frame.bytes as u64);
                Ok(Step::Produced(0))
            }
        }
    }

    fn begin_frame(&mut self, frame: Frame) -> Result<(), Stop> {
        let blocks = match &mut self.blocks {
            Some(blocks) => blocks,
            None => self.blocks.insert(self.pool.take().ok_or(Stop::Memory)?),
        };
        blocks.window.clear();
        self.frame = frame;
        self.hash = Xxh32::new();
        self.size = 0;
        self.phase = Phase::Block;
        Ok(())
    }

    fn block(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        let head = u32::from_le_bytes(input.peek()?);
        if head == 0 {
            input.advance(4);
            self.phase = Phase::End;
            return Ok(Step::Produced(0));
        }
        let bytes = (head & !STORED) as usize;
        if bytes > self.frame.block_bytes_max {
            return Err(Stop::Corrupt("a block is larger than its frame says"));
        }
        let blocks = self.blocks.as_mut().ok_or(Stop::Memory)?;
        let checksum_bytes = if self.frame.block_checksums { 4 } else { 0 };
        let Blocks { stored: whole, decoded, window } = &mut **blocks;
        whole.resize(bytes + checksum_bytes, 0);
        input.peek_at(input.offset() + 4, whole)?;
        let (stored, checksum) = whole.split_at(bytes);
        if head & STORED != 0 {
            decoded.clear();
            decoded.extend_from_slice(stored);
        } else {
            decoded.resize(self.frame.block_bytes_max, 0);
            let result = lz4_flex::block::decompress_into_with_dict(stored, decoded, window);
            decoded.truncate(result.map_err(|_| Stop::Corrupt("an invalid lz4 block"))?);
        }
        let found = u64::from(Xxh32::of(stored));
        let expected = checksum.try_into().map(|bytes| u32::from_le_bytes(bytes).into());
        let frame_start = self.frame.start;
        input.advance((4 + bytes + checksum_bytes) as u64);
        if self.frame.checksum {
            self.hash.update(decoded);
        }
        self.size += decoded.len() as u64;
        self.phase = Phase::Drain { done: 0 };
        match expected {
            Ok(expected) if expected != found => {
                let kind = MismatchKind::Crc;
                Ok(Step::Mismatch(Mismatch { kind, frame_start, expected, found }))
            }
            _ => Ok(Step::Produced(0)),
        }
    }

    fn drain(&mut self, done: usize, out: &mut [u8]) -> usize {
        let Some(blocks) = &mut self.blocks else { return 0 };
        let blocks = &mut **blocks;
        let rest = &blocks.decoded[done..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        if count < rest.len() {
            self.phase = Phase::Drain { done: done + count };
            return count;
        }
        self.phase = Phase::Block;
        if !self.frame.independent {
            let kept = WINDOW_BYTES.saturating_sub(blocks.decoded.len());
            let old = blocks.window.len().saturating_sub(kept);
            blocks.window.drain(..old);
            let new = blocks.decoded.len().saturating_sub(WINDOW_BYTES);
            blocks.window.extend_from_slice(&blocks.decoded[new..]);
        }
        count
    }

    fn end(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        let (mut kind, mut expected, mut found) = (MismatchKind::Crc, 0, 0);
        if self.frame.checksum {
            expected = u64::from(u32::from_le_bytes(input.peek()?));
            found = u64::from(self.hash.finish());
            input.advance(4);
        }
        if let Some(size) = self.frame.size
            && expected == found
        {
            (kind, expected, found) = (MismatchKind::Size, size, self.size);
        }
        self.phase = Phase::Between;
        if expected == found {
            return Ok(Step::Produced(0));
        }
        let frame_start = self.frame.start;
        Ok(Step::Mismatch(Mismatch { kind, frame_start, expected, found }))
    }

    /// Inside a frame: where it began, its size and hash so far, and what the next block may refer to.
    pub(super) fn point(&self) -> Option<Vec<u8>> {
        match self.phase {
            Phase::Between => return Some(Vec::new()),
            Phase::Block => {}
            Phase::Skip { .. } | Phase::Drain { .. } | Phase::End => return None,
        }
        let window = &self.blocks.as_ref()?.window;
        let packed_max = lz4_flex::block::get_maximum_output_size(window.len());
        let mut state = Vec::with_capacity(20 + STATE_BYTES + packed_max);
        state.extend_from_slice(&self.frame.start.to_le_bytes());
        state.extend_from_slice(&self.size.to_le_bytes());
        state.extend_from_slice(&self.hash.to_bytes());
        state.extend_from_slice(&(window.len() as u32).to_le_bytes());
        if !window.is_empty() {
            state.extend_from_slice(&lz4_flex::block::compress(window));
        }
        Some(state)
    }

    pub(super) fn restore(&mut self, mut state: &[u8], input: &mut Input<'_>) -> Result<(), Stop> {
        if state.is_empty() {
            return Ok(());
        }
        let start = u64::from_le_bytes(take(&mut state)?);
        let size = u64::from_le_bytes(take(&mut state)?);
        let hash = Xxh32::from_bytes(&take(&mut state)?);
        let window_bytes = u32::from_le_bytes(take(&mut state)?) as usize;
        if start >= input.offset() || window_bytes > WINDOW_BYTES {
            return Err(Stop::Corrupt("the state of a checkpoint contradicts itself"));
        }
        self.begin_frame(Frame::read(input, start)?)?;
        self.size = size;
        self.hash = hash;
        let Some(blocks) = &mut self.blocks else { return Err(Stop::Memory) };
        blocks.window.resize(window_bytes, 0);
        if window_bytes > 0 {
            match lz4_flex::block::decompress_into(state, &mut blocks.window) {
                Ok(bytes) if bytes == window_bytes => {}
                Ok(_) | Err(_) => return Err(Stop::Corrupt("the window of a checkpoint")),
            }
        }
        Ok(())
    }
}

impl Frame {
    /// Reads the header that begins at `start`.
    fn read(input: &mut Input<'_>, start: u64) -> Result<Self, Stop> {
        let mut head = [0; 6];
        input.peek_at(start, &mut head)?;
        let [m0, m1, m2, m3, flags, sizes] = head;
        if u32::from_le_bytes([m0, m1, m2, m3]) != MAGIC {
            return Err(Stop::Corrupt("no lz4 frame begins where one should"));
        }
        let has = |bit: u8| flags & 1 << bit != 0;
        let block_bytes_max = match sizes >> 4 & 7 {
            4 => 64 << 10,
            5 => 256 << 10,
            6 => 1 << 20,
            7 => 4 << 20,
            _ => return Err(Stop::Corrupt("an unknown size of blocks")),
        };
        if flags >> 6 != 1 || has(1) || sizes & 0x8f != 0 {
            return Err(Stop::Corrupt("an unknown version or a reserved bit of the frame header"));
        }
        let size_bytes = if has(3) { 8 } else { 0 };
        let dictionary_bytes = if has(0) { 4 } else { 0 };
        let described = 2 + size_bytes + dictionary_bytes;
        let mut header = [0; 2 + 8 + 4 + 1];
        input.peek_at(start + 4, &mut header[..=described])?;
        if (Xxh32::of(&header[..described]) >> 8) as u8 != header[described] {
            return Err(Stop::Corrupt("the checksum of the frame header"));
        }
        if has(0) {
            let (codec, what) = (Codec::Lz4, "a dictionary");
            return Err(Stop::Damaged(Damage::Feature { codec, compressed_offset: start, what }));
        }
        let size = header[2..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        Ok(Self {
            start,
            bytes: 4 + described + 1,
            block_bytes_max,
            independent: has(5),
            block_checksums: has(4),
            checksum: has(2),
            size: size.filter(|_| has(3)),
        })
    }
}
