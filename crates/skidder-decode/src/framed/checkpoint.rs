//! A saved position in a file of zstd, bzip2, xz or lz4, and its bytes on disk (`FORMAT.md` of this crate).

use super::CheckpointError;
use crate::codec::Codec;

/// First bytes of a stored checkpoint.
pub(crate) const MAGIC: [u8; 4] = *b"skfr";
/// Version of the format; a reader refuses all others.
const VERSION: u8 = 1;
/// Bytes before the state.
const HEAD_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 4;
/// The largest state: the window of lz4 that does not compress, and what goes with it.
const STATE_BYTES_MAX: usize = 80 << 10;

/// A position between two frames, or between two blocks where the format allows it, from which
/// decoding can go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramePoint {
    pub(super) codec: Codec,
    /// Compressed bytes consumed.
    pub(super) compressed_offset: u64,
    /// Decompressed bytes before this point, over all frames.
    pub(super) decompressed_offset: u64,
    /// CRC-32 of the (at most) 64 compressed bytes before `compressed_offset`.
    pub(super) tail_crc: u32,
    /// What the machine of the codec needs; empty between two frames.
    pub(super) state: Vec<u8>,
}

impl FramePoint {
    /// The codec of the file.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Bytes of the decompressed stream before this point.
    pub fn decompressed_offset(&self) -> u64 {
        self.decompressed_offset
    }

    /// Bytes of the file before this point.
    pub fn compressed_offset(&self) -> u64 {
        self.compressed_offset
    }

    /// The stored form: 36 bytes between frames, up to 66 KiB inside an lz4 frame with dependent blocks.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.state.len() + CHECKSUM_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, codec_to_byte(self.codec), 0, 0]);
        bytes.extend_from_slice(&self.compressed_offset.to_le_bytes());
        bytes.extend_from_slice(&self.decompressed_offset.to_le_bytes());
        bytes.extend_from_slice(&self.tail_crc.to_le_bytes());
        bytes.extend_from_slice(&(self.state.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.state);
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Loads what [`FramePoint::to_bytes`] wrote. Any other bytes are refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let corrupt = |what| CheckpointError::Corrupt { what };
        let Some((body, checksum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
            return Err(corrupt("too short"));
        };
        let Some((head, state)) = body.split_first_chunk::<HEAD_BYTES>() else {
            return Err(corrupt("too short"));
        };
        let [m0, m1, m2, m3, version, codec, zero @ ..] = *head;
        if [m0, m1, m2, m3] != MAGIC || version != VERSION {
            return Err(CheckpointError::Unknown);
        }
        if crc32fast::hash(body).to_le_bytes() != *checksum {
            return Err(corrupt("checksum"));
        }
        let field = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| head[at + index]));
        let codec = codec_from_byte(codec).ok_or(CheckpointError::Unknown)?;
        let sizes = field(24);
        if zero[..2] != [0, 0]
            || (sizes >> 32) as usize != state.len()
            || state.len() > STATE_BYTES_MAX
        {
            return Err(corrupt("length"));
        }
        Ok(Self {
            codec,
            compressed_offset: field(8),
            decompressed_offset: field(16),
            tail_crc: sizes as u32,
            state: state.to_vec(),
        })
    }
}

fn codec_to_byte(codec: Codec) -> u8 {
    match codec {
        Codec::Gzip => 0,
        Codec::Zstd => 1,
        Codec::Bzip2 => 2,
        Codec::Xz => 3,
        Codec::Lz4 => 4,
    }
}

/// gzip has a format of its own.
fn codec_from_byte(byte: u8) -> Option<Codec> {
    Codec::ALL.into_iter().find(|codec| byte != 0 && codec_to_byte(*codec) == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(state: &[u8]) -> FramePoint {
        FramePoint {
            codec: Codec::Xz,
            compressed_offset: 123_456,
            decompressed_offset: 9_000_000,
            tail_crc: 0x1234_5678,
            state: state.to_vec(),
        }
    }

    #[test]
    fn every_checkpoint_comes_back_as_it_was() {
        for codec in [Codec::Zstd, Codec::Bzip2, Codec::Xz, Codec::Lz4] {
            for state in [&[][..], b"state"] {
                let point = FramePoint { codec, ..example(state) };
                assert_eq!(FramePoint::from_bytes(&point.to_bytes()), Ok(point));
            }
        }
    }

    #[test]
    fn the_stored_form_is_the_documented_one() {
        let bytes = example(b"state").to_bytes();
        assert_eq!(&bytes[..8], b"skfr\x01\x03\x00\x00");
        assert_eq!(bytes[8..16], 123_456_u64.to_le_bytes());
        assert_eq!(bytes[16..24], 9_000_000_u64.to_le_bytes());
        assert_eq!(bytes[24..28], 0x1234_5678_u32.to_le_bytes());
        assert_eq!(bytes[28..37], *b"\x05\0\0\0state");
        assert_eq!(bytes[37..], crc32fast::hash(&bytes[..37]).to_le_bytes());
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_refused() {
        let bytes = example(b"state").to_bytes();
        for at in 0..bytes.len() {
            assert!(FramePoint::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert!(FramePoint::from_bytes(&flipped).is_err(), "byte {at} bit {bit}");
            }
        }
        assert!(FramePoint::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }
}
