//! Tables that turn the next bits of a deflate stream into symbols (RFC 1951, section 3.2).
//!
//! A table is indexed with the next bits, the first one lowest. What it says of a symbol is packed into 32
//! bits ([`Entry`]), so that one load decides everything: how many bits to use up, and what they mean.
//! Codes that are longer than the main table's index go through a second one behind it.

/// Bits that index the main table of literals and lengths.
pub(super) const LITERAL_BITS: u32 = 10;
/// Bits that index the main table of distances.
pub(super) const DISTANCE_BITS: u32 = 9;
/// Bits that index the table of the codes of code lengths: the longest of them, so that there is no second.
pub(super) const LENGTHS_BITS: u32 = 7;

/// Bits after which a pattern without a code is known as such, in the codes that may leave patterns without one.
pub(super) const NO_CODE_BITS: u32 = 1;

/// Longest code (RFC 1951, section 3.2.7).
const CODE_BITS_MAX: usize = 15;
/// Symbols of the largest alphabet: literals, end of block, lengths, and two that must not occur.
pub(super) const LITERALS_MAX: usize = 288;
/// Distances, two that must not occur included.
pub(super) const DISTANCES_MAX: usize = 32;

/// What the next bits mean.
///
/// | bits | of one or two literals | of a length or distance | otherwise |
/// |---|---|---|---|
/// | 0–7 | bits of their codes | bits of its code and its extra bits | of the code; of the main index if it goes on |
/// | 8–11 | number of literals − 1 | bits of its code alone | bits that index the second table |
/// | 13 | 0 | 0 | end of block |
/// | 14 | 0 | 0 | goes on in a second table |
/// | 15 | 0 | 0 | 1; neither 13 nor 14: no symbol has this code |
/// | 16–23 | first byte | base | where the second table begins |
/// | 24–30 | second byte, below 128 | | |
/// | 31 | 1 | 0 | 0 |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry(pub(super) u32);

impl Entry {
    const LITERAL: u32 = 1 << 31;
    const SPECIAL: u32 = 1 << 15;
    const SECOND: u32 = 1 << 14;
    const BLOCK_END: u32 = 1 << 13;
    /// No symbol has this code. It uses up nothing.
    const NONE: Self = Self(Self::SPECIAL);

    #[inline(always)]
    pub(super) fn is_literal(self) -> bool {
        self.0 & Self::LITERAL != 0
    }

    /// Neither a literal nor a length or distance.
    #[inline(always)]
    pub(super) fn is_special(self) -> bool {
        self.0 & Self::SPECIAL != 0
    }

    #[inline(always)]
    pub(super) fn is_second(self) -> bool {
        self.0 & Self::SECOND != 0
    }

    #[inline(always)]
    pub(super) fn is_block_end(self) -> bool {
        self.0 & Self::BLOCK_END != 0
    }

    /// Bits to use up: of the code, and of the extra bits behind it.
    #[inline(always)]
    pub(super) fn bits(self) -> u32 {
        self.0 & 0x3f
    }

    /// Bits of the code alone; of a pointer, those that index the second table.
    #[inline(always)]
    pub(super) fn code_bits(self) -> u32 {
        (self.0 >> 8) & 0xf
    }

    /// Literals beyond the first: 0 or 1.
    #[inline(always)]
    pub(super) fn second_literals(self) -> usize {
        (self.0 >> 8 & 1) as usize
    }

    /// One or two bytes, the first one lowest; base; or place of the second table.
    #[inline(always)]
    pub(super) fn value(self) -> usize {
        ((self.0 >> 16) & 0x7fff) as usize
    }

    /// Base and extra bits together; `bits` are those that the entry was found with.
    #[inline(always)]
    pub(super) fn value_with_extra(self, bits: u64) -> usize {
        let extra = (bits & ((1_u64 << self.bits()) - 1)) >> self.code_bits();
        self.value() + extra as usize
    }

    /// With the length of its code, which the symbol alone does not know.
    fn coded(self, code_bits: u32) -> Self {
        if self.0 & (Self::LITERAL | Self::SPECIAL) != 0 {
            Self(self.0 + code_bits)
        } else {
            Self(self.0 + code_bits + (code_bits << 8))
        }
    }
}

/// Codes that do not make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadCodes;

/// A main table of `1 << ROOT` entries with second tables behind it.
#[derive(Debug)]
pub(super) struct Table<const ROOT: u32, const ENTRIES: usize>(pub(super) [Entry; ENTRIES]);

/// Enough for 288 symbols, 10 bits, codes up to 15 bits: 1334 (as zlib's `enough` computes).
pub(super) type Literals = Table<LITERAL_BITS, 1334>;
/// Enough for 32 symbols, 9 bits, codes up to 15 bits: 594.
pub(super) type Distances = Table<DISTANCE_BITS, 594>;
/// 19 symbols, codes up to 7 bits.
pub(super) type Lengths = Table<LENGTHS_BITS, 128>;

impl<const ROOT: u32, const ENTRIES: usize> Table<ROOT, ENTRIES> {
    pub(super) const fn new() -> Self {
        Self([Entry::NONE; ENTRIES])
    }

    /// The entry for the next bits, through the second table if need be, and how many bits of the main
    /// index come before its own.
    #[inline]
    pub(super) fn find(&self, bits: u64) -> (Entry, u32) {
        let entry = self.0[(bits & ((1 << ROOT) - 1)) as usize];
        if !entry.is_second() {
            return (entry, 0);
        }
        let index = (bits >> ROOT) & ((1 << entry.code_bits()) - 1);
        (self.0[entry.value() + index as usize], ROOT)
    }

    /// Fills the table. `lengths` are the bits of each symbol's code, 0 = it does not occur; `symbols` what
    /// each symbol means.
    ///
    /// Codes must use up all bit patterns, but that a single code of one bit, or none at all, is allowed as
    /// in zlib: what has no code is damage only if it occurs.
    pub(super) fn fill(&mut self, lengths: &[u8], symbols: &[Entry]) -> Result<(), BadCodes> {
        let mut counts = [0_u16; CODE_BITS_MAX + 1];
        for &length in lengths {
            counts[length as usize] += 1;
        }
        counts[0] = 0;
        let longest = (1..=CODE_BITS_MAX).rev().find(|&bits| counts[bits] != 0).unwrap_or(0);
        let mut free = 1_i32;
        for &count in &counts[1..] {
            free = free * 2 - i32::from(count);
            if free < 0 {
                return Err(BadCodes);
            }
        }
        if free > 0 && longest > 1 {
            return Err(BadCodes);
        }
        // Symbols in the order of their codes.
        let mut next = [0_u16; CODE_BITS_MAX + 2];
        for bits in 1..=CODE_BITS_MAX {
            next[bits + 1] = next[bits] + counts[bits];
        }
        let mut sorted = [0_u16; LITERALS_MAX];
        for (symbol, &length) in lengths.iter().enumerate() {
            if length != 0 {
                let place = &mut next[length as usize];
                sorted[*place as usize] = symbol as u16;
                *place += 1;
            }
        }
        let used: usize = counts.iter().map(|&count| count as usize).sum();
        if longest <= 1 {
            self.0[..1 << ROOT].fill(Entry::NONE);
        }
        self.place(&sorted[..used], lengths, symbols);
        Ok(())
    }

    /// Writes the entries, shortest code first: as soon as all codes of up to `n` bits are in, the first
    /// `1 << n` entries are right, and are copied behind themselves for the next bit.
    fn place(&mut self, sorted: &[u16], lengths: &[u8], symbols: &[Entry]) {
        let length_of = |symbol: u16| u32::from(lengths[symbol as usize]);
        let mut code = 0_u32;
        let mut bits = 1;
        let mut at = 0;
        let mut filled = 2_usize;
        while let Some(&symbol) = sorted.get(at) {
            let length = length_of(symbol);
            if length > ROOT {
                break;
            }
            while bits < length {
                self.0.copy_within(..filled, filled);
                filled *= 2;
                bits += 1;
            }
            self.0[code as usize] = symbols[symbol as usize].coded(length);
            code = after(code, length);
            at += 1;
        }
        while bits < ROOT {
            self.0.copy_within(..filled, filled);
            filled *= 2;
            bits += 1;
        }
        if at < sorted.len() {
            self.place_long(&sorted[at..], code, lengths, symbols);
        }
    }

    /// Codes longer than the main index.
    fn place_long(&mut self, sorted: &[u16], mut code: u32, lengths: &[u8], symbols: &[Entry]) {
        let main = (1 << ROOT) - 1;
        let mut end = 1_usize << ROOT;
        let mut prefix = u32::MAX;
        let (mut begin, mut index_bits) = (0, 0);
        for (at, &symbol) in sorted.iter().enumerate() {
            let length = u32::from(lengths[symbol as usize]);
            if code & main != prefix {
                prefix = code & main;
                begin = end;
                // As many bits as it takes until the codes behind this prefix are complete.
                index_bits = length - ROOT;
                let mut room = 1_i32 << index_bits;
                for &other in &sorted[at..] {
                    let other = u32::from(lengths[other as usize]) - ROOT;
                    while index_bits < other {
                        room *= 2;
                        index_bits += 1;
                    }
                    room -= 1 << (index_bits - other);
                    if room <= 0 {
                        break;
                    }
                }
                end += 1 << index_bits;
                let pointer = Entry::SPECIAL | Entry::SECOND | (begin as u32) << 16;
                self.0[prefix as usize] = Entry(pointer | index_bits << 8 | ROOT);
            }
            let own = length - ROOT;
            let entry = symbols[symbol as usize].coded(own);
            let first = (code >> ROOT) as usize;
            for index in (first..1 << index_bits).step_by(1 << own) {
                self.0[begin + index] = entry;
            }
            code = after(code, length);
        }
    }
}

/// The code after `code` of `length` bits, first bit lowest: counting up from the other end.
fn after(code: u32, length: u32) -> u32 {
    let all = (1_u32 << length) - 1;
    let zeros = !code & all;
    if zeros == 0 {
        // The last code; there is none after it.
        return 0;
    }
    let highest = 1_u32 << zeros.ilog2();
    (code & (highest - 1)) | highest
}

impl Literals {
    /// Fills the table like [`Table::fill`]; then, where the main index has room for the codes of two literals
    /// in a row, both become one entry: half as many steps, and half as many guesses of what comes next.
    pub(super) fn fill_with_pairs(&mut self, lengths: &[u8]) -> Result<(), BadCodes> {
        self.fill(lengths, &LITERAL_SYMBOLS)?;
        let main = self.0.first_chunk_mut::<{ 1 << LITERAL_BITS }>();
        let main = main.expect("the table is larger than its main part");
        // What an index becomes without the bits of its first code is a lower index, which is changed later.
        for index in (0..main.len()).rev() {
            let first = main[index];
            let second = main[index >> first.bits().min(LITERAL_BITS)];
            let bits = first.bits() + second.bits();
            let both = first.0 & second.0 & Entry::LITERAL != 0;
            if both && bits <= LITERAL_BITS && second.value() < 128 {
                let bytes = (first.value() | second.value() << 8) as u32;
                main[index] = Entry(Entry::LITERAL | bytes << 16 | 1 << 8 | bits);
            }
        }
        Ok(())
    }
}

/// What the symbols of literals and lengths mean (RFC 1951, section 3.2.5).
pub(super) const LITERAL_SYMBOLS: [Entry; LITERALS_MAX] = {
    let mut symbols = [Entry::NONE; LITERALS_MAX];
    let mut byte = 0;
    while byte < 256 {
        symbols[byte] = Entry(Entry::LITERAL | (byte as u32) << 16);
        byte += 1;
    }
    symbols[256] = Entry(Entry::SPECIAL | Entry::BLOCK_END);
    let mut base = 3;
    let mut symbol = 257;
    while symbol < 285 {
        let extra = if symbol < 265 { 0 } else { (symbol as u32 - 261) / 4 };
        symbols[symbol] = Entry(base << 16 | extra);
        base += 1 << extra;
        symbol += 1;
    }
    symbols[285] = Entry(258 << 16);
    symbols
};

/// What the symbols of distances mean (RFC 1951, section 3.2.5).
pub(super) const DISTANCE_SYMBOLS: [Entry; DISTANCES_MAX] = {
    let mut symbols = [Entry::NONE; DISTANCES_MAX];
    let mut base = 1;
    let mut symbol = 0;
    while symbol < 30 {
        let extra = if symbol < 4 { 0 } else { symbol as u32 / 2 - 1 };
        symbols[symbol] = Entry(base << 16 | extra);
        base += 1 << extra;
        symbol += 1;
    }
    symbols
};

/// The symbols of code lengths stand for themselves.
pub(super) const LENGTH_SYMBOLS: [Entry; 19] = {
    let mut symbols = [Entry::NONE; 19];
    let mut symbol = 0;
    while symbol < 19 {
        symbols[symbol] = Entry((symbol as u32) << 16);
        symbol += 1;
    }
    symbols
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_with_any_bits_behind_it() {
        // Lengths of a code with second tables: 1, 2, …, 14, 15, 15.
        let lengths: Vec<u8> = (1..=15).chain([15]).collect();
        let mut table = Literals::new();
        table.fill(&lengths, &LITERAL_SYMBOLS[..16]).unwrap();
        for symbol in 0..16_u64 {
            let bits = u32::from(lengths[symbol as usize]);
            // `symbol` ones, then a zero, but for the last.
            let code = (1_u64 << symbol.min(15)) - 1;
            for behind in [0, 1, 0x5555, 0xffff_u64] {
                let (entry, before) = table.find(code | behind << bits);
                assert!(entry.is_literal(), "{symbol}");
                assert_eq!((entry.value() as u64, before + entry.bits()), (symbol, bits));
            }
        }
    }

    #[test]
    fn codes_beyond_and_short_of_all_patterns_are_refused() {
        let mut table = Lengths::new();
        assert_eq!(table.fill(&[1, 1, 1], &LENGTH_SYMBOLS), Err(BadCodes));
        assert_eq!(table.fill(&[2, 2, 2], &LENGTH_SYMBOLS), Err(BadCodes));
        assert_eq!(table.fill(&[2, 2, 2, 2], &LENGTH_SYMBOLS), Ok(()));
    }

    #[test]
    fn a_single_code_of_one_bit_leaves_the_other_pattern_without_a_symbol() {
        let mut table = Distances::new();
        table.fill(&[0, 0, 1], &DISTANCE_SYMBOLS).unwrap();
        assert_eq!(table.find(0).0.value(), 3);
        let other = table.find(1).0;
        assert!(other.is_special() && !other.is_second() && !other.is_block_end());
        table.fill(&[0; 30], &DISTANCE_SYMBOLS).unwrap();
        assert!(table.find(0).0.is_special());
    }

    #[test]
    fn lengths_and_distances_begin_where_the_standard_says() {
        let base = |entry: Entry| (entry.value(), entry.bits());
        assert_eq!(base(LITERAL_SYMBOLS[257]), (3, 0));
        assert_eq!(base(LITERAL_SYMBOLS[264]), (10, 0));
        assert_eq!(base(LITERAL_SYMBOLS[265]), (11, 1));
        assert_eq!(base(LITERAL_SYMBOLS[284]), (227, 5));
        assert_eq!(base(LITERAL_SYMBOLS[285]), (258, 0));
        assert_eq!(base(DISTANCE_SYMBOLS[0]), (1, 0));
        assert_eq!(base(DISTANCE_SYMBOLS[4]), (5, 1));
        assert_eq!(base(DISTANCE_SYMBOLS[29]), (24577, 13));
    }
}
