//! A small seeded generator of pseudo-random numbers: the same seed gives the same bytes for ever.
//!
//! SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). Not for
//! secrets.

/// The state of the generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 fresh bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound` (at least 1), all about equally likely.
    pub fn below(&mut self, bound: u32) -> u32 {
        let high = self.bits() >> 32;
        ((high * u64::from(bound)) >> 32) as u32
    }

    /// A number below `bound`, small ones far more likely: what popularity looks like.
    pub fn skewed(&mut self, bound: u32) -> u32 {
        let draw = self.bits();
        let first = u64::from(draw as u32);
        let second = draw >> 32;
        let product = (first * second) >> 32;
        ((product * u64::from(bound)) >> 32) as u32
    }

    /// One of `items`, the first ones more often.
    pub fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.skewed(items.len() as u32) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_sequence_of_a_seed_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn draws_stay_below_their_bound_and_reach_both_ends() {
        let mut random = Random::new(7);
        let mut seen = [0_u32; 5];
        for _ in 0..10_000 {
            seen[random.below(5) as usize] += 1;
            assert!(random.skewed(3) < 3);
        }
        assert!(seen.iter().all(|&count| count > 1_500), "{seen:?}");
    }
}
