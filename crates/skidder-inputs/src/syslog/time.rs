//! When a message was written.
//!
//! Values beyond what a calendar has count on, as in Go: the 31st of February is the 3rd of March.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

const NANOSECONDS: i64 = 1_000_000_000;

/// A time as a message has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// None if the message has none.
    pub(super) year: Option<i64>,
    /// From 1; or less, which is in the year before.
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) nanosecond: i64,
    /// Seconds east of UTC; none if the message does not say.
    pub(super) offset: Option<i64>,
}

impl Default for Stamp {
    fn default() -> Self {
        // What Filebeat takes for a month that is none.
        let month = -1;
        let (year, offset) = (None, None);
        Self { year, month, day: 0, hour: 0, minute: 0, second: 0, nanosecond: 0, offset }
    }
}

/// The zone of times without one.
#[derive(Clone, Debug)]
pub(super) enum Zone {
    /// Seconds east of UTC.
    Fixed(i64),
    /// With a history.
    Named(TimeZone),
}

impl Zone {
    pub(super) fn new(zone: TimeZone) -> Self {
        match zone.to_fixed_offset() {
            Ok(offset) => Self::Fixed(i64::from(offset.seconds())),
            Err(_) => Self::Named(zone),
        }
    }

    /// Seconds east of UTC at this instant.
    fn offset_at(&self, seconds: i64) -> i64 {
        match self {
            Self::Fixed(offset) => *offset,
            Self::Named(zone) => match Timestamp::from_second(seconds) {
                Ok(instant) => i64::from(zone.to_offset(instant).seconds()),
                // In a year that has no history.
                Err(_) => 0,
            },
        }
    }

    /// Seconds east of UTC when clocks show this time, in seconds since 1970-01-01 of the clocks.
    fn offset_of_clock(&self, clock: i64) -> i64 {
        // As Go: what an hour that comes twice, or never, means is the same.
        match self.offset_at(clock) {
            0 => 0,
            offset => self.offset_at(clock - offset),
        }
    }

    /// The year at this instant, in nanoseconds since 1970-01-01 UTC.
    pub(super) fn year(&self, now: i64) -> i64 {
        let seconds = now.div_euclid(NANOSECONDS);
        let clock = Timestamp::from_second(seconds + self.offset_at(seconds));
        clock.map_or(1970, |clock| i64::from(Offset::UTC.to_datetime(clock).year()))
    }
}

impl Stamp {
    /// The offset as it stands in a message: `Z`, `+02`, `+0200`, `+02:00`.
    pub(super) fn set_offset(&mut self, text: &[u8]) {
        let two = |at: usize| match text.get(at..at + 2) {
            Some([tens, ones]) => i64::from(tens - b'0') * 10 + i64::from(ones - b'0'),
            _ => 0,
        };
        self.offset = match text {
            [b'Z' | b'z', ..] => Some(0),
            [sign, ..] => {
                let minutes = if text.len() > 3 { two(text.len() - 2) } else { 0 };
                let seconds = two(1) * 3600 + minutes * 60;
                Some(if *sign == b'-' { -seconds } else { seconds })
            }
            [] => None,
        };
    }

    /// Digits behind the point.
    pub(super) fn set_fraction(&mut self, digits: &[u8]) {
        let number = super::message::number(digits);
        let missing = 9_usize.saturating_sub(digits.len()) as u32;
        self.nanosecond = number.wrapping_mul(10_i64.pow(missing));
    }

    /// Nanoseconds since 1970-01-01 UTC; `year` and `zone` stand for what the message does not say. Nothing beyond the
    /// years 1677 to 2262, for which 64 bits are not enough.
    pub(super) fn nanoseconds(&self, year: i64, zone: &Zone) -> Option<i64> {
        let months = self.year.unwrap_or(year) * 12 + self.month - 1;
        let days = days_of(months.div_euclid(12), months.rem_euclid(12) + 1) + self.day - 1;
        let clock = ((days * 24 + self.hour) * 60 + self.minute) * 60 + self.second;
        let clock = clock + self.nanosecond.div_euclid(NANOSECONDS);
        let offset = self.offset.unwrap_or_else(|| zone.offset_of_clock(clock));
        let nanoseconds = (clock - offset).checked_mul(NANOSECONDS)?;
        nanoseconds.checked_add(self.nanosecond.rem_euclid(NANOSECONDS))
    }
}

/// Days from 1970-01-01 to the first of a month.
fn days_of(year: i64, month: i64) -> i64 {
    // Years that begin in March: the odd day of a leap year is at the end
    // (howardhinnant.github.io/date_algorithms.html).
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400 * NANOSECONDS;

    #[test]
    fn days_and_years_are_those_of_the_calendar() {
        for (year, month, days) in
            [(1970, 1, 0), (1970, 3, 59), (2000, 3, 11_017), (2026, 11, 20_758)]
        {
            assert_eq!(days_of(year, month), days);
        }
        let utc = Zone::Fixed(0);
        assert_eq!(
            (utc.year(-1), utc.year(0), utc.year(365 * DAY - 1), utc.year(365 * DAY)),
            (1969, 1970, 1970, 1971)
        );
        assert_eq!(Zone::Fixed(3600).year(-1), 1970, "the new year has begun there");
    }

    #[test]
    fn hours_that_come_twice_or_never_are_those_of_go() {
        // `time.Date(2026, month, day, hour, 30, 0, 0, zone).Unix()` of Go.
        for (zone, month, day, hour, expected) in [
            ("Europe/Berlin", 3, 29, 2, 1_774_747_800),
            ("Europe/Berlin", 10, 25, 2, 1_792_891_800),
            ("Europe/Berlin", 7, 1, 0, 1_782_858_600),
            ("America/New_York", 3, 8, 2, 1_772_951_400),
            ("America/New_York", 11, 1, 1, 1_793_511_000),
        ] {
            let stamp = Stamp { month, day, hour, minute: 30, ..Stamp::default() };
            let zone = Zone::new(TimeZone::get(zone).unwrap());
            let found = stamp.nanoseconds(2026, &zone).unwrap();
            assert_eq!(found, expected * NANOSECONDS, "{zone:?} {month} {day}");
        }
    }

    #[test]
    fn a_time_beyond_64_bits_is_none() {
        let stamp = Stamp { year: Some(2262), month: 4, day: 11, ..Stamp::default() };
        assert!(stamp.nanoseconds(2026, &Zone::Fixed(0)).is_some());
        let stamp = Stamp { day: 13, ..stamp };
        assert_eq!(stamp.nanoseconds(2026, &Zone::Fixed(0)), None);
    }
}
