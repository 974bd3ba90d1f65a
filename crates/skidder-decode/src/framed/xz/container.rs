//! Parts of the .xz container: numbers, block headers, checks.

use crate::codec::Codec;
use crate::framed::Stop;
use crate::framed::input::Input;
use crate::progress::Damage;
use sha2::{Digest, Sha256};

/// Bytes of a number at most.
const NUMBER_BYTES_MAX: usize = 9;
/// The filter that LZMA2 is.
const LZMA2: u64 = 0x21;
/// The largest block header.
const BLOCK_HEAD_BYTES_MAX: usize = 1024;

/// Appends a number, seven bits a byte from the lowest.
pub(super) fn write_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The number at `at`, and how many bytes it has.
pub(super) fn read_number(input: &mut Input<'_>, at: u64) -> Result<(u64, usize), Stop> {
    let mut number = 0;
    for index in 0..NUMBER_BYTES_MAX {
        let mut byte = [0];
        input.peek_at(at + index as u64, &mut byte)?;
        let [byte] = byte;
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok((number, index + 1));
        }
    }
    Err(Stop::Corrupt("a number of xz is too long"))
}

/// How a stream checks its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckKind {
    None,
    Crc32,
    Crc64,
    Sha256,
    /// One that only has a number: it is passed over, as `xz` does.
    Unknown(u8),
}

impl CheckKind {
    pub(super) const BYTES_MAX: usize = 64;

    pub(super) fn from_flags(flags: [u8; 2]) -> Option<Self> {
        Some(match flags {
            [0, 0] => Self::None,
            [0, 1] => Self::Crc32,
            [0, 4] => Self::Crc64,
            [0, 10] => Self::Sha256,
            [0, other @ 0..=15] => Self::Unknown(other),
            _ => return None,
        })
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Crc32 => 4,
            Self::Crc64 => 8,
            Self::Sha256 => 32,
            // Three numbers each have the same size.
            Self::Unknown(number) => 4 << (usize::from(number).saturating_sub(1) / 3),
        }
    }
}

/// The check of a block being computed.
pub(super) enum Hasher {
    None,
    Crc32(crc32fast::Hasher),
    Crc64(u64),
    Sha256(Box<Sha256>),
}

impl Hasher {
    pub(super) fn new(kind: CheckKind) -> Self {
        match kind {
            CheckKind::None | CheckKind::Unknown(_) => Self::None,
            CheckKind::Crc32 => Self::Crc32(crc32fast::Hasher::new()),
            CheckKind::Crc64 => Self::Crc64(u64::MAX),
            CheckKind::Sha256 => Self::Sha256(Box::default()),
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::None => {}
            Self::Crc32(hasher) => hasher.update(bytes),
            Self::Crc64(value) => *value = crc64(*value, bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    /// The stored value and the found one, or the first 8 bytes of them that differ.
    pub(super) fn compare(self, stored: &[u8]) -> Option<(u64, u64)> {
        let found: Vec<u8> = match self {
            Self::None => return None,
            Self::Crc32(hasher) => hasher.finalize().to_le_bytes().to_vec(),
            Self::Crc64(value) => (!value).to_le_bytes().to_vec(),
            Self::Sha256(hasher) => hasher.finalize().to_vec(),
        };
        let word = |bytes: &[u8]| {
            bytes.iter().rev().fold(0, |word: u64, byte| word << 8 | u64::from(*byte))
        };
        let pairs = stored.chunks(8).zip(found.chunks(8));
        let mut pairs = pairs.map(|(stored, found)| (word(stored), word(found)));
        pairs.find(|(stored, found)| stored != found)
    }
}

/// Eight bytes at a time, by eight tables.
fn crc64(mut crc: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
        crc = 0;
        for (byte, table) in word.iter().zip(CRC64.iter().rev()) {
            crc ^= table[usize::from(*byte)];
        }
    }
    for byte in rest {
        crc = crc >> 8 ^ CRC64[0][usize::from(crc as u8 ^ byte)];
    }
    crc
}

/// For each byte what it adds, with 0 to 7 bytes behind it (ECMA-182, reflected).
static CRC64: [[u64; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u64;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xc96c_5795_d787_0f42 } else { value >> 1 };
            bit += 1;
        }
        tables[0][index] = value;
        index += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut index = 0;
        while index < 256 {
            let value = tables[table - 1][index];
            tables[table][index] = value >> 8 ^ tables[0][(value & 0xff) as usize];
            index += 1;
        }
        table += 1;
    }
    tables
};

/// The header of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockHeader {
    pub(super) bytes: usize,
    pub(super) compressed: Option<u64>,
    pub(super) size: Option<u64>,
    pub(super) dictionary: u64,
}

impl BlockHeader {
    /// Reads the header at the place of `input`, whose first byte is `size`.
    pub(super) fn read(input: &mut Input<'_>, size: usize) -> Result<Self, Stop> {
        let start = input.offset();
        let bytes = (size + 1) * 4;
        let mut header = [0; BLOCK_HEAD_BYTES_MAX];
        let header = &mut header[..bytes];
        input.peek_at(start, header)?;
        let (head, crc) = header.split_at(bytes - 4);
        if crc32fast::hash(head).to_le_bytes() != crc {
            return Err(Stop::Corrupt("the header of an xz block"));
        }
        let mut fields = Fields { rest: &head[2..] };
        let flags = head[1];
        if flags & 0x3c != 0 {
            return Err(Stop::Corrupt("unknown flags of an xz block"));
        }
        let compressed = if flags & 0x40 != 0 { Some(fields.number()?) } else { None };
        let size = if flags & 0x80 != 0 { Some(fields.number()?) } else { None };
        if flags & 3 != 0 || fields.number()? != LZMA2 {
            let what = "another filter than LZMA2";
            let codec = Codec::Xz;
            return Err(Stop::Damaged(Damage::Feature { codec, compressed_offset: start, what }));
        }
        let properties = fields.number()?;
        let exponent = fields.byte()?;
        if properties != 1 || exponent > 40 || fields.rest.iter().any(|&byte| byte != 0) {
            return Err(Stop::Corrupt("the filter of an xz block"));
        }
        let dictionary = match exponent {
            40 => u64::from(u32::MAX),
            even_or_odd => (2 | u64::from(even_or_odd & 1)) << (even_or_odd / 2 + 11),
        };
        Ok(Self { bytes, compressed, size, dictionary })
    }
}

/// Takes fields off the front of a header.
struct Fields<'a> {
    rest: &'a [u8],
}

impl Fields<'_> {
    fn byte(&mut self) -> Result<u8, Stop> {
        let (byte, rest) =
            self.rest.split_first().ok_or(Stop::Corrupt("an xz header is too short"))?;
        self.rest = rest;
        Ok(*byte)
    }

    fn number(&mut self) -> Result<u64, Stop> {
        let mut number = 0;
        for index in 0..NUMBER_BYTES_MAX {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Stop::Corrupt("a number of xz is too long"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc64_is_the_one_of_ecma_182() {
        for cut in 0..9 {
            let crc = crc64(crc64(u64::MAX, &b"123456789"[..cut]), &b"123456789"[cut..]);
            assert_eq!(!crc, 0x995d_c9bb_df19_39fa);
        }
    }

    #[test]
    fn checks_have_the_sizes_of_the_format() {
        let sizes = [0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64];
        for (number, bytes) in sizes.into_iter().enumerate() {
            assert_eq!(CheckKind::from_flags([0, number as u8]).unwrap().bytes(), bytes);
        }
        assert_eq!(CheckKind::from_flags([0, 16]), None);
        assert_eq!(CheckKind::from_flags([1, 0]), None);
    }
}
