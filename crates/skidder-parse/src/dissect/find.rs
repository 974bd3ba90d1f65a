//! Finding delimiters: where their first bytes are is noted for some blocks of 64 bytes at once, as
//! most fields of a line are shorter than a search over vectors takes to begin.

use crate::lane::{self, BLOCK};
use memchr::memmem::Finder;

/// First bytes whose places are noted. Delimiters that begin with others are searched for.
const FIRSTS: usize = 4;

/// Blocks that are noted at once. What is farther away is left to a search that reads faster.
const WINDOW: usize = 4;

/// What the delimiters of a tokenizer begin with.
#[derive(Clone, Debug, Default)]
pub(super) struct Firsts {
    bytes: [u8; FIRSTS],
    len: usize,
}

impl Firsts {
    /// The number of a byte, which is given one if there is any left; else one that nothing has.
    fn number(&mut self, byte: u8) -> usize {
        let known = self.bytes[..self.len].iter().position(|known| *known == byte);
        if known.is_none() && self.len < FIRSTS {
            self.bytes[self.len] = byte;
            self.len += 1;
            return self.len - 1;
        }
        known.unwrap_or(FIRSTS)
    }
}

/// Where the first bytes are in a text.
pub(super) struct Places<'a> {
    text: &'a [u8],
    firsts: &'a Firsts,
    /// For each of them, a bit for each byte of the blocks of the window.
    masks: [[u64; WINDOW]; FIRSTS],
    /// Its first block.
    window: usize,
}

impl<'a> Places<'a> {
    #[inline]
    pub(super) fn new(text: &'a [u8], firsts: &'a Firsts) -> Self {
        let mut places = Self { text, firsts, masks: [[0; WINDOW]; FIRSTS], window: 0 };
        places.look(0);
        places
    }

    /// The first occurrence of a text from `from` on.
    #[inline(always)]
    pub(super) fn find(&mut self, needle: &Needle, from: usize) -> Option<usize> {
        let mut block = (from / BLOCK).wrapping_sub(self.window);
        let Some(masks) = self.masks.get(needle.first) else { return self.search(needle, from) };
        let Some(mask) = masks.get(block) else { return self.find_behind(needle, from) };
        let mut mask = mask & u64::MAX << (from % BLOCK);
        loop {
            while mask == 0 {
                block += 1;
                match masks.get(block) {
                    Some(next) => mask = *next,
                    None => return self.search(needle, (self.window + WINDOW) * BLOCK),
                }
            }
            let at = (self.window + block) * BLOCK + mask.trailing_zeros() as usize;
            if needle.is_at(self.text, at) {
                return Some(at);
            }
            mask &= mask - 1;
        }
    }

    /// The same where `from` is not in the window.
    #[inline(never)]
    fn find_behind(&mut self, needle: &Needle, from: usize) -> Option<usize> {
        self.look(from / BLOCK);
        self.find(needle, from)
    }

    /// The same without the window.
    #[inline(never)]
    fn search(&self, needle: &Needle, from: usize) -> Option<usize> {
        let rest = self.text.get(from..)?;
        needle.finder.find(rest).map(|found| from + found)
    }

    /// The window begins at this block.
    #[inline(never)]
    fn look(&mut self, block: usize) {
        self.window = block;
        self.masks = [[0; WINDOW]; FIRSTS];
        let rest = self.text.get(block * BLOCK..).unwrap_or_default();
        let (blocks, last) = rest.as_chunks::<BLOCK>();
        let blocks = &blocks[..blocks.len().min(WINDOW)];
        let (bytes, masks) = (&self.firsts.bytes[..self.firsts.len], &mut self.masks);
        lane::same_each(blocks, bytes, masks, 0);
        if last.is_empty() || blocks.len() == WINDOW {
            return;
        }
        if let Some(end) = self.text.last_chunk::<BLOCK>() {
            // Of these the first are in the block before.
            lane::same_each(&[*end], bytes, masks, blocks.len());
            for mask in masks {
                mask[blocks.len()] >>= BLOCK - last.len();
            }
            return;
        }
        let mut padded = [0; BLOCK];
        padded[..last.len()].copy_from_slice(last);
        lane::same_each(&[padded], bytes, masks, 0);
        for mask in masks {
            mask[0] &= (1 << last.len()) - 1;
        }
    }
}

/// A text that is looked for.
#[derive(Clone, Debug)]
pub(super) struct Needle {
    /// The number of its first byte.
    first: usize,
    len: usize,
    /// Its first eight bytes, with zeros behind a shorter one, and which bits of them are its own.
    head: u64,
    mask: u64,
    finder: Box<Finder<'static>>,
}

impl Needle {
    /// # Panics
    /// If it is empty.
    pub(super) fn new(text: &[u8], firsts: &mut Firsts) -> Self {
        let (mut head, mut mask) = ([0; 8], [0; 8]);
        for ((place, own), byte) in head.iter_mut().zip(&mut mask).zip(text) {
            (*place, *own) = (*byte, u8::MAX);
        }
        let finder = Box::new(Finder::new(text).into_owned());
        let (head, mask) = (u64::from_le_bytes(head), u64::from_le_bytes(mask));
        Self { first: firsts.number(text[0]), len: text.len(), head, mask, finder }
    }

    /// The text to find.
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
            let asked: Vec<_> = asked.into_iter().map(|(wanted, start, own, step)| {
                let start = start.index(text.len() + 1);
                let own_text = &text[start..(start + wanted.len()).min(text.len())];
                (if own { own_text.to_vec() } else { wanted }, step)
            }).filter(|(wanted, _)| !wanted.is_empty()).collect();
            let mut firsts = Firsts::default();
            let needle = |(wanted, _): &(Vec<u8>, usize)| Needle::new(wanted, &mut firsts);
            let needles: Vec<_> = asked.iter().map(needle).collect();
            let mut places = Places::new(&text, &firsts);
            let mut from = 0;
            for ((wanted, step), needle) in asked.iter().zip(&needles) {
                from = (from + step).min(text.len());
                let rest = &text[from..];
                let place = rest.windows(wanted.len()).position(|window| window == wanted);
                let place = place.map(|at| from + at);
                prop_assert_eq!(places.find(needle, from), place);
                from = place.unwrap_or(from);
            }
        }
    }
}
