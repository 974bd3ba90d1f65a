//! The last compressed bytes a reader has passed: they tie a checkpoint to its file.

use crate::gzip::ResumeError;
use skidder_os::{File, read_exact_at};
use std::io;

/// How many bytes before a checkpoint are compared. Deflate data hardly ever repeat for that long.
pub(crate) const TAIL_BYTES: usize = 64;

/// The last [`TAIL_BYTES`] bytes before an offset, or fewer at the start of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    bytes: [u8; TAIL_BYTES],
    /// The last `len` of `bytes` are known.
    len: usize,
}

impl Tail {
    pub(crate) const EMPTY: Self = Self { bytes: [0; TAIL_BYTES], len: 0 };

    /// Reads what precedes `offset` from the file.
    pub(crate) fn read(file: &dyn File, offset: u64) -> io::Result<Self> {
        let len = offset.min(TAIL_BYTES as u64) as usize;
        let mut tail = Self { len, ..Self::EMPTY };
        read_exact_at(file, &mut tail.bytes[TAIL_BYTES - len..], offset - len as u64)?;
        Ok(tail)
    }

    /// Reads what precedes a checkpoint at `offset`, and makes sure that it is what it was.
    pub(crate) fn check(file: &dyn File, offset: u64, crc: u32) -> Result<Self, ResumeError> {
        let tail = Self::read(file, offset).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => ResumeError::Stale,
            _ => ResumeError::Read { offset, source },
        })?;
        if tail.crc() == crc { Ok(tail) } else { Err(ResumeError::Stale) }
    }

    /// Moves on over the next bytes.
    pub(crate) fn push(&mut self, passed: &[u8]) {
        let new = &passed[passed.len().saturating_sub(TAIL_BYTES)..];
        self.bytes.copy_within(new.len().., 0);
        self.bytes[TAIL_BYTES - new.len()..].copy_from_slice(new);
        self.len = (self.len + new.len()).min(TAIL_BYTES);
    }

    /// CRC-32 of the known bytes.
    pub(crate) fn crc(&self) -> u32 {
        crc32fast::hash(&self.bytes[TAIL_BYTES - self.len..])
    }

    /// The byte directly before the offset; 0 at the start of the file.
    pub(crate) fn last(&self) -> u8 {
        self.bytes[TAIL_BYTES - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_length_leave_the_same_tail() {
        let bytes: Vec<u8> = (0..=255).collect();
        for piece in [1, 3, 63, 64, 65, 200, 256] {
            for end in [1, 10, 64, 65, 130, 256] {
                let mut tail = Tail::EMPTY;
                for part in bytes[..end].chunks(piece) {
                    tail.push(part);
                }
                assert_eq!(tail.crc(), crc32fast::hash(&bytes[end.saturating_sub(64)..end]));
                assert_eq!(tail.last(), bytes[end - 1]);
            }
        }
    }
}
