//! `decode_cef`: messages in the Common Event Format become fields, and those of ECS.
//!
//! A message that is wrong somewhere is no failure: what can be read of it is on the event, and
//! `error.message` has the errors. Only a text without `CEF:` and a version is a failure. Fields
//! of ECS that have no place on the event are left out.

mod ecs;

use super::object::Object;
use crate::kinds::Context;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{ERROR_MESSAGE, add_error};
use crate::plan::{Outcome, Processor};
use ecs::How;
use jiff::tz::TimeZone;
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{Cell, EventMut, Path, Text};
use skidder_os::Clock;
use skidder_parse::cef::{self, Kind, Message, Number, ValueError};
use std::sync::Arc;

settings! {
    /// Settings of `decode_cef`.
    pub(crate) static DECODE_CEF = Group::new("processor.decode_cef", "Decodes a message in the Common Event Format (CEF) of ArcSight.");

    FIELD: String = Key::new("field")
        .default(DecodeCef::FIELD)
        .about("the field with the message");
    TARGET_FIELD: String = Key::new("target_field")
        .default(DecodeCef::TARGET_FIELD)
        .about("the field that gets all of the message, in place of what it was; \"\" is the event \
                itself");
    ECS: bool = Key::new("ecs")
        .default(true)
        .about("fields of ECS are set too");
    TIMEZONE: String = Key::new("timezone")
        .default("UTC")
        .about("the zone of times that have none: `Local`, a name as `Europe/Berlin`, an offset as \
                `+0200`");
    IGNORE_EMPTY_VALUES: bool = Key::new("ignore_empty_values")
        .default(false)
        .about("extensions without a value are left out, instead of an error where a number or an \
                address is expected");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a message that is not there is not a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("a text that is no CEF message leaves the event as it came, without a note");
    ID: String = Key::new("id")
        .default("")
        .default_words("none")
        .about("a name for this processor, used in messages about it");
}

/// Decodes messages in the Common Event Format.
#[derive(Clone)]
pub struct DecodeCef {
    field: Path,
    /// Nothing is the event itself.
    target: Option<Path>,
    ecs: Option<Ecs>,
    timezone: TimeZone,
    clock: Arc<dyn Clock>,
    ignore_empty_values: bool,
    ignore_missing: bool,
    ignore_failure: bool,
    id: String,
}

/// The fields of ECS that are written.
#[derive(Clone, Debug)]
struct Ecs {
    header: Vec<Path>,
    /// By the full name of the extension, in the order of these.
    extensions: Vec<(&'static str, Path, How)>,
}

impl std::fmt::Debug for DecodeCef {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.describe())
    }
}

/// The value of one extension.
struct Value {
    /// As it is written, without escapes.
    text: Text,
    /// The value, in the type of its key.
    cell: Cell,
}

impl DecodeCef {
    /// Default source field.
    pub const FIELD: &'static str = "message";
    /// Default target of the fields.
    pub const TARGET_FIELD: &'static str = "cef";

    /// All settings of the processor.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let path = |text: String| Path::parse(&text).map_err(|error| error.to_string());
        let target = settings.get(&TARGET_FIELD).try_map(|text| match text.as_str() {
            "" => Ok(None),
            _ => path(text).map(Some),
        });
        let zone = |text: String| {
            skidder_parse::syslog::timezone(&text).map_err(|error| error.to_string())
        };
        Some(Self {
            field: settings.get(&FIELD).try_map(path).value(),
            target: target.value(),
            ecs: settings.get(&ECS).value().then(Ecs::new),
            timezone: settings.get(&TIMEZONE).try_map(zone).value(),
            clock: Arc::clone(&context.clock),
            ignore_empty_values: settings.get(&IGNORE_EMPTY_VALUES).value(),
            ignore_missing: settings.get(&IGNORE_MISSING).value(),
            ignore_failure: settings.get(&IGNORE_FAILURE).value(),
            id: settings.get(&ID).value(),
        })
    }

    fn failure(&self, why: impl Into<String>) -> Failure {
        Failure::unnoted(why).ignored(self.ignore_failure)
    }

    fn decode(&self, event: &mut EventMut<'_>, text: Text) -> Result<(), Failure> {
        let Some(start) = Message::find(event.text(text)) else {
            let field = &self.field;
            return Err(
                self.failure(format!("decode_cef field [{field}] does not contain a CEF header"))
            );
        };
        let text = Text { start: text.start + start as u32, len: text.len - start as u32 };
        let message = Message::parse(event.text(text));
        let Some(version) = message.version else {
            let errors: Vec<_> = message.errors.iter().map(ToString::to_string).collect();
            let errors = errors.join("; ");
            return Err(self.failure(format!("decode_cef failed to parse message: {errors}")));
        };
        let mut errors: Vec<String> = message.errors.iter().map(ToString::to_string).collect();
        let header = message.header.each_ref().map(|part| plain(event, text, part));
        let extensions = self.extensions(event, text, &message, &mut errors);
        self.write(event, version, &header, &extensions)?;
        if let Some(ecs) = &self.ecs {
            ecs.write_header(event, &header);
            for (name, value) in &extensions {
                if let Err(error) = ecs.write(event, *name, value) {
                    errors.push(error);
                }
            }
        }
        for error in errors {
            add_error(event, &error, false);
        }
        Ok(())
    }

    /// The extensions by their full names, with values of their types.
    fn extensions(
        &self,
        event: &mut EventMut<'_>,
        text: Text,
        message: &Message,
        errors: &mut Vec<String>,
    ) -> Vec<(Text, Value)> {
        let mut read = Vec::with_capacity(message.extensions.len());
        for extension in &message.extensions {
            let value = plain(event, text, &extension.value);
            if value.len == 0 && self.ignore_empty_values {
                continue;
            }
            let key = span(text, &extension.key);
            let (name, cell) = match cef::known(event.text(key)) {
                None => (key, Ok(Cell::Str(value))),
                Some(known) => {
                    let name = event.store_text(known.name.as_bytes());
                    (name, self.convert(event, value, known.kind))
                }
            };
            match cell {
                Ok(cell) => read.push((name, Value { text: value, cell })),
                Err(error) => {
                    let key = String::from_utf8_lossy(event.text(key)).into_owned();
                    errors.push(format!("error in field '{key}': {error}"));
                }
            }
        }
        read
    }

    fn convert(
        &self,
        event: &mut EventMut<'_>,
        value: Text,
        kind: Kind,
    ) -> Result<Cell, ValueError> {
        if kind == Kind::Text {
            return Ok(Cell::Str(value));
        }
        let text = String::from_utf8_lossy(event.text(value));
        Ok(match kind {
            Kind::Text => Cell::Str(value),
            Kind::Integer => Cell::Int(cef::integer(&text, 32)?),
            Kind::Long => Cell::Int(cef::integer(&text, 64)?),
            Kind::Float => Cell::Float(cef::float(&text, Number::Single)?),
            Kind::Double => Cell::Float(cef::float(&text, Number::Double)?),
            Kind::Address => {
                cef::address(&text)?;
                Cell::Str(value)
            }
            Kind::MacAddress => {
                let mut address = Vec::new();
                cef::mac_address(&text, &mut address)?;
                Cell::Str(event.store_text(&address))
            }
            Kind::Time => Cell::Time(cef::timestamp(&text, &self.timezone, self.clock.wall().0)?),
        })
    }

    /// Puts the fields of the format into the target field.
    fn write(
        &self,
        event: &mut EventMut<'_>,
        version: i64,
        header: &[Text; 6],
        extensions: &[(Text, Value)],
    ) -> Result<(), Failure> {
        let mut object = Object::EMPTY;
        let version = event.store_text(itoa::Buffer::new().format(version).as_bytes());
        object.push(event, "version", Cell::Str(version));
        for (name, part) in cef::HEADER.iter().zip(header) {
            if part.len > 0 {
                let key = event.store_text(name.as_bytes());
                object.set_path(event, key, Cell::Str(*part));
            }
        }
        let mut fields = Object::EMPTY;
        for (name, value) in extensions {
            fields.set_path(event, *name, value.cell);
        }
        if !fields.is_empty() {
            object.push(event, "extensions", fields.cell());
        }
        let Some(target) = &self.target else {
            event.merge_list_over(object.list(), true);
            return Ok(());
        };
        event.put_cell(target, object.cell()).map_err(|error| {
            self.failure(format!("decode_cef failed to write the fields: {error}"))
        })
    }
}

impl Ecs {
    fn new() -> Self {
        let extensions = ecs::EXTENSIONS.iter();
        Self {
            header: ecs::HEADER.iter().map(|name| constant(name)).collect(),
            extensions: extensions.map(|(name, to, how)| (*name, constant(to), *how)).collect(),
        }
    }

    fn write_header(&self, event: &mut EventMut<'_>, header: &[Text; 6]) {
        for (at, (path, part)) in self.header.iter().zip(header).enumerate() {
            if part.len == 0 {
                continue;
            }
            let is_severity = at + 1 == self.header.len();
            let cell = match ecs::severity(event.text(*part)).filter(|_| is_severity) {
                Some(number) => Cell::Int(number),
                None if is_severity => continue,
                None => Cell::Str(*part),
            };
            put_if_possible(event, path, cell);
        }
    }

    /// Writes the field of an extension, if it has one.
    fn write(&self, event: &mut EventMut<'_>, name: Text, value: &Value) -> Result<(), String> {
        let full = event.text(name);
        let found = self.extensions.binary_search_by(|(known, ..)| known.as_bytes().cmp(full));
        let Ok(found) = found else { return Ok(()) };
        let (name, path, how) = &self.extensions[found];
        let text = event.text(value.text);
        let cell = match how {
            How::Same => value.cell,
            How::List => event.store_list(&[Cell::Str(value.text)]),
            How::MacAddress => {
                let capital = |byte: &u8| match byte {
                    b':' => b'-',
                    byte => byte.to_ascii_uppercase(),
                };
                let address: Vec<u8> = text.iter().map(capital).collect();
                Cell::Str(event.store_text(&address))
            }
            How::Direction => match text {
                b"0" => Cell::Str(event.store_text(b"inbound")),
                b"1" => Cell::Str(event.store_text(b"outbound")),
                _ => return Err(format!("{name}: deviceDirection must be 0 or 1")),
            },
            How::Url if !text.starts_with(b"http") => return Ok(()),
            How::Url => value.cell,
            How::Lowercase => {
                let small = String::from_utf8_lossy(text).to_lowercase();
                Cell::Str(event.store_text(small.as_bytes()))
            }
        };
        put_if_possible(event, path, cell);
        Ok(())
    }
}

fn put_if_possible(event: &mut EventMut<'_>, path: &Path, cell: Cell) {
    let mark = event.mark();
    if event.put_cell(path, cell).is_err() {
        event.rollback(mark);
    }
}

/// A part of the text as a span of the batch.
fn span(text: Text, part: &std::ops::Range<usize>) -> Text {
    Text { start: text.start + part.start as u32, len: part.len() as u32 }
}

/// A value without its escapes as a span of the batch: its own place, if it has none.
fn plain(event: &mut EventMut<'_>, text: Text, value: &cef::Text) -> Text {
    if !value.escaped {
        return span(text, &value.range);
    }
    let mut scratch = Vec::new();
    value.unescape(event.text(text), &mut scratch);
    event.store_text(&scratch)
}

fn constant(name: &str) -> Path {
    Path::parse(name).expect("a constant that is a path")
}

impl Processor for DecodeCef {
    fn name(&self) -> &'static str {
        "decode_cef"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let field = &self.field;
        match event.copy(field) {
            Some(Cell::Str(text)) => {
                self.decode(event, text)?;
                Ok(Outcome::Done)
            }
            Some(_) => Err(self.failure(format!("decode_cef field [{field}] is not a string"))),
            None if self.ignore_missing => Ok(Outcome::Done),
            None => Err(Failure::unnoted(format!(
                "decode_cef field [{field}] not found: key not found"
            ))),
        }
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let Some(target) = &self.target else { return Footprint::everything() };
        let mut writes = vec![target.clone(), ERROR_MESSAGE.clone()];
        if let Some(ecs) = &self.ecs {
            let extensions = ecs.extensions.iter().map(|(_, path, _)| path);
            writes.extend(ecs.header.iter().chain(extensions).cloned());
        }
        Footprint { reads: vec![self.field.clone()], writes, open: true, everything: false }
    }

    fn describe(&self) -> String {
        let id = if self.id.is_empty() { String::new() } else { format!(" {}", self.id) };
        let target = self.target.as_ref().map_or("the event", Path::as_str);
        format!("decode_cef{id} of {} to {target}", self.field)
    }
}
