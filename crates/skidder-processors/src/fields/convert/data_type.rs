//! The types that fields can be converted to.

use crate::go_number;
use crate::go_value::{go_type, write_scalar, write_value};
use skidder_event::ValueRef;
use smallvec::SmallVec;
use std::net::IpAddr;

/// A type of Elasticsearch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataType {
    /// 32 bits.
    Integer,
    /// 64 bits.
    Long,
    /// 32 bits.
    Float,
    /// 64 bits.
    Double,
    String,
    Boolean,
    /// A text that is an address.
    Ip,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Converted {
    /// The value is right as it is.
    Same,
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(SmallVec<[u8; 64]>),
}

const NAMES: [(&str, DataType); 7] = [
    ("integer", DataType::Integer),
    ("long", DataType::Long),
    ("float", DataType::Float),
    ("double", DataType::Double),
    ("string", DataType::String),
    ("boolean", DataType::Boolean),
    ("ip", DataType::Ip),
];

impl DataType {
    /// The type of a name, in large or small letters.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let lower = name.to_lowercase();
        let found = NAMES.iter().find(|(known, _)| *known == lower);
        found.map(|(_, kind)| *kind).ok_or_else(|| {
            let names: Vec<_> = NAMES.iter().map(|(name, _)| format!("`{name}`")).collect();
            format!("expected one of {}", names.join(", "))
        })
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Converts a value; the error has the reason.
    pub(super) fn convert(self, value: ValueRef<'_>) -> Result<Converted, String> {
        match self {
            Self::Integer => self.whole(value, 32),
            Self::Long => self.whole(value, 64),
            Self::Float | Self::Double => self.float(value),
            Self::String => match value {
                ValueRef::Null => Err("invalid conversion of [null] to string".to_owned()),
                ValueRef::Str(_) => Ok(Converted::Same),
                value => Ok(Converted::Text(text_of(value))),
            },
            Self::Boolean => match value {
                ValueRef::Bool(_) => Ok(Converted::Same),
                ValueRef::Str(text) => go_number::truth(text)
                    .map(Converted::Bool)
                    .ok_or_else(|| syntax("ParseBool", text)),
                value => Err(self.invalid(value)),
            },
            Self::Ip => match value {
                ValueRef::Str(text) => std::str::from_utf8(text)
                    .ok()
                    .and_then(|text| text.parse::<IpAddr>().ok())
                    .map(|_| Converted::Same)
                    .ok_or_else(|| "value is not a valid IP address".to_owned()),
                value => Err(self.invalid(value)),
            },
        }
    }

    fn whole(self, value: ValueRef<'_>, bits: u32) -> Result<Converted, String> {
        let number = match value {
            ValueRef::Str(text) => {
                let number = go_number::integer(text, bits);
                return number.map(Converted::Int).ok_or_else(|| syntax("ParseInt", text));
            }
            ValueRef::Int(number) => Some(number),
            ValueRef::UInt(number) => i64::try_from(number).ok(),
            ValueRef::Float(number) => truncated(number),
            value => return Err(self.invalid(value)),
        };
        let spare = 64 - bits;
        let fitting = number.filter(|number| number << spare >> spare == *number);
        fitting.map(Converted::Int).ok_or_else(|| "value out of range".to_owned())
    }

    fn float(self, value: ValueRef<'_>) -> Result<Converted, String> {
        let single = self == Self::Float;
        let number = match value {
            ValueRef::Str(text) => {
                let number = if single { go_number::float(text) } else { go_number::double(text) };
                return number.map(Converted::Float).ok_or_else(|| syntax("ParseFloat", text));
            }
            ValueRef::Int(number) if single => go_number::widen(number as f32),
            ValueRef::Int(number) => Some(number as f64),
            ValueRef::UInt(number) if single => go_number::widen(number as f32),
            ValueRef::UInt(number) => Some(number as f64),
            ValueRef::Float(number) if single => go_number::widen(number as f32),
            ValueRef::Float(number) => Some(number),
            value => return Err(self.invalid(value)),
        };
        number.map(Converted::Float).ok_or_else(|| "value out of range".to_owned())
    }

    fn invalid(self, value: ValueRef<'_>) -> String {
        format!("invalid conversion of [{}] to {}", go_type(value), self.name())
    }
}

/// Without its fraction; `None` if that is no number of 64 bits.
fn truncated(number: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    let whole = number.trunc();
    (-END..END).contains(&whole).then_some(whole as i64)
}

fn text_of(value: ValueRef<'_>) -> SmallVec<[u8; 64]> {
    let mut text = SmallVec::new();
    if !write_scalar(value, &mut |piece| text.extend_from_slice(piece)) {
        let mut out = Vec::new();
        write_value(&mut out, value);
        text = out.into();
    }
    text
}

/// The message of Go's `strconv`; it is the same for an invalid text and one out of range.
fn syntax(function: &str, text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    format!("strconv.{function}: parsing {text:?}: invalid syntax or value out of range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_what_go_makes_of_them() {
        use ValueRef::{Bool, Float, Int, Null, Str, Time, UInt};
        let text = |text: &str| Some(Converted::Text(text.as_bytes().into()));
        let cases = [
            (DataType::String, Null, None),
            (DataType::String, Str(b"x"), Some(Converted::Same)),
            (DataType::String, Int(-1), text("-1")),
            (DataType::String, UInt(u64::MAX), text("18446744073709551615")),
            (DataType::String, Float(1.1), text("1.1")),
            (DataType::String, Float(1e21), text("1e+21")),
            (DataType::String, Bool(true), text("true")),
            (DataType::String, Time(0), text("1970-01-01 00:00:00 +0000 UTC")),
            (DataType::Long, Null, None),
            (DataType::Long, Str(b"x"), None),
            (DataType::Long, Bool(true), None),
            (DataType::Long, Str(b"1"), Some(Converted::Int(1))),
            (DataType::Long, Str(b"0xfF"), Some(Converted::Int(255))),
            (DataType::Long, Str(b"9223372036854775808"), None),
            (DataType::Long, Float(-1.9), Some(Converted::Int(-1))),
            (DataType::Long, Float(1e19), None),
            (DataType::Long, Float(f64::NAN), None),
            (DataType::Long, UInt(u64::MAX), None),
            (DataType::Integer, Int(2_147_483_647), Some(Converted::Int(2_147_483_647))),
            (DataType::Integer, Int(2_147_483_648), None),
            (DataType::Integer, Str(b"2147483648"), None),
            (DataType::Float, Str(b"1.1"), Some(Converted::Float(1.1))),
            (DataType::Float, Float(0.1), Some(Converted::Float(0.1))),
            (DataType::Float, Float(1e300), None),
            (DataType::Float, Int(16_777_217), Some(Converted::Float(16_777_216.0))),
            (DataType::Double, Int(16_777_217), Some(Converted::Float(16_777_217.0))),
            (DataType::Double, Str(b"1e400"), None),
            (DataType::Double, Bool(true), None),
            (DataType::Boolean, Int(1), None),
            (DataType::Boolean, Str(b"TrUe"), None),
            (DataType::Boolean, Str(b"T"), Some(Converted::Bool(true))),
            (DataType::Boolean, Bool(false), Some(Converted::Same)),
            (DataType::Ip, Str(b"365.0.0.0"), None),
            (DataType::Ip, Str(b"::1"), Some(Converted::Same)),
            (DataType::Ip, Str(b"192.0.2.1"), Some(Converted::Same)),
            (DataType::Ip, Str(b"192.000.2.1"), None),
            (DataType::Ip, Int(1), None),
        ];
        for (kind, value, expected) in cases {
            assert_eq!(kind.convert(value).ok(), expected, "{value:?} to {}", kind.name());
        }
    }

    #[test]
    fn names_are_taken_in_any_case() {
        assert_eq!(DataType::named("IP"), Ok(DataType::Ip));
        assert_eq!(DataType::named("Double"), Ok(DataType::Double));
        assert!(DataType::named("int").is_err());
    }
}
