//! The names of fields in patterns, and their types.

use crate::go_number;
use skidder_event::{Cell, Path};

/// What the text of a capture becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    /// A whole number of 64 bits.
    Int,
    /// A number of 32 bits with a fraction.
    Float,
    /// A number of 64 bits with a fraction.
    Double,
    Bool,
}

/// A value of a type other than text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Typed {
    Int(i64),
    Float(f64),
    Bool(bool),
}

impl From<Typed> for Cell {
    fn from(value: Typed) -> Self {
        match value {
            Typed::Int(number) => Self::Int(number),
            Typed::Float(number) => Self::Float(number),
            Typed::Bool(truth) => Self::Bool(truth),
        }
    }
}

const TYPES: [(&str, Type); 7] = [
    ("int", Type::Int),
    ("integer", Type::Int),
    ("long", Type::Int),
    ("float", Type::Float),
    ("double", Type::Double),
    ("boolean", Type::Bool),
    ("string", Type::Text),
];

impl Type {
    fn parse(word: &str) -> Result<Self, String> {
        let found = TYPES.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
        found.ok_or_else(|| {
            format!(
                "`{word}` is not a type: use `int`, `long`, `float`, `double`, `boolean` or `string`"
            )
        })
    }

    /// The word for messages.
    pub(super) fn word(self) -> &'static str {
        TYPES.iter().rev().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The text as a value of this type. `None` if it is not one, or the type is text.
    pub(super) fn convert(self, text: &[u8]) -> Option<Typed> {
        match self {
            Self::Text => None,
            Self::Int => std::str::from_utf8(text).ok()?.parse().ok().map(Typed::Int),
            Self::Float if is_decimal(text) => go_number::float(text).map(Typed::Float),
            Self::Double if is_decimal(text) => go_number::double(text).map(Typed::Float),
            Self::Float | Self::Double => None,
            Self::Bool if text.eq_ignore_ascii_case(b"true") => Some(Typed::Bool(true)),
            Self::Bool if text.eq_ignore_ascii_case(b"false") => Some(Typed::Bool(false)),
            Self::Bool => None,
        }
    }
}

/// No `0x1p4` and no `1_0`.
fn is_decimal(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
}

/// `name` or `name:type`, where the name is `a.b` or `[a][b]`.
pub(super) fn parse(text: &str) -> Result<(String, Type), String> {
    let (name, kind) = match text.rsplit_once(':') {
        Some((name, word)) => (name, Type::parse(word)?),
        None => (text, Type::Text),
    };
    let name = dotted(name)?;
    Path::parse(&name).map_err(|error| error.to_string())?;
    Ok((name, kind))
}

/// `[a][b]` as `a.b`.
fn dotted(name: &str) -> Result<String, String> {
    let unfit = || format!("`{name}` is not the name of a field: write `a.b` or `[a][b]`");
    let Some(inner) = name.strip_prefix('[') else {
        let is_name = !name.contains(['[', ']', '|', ' ', ':']);
        return if is_name { Ok(name.to_owned()) } else { Err(unfit()) };
    };
    let inner = inner.strip_suffix(']').ok_or_else(unfit)?;
    let parts: Vec<&str> = inner.split("][").collect();
    if parts.iter().any(|part| part.is_empty() || part.contains(['[', ']', '.', ':', '|'])) {
        return Err(unfit());
    }
    Ok(parts.join("."))
}
