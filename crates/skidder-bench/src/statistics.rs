//! Medians, spreads and a significance test of a few runs.

/// Measurements from which on a difference can be significant at [`ALPHA`] at all: four against four.
pub const RUNS_FOR_SIGNIFICANCE: usize = 4;
/// A difference is called significant if chance alone would make it more rarely than this.
pub const ALPHA: f64 = 0.05;
/// Measurements of both samples together up to which the exact distribution is counted.
const EXACT_MAX: usize = 50;

/// The middle of some measurements, and how far they lay apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The middle one; the mean of the two in the middle for an even number.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl Summary {
    /// The largest distance from the median, in percent of it.
    pub fn spread_percent(&self) -> f64 {
        let distance = (self.most - self.median).max(self.median - self.least);
        if self.median == 0.0 { 0.0 } else { distance / self.median.abs() * 100.0 }
    }
}

/// Summarizes at least one measurement; `None` for none.
pub fn summarize(measurements: &[f64]) -> Option<Summary> {
    let mut sorted = measurements.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (least, most) = (*sorted.first()?, *sorted.last()?);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    };
    Some(Summary { median, least, most })
}

/// The two-sided Mann-Whitney U test, which benchstat uses too: how likely chance alone makes two samples of the same
/// distribution differ in rank as much as these do. `None` if a sample is empty.
///
/// Exact up to `EXACT_MAX` measurements, also with ties; beyond, the normal approximation with the correction for
/// ties and continuity (Mann, Whitney: "On a test of whether one of two random variables is stochastically larger than
/// the other", 1947).
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<f64> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let doubled = doubled_ranks(first, second);
    let observed: usize = doubled[..first.len()].iter().sum();
    if doubled.len() <= EXACT_MAX {
        Some(exact(&doubled, first.len(), observed))
    } else {
        Some(approximate(&doubled, first.len(), observed))
    }
}

/// Twice the rank of each measurement among all, the first sample's in front: with ties ranks are halves.
fn doubled_ranks(first: &[f64], second: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    let rank = |value: f64| {
        let below = all.iter().filter(|other| other.total_cmp(&value).is_lt()).count();
        let equal = all.iter().filter(|other| other.total_cmp(&value).is_eq()).count();
        2 * below + equal + 1
    };
    all.iter().map(|&value| rank(value)).collect()
}

/// Of all ways to choose `size` of these ranks, the part whose sum is as far from the mean as `observed`.
fn exact(doubled: &[usize], size: usize, observed: usize) -> f64 {
    let total: usize = doubled.iter().sum();
    // ways[count][sum]: choices of `count` ranks with this sum.
    let mut ways = vec![vec![0.0_f64; total + 1]; size + 1];
    ways[0][0] = 1.0;
    for &rank in doubled {
        for count in (1..=size).rev() {
            for sum in (rank..=total).rev() {
                ways[count][sum] += ways[count - 1][sum - rank];
            }
        }
    }
    let mean = total as f64 * size as f64 / doubled.len() as f64;
    let distance = (observed as f64 - mean).abs();
    let is_as_far = |sum: usize| (sum as f64 - mean).abs() >= distance - 1e-9;
    let all: f64 = ways[size].iter().sum();
    let far: f64 = (0..=total).filter(|&sum| is_as_far(sum)).map(|sum| ways[size][sum]).sum();
    far / all
}

fn approximate(doubled: &[usize], size: usize, observed: usize) -> f64 {
    let (all, first) = (doubled.len() as f64, size as f64);
    let second = all - first;
    let mut sorted = doubled.to_vec();
    sorted.sort_unstable();
    let ties: f64 = sorted
        .chunk_by(|one, other| one == other)
        .map(|tied| (tied.len() as f64).powi(3) - tied.len() as f64)
        .sum();
    let variance = first * second / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance == 0.0 {
        return 1.0;
    }
    let distance = (observed as f64 / 2.0 - first * (all + 1.0) / 2.0).abs();
    two_sided(((distance - 0.5) / variance.sqrt()).max(0.0))
}

/// The part of the standard normal distribution that is further from its mean than `z`: the complementary error
/// function by Abramowitz and Stegun, 7.1.26, with an error below 2e-7.
fn two_sided(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let polynomial = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592]
        .iter()
        .fold(0.0, |sum, factor| (sum + factor) * t);
    (polynomial * (-x * x).exp()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_run_does_not_move_the_median() {
        let summary = summarize(&[1.0, 9.0, 1.2, 1.1, 1.3]).unwrap();
        assert_eq!(summary, Summary { median: 1.2, least: 1.0, most: 9.0 });
        assert!((summary.spread_percent() - 650.0).abs() < 1e-9);
    }

    #[test]
    fn an_even_number_of_runs_has_its_median_between_two() {
        assert_eq!(summarize(&[4.0, 1.0, 2.0, 3.0]).map(|summary| summary.median), Some(2.5));
        assert_eq!(summarize(&[]), None);
    }

    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() < tolerance, "{value} is not {expected}");
    }

    #[test]
    fn the_test_gives_the_published_values() {
        // Exact: 2 of 20, 70 and 252 choices are as far apart; R's wilcox.test gives the same.
        let low = [1.0, 2.0, 3.0, 4.0, 5.0];
        let high = [6.0, 7.0, 8.0, 9.0, 10.0];
        for (runs, expected) in [(3, 2.0 / 20.0), (4, 2.0 / 70.0), (5, 2.0 / 252.0)] {
            let value = mann_whitney(&low[..runs], &high[..runs]).unwrap();
            assert_near(value, expected, 1e-12);
            assert_eq!(value < ALPHA, runs >= RUNS_FOR_SIGNIFICANCE);
        }
        // Hollander and Wolfe, 1973, page 69: U = 35, the exact value is 0.2544.
        let at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let early = [1.15, 0.88, 0.90, 0.74, 1.21];
        assert_near(mann_whitney(&at_term, &early).unwrap(), 0.254_412_254, 1e-8);
    }

    #[test]
    fn samples_that_do_not_differ_are_never_significant() {
        assert_near(mann_whitney(&[1.0; 5], &[1.0; 5]).unwrap(), 1.0, 1e-12);
        assert_near(mann_whitney(&[1.0, 3.0, 5.0], &[2.0, 4.0]).unwrap(), 1.0, 1e-12);
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_near(mann_whitney(&[2.0; 40], &[2.0; 40]).unwrap(), 1.0, 1e-6);
    }

    #[test]
    fn order_of_samples_and_ties_make_no_difference_to_the_two_sided_value() {
        let (one, other) = ([1.0, 2.0, 2.0, 3.0], [2.0, 4.0, 5.0, 5.0]);
        let value = mann_whitney(&one, &other).unwrap();
        assert_near(value, mann_whitney(&other, &one).unwrap(), 1e-12);
        // Of the 70 choices of four ranks, 8 have a sum as far from 18 as 12 is.
        assert_near(value, 8.0 / 70.0, 1e-12);
    }

    #[test]
    fn the_approximation_meets_the_exact_value_where_both_are_known() {
        let one: Vec<f64> = (0..25).map(|number| f64::from(number) * 1.07).collect();
        let other: Vec<f64> = (0..25).map(|number| f64::from(number) + 6.3).collect();
        let doubled = doubled_ranks(&one, &other);
        let observed = doubled[..25].iter().sum();
        let (counted, guessed) =
            (exact(&doubled, 25, observed), approximate(&doubled, 25, observed));
        assert_near(guessed, counted, 0.005);
        let far: Vec<f64> = one.iter().map(|value| value + 100.0).collect();
        let many: Vec<f64> = one.iter().chain(&one).copied().collect();
        assert!(mann_whitney(&many, &far).unwrap() < 1e-6);
    }
}
