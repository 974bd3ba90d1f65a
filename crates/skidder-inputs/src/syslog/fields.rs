//! Fields of a message, as Filebeat's input calls them: `hostname`, `process`, `syslog`, `event`.

use super::message::{Datum, Message};
use skidder_event::{Arena, Batch, Cell, EventMut, FieldList, KeyBit, KeyFilter, NodeId, Text};
use std::ops::Range;

/// The names of all fields and the labels of priorities, which are put into a batch with one copy.
const TEXTS: [&str; 50] = [
    "hostname",
    "process",
    "syslog",
    "event",
    "pid",
    "program",
    "name",
    "entity_id",
    "priority",
    "severity_label",
    "facility",
    "facility_label",
    "msgid",
    "version",
    "data",
    "severity",
    "sequence",
    "Emergency",
    "Alert",
    "Critical",
    "Error",
    "Warning",
    "Notice",
    "Informational",
    "Debug",
    "kernel",
    "user-level",
    "mail",
    "system",
    "security/authorization",
    "syslogd",
    "line printer",
    "network news",
    "UUCP",
    "clock",
    "security/authorization",
    "FTP",
    "NTP",
    "log audit",
    "log alert",
    "clock",
    "local0",
    "local1",
    "local2",
    "local3",
    "local4",
    "local5",
    "local6",
    "local7",
    "",
];

const HOSTNAME: usize = 0;
const PROCESS: usize = 1;
const SYSLOG: usize = 2;
const EVENT: usize = 3;
const PID: usize = 4;
const PROGRAM: usize = 5;
const NAME: usize = 6;
const ENTITY_ID: usize = 7;
const PRIORITY: usize = 8;
const SEVERITY_LABEL: usize = 9;
const FACILITY: usize = 10;
const FACILITY_LABEL: usize = 11;
const MSGID: usize = 12;
const VERSION: usize = 13;
const DATA: usize = 14;
const SEVERITY: usize = 15;
const SEQUENCE: usize = 16;
/// The first of eight.
const SEVERITIES: usize = 17;
/// The first of [`FACILITIES_COUNT`].
const FACILITIES: usize = 25;
const FACILITIES_COUNT: usize = 24;

/// Where each text begins behind the first, and at last where they end.
const PLACES: [u32; TEXTS.len()] = {
    let mut places = [0; TEXTS.len()];
    let mut at = 1;
    while at < places.len() {
        places[at] = places[at - 1] + TEXTS[at - 1].len() as u32;
        at += 1;
    }
    places
};

/// [`TEXTS`] in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    start: u32,
    keys: KeyFilter,
}

impl Names {
    /// Puts them there.
    pub(super) fn append(batch: &mut Batch) -> Self {
        let texts = batch.append_with(|bytes| {
            for text in TEXTS {
                bytes.extend_from_slice(text.as_bytes());
            }
        });
        let end = (texts.start + texts.len) as usize;
        batch.set_utf8_appended(texts.start as usize..end);
        let mut keys = KeyFilter::NONE;
        for name in [HOSTNAME, PROCESS, SYSLOG, EVENT] {
            keys.add(KeyBit::of(TEXTS[name].as_bytes()));
        }
        Self { start: texts.start, keys }
    }

    fn text(self, of: usize) -> Text {
        Text { start: self.start + PLACES[of], len: TEXTS[of].len() as u32 }
    }
}

/// An object that is being made.
struct Object {
    first: NodeId,
    last: NodeId,
}

impl Object {
    const EMPTY: Self = Self { first: NodeId::NONE, last: NodeId::NONE };

    fn add(&mut self, arena: &mut Arena<'_>, key: Text, cell: Cell) {
        self.last = arena.push(self.last, key, cell, 0);
        if self.first.is_none() {
            self.first = self.last;
        }
    }

    fn cell(&self) -> Cell {
        Cell::Map { first: self.first, opaque: false }
    }
}

/// Makes `message` and the fields of an event whose line, at `line`, was cut.
pub(super) fn put(event: &mut EventMut<'_>, line: Text, message: &Message, names: Names) {
    let span = |part: &Range<usize>| Text {
        start: line.start + part.start as u32,
        len: part.len() as u32,
    };
    event.set_message(span(&message.text));
    let data =
        if message.data.is_empty() { Object::EMPTY } else { structured(event, line, message) };
    let (_, mut arena) = event.arena();
    let arena = &mut arena;
    let [mut process, mut syslog, mut of_event, mut root] = [const { Object::EMPTY }; 4];
    if message.pid > 0 {
        process.add(arena, names.text(PID), Cell::Int(message.pid));
    }
    let words =
        [(PROGRAM, &message.program), (NAME, &message.app_name), (ENTITY_ID, &message.process_id)];
    for (name, part) in words {
        if !part.is_empty() {
            process.add(arena, names.text(name), Cell::Str(span(part)));
        }
    }
    if let Some(priority) = message.priority {
        let (facility, severity) = (priority >> 3, priority & 7);
        of_event.add(arena, names.text(SEVERITY), Cell::Int(i64::from(severity)));
        syslog.add(arena, names.text(PRIORITY), Cell::Int(i64::from(priority)));
        let label = Cell::Str(names.text(SEVERITIES + severity as usize));
        syslog.add(arena, names.text(SEVERITY_LABEL), label);
        syslog.add(arena, names.text(FACILITY), Cell::Int(i64::from(facility)));
        if (facility as usize) < FACILITIES_COUNT {
            let label = Cell::Str(names.text(FACILITIES + facility as usize));
            syslog.add(arena, names.text(FACILITY_LABEL), label);
        }
    }
    if let Some(sequence) = message.sequence {
        of_event.add(arena, names.text(SEQUENCE), Cell::Int(sequence));
    }
    if !message.kind.is_empty() {
        syslog.add(arena, names.text(MSGID), Cell::Str(span(&message.kind)));
    }
    if let Some(version) = message.version {
        syslog.add(arena, names.text(VERSION), Cell::Int(i64::from(version)));
    }
    if !data.first.is_none() {
        syslog.add(arena, names.text(DATA), data.cell());
    }
    if !message.hostname.is_empty() {
        root.add(arena, names.text(HOSTNAME), Cell::Str(span(&message.hostname)));
    }
    if !process.first.is_none() {
        root.add(arena, names.text(PROCESS), process.cell());
    }
    root.add(arena, names.text(SYSLOG), syslog.cell());
    root.add(arena, names.text(EVENT), of_event.cell());
    let (first, last) = (root.first, root.last);
    let fields = FieldList { first, last, keys: names.keys, timestamp: false };
    event.merge_list_over(fields, true);
}

/// Structured data: an object for each element.
fn structured(event: &mut EventMut<'_>, line: Text, message: &Message) -> Object {
    let span = |part: &Range<usize>| Text {
        start: line.start + part.start as u32,
        len: part.len() as u32,
    };
    let mut data = Object::EMPTY;
    let mut element: Option<(Text, Object)> = None;
    for datum in &message.data {
        match datum {
            Datum::Element(id) => {
                finish(event, &mut data, element.replace((span(id), Object::EMPTY)));
            }
            Datum::Parameter { name, value, is_escaped } => {
                let value = span(value);
                let value = if *is_escaped { unescaped(event, value) } else { value };
                let Some((_, element)) = &mut element else { continue };
                set(event, element, span(name), Cell::Str(value));
            }
        }
    }
    finish(event, &mut data, element);
    data
}

/// Adds an element that is complete.
fn finish(event: &mut EventMut<'_>, data: &mut Object, element: Option<(Text, Object)>) {
    let Some((id, element)) = element else { return };
    event.note_name(id);
    let (_, mut arena) = event.arena();
    data.add(&mut arena, id, element.cell());
}

/// Adds a parameter; of several with one name the last counts, as in Filebeat.
fn set(event: &mut EventMut<'_>, element: &mut Object, name: Text, value: Cell) {
    event.note_name(name);
    let (bytes, mut arena) = event.arena();
    let text = |of: Text| &bytes[of.start as usize..(of.start + of.len) as usize];
    let mut next = element.first;
    while !next.is_none() {
        if text(arena.key(next)) == text(name) {
            arena.set(next, value, 0);
            return;
        }
        next = arena.next(next);
    }
    element.add(&mut arena, name, value);
}

/// The value without the backslashes that escape something.
fn unescaped(event: &mut EventMut<'_>, value: Text) -> Text {
    let mut plain = Vec::with_capacity(value.len as usize);
    let mut rest = event.text(value);
    loop {
        rest = match rest {
            [b'\\', escaped @ (b'"' | b'\\' | b']'), rest @ ..] => {
                plain.push(*escaped);
                rest
            }
            [byte, rest @ ..] => {
                plain.push(*byte);
                rest
            }
            [] => break,
        };
    }
    event.store_text(&plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stand_in_their_places() {
        let all = TEXTS.concat();
        for (text, place) in TEXTS.iter().zip(PLACES) {
            assert!(all[place as usize..].starts_with(text));
        }
        assert_eq!(PLACES[TEXTS.len() - 1] as usize, all.len());
        assert_eq!((TEXTS[SEVERITIES], TEXTS[SEVERITIES + 7]), ("Emergency", "Debug"));
        assert_eq!((TEXTS[FACILITIES], TEXTS[FACILITIES + 23]), ("kernel", "local7"));
        assert_eq!((TEXTS[SEQUENCE], TEXTS[DATA]), ("sequence", "data"));
    }
}
