//! The kinds of compressed files, and how to detect them.

use crate::progress::DecodeError;
use crate::source::read_full;
use skidder_os::File;
use std::fmt;

/// A kind of compressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878), also with a seek table.
    Zstd,
    /// bzip2.
    Bzip2,
    /// The .xz format 1.2.
    Xz,
    /// LZ4 frames 1.6.
    Lz4,
}

/// Frames of zstd and lz4 that hold no data begin with these four bytes, of which the lowest four
/// bits are free.
pub(crate) const SKIPPABLE_MAGIC: u32 = 0x184d_2a50;

/// Head of a skippable frame: magic and length.
pub(crate) const SKIPPABLE_HEAD_BYTES: u64 = 8;

/// Skippable frames to skip at most, to distinguish zstd and lz4.
const SKIPPABLE_MAX: usize = 16;

/// The longest magic.
const MAGIC_BYTES_MAX: usize = 10;

/// The least that a file must show of a magic that is longer: it may be being written.
const PARTIAL_BYTES_MIN: usize = 3;

const BZIP2_BLOCK: [u8; 6] = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
const BZIP2_END: [u8; 6] = [0x17, 0x72, 0x45, 0x38, 0x50, 0x90];

impl Codec {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Gzip, Self::Zstd, Self::Bzip2, Self::Xz, Self::Lz4];

    /// The name in the configuration and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Lz4 => "lz4",
        }
    }

    /// The extension of such files, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Gzip => "gz",
            Self::Zstd => "zst",
            Self::Bzip2 => "bz2",
            Self::Xz => "xz",
            Self::Lz4 => "lz4",
        }
    }

    /// The codec of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }

    /// The codec of a file, by its first bytes; `None` if it is plain.
    ///
    /// Two bytes identify gzip, as in Filebeat; the other magics are longer, and a shorter file
    /// must have three bytes of one. Skippable frames, which zstd and lz4 share, are skipped; a
    /// file of nothing else counts as zstd.
    pub fn detect(file: &dyn File) -> Result<Option<Self>, DecodeError> {
        let mut offset = 0;
        for _ in 0..SKIPPABLE_MAX {
            let mut head = [0; MAGIC_BYTES_MAX];
            let count = read_full(file, &mut head, offset)?;
            let head = &head[..count];
            let (words, _) = head.as_chunks::<4>();
            let skippable = match words {
                [magic, length, ..] if is_skippable(u32::from_le_bytes(*magic)) => {
                    Some(u32::from_le_bytes(*length))
                }
                _ => None,
            };
            match skippable {
                Some(bytes) => offset += SKIPPABLE_HEAD_BYTES + u64::from(bytes),
                None if offset > 0 => {
                    return Ok(Some(Self::of_magic(head).unwrap_or(Self::Zstd)));
                }
                None => return Ok(Self::of_magic(head)),
            }
        }
        Ok(Some(Self::Zstd))
    }

    /// The codec of a file that begins with these bytes, skippable frames apart.
    fn of_magic(head: &[u8]) -> Option<Self> {
        let begins = |magic: &[u8]| {
            let shown = head.len().min(magic.len());
            shown >= PARTIAL_BYTES_MIN && head[..shown] == magic[..shown]
        };
        match head {
            _ if crate::gzip::is_gzip(head) => Some(Self::Gzip),
            _ if begins(&crate::framed::zstd::MAGIC.to_le_bytes()) => Some(Self::Zstd),
            _ if begins(&crate::framed::lz4::MAGIC.to_le_bytes()) => Some(Self::Lz4),
            _ if begins(&crate::framed::xz::MAGIC) => Some(Self::Xz),
            // Three letters are not enough: text may begin with them.
            [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] => {
                let shown = rest.len().min(BZIP2_BLOCK.len());
                let block = rest[..shown] == BZIP2_BLOCK[..shown];
                (block || rest[..shown] == BZIP2_END[..shown]).then_some(Self::Bzip2)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Whether a frame that begins with these four bytes, little-endian, holds no data.
pub(crate) fn is_skippable(magic: u32) -> bool {
    magic & 0xffff_fff0 == SKIPPABLE_MAGIC
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magics_tell_codecs_apart_and_text_is_plain() {
        type Case = (&'static [u8], Option<Codec>);
        let cases: &[Case] = &[
            (b"", None),
            (b"2026-11-22 line", None),
            (b"BZh9 is a word", None),
            (b"BZh", None),
            (b"BZh91AY&SY1234", Some(Codec::Bzip2)),
            (b"BZh9\x17\x72\x45\x38\x50\x90", Some(Codec::Bzip2)),
            (b"BZh9", Some(Codec::Bzip2)),
            (b"\x1f\x8b", Some(Codec::Gzip)),
            (b"\x28\xb5\x2f\xfd1234567", Some(Codec::Zstd)),
            (b"\x28\xb5\x2f", Some(Codec::Zstd)),
            (b"\x28\xb5", None),
            (b"\xfd7zXZ\0", Some(Codec::Xz)),
            (b"\xfd7zXY\0", None),
            (b"\x04\x22\x4d\x18", Some(Codec::Lz4)),
        ];
        for (head, expected) in cases {
            assert_eq!(Codec::of_magic(head), *expected, "{head:x?}");
        }
        for codec in Codec::ALL {
            assert_eq!(Codec::find(codec.name()), Some(codec));
        }
    }
}
