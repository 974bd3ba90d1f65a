//! The .xz format 1.2: streams of blocks, each of them LZMA2, and an index of the blocks at the end
//! of a stream.
//!
//! The container is read here, LZMA2 by a library. Checksums of blocks (CRC-32, CRC-64, SHA-256),
//! of headers, and the index are verified. A checkpoint can be between two blocks: `xz -T0` and
//! `pixz` make many, `xz -T1` makes one. Other filters than LZMA2 (those for machine code) are
//! refused.
//!
//! LZMA notices damage late: what comes between the two is not what was written, and is handed out
//! as `xz -dc` does. All that comes before is.
//!
//! Memory: the dictionary, at most [`WINDOW_BYTES_MAX`]; 8 MiB at `xz -6`, 64 MiB at `xz -9`. It is
//! not kept for the next file.

mod container;
mod rescue;

use super::input::Input;
use super::{Mismatch, Step, Stop, take};
use crate::codec::Codec;
use crate::progress::{Damage, MismatchKind, WINDOW_BYTES_MAX};
use container::{BlockHeader, CheckKind, Hasher, read_number, write_number};
use lzma_rust2::{Action, Lzma2Stream, Status};

/// Begins every stream.
pub(crate) const MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
/// Ends every stream.
const FOOTER_MAGIC: [u8; 2] = *b"YZ";

/// Bytes of the header of a stream, and of its footer.
const STREAM_HEAD_BYTES: usize = 12;

/// Compressed bytes that the library gets at once. What it decoded of them before it found damage has to be
/// [rescued](rescue), so they are few.
const PIECE_BYTES: usize = 1024;

pub(super) struct Xz {
    phase: Phase,
    stream_start: u64,
    check: CheckKind,
    /// Blocks of the stream so far, as its index will list them.
    records: Records,
    block: Block,
    lzma: Option<Box<Lzma2Stream>>,
    /// The content of a damaged block before the damage.
    rescued: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Between,
    /// Before a block or the index.
    Block,
    /// Inside a block.
    Data,
    /// Inside a damaged block, of which this much of the rest was handed out.
    Rescued {
        done: usize,
    },
    /// Behind the data of a block: padding and checksum.
    Check,
    /// Inside the index.
    Index {
        left: u64,
        found: Records,
        crc: u32,
        bytes: u64,
    },
    /// Behind the index, of which the checksum is this.
    Footer {
        index_bytes: u64,
    },
}

/// A list of blocks, as its number and a checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Records {
    count: u64,
    crc: u32,
    bytes: u64,
}

impl Records {
    fn push(&mut self, unpadded: u64, size: u64) {
        let mut bytes = Vec::with_capacity(18);
        write_number(unpadded, &mut bytes);
        write_number(size, &mut bytes);
        self.crc = continue_crc(self.crc, self.bytes, &bytes);
        self.bytes += bytes.len() as u64;
        self.count += 1;
    }
}

/// The block being decoded.
struct Block {
    start: u64,
    header: BlockHeader,
    compressed: u64,
    size: u64,
    hash: Hasher,
}

impl Xz {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Between,
            stream_start: 0,
            check: CheckKind::None,
            records: Records::default(),
            block: Block {
                start: 0,
                header: BlockHeader::default(),
                compressed: 0,
                size: 0,
                hash: Hasher::new(CheckKind::None),
            },
            lzma: None,
            rescued: Vec::new(),
        }
    }

    pub(super) fn release(&mut self) {
        self.lzma = None;
        self.rescued = Vec::new();
    }

    pub(super) fn step(&mut self, input: &mut Input<'_>, out: &mut [u8]) -> Result<Step, Stop> {
        match self.phase {
            Phase::Between => self.between(input),
            Phase::Block => self.begin_block(input),
            Phase::Data => self.data(input, out),
            Phase::Rescued { done } => self.give_rescued(done, out),
            Phase::Check => self.check(input),
            Phase::Index { left, found, crc, bytes } => self.index(input, left, found, crc, bytes),
            Phase::Footer { index_bytes } => self.footer(input, index_bytes),
        }
    }

    fn between(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        if input.is_at_end()? {
            return if input.offset() == 0 { Err(Stop::Short) } else { Ok(Step::End) };
        }
        if input.offset() > 0 {
            // Padding between streams.
            let zeros = input.piece(usize::MAX)?.iter().take_while(|byte| **byte == 0).count();
            if zeros > 0 {
                input.advance(zeros as u64);
                return Ok(Step::Produced(0));
            }
        }
        match input.peek_if::<6>(|first| first == MAGIC[0])? {
            Some(MAGIC) => {}
            _ if input.offset() == 0 => {
                return Err(Stop::Damaged(Damage::NotOf { codec: Codec::Xz }));
            }
            _ => return Ok(Step::Garbage),
        }
        self.begin_stream(input, input.offset())?;
        input.advance(STREAM_HEAD_BYTES as u64);
        Ok(Step::Produced(0))
    }

    /// Reads the header of the stream that begins at `start`.
    fn begin_stream(&mut self, input: &mut Input<'_>, start: u64) -> Result<(), Stop> {
        let mut header = [0; STREAM_HEAD_BYTES];
        input.peek_at(start, &mut header)?;
        let (flags, crc) = (&header[6..8], &header[8..]);
        if header[..6] != MAGIC || crc32fast::hash(flags).to_le_bytes() != crc {
            return Err(Stop::Corrupt("the header of an xz stream"));
        }
        self.check = CheckKind::from_flags([flags[0], flags[1]])
            .ok_or(Stop::Corrupt("unknown flags of an xz stream"))?;
        self.stream_start = start;
        self.records = Records::default();
        self.phase = Phase::Block;
        Ok(())
    }

    fn begin_block(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        let start = input.offset();
        let [size] = input.peek()?;
        if size == 0 {
            return self.begin_index(input);
        }
        let header = BlockHeader::read(input, usize::from(size))?;
        if header.dictionary > WINDOW_BYTES_MAX {
            return Err(Stop::Damaged(Damage::Window {
                codec: Codec::Xz,
                compressed_offset: start,
                bytes: header.dictionary,
            }));
        }
        input.advance(header.bytes as u64);
        self.lzma = Some(Box::new(Lzma2Stream::new(header.dictionary as u32)));
        let hash = Hasher::new(self.check);
        self.block = Block { start, header, compressed: 0, size: 0, hash };
        self.phase = Phase::Data;
        Ok(Step::Produced(0))
    }

    fn data(&mut self, input: &mut Input<'_>, out: &mut [u8]) -> Result<Step, Stop> {
        let lzma = self.lzma.as_mut().ok_or(Stop::Memory)?;
        let piece = input.piece(PIECE_BYTES)?;
        let at_end = piece.is_empty();
        let before = (lzma.total_in(), lzma.total_out());
        let result = lzma.process(piece, out, Action::Run);
        let consumed = lzma.total_in() - before.0;
        // Also if the library failed: what it put out before.
        let produced = (lzma.total_out() - before.1) as usize;
        let status = match result {
            Ok(result) => Ok((result.status, result.bytes_consumed as u64)),
            Err(error) if error.kind() == std::io::ErrorKind::OutOfMemory => {
                return Err(Stop::Memory);
            }
            Err(_) => Err(consumed),
        };
        let (status, consumed) = match status {
            Ok(done) => done,
            // It fails again at the next step, with nothing to hand out.
            Err(consumed) if produced > 0 => (Status::Ok, consumed),
            Err(_) => {
                self.rescue(input);
                return Ok(Step::Produced(0));
            }
        };
        input.advance(consumed);
        self.block.compressed += consumed;
        self.block.size += produced as u64;
        self.block.hash.update(&out[..produced]);
        if status == Status::StreamEnd {
            self.lzma = None;
            self.phase = Phase::Check;
        } else if consumed == 0 && produced == 0 {
            return Err(if at_end {
                Stop::Short
            } else {
                Stop::Corrupt("the decoder makes no progress")
            });
        }
        Ok(Step::Produced(produced))
    }

    /// Finds what the library has kept of a damaged block.
    fn rescue(&mut self, input: &mut Input<'_>) {
        // Its dictionary is needed once more.
        self.lzma = None;
        let Block { start, header, size, .. } = &self.block;
        if *size <= rescue::AGAIN_BYTES_MAX {
            let data = start + header.bytes as u64;
            self.rescued = rescue::rescue(input, data, header.dictionary as u32, *size);
        }
        self.phase = Phase::Rescued { done: 0 };
    }

    fn give_rescued(&mut self, done: usize, out: &mut [u8]) -> Result<Step, Stop> {
        let rest = &self.rescued[done..];
        if rest.is_empty() {
            return Err(Stop::Corrupt("invalid LZMA2 data"));
        }
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.phase = Phase::Rescued { done: done + count };
        Ok(Step::Produced(count))
    }

    /// Passes the padding and the checksum of a block.
    fn check(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        let padding = (4 - self.block.compressed % 4) % 4;
        let mut bytes = [0; 3 + CheckKind::BYTES_MAX];
        let bytes = &mut bytes[..padding as usize + self.check.bytes()];
        input.peek_at(input.offset(), bytes)?;
        let (zeros, stored) = bytes.split_at(padding as usize);
        if zeros.iter().any(|&byte| byte != 0) {
            return Err(Stop::Corrupt("the padding of an xz block"));
        }
        input.advance(bytes.len() as u64);
        let block = &mut self.block;
        let hash = std::mem::replace(&mut block.hash, Hasher::new(CheckKind::None));
        let sums = hash.compare(stored);
        let unpadded = block.header.bytes as u64 + block.compressed + self.check.bytes() as u64;
        self.records.push(unpadded, block.size);
        self.phase = Phase::Block;
        let frame_start = block.start;
        let stated = [(block.header.compressed, block.compressed), (block.header.size, block.size)];
        let sizes = stated.into_iter().filter_map(|(stated, found)| Some((stated?, found)));
        let wrong = sums
            .map(|sums| (MismatchKind::Crc, sums))
            .into_iter()
            .chain(sizes.map(|sizes| (MismatchKind::Size, sizes)))
            .find(|(_, (expected, found))| expected != found);
        Ok(match wrong {
            Some((kind, (expected, found))) => {
                Step::Mismatch(Mismatch { kind, frame_start, expected, found })
            }
            None => Step::Produced(0),
        })
    }

    fn begin_index(&mut self, input: &mut Input<'_>) -> Result<Step, Stop> {
        // The indicator, and how many records follow.
        let (count, bytes) = read_number(input, input.offset() + 1)?;
        let mut head = vec![0; 1 + bytes];
        input.peek_at(input.offset(), &mut head)?;
        input.advance(head.len() as u64);
        self.phase = Phase::Index {
            left: count,
            found: Records::default(),
            crc: crc32fast::hash(&head),
            bytes: head.len() as u64,
        };
        Ok(Step::Produced(0))
    }

    /// Passes one record of the index, or what follows the last.
    fn index(
        &mut self,
        input: &mut Input<'_>,
        left: u64,
        mut found: Records,
        crc: u32,
        bytes: u64,
    ) -> Result<Step, Stop> {
        let start = input.offset();
        if left > 0 {
            let (unpadded, first) = read_number(input, start)?;
            let (size, second) = read_number(input, start + first as u64)?;
            let mut record = [0; 20];
            let record = &mut record[..first + second];
            input.peek_at(start, record)?;
            input.advance(record.len() as u64);
            found.push(unpadded, size);
            let (left, crc) = (left - 1, continue_crc(crc, bytes, record));
            let bytes = bytes + record.len() as u64;
            self.phase = Phase::Index { left, found, crc, bytes };
            return Ok(Step::Produced(0));
        }
        let padding = ((4 - bytes % 4) % 4) as usize;
        let mut tail = [0; 7];
        let tail = &mut tail[..padding + 4];
        input.peek_at(start, tail)?;
        input.advance(tail.len() as u64);
        let (zeros, stored) = tail.split_at(padding);
        let crc = continue_crc(crc, bytes, zeros);
        let stored = stored.try_into().map_or(0, u32::from_le_bytes);
        self.phase = Phase::Footer { index_bytes: bytes + tail.len() as u64 };
        let frame_start = self.stream_start;
        let header = |expected: u32, found: u32| Mismatch {
            kind: MismatchKind::Header,
            frame_start,
            expected: expected.into(),
            found: found.into(),
        };
        if stored != crc {
            return Ok(Step::Mismatch(header(stored, crc)));
        }
        if found != self.records {
            return Ok(Step::Mismatch(header(found.crc, self.records.crc)));
        }
        Ok(Step::Produced(0))
    }

    fn footer(&mut self, input: &mut Input<'_>, index_bytes: u64) -> Result<Step, Stop> {
        let footer: [u8; STREAM_HEAD_BYTES] = input.peek()?;
        let [c0, c1, c2, c3, b0, b1, b2, b3, f0, f1, magic @ ..] = footer;
        if magic != FOOTER_MAGIC {
            return Err(Stop::Corrupt("the footer of an xz stream"));
        }
        input.advance(STREAM_HEAD_BYTES as u64);
        self.phase = Phase::Between;
        let stored = u32::from_le_bytes([c0, c1, c2, c3]);
        let crc = crc32fast::hash(&footer[4..10]);
        let backward = (u64::from(u32::from_le_bytes([b0, b1, b2, b3])) + 1) * 4;
        let (kind, frame_start) = (MismatchKind::Header, self.stream_start);
        if stored != crc {
            let (expected, found) = (stored.into(), crc.into());
            return Ok(Step::Mismatch(Mismatch { kind, frame_start, expected, found }));
        }
        if backward != index_bytes || CheckKind::from_flags([f0, f1]) != Some(self.check) {
            let (expected, found) = (backward, index_bytes);
            return Ok(Step::Mismatch(Mismatch { kind, frame_start, expected, found }));
        }
        Ok(Step::Produced(0))
    }

    /// Between two blocks: where the stream began, and the blocks so far.
    pub(super) fn point(&self) -> Option<Vec<u8>> {
        match self.phase {
            Phase::Between => return Some(Vec::new()),
            Phase::Block => {}
            Phase::Data
            | Phase::Rescued { .. }
            | Phase::Check
            | Phase::Index { .. }
            | Phase::Footer { .. } => return None,
        }
        let mut state = Vec::with_capacity(28);
        state.extend_from_slice(&self.stream_start.to_le_bytes());
        state.extend_from_slice(&self.records.count.to_le_bytes());
        state.extend_from_slice(&self.records.bytes.to_le_bytes());
        state.extend_from_slice(&self.records.crc.to_le_bytes());
        Some(state)
    }

    pub(super) fn restore(&mut self, mut state: &[u8], input: &mut Input<'_>) -> Result<(), Stop> {
        if state.is_empty() {
            return Ok(());
        }
        let start = u64::from_le_bytes(take(&mut state)?);
        let count = u64::from_le_bytes(take(&mut state)?);
        let bytes = u64::from_le_bytes(take(&mut state)?);
        let crc = u32::from_le_bytes(take(&mut state)?);
        if start >= input.offset() {
            return Err(Stop::Corrupt("the state of a checkpoint contradicts itself"));
        }
        self.begin_stream(input, start)?;
        self.records = Records { count, crc, bytes };
        Ok(())
    }
}

/// CRC-32 of `before` bytes, of which it is `crc`, and of `bytes` behind them.
fn continue_crc(crc: u32, before: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial_len(crc, before);
    hasher.update(bytes);
    hasher.finalize()
}

impl std::fmt::Debug for Xz {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Xz").field("phase", &self.phase).finish_non_exhaustive()
    }
}
