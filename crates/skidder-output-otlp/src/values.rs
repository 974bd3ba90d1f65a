//! Values of events as `AnyValue`, by OpenTelemetry's mapping of arbitrary data.
//!
//! <https://opentelemetry.io/docs/specs/otel/common/attribute-type-mapping/>: numbers that fit no signed integer of 64
//! bits are texts, and so are times; invalid UTF-8 is bytes; `null` is a value without anything in it.

use super::wire::{
    delimited_bytes, open, varint, varint_bytes, write_bytes, write_fixed64, write_head,
    write_varint,
};
use skidder_event::{ListRef, MapRef, Precision, TimeText, Value, ValueRef, leaf_value};
use std::borrow::Cow;

/// Fields of `AnyValue`.
const STRING: u8 = 1;
const BOOL: u8 = 2;
const INT: u8 = 3;
const DOUBLE: u8 = 4;
const ARRAY: u8 = 5;
const KVLIST: u8 = 6;
const BYTES: u8 = 7;
/// The only field of `ArrayValue` and `KeyValueList`.
const VALUES: u8 = 1;
/// Fields of `KeyValue`.
const KEY: u8 = 1;
const VALUE: u8 = 2;

/// Writes values. One for each worker.
#[derive(Debug)]
pub(crate) struct Values {
    time: TimeText,
}

impl Values {
    /// Times have so many decimals.
    pub(crate) fn new(precision: Precision) -> Self {
        Self { time: TimeText::new(precision) }
    }

    /// Appends a `KeyValue` as `field` of the message around it.
    pub(crate) fn write_pair(
        &mut self,
        out: &mut Vec<u8>,
        field: u8,
        key: &[u8],
        value: ValueRef<'_>,
    ) {
        let key = &*name(key);
        if let ValueRef::Str(text) = value {
            let inner = delimited_bytes(text.len());
            write_head(out, field, delimited_bytes(key.len()) + delimited_bytes(inner));
            write_bytes(out, KEY, key);
            self.write_any(out, VALUE, value);
            return;
        }
        let pair = open(out, field);
        write_bytes(out, KEY, key);
        self.write_any(out, VALUE, value);
        pair.close(out);
    }

    /// Appends a `KeyValue` of an object without anything in it.
    pub(crate) fn write_empty_object(&self, out: &mut Vec<u8>, field: u8, key: &[u8]) {
        let pair = open(out, field);
        write_bytes(out, KEY, &name(key));
        let any = open(out, VALUE);
        write_head(out, KVLIST, 0);
        any.close(out);
        pair.close(out);
    }

    /// Appends an `AnyValue` as `field` of the message around it.
    pub(crate) fn write_any(&mut self, out: &mut Vec<u8>, field: u8, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => write_head(out, field, 0),
            ValueRef::Str(text) => write_text(out, field, text),
            ValueRef::Bool(truth) => {
                write_head(out, field, 2);
                out.extend_from_slice(&[varint(BOOL), u8::from(truth)]);
            }
            ValueRef::Int(number) => write_int(out, field, number),
            ValueRef::UInt(number) => match i64::try_from(number) {
                Ok(number) => write_int(out, field, number),
                Err(_) => write_text(out, field, number.to_string().as_bytes()),
            },
            ValueRef::Float(number) => {
                write_head(out, field, 9);
                write_fixed64(out, DOUBLE, number.to_bits());
            }
            ValueRef::Time(time) => write_text(out, field, self.time.format(time)),
            ValueRef::List(list) => {
                let any = open(out, field);
                let array = open(out, ARRAY);
                self.write_items(out, list);
                array.close(out);
                any.close(out);
            }
            ValueRef::Map(map) => {
                let any = open(out, field);
                let list = open(out, KVLIST);
                self.write_members(out, &map);
                list.close(out);
                any.close(out);
            }
        }
    }

    fn write_items(&mut self, out: &mut Vec<u8>, list: ListRef<'_>) {
        // Objects in a list of a configuration have no layers, and no reference.
        if let ListRef::Base(items) = list {
            for item in items {
                self.write_owned(out, VALUES, item);
            }
            return;
        }
        list.for_each(|item| {
            self.write_any(out, VALUES, item);
            true
        });
    }

    fn write_members(&mut self, out: &mut Vec<u8>, map: &MapRef<'_>) {
        map.for_each(|key, value| self.write_pair(out, VALUES, key, value));
    }

    /// The same for a value of a configuration.
    fn write_owned(&mut self, out: &mut Vec<u8>, field: u8, value: &Value) {
        if let Some(value) = leaf_value(value) {
            self.write_any(out, field, value);
        } else if let Value::Map(map) = value {
            let any = open(out, field);
            let list = open(out, KVLIST);
            for (key, value) in map.iter() {
                let pair = open(out, VALUES);
                write_bytes(out, KEY, key.as_bytes());
                self.write_owned(out, VALUE, value);
                pair.close(out);
            }
            list.close(out);
            any.close(out);
        }
    }
}

/// The name of an attribute, which must be UTF-8: U+FFFD replaces invalid bytes.
fn name(key: &[u8]) -> Cow<'_, [u8]> {
    match simdutf8::basic::from_utf8(key) {
        Ok(_) => Cow::Borrowed(key),
        Err(_) => Cow::Owned(String::from_utf8_lossy(key).into_owned().into_bytes()),
    }
}

/// An `AnyValue` of a text: bytes, if it is no UTF-8. Both are of the same length.
#[inline]
fn write_text(out: &mut Vec<u8>, field: u8, text: &[u8]) {
    let kind = if simdutf8::basic::from_utf8(text).is_ok() { STRING } else { BYTES };
    write_head(out, field, delimited_bytes(text.len()));
    write_bytes(out, kind, text);
}

fn write_int(out: &mut Vec<u8>, field: u8, number: i64) {
    let number = number as u64;
    write_head(out, field, 1 + varint_bytes(number as usize));
    out.push(varint(INT));
    write_varint(out, number);
}
