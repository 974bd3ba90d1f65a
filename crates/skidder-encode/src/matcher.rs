//! Finds what repeats: a text becomes runs of literals, each followed by a copy of earlier bytes.

use crate::load::{load, load32, same_bytes, same32};

/// Base-2 logarithm of the places of the table, 16 KiB: half of a core's fastest cache.
const TABLE_BITS: u32 = 13;
/// Bytes that are looked up together. Shorter repetitions cost about as many bits as their
/// literals, and more time.
const KEY_BYTES: usize = 6;
/// The rest of a text when it is no longer looked at.
const MARGIN: usize = 32;
/// Base-2 logarithm of the misses in a row after which every second position is skipped, then two of three, …
const PATIENCE_BITS: u32 = 3;

/// How far a copy may go on behind the end of a segment. If it was cut there, the next segment
/// would begin in the middle of what was copied, where nothing is remembered.
pub(crate) const CROSSING_BYTES_MAX: usize = 32 << 10;
/// Bytes that are skipped behind a copy if the same distance goes on behind them.
const SKIP_MAX: u32 = 16;
/// Behind the beginning of a copy that is at least so long, more positions are remembered: the next
/// time, what is before it may end elsewhere.
const REMEMBERED_BYTES_MIN: usize = 16;

/// Literals, then a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// Bytes that are written as they are.
    pub(crate) literals: u32,
    /// Bytes of the copy; 0 at the end of a segment that ends with literals.
    pub(crate) length: u32,
    /// How far back they are.
    pub(crate) distance: u32,
}

/// Remembers where keys were seen last.
#[derive(Debug)]
pub(crate) struct Matcher {
    /// The low bits of positions in all that was given. They need not be forgotten: what is found
    /// is compared in any case.
    table: Box<[u16; 1 << TABLE_BITS]>,
    /// Those of where the text begins that is looked at.
    origin: u16,
    /// The length of that text.
    length: usize,
}

impl Matcher {
    pub(crate) fn new() -> Self {
        Self { table: Box::new([0; 1 << TABLE_BITS]), origin: 0, length: 0 }
    }

    /// Another text is looked at, of which the first `known` bytes are the last of the one before.
    pub(crate) fn begin(&mut self, text: &[u8], known: usize) {
        self.origin = self.origin.wrapping_add(self.length.wrapping_sub(known) as u16);
        self.length = text.len();
    }

    /// Appends the sequences from `start` to `end`, or to where the copy ends that crosses it: at most
    /// [`CROSSING_BYTES_MAX`] behind. Copies come from anywhere in `text` before. Returns the end.
    pub(crate) fn run(
        &mut self,
        text: &[u8],
        start: usize,
        end: usize,
        sequences: &mut Vec<Sequence>,
    ) -> usize {
        let text = &text[..text.len().min(end + CROSSING_BYTES_MAX)];
        // What the table says of the beginning may be before it.
        let near = end.min(WRAP).max(start);
        let anchor = self.part::<true>(text, start, start, near, sequences);
        let anchor = self.part::<false>(text, anchor, near, end, sequences);
        if anchor < end {
            sequences.push(Sequence { literals: (end - anchor) as u32, length: 0, distance: 0 });
        }
        anchor.max(end)
    }

    /// Sequences that begin in `text[start..end]`, of which the first has its literals from `anchor`; returns
    /// where the next begins.
    #[inline(always)]
    fn part<const NEAR: bool>(
        &mut self,
        text: &[u8],
        anchor: usize,
        start: usize,
        end: usize,
        sequences: &mut Vec<Sequence>,
    ) -> usize {
        let limit = end.min(text.len().saturating_sub(MARGIN));
        let mut anchor = anchor;
        let mut position = start.max(anchor);
        while let Some((found, distance)) = self.find::<NEAR>(text, position, limit) {
            let mut at = found;
            if !NEAR || found - distance >= 8 {
                let differ = load(text, at - 8) ^ load(text, at - 8 - distance);
                at -= (differ.leading_zeros() as usize / 8).min(at - anchor);
            }
            let mut length = found - at + common(text, found, distance);
            loop {
                sequences.push(Sequence {
                    literals: (at - anchor) as u32,
                    length: length as u32,
                    distance: distance as u32,
                });
                at += length;
                anchor = at;
                if at >= limit {
                    return anchor;
                }
                if length >= REMEMBERED_BYTES_MIN {
                    let second = at - length + 1;
                    let now = load(text, second);
                    for behind in 0..3 {
                        self.remember(now >> (8 * behind), second + behind);
                    }
                }
                let now = load(text, at - 2);
                self.remember(now, at - 2);
                // Often a few digits differ, and the same goes on behind them.
                let same = same32(load32(text, at), load32(text, at - distance));
                let run = same & (same >> 1);
                let run = run & (run >> 2);
                let skip = run.trailing_zeros();
                if skip > SKIP_MAX {
                    break;
                }
                self.remember(now >> 16, at);
                at += skip as usize;
                length = common(text, at, distance);
            }
            position = at;
        }
        anchor
    }

    /// The key at the beginning of `bytes` is at `position`.
    #[inline(always)]
    fn remember(&mut self, bytes: u64, position: usize) {
        self.table[place(bytes)] = self.origin.wrapping_add(position as u16);
    }

    /// The next position at or behind `position` whose key was seen, and how far back.
    #[inline(always)]
    fn find<const NEAR: bool>(
        &mut self,
        text: &[u8],
        position: usize,
        limit: usize,
    ) -> Option<(usize, usize)> {
        let mut position = position;
        let mut misses = 1_usize << PATIENCE_BITS;
        while position < limit {
            let now = load(text, position);
            let slot = &mut self.table[place(now)];
            // One less than the distance; 65535 for the position itself.
            let here = self.origin.wrapping_add(position as u16);
            let over = here.wrapping_sub(*slot).wrapping_sub(1);
            *slot = here;
            let distance = over as usize + 1;
            let mut wrong = u64::from(over >> 15);
            let from = if NEAR {
                wrong |= u64::from(distance > position);
                position.saturating_sub(distance)
            } else {
                position - distance
            };
            let differ = (load(text, from) ^ now) << (64 - 8 * KEY_BYTES);
            if differ | wrong == 0 {
                return Some((position, distance));
            }
            position += misses >> PATIENCE_BITS;
            misses += 1;
        }
        None
    }
}

/// Positions are kept modulo this.
const WRAP: usize = 1 << 16;
/// Where the key at the beginning of these bytes has its place.
#[inline(always)]
fn place(bytes: u64) -> usize {
    let key = bytes << (64 - 8 * KEY_BYTES);
    (key.wrapping_mul(0x9e37_79b1_85eb_ca87) >> (64 - TABLE_BITS)) as usize
}

/// How many bytes at `at` are the same as `distance` before them, up to the end of the text.
#[inline(always)]
fn common(text: &[u8], at: usize, distance: usize) -> usize {
    let here = &text[at..];
    let there = &text[at - distance..];
    let mut length = 0;
    let blocks = here.as_chunks::<32>().0.iter().zip(there.as_chunks::<32>().0);
    for (one, other) in blocks.take(INLINE_BYTES / 32) {
        let same = same32(one, other);
        if same != u32::MAX {
            return length + same.trailing_ones() as usize;
        }
        length += 32;
    }
    length + same_bytes(&here[length..], &there[length..])
}

/// Bytes that are compared before a call for the rest: many copies are short.
const INLINE_BYTES: usize = 64;
