//! `rename` and `copy_fields`: fields go to other names, or stay and are there twice, objects with
//! everything inside. A target that is there already is an error.
//!
//! `fail_on_error` (default true): at the first pair that fails the event is taken back to what it
//! was and gets the error in `error.message`. Otherwise the pair that fails changes nothing and the
//! others go on. (Filebeat loses the value of a renamed pair whose source is gone when its target refuses;
//! here it stays.)

use super::pairs::{PAIR, fold_each, read_pairs, run_each};
use crate::plan::Constants;
use crate::plan::ERROR_MESSAGE;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor, message_if};
use skidder_config::{Group, Key, Parts, Section, settings};
use skidder_event::{EditError, EventMut, Path};
use std::any::Any;
use std::sync::Arc;

settings! {
    /// What `rename` and `copy_fields` have.
    static PAIRS = Group::new("processor.pairs", "From where to where.");

    FIELDS: Parts = Key::parts("fields", &PAIR)
        .required()
        .about("a list of `from` and `to`, worked through in its order");
    FAIL_ON_ERROR: bool = Key::new("fail_on_error")
        .default(true)
        .about("the first pair that fails undoes all of them; otherwise the pair alone is left out");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing `from` is not a failure");
}

/// Settings of `rename`.
pub(crate) static RENAME: Group =
    Group::new("processor.rename", "Moves fields to other names.").include(&[&PAIRS]);

/// Settings of `copy_fields`.
pub(crate) static COPY_FIELDS: Group = Group::new(
    "processor.copy_fields",
    "Copies fields to other names, objects with everything inside.",
)
.include(&[&PAIRS]);

/// What becomes of the source of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It goes.
    Rename,
    /// It stays.
    Copy,
}

/// Moves or copies fields, one pair after the other.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// The work on each pair.
    pub verb: Verb,
    /// From where to where.
    pub list: Vec<(Path, Path)>,
    /// The first pair that fails undoes all; default true.
    pub fail_on_error: bool,
    /// A source that is missing is no failure; default false.
    pub ignore_missing: bool,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Rename => "rename",
            Self::Copy => "copy_fields",
        }
    }

    /// What the message of a failure begins with.
    fn failed(self) -> &'static str {
        match self {
            Self::Rename => "Failed to rename fields in processor",
            Self::Copy => "failed to copy fields in copy_fields processor",
        }
    }

    /// Why a value cannot be put at `to`.
    fn refused(self, to: &Path, error: &EditError) -> String {
        let start = match self {
            Self::Rename => format!("could not put value: {to}"),
            Self::Copy => format!("could not copy value to {to}"),
        };
        match error {
            EditError::NotAnObject(_) => {
                format!("{start}: a part of it has a value that is no object")
            }
            EditError::NotATime => format!("{start}: value is not a timestamp"),
        }
    }
}

impl Pairs {
    /// `fields` (a list of `from` and `to`), `fail_on_error`, `ignore_missing`.
    pub(crate) fn read(settings: &Section<'_>, verb: Verb) -> Option<Self> {
        let list = read_pairs(settings, &FIELDS);
        let fail_on_error = settings.get(&FAIL_ON_ERROR).value();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        Some(Self { verb, list: list?, fail_on_error, ignore_missing })
    }

    fn run_pair(&self, event: &mut EventMut<'_>, from: &Path, to: &Path) -> Result<(), String> {
        if event.as_ref().has(to) {
            let why =
                format_args!("target field {to} already exists, drop or rename this field first");
            return Err(message_if(self.fail_on_error, why));
        }
        let value = match self.verb {
            Verb::Rename if from.is_timestamp() => {
                let why = format_args!("could not delete key: {from},  key not found");
                return Err(message_if(self.fail_on_error, why));
            }
            Verb::Rename => event.take(from),
            Verb::Copy => event.duplicate(from),
        };
        let Some(value) = value else {
            if self.ignore_missing {
                return Ok(());
            }
            let why = format_args!("could not fetch value for key: {from}, Error: key not found");
            return Err(message_if(self.fail_on_error, why));
        };
        event.put_cell(to, value).map_err(|error| {
            if self.fail_on_error { self.verb.refused(to, &error) } else { String::new() }
        })
    }

    fn fold_pair(&self, constants: &mut Constants, from: &Path, to: &Path) -> bool {
        if constants.get(to).is_some() {
            return false;
        }
        let Some(value) = constants.get(from).cloned() else { return self.ignore_missing };
        if self.verb == Verb::Rename {
            constants.remove(from);
        }
        constants.set(to, value)
    }
}

impl Processor for Pairs {
    fn name(&self) -> &'static str {
        self.verb.name()
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        run_each(event, &self.list, self.fail_on_error, |event, (from, to)| {
            self.run_pair(event, from, to)
        })
        .map_err(|error| Failure::new(format!("{}: {error}", self.verb.failed())))?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let (mut reads, mut writes): (Vec<Path>, Vec<Path>) = self.list.iter().cloned().unzip();
        if self.verb == Verb::Rename {
            writes.append(&mut reads);
            writes.push(ERROR_MESSAGE.clone());
        }
        Footprint { reads, writes, open: true, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        fold_each(constants, &self.list, self.fail_on_error, |constants, (from, to)| {
            self.fold_pair(constants, from, to)
        })
    }

    /// The pairs of both. Without `fail_on_error` each pair fails by itself, and a source that is missing is
    /// no more than a pair that is left out.
    fn join(&self, next: &dyn Processor, _: bool) -> Option<Arc<dyn Processor>> {
        let next = (next as &dyn Any).downcast_ref::<Self>()?;
        if self.verb != next.verb || self.fail_on_error || next.fail_on_error {
            return None;
        }
        let mut both = self.clone();
        both.list.extend_from_slice(&next.list);
        Some(Arc::new(both))
    }

    fn can_fail(&self) -> bool {
        self.fail_on_error
    }

    fn describe(&self) -> String {
        let pairs: Vec<_> = self.list.iter().map(|(from, to)| format!("{from} to {to}")).collect();
        format!("{} {}", self.name(), pairs.join(", "))
    }
}
