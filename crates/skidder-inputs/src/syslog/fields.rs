//! Fields of a message, as Filebeat's input calls them: `hostname`, `process`, `syslog`, `event`.

use super::message::{Datum, Message};
use super::span;
use skidder_event::{Arena, Batch, Cell, EventMut, FieldList, KeyBit, KeyFilter, NodeId, Text};
use std::ops::Range;

/// `"name":` of all fields, which is put into a batch with one copy, so that it need not be written for each event.
const KEYS: [&str; 17] = [
    r#""hostname":"#,
    r#""process":"#,
    r#""syslog":"#,
    r#""event":"#,
    r#""pid":"#,
    r#""program":"#,
    r#""name":"#,
    r#""entity_id":"#,
    r#""msgid":"#,
    r#""version":"#,
    r#""data":"#,
    r#""sequence":"#,
    r#""priority":"#,
    r#""severity":"#,
    r#""severity_label":"#,
    r#""facility":"#,
    r#""facility_label":"#,
];

const HOSTNAME: usize = 0;
const PROCESS: usize = 1;
const SYSLOG: usize = 2;
const EVENT: usize = 3;
const PID: usize = 4;
const PROGRAM: usize = 5;
const NAME: usize = 6;
const ENTITY_ID: usize = 7;
const MSGID: usize = 8;
const VERSION: usize = 9;
const DATA: usize = 10;
const SEQUENCE: usize = 11;
const PRIORITY: usize = 12;
const SEVERITY: usize = 13;
const SEVERITY_LABEL: usize = 14;
const FACILITY: usize = 15;
const FACILITY_LABEL: usize = 16;

const SEVERITIES: [&str; 8] =
    ["Emergency", "Alert", "Critical", "Error", "Warning", "Notice", "Informational", "Debug"];

const FACILITIES: [&str; 24] = [
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
];

/// Where each key begins behind the first.
const PLACES: [u32; KEYS.len()] = {
    let mut places = [0; KEYS.len()];
    let mut at = 1;
    while at < places.len() {
        places[at] = places[at - 1] + KEYS[at - 1].len() as u32;
        at += 1;
    }
    places
};

/// The texts that the events of a batch share: each is stored in it once.
pub(super) struct Texts {
    start: u32,
    filter: KeyFilter,
    /// For each priority where it stands in `priorities`, from 1; 0 if it was not there yet.
    places: [u8; 8 * FACILITIES.len()],
    priorities: Vec<Priority>,
}

/// The fields of a priority as members of JSON.
#[derive(Clone, Copy)]
struct Priority {
    number: Member,
    /// The whole of `event`, as long as there is nothing else in it.
    event: Text,
    severity: Member,
    severity_label: Member,
    facility: Member,
    /// Nothing if the facility has no name.
    facility_label: Option<Member>,
}

/// A member that stands in the batch.
#[derive(Clone, Copy)]
struct Member {
    key: Text,
    cell: Cell,
    raw: u32,
}

impl Texts {
    /// Puts the keys into a batch.
    pub(super) fn append(batch: &mut Batch) -> Self {
        let keys = batch.append_with(|bytes| {
            for key in KEYS {
                bytes.extend_from_slice(key.as_bytes());
            }
        });
        batch.set_utf8_appended(keys.start as usize..(keys.start + keys.len) as usize);
        let mut filter = KeyFilter::NONE;
        for key in [HOSTNAME, PROCESS, SYSLOG, EVENT] {
            filter.add(KeyBit::of(KEYS[key].trim_matches(['"', ':']).as_bytes()));
        }
        let places = [0; 8 * FACILITIES.len()];
        Self { start: keys.start, filter, places, priorities: Vec::new() }
    }

    fn key(&self, of: usize) -> Text {
        Text { start: self.start + PLACES[of] + 1, len: KEYS[of].len() as u32 - 3 }
    }

    /// The fields of a priority, which are put into the batch when it comes the first time.
    fn priority(&mut self, event: &mut EventMut<'_>, number: u32) -> Priority {
        let place = self.places.get(number as usize).copied().map(usize::from);
        match place {
            Some(0) => {}
            Some(place) => return self.priorities[place - 1],
            None => return Priority::store(event, number),
        }
        let priority = Priority::store(event, number);
        self.priorities.push(priority);
        self.places[number as usize] = self.priorities.len() as u8;
        priority
    }
}

impl Priority {
    #[cold]
    fn store(event: &mut EventMut<'_>, number: u32) -> Self {
        let (facility, severity) = (number >> 3, number & 7);
        let opening = event.store_text([KEYS[EVENT], "{"].concat().as_bytes());
        let of_event = Member::of_number(event, SEVERITY, severity);
        let closing = event.store_text(b"}");
        let label = SEVERITIES[severity as usize];
        let facility_label = FACILITIES.get(facility as usize);
        Self {
            number: Member::of_number(event, PRIORITY, number),
            event: Text {
                start: opening.start + 1,
                len: closing.start + closing.len - opening.start,
            },
            severity: of_event,
            severity_label: Member::of_label(event, SEVERITY_LABEL, label),
            facility: Member::of_number(event, FACILITY, facility),
            facility_label: facility_label.map(|of| Member::of_label(event, FACILITY_LABEL, of)),
        }
    }
}

impl Member {
    fn of_number(event: &mut EventMut<'_>, key: usize, number: u32) -> Self {
        let (key, raw) = Self::store(event, key, &number.to_string());
        Self { key, cell: Cell::Int(i64::from(number)), raw }
    }

    fn of_label(event: &mut EventMut<'_>, key: usize, label: &str) -> Self {
        // No label has anything that is escaped.
        let (key, raw) = Self::store(event, key, &format!("\"{label}\""));
        let text = Text { start: key.start + key.len + 3, len: label.len() as u32 };
        Self { key, cell: Cell::Str(text), raw }
    }

    fn store(event: &mut EventMut<'_>, key: usize, value: &str) -> (Text, u32) {
        let member = event.store_text([KEYS[key], value].concat().as_bytes());
        (Text { start: member.start + 1, len: KEYS[key].len() as u32 - 3 }, member.len)
    }
}

/// An object that is being made.
struct Object {
    first: NodeId,
    last: NodeId,
}

impl Object {
    const EMPTY: Self = Self { first: NodeId::NONE, last: NodeId::NONE };

    fn add(&mut self, arena: &mut Arena<'_>, key: Text, cell: Cell, raw: u32) {
        self.last = arena.push(self.last, key, cell, raw);
        if self.first.is_none() {
            self.first = self.last;
        }
    }

    /// Adds a field of ours.
    fn put(&mut self, arena: &mut Arena<'_>, texts: &Texts, key: usize, cell: Cell) {
        self.add(arena, texts.key(key), cell, Arena::KEY);
    }

    fn member(&mut self, arena: &mut Arena<'_>, member: Member) {
        self.add(arena, member.key, member.cell, member.raw);
    }

    fn cell(&self) -> Cell {
        Cell::Map { first: self.first, opaque: false }
    }
}

/// Makes `message` and the fields of an event whose line, at `line`, was cut.
pub(super) fn put(event: &mut EventMut<'_>, line: Text, message: &Message, texts: &mut Texts) {
    let span = |part: &Range<usize>| span(line, part);
    event.set_message(span(&message.text));
    let data =
        if message.data.is_empty() { Object::EMPTY } else { structured(event, line, message) };
    let priority = message.priority.map(|number| texts.priority(event, number));
    let texts = &*texts;
    let (_, mut arena) = event.arena();
    let arena = &mut arena;
    let [mut process, mut syslog, mut of_event, mut root] = [const { Object::EMPTY }; 4];
    if message.pid > 0 {
        process.put(arena, texts, PID, Cell::Int(message.pid));
    }
    let words =
        [(PROGRAM, &message.program), (NAME, &message.app_name), (ENTITY_ID, &message.process_id)];
    for (name, part) in words {
        if !part.is_empty() {
            process.put(arena, texts, name, Cell::Str(span(part)));
        }
    }
    if let Some(of) = priority {
        of_event.member(arena, of.severity);
        for member in
            [of.number, of.severity_label, of.facility].into_iter().chain(of.facility_label)
        {
            syslog.member(arena, member);
        }
    }
    if let Some(sequence) = message.sequence {
        of_event.put(arena, texts, SEQUENCE, Cell::Int(sequence));
    }
    if !message.kind.is_empty() {
        syslog.put(arena, texts, MSGID, Cell::Str(span(&message.kind)));
    }
    if let Some(version) = message.version {
        syslog.put(arena, texts, VERSION, Cell::Int(i64::from(version)));
    }
    if !data.first.is_none() {
        syslog.put(arena, texts, DATA, data.cell());
    }
    if !message.hostname.is_empty() {
        root.put(arena, texts, HOSTNAME, Cell::Str(span(&message.hostname)));
    }
    if !process.first.is_none() {
        root.put(arena, texts, PROCESS, process.cell());
    }
    root.put(arena, texts, SYSLOG, syslog.cell());
    match priority {
        Some(of) if message.sequence.is_none() => {
            let key = Text { len: KEYS[EVENT].len() as u32 - 3, ..of.event };
            root.add(arena, key, of_event.cell(), of.event.len);
        }
        _ => root.put(arena, texts, EVENT, of_event.cell()),
    }
    let (first, last) = (root.first, root.last);
    let fields = FieldList { first, last, keys: texts.filter, timestamp: false };
    event.merge_list_over(fields, true);
}

/// Structured data: an object for each element.
fn structured(event: &mut EventMut<'_>, line: Text, message: &Message) -> Object {
    let span = |part: &Range<usize>| span(line, part);
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
    data.add(&mut arena, id, element.cell(), 0);
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
    element.add(&mut arena, name, value, 0);
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
    use super::super::message::Format;
    use super::*;
    use serde_json::{Value, json};
    use skidder_event::{Base, Encoder, Map, Path, Precision, Provenance, Row, SourceId};
    use std::sync::Arc;

    #[test]
    fn keys_stand_in_their_places_and_labels_are_json() {
        let all = KEYS.concat();
        for (key, place) in KEYS.iter().zip(PLACES) {
            assert!(all[place as usize..].starts_with(key));
            assert!(key.starts_with('"') && key.ends_with("\":"));
        }
        assert_eq!(
            (KEYS[SEQUENCE], KEYS[FACILITY_LABEL]),
            (r#""sequence":"#, r#""facility_label":"#)
        );
        for label in SEVERITIES.iter().chain(&FACILITIES) {
            assert!(label.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
            assert!(!label.contains(['"', '\\']));
        }
    }

    #[test]
    fn members_that_stand_in_the_batch_are_not_written_when_something_in_them_changed() {
        let line = b"<13>1 2026-10-11T22:14:15Z host app 1 id - text";
        let base = Arc::new(Base::new(&Map::new(), &Map::new()));
        let provenance = Provenance::new(SourceId(1), 0..1);
        let mut batch = Batch::new(line.to_vec(), true, base.clone(), provenance);
        let text = Text { start: 0, len: line.len() as u32 };
        batch.push(Row::numbered(0, 1, text, 0));
        let mut texts = Texts::append(&mut batch);
        let mut message = Message::default();
        assert!(message.parse(line, Format::Auto, &|_, _| None));
        let mut event = batch.event_mut(0, &base);
        put(&mut event, text, &message, &mut texts);
        let path = |text| Path::parse(text).unwrap();
        event.put_cell(&path("syslog.facility_label"), Cell::Int(7)).unwrap();
        event.put_cell(&path("event.severity"), Cell::Null).unwrap();
        assert!(event.delete(&path("process")));
        let mut out = Vec::new();
        Encoder::new(Precision::default()).write(&mut out, &batch, 0);
        let event: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            (&event["syslog"]["facility_label"], &event["process"]),
            (&7.into(), &Value::Null)
        );
        assert_eq!(
            (&event["event"], &event["syslog"]["priority"]),
            (&json!({"severity": null}), &13.into())
        );
    }
}
