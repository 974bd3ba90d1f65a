//! The time that a line of a log begins with.
//!
//! Recognised are `2026-11-22T21:20:47` and `2026-11-22 21:20:47` with or without a fraction (RFC 3339 and ISO 8601, as most
//! libraries write them), beginning within the first [`ISO_WITHIN`] bytes, and `22/Nov/2026:21:20:47 +0000` of the Common Log
//! Format within the first [`COMMON_WITHIN`]. Without a zone it is the machine's.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

/// Behind a bracket, a level or the name of a JSON field.
const ISO_WITHIN: usize = 40;
/// Behind the client's address and name.
const COMMON_WITHIN: usize = 120;
/// Length of `22/Nov/2026:21:20:47`.
const COMMON_BYTES: usize = 20;
const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

/// Nanoseconds since 1970-01-01 UTC, if the line begins with a time.
pub(super) fn time_of(line: &[u8], zone: &TimeZone) -> Option<i64> {
    let head = &line[..line.len().min(COMMON_WITHIN + COMMON_BYTES + 8)];
    for at in memchr::memchr2_iter(b'-', b'/', head) {
        let found = match head[at] {
            b'-' if (4..ISO_WITHIN).contains(&at) => iso(&line[at - 4..], zone),
            b'/' if (2..COMMON_WITHIN).contains(&at) => common(&line[at - 2..], zone),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Parses a time of a query: RFC 3339, or without a zone, or only a day.
pub(super) fn parse_time(text: &str, zone: &TimeZone) -> Option<i64> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return i64::try_from(time.as_nanosecond()).ok();
    }
    let time: DateTime = text.parse().ok()?;
    i64::try_from(time.to_zoned(zone.clone()).ok()?.timestamp().as_nanosecond()).ok()
}

fn iso(text: &[u8], zone: &TimeZone) -> Option<i64> {
    let head = text.get(..19)?;
    let apart = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if apart.iter().any(|(at, byte)| head[*at] != *byte) || !matches!(head[10], b'T' | b' ') {
        return None;
    }
    let number = |from: usize, to: usize| digits(&head[from..to]);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let mut rest = &text[19..];
    let mut nanoseconds = 0;
    if let Some(b'.' | b',') = rest.first() {
        let count = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut scale = 100_000_000;
        for byte in &rest[1..=count.min(9)] {
            nanoseconds += i32::from(byte - b'0') * scale;
            scale /= 10;
        }
        rest = &rest[1 + count..];
    }
    let time = civil([year, month, day, hour, minute, second], nanoseconds)?;
    stamp(time, rest, zone)
}

fn common(text: &[u8], zone: &TimeZone) -> Option<i64> {
    let head = text.get(..COMMON_BYTES)?;
    let apart = [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':')];
    if apart.iter().any(|(at, byte)| head[*at] != *byte) {
        return None;
    }
    let number = |from: usize, to: usize| digits(&head[from..to]);
    let month = MONTHS.chunks(3).position(|month| month == &head[3..6])? as i16 + 1;
    let (day, year) = (number(0, 2)?, number(7, 11)?);
    let (hour, minute, second) = (number(12, 14)?, number(15, 17)?, number(18, 20)?);
    let time = civil([year, month, day, hour, minute, second], 0)?;
    stamp(time, text[COMMON_BYTES..].trim_ascii_start(), zone)
}

fn civil(of: [i16; 6], nanoseconds: i32) -> Option<DateTime> {
    let [year, month, day, hour, minute, second] = of;
    let small = |number: i16| i8::try_from(number).ok();
    // A leap second is the one before it.
    let second = small(second)?.min(59);
    DateTime::new(
        year,
        small(month)?,
        small(day)?,
        small(hour)?,
        small(minute)?,
        second,
        nanoseconds,
    )
    .ok()
}

/// The moment of a time with what stands behind it: `Z`, `+01:00`, `-0800`, or no zone.
fn stamp(time: DateTime, rest: &[u8], zone: &TimeZone) -> Option<i64> {
    let offset = match rest.first() {
        Some(b'Z') => Some(0),
        Some(sign @ (b'+' | b'-')) => {
            let hours = rest.get(1..3).and_then(digits);
            let minutes = match rest.get(3) {
                Some(b':') => rest.get(4..6).and_then(digits),
                _ => rest.get(3..5).and_then(digits),
            };
            let minutes = i32::from(hours?) * 60 + i32::from(minutes.unwrap_or(0));
            Some(if *sign == b'-' { -minutes } else { minutes })
        }
        _ => None,
    };
    let time = match offset {
        Some(minutes) => {
            let offset = Offset::from_seconds(minutes * 60).ok()?;
            offset.to_timestamp(time).ok()?
        }
        None => zone.to_timestamp(time).ok()?,
    };
    i64::try_from(time.as_nanosecond()).ok()
}

fn digits(text: &[u8]) -> Option<i16> {
    text.iter().try_fold(0, |number: i16, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i16::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_lines_are_recognised_and_what_is_none_is_not() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let at = |text: &str| time_of(text.as_bytes(), &zone).map(|time| time / 1_000_000);
        let wanted = Some(1_795_382_447_000);
        for line in [
            "2026-11-22T21:20:47Z x",
            "2026-11-22 23:20:47 in the zone of the machine",
            "[2026-11-22T22:20:47+01:00] x",
            "INFO 2026-11-22T13:20:47-0800 x",
            r#"{"@timestamp":"2026-11-22T21:20:47.000Z"}"#,
            r#"10.0.0.1 - bob [22/Nov/2026:21:20:47 +0000] "GET /""#,
        ] {
            assert_eq!(at(line), wanted, "{line}");
        }
        assert_eq!(at("2026-11-22 23:20:47,250 x"), wanted.map(|time| time + 250));
        for line in ["", "no time", "2026-13-22T21:20:47Z", "2026-11-22", "12-34-56 7/8/9", "a/b-c"]
        {
            assert_eq!(at(line), None, "{line}");
        }
        let late = format!("{}2026-11-22T21:20:47Z", "x".repeat(60));
        assert_eq!(at(&late), None);
        assert_eq!(parse_time("2026-11-22T21:20:47Z", &zone), Some(1_795_382_447_000_000_000));
        assert_eq!(parse_time("2026-11-22T23:20:47", &zone), Some(1_795_382_447_000_000_000));
        assert_eq!(parse_time("yesterday", &zone), None);
    }
}
