//! Times of extensions: milliseconds since 1970, or `Sep 07 2018 14:50:39.123 +0200` with year,
//! decimals and zone where they are.

use super::value::{ValueError, integer};
use crate::time::{days_of, digits};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Nanoseconds since 1970-01-01 UTC. `timezone` is for times without a zone, the year of `now`
/// (nanoseconds since 1970-01-01 UTC) for those without a year.
pub fn timestamp(text: &str, timezone: &TimeZone, now: i64) -> Result<i64, ValueError> {
    if let Ok(milliseconds) = integer(text, 64) {
        return milliseconds.checked_mul(1_000_000).ok_or(ValueError::Timestamp);
    }
    written(text.as_bytes(), timezone, now).ok_or(ValueError::Timestamp)
}

fn written(text: &[u8], timezone: &TimeZone, now: i64) -> Option<i64> {
    let (name, rest) = text.split_first_chunk::<3>()?;
    let month = MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))? as i64 + 1;
    let rest = rest.strip_prefix(b" ")?;
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    let (day, rest) = number(rest, 1, 2)?;
    let rest = rest.strip_prefix(b" ")?;
    let (year, rest) = match number(rest, 4, 4) {
        Some((year, behind)) => (Some(year), behind.strip_prefix(b" ")?),
        None => (None, rest),
    };
    let (hour, rest) = number(rest, 1, 2)?;
    let (minute, rest) = number(rest.strip_prefix(b":")?, 2, 2)?;
    let (second, rest) = number(rest.strip_prefix(b":")?, 2, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (nanosecond, rest) = decimals(rest)?;
    let year = match year {
        Some(year) => year,
        None => {
            let now = Timestamp::from_nanosecond(i128::from(now)).ok()?;
            i64::from(timezone.to_datetime(now).year())
        }
    };
    // The 29th of February of a year that has none is the 1st of March.
    let day_of = days_of(year, month, day);
    let (month, day) =
        if day_of.is_none() && (month, day) == (2, 29) { (3, 1) } else { (month, day) };
    days_of(year, month, day)?;
    let date = DateTime::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
        i8::try_from(hour).ok()?,
        i8::try_from(minute).ok()?,
        i8::try_from(second).ok()?,
        i32::try_from(nanosecond).ok()?,
    );
    let zone = match rest {
        [] => timezone.clone(),
        [b' ', zone @ ..] => zone_of(zone, timezone, now)?,
        _ => return None,
    };
    let stamp = zone.to_timestamp(date.ok()?).ok()?;
    i64::try_from(stamp.as_nanosecond()).ok()
}

/// A number of `least` to `most` digits, and what follows.
fn number(text: &[u8], least: usize, most: usize) -> Option<(i64, &[u8])> {
    let count = text.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    if count < least {
        return None;
    }
    Some((digits(&text[..count])?, &text[count..]))
}

/// Decimals of a second in nanoseconds, and what follows.
fn decimals(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.' | b',', rest)) = text.split_first() else { return Some((0, text)) };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let kept = &rest[..count.min(9)];
    Some((digits(kept)? * 10_i64.pow(9 - kept.len() as u32), &rest[count..]))
}

/// `Z`, `+0200`, `+02:00`, `+02`, `GMT+02:00`, or an abbreviation. One that is not that of
/// `timezone` counts as UTC, as in Filebeat.
fn zone_of(text: &[u8], timezone: &TimeZone, now: i64) -> Option<TimeZone> {
    let offset = match text {
        b"Z" => return Some(TimeZone::UTC),
        [b'G', b'M', b'T', offset @ ..] if !offset.is_empty() => offset,
        [b'+' | b'-', ..] => text,
        _ => {
            let is_name = (3..=5).contains(&text.len()) && text.iter().all(u8::is_ascii_alphabetic);
            if !is_name {
                return None;
            }
            let now = Timestamp::from_nanosecond(i128::from(now)).ok()?;
            let ours = timezone.to_offset_info(now).abbreviation().as_bytes() == text;
            return Some(if ours { timezone.clone() } else { TimeZone::UTC });
        }
    };
    let (sign, rest) = match offset.split_first()? {
        (b'+', rest) => (1, rest),
        (b'-', rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match *rest {
        [h] => ([b'0', h], *b"00"),
        [h1, h2] => ([h1, h2], *b"00"),
        [h1, h2, m1, m2] | [h1, h2, b':', m1, m2] => ([h1, h2], [m1, m2]),
        _ => return None,
    };
    let (hours, minutes) = (digits(&hours)?, digits(&minutes)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = i32::try_from(sign * (hours * 3600 + minutes * 60)).ok()?;
    Offset::from_seconds(seconds).map(TimeZone::fixed).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21T20:52:57Z.
    const NOW: i64 = 1_795_294_377_000_000_000;

    fn read(text: &str) -> Option<String> {
        let time = timestamp(text, &TimeZone::UTC, NOW).ok()?;
        Some(Timestamp::from_nanosecond(i128::from(time)).unwrap().to_string())
    }

    #[test]
    fn times_are_read_with_and_without_year_decimals_and_zone() {
        for (text, expected) in [
            ("1322004689123", "2011-11-22T23:31:29.123Z"),
            ("Jun 23 17:37:24", "2026-06-23T17:37:24Z"),
            ("Jun  3 17:37:24", "2026-06-03T17:37:24Z"),
            ("Jun 23 17:37:24.004 Z", "2026-06-23T17:37:24.004Z"),
            ("Jun 23 17:37:24.000 EST", "2026-06-23T17:37:24Z"),
            ("Jun 23 17:37:24 +05", "2026-06-23T12:37:24Z"),
            ("Jun 23 2020 17:37:24 +0500", "2020-06-23T12:37:24Z"),
            ("Jun 23 2020 17:37:24.5 -05:30", "2020-06-23T23:07:24.5Z"),
            ("Jun 23 2020 17:37:24.000 GMT+05:00", "2020-06-23T12:37:24Z"),
            ("Sep 07 2018 14:50:39", "2018-09-07T14:50:39Z"),
            ("Feb 29 00:00:00", "2026-03-01T00:00:00Z"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "Jun",
            "Jun 23",
            "Jun 31 17:37:24",
            "Jun 23 24:00:00",
            "Jun 23 17:37:24 Nowhere",
            "Jun 23 17:37:24 +5000",
            "Jun 23 17:37:24.",
            "Jun 23 2020",
            "23 Jun 17:37:24",
            "Jun 23 17:37:24x",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_without_a_zone_is_in_that_of_the_settings() {
        let zone = TimeZone::fixed(Offset::from_seconds(2 * 3600 + 15 * 60).unwrap());
        let time = timestamp("Jun 23 10:30:03.004", &zone, NOW).unwrap();
        let text = Timestamp::from_nanosecond(i128::from(time)).unwrap().to_string();
        assert_eq!(text, "2026-06-23T08:15:03.004Z");
    }
}
