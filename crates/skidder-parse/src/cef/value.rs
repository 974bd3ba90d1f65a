//! Values of extensions: numbers, addresses.

use std::net::IpAddr;

/// An error in a value. The texts are those of Filebeat.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// No whole number.
    #[error("strconv.ParseInt: parsing {0:?}: invalid syntax")]
    Integer(String),
    /// A whole number with too many bits.
    #[error("strconv.ParseInt: parsing {0:?}: value out of range")]
    IntegerRange(String),
    /// No number, or none that is finite.
    #[error("strconv.ParseFloat: parsing {0:?}: invalid syntax")]
    Float(String),
    /// No address of IPv4 or IPv6.
    #[error("value is not a valid IP address")]
    Address,
    /// No hardware address.
    #[error("address {0}: invalid MAC address")]
    MacAddress(String),
    /// No time.
    #[error("value is not a valid timestamp")]
    Timestamp,
}

/// A whole number of at most `bits` bits with its sign: decimal, or `0x`, `0o`, `0b`, or octal after a zero.
pub fn integer(text: &str, bits: u32) -> Result<i64, ValueError> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(ValueError::Integer(text.to_owned()));
    }
    let range = || ValueError::IntegerRange(text.to_owned());
    let number = i128::from_str_radix(digits, radix).map_err(|_| range())?;
    let number = if negative { -number } else { number };
    let bound = 1_i128 << (bits - 1);
    if number < -bound || number >= bound {
        return Err(range());
    }
    i64::try_from(number).map_err(|_| range())
}

/// How exact a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// 32 bits: what is given has the shortest decimals that name it.
    Single,
    /// 64 bits.
    Double,
}

/// A finite number.
pub fn float(text: &str, exact: Number) -> Result<f64, ValueError> {
    let parsed: Option<f64> = match exact {
        Number::Double => text.parse().ok(),
        Number::Single => {
            text.parse::<f32>().ok().and_then(|number| number.to_string().parse().ok())
        }
    };
    let finite = parsed.filter(|number| number.is_finite());
    finite.ok_or_else(|| ValueError::Float(text.to_owned()))
}

/// Checks an address of IPv4 or IPv6.
pub fn address(text: &str) -> Result<(), ValueError> {
    text.parse::<IpAddr>().map(|_| ()).map_err(|_| ValueError::Address)
}

/// A hardware address of 6, 8 or 20 bytes, written into `out` in small letters with colons. Between
/// its bytes may be colons or dashes, between pairs of them dots, or (6 and 8 bytes) nothing.
pub fn mac_address(text: &str, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let refuse = || ValueError::MacAddress(text.to_owned());
    let bytes = text.as_bytes();
    let group = match (bytes.get(2), bytes.get(4), bytes.len()) {
        (Some(b':' | b'-'), ..) => 2,
        (_, Some(b'.'), _) => 4,
        (_, _, 12 | 16) => bytes.len(),
        _ => return Err(refuse()),
    };
    let separator = bytes.get(group).copied();
    let mut digits = Vec::with_capacity(40);
    for part in bytes.chunks(group + 1) {
        let (hex, behind) = part.split_at(part.len().min(group));
        if hex.len() != group || !hex.iter().all(u8::is_ascii_hexdigit) {
            return Err(refuse());
        }
        if behind.first().copied() != separator && !behind.is_empty() {
            return Err(refuse());
        }
        digits.extend(hex.iter().map(u8::to_ascii_lowercase));
    }
    let ends_in_separator = group < bytes.len() && bytes.len().is_multiple_of(group + 1);
    if ends_in_separator || !matches!(digits.len(), 12 | 16 | 40) {
        return Err(refuse());
    }
    out.clear();
    for (at, pair) in digits.chunks(2).enumerate() {
        if at > 0 {
            out.push(b':');
        }
        out.extend_from_slice(pair);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_may_be_written_in_any_base() {
        for (text, number) in [
            ("0", 0),
            ("-17", -17),
            ("0x1F", 31),
            ("010", 8),
            ("0b11", 3),
            ("+5", 5),
            ("4294967296", 4_294_967_296),
        ] {
            assert_eq!(integer(text, 64), Ok(number), "{text}");
        }
        assert_eq!(integer("2147483647", 32), Ok(2_147_483_647));
        assert_eq!(integer("2147483648", 32), Err(ValueError::IntegerRange("2147483648".into())));
        assert_eq!(integer("-9223372036854775808", 64), Ok(i64::MIN));
        for text in ["", "-", "0x", "1a", "08", " 1", "1 "] {
            let error = integer(text, 64).unwrap_err();
            assert_eq!(error, ValueError::Integer(text.into()));
        }
        assert_eq!(
            integer("", 64).unwrap_err().to_string(),
            r#"strconv.ParseInt: parsing "": invalid syntax"#
        );
    }

    #[test]
    fn numbers_of_32_bits_have_short_decimals() {
        assert_eq!(float("1.1", Number::Single), Ok(1.1));
        assert_eq!(float("-77.511", Number::Double), Ok(-77.511));
        for text in ["", "x", "inf", "NaN", "1e999"] {
            assert_eq!(float(text, Number::Double), Err(ValueError::Float(text.into())), "{text}");
        }
    }

    #[test]
    fn hardware_addresses_get_colons() {
        let read = |text| {
            let mut out = Vec::new();
            mac_address(text, &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        for text in ["00:0D:60:AF:1B:61", "00-0D-60-AF-1B-61", "000D.60AF.1B61", "000D60AF1B61"] {
            assert_eq!(read(text).as_deref(), Ok("00:0d:60:af:1b:61"), "{text}");
        }
        for text in ["00:0D:60:FF:FE:AF:1B:61", "000D.60FF.FEAF.1B61", "000D60FFFEAF1B61"] {
            assert_eq!(read(text).as_deref(), Ok("00:0d:60:ff:fe:af:1b:61"), "{text}");
        }
        for text in [
            "",
            "00",
            "00:0D",
            "00:0D:60:AF:1B:6",
            "00:0D:60:AF:1B:61:",
            "00:0D-60:AF:1B:61",
            "000D.60AF.1B6x",
        ] {
            assert_eq!(read(text), Err(ValueError::MacAddress(text.into())), "{text}");
        }
    }
}
