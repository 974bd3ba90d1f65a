//! `decode_duration`: turns a duration as Go writes it (`1h2m3.5s`) into a number.

use crate::fields::pairs::required_path;
use crate::go_value::{go_type, utf8_of};
use crate::plan::{Constants, Failure, Footprint, Outcome, Processor, rehearse};
use skidder_config::{Group, Key, OneOf, Section, settings};
use skidder_event::{Cell, EventMut, EventRef, Path};

settings! {
    /// Settings of `decode_duration`.
    pub(crate) static DECODE_DURATION = Group::new("processor.decode_duration", "Turns a duration as Go writes it (`1h2m3.5s`) into a number, in its \
                               field.");

    FIELD: String = Key::new("field")
        .required()
        .about("the field with the duration");
    FORMAT: OneOf<Format> = Key::one_of("format", &[
            ("milliseconds", Format::Milliseconds),
            ("seconds", Format::Seconds),
            ("minutes", Format::Minutes),
            ("hours", Format::Hours),
        ])
        .default("milliseconds")
        .about("`milliseconds` (whole ones), `seconds`, `minutes` or `hours`");
}

const SECOND: f64 = 1e9;

/// What the number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Whole ones; the rest is cut off.
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
}

/// Turns a duration into a number, in its place.
#[derive(Clone, Debug)]
pub(crate) struct DecodeDuration {
    field: Path,
    format: Format,
}

impl DecodeDuration {
    /// `field`, `format`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let field = required_path(settings, &FIELD);
        let format = settings.get(&FORMAT).value();
        Some(Self { field: field?, format })
    }

    fn number(&self, event: EventRef<'_>) -> Result<f64, String> {
        let field = &self.field;
        let value =
            event.get(field).ok_or_else(|| format!("field '{field}' not present on event"))?;
        let Some(text) = utf8_of(value) else {
            return Err(format!("field '{field}' is not a string, value: {}", go_type(value)));
        };
        let nanoseconds = parse_duration(text)
            .map_err(|reason| format!("couldn't parse field '{field}' as duration: {reason}"))?;
        // As Go does it: whole units and the rest apart, which gives the nearest number.
        let unit = |length: f64| {
            let length_whole = length as i64;
            (nanoseconds / length_whole) as f64 + (nanoseconds % length_whole) as f64 / length
        };
        Ok(match self.format {
            Format::Milliseconds => (nanoseconds / 1_000_000) as f64,
            Format::Seconds => unit(SECOND),
            Format::Minutes => unit(60.0 * SECOND),
            Format::Hours => unit(3600.0 * SECOND),
        })
    }
}

/// Nanoseconds of a text as Go's `time.ParseDuration` reads it: numbers with units behind each other.
fn parse_duration(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole = leading(rest, |letter| letter.is_ascii_digit());
        rest = &rest[whole.len()..];
        let mut fraction = "";
        if let Some(behind) = rest.strip_prefix('.') {
            fraction = leading(behind, |letter| letter.is_ascii_digit());
            rest = &behind[fraction.len()..];
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let unit = leading(rest, |letter| letter != '.' && !letter.is_ascii_digit());
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        rest = &rest[unit.len()..];
        let Some(length) = length_of(unit) else {
            return Err(format!("time: unknown unit {unit:?} in duration {text:?}"));
        };
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        let part = fraction_of(fraction, length);
        let sum = whole.checked_mul(length).and_then(|whole| whole.checked_add(part));
        total = sum.and_then(|sum| total.checked_add(sum)).ok_or_else(invalid)?;
        if total > 1 << 63 {
            return Err(invalid());
        }
    }
    if negative {
        return 0_i64.checked_sub_unsigned(total).ok_or_else(invalid);
    }
    i64::try_from(total).map_err(|_| invalid())
}

fn leading(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    let end = text.find(|letter| !belongs(letter)).unwrap_or(text.len());
    &text[..end]
}

/// `.digits` of a unit, in nanoseconds. Digits that a `u64` does not hold are left out.
fn fraction_of(digits: &str, length: u64) -> u64 {
    let (mut number, mut scale) = (0_u64, 1.0_f64);
    for digit in digits.bytes() {
        let Some(next) =
            number.checked_mul(10).and_then(|n| n.checked_add(u64::from(digit - b'0')))
        else {
            break;
        };
        if next > i64::MAX as u64 {
            break;
        }
        number = next;
        scale *= 10.0;
    }
    (number as f64 * (length as f64 / scale)) as u64
}

/// Nanoseconds of a unit.
fn length_of(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

impl Processor for DecodeDuration {
    fn name(&self) -> &'static str {
        "decode_duration"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let number = self.number(event.as_ref()).map_err(Failure::unnoted)?;
        event.put_cell(&self.field, Cell::Float(number)).map_err(|error| {
            Failure::unnoted(format!("put field '{}' back to event failed: {error}", self.field))
        })?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let field = || vec![self.field.clone()];
        Footprint { reads: field(), writes: field(), ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        rehearse(self, constants, &[&self.field])
    }

    fn describe(&self) -> String {
        format!("decode_duration in {}", self.field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_does() {
        let cases = [
            ("0", 0),
            ("5s", 5_000_000_000),
            ("-1.5h", -5_400_000_000_000),
            ("+5.s", 5_000_000_000),
            (".5s", 500_000_000),
            ("1h2m3s4ms5us6ns", 3_723_004_005_006),
            ("1\u{b5}s1\u{3bc}s", 2_000),
            ("0.9223372036854775807h", 3_320_413_933_267),
            ("-9223372036854775808ns", i64::MIN),
            ("9223372036854775807ns", i64::MAX),
        ];
        for (text, nanoseconds) in cases {
            assert_eq!(parse_duration(text), Ok(nanoseconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_told_as_go_does() {
        let cases = [
            ("", "time: invalid duration \"\""),
            ("-", "time: invalid duration \"-\""),
            ("3", "time: missing unit in duration \"3\""),
            ("s", "time: invalid duration \"s\""),
            (".s", "time: invalid duration \".s\""),
            ("1d", "time: unknown unit \"d\" in duration \"1d\""),
            ("9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""),
            ("3000000h", "time: invalid duration \"3000000h\""),
        ];
        for (text, reason) in cases {
            assert_eq!(parse_duration(text), Err(reason.to_owned()), "{text}");
        }
    }
}
