//! `rename`: moves fields. A target that is there already is an error.
//!
//! `fail_on_error` (default true): at the first pair that fails the event is taken back to what it
//! was and gets the error in `error.message`. Otherwise the pair that fails changes nothing and the
//! others go on. (Filebeat loses the value of a pair whose source is gone when its target refuses;
//! here it stays.)

use crate::plan::Constants;
use crate::plan::ERROR_MESSAGE;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::Section;
use skidder_event::{EditError, EventMut, Path};

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
        let sections = settings.sections("fields");
        if sections.is_empty() {
            let message = format!("`{}` is missing", settings.path_of("fields"));
            settings.problem("fields", message, "give a list of `from: name` with `to: name`");
        }
        let pairs: Vec<_> = sections.iter().map(read_pair).collect();
        let fail_on_error = settings.bool("fail_on_error").or(true);
        let ignore_missing = settings.bool("ignore_missing").or(false);
        let pairs = pairs.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Self { pairs, fail_on_error, ignore_missing })
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

/// One `from` and `to`. Nothing if one is missing or no path; both are told.
fn read_pair(section: &Section<'_>) -> Option<(Path, Path)> {
    let mut ends = ["from", "to"].map(|key| {
        let parse = |text: String| Path::parse(&text).map_err(|error| error.to_string());
        let end = section.string(key).try_map(parse).optional();
        if !section.has(key) {
            section.problem(key, format!("`{}` is missing", section.path_of(key)), "");
        }
        end
    });
    Some((ends[0].take()?, ends[1].take()?))
}

impl Processor for Rename {
    fn name(&self) -> &'static str {
        "rename"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        for (from, to) in &self.pairs {
            let mark = event.mark();
            if let Err(error) = self.rename(event, from, to) {
                if self.fail_on_error {
                    return Err(Failure::new(format!(
                        "Failed to rename fields in processor: {error}"
                    )));
                }
                event.rollback(mark);
            }
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let both = self.pairs.iter().flat_map(|(from, to)| [from.clone(), to.clone()]);
        let mut writes: Vec<Path> = both.collect();
        writes.push(ERROR_MESSAGE.clone());
        Footprint { writes, open: true, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let mut after = constants.clone();
        for (from, to) in &self.pairs {
            let mut next = after.clone();
            if self.fold_pair(&mut next, from, to) {
                after = next;
            } else if self.fail_on_error {
                return false;
            }
        }
        *constants = after;
        true
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn can_fail(&self) -> bool {
        self.fail_on_error
    }

    fn describe(&self) -> String {
        let pairs: Vec<_> = self.pairs.iter().map(|(from, to)| format!("{from} to {to}")).collect();
        format!("rename {}", pairs.join(", "))
    }
}
