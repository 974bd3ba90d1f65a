//! Codes of a block, the head that describes them, and the writing of sequences with them.

use crate::bits::Bits;
use crate::codes;
use crate::counts::{Counts, pieces};
use crate::matcher::Sequence;
use crate::symbols::{COPIES, COPY_MAX, DISTANCES, END, LITERALS, distance};

/// In which order the lengths of the codes of lengths stand (RFC 1951, 3.2.7).
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// All bits for the first 0 to 4 of four places: a choice without a branch, which would be foreseen badly.
const FIRST: [[u32; 4]; 5] =
    [[0, 0, 0, 0], [!0, 0, 0, 0], [!0, !0, 0, 0], [!0, !0, !0, 0], [!0, !0, !0, !0]];

/// Codes of literals, copies and distances. Every symbol has one.
#[derive(Debug)]
pub(crate) struct Codes {
    literal_lengths: [u8; LITERALS],
    distance_lengths: [u8; DISTANCES],
    /// `bits | count << 24`
    literals: [u32; 256],
    end: u32,
    /// With the extra bits, by length.
    copies: Box<[u32; COPY_MAX + 1]>,
    /// `bits | count << 16`
    distances: [u32; 32],
    /// The head of a block with these codes: pairs of bits and their number.
    head: Vec<(u16, u8)>,
    head_bits: u64,
}

impl Codes {
    /// Those of RFC 1951, 3.2.6.
    pub(crate) fn fixed() -> Self {
        // Two more symbols have a code and are never written.
        let mut lengths = [8; LITERALS + 2];
        lengths[144..256].fill(9);
        lengths[256..280].fill(7);
        let mut fixed = Self::of_lengths(&lengths, [5; DISTANCES]);
        fixed.head = vec![(0b010, 3)];
        fixed.head_bits = 3;
        fixed
    }

    /// The best for these counts.
    pub(crate) fn of(counts: &Counts) -> Self {
        // What was not seen may come: it gets a long code.
        let mut weights = counts.literals;
        for weight in &mut weights {
            *weight = *weight * 16 + 1;
        }
        let mut literal_lengths = [0; LITERALS];
        codes::lengths(&weights, codes::LENGTH_MAX, &mut literal_lengths);
        let mut weights = counts.distances;
        for weight in &mut weights {
            *weight = *weight * 16 + 1;
        }
        let mut distance_lengths = [0; DISTANCES];
        codes::lengths(&weights, codes::LENGTH_MAX, &mut distance_lengths);
        let mut made = Self::of_lengths(&literal_lengths, distance_lengths);
        made.make_head();
        made
    }

    fn of_lengths(lengths: &[u8], distance_lengths: [u8; DISTANCES]) -> Self {
        let mut literals = [0; LITERALS + 2];
        codes::codes(lengths, &mut |symbol, bits| {
            literals[symbol] = u32::from(bits) | u32::from(lengths[symbol]) << 24;
        });
        let mut distances = [0; 32];
        codes::codes(&distance_lengths, &mut |symbol, bits| {
            distances[symbol] = u32::from(bits) | u32::from(distance_lengths[symbol]) << 16;
        });
        let mut copies = Box::new([0; COPY_MAX + 1]);
        for (length, copy) in copies.iter_mut().enumerate().skip(3) {
            let of = COPIES[length];
            let code = literals[of as usize & 0xffff];
            let (bits, count) = (code & 0xff_ffff, code >> 24);
            *copy = bits | (of >> 24) << count | (count + (of >> 16 & 0xff)) << 24;
        }
        Self {
            literal_lengths: lengths[..LITERALS].try_into().expect("as many"),
            distance_lengths,
            literals: literals[..256].try_into().expect("as many"),
            end: literals[END],
            copies,
            distances,
            head: Vec::new(),
            head_bits: 0,
        }
    }

    /// Lengths of the codes, themselves coded (RFC 1951, 3.2.7).
    fn make_head(&mut self) {
        let mut all = [0; LITERALS + DISTANCES];
        all[..LITERALS].copy_from_slice(&self.literal_lengths);
        all[LITERALS..].copy_from_slice(&self.distance_lengths);
        // Symbols with their extra bits: 16 repeats the one before, 3 to 6 times.
        let mut symbols: Vec<(u8, u8)> = Vec::with_capacity(all.len());
        let mut at = 0;
        while at < all.len() {
            let run = all[at..].iter().take_while(|&&length| length == all[at]).count();
            symbols.push((all[at], 0));
            let mut left = run - 1;
            while left >= 3 {
                let piece = left.min(6);
                symbols.push((16, piece as u8 - 3));
                left -= piece;
            }
            symbols.extend(std::iter::repeat_n((all[at], 0), left));
            at += run;
        }
        let mut counts = [0; 19];
        for &(symbol, _) in &symbols {
            counts[symbol as usize] += 1;
        }
        let mut lengths = [0; 19];
        codes::lengths(&counts, 7, &mut lengths);
        let mut bits = [0; 19];
        codes::codes(&lengths, &mut |symbol, code| bits[symbol] = code);
        let described =
            ORDER.iter().rposition(|&symbol| lengths[symbol] > 0).unwrap_or(0).max(3) + 1;
        let head = &mut self.head;
        head.push((0b100, 3));
        head.push(((LITERALS - 257) as u16, 5));
        head.push(((DISTANCES - 1) as u16, 5));
        head.push(((described - 4) as u16, 4));
        head.extend(ORDER[..described].iter().map(|&symbol| (u16::from(lengths[symbol]), 3)));
        for &(symbol, extra) in &symbols {
            head.push((bits[symbol as usize], lengths[symbol as usize]));
            if symbol == 16 {
                head.push((u16::from(extra), 2));
            }
        }
        self.head_bits = head.iter().map(|&(_, count)| u64::from(count)).sum();
    }

    /// Bits of the head of a block.
    pub(crate) fn head_bits(&self) -> u64 {
        self.head_bits
    }

    /// Bits of what was counted, without the head.
    pub(crate) fn cost(&self, counts: &Counts) -> u64 {
        let of = |counts: &[u32], lengths: &[u8]| -> u64 {
            counts.iter().zip(lengths).map(|(&count, &length)| count as u64 * length as u64).sum()
        };
        of(&counts.literals, &self.literal_lengths)
            + of(&counts.distances, &self.distance_lengths)
            + counts.extra
    }

    pub(crate) fn write_head(&self, bits: &mut Bits, out: &mut [u8], at: &mut usize) {
        for &(code, count) in &self.head {
            bits.add(u64::from(code), u32::from(count));
            bits.flush(out, at);
        }
    }

    pub(crate) fn write_end(&self, bits: &mut Bits, out: &mut [u8], at: &mut usize) {
        bits.add(u64::from(self.end & 0xff_ffff), self.end >> 24);
        bits.flush(out, at);
    }

    /// Writes `text` as `sequences` say.
    pub(crate) fn write(
        &self,
        text: &[u8],
        sequences: &[Sequence],
        bits: &mut Bits,
        out: &mut [u8],
        at: &mut usize,
    ) {
        let mut rest = text;
        let mut waiting = *bits;
        let mut to = *at;
        for sequence in sequences {
            let (literals, behind) = rest.split_at(sequence.literals as usize);
            let mut left = literals.len();
            let mut these = rest;
            while left > 0 {
                let four =
                    if let Some(four) = these.first_chunk::<4>() { *four } else { pad(these) };
                let wanted = &FIRST[left.min(4)];
                for (place, byte) in four.into_iter().enumerate() {
                    let code = self.literals[byte as usize];
                    let code = code & wanted[place];
                    waiting.add(u64::from(code & 0xff_ffff), code >> 24);
                }
                waiting.flush(out, &mut to);
                left = left.saturating_sub(4);
                these = these.get(4..).unwrap_or_default();
            }
            if sequence.length == 0 {
                rest = behind;
                continue;
            }
            let (symbol, extra, value) = distance(sequence.distance);
            let code = self.distances[symbol];
            let count = code >> 16;
            let back = u64::from(code & 0xffff) | u64::from(value) << count;
            let back_bits = count + extra;
            pieces(sequence.length as usize, &mut |length| {
                let copy = self.copies[length];
                let copy_bits = copy >> 24;
                waiting.add(u64::from(copy & 0xff_ffff) | back << copy_bits, copy_bits + back_bits);
                waiting.flush(out, &mut to);
            });
            rest = &behind[sequence.length as usize..];
        }
        *bits = waiting;
        *at = to;
    }
}

/// The last few bytes of a text, with zeros behind.
#[cold]
fn pad(bytes: &[u8]) -> [u8; 4] {
    let mut four = [0; 4];
    four[..bytes.len()].copy_from_slice(bytes);
    four
}
