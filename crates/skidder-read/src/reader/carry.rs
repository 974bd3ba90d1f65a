//! Decompressed bytes that are not part of a batch yet.
//!
//! A decoder gives more text than one batch has room for when lines are short. What is left stays here and is
//! lent to the buffers of the next turns piece by piece: each byte is copied about twice, however many turns it takes.

/// More memory than this is not kept for a short rest: the first turn of a source, which does not know how long its lines
/// are, leaves a long one.
const KEPT_BYTES_MAX: usize = 32 << 10;

/// Text between the reader's offset and the position of its decoder.
#[derive(Debug, Default)]
pub(super) struct Carry {
    bytes: Vec<u8>,
    /// Bytes at the front that were consumed.
    start: usize,
    /// Bytes behind `start` that are in the buffer of this turn as well.
    lent: usize,
}

impl Carry {
    /// Bytes that were not consumed.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Bytes that were not consumed and are not in the buffer of this turn.
    pub(super) fn unlent(&self) -> usize {
        self.len() - self.lent
    }

    /// Begins a turn with an empty buffer.
    pub(super) fn begin_turn(&mut self) {
        self.lent = 0;
    }

    /// Copies as much as fits into the unfilled part of the turn's buffer; returns the number of bytes.
    pub(super) fn lend(&mut self, buffer: &mut [u8]) -> usize {
        let from = self.start + self.lent;
        let count = buffer.len().min(self.bytes.len() - from);
        buffer[..count].copy_from_slice(&self.bytes[from..from + count]);
        self.lent += count;
        #[cfg(test)]
        watched::add(count, self.bytes.len());
        count
    }

    /// Ends a turn: the first `consumed` bytes of its `buffer` are done with, the others are kept.
    pub(super) fn consume(&mut self, buffer: &[u8], consumed: usize) {
        if buffer.len() == self.lent {
            self.start += consumed;
        } else {
            let rest = &buffer[consumed..];
            if self.bytes.capacity() > KEPT_BYTES_MAX.max(4 * rest.len()) {
                self.bytes = Vec::new();
            }
            self.bytes.clear();
            self.bytes.extend_from_slice(rest);
            self.start = 0;
            #[cfg(test)]
            watched::add(self.bytes.len(), self.bytes.len());
        }
        self.lent = 0;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
    }

    /// Forgets everything, and gives the memory back.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// What all carries of a thread did.
#[cfg(test)]
pub(super) mod watched {
    use std::cell::Cell;

    thread_local! {
        static READ: Cell<usize> = const { Cell::new(0) };
        static COPIED: Cell<usize> = const { Cell::new(0) };
        static HELD_MAX: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn add(copied: usize, held: usize) {
        COPIED.set(COPIED.get() + copied);
        HELD_MAX.set(HELD_MAX.get().max(held));
    }

    pub(crate) fn read(bytes: usize) {
        READ.set(READ.get() + bytes);
    }

    /// Since the last call: bytes that were read or decoded, those that were copied in and out, and the most that one carry
    /// held.
    pub(crate) fn take() -> (usize, usize, usize) {
        (READ.take(), COPIED.take(), HELD_MAX.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_out_once_whatever_is_lent_and_consumed() {
        let mut carry = Carry::default();
        carry.consume(b"abcdefgh", 2);
        assert_eq!((carry.len(), carry.unlent()), (6, 6));
        carry.begin_turn();
        let mut buffer = [0; 4];
        assert_eq!(carry.lend(&mut buffer[..3]), 3);
        assert_eq!(carry.lend(&mut buffer[3..]), 1);
        assert_eq!((&buffer, carry.unlent()), (b"cdef", 2));
        // Only lent bytes are in the buffer: the rest stays behind them.
        carry.consume(&buffer, 3);
        assert_eq!(carry.len(), 3);
        carry.begin_turn();
        let mut buffer = *b"------";
        assert_eq!(carry.lend(&mut buffer), 3);
        // The decoder gave three more.
        buffer[3..].copy_from_slice(b"ijk");
        carry.consume(&buffer, 4);
        carry.begin_turn();
        let mut buffer = [0; 8];
        assert_eq!(carry.lend(&mut buffer), 2);
        assert_eq!(&buffer[..2], b"jk");
        carry.consume(&buffer[..2], 2);
        assert_eq!((carry.len(), carry.bytes.len()), (0, 0));
    }
}
