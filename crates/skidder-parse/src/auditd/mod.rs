//! Records of the Linux audit daemon:
//! `type=SYSCALL msg=audit(1488862769.030:19469538): arch=c000003e …` becomes `auditd.log.*`.
//!
//! The fields are those of the parser `auditd` of Filebeat 9.5 (libbeat `reader/auditd`, mode
//! `parse`) and of the library it uses (go-libaudit, `auparse`): all values are texts, a record's
//! inner `msg='…'` is taken apart, SELinux contexts become `subj_user` and so on, `success` and
//! `res` become `result`, hexadecimal texts, addresses, system calls and errors are made readable.
//! The message stays. What this does differently, to lose less: a record type that is not known is
//! taken as it is, a value that cannot be made readable stays as it was and the rest of the record
//! is kept with the error noted.

mod enrich;
mod names;
mod pairs;

use crate::syslog::append_text;
use crate::time::digits;
use enrich::Record;
use skidder_event::{Cell, EventMut, FieldList, NodeId, Path, Text};

/// Settings of one `auditd` parser, by Filebeat's names.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Errors are put in `error.message`.
    pub add_error_key: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { add_error_key: true }
    }
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditdError {
    /// The line is no audit record; its event is left as it came.
    #[error("error parsing auditd log line: {0}")]
    Header(&'static str),
    /// A value of the record is not what its type promises; it and all others are there as they were written.
    #[error("error extracting auditd data fields: {0}")]
    Value(String),
}

/// One `auditd` parser. Keeps memory from line to line.
#[derive(Debug)]
pub struct Auditd {
    settings: Settings,
    fields: Vec<Field>,
    error_message: Path,
}

/// One pair of a record, spans of the batch.
#[derive(Clone, Copy, Debug)]
struct Field {
    key: Text,
    /// The value with its quotes.
    written: Text,
    value: Text,
    /// A value that is not a text.
    cell: Option<Cell>,
    gone: bool,
}

/// Where the parts of a line are.
struct Header<'t> {
    node: Option<&'t [u8]>,
    record_type: &'t [u8],
    time: i64,
    sequence: u32,
    /// Where the pairs begin.
    body: usize,
}

impl Auditd {
    /// A parser.
    pub fn new(settings: Settings) -> Self {
        let error_message = Path::parse("error.message").expect("two names with a dot between");
        Self { settings, fields: Vec::new(), error_message }
    }

    /// Parses the message of an event, which stays. Without a message nothing happens.
    pub fn apply(&mut self, event: &mut EventMut<'_>) -> Result<(), AuditdError> {
        let Some(line) = event.own_message() else { return Ok(()) };
        let done = self.parse(event, line);
        if let Err(error) = &done
            && self.settings.add_error_key
        {
            append_text(event, &self.error_message, &error.to_string());
        }
        done
    }

    fn parse(&mut self, event: &mut EventMut<'_>, line: Text) -> Result<(), AuditdError> {
        let header = Header::read(event.text(line)).map_err(AuditdError::Header)?;
        let record_type = header.record_type.to_ascii_uppercase();
        let (time, sequence, body) = (header.time, header.sequence, header.body);
        let node = header.node.map(|node| Text { start: line.start + 5, len: node.len() as u32 });
        let body = Text { start: line.start + body as u32, len: line.len - body as u32 };
        self.fields.clear();
        let complete = pairs::read(event, &record_type, body, &mut self.fields);
        let mut record = Record { event, fields: &mut self.fields };
        let enriched = record.enrich(&record_type, body);
        event.set_time(time);
        self.merge(event, &record_type, sequence, node);
        if !complete {
            let error = format!("more than {} pairs in one record", pairs::PAIRS_MAX);
            return Err(AuditdError::Value(error));
        }
        enriched.map_err(AuditdError::Value)
    }

    /// Puts the pairs into the event.
    fn merge(
        &self,
        event: &mut EventMut<'_>,
        record_type: &[u8],
        sequence: u32,
        node: Option<Text>,
    ) {
        let record_type = event.store_text(record_type);
        let sequence = event.store_text(itoa::Buffer::new().format(sequence).as_bytes());
        let names = [b"record_type".as_slice(), b"sequence", b"node", b"log", b"auditd"]
            .map(|name| event.store_text(name));
        let own = [(names[0], Some(record_type)), (names[1], Some(sequence)), (names[2], node)];
        let (bytes, mut arena) = event.arena();
        let text = |text: Text| &bytes[text.start as usize..(text.start + text.len) as usize];
        let (mut first, mut last) = (NodeId::NONE, NodeId::NONE);
        let mut add = |key: Text, cell: Cell| {
            last = arena.push(last, key, cell, 0);
            if first.is_none() {
                first = last;
            }
        };
        for (key, value) in own {
            let hidden =
                self.fields.iter().any(|field| !field.gone && text(field.key) == text(key));
            // As in Filebeat a pair of the record wins over what stands in the header, but not over the node.
            if let Some(value) = value
                && (!hidden || key == names[2])
            {
                add(key, Cell::Str(value));
            }
        }
        for field in self.fields.iter().filter(|field| !field.gone) {
            let is_node = node.is_some() && text(field.key) == b"node";
            if !is_node {
                add(field.key, field.cell.unwrap_or(Cell::Str(field.value)));
            }
        }
        for name in [names[3], names[4]] {
            first = arena.push(NodeId::NONE, name, Cell::Map { first, opaque: false }, 0);
        }
        event.merge_list_over(FieldList::one(first), true);
    }
}

impl<'t> Header<'t> {
    /// Reads `node=N type=T msg=audit(S.M:Q)`.
    fn read(line: &'t [u8]) -> Result<Self, &'static str> {
        const INVALID: &str = "invalid audit message header";
        let mut at = 0;
        let mut node = None;
        if line.starts_with(b"node=")
            && let Some(space) = memchr::memchr(b' ', line)
        {
            node = Some(&line[5..space]).filter(|node| !node.is_empty());
            at = space + 1;
        }
        let rest = &line[at..];
        let message = memchr::memmem::find(rest, b"msg=").ok_or(INVALID)?;
        let name = rest[..message].strip_prefix(b"type=").and_then(|name| name.split_last());
        let record_type = match name {
            Some((b' ', name)) if is_type(name) => name,
            _ => return Err("invalid message type"),
        };
        at += message + 4;
        let stamp = &line[at..];
        let find = |byte: u8, from: usize| {
            memchr::memchr(byte, &stamp[from..]).map(|found| from + found).ok_or(INVALID)
        };
        let open = find(b'(', 0)?;
        let dot = find(b'.', open)?;
        let colon = find(b':', dot)?;
        let close = find(b')', colon)?;
        let number = |from: usize, to: usize| {
            Some(&stamp[from..to])
                .filter(|text| (1..=12).contains(&text.len()))
                .and_then(digits)
                .ok_or(INVALID)
        };
        let (seconds, milliseconds) = (number(open + 1, dot)?, number(dot + 1, colon)?);
        let sequence = u32::try_from(number(colon + 1, close)?).map_err(|_| INVALID)?;
        let time = seconds
            .checked_mul(1_000_000_000)
            .and_then(|time| time.checked_add(milliseconds.checked_mul(1_000_000)?))
            .ok_or(INVALID)?;
        Ok(Self { node, record_type, time, sequence, body: at + close + 1 })
    }
}

/// Whether a word is the name of a record type: `SYSCALL`, `UNKNOWN[1329]`.
fn is_type(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'[' | b']'))
}

#[cfg(test)]
mod tests;
