//! The code lengths at the head of a dynamic block (RFC 1951, section 3.2.7), read bit by bit so that input
//! may end anywhere.

use super::table::{DISTANCES_MAX, LENGTH_SYMBOLS, LITERALS_MAX, Lengths as LengthTable};
use super::{Bits, Call, Exhausted, find_whole};

/// The order in which the lengths of the codes of code lengths are stored.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Literals, end of block and lengths; then distances. A header has at most 286 and 30 of them; the fixed
/// codes have more.
const CODES_MAX: usize = LITERALS_MAX + DISTANCES_MAX;

/// The codes of a block, as far as they are read.
pub(super) struct Lengths {
    stage: Stage,
    literals: usize,
    distances: usize,
    /// Number of stored lengths of the codes of code lengths.
    stored: usize,
    /// How many were read in this stage.
    have: usize,
    /// Bits of each code; first those of the codes of code lengths.
    bits: [u8; CODES_MAX],
    table: LengthTable,
    /// A repeat whose count is still to come.
    repeat: Option<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Counts,
    LengthCodes,
    Codes,
}

/// How reading ended.
pub(super) enum HeaderStep {
    /// [`Lengths::lengths`] has them all.
    Complete,
    /// They make no sense.
    Damaged(&'static str),
}

impl Lengths {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Counts,
            literals: 0,
            distances: 0,
            stored: 0,
            have: 0,
            bits: [0; CODES_MAX],
            table: LengthTable::new(),
            repeat: None,
        }
    }

    pub(super) fn begin(&mut self) {
        self.stage = Stage::Counts;
        self.have = 0;
        self.repeat = None;
        self.bits = [0; CODES_MAX];
    }

    /// The lengths of the codes of literals (with end of block and lengths) and of distances.
    pub(super) fn lengths(&self) -> (&[u8], &[u8]) {
        self.bits[..self.literals + self.distances].split_at(self.literals)
    }

    /// As if these had been read.
    pub(super) fn set(&mut self, literals: &[u8], distances: &[u8]) {
        let lengths = literals.iter().chain(distances);
        for (bits, &length) in self.bits.iter_mut().zip(lengths) {
            *bits = length;
        }
        self.literals = literals.len();
        self.distances = distances.len();
    }

    /// Reads on where it stopped.
    pub(super) fn read(
        &mut self,
        bits: &mut Bits,
        call: &mut Call<'_>,
    ) -> Result<HeaderStep, Exhausted> {
        if self.stage == Stage::Counts {
            bits.need(14, call)?;
            self.literals = bits.use_up(5) as usize + 257;
            self.distances = bits.use_up(5) as usize + 1;
            self.stored = bits.use_up(4) as usize + 4;
            if self.literals > 286 || self.distances > 30 {
                return Ok(HeaderStep::Damaged("too many length or distance symbols"));
            }
            self.stage = Stage::LengthCodes;
        }
        if self.stage == Stage::LengthCodes {
            while self.have < self.stored {
                bits.need(3, call)?;
                self.bits[ORDER[self.have]] = bits.use_up(3) as u8;
                self.have += 1;
            }
            if !self.make_table() {
                return Ok(HeaderStep::Damaged("invalid code lengths set"));
            }
            self.stage = Stage::Codes;
        }
        self.read_codes(bits, call)
    }

    /// The table of the codes of code lengths; their own lengths make room for the decoded ones.
    fn make_table(&mut self) -> bool {
        let mut own = [0; 19];
        own.copy_from_slice(&self.bits[..19]);
        self.bits[..19].fill(0);
        self.have = 0;
        // Unlike the other codes, these must use up all patterns.
        let patterns: u32 = own.iter().filter(|&&bits| bits > 0).map(|bits| 128 >> bits).sum();
        patterns == 128 && self.table.fill(&own, &LENGTH_SYMBOLS).is_ok()
    }

    fn read_codes(
        &mut self,
        bits: &mut Bits,
        call: &mut Call<'_>,
    ) -> Result<HeaderStep, Exhausted> {
        let all = self.literals + self.distances;
        while self.have < all {
            let symbol = match self.repeat {
                Some(symbol) => symbol,
                None => find_whole(bits, call, |bits| self.table.find(bits))?.0.value() as u8,
            };
            if symbol < 16 {
                self.bits[self.have] = symbol;
                self.have += 1;
                continue;
            }
            self.repeat = Some(symbol);
            let (extra, least) = match symbol {
                16 => (2, 3),
                17 => (3, 3),
                _ => (7, 11),
            };
            bits.need(extra, call)?;
            let count = least + bits.use_up(extra) as usize;
            self.repeat = None;
            let of = match (symbol, self.have.checked_sub(1)) {
                (16, None) => return Ok(HeaderStep::Damaged("invalid bit length repeat")),
                (16, Some(before)) => self.bits[before],
                _ => 0,
            };
            if self.have + count > all {
                return Ok(HeaderStep::Damaged("invalid bit length repeat"));
            }
            self.bits[self.have..self.have + count].fill(of);
            self.have += count;
        }
        Ok(HeaderStep::Complete)
    }
}
