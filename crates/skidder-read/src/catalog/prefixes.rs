//! Whether a source may begin with the first bytes of a file, for every length in use.
//!
//! A fingerprint is expensive, and with short files nearly every length is in use. A cheap hash of the same
//! bytes excludes most lengths; the fingerprint is made only for the others.

use foldhash::HashMap;

/// Bits of the filter for each prefix: about one answer in twenty is a wrong yes, which the map corrects.
const BITS_EACH: usize = 16;

/// A cheap hash of some bytes, one byte after the other (FNV-1a,
/// <http://www.isthe.com/chongo/tech/comp/fnv/>).
#[derive(Clone, Copy, Debug)]
pub(super) struct Trace {
    state: u64,
    len: usize,
}

impl Trace {
    pub(super) fn new() -> Self {
        Self { state: 0xcbf2_9ce4_8422_2325, len: 0 }
    }

    /// Extends the hash to the first `len` of `bytes`; it covers the beginning of them so far.
    pub(super) fn extend(&mut self, bytes: &[u8], len: usize) {
        for byte in &bytes[self.len..len] {
            self.state = (self.state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.len = len;
    }

    /// The hash; it depends on the number of bytes too.
    pub(super) fn number(self) -> u64 {
        let mixed = self.state ^ (self.len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    /// The hash of all of `bytes`.
    pub(super) fn of(bytes: &[u8]) -> u64 {
        let mut trace = Self::new();
        trace.extend(bytes, bytes.len());
        trace.number()
    }
}

/// The hashes of the prefixes of sources, and how many sources have each.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    counts: HashMap<u64, u32>,
    /// A filter before the map, small enough for the cache; removed hashes are still in it.
    bits: Vec<u64>,
    /// Hashes in the filter.
    filtered: usize,
}

impl Prefixes {
    pub(super) fn insert(&mut self, number: u64) {
        *self.counts.entry(number).or_default() += 1;
        self.filtered += 1;
        if self.filtered * BITS_EACH > self.bits.len() * 64 {
            let words = (self.counts.len() * BITS_EACH * 2 / 64).next_power_of_two().max(16);
            self.bits = vec![0; words];
            self.filtered = self.counts.len();
            for &number in self.counts.keys() {
                set(&mut self.bits, number);
            }
        } else {
            set(&mut self.bits, number);
        }
    }

    pub(super) fn remove(&mut self, number: u64) {
        if let Some(count) = self.counts.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&number);
            }
        }
    }

    /// Whether a source has a prefix with this hash.
    pub(super) fn has(&self, number: u64) -> bool {
        let (word, bit) = place(&self.bits, number);
        self.bits.get(word).is_some_and(|word| word & bit != 0) && self.counts.contains_key(&number)
    }
}

/// The word and the bit of a number; the number of words is a power of two, or zero.
fn place(bits: &[u64], number: u64) -> (usize, u64) {
    ((number >> 6) as usize & bits.len().wrapping_sub(1), 1 << (number & 63))
}

fn set(bits: &mut [u64], number: u64) {
    let (word, bit) = place(bits, number);
    bits[word] |= bit;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_in_pieces_is_that_of_the_whole() {
        let bytes: Vec<u8> = (0..200).collect();
        let mut trace = Trace::new();
        for len in 0..=bytes.len() {
            trace.extend(&bytes, len);
            assert_eq!(trace.number(), Trace::of(&bytes[..len]));
        }
        assert_ne!(Trace::of(b"\0"), Trace::of(b""));
    }

    #[test]
    fn prefixes_are_there_until_the_last_is_removed() {
        let mut prefixes = Prefixes::default();
        assert!(!prefixes.has(Trace::of(b"a")));
        for number in 0..5_000_u32 {
            prefixes.insert(Trace::of(&number.to_le_bytes()));
        }
        prefixes.insert(Trace::of(&7_u32.to_le_bytes()));
        for number in 0..10_000_u32 {
            assert_eq!(prefixes.has(Trace::of(&number.to_le_bytes())), number < 5_000);
        }
        prefixes.remove(Trace::of(&7_u32.to_le_bytes()));
        assert!(prefixes.has(Trace::of(&7_u32.to_le_bytes())));
        prefixes.remove(Trace::of(&7_u32.to_le_bytes()));
        assert!(!prefixes.has(Trace::of(&7_u32.to_le_bytes())));
    }
}
