//! Numbers and truths in text, as Go's `strconv` reads them and Filebeat's processors with it.

use std::io::Write as _;

/// An integer of at most `bits` bits, decimal or with `0x` before hexadecimal digits.
pub(crate) fn integer(text: &[u8], bits: u32) -> Option<i64> {
    // Up to nine digits fit 32 bits.
    if (1..10).contains(&text.len()) {
        let (mut number, mut others) = (0, false);
        for byte in text {
            let digit = byte.wrapping_sub(b'0');
            others |= digit > 9;
            number = number * 10 + u64::from(digit);
        }
        if !others {
            return Some(number as i64);
        }
    }
    let text = std::str::from_utf8(text).ok()?;
    let (sign, magnitude) = match text.as_bytes().first() {
        Some(b'-' | b'+') => text.split_at(1),
        _ => ("", text),
    };
    let hex = magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X"));
    let number = match hex {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            i64::from_str_radix(&format!("{sign}{digits}"), 16).ok()?
        }
        Some(_) => return None,
        None => text.parse().ok()?,
    };
    let spare = 64 - bits;
    (number << spare >> spare == number).then_some(number)
}

/// A finite floating-point number of 64 bits.
pub(crate) fn double(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A finite floating-point number of 32 bits, as the number of 64 bits that is written with the same digits.
pub(crate) fn float(text: &[u8]) -> Option<f64> {
    let number: f32 = std::str::from_utf8(text).ok()?.parse().ok()?;
    widen(number)
}

/// The number of 64 bits that is written with the same digits as this one; `None` if it is not finite.
pub(crate) fn widen(number: f32) -> Option<f64> {
    let mut digits = [0; 64];
    let mut rest = &mut digits[..];
    write!(rest, "{number:e}").ok().filter(|()| number.is_finite())?;
    let unused = rest.len();
    let used = digits.len() - unused;
    double(&digits[..used])
}

/// One of the words that `strconv.ParseBool` knows.
pub(crate) fn truth(text: &[u8]) -> Option<bool> {
    match text {
        b"1" | b"t" | b"T" | b"true" | b"TRUE" | b"True" => Some(true),
        b"0" | b"f" | b"F" | b"false" | b"FALSE" | b"False" => Some(false),
        _ => None,
    }
}

/// A whole number in a text as Go's `strconv.ParseUint` with base 0 reads it: decimal, `0x`, `0o`, `0b`,
/// octal behind a `0`.
pub(crate) fn unsigned(text: &str) -> Option<u64> {
    let (digits, base) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', b'o' | b'O', ..] => (&text[2..], 8),
        [b'0', b'b' | b'B', ..] => (&text[2..], 2),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, base).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_decimal_or_hexadecimal_and_fit() {
        let cases: [(&str, u32, Option<i64>); 16] = [
            ("7736", 32, Some(7736)),
            ("-1", 32, Some(-1)),
            ("+5", 32, Some(5)),
            ("0x1F", 32, Some(31)),
            ("2147483647", 32, Some(2_147_483_647)),
            ("2147483648", 32, None),
            ("2147483648", 64, Some(2_147_483_648)),
            ("9223372036854775808", 64, None),
            ("0x", 64, None),
            ("0x-1", 64, None),
            ("-0x12", 32, Some(-18)),
            ("-0X8000000000000000", 64, Some(i64::MIN)),
            ("-0x", 64, None),
            ("--0x1", 64, None),
            ("1.5", 64, None),
            ("", 64, None),
        ];
        for (text, bits, expected) in cases {
            assert_eq!(integer(text.as_bytes(), bits), expected, "{text}");
        }
    }

    #[test]
    fn floats_keep_their_digits() {
        assert_eq!(float(b"0.1"), Some(0.1));
        assert_eq!(float(b"1e39"), None);
        assert_eq!(float(b"-3.4028235e38"), Some(-3.402_823_5e38));
        assert_eq!(double(b"0.1"), Some(0.1));
        assert_eq!(double(b"inf"), None);
        assert_eq!(double(b"NaN"), None);
        assert_eq!(double(b"x"), None);
        assert_eq!(widen(f32::INFINITY), None);
    }

    #[test]
    fn truths_are_those_of_go() {
        assert_eq!(truth(b"True"), Some(true));
        assert_eq!(truth(b"f"), Some(false));
        assert_eq!(truth(b"yes"), None);
    }

    #[test]
    fn whole_numbers_are_read_in_all_bases() {
        let cases = [
            ("80", Some(80)),
            ("0x1F", Some(31)),
            ("0b11", Some(3)),
            ("0o17", Some(15)),
            ("017", Some(15)),
            ("0", Some(0)),
            ("", None),
            ("08", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("18446744073709551616", None),
        ];
        for (text, number) in cases {
            assert_eq!(unsigned(text), number, "{text}");
        }
    }
}
