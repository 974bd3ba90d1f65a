//! What an unquoted word means: the rules of the YAML library that Filebeat uses (go-yaml v2).
//!
//! They differ from YAML 1.2: `0644` is octal, `1_000` is a number, `yes`, `no`, `on`, `off`, `y`
//! and `n` are booleans, `12:30:45` and dates are text. See `resolve.go` of
//! <https://github.com/go-yaml/yaml/tree/v2>.

use crate::node::Content;

/// The value of a plain (unquoted) YAML scalar.
pub(crate) fn resolve(text: &str) -> Content {
    if matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Content::Null;
    }
    if let Some(value) = bool_of_word(text) {
        return Content::Bool(value);
    }
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Content::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Content::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Content::Float(f64::NAN),
        _ => {}
    }
    // Only these can begin a number; `_1` is text although underscores are dropped below.
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return Content::String;
    }
    number(&text.replace('_', "")).unwrap_or(Content::String)
}

/// The boolean words of YAML 1.1.
pub(crate) fn bool_of_word(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Some(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Some(false)
        }
        _ => None,
    }
}

/// A number without underscores: whole (any Go base prefix) or decimal.
pub(crate) fn number(text: &str) -> Option<Content> {
    if let Some(value) = whole(text) {
        return Some(value);
    }
    if !is_decimal(text) {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite()).map(Content::Float)
}

/// A whole number with Go's prefixes: `0x`, `0o`, `0b`, and `0` alone for octal.
fn whole(text: &str) -> Option<Content> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = if let Some(rest) = lower.strip_prefix("0x") {
        (16, rest)
    } else if let Some(rest) = lower.strip_prefix("0o") {
        (8, rest)
    } else if let Some(rest) = lower.strip_prefix("0b") {
        (2, rest)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    // `from_str_radix` would take a second sign.
    if !digits.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(Content::Int);
    }
    Some(i64::try_from(magnitude).map_or(Content::UInt(magnitude), Content::Int))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(place) => (&unsigned[..place], Some(&unsigned[place + 1..])),
        None => (unsigned, None),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (before, after) = match mantissa.split_once('.') {
        Some((before, after)) => (before, after),
        None => (mantissa, ""),
    };
    let exponent_fits = exponent.is_none_or(|digits| {
        let digits = digits.strip_prefix(['-', '+']).unwrap_or(digits);
        !digits.is_empty() && all_digits(digits)
    });
    let some_digit = !before.is_empty() || !after.is_empty();
    some_digit && all_digits(before) && all_digits(after) && exponent_fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use Content::{Bool, Float, Int, Null, String, UInt};

    #[test]
    fn plain_words_mean_what_go_yaml_says() {
        let table = [
            ("", Null),
            ("~", Null),
            ("null", Null),
            ("nil", String),
            ("yes", Bool(true)),
            ("Off", Bool(false)),
            ("y", Bool(true)),
            ("oN", String),
            ("0", Int(0)),
            ("-0", Int(0)),
            ("12", Int(12)),
            ("+12", Int(12)),
            ("-12", Int(-12)),
            ("--12", String),
            ("+-12", String),
            ("0644", Int(420)),
            ("-010", Int(-8)),
            ("0o17", Int(15)),
            ("0x1F", Int(31)),
            ("0b101", Int(5)),
            ("0x", String),
            ("08", Float(8.0)),
            ("1_000", Int(1000)),
            ("_1", String),
            ("9223372036854775807", Int(i64::MAX)),
            ("-9223372036854775808", Int(i64::MIN)),
            ("9223372036854775808", UInt(1 << 63)),
            ("18446744073709551615", UInt(u64::MAX)),
            ("18446744073709551616", Float(18_446_744_073_709_551_616.0)),
            ("1.10", Float(1.1)),
            (".5", Float(0.5)),
            ("1.", Float(1.0)),
            ("1e3", Float(1000.0)),
            ("1e", String),
            ("1.2.3", String),
            (".", String),
            ("-", String),
            (".inf", Float(f64::INFINITY)),
            ("inf", String),
            ("nan", String),
            ("12:30:45", String),
            ("2024-01-31", String),
            ("10s", String),
            ("0xZZ", String),
            ("/var/log", String),
        ];
        for (text, expected) in table {
            assert_eq!(resolve(text), expected, "{text}");
        }
    }
}
