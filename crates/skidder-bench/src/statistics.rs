//! Medians and spreads of a few runs.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_run_does_not_move_the_median() {
        let summary = summarize(&[1.0, 9.0, 1.2, 1.1, 1.3]).unwrap();
        assert_eq!(summary, Summary { median: 1.2, least: 1.0, most: 9.0 });
    }

    #[test]
    fn an_even_number_of_runs_has_its_median_between_two() {
        assert_eq!(summarize(&[4.0, 1.0, 2.0, 3.0]).map(|summary| summary.median), Some(2.5));
        assert_eq!(summarize(&[]), None);
    }
}
