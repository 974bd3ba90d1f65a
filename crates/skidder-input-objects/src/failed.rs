//! Objects that failed: each is tried again after a pause, which is doubled each time.

use skidder_os::Monotonic;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest pause until an object that failed is tried again.
const RETRY_MAX: Duration = Duration::from_hours(24);
/// Objects that failed whose pauses are remembered; others are tried with each listing.
const FAILED_MAX: usize = 10_000;

/// See the module's text. By their names in the registry.
#[derive(Debug, Default)]
pub(crate) struct FailedObjects(Mutex<HashMap<String, Failed>>);

#[derive(Clone, Copy, Debug)]
struct Failed {
    times: u32,
    not_before: Monotonic,
}

impl FailedObjects {
    /// An object failed. Returns the pause until it is tried again; the first one is `pause`.
    pub(crate) fn add(&self, name: &str, pause: Duration, now: Monotonic) -> Duration {
        let mut all = self.lock();
        let times = all.get(name).map_or(0, |failed| failed.times);
        let pause = pause.saturating_mul(2_u32.saturating_pow(times.min(20))).min(RETRY_MAX);
        if all.len() < FAILED_MAX || all.contains_key(name) {
            let failed = Failed { times: times.saturating_add(1), not_before: now + pause };
            all.insert(name.to_owned(), failed);
        }
        pause
    }

    /// Whether an object failed, and is not tried again yet.
    pub(crate) fn waits(&self, name: &str, now: Monotonic) -> bool {
        self.lock().get(name).is_some_and(|failed| now < failed.not_before)
    }

    /// An object was read.
    pub(crate) fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Failed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_doubled_up_to_a_day_and_forgotten_with_success() {
        let failed = FailedObjects::default();
        let minute = Duration::from_mins(1);
        let at = |seconds| Monotonic(Duration::from_secs(seconds));
        assert_eq!(failed.add("a", minute, at(0)), minute);
        assert!(failed.waits("a", at(59)) && !failed.waits("a", at(60)));
        assert_eq!(failed.add("a", minute, at(60)), 2 * minute);
        assert!(failed.waits("a", at(179)) && !failed.waits("b", at(179)));
        for _ in 0..40 {
            failed.add("a", minute, at(180));
        }
        assert_eq!(failed.add("a", minute, at(180)), RETRY_MAX);
        failed.remove("a");
        assert!(!failed.waits("a", at(180)));
        assert_eq!(failed.add("a", minute, at(180)), minute);
    }
}
