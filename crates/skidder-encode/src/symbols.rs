//! The alphabets of deflate (RFC 1951, 3.2.5).

/// Symbols for literals, the end of a block and lengths.
pub(crate) const LITERALS: usize = 286;
/// Symbols for distances.
pub(crate) const DISTANCES: usize = 30;
/// Ends a block.
pub(crate) const END: usize = 256;
/// Longest copy that has a code.
pub(crate) const COPY_MAX: usize = 258;
/// Shortest copy that has a code.
pub(crate) const COPY_MIN: usize = 3;

/// Symbol and extra bits for each length: `symbol | extra bits << 16 | value of them << 24`.
pub(crate) const COPIES: [u32; COPY_MAX + 1] = copies();

const fn copies() -> [u32; COPY_MAX + 1] {
    let mut table = [0; COPY_MAX + 1];
    let mut length = COPY_MIN;
    while length < COPY_MAX {
        let over = (length - COPY_MIN) as u32;
        table[length] = if over < 8 {
            257 + over
        } else {
            let bits = over.ilog2() - 2;
            let symbol = 257 + 4 * (bits + 1) + ((over >> bits) & 3);
            symbol | bits << 16 | (over & ((1 << bits) - 1)) << 24
        };
        length += 1;
    }
    table[COPY_MAX] = 285;
    table
}

/// Symbol, number of extra bits and their value.
#[inline(always)]
pub(crate) fn distance(distance: u32) -> (usize, u32, u32) {
    let over = distance - 1;
    if over < 2 {
        return (over as usize, 0, 0);
    }
    let bits = over.ilog2() - 1;
    let symbol = 2 * (bits + 1) + ((over >> bits) & 1);
    (symbol as usize, bits, over & ((1 << bits) - 1))
}
