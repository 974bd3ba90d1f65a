//! Measured rates, and their significance.

use super::{Ended, Report};
use skidder_os::Monotonic;
use std::time::Duration;

/// Shortest sample: shorter ones measure threads more than servers.
const SAMPLE: Duration = Duration::from_millis(25);
/// So many samples count; older ones fade.
const SAMPLES: f64 = 8.0;
/// How many standard errors a difference must have.
const CERTAIN: f64 = 2.0;
/// Variance of the logarithm of a sample's rate: before anything is known, and its bounds.
const NOISE: f64 = 0.15 * 0.15;
const NOISE_MIN: f64 = 0.02 * 0.02;
const NOISE_MAX: f64 = 0.5 * 0.5;
/// Weight of one more difference.
const NOISE_WEIGHT: f64 = 0.15;

/// The answers in a piece of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    began: Monotonic,
    events: u64,
    requests: u64,
    wanted: u64,
}

impl Sample {
    pub(super) fn new(began: Monotonic) -> Self {
        Self { began, events: 0, requests: 0, wanted: 0 }
    }

    pub(super) fn add(&mut self, report: &Report) {
        debug_assert_eq!(report.ended, Ended::Taken, "the others are no part of a sample");
        self.events += report.events;
        self.requests += 1;
        self.wanted += u64::from(report.wanted);
    }

    /// Whether there is an answer for each request that is under way at once.
    pub(super) fn is_complete(&self, now: Monotonic, under_way: u64) -> bool {
        now.since(self.began) >= SAMPLE && self.requests >= under_way
    }

    /// Whether there was always something to send, most of the time.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted * 2 >= self.requests
    }
}

/// Samples with the same sizes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    events: f64,
    seconds: f64,
    samples: f64,
    /// Rate of the last one.
    last: f64,
}

impl Measured {
    /// Takes a sample in, that ends now.
    pub(super) fn add(&mut self, sample: &Sample, now: Monotonic, noise: &mut Noise) {
        let fade = ((SAMPLES - 1.0) / self.samples.max(SAMPLES - 1.0)).min(1.0);
        let seconds = now.since(sample.began).as_secs_f64();
        let rate = sample.events as f64 / seconds;
        if self.last > 0.0 && rate > 0.0 {
            noise.learn((rate / self.last).ln());
        }
        self.last = rate;
        self.events = self.events * fade + sample.events as f64;
        self.seconds = self.seconds * fade + seconds;
        self.samples = self.samples * fade + 1.0;
    }

    /// How many samples count.
    pub(super) fn samples(&self) -> f64 {
        self.samples
    }

    /// Something else was tried meanwhile: new samples count more.
    pub(super) fn is_older(&mut self) {
        for part in [&mut self.events, &mut self.seconds, &mut self.samples] {
            *part /= 2.0;
        }
    }

    /// Logarithm of the rate over `needed` times another one.
    pub(super) fn over(&self, other: &Self, needed: f64) -> f64 {
        if other.events == 0.0 {
            return f64::INFINITY;
        }
        (self.rate() / (other.rate() * needed)).ln()
    }

    /// Events a second.
    pub(super) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.events / self.seconds } else { 0.0 }
    }
}

/// How much the rates of samples differ without any reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise(f64);

impl Default for Noise {
    fn default() -> Self {
        Self(NOISE)
    }
}

impl Noise {
    /// Two neighbours differ by so much (natural logarithm).
    fn learn(&mut self, difference: f64) {
        let variance = difference * difference / 2.0;
        self.0 += NOISE_WEIGHT * (variance - self.0);
        self.0 = self.0.clamp(NOISE_MIN, NOISE_MAX);
    }

    /// Whether they do not differ more than was to be expected.
    pub(super) fn is_usual(self) -> bool {
        self.0 <= NOISE
    }

    /// By how much two rates must differ to be significant (natural logarithm).
    pub(super) fn margin(&self, one: &Measured, other: &Measured) -> f64 {
        CERTAIN * (self.0 * (1.0 / one.samples.max(0.5) + 1.0 / other.samples.max(0.5))).sqrt()
    }
}
