//! Times in text by Go's layouts (`Jan _2 15:04:05.000 -0700`), read as Go's `time.ParseInLocation` does.
//!
//! The semantics are those of Go 1.24 (`src/time/format.go`): a run of spaces in the layout stands
//! for any number of spaces, a fraction behind the seconds is taken even if the layout has none,
//! names are read in any case, days of the week are read and not checked, `,` and `.` are the same
//! before a fraction. Without a year (or in the year 0) a time gets the current year, as Filebeat's
//! processor `timestamp` does; the 29th of February becomes the 1st of March where there is none.
//! Such a time with the abbreviation of a zone is one of the current year from the start, where Go
//! looks the abbreviation up in the year 0.

mod layout;
mod read;

use crate::time::days_of;
use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use layout::Item;
use read::{Reader, Zone};

/// A compiled layout.
#[derive(Clone, Debug)]
pub struct Layout {
    source: Box<str>,
    items: Box<[Item]>,
}

/// Why a text is no time of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset}")]
pub struct GoTimeError {
    /// Where, from the first byte of the text.
    pub offset: usize,
    /// What.
    pub problem: Problem,
}

/// An error in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It differs from the layout.
    #[error("does not match the layout")]
    Mismatch,
    /// A number is too small or too large for what it means.
    #[error("{0} out of range")]
    Range(&'static str),
    /// More text follows.
    #[error("extra text")]
    Extra,
}

/// The parts of a time as they were read.
#[derive(Clone, Copy, Debug)]
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    /// Seconds since midnight.
    seconds: i64,
    nanoseconds: i64,
}

impl Layout {
    /// Compiles a layout; everything is one.
    pub fn new(source: &str) -> Self {
        Self { source: source.into(), items: layout::compile(source) }
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it has anything that a time is read from.
    pub fn is_constant(&self) -> bool {
        self.items.iter().all(|item| matches!(item, Item::Text(_)))
    }

    /// Nanoseconds since 1970-01-01 UTC of a text. A time without a zone is one of `timezone`;
    /// `now` (nanoseconds since 1970-01-01 UTC) gives the year of a time without one.
    ///
    /// # Errors
    /// If the text is no time of this layout, or one outside the years 1678 to 2261.
    pub fn parse(
        &self,
        text: &[u8],
        timezone: &TimeZone,
        now: impl FnOnce() -> i64,
    ) -> Result<i64, GoTimeError> {
        let mut reader = Reader::new(text);
        for item in &self.items {
            reader.read(item)?;
        }
        if reader.at < text.len() {
            return Err(reader.error(Problem::Extra));
        }
        let end = text.len();
        let range = |what| GoTimeError { offset: end, problem: Problem::Range(what) };
        let mut parts = reader.parts().map_err(range)?;
        let zone = reader.zone;
        if parts.year == 0 {
            parts.year = year_of(now(), &zone, timezone);
            if days_of(parts.year, parts.month, parts.day).is_none() {
                (parts.month, parts.day) = (3, 1);
            }
        }
        let days = days_of(parts.year, parts.month, parts.day).ok_or_else(|| range("day"))?;
        let local = days * 86_400 + parts.seconds;
        let seconds = match zone {
            Zone::Utc => local,
            Zone::Offset(offset) => local - offset,
            Zone::Named(start, len) => {
                let name = &text[start..start + len];
                local - offset_of(name, local, timezone)
            }
            Zone::None => in_zone(local, timezone),
        };
        seconds
            .checked_mul(1_000_000_000)
            .and_then(|time| time.checked_add(parts.nanoseconds))
            .ok_or_else(|| range("year"))
    }
}

/// Seconds east of UTC at an instant.
fn offset_at(seconds: i64, timezone: &TimeZone) -> i64 {
    match Timestamp::from_second(seconds) {
        Ok(instant) => i64::from(timezone.to_offset(instant).seconds()),
        Err(_) => 0,
    }
}

/// The instant of a local time, which at a change of the clock is one of the two that it may be:
/// the one that Go chooses.
fn in_zone(local: i64, timezone: &TimeZone) -> i64 {
    if let Ok(offset) = timezone.to_fixed_offset() {
        return local - i64::from(offset.seconds());
    }
    let offset = offset_at(local, timezone);
    if offset == 0 {
        return local;
    }
    local - offset_at(local - offset, timezone)
}

/// The current year where a time without one is from.
fn year_of(now: i64, zone: &Zone, timezone: &TimeZone) -> i64 {
    let year = |timezone: &TimeZone| {
        let instant = Timestamp::from_nanosecond(i128::from(now))
            .expect("every i64 of nanoseconds lies between the years 1677 and 2262");
        i64::from(timezone.to_datetime(instant).year())
    };
    match *zone {
        Zone::Utc => year(&TimeZone::UTC),
        Zone::Offset(offset) => {
            let offset =
                i32::try_from(offset).ok().and_then(|offset| Offset::from_seconds(offset).ok());
            year(&offset.map_or(TimeZone::UTC, TimeZone::fixed))
        }
        Zone::Named(..) | Zone::None => year(timezone),
    }
}

/// Changes of the clock looked at for an abbreviation, before and after a time.
const CHANGES_MAX: usize = 64;

/// Seconds east of UTC of an abbreviation: what it means in the zone at that time, or at another,
/// or what a number behind `GMT` says; else 0.
fn offset_of(name: &[u8], local: i64, timezone: &TimeZone) -> i64 {
    let Ok(instant) = Timestamp::from_second(local) else { return 0 };
    let found = |at: Timestamp| {
        let info = timezone.to_offset_info(at);
        let same = info.abbreviation().as_bytes() == name;
        same.then(|| i64::from(info.offset().seconds()))
    };
    let changes = || {
        let before = timezone.preceding(instant).take(CHANGES_MAX);
        let after = timezone.following(instant).take(CHANGES_MAX);
        let same =
            |change: &jiff::tz::TimeZoneTransition<'_>| change.abbreviation().as_bytes() == name;
        let offset =
            |change: jiff::tz::TimeZoneTransition<'_>| i64::from(change.offset().seconds());
        let offsets = before.filter(same).chain(after.filter(same)).map(offset);
        let in_effect = |offset: &i64| offset_at(local - offset, timezone) == *offset;
        let mut all = offsets;
        let mut first = None;
        for offset in all.by_ref() {
            if in_effect(&offset) {
                return Some(offset);
            }
            first = first.or(Some(offset));
        }
        first
    };
    let known = match found(instant) {
        Some(offset) if offset_at(local - offset, timezone) == offset => Some(offset),
        there => changes().or(there),
    };
    known.unwrap_or_else(|| match name.strip_prefix(b"GMT") {
        Some([sign @ (b'+' | b'-'), digits @ ..]) => {
            let hours = crate::time::digits(digits).unwrap_or(0);
            3600 * if *sign == b'-' { -hours } else { hours }
        }
        _ => 0,
    })
}

#[cfg(test)]
mod tests;
