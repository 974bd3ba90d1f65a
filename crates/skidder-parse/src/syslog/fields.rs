//! `log.syslog.*` of a message.

use super::{Message, span, structured};
use skidder_event::{Arena, Cell, EventMut, FieldList, NodeId, Text};

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

/// The names of all fields, which are put into the batch with one copy.
const NAMES: [&str; 14] = [
    "log",
    "syslog",
    "priority",
    "facility",
    "severity",
    "code",
    "name",
    "appname",
    "procid",
    "hostname",
    "msgid",
    "version",
    "structured_data",
    "",
];

/// All of [`NAMES`] in a row.
const ALL_NAMES: &str =
    "logsyslogpriorityfacilityseveritycodenameappnameprocidhostnamemsgidversionstructured_data";

/// Where a name stands in [`ALL_NAMES`].
const fn place(name: usize) -> u32 {
    let (mut at, mut start) = (0, 0);
    while at < name {
        start += NAMES[at].len();
        at += 1;
    }
    start as u32
}

const PLACES: [u32; NAMES.len()] = {
    let mut places = [0; NAMES.len()];
    let mut at = 0;
    while at < places.len() {
        places[at] = place(at);
        at += 1;
    }
    places
};

/// An object that is being made.
struct Object {
    first: NodeId,
    last: NodeId,
    names: u32,
}

impl Object {
    fn new(names: u32) -> Self {
        Self { first: NodeId::NONE, last: NodeId::NONE, names }
    }

    fn add(&mut self, arena: &mut Arena<'_>, name: usize, cell: Cell) {
        let key = Text { start: self.names + PLACES[name], len: NAMES[name].len() as u32 };
        self.last = arena.push(self.last, key, cell, 0);
        if self.first.is_none() {
            self.first = self.last;
        }
    }

    fn cell(&self) -> Cell {
        Cell::Map { first: self.first, opaque: false }
    }
}

/// Puts the header of a message into the event.
pub(super) fn merge(event: &mut EventMut<'_>, text: Text, message: &Message, overwrite: bool) {
    let names = event.store_text(ALL_NAMES.as_bytes()).start;
    let mut syslog = Object::new(names);
    if let Some(priority) = message.priority {
        let (facility, severity) = (priority >> 3, priority & 7);
        let facility_name = event.store_text(FACILITIES[usize::from(facility)].as_bytes());
        let severity_name = event.store_text(SEVERITIES[usize::from(severity)].as_bytes());
        let (_, mut arena) = event.arena();
        syslog.add(&mut arena, 2, Cell::Int(i64::from(priority)));
        for (name, code, label) in [(3, facility, facility_name), (4, severity, severity_name)] {
            let mut inner = Object::new(names);
            inner.add(&mut arena, 5, Cell::Int(i64::from(code)));
            inner.add(&mut arena, 6, Cell::Str(label));
            syslog.add(&mut arena, name, inner.cell());
        }
    }
    let version = message.version.map(|version| event.store_text(version.to_string().as_bytes()));
    let data = &message.structured_data;
    let data = (!data.is_empty()).then(|| structured::value(event, span(text, data)));
    let (_, mut arena) = event.arena();
    let procid = if message.appname.is_empty() { &(0..0) } else { &message.procid };
    let words = [(7, &message.appname), (8, procid), (9, &message.hostname), (10, &message.msgid)];
    for (name, part) in words {
        if !part.is_empty() {
            syslog.add(&mut arena, name, Cell::Str(span(text, part)));
        }
    }
    if let Some(version) = version {
        syslog.add(&mut arena, 11, Cell::Str(version));
    }
    if let Some(data) = data {
        syslog.add(&mut arena, 12, data);
    }
    if syslog.first.is_none() {
        return;
    }
    let mut log = Object::new(names);
    log.add(&mut arena, 1, syslog.cell());
    let mut root = Object::new(names);
    root.add(&mut arena, 0, log.cell());
    event.merge_list_over(FieldList::one(root.first), overwrite);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_stand_in_their_places() {
        assert_eq!(NAMES.concat(), ALL_NAMES);
        for (name, place) in NAMES.iter().zip(PLACES) {
            assert!(ALL_NAMES[place as usize..].starts_with(name));
        }
    }
}
