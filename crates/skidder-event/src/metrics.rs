//! Counters that any stage keeps and the metrics endpoint reads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Numbers that a [`Sample`] keeps, as Filebeat's histograms of inputs do.
const SAMPLE_MAX: usize = 1024;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Raises it.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Lowers it; never by more than it was raised.
    pub fn sub(&self, count: u64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }

    /// Sets it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A fair sample of numbers, for histograms: of all that were added, each is kept with the same probability (Vitter's
/// algorithm R, as in `UniformSample` of go-metrics, which Filebeat uses).
#[derive(Debug, Default)]
pub struct Sample(Mutex<Reservoir>);

#[derive(Debug, Default)]
struct Reservoir {
    count: u64,
    kept: Vec<u64>,
    /// Of xorshift; chooses what is kept.
    random: u64,
}

/// A [`Sample`] in numbers, with the names of go-metrics. All are 0 without numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Numbers added so far.
    pub count: u64,
    /// The least that was kept.
    pub min: u64,
    /// The greatest that was kept.
    pub max: u64,
    /// The mean of what was kept.
    pub mean: f64,
    /// The standard deviation.
    pub stddev: f64,
    /// The median.
    pub median: f64,
    /// The 75th percentile.
    pub p75: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
}

impl Sample {
    /// Adds a number that stands for `times` equal ones.
    pub fn add(&self, value: u64, times: u64) {
        let mut all = self.lock();
        all.count += times;
        if all.kept.len() < SAMPLE_MAX {
            all.kept.push(value);
            return;
        }
        let mut random = if all.random == 0 { 0x9e37_79b9_7f4a_7c15 } else { all.random };
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        all.random = random;
        // Each of the equal ones has the chance; together they have it so many times.
        let at = random % (all.count / times.max(1)).max(1);
        if let Some(kept) = all.kept.get_mut(at as usize) {
            *kept = value;
        }
    }

    /// What was added, in numbers.
    pub fn summary(&self) -> Summary {
        let all = self.lock();
        let (count, mut kept) = (all.count, all.kept.clone());
        drop(all);
        kept.sort_unstable();
        let (Some(&min), Some(&max)) = (kept.first(), kept.last()) else {
            return Summary { count, ..Summary::default() };
        };
        let length = kept.len() as f64;
        let mean = kept.iter().map(|value| *value as f64).sum::<f64>() / length;
        let square = |value: &u64| (*value as f64 - mean).powi(2);
        let stddev = (kept.iter().map(square).sum::<f64>() / length).sqrt();
        let at = |part| percentile(&kept, part);
        let (median, p75, p95, p99, p999) = (at(0.5), at(0.75), at(0.95), at(0.99), at(0.999));
        Summary { count, min, max, mean, stddev, median, p75, p95, p99, p999 }
    }

    fn lock(&self) -> MutexGuard<'_, Reservoir> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As go-metrics computes it: between the two numbers around the place.
fn percentile(sorted: &[u64], part: f64) -> f64 {
    let place = part * (sorted.len() + 1) as f64;
    let before = place as usize;
    if before < 1 {
        return sorted[0] as f64;
    }
    if before >= sorted.len() {
        return sorted[sorted.len() - 1] as f64;
    }
    let (lower, upper) = (sorted[before - 1] as f64, sorted[before] as f64);
    lower + (place - place.floor()) * (upper - lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_numbers_of_go_metrics() {
        let sample = Sample::default();
        assert_eq!(sample.summary(), Summary::default());
        for value in 1..=100 {
            sample.add(value, 1);
        }
        // What `metrics.NewHistogram(metrics.NewUniformSample(1024))` says of the same numbers.
        let expected = Summary {
            count: 100,
            min: 1,
            max: 100,
            mean: 50.5,
            stddev: 833.25_f64.sqrt(),
            median: 50.5,
            p75: 75.75,
            p95: 95.95,
            p99: 99.99,
            p999: 100.0,
        };
        let mut found = sample.summary();
        assert!((found.stddev - expected.stddev).abs() < 1e-9);
        assert!((found.p95 - expected.p95).abs() < 1e-9);
        (found.stddev, found.p95) = (expected.stddev, expected.p95);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_sample_stays_small_and_fair() {
        let sample = Sample::default();
        for value in 0..100_000 {
            sample.add(value, 1);
        }
        let summary = sample.summary();
        assert_eq!(summary.count, 100_000);
        assert_eq!(sample.lock().kept.len(), SAMPLE_MAX);
        assert!((40_000.0..60_000.0).contains(&summary.mean), "{summary:?}");
    }
}
