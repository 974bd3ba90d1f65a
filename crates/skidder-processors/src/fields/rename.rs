//! `rename`: moves fields. A target that is there already is an error.
//!
//! `fail_on_error` (default true): at the first pair that fails the event is taken back to what it
//! was and gets the error in `error.message`. Otherwise the pair that fails changes nothing and the
//! others go on. (Filebeat loses the value of a pair whose source is gone when its target refuses;
//! here it stays.)

use super::pairs::{fold_each, read_pairs, run_each};
use crate::plan::Constants;
use crate::plan::ERROR_MESSAGE;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::Section;
use skidder_event::{EditError, EventMut, Path};
use std::any::Any;
use std::sync::Arc;

/// Moves fields, one pair after the other.
#[derive(Clone, Debug)]
pub struct Rename {
    /// From where to where.
    pub pairs: Vec<(Path, Path)>,
    /// The first pair that fails undoes all; default true.
    pub fail_on_error: bool,
    /// A source that is missing is no failure; default false.
    pub ignore_missing: bool,
}

impl Rename {
    /// `fields` (a list of `from` and `to`), `fail_on_error`, `ignore_missing`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let pairs = read_pairs(settings, "fields");
        let fail_on_error = settings.bool("fail_on_error").or(true);
        let ignore_missing = settings.bool("ignore_missing").or(false);
        Some(Self { pairs: pairs?, fail_on_error, ignore_missing })
    }

    fn rename(&self, event: &mut EventMut<'_>, from: &Path, to: &Path) -> Result<(), String> {
        if event.as_ref().has(to) {
            return Err(format!(
                "target field {to} already exists, drop or rename this field first"
            ));
        }
        if from.is_timestamp() {
            return Err(format!("could not delete key: {from},  key not found"));
        }
        let Some(value) = event.take(from) else {
            if self.ignore_missing {
                return Ok(());
            }
            return Err(format!("could not fetch value for key: {from}, Error: key not found"));
        };
        event.put_cell(to, value).map_err(|error| match error {
            EditError::NotAnObject(_) => {
                format!("could not put value: {to}: a part of it has a value that is no object")
            }
            EditError::NotATime => format!("could not put value: {to}: value is no timestamp"),
        })
    }

    fn fold_pair(&self, constants: &mut Constants, from: &Path, to: &Path) -> bool {
        if constants.get(to).is_some() {
            return false;
        }
        let Some(value) = constants.get(from).cloned() else { return self.ignore_missing };
        constants.remove(from);
        constants.set(to, value)
    }
}

impl Processor for Rename {
    fn name(&self) -> &'static str {
        "rename"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        run_each(event, &self.pairs, self.fail_on_error, |event, (from, to)| {
            self.rename(event, from, to)
        })
        .map_err(|error| Failure::new(format!("Failed to rename fields in processor: {error}")))?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let both = self.pairs.iter().flat_map(|(from, to)| [from.clone(), to.clone()]);
        let mut writes: Vec<Path> = both.collect();
        writes.push(ERROR_MESSAGE.clone());
        Footprint { writes, open: true, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        fold_each(constants, &self.pairs, self.fail_on_error, |constants, (from, to)| {
            self.fold_pair(constants, from, to)
        })
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    /// The pairs of both. Without `fail_on_error` each pair fails by itself, and a source that is missing is
    /// no more than a pair that is left out.
    fn join(&self, next: &dyn Processor, _: bool) -> Option<Arc<dyn Processor>> {
        let next = (next as &dyn Any).downcast_ref::<Self>()?;
        if self.fail_on_error || next.fail_on_error {
            return None;
        }
        let mut both = self.clone();
        both.pairs.extend_from_slice(&next.pairs);
        Some(Arc::new(both))
    }

    fn can_fail(&self) -> bool {
        self.fail_on_error
    }

    fn describe(&self) -> String {
        let pairs: Vec<_> = self.pairs.iter().map(|(from, to)| format!("{from} to {to}")).collect();
        format!("rename {}", pairs.join(", "))
    }
}
