//! `move_fields`: moves the fields inside an object, or all fields, to names that begin with the same text.

use super::pairs::optional_path;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{Cell, EventMut, Path, Text, Value, ValueRef};
use smallvec::SmallVec;

settings! {
    /// Settings of `move_fields`.
    pub(crate) static MOVE_FIELDS = Group::new("processor.move_fields", "Moves the fields inside an object, or all fields of the event, to \
                               names that begin with the same text.");

    FROM: String = Key::new("from")
        .default_words("the event")
        .about("the object; it stays, without the fields that are moved");
    FIELDS: Vec<String> = Key::new("fields")
        .default_words("all")
        .about("which of its fields are moved");
    EXCLUDE: Vec<String> = Key::new("exclude")
        .default_words("none")
        .about("fields that stay where they are");
    TO: String = Key::new("to")
        .required()
        .about("what the new names begin with; with a dot at its end the fields come into an object \
                of that name");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field of `fields` is not a failure");
}

/// Fields of an object, without the heap for this many.
type Members = SmallVec<[(Text, Cell); 16]>;

/// Moves fields.
#[derive(Clone, Debug)]
pub(crate) struct MoveFields {
    /// The object; nothing is the event itself.
    from: Option<Path>,
    /// What the new names begin with.
    to: String,
    /// Those of `fields`, in their order; empty if all are moved.
    named: Vec<Named>,
    exclude: Vec<String>,
    ignore_missing: bool,
}

/// A field of `fields`.
#[derive(Clone, Debug)]
struct Named {
    name: String,
    from: Path,
    to: Path,
}

impl MoveFields {
    /// `from`, `fields`, `exclude`, `to`, `ignore_missing`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let from = optional_path(settings, &FROM);
        let to = settings.get(&TO);
        if !to.is_set() {
            let message = format!("`{}` is missing", settings.path_of(TO.name()));
            let hint = "set the beginning of the new names, such as `app.`";
            settings.problem(TO.name(), message, hint);
            return None;
        }
        let to = to.optional()?;
        let exclude = settings.get(&EXCLUDE).optional().unwrap_or_default();
        let fields = settings.get(&FIELDS).optional().unwrap_or_default();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let prefix = from.as_ref().map_or_else(String::new, |from| format!("{from}."));
        let mut named = Vec::new();
        let mut right = true;
        for name in fields.into_iter().filter(|name| !exclude.contains(name)) {
            match (Path::parse(&format!("{prefix}{name}")), Path::parse(&format!("{to}{name}"))) {
                (Ok(from), Ok(to)) => named.push(Named { name, from, to }),
                (Err(error), _) | (_, Err(error)) => {
                    let path = settings.path_of(FIELDS.name());
                    settings.problem(FIELDS.name(), format!("`{path}`: {error}"), "");
                    right = false;
                }
            }
        }
        if right && named.is_empty() && settings.has_key(&FIELDS) {
            let message =
                format!("`{}` leaves nothing to be moved", settings.path_of(FIELDS.name()));
            settings.problem(FIELDS.name(), message, "leave it out to move all fields");
            right = false;
        }
        right.then_some(Self { from, to, named, exclude, ignore_missing })
    }

    /// The error of a `from` that is not an object.
    fn check_from(&self, event: &EventMut<'_>) -> Result<(), String> {
        let Some(from) = &self.from else { return Ok(()) };
        match event.as_ref().get(from) {
            Some(ValueRef::Map(_)) => Ok(()),
            Some(_) => Err(format!("'{from}' does not contain an object")),
            None => Err(format!("cannot get value from key '{from}': key not found")),
        }
    }

    fn move_named(&self, event: &mut EventMut<'_>) -> Result<(), String> {
        for Named { name, from, to } in &self.named {
            let Some(cell) = event.take(from) else {
                if self.ignore_missing {
                    continue;
                }
                return Err(format!(
                    "move field read field from parent, sub key: {name}, failed: key not found"
                ));
            };
            event.put_cell(to, cell).map_err(|error| refused(name, to.as_str(), &error))?;
        }
        Ok(())
    }

    fn move_all(&self, event: &mut EventMut<'_>) -> Result<(), String> {
        let is_left = |key: &[u8]| self.exclude.iter().any(|name| name.as_bytes() == key);
        let keep_message = self.from.is_none() && is_left(b"message");
        let object = match &self.from {
            Some(from) => event.copy(from),
            None => Some(event.copy_all()),
        };
        let fields = object.map(|object| event.object_cells(object)).unwrap_or_default();
        let (left, mut moved): (Members, Members) =
            fields.into_iter().partition(|(key, _)| is_left(event.text(*key)));
        moved.sort_by(|(one, _), (other, _)| event.text(*one).cmp(event.text(*other)));
        if let Some(from) = &self.from {
            let rest = event.store_object(&left);
            event.put_cell(from, rest).map_err(|error| error.to_string())?;
        } else {
            let keep_message = keep_message && event.as_ref().message().is_some();
            event.clear(keep_message);
            for (key, cell) in left {
                let name = String::from_utf8_lossy(event.text(key)).into_owned();
                if !(keep_message && name == "message") {
                    event.put_key(name.as_bytes(), cell);
                }
            }
        }
        for (key, cell) in moved {
            let name = String::from_utf8_lossy(event.text(key)).into_owned();
            let to = format!("{}{name}", self.to);
            let path = Path::parse(&to).map_err(|error| refused(&name, &to, &error))?;
            event.put_cell(&path, cell).map_err(|error| refused(&name, &to, &error))?;
        }
        Ok(())
    }

    fn fold_all(&self, constants: &mut Constants, from: &Path) -> bool {
        let Some(Value::Map(object)) = constants.get(from).cloned() else { return false };
        let is_moved = |(key, _): &(&str, &Value)| !self.exclude.iter().any(|name| name == key);
        let moved: Vec<_> = object.iter().filter(is_moved).collect();
        for (key, _) in &moved {
            let Ok(path) = Path::parse(&format!("{from}.{key}")) else { return false };
            if key.contains('.') || !constants.remove(&path) {
                return false;
            }
        }
        moved.into_iter().all(|(key, value)| {
            let path = Path::parse(&format!("{}{key}", self.to));
            path.is_ok_and(|path| constants.set(&path, value.clone()))
        })
    }

    fn fold_named(&self, constants: &mut Constants) -> bool {
        self.named.iter().all(|Named { from, to, .. }| match constants.get(from).cloned() {
            Some(value) => constants.remove(from) && constants.set(to, value),
            None => self.ignore_missing,
        })
    }
}

fn refused(name: &str, to: &str, error: &dyn std::fmt::Display) -> String {
    format!("move field write field to sub key: {name}, new key: {to}, failed: {error}")
}

impl Processor for MoveFields {
    fn name(&self) -> &'static str {
        "move_fields"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let moved = self.check_from(event).and_then(|()| {
            if self.named.is_empty() { self.move_all(event) } else { self.move_named(event) }
        });
        moved.map_err(Failure::new)?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let Some(from) = self.from.clone().filter(|from| !from.is_metadata()) else {
            return Footprint::everything();
        };
        let mut writes = vec![from.clone()];
        if self.named.is_empty() {
            // The names are those of the object: only their parent is known.
            let Some(target) = self.to.strip_suffix('.').and_then(|to| Path::parse(to).ok()) else {
                return Footprint::everything();
            };
            writes.push(target);
        } else {
            for named in &self.named {
                writes.extend([named.from.clone(), named.to.clone()]);
            }
        }
        Footprint { reads: vec![from], writes, open: true, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let Some(from) = &self.from else { return false };
        let mut after = constants.clone();
        let is_object = matches!(constants.get(from), Some(Value::Map(_)));
        let done = is_object
            && if self.named.is_empty() {
                self.fold_all(&mut after, from)
            } else {
                self.fold_named(&mut after)
            };
        if done {
            *constants = after;
        }
        done
    }

    fn describe(&self) -> String {
        let from = self.from.as_ref().map_or("the event", Path::as_str);
        format!("move_fields of {from} to {}", self.to)
    }
}
