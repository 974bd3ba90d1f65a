//! How often each symbol comes in a segment.

use crate::matcher::Sequence;
use crate::symbols::{COPIES, COPY_MAX, COPY_MIN, DISTANCES, END, LITERALS, distance};

/// Counts of symbols.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) literals: [u32; LITERALS],
    pub(crate) distances: [u32; DISTANCES],
    /// Extra bits.
    pub(crate) extra: u64,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self { literals: [0; LITERALS], distances: [0; DISTANCES], extra: 0 }
    }

    /// Those of a segment. If it is long, of a part of its sequences, in proportion.
    pub(crate) fn take(&mut self, text: &[u8], sequences: &[Sequence]) {
        *self = Self::new();
        let whole = sequences.len() < 4 * SAMPLE;
        let mut rest = text;
        for group in sequences.chunks(4 * SAMPLE) {
            let counted = if whole { group } else { &group[..group.len().min(SAMPLE)] };
            for sequence in counted {
                let (literals, behind) = rest.split_at(sequence.literals as usize);
                for &byte in literals {
                    self.literals[byte as usize] += 1;
                }
                if sequence.length > 0 {
                    self.copy(sequence);
                    rest = &behind[sequence.length as usize..];
                }
            }
            let skipped: u32 = group[counted.len()..].iter().map(|s| s.literals + s.length).sum();
            rest = &rest[skipped as usize..];
        }
        if !whole {
            for count in self.literals.iter_mut().chain(&mut self.distances) {
                *count *= 4;
            }
            self.extra *= 4;
        }
        self.literals[END] = 1;
    }

    /// Bits that no codes can go below, about.
    pub(crate) fn ideal(&self) -> u64 {
        entropy(&self.literals) + entropy(&self.distances) + self.extra
    }

    #[inline(always)]
    fn copy(&mut self, sequence: &Sequence) {
        let (symbol, bits, _) = distance(sequence.distance);
        let copies = pieces(sequence.length as usize, &mut |length| {
            let copy = COPIES[length];
            self.literals[copy as usize & 0xffff] += 1;
            self.extra += u64::from(copy >> 16 & 0xff);
        });
        self.distances[symbol] += copies;
        self.extra += u64::from(bits * copies);
    }
}

/// Sequences of which those behind them, three times as many, are taken to be the same.
const SAMPLE: usize = 64;

/// Cuts a copy into lengths that have a code; returns how many.
#[inline(always)]
pub(crate) fn pieces(length: usize, each: &mut impl FnMut(usize)) -> u32 {
    let mut left = length;
    let mut count = 1;
    while left > COPY_MAX {
        // The rest after the last whole one must have a code too.
        let piece = if left < COPY_MAX + COPY_MIN { COPY_MAX - COPY_MIN } else { COPY_MAX };
        each(piece);
        left -= piece;
        count += 1;
    }
    each(left);
    count
}

/// Bits of symbols of which each comes so often, if its code had the best length, in fractions of bits.
fn entropy(counts: &[u32]) -> u64 {
    let all: u32 = counts.iter().sum();
    let each: u64 = counts.iter().map(|&count| u64::from(count) * u64::from(log(count))).sum();
    (u64::from(all) * u64::from(log(all))).saturating_sub(each) >> 16
}

/// The logarithm to base 2 in 65536ths, off by 0.01 at most; 0 for 0.
fn log(value: u32) -> u32 {
    if value < 2 {
        return 0;
    }
    let whole = value.ilog2();
    let part = ((u64::from(value) << 16) >> whole) as u32 - 65_536;
    // log2(1 + x) is about x + 0.344 x (1 - x).
    let bend = ((u64::from(part) * u64::from(65_536 - part)) >> 16) as u32;
    (whole << 16) + part + ((u64::from(bend) * 22_525) >> 16) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_near_enough() {
        for value in (1..5_000).chain([1 << 20, (1 << 20) + 77_777, u32::MAX]) {
            let found = f64::from(log(value)) / 65_536.0;
            assert!((found - f64::from(value).log2()).abs() < 0.01, "{value}: {found}");
        }
    }

    #[test]
    fn long_copies_are_cut_into_lengths_that_have_codes() {
        for length in 3..5_000 {
            let mut cut = Vec::new();
            let count = pieces(length, &mut |piece| cut.push(piece));
            assert_eq!(cut.len(), count as usize);
            assert_eq!(cut.iter().sum::<usize>(), length);
            assert!(cut.iter().all(|piece| (COPY_MIN..=COPY_MAX).contains(piece)), "{cut:?}");
        }
    }
}
