//! Tables that turn the next bits of a deflate stream into symbols (RFC 1951, section 3.2).
//!
//! A table is indexed with the next bits, the first one lowest. What it says of a symbol is packed into 32
//! bits ([`Entry`]), so that one load decides everything: how many bits to use up, and what they mean.
//! Codes that are longer than the main table's index go through a second one behind it.

/// Bits that index the main table of literals and lengths.
pub(super) const LITERAL_BITS: u32 = 11;
/// Bits that index the main table of distances.
pub(super) const DISTANCE_BITS: u32 = 9;
/// Bits that index the table of the codes of code lengths: the longest of them, so that there is no second.
pub(super) const LENGTHS_BITS: u32 = 7;

/// Bits after which a pattern without a code is known as such, in the codes that may leave patterns
/// without one.
pub(super) const NO_CODE_BITS: u32 = 1;

/// Longest code (RFC 1951, section 3.2.7).
const CODE_BITS_MAX: usize = 15;
/// Symbols of the largest alphabet: literals, end of block, lengths, and two that must not occur.
pub(super) const LITERALS_MAX: usize = 288;
/// Distances, two that must not occur included.
pub(super) const DISTANCES_MAX: usize = 32;
/// The shortest match.
const LENGTH_MIN: usize = 3;

/// The meaning of the next bits.
///
/// | bits | of one or two literals | of a length, perhaps behind a literal | of a distance | otherwise |
/// |---|---|---|---|---|
/// | 0–7 | bits of the codes | of the codes and the extra bits | of the code and its extra bits | of the code; of the main index if it goes on |
/// | 8–11 | 0 | bits of the codes alone, never 0 | bits of its code alone | bits that index the second table |
/// | 12 | 0 | 0 | 0 | 1 |
/// | 13 | 0 | 0 | 0 | goes on in a second table |
/// | 14–15 | number of literals | number of literals | 0 | 1: end of block; 0, and not 13: no symbol has this code |
/// | 16–23 | first byte | the literal | base | where the second table begins |
/// | 24–31 | second byte | base − 3 | base | the same |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry(pub(super) u32);

impl Entry {
    const SPECIAL: u32 = 1 << 12;
    const SECOND: u32 = 1 << 13;
    const BLOCK_END: u32 = 1 << 14;
    /// One literal.
    const ONE: u32 = 1 << 14;
    const CODE_BITS: u32 = 0xf << 8;
    /// No symbol has this code. It uses up nothing.
    const NONE: Self = Self(Self::SPECIAL);
    /// A distance of 1024 that uses up nothing.
    pub(super) const FAR: Self = Self(1024 << 16);

    /// One literal or two, and nothing else.
    #[inline(always)]
    pub(super) fn is_literal(self) -> bool {
        self.0 & (Self::CODE_BITS | Self::SPECIAL) == 0
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
        self.0 & 0xff
    }

    /// Bits of the code alone; of a pointer, those that index the second table.
    #[inline(always)]
    pub(super) fn code_bits(self) -> u32 {
        (self.0 >> 8) & 0xf
    }

    /// Number of literals: 0 to 2; before a length 0 or 1. Of no meaning in a special entry.
    #[inline(always)]
    pub(super) fn count(self) -> usize {
        (self.0 >> 14 & 3) as usize
    }

    /// Base of a distance; or place of the second table.
    #[inline(always)]
    pub(super) fn value(self) -> usize {
        (self.0 >> 16) as usize
    }

    /// The literals, those beyond their number of no meaning.
    #[inline(always)]
    pub(super) fn literals(self) -> [u8; 2] {
        ((self.0 >> 16) as u16).to_le_bytes()
    }

    #[inline(always)]
    fn extra(self, bits: u64) -> usize {
        ((bits & ((1_u64 << self.bits()) - 1)) >> (self.0 >> 8 & 0x3f)) as usize
    }

    /// Base and extra bits of a distance together; `bits` are those that the entry was found with.
    #[inline(always)]
    pub(super) fn distance_with_extra(self, bits: u64) -> usize {
        self.value() + self.extra(bits)
    }

    /// Base and extra bits of a length together; `bits` are those that the entry was found with.
    #[inline(always)]
    pub(super) fn length_with_extra(self, bits: u64) -> usize {
        (self.0 >> 24) as usize + LENGTH_MIN + self.extra(bits)
    }

    /// A literal whose code has `bits`, and what follows it, in one entry, if their codes fit the
    /// main index; otherwise the literal alone. The literal itself is missing:
    /// [`Entry::with_first`].
    fn behind_literal(self, bits: u32) -> Self {
        let own_bits = if self.is_literal() { self.bits() } else { self.code_bits() };
        if self.is_special() || bits + own_bits > LITERAL_BITS {
            Self(Self::ONE | bits)
        } else if self.is_literal() {
            Self(((self.0 >> 16 & 0xff) << 24) | (2 * Self::ONE) | (bits + own_bits))
        } else {
            Self((self.0 | Self::ONE) + bits + (bits << 8))
        }
    }

    #[inline(always)]
    fn with_first(self, literal: u16) -> Self {
        Self(self.0 | u32::from(literal) << 16)
    }

    /// With the length of its code, which the symbol alone does not know.
    fn coded(self, code_bits: u32) -> Self {
        if self.0 & (Self::ONE | Self::SPECIAL) != 0 {
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

/// Enough for 288 symbols, 11 bits, codes up to 15 bits: 2342 (as zlib's `enough` computes).
pub(super) type Literals = Table<LITERAL_BITS, 2342>;
/// Enough for 32 symbols, 9 bits, codes up to 15 bits: 594.
pub(super) type Distances = Table<DISTANCE_BITS, 594>;
/// 19 symbols, codes up to 7 bits.
pub(super) type Lengths = Table<LENGTHS_BITS, 128>;

/// Symbols in the order of their codes.
struct Sorted {
    symbols: [u16; LITERALS_MAX],
    used: usize,
    /// Bits of the longest code.
    longest: usize,
    /// Symbols with codes of this many bits.
    counts: [u16; CODE_BITS_MAX + 1],
}

impl Sorted {
    fn new(lengths: &[u8]) -> Result<Self, BadCodes> {
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
        let mut next = [0_u16; CODE_BITS_MAX + 2];
        for bits in 1..=CODE_BITS_MAX {
            next[bits + 1] = next[bits] + counts[bits];
        }
        let used = next[CODE_BITS_MAX + 1];
        // Behind the others, to need no branch, are those that do not occur.
        next[0] = used;
        let mut symbols = [0_u16; LITERALS_MAX];
        for (symbol, &length) in lengths.iter().enumerate() {
            let place = &mut next[length as usize];
            symbols[*place as usize] = symbol as u16;
            *place += 1;
        }
        Ok(Self { symbols, used: used.into(), longest, counts })
    }

    fn used(&self) -> &[u16] {
        &self.symbols[..self.used]
    }
}

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
        let sorted = Sorted::new(lengths)?;
        self.fill_sorted(&sorted, lengths, symbols);
        Ok(())
    }

    fn fill_sorted(&mut self, sorted: &Sorted, lengths: &[u8], symbols: &[Entry]) {
        if sorted.longest <= 1 {
            self.0[..1 << ROOT].fill(Entry::NONE);
        }
        self.place(sorted.used(), lengths, symbols);
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
    /// Fills the table like [`Table::fill`]; then, where the main index has room for the codes of
    /// two literals in a row, or of a literal and a length, both become one entry: half as many
    /// steps, and half as many guesses of what comes next.
    pub(super) fn fill_with_pairs(&mut self, lengths: &[u8]) -> Result<(), BadCodes> {
        let sorted = Sorted::new(lengths)?;
        self.fill_sorted(&sorted, lengths, &LITERAL_SYMBOLS);
        let main = self.0.first_chunk_mut::<{ 1 << LITERAL_BITS }>();
        let main = main.expect("the table is larger than its main part");
        // What follows a literal is decided once for all literals whose codes are of the same
        // length: by the other bits of the index, of which there are `rest` patterns. They lie
        // behind each other, the ones with least first.
        let mut behind = [Entry::NONE; 1 << LITERAL_BITS];
        for bits in 1..LITERAL_BITS {
            if sorted.counts[bits as usize] > 0 {
                let rest = 1 << (LITERAL_BITS - bits);
                for (entry, next) in behind[rest..2 * rest].iter_mut().zip(&*main) {
                    *entry = next.behind_literal(bits);
                }
            }
        }
        let mut code = 0;
        for &symbol in sorted.used() {
            let bits = u32::from(lengths[symbol as usize]);
            if bits >= LITERAL_BITS {
                break;
            }
            if symbol < 256 {
                let rest = 1 << (LITERAL_BITS - bits);
                let own = main[code as usize..].iter_mut().step_by(1 << bits);
                for (entry, behind) in own.zip(&behind[rest..2 * rest]) {
                    *entry = behind.with_first(symbol);
                }
            }
            code = after(code, bits);
        }
        Ok(())
    }
}

/// The meaning of the symbols of literals and lengths (RFC 1951, section 3.2.5).
pub(super) const LITERAL_SYMBOLS: [Entry; LITERALS_MAX] = {
    let mut symbols = [Entry::NONE; LITERALS_MAX];
    let mut byte = 0;
    while byte < 256 {
        symbols[byte] = Entry(Entry::ONE | (byte as u32) << 16);
        byte += 1;
    }
    symbols[256] = Entry(Entry::SPECIAL | Entry::BLOCK_END);
    let mut base = LENGTH_MIN as u32;
    let mut symbol = 257;
    while symbol < 285 {
        let extra = if symbol < 265 { 0 } else { (symbol as u32 - 261) / 4 };
        symbols[symbol] = Entry((base - LENGTH_MIN as u32) << 24 | extra);
        base += 1 << extra;
        symbol += 1;
    }
    symbols[285] = Entry((258 - LENGTH_MIN as u32) << 24);
    symbols
};

/// The meaning of the symbols of distances (RFC 1951, section 3.2.5).
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
mod tests;
