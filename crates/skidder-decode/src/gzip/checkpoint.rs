//! A saved position inside a gzip file, and its bytes on disk (`FORMAT.md` of this crate).
//!
//! What it promises: a checkpoint that loads and whose file still has the same bytes before the
//! offset continues the stream exactly, to the byte, with the checksum of the member intact.

use crate::deflate::{Inside, WINDOW_BYTES};

/// First bytes of a stored checkpoint.
const MAGIC: [u8; 4] = *b"skgz";
/// Version of the format for a position between blocks or members.
const VERSION: u8 = 1;
/// Version of the format for a position inside a block. All others are refused.
const VERSION_INSIDE: u8 = 2;
/// Bytes before the packed window.
const HEAD_BYTES: usize = 56;
/// The checksum at the end.
const CHECKSUM_BYTES: usize = 4;

/// A position from which decoding can go on: between two deflate blocks, between two members, or, where
/// blocks are very long, inside one.
///
/// Holds up to 32 KiB of output. Between members it holds none and is called *free*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Compressed bytes consumed.
    pub(crate) compressed_offset: u64,
    /// High bits of the byte before `compressed_offset` that are still to be decoded, 0 to 7.
    pub(crate) bits: u8,
    /// Compressed offset of the member's first byte; equal to `compressed_offset` if free.
    pub(crate) member_start: u64,
    /// Decompressed bytes before this point, over all members.
    pub(crate) decompressed_offset: u64,
    /// Decompressed bytes of this member before this point.
    pub(crate) member_out: u64,
    /// CRC-32 of these `member_out` bytes.
    pub(crate) crc: u32,
    /// CRC-32 of the (at most) 64 compressed bytes before `compressed_offset`.
    pub(crate) tail_crc: u32,
    /// The last `min(member_out, 32 KiB)` bytes of output.
    pub(crate) window: Vec<u8>,
    /// Where in a block; nothing between blocks.
    pub(crate) inside: Option<Inside>,
}

/// Why stored bytes are not a checkpoint. The next best is an older checkpoint or the file's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Not written by this program, or by a version with another format.
    #[error("the stored checkpoint has an unknown format")]
    Unknown,
    /// Damaged on disk.
    #[error("the stored checkpoint is damaged: {what}")]
    Corrupt {
        /// Which check failed.
        what: &'static str,
    },
}

impl Checkpoint {
    /// Bytes of the decompressed stream before this point.
    pub fn decompressed_offset(&self) -> u64 {
        self.decompressed_offset
    }

    /// Bytes of the file before this point. The decoder may need the last of them once more.
    pub fn compressed_offset(&self) -> u64 {
        self.compressed_offset
    }

    /// Whether it stands between two members and so holds no window.
    pub fn is_free(&self) -> bool {
        self.member_start == self.compressed_offset
    }

    /// Memory held besides the struct itself, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.window.capacity()
    }

    /// The stored form: 60 bytes if free, about 13 KiB for log text, 33 KiB at most.
    pub fn to_bytes(&self) -> Vec<u8> {
        debug_assert_eq!(self.check(), Ok(()), "a checkpoint is checked before it is written");
        let packed_max = lz4_flex::block::get_maximum_output_size(self.window.len());
        let mut bytes = Vec::with_capacity(HEAD_BYTES + packed_max + CHECKSUM_BYTES);
        bytes.extend_from_slice(&MAGIC);
        let version = if self.inside.is_some() { VERSION_INSIDE } else { VERSION };
        bytes.extend_from_slice(&[version, self.bits]);
        bytes.extend_from_slice(&(self.window.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&self.compressed_offset.to_le_bytes());
        bytes.extend_from_slice(&self.member_start.to_le_bytes());
        bytes.extend_from_slice(&self.decompressed_offset.to_le_bytes());
        bytes.extend_from_slice(&self.member_out.to_le_bytes());
        bytes.extend_from_slice(&self.crc.to_le_bytes());
        bytes.extend_from_slice(&self.tail_crc.to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&self.window).to_le_bytes());
        let packed = match self.window.as_slice() {
            [] => Vec::new(),
            window => lz4_flex::block::compress(window),
        };
        bytes.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&packed);
        if let Some(inside) = &self.inside {
            bytes.extend_from_slice(&inside.to_bytes());
        }
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Loads what [`Checkpoint::to_bytes`] wrote. Any other bytes are refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        if bytes.len() < HEAD_BYTES + CHECKSUM_BYTES {
            return Err(CheckpointError::Corrupt { what: "too short" });
        }
        let (body, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        let (head, packed) = body.split_at(HEAD_BYTES);
        let mut fields = Fields { bytes: head };
        let (magic, [version]) = (fields.take::<4>(), fields.take());
        if magic != MAGIC || !matches!(version, VERSION | VERSION_INSIDE) {
            return Err(CheckpointError::Unknown);
        }
        if crc32fast::hash(body).to_le_bytes() != checksum {
            return Err(CheckpointError::Corrupt { what: "checksum" });
        }
        let [bits] = fields.take();
        let window_bytes = usize::from(u16::from_le_bytes(fields.take()));
        let mut checkpoint = Self {
            bits,
            compressed_offset: u64::from_le_bytes(fields.take()),
            member_start: u64::from_le_bytes(fields.take()),
            decompressed_offset: u64::from_le_bytes(fields.take()),
            member_out: u64::from_le_bytes(fields.take()),
            crc: u32::from_le_bytes(fields.take()),
            tail_crc: u32::from_le_bytes(fields.take()),
            window: Vec::new(),
            inside: None,
        };
        let window_crc = u32::from_le_bytes(fields.take());
        let packed_bytes = u32::from_le_bytes(fields.take()) as usize;
        let Some((packed, inside)) = packed.split_at_checked(packed_bytes) else {
            return Err(CheckpointError::Corrupt { what: "length" });
        };
        if version == VERSION_INSIDE {
            let what = "position inside a block";
            let inside = Inside::from_bytes(inside);
            checkpoint.inside = Some(inside.ok_or(CheckpointError::Corrupt { what })?);
        } else if !inside.is_empty() {
            return Err(CheckpointError::Corrupt { what: "length" });
        }
        checkpoint.window = unpack(packed, window_bytes)?;
        if crc32fast::hash(&checkpoint.window) != window_crc {
            return Err(CheckpointError::Corrupt { what: "checksum of the window" });
        }
        checkpoint.check().map_err(|what| CheckpointError::Corrupt { what })?;
        Ok(checkpoint)
    }

    /// What must hold between the fields; the text says what does not.
    fn check(&self) -> Result<(), &'static str> {
        if self.bits > 7 {
            return Err("more than 7 bits");
        }
        if self.member_start > self.compressed_offset {
            return Err("the member begins behind its checkpoint");
        }
        if self.member_out > self.decompressed_offset {
            return Err("the member is longer than the stream");
        }
        if self.window.len() as u64 != self.member_out.min(WINDOW_BYTES as u64) {
            return Err("the window is not as long as it should be");
        }
        if self.inside.is_some() && (self.is_free() || self.bits != 0) {
            return Err("between and inside blocks at once");
        }
        if self.is_free() && (self.bits != 0 || self.member_out != 0 || self.crc != 0) {
            return Err("a member has begun before its first byte");
        }
        Ok(())
    }
}

/// Unpacks the window; `window_bytes` bounds the memory.
fn unpack(packed: &[u8], window_bytes: usize) -> Result<Vec<u8>, CheckpointError> {
    if window_bytes > WINDOW_BYTES || (window_bytes == 0) != packed.is_empty() {
        return Err(CheckpointError::Corrupt { what: "length of the window" });
    }
    let mut window = vec![0; window_bytes];
    if packed.is_empty() {
        return Ok(window);
    }
    match lz4_flex::block::decompress_into(packed, &mut window) {
        Ok(bytes) if bytes == window_bytes => Ok(window),
        Ok(_) | Err(_) => Err(CheckpointError::Corrupt { what: "packed window" }),
    }
}

/// Takes fixed-size fields off the front of the head.
struct Fields<'a> {
    bytes: &'a [u8],
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) =
            self.bytes.split_first_chunk().expect("the head has the length of its fields");
        self.bytes = rest;
        *field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window_of(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|index| (index * index / 7) as u8).collect()
    }

    fn example(window_bytes: usize) -> Checkpoint {
        Checkpoint {
            compressed_offset: 123_456,
            bits: 5,
            member_start: 77,
            decompressed_offset: 9_000_000,
            member_out: window_bytes as u64,
            crc: 0xdead_beef,
            tail_crc: 0x1234_5678,
            window: window_of(window_bytes),
            inside: None,
        }
    }

    fn free() -> Checkpoint {
        Checkpoint {
            bits: 0,
            member_start: 123_456,
            member_out: 0,
            crc: 0,
            window: Vec::new(),
            ..example(0)
        }
    }

    #[test]
    fn every_checkpoint_comes_back_as_it_was() {
        for window_bytes in [0, 1, 13, 1000, WINDOW_BYTES] {
            let checkpoint = example(window_bytes);
            assert_eq!(Checkpoint::from_bytes(&checkpoint.to_bytes()), Ok(checkpoint));
        }
        let free = free();
        assert!(free.is_free());
        assert_eq!(free.to_bytes().len(), HEAD_BYTES + CHECKSUM_BYTES);
        assert_eq!(Checkpoint::from_bytes(&free.to_bytes()), Ok(free));
    }

    #[test]
    fn the_stored_form_is_the_documented_one() {
        let bytes = free().to_bytes();
        assert_eq!(&bytes[..8], b"skgz\x01\x00\x00\x00");
        assert_eq!(bytes[8..16], 123_456_u64.to_le_bytes());
        assert_eq!(bytes[16..24], 123_456_u64.to_le_bytes());
        assert_eq!(bytes[24..32], 9_000_000_u64.to_le_bytes());
        assert_eq!(bytes[32..44], [0; 12]);
        assert_eq!(bytes[44..48], 0x1234_5678_u32.to_le_bytes());
        assert_eq!(bytes[48..56], [0; 8]);
        assert_eq!(bytes[56..], crc32fast::hash(&bytes[..56]).to_le_bytes());
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_refused() {
        let bytes = example(300).to_bytes();
        for at in 0..bytes.len() {
            assert!(Checkpoint::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert!(Checkpoint::from_bytes(&flipped).is_err(), "byte {at} bit {bit}");
            }
        }
        assert!(Checkpoint::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn contradictions_are_refused_even_with_a_right_checksum() {
        // (offset of the byte, its new value)
        let cases = [(4, 2), (5, 8), (7, 0xff), (16, 0xff), (23, 1), (32, 7), (39, 1), (52, 1)];
        for (at, value) in cases {
            let mut bytes = example(300).to_bytes();
            bytes[at] = value;
            let end = bytes.len() - CHECKSUM_BYTES;
            let checksum = crc32fast::hash(&bytes[..end]);
            bytes[end..].copy_from_slice(&checksum.to_le_bytes());
            let loaded = Checkpoint::from_bytes(&bytes);
            // Byte 16 makes the member start 255: still before the checkpoint, so still valid.
            assert_eq!(loaded.is_err(), at != 16, "byte {at} set to {value}");
        }
    }
}
