//! Sets of keys that answer "no" for certain and "perhaps" quickly: 256 bits.

/// The place of a key in a [`KeyFilter`]: one of 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyBit(u8);

impl KeyBit {
    /// The place of a key.
    #[inline]
    pub fn of(key: &[u8]) -> Self {
        let (Some(&first), Some(&last)) = (key.first(), key.last()) else { return Self(0) };
        Self((usize::from(first) * 37 + usize::from(last) * 11 + key.len() * 73) as u8)
    }

    #[inline]
    fn word(self) -> usize {
        usize::from(self.0 >> 6)
    }

    #[inline]
    fn bit(self) -> u64 {
        1 << (self.0 & 63)
    }
}

/// A set of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFilter([u64; 4]);

impl KeyFilter {
    /// No keys.
    pub const NONE: Self = Self([0; 4]);
    /// Perhaps any key.
    pub const ANY: Self = Self([u64::MAX; 4]);

    /// Adds a key.
    #[inline]
    pub fn add(&mut self, key: KeyBit) {
        self.0[key.word()] |= key.bit();
    }

    /// Whether a key may be in the set.
    #[inline]
    pub fn may_have(&self, key: KeyBit) -> bool {
        self.0[key.word()] & key.bit() != 0
    }

    /// Whether a key may be in the set that another key begins with, and a dot behind it.
    #[inline]
    pub(crate) fn may_have_around(&self, key: &[u8]) -> bool {
        let dots = key.iter().enumerate().filter(|(_, byte)| **byte == b'.');
        dots.map(|(at, _)| &key[..at]).any(|around| self.may_have(KeyBit::of(around)))
    }

    /// Whether a key may be in both sets.
    #[inline]
    pub fn may_share(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).any(|(ours, theirs)| ours & theirs != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_may_be_there_and_most_else_is_not() {
        let mut filter = KeyFilter::NONE;
        let mut other = KeyFilter::NONE;
        for key in ["agent", "host", "log", ""] {
            assert!(!filter.may_have(KeyBit::of(key.as_bytes())));
            filter.add(KeyBit::of(key.as_bytes()));
            assert!(filter.may_have(KeyBit::of(key.as_bytes())));
        }
        other.add(KeyBit::of(b"message"));
        assert!(!filter.may_share(&other) && filter.may_share(&KeyFilter::ANY));
        other.add(KeyBit::of(b"log"));
        assert!(filter.may_share(&other) && !filter.may_share(&KeyFilter::NONE));
    }
}
