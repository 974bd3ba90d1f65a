//! Backoff between attempts, and rate-limited logging of failures.

use std::time::Duration;

/// Exponential waits with equal jitter: half of each wait is fixed, half is random, so that many
/// shippers do not come back to a server at the same instant.
#[derive(Clone, Debug)]
pub struct Backoff {
    init: Duration,
    max: Duration,
    next: Duration,
    random: u64,
}

impl Backoff {
    /// Waits from `init` to `max`; `seed` should differ between workers.
    pub fn new(init: Duration, max: Duration, seed: u64) -> Self {
        let max = max.max(init);
        // SplitMix64's increment: no seed leaves the generator at zero.
        Self { init, max, next: init, random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 }
    }

    /// The next wait, between half of it and all of it.
    pub fn next_wait(&mut self) -> Duration {
        let full = self.next;
        self.next = (full * 2).min(self.max);
        // xorshift64 (Marsaglia): more than good enough to spread clients.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let share = (self.random >> 11) as f64 / (1_u64 << 53) as f64;
        full / 2 + (full / 2).mul_f64(share)
    }

    /// Something worked: the next wait is the shortest again.
    pub fn reset(&mut self) {
        self.next = self.init;
    }
}

/// Counts failures in a row and returns those to log: the first and then every power of two.
#[derive(Debug, Default)]
pub struct Failures(u64);

impl Failures {
    /// Another failure; the count if it is to be logged.
    pub fn add(&mut self) -> Option<u64> {
        self.0 += 1;
        self.0.is_power_of_two().then_some(self.0)
    }

    /// It works again; how many failures there were.
    pub fn clear(&mut self) -> u64 {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_bound_and_start_again_after_success() {
        let (init, max) = (Duration::from_secs(1), Duration::from_secs(5));
        for seed in 0..100 {
            let mut backoff = Backoff::new(init, max, seed);
            for full in [1, 2, 4, 5, 5] {
                let full = Duration::from_secs(full);
                let wait = backoff.next_wait();
                assert!(wait >= full / 2 && wait <= full, "{wait:?} of {full:?}");
            }
            backoff.reset();
            assert!(backoff.next_wait() <= init);
        }
    }

    #[test]
    fn only_powers_of_two_are_logged() {
        let mut failures = Failures::default();
        let logged: Vec<u64> = (0..20).filter_map(|_| failures.add()).collect();
        assert_eq!(logged, [1, 2, 4, 8, 16]);
        assert_eq!(failures.clear(), 20);
        assert_eq!(failures.add(), Some(1));
    }
}
