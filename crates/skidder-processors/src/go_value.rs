//! Values as Go's `fmt` writes them with `%v`: what Filebeat hashes, counts by and puts into texts.

use skidder_event::{DateParts, Precision, TimeText, ValueRef, write_string};
use std::io::Write;

/// Longest number or time, in bytes: `-1.7976931348623157e+308` and a time with nine digits of a
/// fraction are shorter.
const NUMBER_BYTES_MAX: usize = 64;

/// Gives a value to `sink` in pieces. `false`, and nothing was given: it is a list or an object.
pub(crate) fn write_scalar(value: ValueRef<'_>, sink: &mut dyn FnMut(&[u8])) -> bool {
    let mut buffer = [0_u8; NUMBER_BYTES_MAX];
    match value {
        ValueRef::Str(text) => sink(text),
        ValueRef::Bool(truth) => sink(if truth { b"true" } else { b"false" }),
        ValueRef::Null => sink(b"<nil>"),
        ValueRef::Int(number) => sink(format_into(&mut buffer, format_args!("{number}"))),
        ValueRef::UInt(number) => sink(format_into(&mut buffer, format_args!("{number}"))),
        ValueRef::Float(number) => sink(format_float(&mut buffer, number)),
        ValueRef::Time(time) => sink(format_time(&mut buffer, time)),
        ValueRef::List(_) | ValueRef::Map(_) => return false,
    }
    true
}

/// The text of a value, if it is one and UTF-8.
pub(crate) fn utf8_of(value: ValueRef<'_>) -> Option<&str> {
    match value {
        ValueRef::Str(text) => std::str::from_utf8(text).ok(),
        _ => None,
    }
}

/// The Go type of a value, as messages of Filebeat name it (`%T`).
pub(crate) fn go_type(value: ValueRef<'_>) -> &'static str {
    match value {
        ValueRef::Null => "<nil>",
        ValueRef::Bool(_) => "bool",
        ValueRef::Int(_) => "int64",
        ValueRef::UInt(_) => "uint64",
        ValueRef::Float(_) => "float64",
        ValueRef::Str(_) => "string",
        ValueRef::Time(_) => "time.Time",
        ValueRef::List(_) => "[]interface {}",
        ValueRef::Map(_) => "mapstr.M",
    }
}

fn format_into<'a>(
    buffer: &'a mut [u8; NUMBER_BYTES_MAX],
    text: std::fmt::Arguments<'_>,
) -> &'a [u8] {
    let mut rest = &mut buffer[..];
    rest.write_fmt(text).expect("numbers and times fit");
    let free = rest.len();
    &buffer[..NUMBER_BYTES_MAX - free]
}

/// The shortest digits that read back as the number; an exponent below -4 and from 21 on.
fn format_float(buffer: &mut [u8; NUMBER_BYTES_MAX], number: f64) -> &[u8] {
    if number.is_nan() {
        return b"NaN";
    }
    if number.is_infinite() {
        return if number > 0.0 { b"+Inf" } else { b"-Inf" };
    }
    let size = number.abs();
    if size == 0.0 || (1e-4..1e21).contains(&size) {
        return format_into(buffer, format_args!("{number}"));
    }
    let mut scratch = [0_u8; NUMBER_BYTES_MAX];
    let text = format_into(&mut scratch, format_args!("{number:e}"));
    let at = text.iter().position(|&byte| byte == b'e').expect("written with an exponent");
    let digits = std::str::from_utf8(&text[..at]).unwrap_or_default();
    let exponent = std::str::from_utf8(&text[at + 1..]).unwrap_or_default();
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format_into(buffer, format_args!("{digits}e{sign}{exponent:0>2}"))
}

/// `2021-10-28 17:46:23.5 +0000 UTC`, the fraction without zeros at its end.
fn format_time(buffer: &mut [u8; NUMBER_BYTES_MAX], time: i64) -> &[u8] {
    let date = DateParts::utc(time);
    let (mut fraction, mut width) = (date.nanosecond, 9);
    while fraction > 0 && fraction % 10 == 0 {
        fraction /= 10;
        width -= 1;
    }
    let point = if fraction > 0 { "." } else { "" };
    let width = if fraction > 0 { width } else { 0 };
    let day = format_args!("{:04}-{:02}-{:02}", date.year, date.month, date.day);
    let clock = format_args!("{:02}:{:02}:{:02}", date.hour, date.minute, date.second);
    if width == 0 {
        return format_into(buffer, format_args!("{day} {clock} +0000 UTC"));
    }
    format_into(buffer, format_args!("{day} {clock}{point}{fraction:0width$} +0000 UTC"))
}

/// Appends any value: an element after the other in brackets for a list, JSON for an object.
pub(crate) fn write_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    if write_scalar(value, &mut |piece| out.extend_from_slice(piece)) {
        return;
    }
    match value {
        ValueRef::List(list) => {
            out.push(b'[');
            let mut first = true;
            list.for_each(|item| {
                if !std::mem::take(&mut first) {
                    out.push(b' ');
                }
                write_value(out, item);
                true
            });
            out.push(b']');
        }
        other => write_json(out, other),
    }
}

/// Appends a value as JSON, the keys of objects in byte order.
fn write_json(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => out.extend_from_slice(b"null"),
        ValueRef::Float(number) if !number.is_finite() => out.extend_from_slice(b"null"),
        ValueRef::Str(text) => write_string(out, text, false),
        ValueRef::Time(time) => {
            out.push(b'"');
            out.extend_from_slice(TimeText::new(Precision::Millisecond).format(time));
            out.push(b'"');
        }
        ValueRef::List(list) => {
            out.push(b'[');
            let mut first = true;
            list.for_each(|item| {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                write_json(out, item);
                true
            });
            out.push(b']');
        }
        ValueRef::Map(map) => {
            let mut members = Vec::new();
            map.for_each(|key, value| members.push((key, value)));
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (at, (key, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_json(out, ValueRef::Str(key));
                out.push(b':');
                write_json(out, value);
            }
            out.push(b'}');
        }
        scalar => {
            write_scalar(scalar, &mut |piece| out.extend_from_slice(piece));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_event::{Base, Map, Path, Value};
    use std::sync::Arc;

    fn shown(value: ValueRef<'_>) -> String {
        let mut out = Vec::new();
        assert!(write_scalar(value, &mut |piece| out.extend_from_slice(piece)));
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn numbers_are_written_as_go_does() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.5e300, "-1.5e+300"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
            (f64::MIN, "-1.7976931348623157e+308"),
        ];
        for (number, text) in cases {
            assert_eq!(shown(ValueRef::Float(number)), text);
        }
        assert_eq!(shown(ValueRef::Int(i64::MIN)), "-9223372036854775808");
        assert_eq!(shown(ValueRef::UInt(u64::MAX)), "18446744073709551615");
    }

    #[test]
    fn times_are_written_as_go_does() {
        let second = 1_635_443_183_000_000_000;
        assert_eq!(shown(ValueRef::Time(second)), "2021-10-28 17:46:23 +0000 UTC");
        assert_eq!(shown(ValueRef::Time(second + 50_000_000)), "2021-10-28 17:46:23.05 +0000 UTC");
        let last = shown(ValueRef::Time(second + 999_999_999));
        assert_eq!(last, "2021-10-28 17:46:23.999999999 +0000 UTC");
    }

    #[test]
    fn lists_are_written_in_brackets_and_objects_as_json() {
        let mut inner = Map::new();
        inner.insert("b", Value::List(vec![Value::Null, Value::from("x\""), Value::Float(1.5)]));
        inner.insert("a", Value::Int(1));
        let mut fields = Map::new();
        fields.insert("map", inner);
        fields.insert("list", Value::List(vec![Value::from("x"), Value::Bool(true)]));
        let base = Arc::new(Base::new(&fields, &Map::new()));
        let batch = skidder_golden::batch(&[""], &base);
        for (name, text) in [("map", r#"{"a":1,"b":[null,"x\"",1.5]}"#), ("list", "[x true]")] {
            let path = Path::parse(name).unwrap();
            let mut out = Vec::new();
            write_value(&mut out, batch.event_over(0, &base).get(&path).unwrap());
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
