//! Messages about packets with errors, which may be all packets: one in an interval, with how often it was.

use std::time::Duration;

/// How often the log says the same, at most.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);

/// Says something at most once in an interval, with how often it was.
#[derive(Default)]
pub(super) struct Reports {
    last: Option<Duration>,
    since: u64,
}

impl Reports {
    /// It happened `times` times; returns how often it has since it was said last, if it is to be said now.
    pub(super) fn add(&mut self, times: u64, now: Duration) -> Option<u64> {
        self.since += times;
        let is_due = self.last.is_none_or(|last| now.saturating_sub(last) >= REPORT_INTERVAL);
        if !is_due {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.since))
    }

    /// Nothing comes any more: how often it was since it was said last, if that was not said.
    pub(super) fn rest(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.since)).filter(|since| *since > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_said_at_once_and_the_last_ones_at_the_end() {
        let at = Duration::from_secs;
        let mut reports = Reports::default();
        assert_eq!(reports.rest(), None);
        assert_eq!(reports.add(2, at(5)), Some(2));
        assert_eq!(reports.rest(), None, "all of it was said");
        assert_eq!((reports.add(1, at(6)), reports.add(3, at(64))), (None, None));
        assert_eq!(reports.add(1, at(65)), Some(5));
        assert_eq!(reports.add(7, at(66)), None);
        assert_eq!((reports.rest(), reports.rest()), (Some(7), None));
    }
}
