//! Repeated failures, reported now and then: a disk that is nearly full takes a small write and refuses the
//! next, many times a minute.

use skidder_os::Monotonic;
use std::io;
use std::time::Duration;

/// Each kind of failure is reported at most so often.
const PAUSE: Duration = Duration::from_mins(1);

/// After so long without a failure it counts as working again.
const QUIET: Duration = Duration::from_secs(10);

/// The kind of a failure: that of the system error behind it, if there is one.
pub(crate) fn kind_of(error: &(dyn std::error::Error + 'static)) -> io::ErrorKind {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return error.kind();
        }
        next = error.source();
    }
    io::ErrorKind::Other
}

/// Failures, and which of them to report.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// Kinds reported since `begun`.
    reported: Vec<io::ErrorKind>,
    begun: Monotonic,
    /// Failures since the last report.
    unreported: u64,
    last: Monotonic,
    /// A failure was reported, and not yet its end.
    open: bool,
}

impl Repeats {
    /// Something failed; returns the number of failures since the last report, if this one is to be reported.
    pub(crate) fn failed(&mut self, now: Monotonic, kind: io::ErrorKind) -> Option<u64> {
        self.last = now;
        self.unreported += 1;
        if now.since(self.begun) >= PAUSE {
            self.reported.clear();
        }
        if self.reported.contains(&kind) {
            return None;
        }
        if self.reported.is_empty() {
            self.begun = now;
        }
        self.reported.push(kind);
        self.open = true;
        Some(std::mem::take(&mut self.unreported))
    }

    /// Something worked; returns whether to report that it works again. `all`: nothing is left to do.
    pub(crate) fn worked(&mut self, now: Monotonic, all: bool) -> bool {
        let over = self.open && (all || now.since(self.last) >= QUIET);
        if over {
            (self.open, self.unreported) = (false, 0);
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind::{Other, StorageFull};

    fn at(second: u64) -> Monotonic {
        Monotonic(Duration::from_secs(second))
    }

    #[test]
    fn what_fails_every_second_is_told_every_minute_with_its_count() {
        let mut repeats = Repeats::default();
        let mut reported = Vec::new();
        for second in 0..600 {
            let now = at(second);
            reported.extend(repeats.failed(now, StorageFull).map(|failures| (second, failures)));
            assert!(!repeats.worked(now + Duration::from_millis(500), false));
        }
        let minutes = (0..10).map(|minute| (minute * 60, if minute == 0 { 1 } else { 60 }));
        assert_eq!(reported, minutes.collect::<Vec<_>>());
        assert!(!repeats.worked(at(608), false));
        assert!(repeats.worked(at(609), false), "it has worked for ten seconds");
        assert!(!repeats.worked(at(700), false), "which is told once");
    }

    #[test]
    fn another_failure_is_told_at_once_and_an_end_when_nothing_is_left() {
        let mut repeats = Repeats::default();
        assert_eq!(repeats.failed(at(1), StorageFull), Some(1));
        assert_eq!(repeats.failed(at(2), StorageFull), None);
        assert_eq!(repeats.failed(at(3), Other), Some(2));
        assert_eq!(repeats.failed(at(4), StorageFull), None);
        assert!(repeats.worked(at(5), true));
        // The minute is not over: what comes again in it is not news, nor is its end.
        assert_eq!(repeats.failed(at(6), StorageFull), None);
        assert!(!repeats.worked(at(7), true));
        assert_eq!(repeats.failed(at(61), StorageFull), Some(2));
        assert!(repeats.worked(at(62), true));
    }
}
