//! Failures that come again and again, told now and then: a disk that is nearly full takes a small write and refuses the
//! next, many times a minute.

use skidder_os::Monotonic;
use std::io;
use std::time::Duration;

/// Each kind of failure is told at most so often.
const PAUSE: Duration = Duration::from_mins(1);

/// When it has worked for so long, it works again.
const QUIET: Duration = Duration::from_secs(10);

/// What kind of failure it is: that of the system behind it, if there is one.
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

/// Failures, and which of them are told.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// What was told since `begun`.
    told: Vec<io::ErrorKind>,
    begun: Monotonic,
    /// Failures that were not told.
    untold: u64,
    last: Monotonic,
    /// A failure was told, and no end of it.
    open: bool,
}

impl Repeats {
    /// Something failed; how many failures there were since the last one that was told, if this one is to be told.
    pub(crate) fn failed(&mut self, now: Monotonic, kind: io::ErrorKind) -> Option<u64> {
        self.last = now;
        self.untold += 1;
        if now.since(self.begun) >= PAUSE {
            self.told.clear();
        }
        if self.told.contains(&kind) {
            return None;
        }
        if self.told.is_empty() {
            self.begun = now;
        }
        self.told.push(kind);
        self.open = true;
        Some(std::mem::take(&mut self.untold))
    }

    /// Something worked; whether it is to be told that it works again. `all`: nothing is left to be done.
    pub(crate) fn worked(&mut self, now: Monotonic, all: bool) -> bool {
        let over = self.open && (all || now.since(self.last) >= QUIET);
        if over {
            (self.open, self.untold) = (false, 0);
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
        let mut told = Vec::new();
        for second in 0..600 {
            let now = at(second);
            told.extend(repeats.failed(now, StorageFull).map(|failures| (second, failures)));
            assert!(!repeats.worked(now + Duration::from_millis(500), false));
        }
        let minutes = (0..10).map(|minute| (minute * 60, if minute == 0 { 1 } else { 60 }));
        assert_eq!(told, minutes.collect::<Vec<_>>());
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
