//! Numbers that look random and come from a seed.

/// A small generator (SplitMix64). The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that starts at `seed`; near seeds give unrelated numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, all 64 bits of it.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..limit`; 0 if `limit` is 0. The bias is far below what a test can see.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(limit)) >> 64) as u64
    }

    /// True in `one_in` cases on average once; always true for 0 and 1.
    pub fn one_in(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&self.number().to_le_bytes()[..piece.len()]);
        }
    }
}

/// Calls `round` with each seed of a fuzz test and its generator: `SKIDDER_SEED` alone if it is set, else
/// `SKIDDER_FUZZ_ROUNDS` seeds (`count` without it) from `SKIDDER_FUZZ_FROM` on.
///
/// # Panics
///
/// If one of these variables is not a number.
pub fn rounds(count: u64, mut round: impl FnMut(u64, &mut Random)) {
    let number = |name: &str| {
        let value = std::env::var(name).ok()?;
        Some(value.parse::<u64>().unwrap_or_else(|_| panic!("`{name}` is not a number")))
    };
    let from = number("SKIDDER_FUZZ_FROM").unwrap_or(1);
    let seeds = match number("SKIDDER_SEED") {
        Some(seed) => seed..seed + 1,
        None => from..from + number("SKIDDER_FUZZ_ROUNDS").unwrap_or(count),
    };
    for seed in seeds {
        round(seed, &mut Random::new(seed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_gives_the_same_numbers_within_bounds() {
        let (mut one, mut two) = (Random::new(7), Random::new(7));
        for limit in 1..1000 {
            let number = one.below(limit);
            assert!(number < limit);
            assert_eq!(number, two.below(limit));
        }
        assert_eq!(Random::new(7).below(0), 0);
        assert_ne!(Random::new(7).number(), Random::new(8).number());
    }
}
