//! A text read by the parts of a layout (`parse` of Go's `src/time/format.go`).

use super::layout::Item;
use super::{GoTimeError, Parts, Problem};
use crate::time::{days_of, digits};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Where a time is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    None,
    Utc,
    /// Seconds east of UTC.
    Offset(i64),
    /// An abbreviation: where it stands in the text, and its length.
    Named(usize, usize),
}

/// A text being read, and what was found.
#[derive(Debug)]
pub(super) struct Reader<'t> {
    text: &'t [u8],
    pub(super) at: usize,
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanoseconds: i64,
    /// `PM` if true.
    half_day: Option<bool>,
    pub(super) zone: Zone,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            at: 0,
            year: 0,
            month: None,
            day: None,
            day_of_year: None,
            hour: 0,
            minute: 0,
            second: 0,
            nanoseconds: 0,
            half_day: None,
            zone: Zone::None,
        }
    }

    #[cold]
    pub(super) fn error(&self, problem: Problem) -> GoTimeError {
        GoTimeError { offset: self.at, problem }
    }

    fn mismatch<T>(&self) -> Result<T, GoTimeError> {
        Err(self.error(Problem::Mismatch))
    }

    fn rest(&self) -> &'t [u8] {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self, most: usize) {
        self.at += self.rest().iter().take(most).take_while(|byte| **byte == b' ').count();
    }

    /// Reads what a part of the layout stands for.
    pub(super) fn read(&mut self, item: &Item) -> Result<(), GoTimeError> {
        match *item {
            Item::Text(ref text) => self.literal(text)?,
            Item::LongYear => self.year = self.long_year()?,
            Item::Year => {
                let Some(two) = self.rest().get(..2) else { return self.mismatch() };
                let Some(year) = signed(two) else { return self.mismatch() };
                self.at += 2;
                self.year = year + if year >= 69 { 1900 } else { 2000 };
            }
            Item::LongMonth => self.month = Some(self.name(&MONTHS, false)?),
            Item::Month => self.month = Some(self.name(&MONTHS, true)?),
            Item::NumericMonth { fixed } => {
                self.month = Some(self.number(fixed, 1..=12, "month")?);
            }
            Item::LongWeekDay => drop(self.name(&DAYS, false)?),
            Item::WeekDay => drop(self.name(&DAYS, true)?),
            Item::Day { fixed, padded } => {
                self.skip_spaces(usize::from(padded));
                self.day = Some(self.number(fixed, 0..=99, "day")?);
            }
            Item::DayOfYear { fixed } => {
                self.skip_spaces(if fixed { 0 } else { 2 });
                self.day_of_year = Some(self.three_digits(fixed)?);
            }
            Item::Hour => self.hour = self.number(false, 0..=23, "hour")?,
            Item::Hour12 { fixed } => self.hour = self.number(fixed, 0..=12, "hour")?,
            Item::Minute { fixed } => self.minute = self.number(fixed, 0..=59, "minute")?,
            Item::Second { fixed, fraction } => {
                self.second = self.number(fixed, 0..=59, "second")?;
                if !fraction {
                    self.any_fraction()?;
                }
            }
            Item::Fraction(count) => self.fraction(count)?,
            Item::AnyFraction => self.any_fraction()?,
            Item::HalfDay { lower } => {
                let words = if lower { [b"pm", b"am"] } else { [b"PM", b"AM"] };
                let found = words.iter().position(|word| self.rest().starts_with(*word));
                let Some(found) = found else { return self.mismatch() };
                // Once there was a `PM` it counts, as in Go.
                self.half_day = Some(found == 0 || self.half_day == Some(true));
                self.at += 2;
            }
            Item::Offset { zulu, colon, parts } => self.zone = self.offset(zulu, colon, parts)?,
            Item::Abbreviation => self.zone = self.abbreviation()?,
        }
        Ok(())
    }

    /// Text of the layout; a run of spaces in it stands for any run of spaces.
    fn literal(&mut self, text: &[u8]) -> Result<(), GoTimeError> {
        let mut spaces = false;
        for &byte in text {
            if byte == b' ' {
                if !spaces && self.rest().first().is_some_and(|first| *first != b' ') {
                    return self.mismatch();
                }
                spaces = true;
                self.skip_spaces(usize::MAX);
                continue;
            }
            spaces = false;
            if self.rest().first() != Some(&byte) {
                return self.mismatch();
            }
            self.at += 1;
        }
        Ok(())
    }

    fn long_year(&mut self) -> Result<i64, GoTimeError> {
        let year = self.rest().get(..4).and_then(digits);
        let Some(year) = year else { return self.mismatch() };
        self.at += 4;
        Ok(year)
    }

    /// The number of a name, from 1, by its first three letters or as a whole.
    fn name(&mut self, names: &[&str], short: bool) -> Result<i64, GoTimeError> {
        for (number, name) in (1..).zip(names) {
            let name = if short { &name[..3] } else { *name };
            let text = self.rest().get(..name.len());
            if text.is_some_and(|text| text.eq_ignore_ascii_case(name.as_bytes())) {
                self.at += name.len();
                return Ok(number);
            }
        }
        self.mismatch()
    }

    /// Two digits, or perhaps one if not `fixed`.
    fn number(
        &mut self,
        fixed: bool,
        range: std::ops::RangeInclusive<i64>,
        what: &'static str,
    ) -> Result<i64, GoTimeError> {
        let digit = |byte: u8| i64::from(byte - b'0');
        let (number, len) = match *self.rest() {
            [first @ b'0'..=b'9', second @ b'0'..=b'9', ..] => {
                (digit(first) * 10 + digit(second), 2)
            }
            [first @ b'0'..=b'9', ..] if !fixed => (digit(first), 1),
            _ => return self.mismatch(),
        };
        if !range.contains(&number) {
            return Err(self.error(Problem::Range(what)));
        }
        self.at += len;
        Ok(number)
    }

    fn three_digits(&mut self, fixed: bool) -> Result<i64, GoTimeError> {
        let count = self.rest().iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 || (fixed && count < 3) {
            return self.mismatch();
        }
        let number = digits(&self.rest()[..count]).unwrap_or_default();
        self.at += count;
        Ok(number)
    }

    /// A point or comma and digits, if they are there.
    fn any_fraction(&mut self) -> Result<(), GoTimeError> {
        match self.rest() {
            [b'.' | b',', rest @ ..] => {
                let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                if count == 0 { Ok(()) } else { self.fraction(count) }
            }
            _ => Ok(()),
        }
    }

    /// A point or comma and this many digits; those after the ninth are dropped.
    fn fraction(&mut self, count: usize) -> Result<(), GoTimeError> {
        let decimals = match self.rest() {
            [b'.' | b',', rest @ ..] => rest.get(..count),
            _ => None,
        };
        let Some(decimals) = decimals else { return self.mismatch() };
        let kept = &decimals[..count.min(9)];
        let Some(number) = digits(kept) else { return self.mismatch() };
        self.nanoseconds = number * 10_i64.pow(9 - kept.len() as u32);
        self.at += 1 + count;
        Ok(())
    }

    /// `+02:00` in one of its forms.
    fn offset(&mut self, zulu: bool, colon: bool, parts: u8) -> Result<Zone, GoTimeError> {
        let rest = self.rest();
        // Go takes a `Z` for the forms without seconds only.
        if zulu && parts < 3 && rest.first() == Some(&b'Z') {
            self.at += 1;
            return Ok(Zone::Utc);
        }
        let sign = match rest.first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return self.mismatch(),
        };
        let (mut at, mut seconds) = (1, 0);
        let units = [
            (3600, 24, "time zone offset hour"),
            (60, 60, "time zone offset minute"),
            (1, 60, "time zone offset second"),
        ];
        for (place, (unit, most, what)) in units.into_iter().take(usize::from(parts)).enumerate() {
            if colon && place > 0 {
                if rest.get(at) != Some(&b':') {
                    return self.mismatch();
                }
                at += 1;
            }
            let Some(number) = rest.get(at..at + 2).and_then(digits) else {
                return self.mismatch();
            };
            if number > most {
                return Err(self.error(Problem::Range(what)));
            }
            seconds += number * unit;
            at += 2;
        }
        self.at += at;
        Ok(Zone::Offset(sign * seconds))
    }

    /// `UTC`, or what looks like the abbreviation of a zone.
    fn abbreviation(&mut self) -> Result<Zone, GoTimeError> {
        let rest = self.rest();
        if rest.starts_with(b"UTC") {
            self.at += 3;
            return Ok(Zone::Utc);
        }
        let Some(len) = abbreviation_len(rest) else { return self.mismatch() };
        let zone = Zone::Named(self.at, len);
        self.at += len;
        Ok(zone)
    }

    /// Puts everything together; the error is what is out of its range.
    pub(super) fn parts(&self) -> Result<Parts, &'static str> {
        let hour = match self.half_day {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let (mut month, mut day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        if let Some(number) = self.day_of_year {
            let (its_month, its_day) = date_of(self.year, number).ok_or("day-of-year")?;
            if self.month.is_some_and(|month| month != its_month) {
                return Err("month of the day-of-year");
            }
            if self.day.is_some_and(|day| day != its_day) {
                return Err("day of the day-of-year");
            }
            (month, day) = (its_month, its_day);
        }
        days_of(self.year, month, day).ok_or("day")?;
        let seconds = hour * 3600 + self.minute * 60 + self.second;
        Ok(Parts { year: self.year, month, day, seconds, nanoseconds: self.nanoseconds })
    }
}

/// Month and day of a day of the year, from 1.
fn date_of(year: i64, number: i64) -> Option<(i64, i64)> {
    let first = days_of(year, 1, 1)?;
    (1..=12).rev().find_map(|month| {
        let day = first + number - days_of(year, month, 1)?;
        days_of(year, month, day).map(|_| (month, day))
    })
}

/// A number that may have a sign.
fn signed(text: &[u8]) -> Option<i64> {
    match text {
        [b'+', rest @ ..] => digits(rest),
        [b'-', rest @ ..] => digits(rest).map(|number| -number),
        _ => digits(text),
    }
}

/// Length of what may be the abbreviation of a zone.
fn abbreviation_len(text: &[u8]) -> Option<usize> {
    if text.len() < 3 {
        return None;
    }
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix(b"GMT") {
        return Some(3 + signed_offset_len(rest).unwrap_or(0));
    }
    if matches!(text[0], b'+' | b'-') {
        return signed_offset_len(text);
    }
    let upper = text.iter().take(6).take_while(|byte| byte.is_ascii_uppercase()).count();
    match upper {
        3 => Some(3),
        4 if text[3] == b'T' || text.starts_with(b"WITA") => Some(4),
        5 if text[4] == b'T' => Some(5),
        _ => None,
    }
}

/// Length of a sign and an hour up to 23.
fn signed_offset_len(text: &[u8]) -> Option<usize> {
    let [b'+' | b'-', rest @ ..] = text else { return None };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let hour = (1..=18).contains(&count).then(|| digits(&rest[..count]))??;
    (hour <= 23).then_some(1 + count)
}
