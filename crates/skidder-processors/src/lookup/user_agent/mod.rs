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
use skidder_event::{Cell, EventMut, Path};
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
    name: Option<Box<str>>,
    version: Option<Box<str>>,
    system_name: Option<Box<str>>,
    system_version: Option<Box<str>>,
    system_full: Option<Box<str>>,
    device: Option<Box<str>>,
}

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
            found.name = Some(family.filter(|name| !name.is_empty()).unwrap_or(OTHER).into());
            found.version = program.and_then(|program| {
                joined([program.major, program.minor, program.patch, program.patch_minor])
            });
        }
        if let Some(system) = expressions.system.as_ref().and_then(|all| all.extract(text))
            && !system.os.is_empty()
        {
            let parts = [&system.major, &system.minor, &system.patch, &system.patch_minor];
            found.system_version = joined(parts.map(|part| part.as_deref()));
            found.system_full =
                found.system_version.as_ref().map(|it| format!("{} {it}", system.os).into());
            found.system_name = Some((*system.os).into());
        }
        if let Some(extractor) = &expressions.device {
            let device = extractor.extract(text);
            let name = device.as_ref().map(|device| &*device.device);
            found.device = Some(name.filter(|name| !name.is_empty()).unwrap_or(OTHER).into());
        }
        found
    }

    fn get(&self, fact: Fact) -> Option<&str> {
        match fact {
            Fact::Name => self.name.as_deref(),
            Fact::Version => self.version.as_deref(),
            Fact::Original => None,
            Fact::SystemName => self.system_name.as_deref(),
            Fact::SystemVersion => self.system_version.as_deref(),
            Fact::SystemFull => self.system_full.as_deref(),
            Fact::Device => self.device.as_deref(),
        }
    }
}

impl HeapSize for Found {
    fn bytes(&self) -> usize {
        let texts = Fact::ALL.iter().filter_map(|fact| self.get(*fact));
        size_of::<Self>() + texts.map(str::len).sum::<usize>()
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
        // A letter that is cut, and bytes that are no text, become the sign for them.
        let short = String::from_utf8_lossy(&text[..text.len().min(TEXT_BYTES_MAX)]);
        self.recent.get(&short, || Found::in_text(&self.expressions, &short))
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
        for (path, fact) in &self.fields {
            let put = match (fact, found.get(*fact)) {
                (Fact::Original, _) => event.put_cell(path, Cell::Str(text)),
                (_, Some(value)) => event.put_text(path, value.as_bytes()),
                (_, None) => continue,
            };
            put.map_err(|error| self.failure(format_args!("{error}")))?;
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
