//! When a file of the log is full by time, and the dates in the names of files.

use jiff::Zoned;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use skidder_os::Timestamp;
use std::time::Duration;

const DAY: u64 = 24 * 60 * 60;

/// A moment at a place.
pub(crate) fn at(time: Timestamp, zone: &TimeZone) -> Zoned {
    let time = jiff::Timestamp::from_nanosecond(i128::from(time.0));
    time.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_zoned(zone.clone())
}

/// The date as in names of files: 20260131.
pub(crate) fn date_number(time: &Zoned) -> u32 {
    let year = u32::try_from(time.year()).unwrap_or(0);
    year * 10_000 + time.month() as u32 * 100 + time.day() as u32
}

/// Whether two moments are in different intervals. A second, minute, hour, day, week, month (30
/// days) and year (365 days) are those of the calendar, others are counted from 1970.
pub(crate) fn differ(interval: Duration, before: &Zoned, now: &Zoned) -> bool {
    let week = |date: Date| {
        let week = date.iso_week_date();
        (week.year(), week.week())
    };
    let seconds = |time: &Zoned| time.timestamp().as_second();
    let (this, that) = (before.datetime(), now.datetime());
    let minute = |time: jiff::civil::DateTime| (time.date(), time.hour(), time.minute());
    match interval.as_secs() {
        0 => false,
        1 => seconds(before) != seconds(now),
        60 => minute(this) != minute(that),
        3600 => (this.date(), this.hour()) != (that.date(), that.hour()),
        DAY => this.date() != that.date(),
        every if every == 7 * DAY => week(this.date()) != week(that.date()),
        every if every == 30 * DAY => (this.year(), this.month()) != (that.year(), that.month()),
        every if every == 365 * DAY => this.year() != that.year(),
        every => {
            let every = i64::try_from(every).unwrap_or(i64::MAX);
            seconds(before).div_euclid(every) != seconds(now).div_euclid(every)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Zoned {
        text.parse::<jiff::Timestamp>().expect("a time").to_zoned(TimeZone::UTC)
    }

    #[test]
    fn intervals_end_where_the_calendar_says() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let table = [
            (Duration::ZERO, "2026-01-01T00:00:00Z", "2036-01-01T00:00:00Z", false),
            (Duration::from_secs(1), "2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.9Z", false),
            (Duration::from_secs(1), "2026-01-01T00:00:00.9Z", "2026-01-01T00:00:01Z", true),
            (Duration::from_mins(1), "2026-01-01T00:00:59Z", "2026-01-01T00:01:00Z", true),
            (Duration::from_mins(1), "2026-01-01T00:01:00Z", "2026-01-01T00:01:59Z", false),
            (hours(1), "2026-01-01T00:59:59Z", "2026-01-01T01:00:00Z", true),
            (hours(1), "2026-01-01T01:00:00Z", "2026-01-01T01:59:59Z", false),
            (hours(24), "2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z", true),
            (hours(24), "2026-01-31T00:00:00Z", "2026-01-31T23:59:59Z", false),
            // A Sunday and the Monday behind it; the first days of a year may be of a week of the
            // year before.
            (hours(168), "2026-01-04T23:59:59Z", "2026-01-05T00:00:00Z", true),
            (hours(168), "2025-12-29T00:00:00Z", "2026-01-04T23:59:59Z", false),
            (hours(720), "2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z", true),
            (hours(720), "2026-01-01T00:00:00Z", "2026-01-31T23:59:59Z", false),
            (hours(8760), "2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z", true),
            (hours(8760), "2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z", false),
            (hours(2), "2026-01-01T01:59:59Z", "2026-01-01T02:00:00Z", true),
            (hours(2), "2026-01-01T02:00:00Z", "2026-01-01T03:59:59Z", false),
        ];
        for (interval, before, now, expected) in table {
            let found = differ(interval, &moment(before), &moment(now));
            assert_eq!(found, expected, "{interval:?} {before} {now}");
        }
    }

    #[test]
    fn dates_are_those_of_the_place() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let time = moment("2026-12-31T23:00:00Z").timestamp().as_nanosecond();
        let time = Timestamp(i64::try_from(time).expect("a time of these days"));
        assert_eq!(date_number(&at(time, &TimeZone::UTC)), 20_261_231);
        assert_eq!(date_number(&at(time, &zone)), 20_270_101);
    }
}
