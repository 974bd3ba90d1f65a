//! `include_fields`: keeps the fields of a list, `@timestamp` and `type`, and removes all others.
//!
//! `@metadata` stays as it is. Where the names of all fields are known, the others become removals of
//! single fields, most of which are done once for a source.

use super::drop_fields::DropFields;
use super::pairs::optional_paths;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{Cell, EventMut, Map, Path, Value};
use smallvec::SmallVec;
use std::sync::Arc;

settings! {
    /// Settings of `include_fields`.
    pub(crate) static INCLUDE_FIELDS = Group::new("processor.include_fields", "Keeps the fields of a list and removes all others.");

    FIELDS: Vec<String> = Key::new("fields")
        .required()
        .about("the fields to keep, with everything inside them; an empty list keeps none");
}

/// Keeps fields.
#[derive(Clone, Debug)]
pub struct IncludeFields {
    /// Without `message`, `@timestamp` and those in `@metadata`.
    names: Vec<Path>,
    message: bool,
}

impl IncludeFields {
    /// Keeps `names`.
    pub fn new(names: Vec<Path>) -> Self {
        let mut names = names;
        names.push(Path::parse("type").expect("a constant that is a path"));
        let message = names.iter().any(Path::is_message);
        // `@timestamp` and `@metadata` stay anyway.
        names.retain(|name| !name.is_timestamp() && !name.is_metadata());
        Self { names, message }
    }

    /// `fields`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        if !settings.keys().contains(&FIELDS.name()) {
            let message = format!("`{}` is missing", settings.path_of(FIELDS.name()));
            settings.problem(
                FIELDS.name(),
                message,
                "give a list of field names; `[]` keeps no field",
            );
            return None;
        }
        let names = optional_paths(settings, &FIELDS);
        let is_pattern = |name: &&Path| {
            let text = name.as_str();
            text.len() > 2 && text.starts_with('/') && text.ends_with('/')
        };
        for name in names.iter().filter(is_pattern) {
            let path = settings.path_of(FIELDS.name());
            let message = format!("`{path}`: `{name}` is taken as the name of a field");
            settings.warning(FIELDS.name(), message, "regular expressions are for `drop_fields`");
        }
        Some(Self::new(names))
    }

    /// Whether all of a field is kept.
    fn keeps(&self, path: &Path) -> bool {
        self.names.iter().any(|name| starts_with(path, name))
    }

    /// Finds what must be removed from constants below `prefix`. Returns `None` if that is unknown:
    /// something kept may or may not be in an object, and without it the object itself would have
    /// to go.
    fn removals(&self, map: &Map, prefix: &str, own: &[Path], out: &mut Vec<Path>) -> Option<()> {
        for (key, value) in map.iter() {
            let path = Path::parse(&format!("{prefix}{key}")).ok()?;
            if key.contains('.') {
                return None;
            }
            if self.keeps(&path) {
                continue;
            }
            let inside = self.names.iter().filter(|name| starts_with(name, &path));
            let inside: Vec<&Path> = inside.collect();
            if inside.iter().any(|name| own.iter().any(|own| own.overlaps(name))) {
                return None;
            }
            let key_of = |name: &Path| {
                let rest = &name.segments()[path.segments().len()..];
                rest.iter().map(|part| &**part).collect::<Vec<_>>().join(".")
            };
            match value {
                Value::Map(inner)
                    if inside.iter().any(|name| inner.get_path(&key_of(name)).is_some()) =>
                {
                    self.removals(inner, &format!("{path}."), own, out)?;
                }
                _ => out.push(path),
            }
        }
        Some(())
    }
}

/// Whether `path` is `start` or inside it.
fn starts_with(path: &Path, start: &Path) -> bool {
    path.is_metadata() == start.is_metadata() && path.segments().starts_with(start.segments())
}

impl Processor for IncludeFields {
    fn name(&self) -> &'static str {
        "include_fields"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let own_message = self.message && event.as_ref().message().is_some();
        let mut kept: SmallVec<[(&Path, Cell); 8]> = SmallVec::new();
        for name in self.names.iter().filter(|name| !(own_message && name.is_message())) {
            if let Some(cell) = event.copy(name) {
                kept.push((name, cell));
            }
        }
        event.clear(own_message);
        for (name, cell) in kept {
            event.put_cell(name, cell).map_err(|error| Failure::unnoted(error.to_string()))?;
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::everything()
    }

    fn can_fail(&self) -> bool {
        false
    }

    /// One removal for each field that is not kept, when all names are known.
    fn parts(
        &self,
        constants: &Constants,
        own: Option<&[Path]>,
    ) -> Option<Vec<Arc<dyn Processor>>> {
        let own = own?;
        let mut gone = Vec::new();
        self.removals(constants.fields(), "", own, &mut gone)?;
        for path in own.iter().filter(|path| !path.is_metadata() && !path.is_timestamp()) {
            let covered = gone.iter().any(|gone| starts_with(path, gone));
            if self.keeps(path) || covered {
                continue;
            }
            // A kept field may be inside, or the object around it may be left without a field.
            let inside = self.names.iter().any(|name| starts_with(name, path));
            if inside || !self.leaves_something_around(path, constants, own) {
                return None;
            }
            gone.push(path.clone());
        }
        let drop = |path: &Path| -> Arc<dyn Processor> {
            Arc::new(DropFields::new(vec![path.clone()], Vec::new(), true))
        };
        Some(gone.iter().map(drop).collect())
    }

    fn describe(&self) -> String {
        let names: Vec<_> = self.names.iter().map(Path::as_str).collect();
        format!("include_fields {}", names.join(", "))
    }
}

impl IncludeFields {
    /// Whether each object around `path` surely keeps a value.
    fn leaves_something_around(&self, path: &Path, constants: &Constants, own: &[Path]) -> bool {
        let mut around = path.as_str();
        while let Some((outer, _)) = around.rsplit_once('.') {
            let Ok(outer_path) = Path::parse(outer) else { return false };
            let is_there = |name: &&Path| {
                starts_with(name, &outer_path)
                    && constants.get(name).is_some()
                    && !own.iter().any(|own| own.overlaps(name))
            };
            if !self.names.iter().any(|name| is_there(&name)) {
                return false;
            }
            around = outer;
        }
        true
    }
}
