//! Finding delimiters: their first bytes are looked for in blocks of 64 bytes, of which each is looked at once for each
//! byte, as most fields of a line are shorter than a search over vectors takes to begin.

use crate::lane::{self, LANE};
use memchr::memmem::Finder;

/// Bytes of a block: a bit of a mask for each.
const BLOCK: usize = 64;

/// How many bytes are remembered at once.
const KNOWN: usize = 4;

/// Blocks that are looked at; what is farther away is left to a search that reads faster.
const NEAR: usize = 4;

/// No block.
const NONE: u32 = u32::MAX;

/// Where some bytes are in a text.
pub(super) struct Places<'a> {
    text: &'a [u8],
    known: [Known; KNOWN],
}

/// Where a byte is in one block.
#[derive(Clone, Copy)]
struct Known {
    mask: u64,
    block: u32,
    byte: u8,
}

impl<'a> Places<'a> {
    #[inline]
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, known: [Known { mask: 0, block: NONE, byte: 0 }; KNOWN] }
    }

    /// The first occurrence of a text from `from` on.
    #[inline(always)]
    pub(super) fn find(&mut self, needle: &Needle, from: usize) -> Option<usize> {
        let known = &self.known[usize::from(needle.first) % KNOWN];
        if known.block == (from / BLOCK) as u32 && known.byte == needle.first {
            let mask = known.mask & u64::MAX << (from % BLOCK);
            let at = from / BLOCK * BLOCK + mask.trailing_zeros() as usize;
            if mask != 0 && needle.is_at(self.text, at) {
                return Some(at);
            }
        }
        self.look(needle, from)
    }

    /// The same, with a look at the text.
    #[inline(never)]
    fn look(&mut self, needle: &Needle, from: usize) -> Option<usize> {
        let first = from / BLOCK;
        let mut ahead = u64::MAX << (from % BLOCK);
        for block in first..first + NEAR {
            let mut mask = self.mask(needle.first, block) & ahead;
            while mask != 0 {
                let at = block * BLOCK + mask.trailing_zeros() as usize;
                if needle.is_at(self.text, at) {
                    return Some(at);
                }
                mask &= mask - 1;
            }
            if (block + 1) * BLOCK >= self.text.len() {
                return None;
            }
            ahead = u64::MAX;
        }
        let far = (first + NEAR) * BLOCK;
        needle.finder.find(&self.text[far..]).map(|found| far + found)
    }

    /// Where a byte is in a block; nothing behind the text.
    #[inline(always)]
    fn mask(&mut self, byte: u8, block: usize) -> u64 {
        let known = &mut self.known[usize::from(byte) % KNOWN];
        if known.block != block as u32 || known.byte != byte {
            let mask = mask_of(self.text, byte, block * BLOCK);
            *known = Known { mask, block: block as u32, byte };
        }
        known.mask
    }
}

/// Where a byte is in the block that begins at `start`; nothing behind the text.
#[inline]
fn mask_of(text: &[u8], byte: u8, start: usize) -> u64 {
    let rest = text.get(start..).unwrap_or_default();
    if let Some(block) = rest.first_chunk() {
        return same_bytes(block, byte);
    }
    // The last bytes of the text, of which the first are in the block before.
    if let Some(block) = text.last_chunk() {
        let others = BLOCK - rest.len();
        return same_bytes(block, byte).checked_shr(others as u32).unwrap_or(0);
    }
    mask_of_short(rest, byte)
}

/// The same of a text that is shorter than a block.
#[cold]
fn mask_of_short(rest: &[u8], byte: u8) -> u64 {
    let mut block = [0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    same_bytes(&block, byte) & ((1 << rest.len()) - 1)
}

/// A bit for each byte of a block that is this one, the lowest for the first.
#[inline]
fn same_bytes(block: &[u8; BLOCK], byte: u8) -> u64 {
    let lanes = block.as_chunks::<LANE>().0.iter().zip([0, LANE, 2 * LANE, 3 * LANE]);
    lanes.fold(0, |mask, (bytes, at)| mask | u64::from(lane::same(bytes, byte)) << at)
}

/// A text that is looked for.
#[derive(Clone, Debug)]
pub(super) struct Needle {
    first: u8,
    len: usize,
    /// Its first eight bytes, with zeros behind a shorter one, and which bits of them are its own.
    head: u64,
    mask: u64,
    finder: Box<Finder<'static>>,
}

impl Needle {
    /// # Panics
    /// If it is empty.
    pub(super) fn new(text: &[u8]) -> Self {
        let (mut head, mut mask) = ([0; 8], [0; 8]);
        for ((place, own), byte) in head.iter_mut().zip(&mut mask).zip(text) {
            (*place, *own) = (*byte, u8::MAX);
        }
        let finder = Box::new(Finder::new(text).into_owned());
        let (head, mask) = (u64::from_le_bytes(head), u64::from_le_bytes(mask));
        Self { first: text[0], len: text.len(), head, mask, finder }
    }

    /// What is looked for.
    pub(super) fn text(&self) -> &[u8] {
        self.finder.needle()
    }

    /// Number of its bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether it is at a place where its first byte is.
    #[inline(always)]
    fn is_at(&self, text: &[u8], at: usize) -> bool {
        if self.len == 1 {
            return true;
        }
        match text.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(head) if u64::from_le_bytes(*head) & self.mask != self.head => false,
            Some(_) if self.len <= 8 => true,
            _ => self.is_long_at(text, at),
        }
    }

    #[cold]
    fn is_long_at(&self, text: &[u8], at: usize) -> bool {
        text.get(at..).is_some_and(|rest| rest.starts_with(self.text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Few different bytes, so that there is much that is almost right.
    fn texts(most: usize) -> impl Strategy<Value = Vec<u8>> {
        let byte =
            prop_oneof![4 => b'a'..=b'c', 1 => Just(0_u8), 1 => Just(0x80_u8), 1 => Just(0xff_u8)];
        proptest::collection::vec(byte, 0..most)
    }

    /// The same with much between.
    fn long_texts() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![3 => texts(80), 1 => (0..400_usize).prop_map(|len| vec![b'-'; len])];
        proptest::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
    }

    proptest! {
        /// One after the other, as a tokenizer does, in any order.
        #[test]
        fn texts_are_found_where_they_begin(
            text in long_texts(),
            asked in proptest::collection::vec((texts(11), any::<prop::sample::Index>(), any::<bool>(), 0..40_usize), 0..20)
        ) {
            let mut places = Places::new(&text);
            let mut from = 0;
            for (wanted, start, own, step) in asked {
                from = (from + step).min(text.len());
                let start = start.index(text.len() + 1);
                let own_text = &text[start..(start + wanted.len()).min(text.len())];
                let wanted = if own { own_text } else { &wanted[..] };
                if wanted.is_empty() {
                    continue;
                }
                let rest = &text[from..];
                let place = rest.windows(wanted.len()).position(|window| window == wanted);
                let place = place.map(|at| from + at);
                prop_assert_eq!(places.find(&Needle::new(wanted), from), place);
                from = place.unwrap_or(from);
            }
        }
    }
}
