//! Structured data of RFC 5424, `[id name="value" …][…]`, as an object of objects.

use skidder_event::{Cell, EventMut, NodeId, Text};
use std::ops::Range;

/// More elements than this, or parameters in one, are kept as text: names are compared one by one.
const NAMES_MAX: usize = 256;

/// More elements and parameters than this together are kept as text.
const PARTS_MAX: usize = 4096;

/// One parameter or the beginning of an element, as spans of the text.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Element(Range<usize>),
    Parameter { name: Range<usize>, value: Range<usize>, escaped: bool },
}

/// The value of the data: objects, as far as it is as the RFC wants it; the text if there are too many.
pub(super) fn value(event: &mut EventMut<'_>, data: Text) -> Cell {
    let mut parts = Vec::new();
    if !read(event.text(data), &mut parts) {
        return Cell::Str(data);
    }
    let span = |part: &Range<usize>| Text {
        start: data.start + part.start as u32,
        len: part.len() as u32,
    };
    let mut elements = List::default();
    let mut parameters = List::default();
    let mut element = None;
    for part in &parts {
        let kept = match part {
            Part::Element(id) => {
                let found = elements.find(event, span(id));
                parameters = List::default();
                match found {
                    Some(id) => {
                        parameters = List::of(event, id);
                        element = Some(id);
                        true
                    }
                    None => {
                        let cell = Cell::Map { first: NodeId::NONE, opaque: true };
                        element = elements.add(event, span(id), cell);
                        element.is_some()
                    }
                }
            }
            Part::Parameter { name, value, escaped } => {
                let text = if *escaped { unescaped(event, span(value)) } else { span(value) };
                parameters.set(event, element, span(name), Cell::Str(text))
            }
        };
        if !kept {
            return Cell::Str(data);
        }
    }
    Cell::Map { first: elements.first, opaque: true }
}

/// A list of fields that is being made.
struct List {
    first: NodeId,
    last: NodeId,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        Self { first: NodeId::NONE, last: NodeId::NONE, len: 0 }
    }
}

impl List {
    /// The fields of an element that is there already.
    fn of(event: &mut EventMut<'_>, element: NodeId) -> Self {
        let (_, arena) = event.arena();
        let mut list = Self::default();
        if let Cell::Map { first, .. } = arena.cell(element) {
            list.first = first;
            let mut next = first;
            while !next.is_none() {
                list.last = next;
                list.len += 1;
                next = arena.next(next);
            }
        }
        list
    }

    fn find(&self, event: &mut EventMut<'_>, name: Text) -> Option<NodeId> {
        let (bytes, arena) = event.arena();
        let text = |text: Text| &bytes[text.start as usize..(text.start + text.len) as usize];
        let mut next = self.first;
        while !next.is_none() {
            if text(arena.key(next)) == text(name) {
                return Some(next);
            }
            next = arena.next(next);
        }
        None
    }

    fn add(&mut self, event: &mut EventMut<'_>, name: Text, cell: Cell) -> Option<NodeId> {
        if self.len == NAMES_MAX {
            return None;
        }
        event.note_name(name);
        let id = event.arena().1.push(self.last, name, cell, 0);
        if self.first.is_none() {
            self.first = id;
        }
        self.last = id;
        self.len += 1;
        Some(id)
    }

    /// Sets a parameter of an element; the last of one name counts. Returns `false` if there are too many.
    fn set(
        &mut self,
        event: &mut EventMut<'_>,
        element: Option<NodeId>,
        name: Text,
        cell: Cell,
    ) -> bool {
        if let Some(there) = self.find(event, name) {
            event.arena().1.set(there, cell, 0);
            return true;
        }
        if self.add(event, name, cell).is_none() {
            return false;
        }
        if let Some(element) = element {
            event.arena().1.set(element, Cell::Map { first: self.first, opaque: true }, 0);
        }
        true
    }
}

/// A value without the backslashes before `"`, `\` and `]`, added to the batch.
fn unescaped(event: &mut EventMut<'_>, value: Text) -> Text {
    let mut plain = Vec::with_capacity(value.len as usize);
    let mut rest = event.text(value);
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, rest.first()) {
            (b'\\', Some(&escaped @ (b'"' | b'\\' | b']'))) => {
                plain.push(escaped);
                rest = &rest[1..];
            }
            _ => plain.push(byte),
        }
    }
    event.store_text(&plain)
}

/// Whether data begins with the id of an element. Else nothing of it is an object.
pub(super) fn has_element(data: &[u8]) -> bool {
    element(data, 0).is_some()
}

/// The id of the element that begins here.
fn element(data: &[u8], at: usize) -> Option<Range<usize>> {
    let id = if data.get(at) == Some(&b'[') { name(data, at + 1)? } else { return None };
    matches!(data.get(id.end), Some(b' ' | b']')).then_some(id)
}

/// Reads elements up to the first that is not as the RFC wants it, and what of that is; `false` if
/// there are too many.
fn read(data: &[u8], parts: &mut Vec<Part>) -> bool {
    let mut at = 0;
    while let Some(id) = element(data, at) {
        at = id.end;
        parts.push(Part::Element(id));
        while let Some((part, end)) = parameter(data, at) {
            parts.push(part);
            at = end;
            if parts.len() > PARTS_MAX {
                return false;
            }
        }
        if data.get(at) != Some(&b']') {
            break;
        }
        at += 1;
        if parts.len() > PARTS_MAX {
            return false;
        }
    }
    true
}

/// The parameter behind the space here, and where it ends.
fn parameter(data: &[u8], at: usize) -> Option<(Part, usize)> {
    let name = if data.get(at) == Some(&b' ') { name(data, at + 1)? } else { return None };
    if !data[name.end..].starts_with(b"=\"") {
        return None;
    }
    let start = name.end + 2;
    let (end, escaped) = quoted(data, start)?;
    Some((Part::Parameter { name, value: start..end, escaped }, end + 1))
}

/// A name of 1 to 32 printable characters but `=`, `]`, `"` and the space.
fn name(data: &[u8], start: usize) -> Option<Range<usize>> {
    let len = data
        .get(start..)?
        .iter()
        .take_while(|byte| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"'))
        .count();
    (1..=32).contains(&len).then_some(start..start + len)
}

/// Where the quote stands that ends a value, and whether the value has escapes.
fn quoted(data: &[u8], start: usize) -> Option<(usize, bool)> {
    let mut at = start;
    let mut escaped = false;
    loop {
        let stop = at + memchr::memchr3(b'"', b'\\', b']', data.get(at..)?)?;
        match data[stop] {
            b'"' => return Some((stop, escaped)),
            b'\\' => {
                escaped = true;
                at = stop + 2;
            }
            _ => return None,
        }
    }
}
