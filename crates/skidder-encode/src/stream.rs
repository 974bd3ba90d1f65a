//! Raw deflate (RFC 1951): which kind of block each segment of a text goes to.

use crate::bits::Bits;
use crate::block::Codes;
use crate::counts::Counts;
use crate::matcher::{CROSSING_BYTES_MAX, Matcher, Sequence};

/// A text is coded in segments of this many bytes: what the matcher saw of one is still in a core's
/// second cache when it is written, and the look at the counts, some 3 µs, is little for each
/// document.
const SEGMENT_BYTES: usize = 128 << 10;
/// Room for a segment in its worst codes, a copy that crosses its end, the end of a block and the
/// head of the next.
const OUT_BYTES: usize = 2 * SEGMENT_BYTES + CROSSING_BYTES_MAX / 32 + 1024;
/// Up to here a segment may be cheaper with the fixed codes, which need no head.
const FIXED_BYTES_MAX: usize = 4 << 10;
/// Codes are kept until they cost one part in this many more than the ideal.
const SLACK: u64 = 20;
/// About what the head of a block costs, in bits.
const HEAD_BITS: u64 = 800;
/// Most bytes of a stored block.
const STORED_BYTES_MAX: usize = 65_535;

/// Which codes the block has that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    None,
    Fixed,
    Own,
}

/// One text.
#[derive(Debug)]
pub(crate) struct Stream {
    matcher: Matcher,
    sequences: Vec<Sequence>,
    counts: Counts,
    fixed: Codes,
    /// Made for some segment before, perhaps of another text.
    own: Option<Codes>,
    open: Open,
    bits: Bits,
    out: Box<[u8]>,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Self {
            matcher: Matcher::new(),
            sequences: Vec::new(),
            counts: Counts::new(),
            fixed: Codes::fixed(),
            own: None,
            open: Open::None,
            bits: Bits::new(),
            out: vec![0; OUT_BYTES].into_boxed_slice(),
        }
    }

    pub(crate) fn reset(&mut self) {
        self.open = Open::None;
        self.bits = Bits::new();
    }

    /// `text[..known]` is what stands before, for copies.
    pub(crate) fn add(&mut self, text: &[u8], known: usize, out: &mut Vec<u8>) {
        self.matcher.begin(text, known);
        let mut start = known;
        while start < text.len() {
            let end = text.len().min(start + SEGMENT_BYTES);
            self.sequences.clear();
            let end = self.matcher.run(text, start, end, &mut self.sequences);
            self.write(&text[start..end], out);
            start = end;
        }
    }

    /// Ends the text.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let mut at = 0;
        self.end(&mut at);
        // The last block: an empty one with the fixed codes.
        self.bits.add(0b011, 10);
        self.bits.align(&mut self.out, &mut at);
        out.extend_from_slice(&self.out[..at]);
        self.reset();
    }

    fn write(&mut self, segment: &[u8], out: &mut Vec<u8>) {
        let mut at = 0;
        let wanted = self.choose(segment, &mut at);
        let (mut bits, before, open) = (self.bits, at, self.open);
        let codes = match (wanted, &self.own) {
            (Open::Own, Some(own)) => own,
            _ => &self.fixed,
        };
        if open != wanted {
            codes.write_head(&mut bits, &mut self.out, &mut at);
        }
        codes.write(segment, &self.sequences, &mut bits, &mut self.out, &mut at);
        if at > before + segment.len() + segment.len() / 4096 {
            // What was not in the sample did not shrink.
            at = before;
            self.end(&mut at);
            out.extend_from_slice(&self.out[..at]);
            self.store(segment, out);
            return;
        }
        self.bits = bits;
        self.open = wanted;
        out.extend_from_slice(&self.out[..at]);
    }

    /// Finds the codes for a segment, and ends the block if it has others.
    fn choose(&mut self, segment: &[u8], at: &mut usize) -> Open {
        self.counts.take(segment, &self.sequences);
        let head = |codes: &Codes, open| if open { 0 } else { codes.head_bits() };
        let with_own = self
            .own
            .as_ref()
            .map_or(u64::MAX, |own| own.cost(&self.counts) + head(own, self.open == Open::Own));
        let with_fixed = if segment.len() > FIXED_BYTES_MAX {
            u64::MAX
        } else {
            self.fixed.cost(&self.counts) + head(&self.fixed, self.open == Open::Fixed)
        };
        let ideal = self.counts.ideal();
        let mut best = with_own.min(with_fixed);
        let mut wanted = if with_own <= with_fixed { Open::Own } else { Open::Fixed };
        let mut new = None;
        if best > ideal + ideal / SLACK + HEAD_BITS {
            let codes = Codes::of(&self.counts);
            let cost = codes.cost(&self.counts) + codes.head_bits();
            if cost < best {
                (best, wanted, new) = (cost, Open::Own, Some(codes));
            }
        }
        debug_assert!(best < u64::MAX, "either codes are cheap or new ones are made");
        if new.is_some() || self.open != wanted {
            self.end(at);
        }
        if new.is_some() {
            self.own = new;
        }
        wanted
    }

    /// Ends the block, if there is one.
    fn end(&mut self, at: &mut usize) {
        match (self.open, &self.own) {
            (Open::Own, Some(own)) => own.write_end(&mut self.bits, &mut self.out, at),
            (Open::Fixed, _) => self.fixed.write_end(&mut self.bits, &mut self.out, at),
            (Open::None | Open::Own, _) => {}
        }
        self.open = Open::None;
    }

    /// Writes a segment as it is (RFC 1951, 3.2.4). No block is open.
    fn store(&mut self, segment: &[u8], out: &mut Vec<u8>) {
        for part in segment.chunks(STORED_BYTES_MAX) {
            let mut at = 0;
            self.bits.add(0, 3);
            self.bits.align(&mut self.out, &mut at);
            out.extend_from_slice(&self.out[..at]);
            let length = part.len() as u16;
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&(!length).to_le_bytes());
            out.extend_from_slice(part);
        }
    }
}
