//! RFC 3164: `<13>Oct 11 22:14:15 host program[1024]: text`.

use super::{Message, Problem, Reader, SyslogError, message_from};
use crate::time::{days_of, digits, rfc3339};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::ops::Range;

pub(super) fn parse(
    text: &[u8],
    timezone: &TimeZone,
    now: i64,
    message: &mut Message,
) -> Result<(), SyslogError> {
    let mut reader = Reader::new(text);
    if text.first() == Some(&b'<') {
        message.priority = Some(reader.priority()?);
    }
    message.time = Some(time(&mut reader, timezone, now)?);
    message.hostname = reader.word_or_none()?;
    if reader.rest().is_empty() {
        return reader.fail(Problem::Unfinished);
    }
    let start = match tag(text, reader.at) {
        Some((appname, procid, start)) => {
            (message.appname, message.procid) = (appname, procid);
            start
        }
        None => reader.at,
    };
    message.message = message_from(text, start);
    Ok(())
}

/// A time with the space behind it.
fn time(reader: &mut Reader<'_>, timezone: &TimeZone, now: i64) -> Result<i64, SyslogError> {
    let start = reader.at;
    let bad = SyslogError::new(start, Problem::Timestamp);
    if reader.rest().first().is_some_and(u8::is_ascii_digit) {
        let word = reader.word()?;
        return rfc3339(&reader.text[word]).ok_or(bad);
    }
    let Some((stamp, len)) = Stamp::read(reader.rest()) else {
        return reader.fail(Problem::Timestamp);
    };
    let time = stamp.in_zone(timezone, now).ok_or(bad)?;
    reader.at += len;
    match reader.rest().first() {
        Some(b' ') => reader.at += 1,
        _ => return reader.fail(Problem::Timestamp),
    }
    Ok(time)
}

/// `Oct 11 22:14:15`.
struct Stamp {
    month: i8,
    day: i8,
    hour: i8,
    minute: i8,
    second: i8,
}

impl Stamp {
    /// Reads a time and says how long it is. Any number of spaces may stand between its parts, and
    /// the day may have a zero in front.
    fn read(text: &[u8]) -> Option<(Self, usize)> {
        const MONTHS: &[u8] = b"janfebmaraprmayjunjulaugsepoctnovdec";
        let name: [u8; 3] = text.first_chunk::<3>()?.map(|byte| byte.to_ascii_lowercase());
        let month = MONTHS.chunks(3).position(|month| month == name)?;
        let at = spaces(text, 3)?;
        let day_len = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=2).contains(&day_len) {
            return None;
        }
        let day = digits(&text[at..at + day_len])?;
        let at = spaces(text, at + day_len)?;
        let clock = text[at..].first_chunk::<8>()?;
        if clock[2] != b':' || clock[5] != b':' {
            return None;
        }
        let (hour, minute) = (digits(&clock[0..2])?, digits(&clock[3..5])?);
        let second = digits(&clock[6..8])?;
        // A year is not known yet: the 29th of February may be.
        days_of(2000, month as i64 + 1, day)?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let stamp = Self {
            month: month as i8 + 1,
            day: day as i8,
            hour: hour as i8,
            minute: minute as i8,
            second: second as i8,
        };
        Some((stamp, at + 8))
    }

    /// The instant, in the year that it is now in the zone.
    fn in_zone(&self, timezone: &TimeZone, now: i64) -> Option<i64> {
        let now = Timestamp::from_nanosecond(i128::from(now)).ok()?;
        let year = timezone.to_datetime(now).year();
        // As Go counts on: the 29th of February of a year without one is the 1st of March.
        let (month, day) = match (self.month, self.day) {
            (2, 29) if days_of(i64::from(year), 2, 29).is_none() => (3, 1),
            date => date,
        };
        let date = DateTime::new(year, month, day, self.hour, self.minute, self.second, 0).ok()?;
        let time = timezone.to_ambiguous_timestamp(date).compatible().ok()?;
        i64::try_from(time.as_nanosecond()).ok()
    }
}

/// Where at least one space ends.
fn spaces(text: &[u8], at: usize) -> Option<usize> {
    let count = text[at..].iter().take_while(|&&byte| byte == b' ').count();
    (count > 0).then_some(at + count)
}

/// The program and its process of `program[1024]: text`, and where the text begins.
fn tag(text: &[u8], start: usize) -> Option<(Range<usize>, Range<usize>, usize)> {
    let rest = &text[start..];
    let stop =
        rest.iter().position(|byte| !byte.is_ascii_graphic() || matches!(byte, b':' | b'['))?;
    if stop == 0 {
        return None;
    }
    let mut end = stop;
    let mut procid = 0..0;
    if rest[stop] == b'[' {
        let close = memchr::memmem::find(&rest[stop..], b"]: ")? + stop;
        let inside = &rest[stop + 1..close];
        if inside.is_empty() || !inside.iter().all(|byte| (b' '..=b'~').contains(byte)) {
            return None;
        }
        procid = start + stop + 1..start + close;
        end = close + 1;
    }
    let text_follows = rest[end..].starts_with(b": ") && rest.len() > end + 2;
    text_follows.then_some((start..start + stop, procid, start + end + 2))
}
