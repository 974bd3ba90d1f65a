//! The compressed bytes of a file, as the machines of the formats take them: a few for a header, a
//! piece for a decoder, or single bits.

use super::Stop;
use crate::source::{read_full, read_some};
use skidder_os::File;

/// The longest piece that is read at once and whole.
pub(super) const PEEK_BYTES_MAX: usize = 64;

/// A file with a place in it. What is behind the place has been consumed.
pub(super) struct Input<'a> {
    file: &'a dyn File,
    scratch: &'a mut [u8],
    /// Where `scratch` begins in the file, and how much of it is filled.
    cached: u64,
    filled: usize,
    offset: u64,
}

impl<'a> Input<'a> {
    pub(super) fn new(file: &'a dyn File, scratch: &'a mut [u8], offset: u64) -> Self {
        Self { file, scratch, cached: offset, filled: 0, offset }
    }

    /// Bytes consumed.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Where what was last read of the file ends.
    pub(super) fn seen(&self) -> u64 {
        self.cached + self.filled as u64
    }

    /// Moves on; also beyond what was looked at.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.offset += bytes;
    }

    /// What there is at `at`: at least one byte, or none at the end of the file.
    pub(super) fn piece_at(&mut self, at: u64) -> Result<&[u8], Stop> {
        let end = self.cached + self.filled as u64;
        if at < self.cached || at >= end {
            self.filled = 0;
            self.filled = read_some(self.file, self.scratch, at).map_err(Stop::Read)?;
            self.cached = at;
        }
        Ok(&self.scratch[(at - self.cached) as usize..self.filled])
    }

    /// The next bytes: between one and `max` of them, or none at the end of the file.
    pub(super) fn piece(&mut self, max: usize) -> Result<&[u8], Stop> {
        let piece = self.piece_at(self.offset)?;
        Ok(&piece[..piece.len().min(max)])
    }

    /// Whether the file has no more.
    pub(super) fn is_at_end(&mut self) -> Result<bool, Stop> {
        Ok(self.piece(1)?.is_empty())
    }

    /// The next `N` bytes.
    pub(super) fn peek<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut bytes = [0; N];
        self.peek_at(self.offset, &mut bytes)?;
        Ok(bytes)
    }

    /// The next `N` bytes; none if the first of them is wrong, so that the caller does not wait for
    /// the others. Not at the end of the file.
    pub(super) fn peek_if<const N: usize>(
        &mut self,
        is_right: impl Fn(u8) -> bool,
    ) -> Result<Option<[u8; N]>, Stop> {
        match self.piece(1)? {
            [first] if !is_right(*first) => Ok(None),
            _ => self.peek().map(Some),
        }
    }

    /// Fills `bytes` from what is at `at`, or says that there is less.
    pub(super) fn peek_at(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), Stop> {
        let piece = self.piece_at(at)?;
        if let Some(piece) = piece.get(..bytes.len()) {
            bytes.copy_from_slice(piece);
            return Ok(());
        }
        match read_full(self.file, bytes, at).map_err(Stop::Read)? {
            count if count == bytes.len() => Ok(()),
            _ => Err(Stop::Short),
        }
    }
}

/// Bits from the highest of each byte to the lowest, as bzip2 has them.
pub(super) struct Bits<'a, 'b> {
    input: &'a mut Input<'b>,
    /// Where the next byte comes from.
    at: u64,
    /// The next bits, from the highest.
    held: u64,
    count: u32,
}

impl<'a, 'b> Bits<'a, 'b> {
    /// From the place of `input` on, without the first `skipped` bits (less than 8) of its next byte.
    pub(super) fn new(input: &'a mut Input<'b>, skipped: u32) -> Result<Self, Stop> {
        let at = input.offset();
        let mut bits = Self { input, at, held: 0, count: 0 };
        bits.take(skipped)?;
        Ok(bits)
    }

    /// Holds 32 bits at least, or what the file has.
    fn refill(&mut self) -> Result<(), Stop> {
        while self.count < 32 {
            let piece = self.input.piece_at(self.at)?;
            if let Some(word) = piece.first_chunk::<4>() {
                let word = u64::from(u32::from_be_bytes(*word));
                self.held |= word << (32 - self.count);
                self.count += 32;
                self.at += 4;
                continue;
            }
            let Some(byte) = piece.first() else { return Ok(()) };
            self.held |= u64::from(*byte) << (56 - self.count);
            self.count += 8;
            self.at += 1;
        }
        Ok(())
    }

    /// The next 32 bits without consuming them; what the file does not have is zero.
    #[inline]
    pub(super) fn look(&mut self) -> Result<u32, Stop> {
        if self.count < 32 {
            self.refill()?;
        }
        Ok((self.held >> 32) as u32)
    }

    /// Consumes `bits` (at most 32) that were looked at.
    #[inline]
    pub(super) fn skip(&mut self, bits: u32) -> Result<(), Stop> {
        if bits > self.count {
            return Err(Stop::Short);
        }
        self.held <<= bits;
        self.count -= bits;
        Ok(())
    }

    /// The next `bits` bits, at most 32.
    #[inline]
    pub(super) fn take(&mut self, bits: u32) -> Result<u32, Stop> {
        let word = u64::from(self.look()?);
        self.skip(bits)?;
        Ok((word >> (32 - bits)) as u32)
    }

    /// Where it stands: a byte, and how many of its highest bits are consumed (less than 8).
    pub(super) fn position(&self) -> (u64, u32) {
        let bits = self.at * 8 - u64::from(self.count);
        (bits / 8, (bits % 8) as u32)
    }

    /// Consumes what was taken; returns the bits of the next byte that are consumed too.
    pub(super) fn commit(self) -> u32 {
        let (offset, bits) = self.position();
        self.input.offset = offset;
        bits
    }
}
