//! The parser `ndjson`: a message that is a JSON object becomes fields of its event.
//!
//! Semantics of Filebeat 9.5 (libbeat `reader/readjson`, `common/jsontransform`): at the root,
//! fields are merged deeply and what the event has wins unless `overwrite_keys`; `@timestamp` and
//! `@metadata` are taken only with `overwrite_keys`, and the type of the input stays. Of a message
//! with text after its first object, the object is taken; the rest is logged and counted. Where
//! Filebeat loses something else this does not: a message that is `null` or whose keys cannot be
//! expanded stays as it is, an `error` that the program wrote stays under the note of this parser,
//! a `target` that exists is merged into, and `expand_keys` works with a `target` too.

use crate::json::{JsonError, Scanner};
use crate::time::TimeReader;
pub(crate) use expand::Expander;
use skidder_event::{Cell, EventMut, FieldList, KeyBit, KeyFilter, NodeId, Path, Text};

mod expand;

/// Settings of one `ndjson` parser, by Filebeat's names.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The object that takes the fields; nothing = the root of the event.
    pub target: Option<Path>,
    /// Fields of the JSON win over those that the event has.
    pub overwrite_keys: bool,
    /// Keys with dots become objects.
    pub expand_keys: bool,
    /// Errors are put in `error.message`, with `error.type: json`.
    pub add_error_key: bool,
    /// The key whose text becomes the message.
    pub message_key: Option<Box<str>>,
    /// The key (dots for objects inside) whose text becomes `@metadata._id`.
    pub document_id: Option<Box<str>>,
    /// Keep members that are `null`.
    pub keep_null: bool,
    /// The message is a field like any other, which the fields of the JSON are merged with: as of records of Kafka, of
    /// which Filebeat sets it before the parsers.
    pub keep_message: bool,
}

/// A failure; it is also noted on the event if `add_error_key`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NdjsonError {
    /// The message stays as it is.
    #[error("Error decoding JSON: {0}")]
    Undecoded(JsonError),
    /// The fields of the first object are there; the rest of the message is not.
    #[error("only the first object of the message is read: {0}")]
    Behind(JsonError),
    /// The message stays as it is.
    #[error("cannot expand `{0}`: another key gives the same field")]
    Expand(String),
    /// The fields are there, the event has no message.
    #[error("Key '{0}' not found")]
    NoMessage(String),
    /// The fields are there, the event has no message.
    #[error("Value of key '{0}' is not a string")]
    MessageNotText(String),
    /// The event keeps its time.
    #[error("@timestamp not overwritten (not string)")]
    TimestampNotText,
    /// The event keeps its time.
    #[error("@timestamp not overwritten (parse error on {0})")]
    Timestamp(String),
    /// The event has no `type` from this JSON.
    #[error("type not overwritten (not string)")]
    TypeNotText,
    /// The event has no `type` from this JSON.
    #[error("type not overwritten (invalid value [{0}])")]
    Type(String),
    /// `@metadata` stays as it is.
    #[error("failed to update @metadata")]
    Metadata,
    /// Documents of senders may not set it.
    #[error(
        "`@metadata` of a document is left out: it says how an event is written, not what it is"
    )]
    MetadataOfDocument,
}

/// One `ndjson` parser. Keep one for each source or thread: it learns the keys of its lines.
#[derive(Debug)]
pub struct Ndjson {
    settings: Settings,
    scanner: Scanner,
    expander: Expander,
    times: TimeReader,
}

impl Ndjson {
    /// A parser that has seen nothing.
    pub fn new(settings: Settings) -> Self {
        let scanner = Scanner::new(settings.keep_null);
        Self { settings, scanner, expander: Expander::default(), times: TimeReader::default() }
    }

    /// Decodes the message of an event. Without a message nothing happens.
    pub fn apply(&mut self, event: &mut EventMut<'_>) -> Result<(), NdjsonError> {
        let Some(text) = event.own_message() else { return Ok(()) };
        let done = self.decode(event, text);
        if let Err(error) = &done
            && self.settings.add_error_key
            && !matches!(error, NdjsonError::Behind(_))
        {
            note(event, &error.to_string(), self.settings.target.as_ref());
            if let (NdjsonError::Undecoded(_), Some(key)) = (error, &self.settings.message_key) {
                self.keep_text(event, key, text);
            }
        }
        done
    }

    /// Beside the note, what could not be decoded has the field of the message, as with Filebeat.
    fn keep_text(&self, event: &mut EventMut<'_>, key: &str, text: Text) {
        let Settings { target, overwrite_keys, .. } = &self.settings;
        if text.len == 0 || (target.is_none() && key == "message") {
            return;
        }
        let key = event.store_text(key.as_bytes());
        let node = event.arena().1.push(NodeId::NONE, key, Cell::Str(text), 0);
        let fields = FieldList::one(node);
        match target {
            Some(target) => {
                let fields = below(event, fields, target);
                event.merge_list_over(fields, true);
            }
            None => event.merge_list_over(fields, *overwrite_keys),
        }
    }

    fn decode(&mut self, event: &mut EventMut<'_>, text: Text) -> Result<(), NdjsonError> {
        let (mut fields, behind) =
            self.scanner.first_object(event, text).map_err(NdjsonError::Undecoded)?;
        let mut done = behind.map_or(Ok(()), |error| Err(NdjsonError::Behind(error)));
        let message = match &self.settings.message_key {
            Some(key) => message_of(event, &fields, key).unwrap_or_else(|error| {
                done = Err(error);
                None
            }),
            None => None,
        };
        let id = match &self.settings.document_id {
            Some(key) => take_id(event, &mut fields, key),
            None => None,
        };
        if self.settings.expand_keys {
            self.expander.expand(event, &mut fields).map_err(NdjsonError::Expand)?;
        }
        if let Some(id) = id {
            put_id(event, id);
        }
        match message {
            _ if self.settings.keep_message => {
                let is_noted = done.is_err() && self.settings.add_error_key;
                self.keep_message(event, &fields, (text, message), is_noted);
            }
            Some(message) => {
                event.set_message(message);
                if self.settings.target.is_none() {
                    remove(event, &mut fields, b"message");
                }
            }
            None if is_error_alone(
                event,
                &fields,
                done.is_err() && self.settings.add_error_key,
            ) =>
            {
                event.set_message(Text { len: 0, ..text });
            }
            None => event.clear_message(),
        }
        match &self.settings.target {
            Some(target) => {
                fields = below(event, fields, target);
                event.merge_list_over(fields, true);
            }
            None if self.settings.overwrite_keys => {
                if let Err(error) = take_special(event, &mut fields, &mut self.times) {
                    done = Err(error);
                }
                remove_input_type(event, &mut fields);
                event.merge_list_over(fields, true);
            }
            None => {
                remove_of_row(event, &mut fields);
                event.merge_list_over(fields, false);
            }
        }
        done
    }

    /// Where the message is a field, it stays; but beside nothing but an `error`, as in Filebeat, and where a `null`
    /// replaces it.
    fn keep_message(
        &self,
        event: &mut EventMut<'_>,
        fields: &FieldList,
        (text, message): (Text, Option<Text>),
        is_noted: bool,
    ) {
        let Settings { target, overwrite_keys, keep_null, .. } = &self.settings;
        if is_error_alone(event, fields, is_noted) {
            event.set_message(message.unwrap_or(Text { len: 0, ..text }));
        } else if target.is_none()
            && *overwrite_keys
            && !keep_null
            && has_null_message(event, fields, text)
        {
            event.clear_message();
        }
    }
}

/// Whether `message` is `null` in a text; `fields` are its fields without those that are `null`.
fn has_null_message(event: &mut EventMut<'_>, fields: &FieldList, text: Text) -> bool {
    if !has(fields, b"message")
        || find(event, fields.first, b"message").is_some()
        || memchr::memmem::find(event.text(text), b"\"message\"").is_none()
    {
        return false;
    }
    let Ok((all, _)) = Scanner::new(true).first_object(event, text) else { return false };
    let found = find(event, all.first, b"message");
    found.is_some_and(|(_, id)| event.arena().1.cell(id) == Cell::Null)
}

/// Notes the failure on the event, or in the object that takes the fields, beside what is there
/// in `error`.
fn note(event: &mut EventMut<'_>, message: &str, target: Option<&Path>) {
    let message = Cell::Str(event.store_text(message.as_bytes()));
    let kind = Cell::Str(event.store_text(b"json"));
    let keys = [b"error".as_slice(), b"message", b"type"].map(|key| event.store_text(key));
    let (_, mut arena) = event.arena();
    let first = arena.push(NodeId::NONE, keys[1], message, 0);
    arena.push(first, keys[2], kind, 0);
    let error = arena.push(NodeId::NONE, keys[0], Cell::Map { first, opaque: false }, 0);
    let mut fields = FieldList::one(error);
    if let Some(target) = target {
        fields = below(event, fields, target);
    }
    event.merge_list_over(fields, false);
}

/// Whether there is nothing but a field `error`, or a note will be the only field: Filebeat takes
/// the line for one that could not be decoded, and gives it the message.
fn is_error_alone(event: &mut EventMut<'_>, fields: &FieldList, is_noted: bool) -> bool {
    if fields.first.is_none() {
        return is_noted;
    }
    if !has(fields, b"error") {
        return false;
    }
    let (_, arena) = event.arena();
    arena.next(fields.first).is_none() && find(event, fields.first, b"error").is_some()
}

/// Takes out what would replace the type of the input (`input.type`), which Filebeat sets behind its parsers.
fn remove_input_type(event: &mut EventMut<'_>, fields: &mut FieldList) {
    if !has(fields, b"input") {
        return;
    }
    let Some((before, id)) = find(event, fields.first, b"input") else { return };
    match event.arena().1.cell(id) {
        Cell::Map { first, opaque } => {
            let mut inner = FieldList { first, keys: KeyFilter::ANY, ..FieldList::EMPTY };
            if remove(event, &mut inner, b"type").is_some() {
                event.arena().1.set(id, Cell::Map { first: inner.first, opaque }, 0);
            }
        }
        _ => event.arena().1.unlink(fields, before),
    }
}

/// The field with this key, and the one before it.
fn find(event: &mut EventMut<'_>, first: NodeId, key: &[u8]) -> Option<(NodeId, NodeId)> {
    let (bytes, arena) = event.arena();
    let (mut before, mut next) = (NodeId::NONE, first);
    while !next.is_none() {
        let text = arena.key(next);
        if &bytes[text.start as usize..(text.start + text.len) as usize] == key {
            return Some((before, next));
        }
        (before, next) = (next, arena.next(next));
    }
    None
}

/// Takes out `@timestamp` and `@metadata`, which a JSON may not set.
pub(crate) fn remove_of_row(event: &mut EventMut<'_>, fields: &mut FieldList) {
    fields.timestamp = false;
    if !has(fields, b"@timestamp") && !has(fields, b"@metadata") {
        return;
    }
    let (bytes, mut arena) = event.arena();
    let (mut before, mut next) = (NodeId::NONE, fields.first);
    while !next.is_none() {
        let text = arena.key(next);
        let key = &bytes[text.start as usize..(text.start + text.len) as usize];
        let id = next;
        next = arena.next(id);
        if key.first() == Some(&b'@') && matches!(key, b"@timestamp" | b"@metadata") {
            arena.unlink(fields, before);
        } else {
            before = id;
        }
    }
}

/// Whether there may be a field with this key.
fn has(fields: &FieldList, key: &[u8]) -> bool {
    fields.keys.may_have(KeyBit::of(key))
}

/// Takes out a field.
pub(crate) fn remove(event: &mut EventMut<'_>, fields: &mut FieldList, key: &[u8]) -> Option<Cell> {
    if !has(fields, key) {
        return None;
    }
    let (before, id) = find(event, fields.first, key)?;
    let (_, mut arena) = event.arena();
    arena.unlink(fields, before);
    Some(arena.cell(id))
}

/// The text that becomes the message; an empty one does not.
fn message_of(
    event: &mut EventMut<'_>,
    fields: &FieldList,
    key: &str,
) -> Result<Option<Text>, NdjsonError> {
    let Some((_, id)) = find(event, fields.first, key.as_bytes()) else {
        return Err(NdjsonError::NoMessage(key.to_owned()));
    };
    match event.arena().1.cell(id) {
        Cell::Str(text) => Ok((text.len > 0).then_some(text)),
        _ => Err(NdjsonError::MessageNotText(key.to_owned())),
    }
}

/// Takes the text at a dotted path out of the fields, if there is a text.
pub(crate) fn take_id(event: &mut EventMut<'_>, fields: &mut FieldList, key: &str) -> Option<Text> {
    if let Some((before, id)) = find(event, fields.first, key.as_bytes()) {
        let (_, mut arena) = event.arena();
        let Cell::Str(text) = arena.cell(id) else { return None };
        arena.unlink(fields, before);
        return Some(text);
    }
    let (head, rest) = key.split_once('.')?;
    let (_, id) = find(event, fields.first, head.as_bytes())?;
    let Cell::Map { first, opaque } = event.arena().1.cell(id) else { return None };
    let mut inner = FieldList { first, keys: KeyFilter::ANY, ..FieldList::EMPTY };
    let text = take_id(event, &mut inner, rest)?;
    event.arena().1.set(id, Cell::Map { first: inner.first, opaque }, 0);
    Some(text)
}

pub(crate) fn put_id(event: &mut EventMut<'_>, id: Text) {
    let key = event.store_text(b"_id");
    let node = event.arena().1.push(NodeId::NONE, key, Cell::Str(id), 0);
    event.merge_metadata_list(node);
}

/// The fields inside objects named by a path.
fn below(event: &mut EventMut<'_>, fields: FieldList, target: &Path) -> FieldList {
    let mut first = fields.first;
    for segment in target.segments().iter().rev() {
        let key = event.store_text(segment.as_bytes());
        first = event.arena().1.push(NodeId::NONE, key, Cell::Map { first, opaque: false }, 0);
    }
    FieldList::one(first)
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Takes the time, `@timestamp`. What is no time is left out.
pub(crate) fn take_time(
    event: &mut EventMut<'_>,
    fields: &mut FieldList,
    times: &mut TimeReader,
) -> Result<(), NdjsonError> {
    let mut done = Ok(());
    match remove(event, fields, b"@timestamp") {
        Some(Cell::Str(text)) => match times.rfc3339(event.text(text)) {
            Some(time) => event.set_time(time),
            None => done = Err(NdjsonError::Timestamp(lossy(event.text(text)))),
        },
        Some(_) => done = Err(NdjsonError::TimestampNotText),
        None => {}
    }
    fields.timestamp = false;
    done
}

/// Takes the fields that are more than fields: the time, `@metadata`, and a `type` that may not be one.
pub(crate) fn take_special(
    event: &mut EventMut<'_>,
    fields: &mut FieldList,
    times: &mut TimeReader,
) -> Result<(), NdjsonError> {
    let mut done = take_time(event, fields, times);
    match remove(event, fields, b"@metadata") {
        Some(Cell::Map { first, .. }) => event.merge_metadata_list(first),
        Some(_) => done = Err(NdjsonError::Metadata),
        None => {}
    }
    if !has(fields, b"type") {
        return done;
    }
    let Some((before, id)) = find(event, fields.first, b"type") else { return done };
    done = match event.arena().1.cell(id) {
        Cell::Str(text) => match event.text(text) {
            kind @ ([] | [b'_', ..]) => Err(NdjsonError::Type(lossy(kind))),
            _ => return done,
        },
        _ => Err(NdjsonError::TypeNotText),
    };
    event.arena().1.unlink(fields, before);
    done
}

#[cfg(test)]
mod tests;
