//! Bits to bytes, the first in the lowest bit (RFC 1951, 3.1.1).

/// Writes into a slice that is known to be long enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits {
    waiting: u64,
    count: u32,
}

impl Bits {
    pub(crate) fn new() -> Self {
        Self { waiting: 0, count: 0 }
    }

    /// Adds `count` bits, 56 at most since the last [`Bits::flush`].
    #[inline(always)]
    pub(crate) fn add(&mut self, bits: u64, count: u32) {
        self.waiting |= bits << self.count;
        self.count += count;
    }

    /// Writes whole bytes at `at` and moves it; writes up to eight bytes behind.
    #[inline(always)]
    pub(crate) fn flush(&mut self, out: &mut [u8], at: &mut usize) {
        out[*at..*at + 8].copy_from_slice(&self.waiting.to_le_bytes());
        *at += (self.count >> 3) as usize;
        self.waiting >>= self.count & !7;
        self.count &= 7;
    }

    /// Fills the last byte with zeros.
    pub(crate) fn align(&mut self, out: &mut [u8], at: &mut usize) {
        self.count = self.count.next_multiple_of(8);
        self.flush(out, at);
    }
}
