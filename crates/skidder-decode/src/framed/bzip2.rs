//! bzip2: streams of blocks that begin at any bit.
//!
//! A block is decoded whole, in `block`, once the file has all of it. Each is independent of the
//! others: a checkpoint can be between any two of them. The checksums of blocks and streams are
//! verified; a block with a wrong one is handed out.
//!
//! Memory: 3.6 MiB, whatever the block size.
//!
//! This is own code because libbz2 does not report where a block begins, nor decode one without its
//! stream (docs/decisions/0024).

mod block;

pub(crate) use block::Tables;

use super::input::{Bits, Input};
use super::{Mismatch, Step, Stop, take};
use crate::codec::Codec;
use crate::pool::{DecoderPool, Loan, Pool};
use crate::progress::{Damage, MismatchKind};
use block::Output;

/// Begins every block: the digits of pi.
const BLOCK_MAGIC: u64 = 0x3141_5926_5359;
/// Begins the end of a stream: the digits of its square root.
const END_MAGIC: u64 = 0x1772_4538_5090;

/// Bytes of a stream header.
const HEAD_BYTES: u64 = 4;

#[derive(Debug)]
pub(super) struct Bzip2 {
    pool: Pool<Tables>,
    tables: Option<Loan<Tables>>,
    phase: Phase,
    stream_start: u64,
    /// Bytes that a block may have, before the first of its encodings is undone.
    block_bytes_max: usize,
    /// Bits of the next byte that are consumed already.
    bits: u32,
    /// What the checksums of the blocks of the stream make together.
    combined: u32,
}

#[derive(Debug)]
enum Phase {
    Between,
    /// Before a block, or the end of the stream.
    Block,
    /// A decoded block is being handed out.
    Drain(Output),
}

impl Bzip2 {
    pub(super) fn new(pool: &DecoderPool) -> Self {
        Self {
            pool: pool.bzip2.clone(),
            tables: None,
            phase: Phase::Between,
            stream_start: 0,
            block_bytes_max: 0,
            bits: 0,
            combined: 0,
        }
    }

    pub(super) fn release(&mut self) {
        self.tables = None;
    }

    pub(super) fn step(&mut self, input: &mut Input<'_>, out: &mut [u8]) -> Result<Step, Stop> {
        match &mut self.phase {
            Phase::Between => self.between(input),
            Phase::Block => self.block(input),
            Phase::Drain(output) => {
                let Some(tables) = &self.tables else { return Err(Stop::Memory) };
                let produced = output.produce(tables, out);
                if produced > 0 {
                    return Ok(Step::Produced(produced));
                }
                let (expected, found) = output.checksums();
                self.phase = Phase::Block;
                Ok(self.compare(expected, found))
            }
        }
    }

    fn compare(&self, expected: u32, found: u32) -> Step {
        if expected == found {
            return Step::Produced(0);
        }
        Step::Mismatch(Mismatch {
            kind: MismatchKind::Crc,
            frame_start: self.stream_start,
            expected: expected.into(),
            found: found.into(),
        })
    }

    fn between(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        if input.is_at_end()? {
            if input.offset() == 0 {
                return Err(Stop::Short);
            }
            self.tables = None;
            return Ok(Step::End);
        }
        match input.peek_if(|first| first == b'B')? {
            Some([b'B', b'Z', b'h', level @ b'1'..=b'9']) => {
                self.stream_start = input.offset();
                self.block_bytes_max = usize::from(level - b'0') * 100_000;
                self.combined = 0;
                self.bits = 0;
                self.phase = Phase::Block;
                input.advance(HEAD_BYTES);
                Ok(Step::Produced(0))
            }
            _ if input.offset() == 0 => Err(Stop::Damaged(Damage::NotOf { codec: Codec::Bzip2 })),
            _ => {
                self.tables = None;
                Ok(Step::Garbage)
            }
        }
    }

    fn block(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        let compressed_offset = input.offset();
        let mut bits = Bits::new(input, self.bits)?;
        let magic = u64::from(bits.take(24)?) << 24 | u64::from(bits.take(24)?);
        let expected = bits.take(32)?;
        match magic {
            BLOCK_MAGIC => {}
            END_MAGIC => {
                if bits.commit() > 0 {
                    input.advance(1);
                }
                self.bits = 0;
                self.phase = Phase::Between;
                return Ok(self.compare(expected, self.combined));
            }
            _ => return Err(Stop::Corrupt("no bzip2 block begins where one should")),
        }
        let tables = match &mut self.tables {
            Some(tables) => tables,
            None => self.tables.insert(self.pool.take().ok_or(Stop::Memory)?),
        };
        if bits.take(1)? == 1 {
            let (codec, what) = (Codec::Bzip2, "randomised blocks of bzip2 0.9.0");
            return Err(Stop::Damaged(Damage::Feature { codec, compressed_offset, what }));
        }
        let output = block::decode(&mut bits, tables, self.block_bytes_max, expected)?;
        self.bits = bits.commit();
        self.combined = self.combined.rotate_left(1) ^ expected;
        self.phase = Phase::Drain(output);
        Ok(Step::Produced(0))
    }

    /// Inside a stream: where it began, its level, its checksum so far, and the bits that are consumed.
    pub(super) fn point(&self) -> Option<Vec<u8>> {
        match self.phase {
            Phase::Between => return Some(Vec::new()),
            Phase::Block => {}
            Phase::Drain(_) => return None,
        }
        let mut state = Vec::with_capacity(14);
        state.extend_from_slice(&self.stream_start.to_le_bytes());
        state.extend_from_slice(&self.combined.to_le_bytes());
        state.extend_from_slice(&[(self.block_bytes_max / 100_000) as u8, self.bits as u8]);
        Some(state)
    }

    pub(super) fn restore(&mut self, mut state: &[u8]) -> Result<(), Stop> {
        if state.is_empty() {
            return Ok(());
        }
        self.stream_start = u64::from_le_bytes(take(&mut state)?);
        self.combined = u32::from_le_bytes(take(&mut state)?);
        let [level @ 1..=9, bits @ 0..=7] = take(&mut state)? else {
            return Err(Stop::Corrupt("the state of a checkpoint contradicts itself"));
        };
        self.block_bytes_max = usize::from(level) * 100_000;
        self.bits = u32::from(bits);
        self.phase = Phase::Block;
        Ok(())
    }
}
