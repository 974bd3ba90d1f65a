//! `drop_fields`: removes fields by name or by `/regular expression/` over the dotted name.
//!
//! `@timestamp` and `type` always stay. A name that is missing does not keep the
//! others from being removed and leaves no note on the event, as in Filebeat; unless
//! `ignore_missing` is set it ends the `if`/`then`/`else` branch it is in. An object whose last
//! field is removed stays as an empty object.

use crate::pattern::compile_pattern;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use regex::bytes::Regex;
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventMut, EventRef, Map, MapRef, Path, Value, ValueRef};
use std::any::Any;
use std::sync::Arc;

settings! {
    /// Settings of `drop_fields`.
    pub(crate) static DROP_FIELDS = Group::new("processor.drop_fields", "Removes fields, by their names or by regular expressions.");

    FIELDS: Vec<String> = Key::new("fields")
        .required()
        .about("names with everything inside them, or `/regular expressions/` over the names with \
                dots; `@timestamp` and `type` stay");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("otherwise a name that is not there ends the branch of an `if`");
}

/// Removes fields.
#[derive(Clone, Debug)]
pub struct DropFields {
    names: Vec<Path>,
    patterns: Vec<Arc<Regex>>,
    ignore_missing: bool,
}

impl DropFields {
    /// Removes `names`, and every field whose dotted name has a match of one of `patterns`.
    pub fn new(names: Vec<Path>, patterns: Vec<Regex>, ignore_missing: bool) -> Self {
        let names = names.into_iter().filter(|name| !is_kept(name)).collect();
        let patterns = patterns.into_iter().map(Arc::new).collect();
        Self { names, patterns, ignore_missing }
    }

    /// `fields` (names, or `/regular expressions/`) and `ignore_missing`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let mut names = Vec::new();
        let mut patterns = Vec::new();
        let mut right = true;
        for text in settings.get(&FIELDS).required() {
            // Filebeat puts it in again behind the processors.
            if text == "@metadata" {
                let path = settings.path_of(FIELDS.name());
                let message = format!("`{path}`: `@metadata` cannot be dropped, it stays");
                settings.warning(
                    FIELDS.name(),
                    message,
                    "name a key of it, as in `@metadata.pipeline`",
                );
                continue;
            }
            let between = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
            let read = match between.filter(|inner| !inner.is_empty()) {
                Some(inner) => compile_pattern(inner)
                    .map(|pattern| patterns.push(pattern))
                    .map_err(|error| error.to_string()),
                None => Path::parse(&text)
                    .map(|name| names.push(name))
                    .map_err(|error| error.to_string()),
            };
            if let Err(error) = read {
                let path = settings.path_of(FIELDS.name());
                settings.problem(FIELDS.name(), format!("`{path}`: {error}"), "");
                right = false;
            }
        }
        for name in names.iter().filter(|name| is_kept(name)) {
            let path = settings.path_of(FIELDS.name());
            settings.warning(
                FIELDS.name(),
                format!("`{path}`: `{name}` cannot be dropped, it stays"),
                "",
            );
        }
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        right.then(|| Self::new(names, patterns, ignore_missing))
    }

    fn fits(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.is_match(name.as_bytes()))
    }

    /// The fields of an event that a pattern fits, an object after its fields.
    fn find(&self, event: EventRef<'_>) -> Vec<Path> {
        let mut names = Vec::new();
        let mut walk = Walk { wanted: self, names: &mut names };
        walk.object(event.root(), "");
        for own in ["message", "log.offset", "log"] {
            let path = Path::parse(own).expect("a constant that is a path");
            if self.fits(own) && event.has(&path) {
                names.push(path);
            }
        }
        names.retain(|name| !is_kept(name));
        names
    }
}

/// Collects the names of an event's fields.
struct Walk<'a> {
    wanted: &'a DropFields,
    names: &'a mut Vec<Path>,
}

impl Walk<'_> {
    fn object(&mut self, map: MapRef<'_>, prefix: &str) {
        map.for_each(|key, value| {
            let name = format!("{prefix}{}", String::from_utf8_lossy(key));
            if let ValueRef::Map(inner) = value {
                self.object(inner, &format!("{name}."));
            }
            if self.wanted.fits(&name)
                && let Ok(path) = Path::parse(&name)
            {
                self.names.push(path);
            }
        });
    }
}

fn is_kept(name: &Path) -> bool {
    name.is_timestamp() || (name.as_str() == "type" && !name.is_metadata())
}

/// The dotted names of all constant fields, objects after their fields.
fn constant_names(map: &Map, prefix: &str, out: &mut Vec<String>) {
    for (key, value) in map.iter() {
        let name = format!("{prefix}{key}");
        if let Value::Map(inner) = value {
            constant_names(inner, &format!("{name}."), out);
        }
        out.push(name);
    }
}

impl Processor for DropFields {
    fn name(&self) -> &'static str {
        "drop_fields"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let mut missing = false;
        for name in &self.names {
            missing |= !event.delete(name);
        }
        if !self.patterns.is_empty() {
            for name in self.find(event.as_ref()) {
                event.delete(&name);
            }
        }
        let incomplete = missing && !self.ignore_missing;
        Ok(if incomplete { Outcome::Incomplete } else { Outcome::Done })
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        if !self.patterns.is_empty() {
            return Footprint::everything();
        }
        Footprint { writes: self.names.clone(), ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        if !self.patterns.is_empty() {
            return false;
        }
        for name in &self.names {
            constants.remove(name);
        }
        true
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn can_stop(&self) -> bool {
        !self.names.is_empty() && !self.ignore_missing
    }

    /// All names and patterns of both: it does not matter in which order fields are removed.
    fn join(&self, next: &dyn Processor, in_branch: bool) -> Option<Arc<dyn Processor>> {
        let next = (next as &dyn Any).downcast_ref::<Self>()?;
        if in_branch && !(self.ignore_missing && next.ignore_missing) {
            return None;
        }
        let mut both = self.clone();
        both.names.extend_from_slice(&next.names);
        both.patterns.extend_from_slice(&next.patterns);
        both.ignore_missing = true;
        Some(Arc::new(both))
    }

    /// One for each name; a pattern becomes the names it fits when all names are known.
    fn parts(
        &self,
        constants: &Constants,
        own: Option<&[Path]>,
    ) -> Option<Vec<Arc<dyn Processor>>> {
        let mut names = self.names.clone();
        if !self.patterns.is_empty() {
            let own = own?;
            let mut all = Vec::new();
            constant_names(constants.fields(), "", &mut all);
            for path in own.iter().filter(|path| !path.is_metadata()) {
                let mut name = path.as_str();
                all.push(name.to_owned());
                while let Some((parent, _)) = name.rsplit_once('.') {
                    all.push(parent.to_owned());
                    name = parent;
                }
            }
            let fitting = all.iter().filter(|name| self.fits(name));
            names.extend(fitting.filter_map(|name| Path::parse(name).ok()));
            names.retain(|name| !is_kept(name));
            // Objects after their fields, as a removed field needs no second look.
            names.sort_by(|one, other| {
                let depth = |name: &Path| name.segments().len();
                depth(other).cmp(&depth(one)).then_with(|| one.as_str().cmp(other.as_str()))
            });
            names.dedup();
        } else if names.len() < 2 {
            return None;
        }
        let one = |name| Self { names: vec![name], patterns: Vec::new(), ignore_missing: true };
        Some(names.into_iter().map(|name| Arc::new(one(name)) as Arc<dyn Processor>).collect())
    }

    fn describe(&self) -> String {
        let names = self.names.iter().map(|name| name.as_str().to_owned());
        let patterns = self.patterns.iter().map(|pattern| format!("/{}/", pattern.as_str()));
        format!("drop_fields {}", names.chain(patterns).collect::<Vec<_>>().join(", "))
    }
}
