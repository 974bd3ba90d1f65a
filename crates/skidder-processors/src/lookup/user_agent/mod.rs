//! `user_agent`: the program, the system and the device that a user agent of HTTP names.
//!
//! The expressions come from a file (`expressions.rs`). A text costs some microseconds, hence the results of
//! the last ones are remembered (`recent.rs`). What is looked at of a text is bounded, and an expression
//! takes time linear in that.

mod expressions;
pub(super) mod read;
mod recent;
#[cfg(test)]
mod tests;

use crate::plan::{
    Constants, Failure, Footprint, LOG_FLAGS, Outcome, Processor, message_if, rehearse,
};
use crate::text::{NoText, text_of};
use expressions::Expressions;
use recent::{HeapSize, Recent};
use skidder_event::{Cell, EventMut, Path, Text};
use smallvec::SmallVec;
use std::sync::Arc;

/// Bytes of a text that are looked at. What browsers and their libraries write is shorter.
const TEXT_BYTES_MAX: usize = 1024;

/// The name of a program and a device that no expression finds.
const OTHER: &str = "Other";

/// A fact that a text has or that is found in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fact {
    Name,
    Version,
    Original,
    SystemName,
    SystemVersion,
    SystemFull,
    Device,
}

/// The parts of a text that are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Parts {
    program: bool,
    system: bool,
    device: bool,
}

/// What was found in a text.
#[derive(Debug, Default)]
struct Found {
    /// All values, one behind the other: an event stores them at once.
    text: String,
    /// Where the value of each fact of [`Fact::ALL`] is in it.
    places: [Option<Place>; Fact::ALL.len()],
}

/// A part of a text: its start and its length.
type Place = (u32, u32);

/// Adds what a user agent says.
#[derive(Debug)]
pub(crate) struct UserAgent {
    field: Path,
    target: Path,
    fields: Box<[(Path, Fact)]>,
    expressions: Arc<Expressions>,
    recent: Recent<Found>,
    ignore_missing: bool,
    ignore_failure: bool,
    tags: Box<[String]>,
    tags_path: Path,
}

impl Fact {
    const ALL: [Self; 7] = [
        Self::Name,
        Self::Version,
        Self::Original,
        Self::SystemName,
        Self::SystemVersion,
        Self::SystemFull,
        Self::Device,
    ];

    /// Its field below the target.
    fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Version => "version",
            Self::Original => "original",
            Self::SystemName => "os.name",
            Self::SystemVersion => "os.version",
            Self::SystemFull => "os.full",
            Self::Device => "device.name",
        }
    }
}

impl Parts {
    fn of(facts: &[Fact]) -> Self {
        let has = |some: &[Fact]| facts.iter().any(|fact| some.contains(fact));
        Self {
            program: has(&[Fact::Name, Fact::Version]),
            system: has(&[Fact::SystemName, Fact::SystemVersion, Fact::SystemFull]),
            device: has(&[Fact::Device]),
        }
    }

    /// A name for each combination.
    fn name(self) -> &'static str {
        match (self.program, self.system, self.device) {
            (true, true, true) => "user_agent",
            (true, true, false) => "user_agent, program and system",
            (true, false, true) => "user_agent, program and device",
            (true, false, false) => "user_agent, program",
            (false, true, true) => "user_agent, system and device",
            (false, true, false) => "user_agent, system",
            (false, false, true) => "user_agent, device",
            (false, false, false) => "user_agent, nothing",
        }
    }
}

impl Found {
    fn in_text(expressions: &Expressions, text: &str) -> Self {
        let mut found = Self::default();
        if let Some(extractor) = &expressions.program {
            let program = extractor.extract(text);
            let family = program.as_ref().map(|program| &*program.family);
            found.add(Fact::Name, family.filter(|name| !name.is_empty()).unwrap_or(OTHER));
            let version = program.and_then(|program| {
                joined([program.major, program.minor, program.patch, program.patch_minor])
            });
            if let Some(version) = version {
                found.add(Fact::Version, &version);
            }
        }
        if let Some(system) = expressions.system.as_ref().and_then(|all| all.extract(text))
            && !system.os.is_empty()
        {
            let parts = [&system.major, &system.minor, &system.patch, &system.patch_minor];
            let version = joined(parts.map(|part| part.as_deref()));
            found.add_system(&system.os, version.as_deref());
        }
        if let Some(extractor) = &expressions.device {
            let device = extractor.extract(text);
            let name = device.as_ref().map(|device| &*device.device);
            found.add(Fact::Device, name.filter(|name| !name.is_empty()).unwrap_or(OTHER));
        }
        found
    }

    /// Adds the value of a fact, and returns where it is.
    fn add(&mut self, fact: Fact, value: &str) -> Place {
        let place = (self.text.len() as u32, value.len() as u32);
        self.text.push_str(value);
        self.places[fact as usize] = Some(place);
        place
    }

    /// Adds a system. Its name and its version are parts of the whole.
    fn add_system(&mut self, name: &str, version: Option<&str>) {
        let name_bytes = name.len() as u32;
        let Some(version) = version else {
            self.add(Fact::SystemName, name);
            return;
        };
        let (start, len) = self.add(Fact::SystemFull, &format!("{name} {version}"));
        let version_bytes = version.len() as u32;
        self.places[Fact::SystemName as usize] = Some((start, name_bytes));
        self.places[Fact::SystemVersion as usize] =
            Some((start + len - version_bytes, version_bytes));
    }

    fn place(&self, fact: Fact) -> Option<Place> {
        self.places[fact as usize]
    }

    #[cfg(test)]
    fn get(&self, fact: Fact) -> Option<&str> {
        let (start, len) = self.place(fact)?;
        self.text.get(start as usize..(start + len) as usize)
    }
}

impl HeapSize for Found {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len()
    }
}

/// The parts of a version up to the first that is missing, with dots between them.
fn joined(parts: [Option<&str>; 4]) -> Option<Box<str>> {
    let parts = parts.iter().map_while(|part| part.filter(|part| !part.is_empty()));
    let version = parts.collect::<SmallVec<[&str; 4]>>().join(".");
    (!version.is_empty()).then(|| version.into())
}

impl UserAgent {
    fn found(&self, text: &[u8]) -> Arc<Found> {
        let short = &text[..text.len().min(TEXT_BYTES_MAX)];
        // A letter that is cut, and bytes that are no text, become the sign for them.
        let find = || Found::in_text(&self.expressions, &String::from_utf8_lossy(short));
        self.recent.get(short, find)
    }

    fn add(&self, event: &mut EventMut<'_>) -> Result<(), Failure> {
        let text = match text_of(event, &self.field) {
            Ok(text) => text,
            Err(NoText::Missing) if self.ignore_missing => return Ok(()),
            Err(NoText::Missing) => {
                return Err(self.failure(format_args!("the field `{}` is missing", self.field)));
            }
            Err(NoText::OtherKind) => {
                return Err(self.failure(format_args!("the field `{}` is not a text", self.field)));
            }
        };
        let found = self.found(event.text(text));
        if self.field == self.target {
            event.delete(&self.field);
        }
        let stored = event.store_text(found.text.as_bytes());
        for (path, fact) in &self.fields {
            let value = match (fact, found.place(*fact)) {
                (Fact::Original, _) => text,
                (_, Some((start, len))) => Text { start: stored.start + start, len },
                (_, None) => continue,
            };
            event
                .put_cell(path, Cell::Str(value))
                .map_err(|error| self.failure(format_args!("{error}")))?;
        }
        Ok(())
    }

    /// All that it may set or remove.
    fn written(&self) -> impl Iterator<Item = &Path> {
        let replaced = (self.field == self.target).then_some(&self.target);
        self.fields.iter().map(|(path, _)| path).filter(move |_| replaced.is_none()).chain(replaced)
    }

    #[cold]
    fn failure(&self, why: std::fmt::Arguments<'_>) -> Failure {
        let reason = message_if(!self.ignore_failure, format_args!("user_agent: {why}"));
        let flagged = Failure::new(reason).flag("user_agent_error");
        let tagged = self
            .tags
            .iter()
            .fold(flagged, |failure, tag| failure.append(self.tags_path.clone(), tag));
        tagged.ignored(self.ignore_failure)
    }
}

impl Processor for UserAgent {
    fn name(&self) -> &'static str {
        "user_agent"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.add(event)?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let mut writes: Vec<Path> = self.written().cloned().collect();
        writes.push(LOG_FLAGS.clone());
        if !self.tags.is_empty() {
            writes.push(self.tags_path.clone());
        }
        Footprint { reads: vec![self.field.clone()], writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let writes: Vec<&Path> = self.written().collect();
        rehearse(self, constants, &writes)
    }

    fn describe(&self) -> String {
        format!("user_agent of {} to {}", self.field, self.target)
    }
}
