//! Values as JSON, as Arrow for Go writes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::Date;
use std::io::Write as _;

/// Nanoseconds of a day.
pub(crate) const DAY_NANOS: i128 = 86_400_000_000_000;

/// Writing into memory does not fail.
pub(crate) fn put(into: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let is_put = into.write_fmt(text).is_ok();
    debug_assert!(is_put, "memory");
}

/// A number, as Go writes it.
pub(crate) fn put_f32(value: f32, into: &mut Vec<u8>) {
    let size = value.abs();
    if !value.is_finite() {
        put_no_number(f64::from(value), into);
    } else if size != 0.0 && !(1e-6..1e21).contains(&size) {
        put_exponent(&format!("{value:e}"), into);
    } else {
        put(into, format_args!("{value}"));
    }
}

/// The same.
pub(crate) fn put_f64(value: f64, into: &mut Vec<u8>) {
    let size = value.abs();
    if !value.is_finite() {
        put_no_number(value, into);
    } else if size != 0.0 && !(1e-6..1e21).contains(&size) {
        put_exponent(&format!("{value:e}"), into);
    } else {
        put(into, format_args!("{value}"));
    }
}

/// JSON has no such numbers.
fn put_no_number(value: f64, into: &mut Vec<u8>) {
    let text = match value {
        value if value.is_nan() => "\"NaN\"",
        value if value > 0.0 => "\"+Inf\"",
        _ => "\"-Inf\"",
    };
    into.extend_from_slice(text.as_bytes());
}

/// With a sign and two digits in the exponent, as Go has them.
fn put_exponent(text: &str, into: &mut Vec<u8>) {
    let Some((digits, exponent)) = text.split_once('e') else {
        return into.extend_from_slice(text.as_bytes());
    };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    put(into, format_args!("{digits}e{sign}{exponent:0>2}"));
}

/// A number of bytes, the first of which has the sign, as a text without zeros at its end.
pub(crate) fn put_decimal(bytes: &[u8], scale: i32, into: &mut Vec<u8>) {
    let is_negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let mut size = bytes.to_vec();
    if is_negative {
        let mut carries = true;
        for byte in size.iter_mut().rev() {
            (*byte, carries) = (!*byte).overflowing_add(u8::from(carries));
        }
    }
    let scale = usize::try_from(scale).unwrap_or(0);
    let mut digits = decimal_digits(&mut size);
    while digits.len() <= scale {
        digits.push(b'0');
    }
    digits.reverse();
    let (whole, part) = digits.split_at(digits.len() - scale);
    let kept = part.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    into.push(b'"');
    if is_negative {
        into.push(b'-');
    }
    into.extend_from_slice(whole);
    if kept > 0 {
        into.push(b'.');
        into.extend_from_slice(&part[..kept]);
    }
    into.push(b'"');
}

/// The digits of a number of bytes, the last one first. Divides it by ten, again and again.
fn decimal_digits(bytes: &mut [u8]) -> Vec<u8> {
    let mut digits = Vec::with_capacity(bytes.len() * 5 / 2 + 1);
    while bytes.iter().any(|byte| *byte != 0) {
        let mut rest = 0_u16;
        for byte in bytes.iter_mut() {
            let value = rest << 8 | u16::from(*byte);
            // Less than 256: the rest before it is less than ten.
            *byte = (value / 10) as u8;
            rest = value % 10;
        }
        digits.push(b'0' + rest as u8);
    }
    digits
}

/// A day since 1970-01-01; nothing if no calendar has it.
fn date_of(days: i128) -> Option<Date> {
    let span = jiff::Span::new().try_days(i64::try_from(days).ok()?).ok()?;
    Date::constant(1970, 1, 1).checked_add(span).ok()
}

/// A day since 1970-01-01, as a date.
pub(crate) fn put_date(days: i64, into: &mut Vec<u8>) {
    match date_of(i128::from(days)) {
        Some(date) => put(into, format_args!("\"{date}\"")),
        None => put(into, format_args!("{days}")),
    }
}

/// Nanoseconds since midnight, as a time.
pub(crate) fn put_time(nanos: i128, into: &mut Vec<u8>) {
    into.push(b'"');
    put_clock(nanos, into);
    into.push(b'"');
}

/// The time of the day, without zeros at its end.
fn put_clock(nanos: i128, into: &mut Vec<u8>) {
    let nanos = nanos.rem_euclid(DAY_NANOS);
    let seconds = nanos / 1_000_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    put(into, format_args!("{hour:02}:{minute:02}:{second:02}"));
    put_fraction(nanos % 1_000_000_000, into);
}

fn put_fraction(nanos: i128, into: &mut Vec<u8>) {
    if nanos > 0 {
        let digits = format!("{nanos:09}");
        put(into, format_args!(".{}", digits.trim_end_matches('0')));
    }
}

/// Nanoseconds since 1970, as RFC 3339 in UTC.
pub(crate) fn put_timestamp(nanos: i128, into: &mut Vec<u8>) {
    let Some(date) = date_of(nanos.div_euclid(DAY_NANOS)) else {
        return put(into, format_args!("{nanos}"));
    };
    put(into, format_args!("\"{date}T"));
    put_clock(nanos, into);
    into.extend_from_slice(b"Z\"");
}

/// Bytes of a UUID.
pub(crate) fn put_uuid(bytes: &[u8], into: &mut Vec<u8>) {
    into.push(b'"');
    for (number, byte) in bytes.iter().enumerate() {
        if matches!(number, 4 | 6 | 8 | 10) {
            into.push(b'-');
        }
        put(into, format_args!("{byte:02x}"));
    }
    into.push(b'"');
}

/// Bytes in base64.
pub(crate) fn put_base64(bytes: &[u8], into: &mut Vec<u8>) {
    into.push(b'"');
    into.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    into.push(b'"');
}
