//! One block of bzip2: Huffman codes, move-to-front, Burrows-Wheeler, runs; each undone in turn.

use crate::framed::Stop;
use crate::framed::input::Bits;
use crate::pool::Reusable;

/// The largest block: level 9.
const BLOCK_BYTES_MAX: usize = 900_000;
/// Symbols: two for runs, 255 for places in the list, and the end of the block.
const SYMBOLS_MAX: usize = 258;
/// Huffman codes of a block.
const CODES_MAX: usize = 6;
/// The longest code word.
const LENGTH_MAX: usize = 20;
/// Symbols after which the next selector chooses a code.
const GROUP_SYMBOLS: u32 = 50;
/// Selectors that a block can use; some programs write a few more.
const SELECTORS_MAX: usize = 18_002;
/// Bits that are looked up at once.
const LOOKUP_BITS: u32 = 10;

/// Memory that decoding a block needs: 3.6 MiB.
pub(crate) struct Tables {
    /// For each place in the block the byte that is there (low 8 bits), and where the next one is
    /// (the others).
    chain: Vec<u32>,
    selectors: Vec<u8>,
    codes: Vec<Code>,
}

impl Reusable for Tables {
    fn create() -> Option<Self> {
        let mut chain = Vec::new();
        chain.try_reserve_exact(BLOCK_BYTES_MAX).ok()?;
        Some(Self {
            chain,
            selectors: Vec::new(),
            codes: (0..CODES_MAX).map(|_| Code::default()).collect(),
        })
    }

    fn reset(&mut self) -> bool {
        self.chain.clear();
        self.selectors.clear();
        true
    }
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tables").finish_non_exhaustive()
    }
}

/// A Huffman code.
struct Code {
    /// For the next bits the symbol (upper bits) and the length of its word (low 4 bits); 0 if the
    /// word is longer.
    lookup: Vec<u16>,
    /// For each length the first word that is longer, in the highest of 32 bits.
    limit: [u64; LENGTH_MAX + 2],
    /// For each length what to add to a word for the index of its symbol.
    base: [i32; LENGTH_MAX + 2],
    /// The symbols in the order of their words.
    symbols: [u16; SYMBOLS_MAX],
    count: usize,
}

impl Default for Code {
    fn default() -> Self {
        Self {
            lookup: vec![0; 1 << LOOKUP_BITS],
            limit: [0; LENGTH_MAX + 2],
            base: [0; LENGTH_MAX + 2],
            symbols: [0; SYMBOLS_MAX],
            count: 0,
        }
    }
}

impl Code {
    /// The code whose words have these lengths.
    fn set(&mut self, lengths: &[u8]) {
        self.lookup.fill(0);
        self.count = 0;
        let mut word: u32 = 0;
        for length in 1..=LENGTH_MAX {
            let first = self.count;
            for (symbol, _) in
                lengths.iter().enumerate().filter(|(_, l)| usize::from(**l) == length)
            {
                self.symbols[self.count] = symbol as u16;
                let index = (self.count - first) as u32;
                self.count += 1;
                self.fill_lookup(word + index, length as u32, symbol as u16);
            }
            self.base[length] = first as i32 - word as i32;
            word += (self.count - first) as u32;
            self.limit[length] = u64::from(word) << (32 - length);
            word <<= 1;
        }
    }

    fn fill_lookup(&mut self, word: u32, length: u32, symbol: u16) {
        if length > LOOKUP_BITS {
            return;
        }
        let spread = LOOKUP_BITS - length;
        let first = (word as usize) << spread;
        // More words than the lengths allow: they cannot be decoded, and nothing is lost.
        if let Some(entries) = self.lookup.get_mut(first..first + (1 << spread)) {
            entries.fill(symbol << 4 | length as u16);
        }
    }

    #[inline]
    fn decode(&self, bits: &mut Bits<'_, '_>) -> Result<u16, Stop> {
        let next = bits.look()?;
        let entry = self.lookup[(next >> (32 - LOOKUP_BITS)) as usize];
        if entry > 0 {
            bits.skip(u32::from(entry & 15))?;
            return Ok(entry >> 4);
        }
        for length in 1..=LENGTH_MAX {
            if u64::from(next) < self.limit[length] {
                bits.skip(length as u32)?;
                let word = (next >> (32 - length)) as i32;
                let index = usize::try_from(word + self.base[length]).unwrap_or(usize::MAX);
                let symbol = self.symbols[..self.count].get(index);
                return symbol.copied().ok_or(Stop::Corrupt("a word of no Huffman code"));
            }
        }
        // What is looked at may be incomplete at the end of the file.
        bits.skip(32)?;
        Err(Stop::Corrupt("a word of no Huffman code"))
    }
}

/// Decodes the rest of a block behind its checksum, which is `expected`, into `tables`.
pub(super) fn decode(
    bits: &mut Bits<'_, '_>,
    tables: &mut Tables,
    bytes_max: usize,
    expected: u32,
) -> Result<Output, Stop> {
    let origin = bits.take(24)? as usize;
    let (list, used) = read_used_bytes(bits)?;
    let symbols = used + 2;
    read_codes(bits, tables, symbols)?;
    let counts = read_symbols(bits, tables, bytes_max, list, symbols as u16 - 1)?;
    let chain = &mut tables.chain;
    if origin >= chain.len() {
        return Err(Stop::Corrupt("a bzip2 block begins outside of itself"));
    }
    // Where each byte of the sorted block came from.
    let mut starts = [0; 256];
    let mut sum = 0;
    for (start, count) in starts.iter_mut().zip(counts) {
        *start = sum;
        sum += count;
    }
    for index in 0..chain.len() {
        let start = &mut starts[(chain[index] & 0xff) as usize];
        chain[*start as usize] |= (index as u32) << 8;
        *start += 1;
    }
    Ok(Output {
        next: chain[origin] >> 8,
        left: chain.len(),
        run: 0,
        last: 0,
        repeat: 0,
        crc: u32::MAX,
        expected,
    })
}

/// The bytes that the block has, in order, and how many they are.
fn read_used_bytes(bits: &mut Bits<'_, '_>) -> Result<([u8; 256], usize), Stop> {
    let mut list = [0; 256];
    let mut used = 0;
    let rows = bits.take(16)?;
    for row in 0..16 {
        if rows & 0x8000 >> row == 0 {
            continue;
        }
        let columns = bits.take(16)?;
        for column in 0..16 {
            if columns & 0x8000 >> column != 0 {
                list[used] = row * 16 + column;
                used += 1;
            }
        }
    }
    if used == 0 {
        return Err(Stop::Corrupt("a bzip2 block without bytes"));
    }
    Ok((list, used))
}

/// The selectors and the codes of a block.
fn read_codes(bits: &mut Bits<'_, '_>, tables: &mut Tables, symbols: usize) -> Result<(), Stop> {
    let codes = bits.take(3)? as usize;
    let selectors = bits.take(15)? as usize;
    if !(2..=CODES_MAX).contains(&codes) || selectors == 0 {
        return Err(Stop::Corrupt("the number of Huffman codes of a bzip2 block"));
    }
    tables.selectors.clear();
    let mut order: [u8; CODES_MAX] = [0, 1, 2, 3, 4, 5];
    for _ in 0..selectors {
        let mut place = 0;
        while bits.take(1)? == 1 {
            place += 1;
            if place >= codes {
                return Err(Stop::Corrupt("a selector of no Huffman code"));
            }
        }
        order[..=place].rotate_right(1);
        if tables.selectors.len() < SELECTORS_MAX {
            tables.selectors.push(order[0]);
        }
    }
    let mut lengths = [0; SYMBOLS_MAX];
    for code in &mut tables.codes[..codes] {
        let mut length = bits.take(5)?;
        for slot in &mut lengths[..symbols] {
            loop {
                if !(1..=LENGTH_MAX as u32).contains(&length) {
                    return Err(Stop::Corrupt("the length of a Huffman code"));
                }
                if bits.take(1)? == 0 {
                    break;
                }
                length = if bits.take(1)? == 0 { length + 1 } else { length - 1 };
            }
            *slot = length as u8;
        }
        code.set(&lengths[..symbols]);
    }
    Ok(())
}

/// Undoes the Huffman codes, the runs of zeros and move-to-front: leaves the bytes of the sorted
/// block in `chain`, and says how often each occurs.
fn read_symbols(
    bits: &mut Bits<'_, '_>,
    tables: &mut Tables,
    bytes_max: usize,
    mut list: [u8; 256],
    end: u16,
) -> Result<[u32; 256], Stop> {
    let chain = &mut tables.chain;
    chain.clear();
    let mut counts = [0; 256];
    let (mut run, mut weight) = (0, 1);
    let mut selectors = tables.selectors.iter();
    let mut code = &tables.codes[0];
    let mut left = 0;
    loop {
        if left == 0 {
            let selector = selectors.next().ok_or(Stop::Corrupt("a bzip2 block does not end"))?;
            code = &tables.codes[usize::from(*selector)];
            left = GROUP_SYMBOLS;
        }
        left -= 1;
        let symbol = code.decode(bits)?;
        if symbol < 2 {
            run += weight << symbol;
            weight <<= 1;
            if run > bytes_max - chain.len() {
                return Err(Stop::Corrupt("a bzip2 block is too long"));
            }
            continue;
        }
        if run > 0 {
            counts[usize::from(list[0])] += run as u32;
            chain.resize(chain.len() + run, u32::from(list[0]));
            (run, weight) = (0, 1);
        }
        if symbol == end {
            return Ok(counts);
        }
        if chain.len() == bytes_max {
            return Err(Stop::Corrupt("a bzip2 block is too long"));
        }
        let place = usize::from(symbol) - 1;
        let byte = list[place];
        list.copy_within(..place, 1);
        list[0] = byte;
        counts[usize::from(byte)] += 1;
        chain.push(u32::from(byte));
    }
}

/// Hands out a decoded block.
#[derive(Debug)]
pub(super) struct Output {
    /// The place in the chain of the next byte.
    next: u32,
    /// Bytes of the chain that are left.
    left: usize,
    /// How often `last` came in a row, up to 4; then the next byte of the chain says how often it
    /// is repeated.
    run: u8,
    last: u8,
    /// Repetitions still to be handed out.
    repeat: u8,
    crc: u32,
    expected: u32,
}

impl Output {
    /// Fills `out` as far as the block reaches; 0 at its end.
    pub(super) fn produce(&mut self, tables: &Tables, out: &mut [u8]) -> usize {
        let mut crc = self.crc;
        let mut produced = 0;
        while produced < out.len() {
            if self.repeat > 0 {
                self.repeat -= 1;
            } else {
                let Some(&link) = tables.chain.get(self.next as usize).filter(|_| self.left > 0)
                else {
                    break;
                };
                self.next = link >> 8;
                self.left -= 1;
                let byte = link as u8;
                if self.run == 4 {
                    self.run = 0;
                    self.repeat = byte;
                    continue;
                }
                self.run = if byte == self.last { self.run + 1 } else { 1 };
                self.last = byte;
            }
            out[produced] = self.last;
            produced += 1;
            crc = crc << 8 ^ CRC[(crc >> 24) as usize ^ usize::from(self.last)];
        }
        self.crc = crc;
        produced
    }

    /// The stored checksum, and the one of what was handed out.
    pub(super) fn checksums(&self) -> (u32, u32) {
        (self.expected, !self.crc)
    }
}

/// CRC-32 from the highest bit to the lowest.
static CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = (index as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            value = if value >> 31 == 1 { value << 1 ^ 0x04c1_1db7 } else { value << 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};
