//! JSON in a field of an event, as the processor `decode_json_fields` of Filebeat 9.5 reads it (libbeat
//! `processors/actions/decode_json_fields.go`).
//!
//! The value is built in place by the scanner of [`crate::json`]: members stay where they stand in
//! the text and are copied by the encoder as they are. Texts inside that are JSON again are decoded
//! down to a depth. At the root of the event the rules are those of the parser `ndjson`, but that
//! the text stays where it was. `null` members are kept. Where Filebeat expands keys at the root
//! only, this does it below a target too.

use crate::json::{JsonError, JsonValue, Scanner};
use crate::ndjson::{self, Expander, NdjsonError};
use crate::time::{TimeReader, optional_time_or_millis};
use skidder_event::{Cell, EditError, EventMut, FieldList, NodeId, Path, Text};

/// Settings, by Filebeat's names.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How deep texts that are JSON again are decoded: 1 = only the text itself.
    pub max_depth: u32,
    /// Lists are decoded too where `max_depth` is more than 1.
    pub process_array: bool,
    /// At the root, fields of the JSON win over those that the event has.
    pub overwrite_keys: bool,
    /// Keys with dots become objects.
    pub expand_keys: bool,
    /// The key (dots for objects inside) whose text becomes `@metadata._id`.
    pub document_id: Option<Box<str>>,
}

/// Why a text was not decoded. The event may be half changed: the caller takes it back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonFieldsError {
    /// It is no JSON.
    #[error("{0}")]
    Undecoded(JsonError),
    /// It is a list, and these are not wanted.
    #[error("processing skipped")]
    Skipped,
    /// Two keys give the same field.
    #[error("cannot expand `{0}`: another key gives the same field")]
    Expand(String),
    /// Only an object can be put into the root of the event.
    #[error("failed to add target to root")]
    NotAnObject,
    /// The target is inside a value that is not an object.
    #[error("{0}")]
    Target(EditError),
    /// `@timestamp` is no date.
    #[error("failed to parse field [@timestamp] of type [date]: [{0}]")]
    Date(String),
}

/// How the `@timestamp` of a document is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dates {
    /// RFC 3339; without it the event keeps its time, which is reported.
    Rfc3339,
    /// Elasticsearch's default format; something else is an error. `null` is no time.
    Elasticsearch,
}

/// A decoder. Keep one for each thread: it learns the keys of its texts.
#[derive(Debug)]
pub struct JsonFields {
    scanner: Scanner,
    expander: Expander,
    times: TimeReader,
}

impl Default for JsonFields {
    fn default() -> Self {
        Self {
            scanner: Scanner::new(true),
            expander: Expander::default(),
            times: TimeReader::default(),
        }
    }
}

impl JsonFields {
    /// Decodes `text` of the batch and puts the value at `target` (nothing: into the root of the
    /// event). Returns what of it could not be put there.
    ///
    /// # Errors
    /// If the text is not decoded.
    pub fn decode(
        &mut self,
        event: &mut EventMut<'_>,
        text: Text,
        settings: &Settings,
        target: Option<&Path>,
    ) -> Result<Option<NdjsonError>, JsonFieldsError> {
        let mut value = self.scanner.value(event, text).map_err(JsonFieldsError::Undecoded)?;
        if settings.max_depth > 1 {
            if matches!(value, JsonValue::Other(Cell::List(_))) && !settings.process_array {
                return Err(JsonFieldsError::Skipped);
            }
            self.deepen(event, first_of(&value), settings.max_depth - 1, settings.process_array);
        }
        let mut id = None;
        if let JsonValue::Object(fields) = &mut value {
            if let Some(key) = &settings.document_id {
                id = ndjson::take_id(event, fields, key).filter(|id| id.len > 0);
            }
            if settings.expand_keys {
                self.expander.expand(event, fields).map_err(JsonFieldsError::Expand)?;
            }
        }
        let left_out = match (value, target) {
            (value, Some(target)) => {
                let cell = cell_of(&value, true);
                event.put_cell(target, cell).map_err(JsonFieldsError::Target)?;
                None
            }
            (JsonValue::Object(fields), None) => {
                self.put_at_root(event, fields, settings.overwrite_keys)
            }
            (JsonValue::Other(_), None) => return Err(JsonFieldsError::NotAnObject),
        };
        if let Some(id) = id {
            ndjson::put_id(event, id);
        }
        Ok(left_out)
    }

    /// Decodes a document of a sender that decides on fields, but not on how its event is sent on: at the root of
    /// the event (nothing as `target`), its fields win and `@metadata` is left out. Returns what was left out.
    ///
    /// # Errors
    /// If the text is not decoded.
    pub fn decode_document(
        &mut self,
        event: &mut EventMut<'_>,
        text: Text,
        target: Option<&Path>,
        dates: Dates,
    ) -> Result<Option<NdjsonError>, JsonFieldsError> {
        let value = self.scanner.value(event, text).map_err(JsonFieldsError::Undecoded)?;
        match (value, target) {
            (value, Some(target)) => {
                let put = event.put_cell(target, cell_of(&value, true));
                put.map(|()| None).map_err(JsonFieldsError::Target)
            }
            (JsonValue::Other(_), None) => Err(JsonFieldsError::NotAnObject),
            (JsonValue::Object(mut fields), None) => {
                let left_out = match dates {
                    Dates::Rfc3339 => ndjson::take_time(event, &mut fields, &mut self.times).err(),
                    Dates::Elasticsearch => {
                        take_date(event, &mut fields).map_err(JsonFieldsError::Date)?;
                        None
                    }
                };
                let has_metadata = ndjson::remove(event, &mut fields, b"@metadata").is_some();
                ndjson::remove_of_row(event, &mut fields);
                event.merge_list_over(fields, true);
                Ok(if has_metadata { Some(NdjsonError::MetadataOfDocument) } else { left_out })
            }
        }
    }

    fn put_at_root(
        &mut self,
        event: &mut EventMut<'_>,
        mut fields: FieldList,
        overwrite: bool,
    ) -> Option<NdjsonError> {
        let mut left_out = None;
        if overwrite {
            left_out = ndjson::take_special(event, &mut fields, &mut self.times).err();
        } else {
            ndjson::remove_of_row(event, &mut fields);
        }
        event.merge_list_over(fields, overwrite);
        left_out
    }

    /// Decodes the texts among the fields of an object or the elements of a list that are objects
    /// or lists. What cannot be decoded stays text.
    fn deepen(&mut self, event: &mut EventMut<'_>, first: NodeId, depth: u32, arrays: bool) {
        let mut next = first;
        while !next.is_none() {
            let id = next;
            let (_, arena) = event.arena();
            next = arena.next(id);
            let Cell::Str(text) = arena.cell(id) else { continue };
            if !is_structured(event.text(text)) {
                continue;
            }
            let Ok(value) = self.scanner.value(event, text) else { continue };
            if depth > 1 {
                if matches!(value, JsonValue::Other(Cell::List(_))) && !arrays {
                    continue;
                }
                self.deepen(event, first_of(&value), depth - 1, arrays);
            }
            event.arena().1.set(id, cell_of(&value, false), 0);
        }
    }
}

/// Takes the time of a document. Fails with what is no date.
fn take_date(event: &mut EventMut<'_>, fields: &mut FieldList) -> Result<(), String> {
    let mut cell = ndjson::remove(event, fields, b"@timestamp");
    // A list of one is its element, as in an index.
    if let Some(Cell::List(first)) = cell
        && !first.is_none()
    {
        let (_, arena) = event.arena();
        if arena.next(first).is_none() {
            cell = Some(arena.cell(first));
        }
    }
    let text = match cell {
        None | Some(Cell::Null) => return Ok(()),
        Some(Cell::Str(text) | Cell::Number(text)) => event.text(text).to_vec(),
        Some(Cell::Int(number)) => number.to_string().into_bytes(),
        Some(Cell::UInt(number)) => number.to_string().into_bytes(),
        Some(_) => return Err("no text and no number".to_owned()),
    };
    let Some(time) = optional_time_or_millis(&text) else {
        return Err(String::from_utf8_lossy(&text).into_owned());
    };
    event.set_time(time);
    Ok(())
}

fn first_of(value: &JsonValue) -> NodeId {
    match value {
        JsonValue::Object(fields) => fields.first,
        JsonValue::Other(Cell::List(first)) => *first,
        JsonValue::Other(_) => NodeId::NONE,
    }
}

fn cell_of(value: &JsonValue, opaque: bool) -> Cell {
    match value {
        JsonValue::Object(fields) => Cell::Map { first: fields.first, opaque },
        JsonValue::Other(cell) => *cell,
    }
}

/// Whether a text begins and ends as an object or a list does.
fn is_structured(text: &[u8]) -> bool {
    matches!(text.trim_ascii(), [b'{', .., b'}'] | [b'[', .., b']'])
}

#[cfg(test)]
mod tests;
