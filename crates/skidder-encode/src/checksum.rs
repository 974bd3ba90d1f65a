//! The sums behind a text: CRC-32 for gzip, Adler-32 for zlib.

use crate::Framing;

/// A sum so far.
#[derive(Debug)]
pub(crate) enum Checksum {
    Crc(crc32fast::Hasher),
    Adler(u32, u32),
}

impl Checksum {
    pub(crate) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Gzip => Self::Crc(crc32fast::Hasher::new()),
            Framing::Zlib => Self::Adler(1, 0),
        }
    }

    pub(crate) fn update(&mut self, text: &[u8]) {
        match self {
            Self::Crc(hasher) => hasher.update(text),
            Self::Adler(one, two) => (*one, *two) = adler(*one, *two, text),
        }
    }

    pub(crate) fn value(&self) -> u32 {
        match self {
            Self::Crc(hasher) => hasher.clone().finalize(),
            Self::Adler(one, two) => two << 16 | one,
        }
    }
}

/// The largest prime below 65536 (RFC 1950, 9).
const MODULUS: u32 = 65_521;
/// Bytes that are summed between two remainders, a multiple of [`LANES`]: sums stay below 2^32.
const RUN: usize = 5_536;
/// Bytes that are summed at once.
const LANES: usize = 32;

fn adler(one: u32, two: u32, text: &[u8]) -> (u32, u32) {
    let (mut one, mut two) = (one, two);
    for run in text.chunks(RUN) {
        let (lanes, rest) = run.as_chunks::<LANES>();
        for lane in lanes {
            let (mut sum, mut weighted) = (0, 0);
            for (place, &byte) in lane.iter().enumerate() {
                sum += u32::from(byte);
                weighted += u32::from(byte) * (LANES - place) as u32;
            }
            two += one * LANES as u32 + weighted;
            one += sum;
        }
        for &byte in rest {
            one += u32::from(byte);
            two += one;
        }
        one %= MODULUS;
        two %= MODULUS;
    }
    (one, two)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_adler_is_that_of_its_definition() {
        for length in [0, 1, 31, 32, 33, 5_535, 5_536, 5_537, 100_000] {
            let text = vec![255_u8; length];
            let mut sum = Checksum::new(Framing::Zlib);
            for part in text.chunks(7_777) {
                sum.update(part);
            }
            let (mut one, mut two) = (1_u64, 0_u64);
            for &byte in &text {
                one = (one + u64::from(byte)) % 65_521;
                two = (two + one) % 65_521;
            }
            assert_eq!(u64::from(sum.value()), two << 16 | one, "{length} bytes");
        }
    }
}
