//! Format strings: `%{[field]:default}` and `%{+yyyy.MM.dd}`, compiled once.
//!
//! The grammar is Filebeat's (libbeat's `fmtstr`): `\` escapes the next character, field references
//! are dotted paths in brackets or one bracket for each part, dates use Joda letters and the event's `@timestamp` in UTC.

use crate::event::{EventRef, ValueRef};
use crate::merge::{write_int, write_uint};
use crate::path::{Path, PathError};
use crate::time::DateParts;

/// A compiled format string.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(Box<str>),
    Field { path: Path, default: Option<Box<str>> },
    Date(Vec<DatePart>),
}

#[derive(Clone, Debug, PartialEq)]
enum DatePart {
    Text(Box<str>),
    Number { what: DateField, width: usize },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum DateField {
    Year,
    TwoDigitYear,
    WeekYear,
    Week,
    Weekday,
    Month,
    DayOfYear,
    Day,
    HalfDay,
    HourOfHalfDay,
    ClockHourOfHalfDay,
    Hour,
    ClockHour,
    Minute,
    Second,
    Fraction,
}

/// Why a text is no format string.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatParseError {
    /// `%{` without `}`.
    #[error("`%{{` at byte {0} has no closing `}}`")]
    Unclosed(usize),
    /// Neither `[field]` nor `+date`.
    #[error(
        "`%{{{0}}}` is neither a field as in `%{{[agent.name]}}` nor a date as in `%{{+yyyy.MM.dd}}`"
    )]
    Unknown(String),
    /// The field is no path.
    #[error("in `%{{[{0}]}}`: {1}")]
    Field(String, PathError),
    /// A letter that dates do not have.
    #[error(
        "`{0}` in date `{1}` is not supported; use y Y x w e E M d D a K h H k m s S, or quote text as in 'T'"
    )]
    Date(char, String),
}

/// Why an event has no text for a format string.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A field is missing and has no default.
    #[error("the event has no field `{0}` and the format string has no default for it")]
    Missing(String),
}

impl Format {
    /// Compiles a format string.
    pub fn parse(text: &str) -> Result<Self, FormatParseError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            if let Some(inner) = rest.strip_prefix("%{") {
                let at = text.len() - rest.len();
                let end = inner.find('}').ok_or(FormatParseError::Unclosed(at))?;
                if !literal.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut literal).into()));
                }
                parts.push(parse_reference(&inner[..end])?);
                rest = &inner[end + 1..];
            } else if letter == '\\' && rest.len() > 1 {
                let escaped = rest[1..].chars().next().unwrap_or('\\');
                literal.push(escaped);
                rest = &rest[1 + escaped.len_utf8()..];
            } else {
                literal.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal.into()));
        }
        Ok(Self { parts })
    }

    /// The text, if it is the same for every event.
    pub fn constant(&self) -> Option<&str> {
        match &self.parts[..] {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it depends on nothing but the date of the event.
    pub fn is_dated_only(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, Part::Field { .. }))
    }

    /// Whether it depends on the date of the event.
    pub fn has_date(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Date(_)))
    }

    /// The fields it reads.
    pub fn fields(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(|part| match part {
            Part::Field { path, .. } => Some(path),
            Part::Text(_) | Part::Date(_) => None,
        })
    }

    /// Replaces fields that are the same for the whole process, as `agent.version` is.
    pub fn bind(&mut self, value: impl Fn(&str) -> Option<String>) {
        for part in &mut self.parts {
            if let Part::Field { path, .. } = part
                && let Some(text) = value(path.as_str())
            {
                *part = Part::Text(text.into());
            }
        }
        let mut joined: Vec<Part> = Vec::with_capacity(self.parts.len());
        for part in self.parts.drain(..) {
            match (joined.last_mut(), part) {
                (Some(Part::Text(before)), Part::Text(text)) => {
                    *before = format!("{before}{text}").into();
                }
                (_, part) => joined.push(part),
            }
        }
        self.parts = joined;
    }

    /// Appends the text for an event.
    pub fn write(&self, out: &mut Vec<u8>, event: EventRef<'_>) -> Result<(), FormatError> {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Date(parts) => write_date(out, parts, event.row().time),
                Part::Field { path, default } => {
                    let written = event.get(path).is_some_and(|value| write_value(out, value));
                    match default {
                        _ if written => {}
                        Some(text) => out.extend_from_slice(text.as_bytes()),
                        None => return Err(FormatError::Missing(path.as_str().to_owned())),
                    }
                }
            }
        }
        Ok(())
    }
}

fn parse_reference(inner: &str) -> Result<Part, FormatParseError> {
    if let Some(date) = inner.strip_prefix('+') {
        return Ok(Part::Date(parse_date(date)?));
    }
    let unknown = || FormatParseError::Unknown(inner.to_owned());
    // `[fields][topic]` is `[fields.topic]`.
    let mut names = Vec::new();
    let mut after = inner;
    while let Some(field) = after.strip_prefix('[') {
        let (name, rest) = field.split_once(']').ok_or_else(unknown)?;
        names.push(name);
        after = rest;
    }
    if names.is_empty() {
        return Err(unknown());
    }
    let name = names.join(".");
    let default = match after {
        "" => None,
        _ => Some(after.strip_prefix(':').ok_or_else(unknown)?.into()),
    };
    let path = Path::parse(&name).map_err(|error| FormatParseError::Field(name.clone(), error))?;
    Ok(Part::Field { path, default })
}

fn parse_date(date: &str) -> Result<Vec<DatePart>, FormatParseError> {
    let mut parts = Vec::new();
    let letters: Vec<char> = date.chars().collect();
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        let run = letters[at..].iter().take_while(|&&next| next == letter).count();
        if letter == '\'' {
            let quoted: String =
                letters[at + 1..].iter().take_while(|&&next| next != '\'').collect();
            at += quoted.chars().count() + 2;
            parts.push(DatePart::Text(quoted.into()));
            continue;
        }
        if !letter.is_ascii_alphabetic() {
            parts.push(DatePart::Text(letter.to_string().into()));
            at += 1;
            continue;
        }
        let what = match letter {
            'y' | 'Y' if run == 2 => DateField::TwoDigitYear,
            'y' | 'Y' => DateField::Year,
            'x' => DateField::WeekYear,
            'w' => DateField::Week,
            'e' | 'E' => DateField::Weekday,
            'M' => DateField::Month,
            'D' => DateField::DayOfYear,
            'd' => DateField::Day,
            'a' => DateField::HalfDay,
            'K' => DateField::HourOfHalfDay,
            'h' => DateField::ClockHourOfHalfDay,
            'H' => DateField::Hour,
            'k' => DateField::ClockHour,
            'm' => DateField::Minute,
            's' => DateField::Second,
            'S' => DateField::Fraction,
            _ => return Err(FormatParseError::Date(letter, date.to_owned())),
        };
        parts.push(DatePart::Number { what, width: run });
        at += run;
    }
    Ok(parts)
}

fn write_date(out: &mut Vec<u8>, parts: &[DatePart], time: i64) {
    use std::io::Write;
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
        ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    let date = DateParts::utc(time);
    for part in parts {
        let DatePart::Number { what, width } = part else {
            if let DatePart::Text(text) = part {
                out.extend_from_slice(text.as_bytes());
            }
            continue;
        };
        let width = *width;
        let number = match what {
            DateField::Year => i64::from(date.year),
            DateField::TwoDigitYear => i64::from(date.year.rem_euclid(100)),
            DateField::WeekYear => i64::from(date.iso_year),
            DateField::Week => i64::from(date.iso_week),
            DateField::Weekday if width >= 3 => {
                let name = DAYS[usize::from(date.weekday) - 1];
                out.extend_from_slice(if width > 3 { name } else { &name[..3] }.as_bytes());
                continue;
            }
            DateField::Weekday => i64::from(date.weekday),
            DateField::Month if width >= 3 => {
                let name = MONTHS[usize::from(date.month) - 1];
                out.extend_from_slice(if width > 3 { name } else { &name[..3] }.as_bytes());
                continue;
            }
            DateField::Month => i64::from(date.month),
            DateField::DayOfYear => i64::from(date.day_of_year),
            DateField::Day => i64::from(date.day),
            DateField::HalfDay => {
                out.extend_from_slice(if date.hour < 12 { b"AM" } else { b"PM" });
                continue;
            }
            DateField::HourOfHalfDay => i64::from(date.hour % 12),
            DateField::ClockHourOfHalfDay => i64::from((date.hour + 11) % 12 + 1),
            DateField::Hour => i64::from(date.hour),
            DateField::ClockHour => i64::from((date.hour + 23) % 24 + 1),
            DateField::Minute => i64::from(date.minute),
            DateField::Second => i64::from(date.second),
            DateField::Fraction => {
                let text = format!("{:09}", date.nanosecond);
                out.extend_from_slice(&text.as_bytes()[..width.min(9)]);
                continue;
            }
        };
        write!(out, "{number:0width$}").expect("writing to a vector cannot fail");
    }
}

/// Appends a scalar as text; returns whether the value is one.
fn write_value(out: &mut Vec<u8>, value: ValueRef<'_>) -> bool {
    use std::io::Write;
    match value {
        ValueRef::Str(text) => out.extend_from_slice(text),
        ValueRef::Int(number) => write_int(out, number),
        ValueRef::UInt(number) => write_uint(out, number),
        ValueRef::Bool(truth) => {
            out.extend_from_slice(if truth { b"true" } else { b"false" });
        }
        ValueRef::Float(number) => {
            write!(out, "{number}").expect("writing to a vector cannot fail");
        }
        ValueRef::Time(time) => {
            let mut text = crate::time::TimeText::new(crate::encode::Precision::Millisecond);
            out.extend_from_slice(text.format(time));
        }
        ValueRef::Null | ValueRef::List(_) | ValueRef::Map(_) => return false,
    }
    true
}
