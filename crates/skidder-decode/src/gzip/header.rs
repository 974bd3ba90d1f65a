//! The header of a gzip member (RFC 1952, section 2.3), parsed byte by byte.
//!
//! Fields of any length are skipped without being stored, so that the parser needs no memory and
//! can stop at any byte and continue with the next piece.

use crc32fast::Hasher;

/// First two bytes of every member.
pub(crate) const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The only compression method that was ever defined.
const DEFLATE: u8 = 8;

const FLAG_HEADER_CRC: u8 = 1 << 1;
const FLAG_EXTRA: u8 = 1 << 2;
const FLAG_NAME: u8 = 1 << 3;
const FLAG_COMMENT: u8 = 1 << 4;
const FLAGS_RESERVED: u8 = 0b1110_0000;

/// Length of the part that every header has.
const FIXED_BYTES: u8 = 10;

/// Why the bytes are not a header that can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// Not the magic bytes.
    NotGzip,
    /// A compression method other than deflate.
    Method(u8),
    /// Undefined flags.
    Flags(u8),
}

/// How far the header is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// More bytes are needed.
    Incomplete,
    /// The header ended; if it has a checksum, it is right.
    Complete,
    /// The header ended, and its checksum is wrong.
    CrcMismatch { expected: u16, found: u16 },
}

/// Where the next byte belongs.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Fixed { have: u8 },
    ExtraLength { low: Option<u8> },
    Extra { left: u16 },
    Name,
    Comment,
    Crc { low: Option<u8> },
    Done,
}

/// Parser of one header.
#[derive(Debug)]
pub(crate) struct HeaderParser {
    stage: Stage,
    flags: u8,
    /// Over all bytes of the header before its checksum.
    crc: Hasher,
}

impl HeaderParser {
    pub(crate) fn new() -> Self {
        Self { stage: Stage::Fixed { have: 0 }, flags: 0, crc: Hasher::new() }
    }

    /// Takes the next bytes of the file; returns how many belong to the header.
    pub(crate) fn feed(&mut self, input: &[u8]) -> Result<(usize, Parsed), HeaderError> {
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            let byte = rest[0];
            if let Stage::Crc { low } = self.stage {
                at += 1;
                let Some(low) = low else {
                    self.stage = Stage::Crc { low: Some(byte) };
                    continue;
                };
                self.stage = Stage::Done;
                let expected = u16::from_le_bytes([low, byte]);
                let found = self.crc.clone().finalize() as u16;
                let parsed = if expected == found {
                    Parsed::Complete
                } else {
                    Parsed::CrcMismatch { expected, found }
                };
                return Ok((at, parsed));
            }
            let (taken, next) = self.advance(rest, byte)?;
            self.crc.update(&rest[..taken]);
            at += taken;
            self.stage = next;
            if matches!(next, Stage::Done) {
                return Ok((at, Parsed::Complete));
            }
        }
        Ok((at, Parsed::Incomplete))
    }

    /// One move of the machine over `rest`, which begins with `byte`: bytes taken and next stage.
    fn advance(&mut self, rest: &[u8], byte: u8) -> Result<(usize, Stage), HeaderError> {
        let moved = match self.stage {
            Stage::Fixed { have } => {
                self.check_fixed(have, byte)?;
                let have = have + 1;
                let next =
                    if have < FIXED_BYTES { Stage::Fixed { have } } else { self.after_fixed() };
                (1, next)
            }
            Stage::ExtraLength { low: None } => (1, Stage::ExtraLength { low: Some(byte) }),
            Stage::ExtraLength { low: Some(low) } => match u16::from_le_bytes([low, byte]) {
                0 => (1, self.after_extra()),
                left => (1, Stage::Extra { left }),
            },
            Stage::Extra { left } => {
                let taken = rest.len().min(usize::from(left));
                let left = left - taken as u16;
                (taken, if left > 0 { Stage::Extra { left } } else { self.after_extra() })
            }
            Stage::Name => match memchr::memchr(0, rest) {
                Some(end) => (end + 1, self.after_name()),
                None => (rest.len(), Stage::Name),
            },
            Stage::Comment => match memchr::memchr(0, rest) {
                Some(end) => (end + 1, self.after_comment()),
                None => (rest.len(), Stage::Comment),
            },
            Stage::Crc { .. } | Stage::Done => (0, Stage::Done),
        };
        Ok(moved)
    }

    fn check_fixed(&mut self, at: u8, byte: u8) -> Result<(), HeaderError> {
        match at {
            0 | 1 if byte != MAGIC[usize::from(at)] => Err(HeaderError::NotGzip),
            2 if byte != DEFLATE => Err(HeaderError::Method(byte)),
            3 if byte & FLAGS_RESERVED != 0 => Err(HeaderError::Flags(byte)),
            3 => {
                self.flags = byte;
                Ok(())
            }
            // Time, extra flags, operating system: of no use here.
            _ => Ok(()),
        }
    }

    fn after_fixed(&self) -> Stage {
        if self.flags & FLAG_EXTRA != 0 {
            Stage::ExtraLength { low: None }
        } else {
            self.after_extra()
        }
    }

    fn after_extra(&self) -> Stage {
        if self.flags & FLAG_NAME != 0 { Stage::Name } else { self.after_name() }
    }

    fn after_name(&self) -> Stage {
        if self.flags & FLAG_COMMENT != 0 { Stage::Comment } else { self.after_comment() }
    }

    fn after_comment(&self) -> Stage {
        if self.flags & FLAG_HEADER_CRC != 0 { Stage::Crc { low: None } } else { Stage::Done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with the given flags and fields of some length.
    fn header(flags: u8) -> Vec<u8> {
        let mut bytes = vec![0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 0, 3];
        if flags & FLAG_EXTRA != 0 {
            bytes.extend_from_slice(&[5, 0, 1, 0, 0, 0, 9]);
        }
        if flags & FLAG_NAME != 0 {
            bytes.extend_from_slice(b"access.log\0");
        }
        if flags & FLAG_COMMENT != 0 {
            bytes.extend_from_slice(b"no comment\0");
        }
        if flags & FLAG_HEADER_CRC != 0 {
            let crc = crc32fast::hash(&bytes) as u16;
            bytes.extend_from_slice(&crc.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn every_mix_of_fields_ends_at_its_last_byte_for_every_split() {
        for flags in 0..32 {
            let bytes = header(flags);
            let whole = [&bytes[..], b"deflate"].concat();
            for split in 0..bytes.len() {
                let mut parser = HeaderParser::new();
                assert_eq!(parser.feed(&whole[..split]), Ok((split, Parsed::Incomplete)));
                let left = bytes.len() - split;
                assert_eq!(parser.feed(&whole[split..]), Ok((left, Parsed::Complete)), "{flags}");
            }
        }
    }

    #[test]
    fn the_longest_extra_field_and_empty_fields_are_fine() {
        let mut bytes = vec![0x1f, 0x8b, 8, FLAG_EXTRA | FLAG_NAME | FLAG_COMMENT];
        bytes.extend_from_slice(&[0; 6]);
        let mut empty = bytes.clone();
        empty.extend_from_slice(&[0, 0, 0, 0]);
        assert_eq!(HeaderParser::new().feed(&empty), Ok((14, Parsed::Complete)));
        bytes.extend_from_slice(&[0xff, 0xff]);
        bytes.resize(bytes.len() + 0xffff, 7);
        bytes.extend_from_slice(&[0, 0]);
        assert_eq!(HeaderParser::new().feed(&bytes), Ok((bytes.len(), Parsed::Complete)));
    }

    #[test]
    fn what_cannot_be_decoded_is_refused_at_its_byte() {
        let cases: &[(&[u8], HeaderError)] = &[
            (b"hello", HeaderError::NotGzip),
            (&[0x1f, 0x8c], HeaderError::NotGzip),
            (&[0x1f, 0x8b, 7], HeaderError::Method(7)),
            (&[0x1f, 0x8b, 8, 0x20], HeaderError::Flags(0x20)),
            (&[0x1f, 0x8b, 8, 0xff], HeaderError::Flags(0xff)),
        ];
        for (bytes, error) in cases {
            assert_eq!(HeaderParser::new().feed(bytes), Err(*error), "{bytes:?}");
        }
    }

    #[test]
    fn a_wrong_header_checksum_is_told() {
        let mut bytes = header(FLAG_HEADER_CRC | FLAG_NAME);
        bytes[4] ^= 1;
        let (taken, parsed) = HeaderParser::new().feed(&bytes).unwrap();
        assert_eq!(taken, bytes.len());
        assert!(matches!(parsed, Parsed::CrcMismatch { .. }));
    }
}
