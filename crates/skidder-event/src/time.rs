//! Timestamps as text: RFC 3339 in UTC with a fixed number of decimals, formatted once a change.

use crate::encode::Precision;

/// Calendar parts of a timestamp in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateParts {
    /// Year, may be negative.
    pub year: i16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 1 to 366.
    pub day_of_year: u16,
    /// 1 (Monday) to 7.
    pub weekday: u8,
    /// ISO week-based year.
    pub iso_year: i16,
    /// ISO week, 1 to 53.
    pub iso_week: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999_999_999.
    pub nanosecond: u32,
}

impl DateParts {
    /// Splits nanoseconds since 1970-01-01 UTC.
    pub fn utc(nanoseconds: i64) -> Self {
        let stamp = jiff::Timestamp::from_nanosecond(i128::from(nanoseconds))
            .expect("every i64 of nanoseconds lies between the years 1677 and 2262");
        let time = jiff::tz::Offset::UTC.to_datetime(stamp);
        let week = time.date().iso_week_date();
        Self {
            year: time.year(),
            month: time.month() as u8,
            day: time.day() as u8,
            day_of_year: time.date().day_of_year() as u16,
            weekday: time.date().weekday().to_monday_one_offset() as u8,
            iso_year: week.year(),
            iso_week: week.week() as u8,
            hour: time.hour() as u8,
            minute: time.minute() as u8,
            second: time.second() as u8,
            nanosecond: time.subsec_nanosecond() as u32,
        }
    }
}

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;
/// Seconds of a day.
const DAY: i64 = 86_400;

/// A formatted timestamp. Of the next one only what is another is formatted: of lines that were written within the
/// same second, the decimals.
#[derive(Debug)]
pub struct TimeText {
    precision: Precision,
    /// What `bytes` says, in nanoseconds, seconds and days since the epoch.
    of: i64,
    second: i64,
    day: i64,
    bytes: [u8; 30],
}

impl TimeText {
    /// Formats with this many decimals.
    pub fn new(precision: Precision) -> Self {
        let mut bytes = *b"0000-00-00T00:00:00.000000000Z";
        bytes[precision.text_len() - 1] = b'Z';
        let mut text = Self { precision, of: 0, second: i64::MIN, day: i64::MIN, bytes };
        text.fill(0);
        text
    }

    /// `2026-11-21T20:52:57.123Z` for `nanoseconds` since the epoch.
    #[inline]
    pub fn format(&mut self, nanoseconds: i64) -> &[u8] {
        if nanoseconds != self.of {
            self.fill(nanoseconds);
        }
        &self.bytes[..self.precision.text_len()]
    }

    #[inline]
    fn fill(&mut self, nanoseconds: i64) {
        self.of = nanoseconds;
        let second = nanoseconds.div_euclid(SECOND);
        let decimals = nanoseconds.rem_euclid(SECOND) as u32;
        if second != self.second {
            self.fill_second(second);
        }
        let out = &mut self.bytes;
        three(&mut out[20..23], decimals / 1_000_000);
        if self.precision != Precision::Millisecond {
            three(&mut out[23..26], decimals / 1_000 % 1_000);
        }
        if self.precision == Precision::Nanosecond {
            three(&mut out[26..29], decimals % 1_000);
        }
    }

    fn fill_second(&mut self, second: i64) {
        self.second = second;
        let day = second.div_euclid(DAY);
        let of_day = second.rem_euclid(DAY) as u32;
        if day != self.day {
            self.fill_day(day);
        }
        let out = &mut self.bytes;
        two(&mut out[11..13], of_day / 3600);
        two(&mut out[14..16], of_day / 60 % 60);
        two(&mut out[17..19], of_day % 60);
    }

    fn fill_day(&mut self, day: i64) {
        self.day = day;
        let parts = DateParts::utc(day.saturating_mul(DAY).saturating_mul(SECOND));
        let year = u32::from(parts.year.unsigned_abs());
        let out = &mut self.bytes;
        two(&mut out[0..2], year / 100);
        two(&mut out[2..4], year % 100);
        two(&mut out[5..7], u32::from(parts.month));
        two(&mut out[8..10], u32::from(parts.day));
    }
}

fn two(out: &mut [u8], number: u32) {
    out[0] = b'0' + (number / 10) as u8;
    out[1] = b'0' + (number % 10) as u8;
}

fn three(out: &mut [u8], number: u32) {
    out[0] = b'0' + (number / 100) as u8;
    two(&mut out[1..], number % 100);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_precision_has_its_length() {
        let time = 1_795_294_377_123_456_789;
        let cases = [
            (Precision::Millisecond, "2026-11-21T20:52:57.123Z"),
            (Precision::Microsecond, "2026-11-21T20:52:57.123456Z"),
            (Precision::Nanosecond, "2026-11-21T20:52:57.123456789Z"),
        ];
        for (precision, expected) in cases {
            let mut text = TimeText::new(precision);
            assert_eq!(std::str::from_utf8(text.format(time)).unwrap(), expected);
            assert_eq!(&text.format(0)[..19], b"1970-01-01T00:00:00");
            assert_eq!(std::str::from_utf8(text.format(time)).unwrap(), expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_left_of_the_time_before_is_right(
            times in proptest::collection::vec(
                prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), 0..5_000_000_000_i64, -5_000_000_000..0_i64,
                    // Around the ends of days.
                    (-40_000..40_000_i64, -2_000_000_000..2_000_000_000_i64)
                        .prop_map(|(day, beside)| day * DAY * SECOND + beside)], 1..20),
            precision in prop::sample::select(
                vec![Precision::Millisecond, Precision::Microsecond, Precision::Nanosecond])
        ) {
            let mut text = TimeText::new(precision);
            for time in times {
                let parts = DateParts::utc(time);
                let whole = format!(
                    "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}", parts.year, parts.month, parts.day,
                    parts.hour, parts.minute, parts.second, parts.nanosecond);
                let expected = format!("{}Z", &whole[..precision.text_len() - 1]);
                prop_assert_eq!(std::str::from_utf8(text.format(time)).unwrap(), expected);
            }
        }
    }

    #[test]
    fn times_before_the_epoch_count_forward() {
        let mut text = TimeText::new(Precision::Millisecond);
        assert_eq!(text.format(-1), b"1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn parts_know_weeks_and_days() {
        let parts = DateParts::utc(1_795_294_377_000_000_000);
        assert_eq!((parts.weekday, parts.day_of_year, parts.iso_week), (6, 325, 47));
    }
}
