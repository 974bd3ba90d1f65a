//! Waiting for a condition in the real world, with a bound.

use skidder_os::{Clock as _, SystemClock};
use std::time::Duration;

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Looks at a condition until it gives something, at most for `limit`; then nothing.
///
/// For conditions without a notification: files, other processes. It checks once more at the end, so
/// that a machine that was busy does not turn a truth into a failure.
pub fn try_wait_for<T>(limit: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let clock = SystemClock::new();
    let start = clock.monotonic();
    loop {
        let over = clock.monotonic().since(start) >= limit;
        if let Some(given) = condition() {
            return Some(given);
        }
        if over {
            return None;
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
}

/// Looks at a condition until it gives something.
///
/// # Panics
///
/// If it has not after `limit`; the message names the condition.
pub fn wait_for<T>(what: &str, limit: Duration, condition: impl FnMut() -> Option<T>) -> T {
    try_wait_for(limit, condition).unwrap_or_else(|| panic!("waited {limit:?} in vain: {what}"))
}

/// Looks at a condition until it holds.
///
/// # Panics
///
/// As [`wait_for`].
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    wait_for(what, limit, || condition().then_some(()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_looked_at_until_it_gives_something() {
        let mut left = 3;
        let given = wait_for("the third look", Duration::from_secs(5), || {
            left -= 1;
            (left == 0).then_some("third")
        });
        assert_eq!(given, "third");
        assert_eq!(try_wait_for(Duration::from_millis(5), || None::<()>), None);
    }
}
