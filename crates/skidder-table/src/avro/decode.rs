//! Values from their binary form to JSON.

use super::block::Wrong;
use super::schema::{Schema, Type};
use crate::json::{
    put, put_base64, put_date, put_decimal, put_f32, put_f64, put_time, put_timestamp, put_uuid,
};
use skidder_parse::records::{Escapes, push_json_text};

/// Values inside each other: a type can have itself in it.
const DEPTH_MAX: usize = 128;

/// What is left of a block.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Seven bits in each byte, the lowest first; the sign is the lowest of all.
    pub(super) fn long(&mut self) -> Result<i64, Wrong> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let [byte] = self.fixed()?;
            if shift == 63 && byte > 1 {
                return Err(Wrong::new("a number has more than 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
            }
            shift += 7;
        }
    }

    /// A number of bytes, or of things.
    pub(super) fn size(&mut self) -> Result<usize, Wrong> {
        usize::try_from(self.long()?).map_err(|_| Wrong::new("a size is negative"))
    }

    pub(super) fn text(&mut self) -> Result<&'a [u8], Wrong> {
        let size = self.size()?;
        self.take(size)
    }

    /// Elements that follow of a list or map; nothing at its end.
    pub(super) fn block(&mut self) -> Result<Option<u64>, Wrong> {
        let count = self.long()?;
        if count < 0 {
            // With its bytes, for whom passes over it.
            self.long()?;
        }
        Ok(Some(count.unsigned_abs()).filter(|count| *count > 0))
    }
}

fn cut_off() -> Wrong {
    Wrong::new("a value goes on behind the end of its block")
}

/// Appends a value of at most so many bytes of text.
pub(super) fn write(
    schema: &Schema,
    from: &mut Bytes<'_>,
    into: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<(), Wrong> {
    let end_max = into.len().saturating_add(bytes_max);
    let mut writer = Writer { schema, end_max, depth: 0 };
    writer.value(&schema.root, from, into)?;
    writer.check(into)
}

struct Writer<'a> {
    schema: &'a Schema,
    /// The text may be so long.
    end_max: usize,
    depth: usize,
}

impl Writer<'_> {
    fn check(&self, into: &[u8]) -> Result<(), Wrong> {
        if into.len() > self.end_max {
            let message = "the row is longer than four times `max_bytes` as JSON";
            return Err(Wrong::new(message));
        }
        Ok(())
    }

    fn value(&mut self, of: &Type, from: &mut Bytes<'_>, into: &mut Vec<u8>) -> Result<(), Wrong> {
        match of {
            Type::Null => into.extend_from_slice(b"null"),
            Type::Boolean => match from.fixed()? {
                [0] => into.extend_from_slice(b"false"),
                [1] => into.extend_from_slice(b"true"),
                _ => return Err(Wrong::new("a truth value is neither 0 nor 1")),
            },
            Type::Int | Type::Long => put(into, format_args!("{}", from.long()?)),
            Type::Float => put_f32(f32::from_le_bytes(from.fixed()?), into),
            Type::Double => put_f64(f64::from_le_bytes(from.fixed()?), into),
            Type::Bytes => put_base64(from.text()?, into),
            Type::Text => push_json_text(from.text()?, Escapes::OfArrow, into),
            Type::Fixed(size) => put_base64(from.take(*size)?, into),
            Type::Enum(symbols) => {
                let symbol = symbols.get(from.size()?);
                let symbol = symbol.ok_or_else(|| Wrong::new("an `enum` has no such symbol"))?;
                into.extend_from_slice(symbol);
            }
            Type::Decimal(scale, None) => put_decimal(from.text()?, *scale, into),
            Type::Decimal(scale, Some(size)) => put_decimal(from.take(*size)?, *scale, into),
            Type::Date => put_date(from.long()?, into),
            Type::Time(unit) => put_time(i128::from(from.long()?) * i128::from(*unit), into),
            Type::Timestamp(unit) => {
                put_timestamp(i128::from(from.long()?) * i128::from(*unit), into);
            }
            Type::Uuid => put_uuid(from.take(16)?, into),
            Type::Record(_) | Type::List(_) | Type::Map(_) | Type::Union(_) | Type::Named(_) => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(Wrong::new("more than 128 values are inside each other"));
                }
                self.nested(of, from, into)?;
                self.depth -= 1;
            }
        }
        Ok(())
    }

    fn nested(&mut self, of: &Type, from: &mut Bytes<'_>, into: &mut Vec<u8>) -> Result<(), Wrong> {
        match of {
            Type::Named(number) => {
                let schema = self.schema;
                let named = schema.named.get(*number);
                self.value(named.ok_or_else(|| Wrong::new("a type is missing"))?, from, into)
            }
            Type::Union(types) => {
                let chosen = types.get(from.size()?);
                let chosen = chosen.ok_or_else(|| Wrong::new("a union has no such type"))?;
                self.value(chosen, from, into)
            }
            Type::Record(fields) => {
                into.push(b'{');
                for (number, (key, of)) in fields.iter().enumerate() {
                    if number > 0 {
                        into.push(b',');
                    }
                    into.extend_from_slice(key);
                    self.value(of, from, into)?;
                }
                into.push(b'}');
                Ok(())
            }
            Type::List(of) => self.elements(of, false, from, into),
            Type::Map(of) => self.elements(of, true, from, into),
            other => self.value(other, from, into),
        }
    }

    fn elements(
        &mut self,
        of: &Type,
        has_keys: bool,
        from: &mut Bytes<'_>,
        into: &mut Vec<u8>,
    ) -> Result<(), Wrong> {
        into.push(if has_keys { b'{' } else { b'[' });
        let mut is_first = true;
        while let Some(count) = from.block()? {
            for _ in 0..count {
                if !std::mem::take(&mut is_first) {
                    into.push(b',');
                }
                if has_keys {
                    push_json_text(from.text()?, Escapes::OfArrow, into);
                    into.push(b':');
                }
                self.value(of, from, into)?;
                // Elements without bytes could be as many as there are numbers.
                self.check(into)?;
            }
        }
        into.push(if has_keys { b'}' } else { b']' });
        Ok(())
    }
}
