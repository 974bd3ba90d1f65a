//! `add_fields`: merges constant fields over the event, objects deeply, everything else replaced.
//!
//! A key `@metadata` goes to the event's metadata. `@timestamp` is left alone: a
//! configuration can give it no time, and Filebeat ignores anything else.

use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::{Any, Group, Key, Section, Value as Setting, settings};
use skidder_event::{EventMut, Map, Path, Value};

settings! {
    /// Settings of `add_fields`.
    pub(crate) static ADD_FIELDS = Group::new("processor.add_fields", "Adds constant fields.");

    FIELDS: Any = Key::new("fields").map()
        .required()
        .about("names and values; `null` is left out");
    TARGET: String = Key::new("target")
        .default(AddFields::TARGET)
        .about("the object that the fields go into; `\"\"` is the event itself, `@metadata` its \
                metadata");
}

/// Merges fields over every event.
#[derive(Clone, Debug)]
pub struct AddFields {
    fields: Map,
    metadata: Map,
    /// All values of `fields` by their paths; `None` if they cannot be named so.
    leaves: Option<Box<[(Path, Value)]>>,
}

/// The values inside a map; `false` if paths do not name all that is in it.
fn leaves(map: &Map, prefix: &str, out: &mut Vec<(Path, Value)>) -> bool {
    map.iter().all(|(key, value)| {
        let name = format!("{prefix}{key}");
        match value {
            _ if key.contains('.') => false,
            Value::Map(inner) => !inner.is_empty() && leaves(inner, &format!("{name}."), out),
            value => {
                let path = Path::parse(&name);
                out.extend(path.iter().map(|path| (path.clone(), value.clone())));
                path.is_ok()
            }
        }
    })
}

impl AddFields {
    /// Default target of the fields.
    pub const TARGET: &'static str = "fields";

    /// Puts `fields` under `target`; at the root if it is empty.
    pub fn new(target: &str, fields: &Map) -> Self {
        let mut rooted = Map::new();
        if target.is_empty() {
            rooted.merge(fields);
        } else {
            rooted.insert_path(target, fields.clone());
        }
        let metadata = match rooted.get("@metadata") {
            Some(Value::Map(metadata)) => metadata.clone(),
            _ => Map::new(),
        };
        rooted.remove_path("@metadata");
        rooted.remove_path("@timestamp");
        let mut named = Vec::new();
        let leaves = leaves(&rooted, "", &mut named).then(|| named.into());
        Self { fields: rooted, metadata, leaves }
    }
}

impl AddFields {
    /// Sets each value by its path where paths are numbers. `false`, and the event is as it was:
    /// something is in the way that gets replaced.
    fn put_by_path(&self, event: &mut EventMut<'_>) -> bool {
        let Some(leaves) = self.leaves.as_ref().filter(|_| event.has_slots()) else { return false };
        let mark = event.mark();
        let done = leaves.iter().all(|(path, value)| event.put(path, value).is_ok());
        if !done {
            event.rollback(mark);
        }
        done
    }

    /// `fields` and `target`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let target = settings.get(&TARGET).value();
        let fields = match settings.get(&FIELDS).optional() {
            Some(Setting::Map(fields)) => fields_of(&fields),
            other => {
                let what = if other.is_some() { "is no map" } else { "is missing" };
                let message = format!("`{}` {what}", settings.path_of(FIELDS.name()));
                settings.problem(FIELDS.name(), message, "give a map of names to values");
                return None;
            }
        };
        if target.is_empty() && fields.get("@timestamp").is_some() {
            let message = format!(
                "`{}` has no effect",
                settings.path_of(&format!("{}.@timestamp", FIELDS.name()))
            );
            settings.warning(FIELDS.name(), message, "`@timestamp` can only be set to a time");
        }
        Some(Self::new(&target, &fields))
    }
}

/// A setting that can be anything, as fields of events. Empty values are left out, as in Filebeat.
pub fn fields_of(settings: &std::collections::BTreeMap<String, Setting>) -> Map {
    let mut map = Map::new();
    for (key, value) in settings {
        if let Some(value) = value_of(value) {
            map.insert(key, value);
        }
    }
    map
}

/// One value of a setting; nothing for null.
pub(super) fn value_of(setting: &Setting) -> Option<Value> {
    Some(match setting {
        Setting::Null => return None,
        Setting::Bool(truth) => Value::Bool(*truth),
        Setting::Int(number) => Value::Int(*number),
        Setting::UInt(number) => Value::UInt(*number),
        Setting::Float(number) => Value::Float(*number),
        Setting::String(text) => Value::from(text.as_str()),
        Setting::List(items) => Value::List(items.iter().filter_map(value_of).collect()),
        Setting::Map(map) => Value::Map(fields_of(map)),
    })
}

impl Processor for AddFields {
    fn name(&self) -> &'static str {
        "add_fields"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        if !self.fields.is_empty() && !self.put_by_path(event) {
            event.merge(&self.fields);
        }
        if !self.metadata.is_empty() {
            event.merge_metadata(&self.metadata);
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, constants: &Constants) -> Footprint {
        let below = (constants.fields(), constants.metadata());
        Footprint::of_merge(&self.fields, &self.metadata, below)
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        constants.merge(&self.fields, &self.metadata);
        true
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        let keys = self.fields.iter().map(|(key, _)| key.to_owned());
        let about = self.metadata.iter().map(|(key, _)| format!("@metadata.{key}"));
        format!("add_fields {}", keys.chain(about).collect::<Vec<_>>().join(", "))
    }
}
