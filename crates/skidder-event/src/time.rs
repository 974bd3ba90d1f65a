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

/// A formatted timestamp that is formatted again only when the time changes.
#[derive(Debug)]
pub struct TimeText {
    precision: Precision,
    of: i64,
    bytes: [u8; 30],
}

impl TimeText {
    /// Formats with this many decimals.
    pub fn new(precision: Precision) -> Self {
        let mut text = Self { precision, of: 0, bytes: [b'0'; 30] };
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

    fn fill(&mut self, nanoseconds: i64) {
        self.of = nanoseconds;
        let parts = DateParts::utc(nanoseconds);
        let out = &mut self.bytes;
        digits(&mut out[0..4], u32::from(parts.year.unsigned_abs()));
        digits(&mut out[5..7], u32::from(parts.month));
        digits(&mut out[8..10], u32::from(parts.day));
        digits(&mut out[11..13], u32::from(parts.hour));
        digits(&mut out[14..16], u32::from(parts.minute));
        digits(&mut out[17..19], u32::from(parts.second));
        digits(&mut out[20..29], parts.nanosecond);
        for (at, mark) in [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.')] {
            out[at] = mark;
        }
        out[self.precision.text_len() - 1] = b'Z';
    }
}

fn digits(out: &mut [u8], mut number: u32) {
    for place in out.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
