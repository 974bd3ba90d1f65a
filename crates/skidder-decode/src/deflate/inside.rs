//! A position inside a deflate block: the state that a decoder needs to continue in the middle of
//! it, besides the window.
//!
//! Some compressors write blocks of many megabytes (`igzip -0` a whole file as one), in which a position
//! between blocks never comes. Such a position costs a few hundred bytes: the lengths of the block's codes.

use super::table::{DISTANCES_MAX, LITERALS_MAX};
use super::{Bits, Inflate, Mode, Refused, WINDOW_BYTES};

/// A position inside a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Bits that were taken from the input and not used up, and how many, below 64.
    buffer: u64,
    count: u8,
    /// The block is the last of its stream.
    last: bool,
    at: At,
    /// Bits of the codes of literals and of distances; none in a stored block.
    literals: Vec<u8>,
    distances: Vec<u8>,
}

/// Where in the block's grammar; the numbers are those of [`Mode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Symbol,
    Stored { left: u16 },
    Literal(u8),
    Distance { length: u16 },
    Match { length: u16, distance: u16 },
}

/// Bytes of the stored form before the lengths of the codes.
const HEAD_BYTES: usize = 18;
/// Longest match (RFC 1951, section 3.2.5).
const LENGTH_MAX: u16 = 258;

impl Inside {
    /// The stored form: 18 bytes and one for each two codes, 178 at most (`FORMAT.md` of this crate).
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, first, second) = match self.at {
            At::Symbol => (0, 0, 0),
            At::Stored { left } => (1, left, 0),
            At::Literal(byte) => (2, u16::from(byte), 0),
            At::Distance { length } => (3, length, 0),
            At::Match { length, distance } => (4, length, distance),
        };
        let mut bytes = Vec::with_capacity(HEAD_BYTES + LITERALS_MAX);
        bytes.extend_from_slice(&self.buffer.to_le_bytes());
        bytes.extend_from_slice(&[self.count, u8::from(self.last), kind]);
        bytes.extend_from_slice(&first.to_le_bytes());
        bytes.extend_from_slice(&second.to_le_bytes());
        bytes.extend_from_slice(&(self.literals.len() as u16).to_le_bytes());
        bytes.push(self.distances.len() as u8);
        let codes: Vec<u8> = self.literals.iter().chain(&self.distances).copied().collect();
        bytes.extend(codes.chunks(2).map(|pair| pair[0] | pair.get(1).map_or(0, |&two| two << 4)));
        bytes
    }

    /// Loads what [`Inside::to_bytes`] wrote; `None` if it cannot have been that.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, packed) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let word = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let buffer = u64::from_le_bytes(*head.first_chunk()?);
        let (count, last) = (head[8], head[9]);
        let at = match (head[10], word(11), word(13)) {
            (0, 0, 0) => At::Symbol,
            (1, left, 0) => At::Stored { left },
            (2, byte, 0) => At::Literal(u8::try_from(byte).ok()?),
            (3, length @ 1..=LENGTH_MAX, 0) => At::Distance { length },
            (4, length @ 1..=LENGTH_MAX, distance @ 1..) => At::Match { length, distance },
            _ => return None,
        };
        let (literals, distances) = (usize::from(word(15)), usize::from(head[17]));
        let codes = literals + distances;
        let valid = count < 64
            && buffer >> count == 0
            && last <= 1
            && literals <= LITERALS_MAX
            && distances <= DISTANCES_MAX
            && packed.len() == codes.div_ceil(2);
        if !valid {
            return None;
        }
        let mut lengths: Vec<u8> =
            packed.iter().flat_map(|&pair| [pair & 0xf, pair >> 4]).collect();
        lengths.truncate(codes);
        let distances = lengths.split_off(literals);
        Some(Self { buffer, count, last: last == 1, at, literals: lengths, distances })
    }
}

impl Inflate {
    /// The position where the last call ended, if it is inside a block. With the window of
    /// [`Inflate::copy_window`] and the input behind the last byte consumed,
    /// [`Inflate::restore_inside`] goes on from it.
    pub fn inside(&self) -> Option<Inside> {
        let at = match self.mode {
            Mode::Symbol => At::Symbol,
            Mode::Stored { left } => At::Stored { left: left as u16 },
            Mode::Literal(byte) => At::Literal(byte),
            Mode::Distance { length } => At::Distance { length: length as u16 },
            Mode::Match { length, distance } => {
                At::Match { length: length as u16, distance: distance as u16 }
            }
            _ => return None,
        };
        let (literals, distances) = match at {
            At::Stored { .. } => (Vec::new(), Vec::new()),
            _ => self.tables.lengths(&self.header),
        };
        let Bits { buffer, count } = self.bits;
        Some(Inside { buffer, count: count as u8, last: self.last, at, literals, distances })
    }

    /// Sets the decoder to a position inside a block; `window` is the output so far (its last 32 KiB). Only
    /// directly after `new` or `reset`.
    pub fn restore_inside(&mut self, inside: &Inside, window: &[u8]) -> Result<(), Refused> {
        if !self.fresh || window.len() > WINDOW_BYTES {
            return Err(Refused);
        }
        self.mode = match inside.at {
            At::Symbol => Mode::Symbol,
            At::Stored { left } => Mode::Stored { left: usize::from(left) },
            At::Literal(byte) => Mode::Literal(byte),
            At::Distance { length } => Mode::Distance { length: usize::from(length) },
            At::Match { distance, .. } if usize::from(distance) > window.len() => {
                return Err(Refused);
            }
            At::Match { length, distance } => {
                Mode::Match { length: usize::from(length), distance: usize::from(distance) }
            }
        };
        if !matches!(inside.at, At::Stored { .. }) {
            self.header.set(&inside.literals, &inside.distances);
            self.tables.set(&inside.literals, &inside.distances).map_err(|_| Refused)?;
        } else if inside.count > 0 {
            return Err(Refused);
        }
        self.fresh = false;
        self.last = inside.last;
        self.bits = Bits { buffer: inside.buffer, count: u32::from(inside.count) };
        self.remember(window);
        Ok(())
    }
}
