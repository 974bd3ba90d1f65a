//! Durations, sizes and permissions as people write them.
//!
//! The error of every function is the expected value, for the end of a message.

use std::fmt;
use std::time::Duration;

/// A length of time that may be negative (for settings where `-1` has a meaning).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignedDuration {
    /// Whether it is below zero.
    pub negative: bool,
    /// The length without its sign.
    pub length: Duration,
}

impl fmt::Display for SignedDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative {
            formatter.write_str("-")?;
        }
        formatter.write_str(&show_duration(self.length))
    }
}

/// A duration: Go's notation (`1h30m`, `1.5s`, `100ms`; units `ns us µs ms s m h`) or a bare number
/// of seconds. See <https://pkg.go.dev/time#ParseDuration>. At most 2^63 - 1 ns (292 years).
pub fn parse_signed_duration(text: &str) -> Result<SignedDuration, String> {
    let text = text.trim();
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest.is_empty() {
        return Err(expected_duration(text));
    }
    let bare = rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let number_end =
            rest.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(number_end);
        let unit_end =
            after.find(|next: char| next.is_ascii_digit() || next == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let unit_nanos = if bare {
            1_000_000_000
        } else {
            nanos_of_unit(unit).ok_or_else(|| expected_duration(text))?
        };
        let part = scaled(number, unit_nanos).ok_or_else(|| expected_duration(text))?;
        nanos = nanos.checked_add(part).ok_or_else(|| expected_duration(text))?;
        rest = after;
    }
    let nanos = i128::try_from(nanos).unwrap_or(i128::MAX);
    seconds(if negative { -nanos } else { nanos })
}

/// So many nanoseconds, of a number of seconds.
pub(crate) fn seconds(nanos: i128) -> Result<SignedDuration, String> {
    let length = i64::try_from(nanos.unsigned_abs());
    let length = length.map_err(|_| "a duration of at most 292 years".to_owned())?;
    Ok(SignedDuration { negative: nanos < 0, length: Duration::from_nanos(length.unsigned_abs()) })
}

/// Like [`parse_signed_duration`], zero or more.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    not_negative(parse_signed_duration(text)?)
}

/// The length of a duration of zero or more.
pub(crate) fn not_negative(duration: SignedDuration) -> Result<Duration, String> {
    if duration.negative {
        return Err("a duration of zero or more".to_owned());
    }
    Ok(duration.length)
}

fn expected_duration(text: &str) -> String {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    match days {
        Some(days) => format!("a duration; for {days} days write `{}h`", u64::from(days) * 24),
        None => "a duration like `30s`, `5m`, `1h30m`, `100ms`".to_owned(),
    }
}

fn nanos_of_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// A decimal number times `unit`, rounded down. Exact: no floating point.
fn scaled(number: &str, unit: u64) -> Option<u128> {
    let (before, after) = number.split_once('.').unwrap_or((number, ""));
    if before.is_empty() && after.is_empty() || after.contains('.') {
        return None;
    }
    let whole: u64 = if before.is_empty() { 0 } else { before.parse().ok()? };
    let mut total = u128::from(whole) * u128::from(unit);
    let mut place = u128::from(unit);
    let mut fraction: u128 = 0;
    // Nineteen digits are beyond the smallest part of any unit.
    let mut divisor: u128 = 1;
    for digit in after.bytes().take(19) {
        divisor *= 10;
        fraction = fraction * 10 + u128::from(digit - b'0');
    }
    place = place * fraction / divisor;
    total += place;
    Some(total)
}

/// `1h30m0s` as `1h30m`: the largest units that fit.
pub fn show_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    let mut rest = nanos;
    let mut text = String::new();
    let units = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    for (size, unit) in units {
        if rest >= size {
            text.push_str(&format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    text
}

/// A number of bytes: bare, or with a unit. `KB MB GB TB PB` (and `K M G T P`) count in 1000s,
/// `KiB MiB GiB TiB PiB` (and `Ki Mi …`) in 1024s; case does not matter, fractions are allowed. The
/// same as Filebeat's `cfgtype.ByteSize`, see
/// <https://pkg.go.dev/github.com/dustin/go-humanize#ParseBytes>.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let expected = || "a size like `10MiB`, `512KB` or a number of bytes".to_owned();
    let text = text.trim();
    let number_end = text
        .find(|next: char| !next.is_ascii_digit() && next != '.' && next != ',')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    let bytes: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "p" | "pb" => 1_000_000_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        "ti" | "tib" => 1 << 40,
        "pi" | "pib" => 1 << 50,
        _ => return Err(expected()),
    };
    let size = scaled(&number.replace(',', ""), bytes).ok_or_else(expected)?;
    u64::try_from(size).map_err(|_| "a size below 16 EiB".to_owned())
}

/// Permission bits in octal, with or without a leading `0`: `0640`, `640`, `0o640`.
pub fn parse_permissions(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    let octal = !digits.is_empty() && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    match u32::from_str_radix(digits, 8) {
        Ok(bits) if octal && bits <= 0o777 => Ok(bits),
        _ => Err("permissions in octal, like `0640`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_like_go_or_as_seconds() {
        let second = 1_000_000_000;
        let table: &[(&str, i64)] = &[
            ("0", 0),
            ("5", 5 * second),
            ("-1", -second),
            ("1.5", 1_500_000_000),
            ("5s", 5 * second),
            ("+5s", 5 * second),
            ("100ms", 100_000_000),
            ("1h30m", 5400 * second),
            ("1h30m5.5s", 5_405_500_000_000),
            ("3us", 3000),
            ("3µs", 3000),
            ("7ns", 7),
            ("0.5ns", 0),
            (".5s", 500_000_000),
            ("1.s", second),
            ("-2m", -120 * second),
            ("9223372036s", 9_223_372_036 * second),
        ];
        for (text, nanos) in table {
            let parsed = parse_signed_duration(text).unwrap();
            let length = parsed.length.as_nanos() as i64;
            assert_eq!(if parsed.negative { -length } else { length }, *nanos, "{text}");
        }
        for text in ["", "-", "s", "5 s", "5x", "1..5s", ".s", "five", "5s5", "9999999999999h"] {
            parse_signed_duration(text).unwrap_err();
        }
        assert_eq!(parse_duration("3d").unwrap_err(), "a duration; for 3 days write `72h`");
        parse_duration("-1s").unwrap_err();
    }

    #[test]
    fn durations_are_shown_in_their_largest_units() {
        for text in ["1h30m", "5s", "100ms", "0s", "1s500ms"] {
            assert_eq!(show_duration(parse_duration(text).unwrap()), text);
        }
    }

    #[test]
    fn sizes_tell_thousands_from_1024s() {
        let table = [
            ("0", 0),
            ("1024", 1024),
            ("1,024", 1024),
            ("7 b", 7),
            ("10KB", 10_000),
            ("10k", 10_000),
            ("10KiB", 10_240),
            ("10 kib", 10_240),
            ("1.5MiB", 1_572_864),
            ("20MB", 20_000_000),
            ("1GiB", 1 << 30),
            ("1GB", 1_000_000_000),
            ("2TiB", 1 << 41),
        ];
        for (text, bytes) in table {
            assert_eq!(parse_size(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "MB", "-1", "10XB", "1.2.3MB", "99999999PiB", "ten"] {
            parse_size(text).unwrap_err();
        }
    }

    #[test]
    fn permissions_are_octal_with_or_without_zero() {
        assert_eq!(parse_permissions("0600"), Ok(0o600));
        assert_eq!(parse_permissions("640"), Ok(0o640));
        assert_eq!(parse_permissions("0o640"), Ok(0o640));
        for text in ["", "384", "0888", "-600", "7777", "rw", "+600"] {
            parse_permissions(text).unwrap_err();
        }
    }
}
