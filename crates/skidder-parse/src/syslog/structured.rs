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

/// The value of the data: objects, or the text if it is not as the RFC wants it.
pub(super) fn value(event: &mut EventMut<'_>, data: Text) -> Cell {
    let mut parts = Vec::new();
    if read(event.text(data), &mut parts).is_none() {
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

    /// Sets a parameter of an element; the last of one name counts. Says `false` if there are too many.
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

/// Reads all elements; nothing if one is not as the RFC wants it, or there are too many.
fn read(data: &[u8], parts: &mut Vec<Part>) -> Option<()> {
    let mut at = 0;
    while at < data.len() {
        if data[at] != b'[' || parts.len() > PARTS_MAX {
            return None;
        }
        let id = name(data, at + 1)?;
        at = id.end;
        parts.push(Part::Element(id));
        while data.get(at) == Some(&b' ') {
            if parts.len() > PARTS_MAX {
                return None;
            }
            let name = name(data, at + 1)?;
            if !data[name.end..].starts_with(b"=\"") {
                return None;
            }
            let start = name.end + 2;
            let (end, escaped) = quoted(data, start)?;
            parts.push(Part::Parameter { name, value: start..end, escaped });
            at = end + 1;
        }
        if data.get(at) != Some(&b']') {
            return None;
        }
        at += 1;
    }
    Some(())
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
