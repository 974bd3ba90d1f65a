//! How fast lines come and go, over at least the time between two requests of an output that waits for full ones.

use crate::ledger::Ledger;
use skidder_os::Monotonic;
use std::collections::VecDeque;
use std::time::Duration;

/// Marks that are kept, one for each flush of the registrar in which something had changed.
const MARKS_MAX: usize = 320;

/// The ledger at times when it had changed. Memory: at most 20 KiB.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    marks: VecDeque<Mark>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    at: Monotonic,
    read: u64,
    read_bytes: u64,
    delivered: u64,
    in_flight: u64,
}

/// Lines and bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Lines read.
    pub read: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Lines delivered.
    pub delivered: f64,
    /// Bytes of lines that got a verdict, from the mean length of a line.
    pub settled_bytes: f64,
}

impl Pace {
    /// Notes the ledger of now, if it has changed.
    pub(crate) fn note(&mut self, at: Monotonic, ledger: &Ledger) {
        let (read, read_bytes) = (ledger.read(), ledger.read_bytes());
        let (delivered, in_flight) = (ledger.delivered(), ledger.in_flight());
        let mark = Mark { at, read, read_bytes, delivered, in_flight };
        if self.marks.back().is_some_and(|last| Mark { at, ..*last } == mark) {
            return;
        }
        if self.marks.len() == MARKS_MAX {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
    }

    /// The rates over at least `interval`, or since the start; `None` before something has happened.
    pub(crate) fn rates(&self, now: Monotonic, interval: Duration) -> Option<Rates> {
        let last = self.marks.back().filter(|_| self.marks.len() > 1)?;
        let rate = |of: fn(&Mark) -> u64| self.rate(now, interval, of);
        let settled = rate(|mark| mark.read - mark.in_flight);
        Some(Rates {
            read: rate(|mark| mark.read),
            read_bytes: rate(|mark| mark.read_bytes),
            delivered: rate(|mark| mark.delivered),
            settled_bytes: settled * last.read_bytes as f64 / last.read.max(1) as f64,
        })
    }

    /// How fast one count grows, from one of its steps to another: a count that grows with each request every ten
    /// seconds has no rate at other times.
    fn rate(&self, now: Monotonic, interval: Duration, of: fn(&Mark) -> u64) -> f64 {
        let marks = self.marks.iter().rev();
        let mut steps = marks
            .clone()
            .zip(marks.skip(1))
            .filter(|(new, old)| of(new) != of(old))
            .map(|(new, _)| new);
        let (Some(last), Some(oldest)) = (steps.next(), self.marks.front()) else { return 0.0 };
        // A request may come a little early.
        let first =
            steps.find(|mark| last.at.since(mark.at) >= interval.mul_f64(0.9)).unwrap_or(oldest);
        let patience = interval.saturating_mul(2).max(Duration::from_secs(2));
        let silence =
            Some(now.since(last.at)).filter(|silence| *silence > patience).unwrap_or_default();
        if silence > patience.saturating_mul(3) {
            return 0.0;
        }
        // Where nothing happened for long, what came then did not take so long.
        let over = last.at.since(first.at).min(patience) + silence;
        if over.is_zero() {
            0.0
        } else {
            of(last).saturating_sub(of(first)) as f64 / over.as_secs_f64()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Verdict;
    use skidder_event::DropCounts;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn at(second: u64) -> Monotonic {
        Monotonic(Duration::from_secs(second))
    }

    fn ledger(read: u64, delivered: u64) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.admit(read, read * 10, &DropCounts::default(), read);
        ledger.settle(Verdict::Delivered, delivered);
        ledger
    }

    /// A pace that reads `lines` a second, each of 10 bytes, and delivers every 10 s what is there.
    fn steady(lines: u64, seconds: u64) -> Pace {
        let mut pace = Pace::default();
        for second in 0..=seconds {
            pace.note(at(second), &ledger(second * lines, (second - second % 10) * lines));
        }
        pace
    }

    #[test]
    fn requests_every_ten_seconds_are_a_steady_rate() {
        for seconds in 20..60 {
            let rates = steady(60, seconds).rates(at(seconds), INTERVAL).unwrap();
            assert!((rates.read - 60.0).abs() < 1.0, "{seconds}: {rates:?}");
            assert!((rates.delivered - 60.0).abs() < 1.0, "{seconds}: {rates:?}");
            assert!((rates.settled_bytes - 600.0).abs() < 10.0, "{seconds}: {rates:?}");
        }
    }

    #[test]
    fn what_has_stopped_goes_to_zero_and_what_begins_again_is_soon_there() {
        let mut pace = steady(60, 30);
        let rate = |pace: &Pace, second| pace.rates(at(second), INTERVAL).unwrap().delivered;
        assert!(rate(&pace, 45) > 50.0);
        assert!(rate(&pace, 60) < 50.0);
        assert_eq!(rate(&pace, 100), 0.0, "not ever smaller");
        for second in 3600..3630 {
            let read = 1800 + (second - 3599) * 60;
            pace.note(at(second), &ledger(read, read));
        }
        assert!((rate(&pace, 3629) - 60.0).abs() < 1.0, "{}", rate(&pace, 3629));
    }

    #[test]
    fn there_is_no_rate_before_something_happened_and_marks_are_bounded() {
        let mut pace = Pace::default();
        assert_eq!(pace.rates(at(1), INTERVAL), None);
        pace.note(at(1), &Ledger::default());
        assert_eq!(pace.rates(at(5), INTERVAL), None);
        assert_eq!(steady(1, 10_000).marks.len(), MARKS_MAX);
    }
}
