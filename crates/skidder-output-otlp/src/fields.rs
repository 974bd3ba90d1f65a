//! Fields of events as attributes: an object is no value, but a part of the names of its members.

use super::resource::rename;
use super::severity;
use super::values::Values;
use super::wire::{varint, write_bytes};
use skidder_event::{BaseNode, BaseValue, MapRef, Precision, ValueRef, leaf_value};
use std::sync::Arc;

/// Fields of `LogRecord`.
const SEVERITY_NUMBER: u8 = 2;
const SEVERITY_TEXT: u8 = 3;
const BODY: u8 = 5;
const ATTRIBUTES: u8 = 6;
const TRACE_ID: u8 = 9;
const SPAN_ID: u8 = 10;
/// The field of `Resource`.
const RESOURCE_ATTRIBUTES: u8 = 1;

/// Fields with one place in a record. A second field for it (`log.level` as one key, next to `log` with `level` in it) is
/// an attribute like others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken(u8);

impl Taken {
    pub(crate) const BODY: Self = Self(1);
    const SEVERITY: Self = Self(2);
    const TRACE: Self = Self(4);
    const SPAN: Self = Self(8);

    /// Takes a place; returns whether it was free.
    pub(crate) fn take(&mut self, place: Self) -> bool {
        let free = self.0 & place.0 == 0;
        self.0 |= place.0;
        free
    }

    /// Places taken since it was `before`.
    pub(crate) fn without(self, before: Self) -> Self {
        Self(self.0 & !before.0)
    }

    /// Whether both have taken one and the same.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Where fields go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Record,
    Resource,
}

/// Names in the output's settings.
#[derive(Debug)]
pub(crate) struct Naming {
    /// `resource_fields`: first parts of names.
    pub(crate) resource_fields: Vec<String>,
    /// `resource_attributes`.
    pub(crate) resource_attributes: Vec<(String, String)>,
}

impl Naming {
    /// Where a field goes, by its key at the top of an event.
    pub(crate) fn place(&self, key: &[u8]) -> Place {
        let first = key.split(|byte| *byte == b'.').next().unwrap_or_default();
        let is_one = self.resource_fields.iter().any(|field| field.as_bytes() == first);
        if is_one { Place::Resource } else { Place::Record }
    }

    fn is_given(&self, name: &[u8]) -> bool {
        self.resource_attributes.iter().any(|(given, _)| given.as_bytes() == name)
    }
}

/// Writes fields. One for each worker.
#[derive(Debug)]
pub(crate) struct FieldWriter {
    pub(crate) values: Values,
    pub(crate) naming: Arc<Naming>,
    /// The name of the field that is being written.
    name: Vec<u8>,
    /// Its name in a resource, if that is another one.
    renamed: Vec<u8>,
}

impl FieldWriter {
    pub(crate) fn new(naming: Arc<Naming>, precision: Precision) -> Self {
        let values = Values::new(precision);
        Self { values, naming, name: Vec::new(), renamed: Vec::new() }
    }

    /// Appends a field of an event with all that is in it.
    pub(crate) fn write(
        &mut self,
        out: &mut Vec<u8>,
        place: Place,
        key: &[u8],
        value: ValueRef<'_>,
        taken: &mut Taken,
    ) {
        self.name.clear();
        self.name.extend_from_slice(key);
        self.write_inside(out, place, value, taken);
    }

    /// The same for a field of a base.
    pub(crate) fn write_base(
        &mut self,
        out: &mut Vec<u8>,
        place: Place,
        node: &BaseNode,
        taken: &mut Taken,
    ) {
        self.name.clear();
        self.write_node(out, place, node, taken);
    }

    /// Appends `resource_attributes`.
    pub(crate) fn write_given(&mut self, out: &mut Vec<u8>) {
        for (name, text) in &self.naming.resource_attributes {
            let value = ValueRef::Str(text.as_bytes());
            self.values.write_pair(out, RESOURCE_ATTRIBUTES, name.as_bytes(), value);
        }
    }

    /// Appends an attribute of a record.
    pub(crate) fn write_attribute(&mut self, out: &mut Vec<u8>, name: &str, value: ValueRef<'_>) {
        self.values.write_pair(out, ATTRIBUTES, name.as_bytes(), value);
    }

    /// Appends the body of a record.
    pub(crate) fn write_body(&mut self, out: &mut Vec<u8>, value: ValueRef<'_>) {
        self.values.write_any(out, BODY, value);
    }

    fn write_inside(
        &mut self,
        out: &mut Vec<u8>,
        place: Place,
        value: ValueRef<'_>,
        taken: &mut Taken,
    ) {
        let ValueRef::Map(map) = value else { return self.write_leaf(out, place, value, taken) };
        if !self.write_members(out, place, &map, taken) {
            self.write_leaf(out, place, value, taken);
        }
    }

    /// Returns whether there were any.
    fn write_members(
        &mut self,
        out: &mut Vec<u8>,
        place: Place,
        map: &MapRef<'_>,
        taken: &mut Taken,
    ) -> bool {
        let (outer, mut any) = (self.name.len(), false);
        map.for_each(|key, value| {
            any = true;
            self.name.push(b'.');
            self.name.extend_from_slice(key);
            self.write_inside(out, place, value, taken);
            self.name.truncate(outer);
        });
        any
    }

    fn write_node(&mut self, out: &mut Vec<u8>, place: Place, node: &BaseNode, taken: &mut Taken) {
        let outer = self.name.len();
        if outer > 0 {
            self.name.push(b'.');
        }
        self.name.extend_from_slice(node.key.as_bytes());
        match &node.value {
            BaseValue::Leaf(value) => {
                let value = leaf_value(value).expect("a leaf of a base is no object");
                self.write_leaf(out, place, value, taken);
            }
            BaseValue::Map(children) => {
                for child in children.iter() {
                    self.write_node(out, place, child, taken);
                }
                if children.is_empty() {
                    self.write_empty(out, place);
                }
            }
        }
        self.name.truncate(outer);
    }

    /// An object without anything in it.
    fn write_empty(&mut self, out: &mut Vec<u8>, place: Place) {
        let field = match place {
            Place::Record => ATTRIBUTES,
            Place::Resource => RESOURCE_ATTRIBUTES,
        };
        self.values.write_empty_object(out, field, &self.name);
    }

    fn write_leaf(
        &mut self,
        out: &mut Vec<u8>,
        place: Place,
        value: ValueRef<'_>,
        taken: &mut Taken,
    ) {
        match place {
            Place::Resource => {
                self.renamed.clear();
                self.renamed.extend_from_slice(&self.name);
                rename(&mut self.renamed);
                // The settings win.
                if !self.naming.is_given(&self.renamed) {
                    self.values.write_pair(out, RESOURCE_ATTRIBUTES, &self.renamed, value);
                }
            }
            Place::Record => {
                if !self.write_special(out, value, taken) {
                    self.values.write_pair(out, ATTRIBUTES, &self.name, value);
                }
            }
        }
    }

    /// Writes a field for which a record has a place of its own; returns whether this is one.
    fn write_special(&mut self, out: &mut Vec<u8>, value: ValueRef<'_>, taken: &mut Taken) -> bool {
        match (&*self.name, value) {
            // Of an event whose message is not the text of its line any more.
            (b"message", value) if taken.take(Taken::BODY) => {
                self.values.write_any(out, BODY, value);
                true
            }
            (b"log.level", ValueRef::Str(level)) => {
                let is_text = simdutf8::basic::from_utf8(level).is_ok();
                if !is_text || !taken.take(Taken::SEVERITY) {
                    return false;
                }
                let number = severity::number(level);
                if number > 0 {
                    out.extend_from_slice(&[varint(SEVERITY_NUMBER), number]);
                }
                write_bytes(out, SEVERITY_TEXT, level);
                true
            }
            (b"trace.id", ValueRef::Str(text)) => {
                write_id::<16>(out, TRACE_ID, text, Taken::TRACE, taken)
            }
            (b"span.id", ValueRef::Str(text)) => {
                write_id::<8>(out, SPAN_ID, text, Taken::SPAN, taken)
            }
            _ => false,
        }
    }
}

/// An id of `N` bytes, unless the text is not one, or one that means none.
fn write_id<const N: usize>(
    out: &mut Vec<u8>,
    field: u8,
    text: &[u8],
    place: Taken,
    taken: &mut Taken,
) -> bool {
    let mut id = [0; N];
    if text.len() != 2 * N {
        return false;
    }
    for (byte, pair) in id.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { return false };
        *byte = (high << 4 | low) as u8;
    }
    if id == [0; N] || !taken.take(place) {
        return false;
    }
    write_bytes(out, field, &id);
    true
}
