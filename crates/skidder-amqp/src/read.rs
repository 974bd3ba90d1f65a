//! Reads encoded values where they stand (part 1 of the specification): nothing is copied, and nothing is recursive.

/// Bytes that are no value of AMQP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// There is no such type.
    #[error("a value has the unknown type 0x{0:02x}")]
    Type(u8),
    /// The bytes end within a value.
    #[error("a value is cut short")]
    Short,
    /// Another value was expected; this is what.
    #[error("expected {0}")]
    Expected(&'static str),
}

/// Values, one behind the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// One value.
#[derive(Clone, Debug)]
pub enum Item<'a> {
    /// `null`.
    Null,
    /// `boolean`.
    Bool(bool),
    /// `ubyte` to `ulong`.
    Unsigned(u64),
    /// `byte` to `long`.
    Signed(i64),
    /// `float` and `double`.
    Float(f64),
    /// `timestamp`: milliseconds since 1970-01-01 UTC.
    Time(i64),
    /// `binary`, and texts that are not UTF-8.
    Binary(&'a [u8]),
    /// `string`.
    Text(&'a str),
    /// `symbol`.
    Symbol(&'a str),
    /// `list`.
    List(Reader<'a>),
    /// `map`: a key, its value, the next key.
    Map(Reader<'a>),
    /// `array`.
    Array(Array<'a>),
    /// A value with a descriptor; 0 for one that is no number.
    Described(u64, Box<Item<'a>>),
    /// Another type, as `uuid`, or values that are described more than once.
    Other,
}

/// The items of an array, all of one type.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    code: u8,
    count: u32,
    rest: &'a [u8],
}

impl<'a> Item<'a> {
    /// A text or symbol.
    pub fn text(&self) -> Option<&'a str> {
        match self {
            Self::Text(text) | Self::Symbol(text) => Some(text),
            _ => None,
        }
    }

    /// A number of any integer type.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Unsigned(number) => i64::try_from(*number).ok(),
            Self::Signed(number) => Some(*number),
            _ => None,
        }
    }

    /// An unsigned number that has 32 bits.
    pub(crate) fn uint(&self) -> Option<u32> {
        match self {
            Self::Unsigned(number) => u32::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The texts of a list or an array; one for a text.
    pub fn texts(&self) -> Option<Vec<&'a str>> {
        match self {
            Self::Text(text) | Self::Symbol(text) => Some(vec![text]),
            Self::List(items) => {
                let mut items = *items;
                let mut all = Vec::new();
                while let Some(item) = items.next().ok()? {
                    all.push(item.text()?);
                }
                Some(all)
            }
            Self::Array(array) => array.texts(),
            _ => None,
        }
    }

    /// The value of a key of a map.
    pub fn get(&self, name: &str) -> Option<Item<'a>> {
        let Self::Map(entries) = self else { return None };
        let mut entries = *entries;
        while let Ok(Some(key)) = entries.next() {
            let value = entries.next().ok()??;
            if key.text() == Some(name) {
                return Some(value);
            }
        }
        None
    }
}

impl<'a> Array<'a> {
    fn texts(&self) -> Option<Vec<&'a str>> {
        // Each has a length of its own, so that their number is bounded by the bytes.
        if !matches!(self.code, 0xa1 | 0xb1 | 0xa3 | 0xb3) {
            return None;
        }
        let mut reader = Reader { rest: self.rest };
        let mut all = Vec::new();
        for _ in 0..self.count {
            all.push(reader.value(self.code).ok()?.text()?);
        }
        Some(all)
    }
}

impl<'a> Reader<'a> {
    /// Of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| Malformed::Short)
    }

    fn sized(&mut self, is_wide: bool) -> Result<&'a [u8], Malformed> {
        let length = if is_wide {
            u32::from_be_bytes(self.array()?) as usize
        } else {
            usize::from(self.byte()?)
        };
        self.take(length)
    }

    /// The next value; `None` at the end.
    ///
    /// # Errors
    ///
    /// The bytes are no value.
    #[expect(clippy::should_implement_trait, reason = "an iterator would hide the error")]
    pub fn next(&mut self) -> Result<Option<Item<'a>>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let code = self.byte()?;
        if code != 0 {
            return self.value(code).map(Some);
        }
        let descriptor = match self.rest.first() {
            Some(0) => {
                self.skip()?;
                0
            }
            _ => {
                let code = self.byte()?;
                match self.value(code)? {
                    Item::Unsigned(number) => number,
                    _ => 0,
                }
            }
        };
        let value = match self.rest.first() {
            Some(0) => {
                self.skip()?;
                Item::Other
            }
            _ => {
                let code = self.byte()?;
                self.value(code)?
            }
        };
        Ok(Some(Item::Described(descriptor, Box::new(value))))
    }

    /// The next value, which must be there; `null` behind the end of the fields of a list.
    pub(crate) fn field(&mut self) -> Result<Item<'a>, Malformed> {
        Ok(self.next()?.unwrap_or(Item::Null))
    }

    /// Passes over a value, however deep it is.
    fn skip(&mut self) -> Result<(), Malformed> {
        let mut left = 1_usize;
        while left > 0 {
            left -= 1;
            let code = self.byte()?;
            match code >> 4 {
                0 if code == 0 => left += 2,
                4 => {}
                5 => drop(self.take(1)?),
                6 => drop(self.take(2)?),
                7 => drop(self.take(4)?),
                8 => drop(self.take(8)?),
                9 => drop(self.take(16)?),
                0xa | 0xc | 0xe => drop(self.sized(false)?),
                0xb | 0xd | 0xf => drop(self.sized(true)?),
                _ => return Err(Malformed::Type(code)),
            }
        }
        Ok(())
    }

    fn value(&mut self, code: u8) -> Result<Item<'a>, Malformed> {
        Ok(match code {
            0x40 => Item::Null,
            0x41 => Item::Bool(true),
            0x42 => Item::Bool(false),
            0x56 => Item::Bool(self.byte()? != 0),
            0x43 | 0x44 => Item::Unsigned(0),
            0x50 | 0x52 | 0x53 => Item::Unsigned(u64::from(self.byte()?)),
            0x60 => Item::Unsigned(u64::from(u16::from_be_bytes(self.array()?))),
            0x70 => Item::Unsigned(u64::from(u32::from_be_bytes(self.array()?))),
            0x80 => Item::Unsigned(u64::from_be_bytes(self.array()?)),
            0x51 | 0x54 | 0x55 => Item::Signed(i64::from(self.byte()?.cast_signed())),
            0x61 => Item::Signed(i64::from(i16::from_be_bytes(self.array()?))),
            0x71 => Item::Signed(i64::from(i32::from_be_bytes(self.array()?))),
            0x81 => Item::Signed(i64::from_be_bytes(self.array()?)),
            0x72 => Item::Float(f64::from(f32::from_be_bytes(self.array()?))),
            0x82 => Item::Float(f64::from_be_bytes(self.array()?)),
            0x83 => Item::Time(i64::from_be_bytes(self.array()?)),
            0x73 | 0x74 | 0x84 | 0x94 | 0x98 => {
                self.take(1 << ((code >> 4) - 5))?;
                Item::Other
            }
            0xa0 | 0xb0 => Item::Binary(self.sized(code == 0xb0)?),
            0xa1 | 0xb1 => text(self.sized(code == 0xb1)?, Item::Text),
            0xa3 | 0xb3 => text(self.sized(code == 0xb3)?, Item::Symbol),
            0x45 => Item::List(Reader::default()),
            0xc0 | 0xd0 => Item::List(self.compound(code == 0xd0)?),
            0xc1 | 0xd1 => Item::Map(self.compound(code == 0xd1)?),
            0xe0 | 0xf0 => self.items(code == 0xf0)?,
            other => return Err(Malformed::Type(other)),
        })
    }

    /// The items of a list or map.
    fn compound(&mut self, is_wide: bool) -> Result<Reader<'a>, Malformed> {
        let mut inner = Reader { rest: self.sized(is_wide)? };
        // Their number; they end with the bytes.
        inner.take(if is_wide { 4 } else { 1 })?;
        Ok(inner)
    }

    fn items(&mut self, is_wide: bool) -> Result<Item<'a>, Malformed> {
        let mut inner = Reader { rest: self.sized(is_wide)? };
        let count =
            if is_wide { u32::from_be_bytes(inner.array()?) } else { u32::from(inner.byte()?) };
        let code = inner.byte()?;
        if code == 0 {
            // Items with a descriptor.
            return Ok(Item::Other);
        }
        Ok(Item::Array(Array { code, count, rest: inner.rest }))
    }
}

fn text<'a>(bytes: &'a [u8], of: impl Fn(&'a str) -> Item<'a>) -> Item<'a> {
    std::str::from_utf8(bytes).map_or(Item::Binary(bytes), of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::{Value, Writer};

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::default();
        writer.map(&[
            ("text", Value::Text("ä")),
            ("long", Value::Long(-5)),
            ("time", Value::Time(7)),
            ("bool", Value::Bool(true)),
            ("none", Value::Null),
            ("symbol", Value::Symbol("s")),
            ("uint", Value::Uint(u32::MAX)),
        ]);
        let bytes = writer.into_bytes();
        let map = Reader::new(&bytes).next().unwrap().unwrap();
        assert_eq!(map.get("text").unwrap().text(), Some("ä"));
        assert_eq!(map.get("long").unwrap().number(), Some(-5));
        assert!(matches!(map.get("time"), Some(Item::Time(7))));
        assert!(matches!(map.get("bool"), Some(Item::Bool(true))));
        assert!(matches!(map.get("none"), Some(Item::Null)));
        assert_eq!(map.get("uint").unwrap().uint(), Some(u32::MAX));
        assert!(map.get("other").is_none());
        for end in 0..bytes.len() {
            assert!(Reader::new(&bytes[..end]).next().map_or(true, |item| item.is_none()), "{end}");
        }
    }

    #[test]
    fn texts_are_found_in_lists_and_arrays() {
        let table: [(&[u8], Option<Vec<&str>>); 6] = [
            (b"\xa1\x02ab", Some(vec!["ab"])),
            (b"\xe0\x06\x02\xa1\x01a\x01b", Some(vec!["a", "b"])),
            (b"\xf0\x00\x00\x00\x0a\x00\x00\x00\x01\xb3\x00\x00\x00\x01a", Some(vec!["a"])),
            (b"\xc0\x07\x02\xa1\x01a\xa1\x01b", Some(vec!["a", "b"])),
            // As many nothings as there are numbers.
            (b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40", None),
            (b"\xe0\x06\xff\xa1\x01a\x01b", None),
        ];
        for (bytes, expected) in table {
            let item = Reader::new(bytes).next().unwrap().unwrap();
            assert_eq!(item.texts(), expected, "{bytes:02x?}");
        }
    }

    #[test]
    fn no_nesting_exhausts_the_stack() {
        let depth = 200_000;
        let mut lists = Vec::new();
        for level in (0..depth).rev() {
            lists.push(0xd0);
            lists.extend_from_slice(&(4 + 1 + 9 * level as u32).to_be_bytes());
            lists.extend_from_slice(&1_u32.to_be_bytes());
        }
        lists.push(0x45);
        let mut descriptors = vec![0_u8; depth];
        descriptors.extend(std::iter::repeat_n(0x40, depth + 1));
        for bytes in [lists, descriptors] {
            let mut reader = Reader::new(&bytes);
            assert!(reader.next().unwrap().is_some());
            assert!(reader.rest().is_empty());
        }
    }

    #[test]
    fn no_bytes_are_a_panic() {
        let mut state = 1_u64;
        for _ in 0..200_000 {
            let bytes: Vec<u8> = (0..24)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            let mut reader = Reader::new(&bytes);
            while let Ok(Some(item)) = reader.next() {
                item.texts();
                item.get("x");
            }
        }
    }
}
