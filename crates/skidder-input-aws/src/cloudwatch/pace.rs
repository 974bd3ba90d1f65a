//! When requests may be sent: `api_sleep` apart, and less often when the service says that there are too many.
//!
//! The quotas are those of an account in a region
//! (<https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html>), so that all workers of an input
//! share one pace.

use skidder_os::{Clock, Monotonic};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The first pause of a service that wants fewer requests; doubled with each that follows.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest of these.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// See the module's text. Shared by all workers of an input.
pub(crate) struct Pace {
    /// `api_sleep`.
    sleep: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// No request is sent before this.
    next: Monotonic,
    /// The pause that the service has caused; zero if it answers.
    pause: Duration,
    /// That pause ends then.
    until: Monotonic,
}

impl Pace {
    pub(crate) fn new(sleep: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { sleep, clock, state: Mutex::default() }
    }

    /// How long to wait until the next request, which is the caller's.
    pub(crate) fn take(&self) -> Duration {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        let at = state.next.max(now);
        state.next = at + self.sleep;
        at.since(now)
    }

    /// The service wants fewer requests. Returns the pause until the next one of any worker.
    pub(crate) fn throttled(&self) -> Duration {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        // Others were sent before the pause began.
        if state.until <= now {
            state.pause = (2 * state.pause).clamp(PAUSE_FIRST, PAUSE_MAX).max(self.sleep);
            state.until = now + state.pause;
            state.next = state.next.max(state.until);
        }
        state.until.since(now)
    }

    /// The service has answered.
    pub(crate) fn answered(&self) {
        self.lock().pause = Duration::ZERO;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_testkit::SimClock;

    const SECOND: Duration = Duration::from_secs(1);

    fn pace() -> (Pace, SimClock) {
        let clock = SimClock::new();
        (Pace::new(Duration::from_millis(200), Arc::new(clock.clone())), clock)
    }

    #[test]
    fn requests_of_all_workers_are_apart() {
        let (pace, clock) = pace();
        let waits: Vec<_> = (0..3).map(|_| pace.take().as_millis()).collect();
        assert_eq!(waits, [0, 200, 400]);
        clock.advance(10 * SECOND);
        assert_eq!(pace.take(), Duration::ZERO);
    }

    #[test]
    fn a_pause_doubles_until_the_service_answers() {
        let (pace, clock) = pace();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let pause = pace.throttled();
            // One that was sent before does not count.
            assert_eq!(pace.throttled(), pause);
            assert!(pace.take() >= pause);
            pauses.push(pause.as_secs());
            clock.advance(pause + SECOND);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        pace.answered();
        assert_eq!(pace.throttled(), SECOND);
    }
}
