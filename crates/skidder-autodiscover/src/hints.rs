//! Hints: labels and annotations such as `co.elastic.logs/multiline.pattern`, sorted out for one container.

use crate::json::get;
use crate::limits::HINT_BYTES_MAX;
use serde_json::{Map as Object, Value as Json};
use std::collections::BTreeSet;

/// The hints of one container: `multiline`, `enabled` and so on, with dots in their names as levels.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    pub(crate) values: Object<String, Json>,
    names: Names,
}

/// How labels or annotations with hints are called.
#[derive(Clone, Debug, Default)]
struct Names {
    /// `co.elastic.logs`.
    general: String,
    /// `co.elastic.logs.web`.
    own: String,
    /// The hints of the container itself, without what is below them.
    of_container: BTreeSet<String>,
    /// The number of the set, if it is a numbered one.
    set: Option<String>,
}

impl Hints {
    /// Of labels or annotations as a tree. Hints of the container (`co.elastic.logs.NAME/…`) win over those of the pod
    /// (`co.elastic.logs/…`). The error is a reason to ignore all of them.
    pub(crate) fn of(
        annotations: &Json,
        prefix: &str,
        key: &str,
        container: &str,
    ) -> Result<Self, String> {
        let Some(entries) = get(annotations, prefix).and_then(Json::as_object) else {
            return Ok(Self::default());
        };
        let bytes: usize = entries.iter().map(|(name, value)| name.len() + bytes_of(value)).sum();
        if bytes > HINT_BYTES_MAX {
            return Err(format!("the hints are {bytes} bytes; at most {HINT_BYTES_MAX} are read"));
        }
        let general = format!("{prefix}.{key}");
        let own = format!("{general}.{container}");
        let mut names = Names { general, own, ..Names::default() };
        let mut hints = Object::new();
        for (name, value) in entries {
            if let Some((kind, hint)) = name.split_once('/').filter(|(_, hint)| !hint.contains('/'))
                && kind == key
            {
                hints.insert(hint.to_owned(), value.clone());
            }
        }
        let own = entries.get(key).and_then(Json::as_object).filter(|_| !container.is_empty());
        for (name, value) in own.into_iter().flatten() {
            if let Some((of, hint)) = name.split_once('/').filter(|(_, hint)| !hint.contains('/'))
                && of == container
            {
                names.of_container.insert(hint.to_owned());
                hints.insert(hint.to_owned(), value.clone());
            }
        }
        Ok(Self { values: hints, names })
    }

    /// The label or annotation that a hint is written as: `co.elastic.logs/json.keys_under_root`.
    pub(crate) fn name_of(&self, hint: &str) -> String {
        let Names { general, own, of_container, set } = &self.names;
        let first = set.as_deref().or_else(|| hint.split('.').next()).unwrap_or_default();
        let before = if of_container.contains(first) { own } else { general };
        match set {
            Some(set) => format!("{before}/{set}.{hint}"),
            None => format!("{before}/{hint}"),
        }
    }

    /// A text; empty if there is none.
    pub(crate) fn text(&self, path: &str) -> &str {
        let mut levels = path.split('.');
        let first = levels.next().and_then(|level| self.values.get(level));
        let value = levels.fold(first, |value, level| value?.as_object()?.get(level));
        value.and_then(Json::as_str).unwrap_or_default()
    }

    /// What the hint `enabled` says; `None` for nothing, or no boolean.
    pub(crate) fn enabled(&self) -> Option<bool> {
        match self.text("enabled") {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
            _ => None,
        }
    }

    /// Sets of hints, each for one input: the numbered ones, sorted as texts (`10` before `2`), then all others
    /// together. Without hints, one empty set.
    pub(crate) fn sets(&self) -> Vec<Self> {
        let (numbered, rest): (Vec<_>, Vec<_>) =
            self.values.iter().partition(|(name, _)| is_number(name));
        let mut numbered = numbered;
        numbered.sort_by(|left, right| left.0.cmp(right.0));
        let set = |(number, value): (&String, &Json)| {
            let names = Names { set: Some(number.clone()), ..self.names.clone() };
            value.as_object().map(|values| Self { values: values.clone(), names })
        };
        let mut sets: Vec<Self> = numbered.into_iter().filter_map(set).collect();
        let rest: Object<String, Json> =
            rest.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        if !rest.is_empty() || sets.is_empty() {
            sets.push(Self { values: rest, names: self.names.clone() });
        }
        sets
    }
}

/// Whether it is a whole number.
pub(crate) fn is_number(text: &str) -> bool {
    text.parse::<i64>().is_ok()
}

fn bytes_of(value: &Json) -> usize {
    match value {
        Json::String(text) => text.len(),
        Json::Object(object) => {
            object.iter().map(|(name, value)| name.len() + bytes_of(value)).sum()
        }
        _ => 0,
    }
}
