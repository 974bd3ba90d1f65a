//! Tables of codes: what an entry says is what its codes say.

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
            assert_eq!((u64::from(entry.literals()[0]), before + entry.bits()), (symbol, bits));
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
    let length = |symbol: usize| {
        let entry = LITERAL_SYMBOLS[symbol];
        (entry.length_with_extra(0), entry.bits())
    };
    assert_eq!(length(257), (3, 0));
    assert_eq!(length(264), (10, 0));
    assert_eq!(length(265), (11, 1));
    assert_eq!(length(284), (227, 5));
    assert_eq!(length(285), (258, 0));
    let base = |entry: Entry| (entry.value(), entry.bits());
    assert_eq!(base(DISTANCE_SYMBOLS[0]), (1, 0));
    assert_eq!(base(DISTANCE_SYMBOLS[4]), (5, 1));
    assert_eq!(base(DISTANCE_SYMBOLS[29]), (24577, 13));
}

/// Lengths of a code for about `used` symbols that uses up all patterns: leaves of a tree that are
/// split at random.
fn random_lengths(used: usize, mut seed: u64) -> Vec<u8> {
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    let mut leaves = vec![1, 1];
    while leaves.len() < used {
        let leaf = random(leaves.len());
        if leaves[leaf] < CODE_BITS_MAX as u8 {
            leaves[leaf] += 1;
            leaves.push(leaves[leaf]);
        }
    }
    let mut lengths = vec![0; 286];
    lengths[256] = leaves.remove(0);
    for leaf in leaves {
        let mut symbol = random(286);
        while lengths[symbol] > 0 {
            symbol = random(286);
        }
        lengths[symbol] = leaf;
    }
    lengths
}

#[test]
fn a_joined_entry_says_what_its_two_parts_say() {
    let (mut plain, mut joined) = (Literals::new(), Literals::new());
    let (mut pairs, mut led) = (0, 0);
    for seed in 0..60 {
        let lengths = random_lengths(2 + seed as usize * 4, seed);
        plain.fill(&lengths, &LITERAL_SYMBOLS).unwrap();
        joined.fill_with_pairs(&lengths).unwrap();
        for index in 0..1 << LITERAL_BITS {
            let bits = index | 0x155_5aab_u64 << LITERAL_BITS;
            let (entry, (first, _)) = (joined.find(bits).0, plain.find(bits));
            let (second, _) = plain.find(bits >> first.bits());
            if entry.is_literal() && entry.count() == 2 {
                pairs += 1;
                assert!(first.is_literal() && second.is_literal());
                assert_eq!(entry.literals(), [first.literals()[0], second.literals()[0]]);
                assert_eq!(entry.bits(), first.bits() + second.bits());
            } else if !entry.is_literal() && !entry.is_special() && entry.count() == 1 {
                led += 1;
                assert!(first.is_literal() && !second.is_literal() && !second.is_special());
                assert_eq!(entry.literals()[0], first.literals()[0]);
                assert_eq!(entry.bits(), first.bits() + second.bits());
                let length = second.length_with_extra(bits >> first.bits());
                assert_eq!(entry.length_with_extra(bits), length);
            } else {
                assert_eq!(entry, first);
                assert!(entry.is_special() || entry.count() == usize::from(entry.is_literal()));
            }
        }
    }
    assert!(pairs > 0 && led > 0);
}
