//! `add_formatted_index`, and the `index` of an input: `@metadata.raw_index` from a format string.
//!
//! An input whose `index` holds a date has it before its own processors, and depends on nothing but
//! the date of the event there.

use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{Cell, EventMut, Format, Path, Value};

settings! {
    /// Settings of `add_formatted_index`.
    pub(crate) static ADD_FORMATTED_INDEX = Group::new("processor.add_formatted_index", "Sends events to the index of a format string, which goes to \
                               `@metadata.raw_index`.");

    INDEX: String = Key::new("index")
        .required()
        .about("the format string; `%{[field]}` is a field of the event, `%{+yyyy.MM.dd}` its date");
}

/// Sets the index that an event goes to.
#[derive(Clone, Debug)]
pub struct RawIndex {
    name: &'static str,
    format: Format,
    target: Path,
    time: Path,
}

impl RawIndex {
    /// `format` depends on nothing but the date of the event; others are refused.
    pub fn new(format: Format) -> Option<Self> {
        format.is_dated_only().then(|| Self::named("index", format))
    }

    fn named(name: &'static str, format: Format) -> Self {
        let path = |name| Path::parse(name).expect("a constant path");
        let (target, time) = (path("@metadata.raw_index"), path("@timestamp"));
        Self { name, format, target, time }
    }

    /// `index`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let index = settings.get(&INDEX);
        if !index.is_set() {
            let message = format!("`{}` is missing", settings.path_of(INDEX.name()));
            settings.problem(
                INDEX.name(),
                message,
                "give the name of an index, as in `logs-%{+yyyy.MM.dd}`",
            );
            return None;
        }
        let parse = |text: String| Format::parse(&text).map_err(|error| error.to_string());
        let format = index.try_map(parse).optional()?;
        Some(Self::named("add_formatted_index", format))
    }
}

impl Processor for RawIndex {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let index = event
            .store_with(|event, index| self.format.write(index, event))
            .map_err(|error| Failure::new(format!("Failed to set the index: {error}")))?;
        event
            .put_cell(&self.target, Cell::Str(index))
            .map_err(|_| Failure::new(format!("Failed to set {}", self.target)))?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let mut reads: Vec<Path> = self.format.fields().cloned().collect();
        if self.format.has_date() {
            reads.push(self.time.clone());
        }
        Footprint { reads, writes: vec![self.target.clone()], ..Footprint::default() }
    }

    /// Without a date, when all of its fields are texts that all events share.
    fn fold(&self, constants: &mut Constants) -> bool {
        let mut format = self.format.clone();
        format.bind(|name| {
            match Path::parse(name).ok().as_ref().and_then(|path| constants.get(path)) {
                Some(Value::Str(text)) => Some(text.to_string()),
                _ => None,
            }
        });
        let index = format.constant().map(Value::from);
        index.is_some_and(|index| constants.set(&self.target, index))
    }

    fn is_repeatable(&self) -> bool {
        // With fields it may fail on an event, and the layer must not show through then.
        self.format.is_dated_only()
    }
}
