//! Finding delimiters: most fields of a line are short and end before a search over vectors has begun, so that the first
//! bytes are looked at eight at a time, in a register.

use memchr::memmem::Finder;

/// How far is looked in registers.
const NEAR: usize = 32;

/// A byte of 1 in each place.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The highest bit of each byte.
const HIGHS: u64 = ONES << 7;

/// The highest bit of each byte that is the same in both; all other bits are 0.
#[inline]
fn same_bytes(one: u64, other: u64) -> u64 {
    let differs = one ^ other;
    !(((differs & !HIGHS) + !HIGHS) | differs | !HIGHS)
}

/// The eight bytes from `at` on, the first one lowest.
#[inline]
fn block(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// The first occurrence of a byte.
#[inline]
pub(super) fn find_byte(byte: u8, text: &[u8]) -> Option<usize> {
    let wanted = ONES * u64::from(byte);
    let mut at = 0;
    while at < NEAR {
        let Some(block) = block(text, at) else {
            let rest = &text[at..];
            return rest.iter().position(|found| *found == byte).map(|found| at + found);
        };
        let same = same_bytes(block, wanted);
        if same != 0 {
            return Some(at + same.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr::memchr(byte, &text[at..]).map(|found| at + found)
}

/// A text of at least two bytes that is looked for.
#[derive(Clone, Debug)]
pub(super) struct Needle {
    finder: Finder<'static>,
    /// Its first byte in each place, and its second one.
    starts: [u64; 2],
    /// Its first eight bytes, with zeros behind a shorter one, and which bits of them are its own.
    head: u64,
    mask: u64,
}

impl Needle {
    /// # Panics
    /// If it has less than two bytes.
    pub(super) fn new(text: &[u8]) -> Self {
        let starts = [text[0], text[1]].map(|byte| ONES * u64::from(byte));
        let (mut head, mut mask) = ([0; 8], [0; 8]);
        for ((place, own), byte) in head.iter_mut().zip(&mut mask).zip(text) {
            (*place, *own) = (*byte, u8::MAX);
        }
        let finder = Finder::new(text).into_owned();
        Self { finder, starts, head: u64::from_le_bytes(head), mask: u64::from_le_bytes(mask) }
    }

    /// What is looked for.
    pub(super) fn text(&self) -> &[u8] {
        self.finder.needle()
    }

    #[inline]
    fn is_at(&self, text: &[u8], at: usize) -> bool {
        match block(text, at) {
            Some(block) if block & self.mask != self.head => false,
            Some(_) if self.text().len() <= 8 => true,
            _ => text[at..].starts_with(self.text()),
        }
    }

    /// The first occurrence.
    #[inline]
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < NEAR {
            let Some((one, next)) = block(text, at).zip(block(text, at + 1)) else { break };
            let mut both = same_bytes(one, self.starts[0]) & same_bytes(next, self.starts[1]);
            while both != 0 {
                let found = at + both.trailing_zeros() as usize / 8;
                if self.is_at(text, found) {
                    return Some(found);
                }
                both &= both - 1;
            }
            at += 8;
        }
        self.finder.find(&text[at..]).map(|found| at + found)
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

    proptest! {
        #[test]
        fn a_byte_is_found_where_it_is(text in texts(80), byte in prop_oneof![b'a'..=b'd', Just(0), Just(0x80)]) {
            prop_assert_eq!(find_byte(byte, &text), text.iter().position(|found| *found == byte));
        }

        #[test]
        fn a_text_is_found_where_it_begins(text in texts(80), needle in texts(11), from in 0..70_usize) {
            let own = text.get(from..(from + needle.len()).min(text.len())).unwrap_or_default();
            for wanted in [&needle[..], own].into_iter().filter(|wanted| wanted.len() > 1) {
                let place = text.windows(wanted.len()).position(|window| window == wanted);
                prop_assert_eq!(Needle::new(wanted).find(&text), place);
            }
        }
    }
}
