//! `add_labels`: constant texts below `labels`, nested ones under names with dots.

use super::add_fields::AddFields;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::{Any, Group, Key, Section, Value as Setting, settings};
use skidder_event::{EventMut, Map, Path};
use std::collections::BTreeMap;

settings! {
    /// Settings of `add_labels`.
    pub(crate) static ADD_LABELS = Group::new("processor.add_labels", "Adds constant texts below `labels`.");

    LABELS: Any = Key::new("labels")
        .required()
        .about("names and values; numbers and truths become texts, an element of a list has its \
                number as the last part of its name");
}

/// Where labels go.
const TARGET: &str = "labels";

/// Adds labels to every event.
#[derive(Clone, Debug)]
pub(crate) struct AddLabels {
    add: AddFields,
    target: Path,
    names: Vec<String>,
}

impl AddLabels {
    /// `labels`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let mut labels = BTreeMap::new();
        match settings.get(&LABELS).optional() {
            Some(Setting::Map(map)) => flatten(&Setting::Map(map), "", &mut labels),
            other => {
                let what = if other.is_some() { "is no map" } else { "is missing" };
                let message = format!("`{}` {what}", settings.path_of(LABELS.name()));
                settings.problem(LABELS.name(), message, "give a map of names to values");
                return None;
            }
        }
        let mut map = Map::new();
        for (name, text) in &labels {
            map.insert(name, text.as_str());
        }
        let mut fields = Map::new();
        fields.insert(TARGET, map);
        let target = Path::parse(TARGET).expect("a constant that is a path");
        let names = labels.into_keys().collect();
        Some(Self { add: AddFields::new("", &fields), target, names })
    }
}

/// Collects the texts of all values by their dotted names; elements of a list by their number.
fn flatten(setting: &Setting, name: &str, out: &mut BTreeMap<String, String>) {
    let inner = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    let text = match setting {
        Setting::Null => return,
        Setting::Map(map) => {
            return map.iter().for_each(|(key, value)| flatten(value, &inner(key), out));
        }
        Setting::List(items) => {
            let items = items.iter().enumerate();
            return items.for_each(|(at, item)| flatten(item, &inner(&at.to_string()), out));
        }
        Setting::Bool(truth) => truth.to_string(),
        Setting::Int(number) => number.to_string(),
        Setting::UInt(number) => number.to_string(),
        Setting::Float(number) => number.to_string(),
        Setting::String(text) => text.clone(),
    };
    out.insert(name.to_owned(), text);
}

impl Processor for AddLabels {
    fn name(&self) -> &'static str {
        "add_labels"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.add.run(event)
    }

    /// Names with dots have no paths of their own.
    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint { writes: vec![self.target.clone()], open: true, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        self.add.fold(constants)
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        format!("add_labels {}", self.names.join(", "))
    }
}
