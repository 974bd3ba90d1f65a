//! `decode_xml`: XML becomes fields. Names of elements and attributes become keys, repeated
//! elements lists, the text of an element with anything else in it `#text`.

mod tree;
pub(super) mod winevent;

pub(crate) use winevent::DecodeXmlWineventlog;

use super::object::Object;
use crate::plan::Constants;
use crate::plan::ERROR_MESSAGE;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor, message_if};
use crate::text::{NoText, text_of};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{Cell, EventMut, NodeId, Path, Text};
use std::borrow::Cow;
use tree::Element;

settings! {
    /// What both processors have.
    static COMMON = Group::new("processor.xml", "What is decoded.");

    FIELD: String = Key::new("field")
        .default(Common::FIELD)
        .about("the field with the XML");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field is not a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("a text that is not XML, or none at all, leaves the event as it came, without a note");
}

settings! {
    /// Settings of `decode_xml`.
    pub(crate) static DECODE_XML = Group::new("processor.decode_xml", "Makes fields of XML: elements and attributes become keys, elements \
                               of one name a list, and the text of an element that has anything \
                               else in it `#text`.").include(&[&COMMON]);

    TARGET_FIELD: String = Key::new("target_field")
        .default_words("the field itself")
        .about("the field that gets what was decoded, in place of what it was; \"\" is the event \
                itself");
    OVERWRITE_KEYS: bool = Key::new("overwrite_keys")
        .default(true)
        .about("with `target_field: \"\"`, what the event has is replaced where both have it");
    TO_LOWER: bool = Key::new("to_lower")
        .default(true)
        .about("keys are in small letters");
    DOCUMENT_ID: String = Key::new("document_id")
        .default_words("none")
        .about("the key of a decoded text that becomes the id of the document (`@metadata._id`) and \
                is removed");
}

/// The key of the text of an element that has attributes or elements too.
const TEXT: &str = "#text";

/// Where decoded fields go.
#[derive(Clone, Debug)]
enum Target {
    /// In place of a field.
    Field(Path),
    /// Into the event; existing values are replaced if the flag is set.
    Root(bool),
}

impl Target {
    fn put(&self, event: &mut EventMut<'_>, object: &Object) -> Result<(), String> {
        match self {
            Self::Root(overwrite) => {
                event.merge_list_over(object.list(), *overwrite);
                Ok(())
            }
            Self::Field(path) => event
                .put_cell(path, object.cell())
                .map_err(|error| format!("failed to put value into field \"{path}\": {error}")),
        }
    }
}

/// The settings of both processors of XML.
#[derive(Clone, Debug)]
struct Common {
    name: &'static str,
    field: Path,
    target: Target,
    ignore_missing: bool,
    ignore_failure: bool,
}

impl Common {
    /// Default source field.
    const FIELD: &'static str = "message";

    /// `target` is the default target of the fields; without it they replace the text.
    fn read(
        settings: &Section<'_>,
        name: &'static str,
        target: &Key<String>,
        overwrite: bool,
    ) -> Self {
        let field = settings.get(&FIELD).try_map(|text| parse_path(&text));
        let field = field.value();
        let to = settings.get(target).try_map(|text| match text.as_str() {
            "" => Ok(Target::Root(overwrite)),
            text => parse_path(text).map(Target::Field),
        });
        let default = || target.default_value().map_or_else(|| field.clone(), constant);
        Self {
            name,
            target: to.optional().unwrap_or_else(|| Target::Field(default())),
            field,
            ignore_missing: settings.get(&IGNORE_MISSING).value(),
            ignore_failure: settings.get(&IGNORE_FAILURE).value(),
        }
    }

    /// Runs `decode` on the text of the field.
    fn run(
        &self,
        event: &mut EventMut<'_>,
        decode: impl FnOnce(&mut EventMut<'_>, Text) -> Result<(), String>,
    ) -> Result<Outcome, Failure> {
        let decoded = match text_of(event, &self.field) {
            Ok(text) => decode(event, text),
            Err(NoText::Missing) if self.ignore_missing => Ok(()),
            Err(NoText::Missing) => Err("key not found".to_owned()),
            Err(NoText::OtherKind) => Err("field value is not a string".to_owned()),
        };
        decoded.map(|()| Outcome::Done).map_err(|why| {
            let (name, field) = (self.name, &self.field);
            let why = format_args!("failed in {name} on the \"{field}\" field: {why}");
            Failure::new(message_if(!self.ignore_failure, why)).ignored(self.ignore_failure)
        })
    }

    fn footprint(&self, more: Vec<Path>) -> Footprint {
        let Target::Field(target) = &self.target else { return Footprint::everything() };
        let mut writes = more;
        writes.extend([target.clone(), ERROR_MESSAGE.clone()]);
        Footprint { reads: vec![self.field.clone()], writes, open: true, everything: false }
    }

    fn describe(&self) -> String {
        let target = match &self.target {
            Target::Field(path) => path.as_str(),
            Target::Root(_) => "the event",
        };
        format!("{} of {} to {target}", self.name, self.field)
    }
}

/// Makes fields of XML.
#[derive(Clone, Debug)]
pub(crate) struct DecodeXml {
    common: Common,
    to_lower: bool,
    document_id: Option<Path>,
    id: Path,
}

impl DecodeXml {
    /// All settings of the processor.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let document_id = settings.get(&DOCUMENT_ID).try_map(|text| parse_path(&text));
        Some(Self {
            common: Common::read(
                settings,
                "decode_xml",
                &TARGET_FIELD,
                settings.get(&OVERWRITE_KEYS).value(),
            ),
            to_lower: settings.get(&TO_LOWER).value(),
            document_id: document_id.optional(),
            id: constant("@metadata._id"),
        })
    }

    fn decode(&self, event: &mut EventMut<'_>, text: Text) -> Result<(), String> {
        // The batch grows while the tree is put into it.
        let xml = event.text(text).to_vec();
        let roots =
            tree::parse(&xml).map_err(|error| format!("error decoding XML field: {error}"))?;
        let object = self.object(event, &roots);
        let id = self.document_id.as_ref().and_then(|path| take_text(event, object, path));
        self.common.target.put(event, &object)?;
        if let Some(id) = id.filter(|id| id.len > 0) {
            event.put_cell(&self.id, Cell::Str(id)).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Elements as an object: those of one name are a list.
    fn object(&self, event: &mut EventMut<'_>, elements: &[Element<'_>]) -> Object {
        let mut object = Object::EMPTY;
        for (at, element) in elements.iter().enumerate() {
            let name = self.key(&element.name);
            if elements[..at].iter().any(|before| self.key(&before.name) == name) {
                continue;
            }
            let mut cells = vec![self.value(event, element)];
            for other in &elements[at + 1..] {
                if self.key(&other.name) == name {
                    cells.push(self.value(event, other));
                }
            }
            let cell = if cells.len() > 1 { event.store_list(&cells) } else { cells[0] };
            object.push(event, &name, cell);
        }
        object
    }

    fn value(&self, event: &mut EventMut<'_>, element: &Element<'_>) -> Cell {
        let text = element.text.trim();
        if element.children.is_empty() && element.attributes.is_empty() {
            return Cell::Str(event.store_text(text.as_bytes()));
        }
        let mut object = self.object(event, &element.children);
        for (name, value) in &element.attributes {
            let value = Cell::Str(event.store_text(value.as_bytes()));
            object.set(event, &self.key(name), value);
        }
        if !text.is_empty() {
            let text = Cell::Str(event.store_text(text.as_bytes()));
            object.set(event, TEXT, text);
        }
        object.cell()
    }

    fn key<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if self.to_lower { Cow::Owned(name.to_lowercase()) } else { Cow::Borrowed(name) }
    }
}

/// Takes the text at a path out of an object. `None` if there is none, or another value.
fn take_text(event: &mut EventMut<'_>, object: Object, path: &Path) -> Option<Text> {
    let (bytes, mut arena) = event.arena();
    let mut first = object.cell();
    let mut found = NodeId::NONE;
    for segment in path.as_str().split('.') {
        let Cell::Map { first: mut next, .. } = first else { return None };
        loop {
            if next.is_none() {
                return None;
            }
            let key = arena.key(next);
            if &bytes[key.start as usize..(key.start + key.len) as usize] == segment.as_bytes() {
                break;
            }
            next = arena.next(next);
        }
        found = next;
        first = arena.cell(found);
    }
    let Cell::Str(text) = first else { return None };
    arena.set(found, Cell::Gone, 0);
    Some(text)
}

fn parse_path(text: &str) -> Result<Path, String> {
    Path::parse(text).map_err(|error| error.to_string())
}

fn constant(name: &str) -> Path {
    Path::parse(name).expect("a constant that is a path")
}

impl Processor for DecodeXml {
    fn name(&self) -> &'static str {
        "decode_xml"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.common.run(event, |event, text| self.decode(event, text))
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        self.common.footprint(vec![self.id.clone()])
    }

    fn describe(&self) -> String {
        self.common.describe()
    }
}
