//! `decode_json_fields`: texts that are JSON become their values.
//!
//! The work is done by [`skidder_parse::json_fields`]. A field that cannot be decoded stays as it
//! is, and the others are decoded all the same; if none could be, the processor failed. A field
//! that is missing or no text is left alone.

use crate::plan::{Constants, Failure, Footprint, Outcome, Processor};
use crate::text::text_of;
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventMut, Path, Text};
use skidder_parse::json_fields::{JsonFields, Settings};
use std::cell::RefCell;
use std::sync::LazyLock;

settings! {
    /// Settings of `decode_json_fields`.
    pub(crate) static DECODE_JSON_FIELDS = Group::new("processor.decode_json_fields", "Texts that are JSON become what they say.");

    FIELDS: Vec<String> = Key::new("fields")
        .required()
        .about("the fields with the texts; one that is not there or no text is left alone");
    TARGET: String = Key::new("target")
        .default_words("the field itself")
        .about("the field that takes the value; `\"\"` is the root of the event, where the rules \
                are those of the parser `ndjson`");
    MAX_DEPTH: u32 = Key::new("max_depth")
        .default(1)
        .at_least(1)
        .about("how deep texts in the JSON that are objects or lists again are decoded too");
    PROCESS_ARRAY: bool = Key::new("process_array")
        .default(false)
        .about("lists are decoded where `max_depth` is more than 1; otherwise a text that is one is \
                a failure, and one inside stays text");
    OVERWRITE_KEYS: bool = Key::new("overwrite_keys")
        .default(false)
        .about("at the root, fields of the JSON win over those that the event has; only then are \
                `@timestamp` and `@metadata` taken");
    EXPAND_KEYS: bool = Key::new("expand_keys")
        .default(false)
        .about("keys with dots become objects");
    ADD_ERROR_KEY: bool = Key::new("add_error_key")
        .default(false)
        .about("a failure is reported in `error.message`, with `error.type`, `error.field` and the \
                text in `error.data`");
    DOCUMENT_ID: String = Key::new("document_id")
        .default_words("none")
        .about("the key whose text becomes `@metadata._id`, and is taken out");
}

/// `error` and the fields in it.
static ERROR: LazyLock<[Path; 5]> = LazyLock::new(|| {
    ["error", "error.message", "error.type", "error.data", "error.field"]
        .map(|name| Path::parse(name).expect("a constant that is a path"))
});

static ID: LazyLock<Path> =
    LazyLock::new(|| Path::parse("@metadata._id").expect("a constant that is a path"));

thread_local! {
    /// One for all processors of a thread: keys are learned once, and nothing is shared between threads.
    static DECODER: RefCell<JsonFields> = RefCell::default();
}

/// Decodes fields.
#[derive(Clone, Debug)]
pub struct DecodeJsonFields {
    fields: Vec<Path>,
    target: Target,
    settings: Settings,
    add_error_key: bool,
}

/// Where a value goes.
#[derive(Clone, Debug)]
enum Target {
    /// Where its text was.
    Same,
    Root,
    Field(Path),
}

impl DecodeJsonFields {
    /// `fields`, `process_array`, `max_depth`, `target`, `overwrite_keys`, `expand_keys`,
    /// `add_error_key`, `document_id`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let parse = |text: &String| Path::parse(text).map_err(|error| error.to_string());
        let paths = |names: Vec<String>| names.iter().map(parse).collect::<Result<Vec<_>, _>>();
        let fields = settings.get(&FIELDS).try_map(paths).required();
        let place = |text: String| match text.as_str() {
            "" => Ok(Target::Root),
            _ => parse(&text).map(Target::Field),
        };
        let target = settings.get(&TARGET).try_map(place).optional().unwrap_or(Target::Same);
        let document_id = settings.get(&DOCUMENT_ID).optional().filter(|key| !key.is_empty());
        let add_error_key = settings.get(&ADD_ERROR_KEY).value();
        let decode = Settings {
            max_depth: settings.get(&MAX_DEPTH).value(),
            process_array: settings.get(&PROCESS_ARRAY).value(),
            overwrite_keys: settings.get(&OVERWRITE_KEYS).value(),
            expand_keys: settings.get(&EXPAND_KEYS).value(),
            document_id: document_id.map(String::into_boxed_str),
        };
        if fields.is_empty() {
            return None;
        }
        Some(Self { fields, target, settings: decode, add_error_key })
    }

    /// Decodes one text. The failure has everything that it leaves on the event.
    fn decode(&self, event: &mut EventMut<'_>, field: &Path, text: Text) -> Result<(), Failure> {
        let target = match &self.target {
            Target::Same => Some(field),
            Target::Root => None,
            Target::Field(path) => Some(path),
        };
        let done =
            DECODER.with_borrow_mut(|decoder| decoder.decode(event, text, &self.settings, target));
        let [_, message, kind, data, name] = &*ERROR;
        match done {
            Ok(None) => Ok(()),
            Ok(Some(left_out)) => {
                if self.add_error_key {
                    let put = event.put_text(message, left_out.to_string().as_bytes());
                    // Where `error` is not an object there is no place for the message.
                    if put.is_ok() && event.put_text(kind, b"json").is_err() {
                        event.delete(kind);
                    }
                }
                Ok(())
            }
            Err(error) => {
                let failure = Failure::unnoted(error.to_string());
                if !self.add_error_key {
                    return Err(failure);
                }
                let text = String::from_utf8_lossy(event.text(text)).into_owned();
                Err(failure
                    .put(message.clone(), format!("parsing input as JSON: {error}"))
                    .put(kind.clone(), "json")
                    .put(data.clone(), text)
                    .put(name.clone(), field.as_str()))
            }
        }
    }
}

impl Processor for DecodeJsonFields {
    fn name(&self) -> &'static str {
        "decode_json_fields"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let mut decoded = false;
        let mut failed = None;
        for field in &self.fields {
            let Ok(text) = text_of(event, field) else { continue };
            let mark = event.mark();
            match self.decode(event, field, text) {
                Ok(()) => decoded = true,
                Err(failure) => {
                    event.rollback(mark);
                    failed = Some(failure);
                }
            }
        }
        match failed {
            None => Ok(Outcome::Done),
            Some(failure) if decoded => {
                // What could be decoded stays; only the note of the last failure is left beside it.
                failure.note(event);
                Ok(Outcome::Incomplete)
            }
            Some(failure) => Err(failure),
        }
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let mut writes = match &self.target {
            Target::Root => return Footprint::everything(),
            Target::Same => self.fields.clone(),
            Target::Field(path) => vec![path.clone()],
        };
        writes.extend([ERROR[0].clone(), ID.clone()]);
        Footprint { reads: self.fields.clone(), writes, open: true, ..Footprint::default() }
    }

    fn describe(&self) -> String {
        let fields: Vec<_> = self.fields.iter().map(Path::as_str).collect();
        let target = match &self.target {
            Target::Same => String::new(),
            Target::Root => " to the root".to_owned(),
            Target::Field(path) => format!(" to {path}"),
        };
        format!("decode_json_fields {}{target}", fields.join(", "))
    }
}
