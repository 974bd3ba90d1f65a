//! Small operations on JSON objects: paths, labels with dots, merging, and the map of an event.

use serde_json::{Map as Object, Value as Json};
use skidder_event::{Map, Value};
use std::collections::BTreeMap;

/// Levels that dots in the name of a label make; the rest of a longer name is one key. Names of Kubernetes have at
/// most 158 levels, names of Docker's labels have no limit.
const LABEL_LEVELS_MAX: usize = 160;

/// A text that is not empty.
pub(crate) fn text(value: &Json) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// The same, or an empty one.
pub(crate) fn text_or_empty(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The texts of an object, sorted by key.
pub(crate) fn texts(value: &Json) -> BTreeMap<&str, &str> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

/// The value at a dotted path.
pub(crate) fn get<'a>(root: &'a Json, path: &str) -> Option<&'a Json> {
    path.split('.').try_fold(root, |value, level| value.as_object()?.get(level))
}

/// Labels as a tree: dots in their names are levels. Where a name is both a value and an object, the value is
/// `NAME.value`.
pub(crate) fn tree(labels: &BTreeMap<&str, &str>) -> Json {
    let mut root = Object::new();
    for (name, text) in labels {
        put(&mut root, name, Json::from(*text), LABEL_LEVELS_MAX);
    }
    Json::Object(root)
}

/// Labels in one level: dots in their names become `_`.
pub(crate) fn dedotted(labels: &BTreeMap<&str, &str>) -> Json {
    labels.iter().map(|(name, text)| (name.replace('.', "_"), Json::from(*text))).collect()
}

fn put(object: &mut Object<String, Json>, name: &str, value: Json, levels: usize) {
    const BOTH: &str = "value";
    match object.get_mut(name) {
        Some(Json::Object(inner)) => {
            inner.insert(BOTH.to_owned(), value);
            return;
        }
        Some(old) => {
            *old = value;
            return;
        }
        None => {}
    }
    let Some((head, rest)) = name.split_once('.').filter(|_| levels > 1) else {
        object.insert(name.to_owned(), value);
        return;
    };
    let inner = object.entry(head).or_insert_with(|| Json::Object(Object::new()));
    if !inner.is_object() {
        let old = inner.take();
        *inner = Json::Object(Object::from_iter([(BOTH.to_owned(), old)]));
    }
    if let Json::Object(inner) = inner {
        put(inner, rest, value, levels - 1);
    }
}

/// Sets a value at a dotted path; what is in the way and no object is replaced.
pub(crate) fn set(root: &mut Json, path: &str, value: impl Into<Json>) {
    let (head, rest) = path.split_once('.').map_or((path, None), |(head, rest)| (head, Some(rest)));
    if !root.is_object() {
        *root = Json::Object(Object::new());
    }
    let Json::Object(object) = root else { return };
    match rest {
        None => {
            object.insert(head.to_owned(), value.into());
        }
        Some(rest) => set(object.entry(head).or_insert(Json::Null), rest, value),
    }
}

/// Merges `other` over `base`: objects deeply, anything else is replaced.
pub(crate) fn merge(base: &mut Json, other: Json) {
    match (base, other) {
        (Json::Object(base), Json::Object(other)) => {
            for (key, value) in other {
                match base.get_mut(&key) {
                    Some(old) => merge(old, value),
                    None => {
                        base.insert(key, value);
                    }
                }
            }
        }
        (base, other) => *base = other,
    }
}

/// Adds from `other` what `base` does not have, at all levels.
pub(crate) fn merge_missing(base: &mut Json, other: &Json) {
    let (Json::Object(base), Json::Object(other)) = (base, other) else { return };
    for (key, value) in other {
        match base.get_mut(key) {
            Some(old) => merge_missing(old, value),
            None => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Whether nothing is in it.
pub(crate) fn is_empty(value: &Json) -> bool {
    value.is_null() || value.as_object().is_some_and(Object::is_empty)
}

/// An object as fields of an event.
pub(crate) fn to_map(value: &Json) -> Map {
    let mut map = Map::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        map.insert(key, to_value(value));
    }
    map
}

fn to_value(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::UInt(number),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(list) => Value::List(list.iter().map(to_value).collect()),
        Json::Object(_) => Value::Map(to_map(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_are_a_tree_in_which_a_name_can_be_a_value_and_an_object() {
        let labels = json!({"app": "a", "app.kubernetes.io/name": "n", "x.y": "1", "x.y.z": "2"});
        let expected = json!({
            "app": {"value": "a", "kubernetes": {"io/name": "n"}},
            "x": {"y": {"value": "1", "z": "2"}},
        });
        assert_eq!(tree(&texts(&labels)), expected);
        let dotless = json!({"a_b": "1"});
        assert_eq!(dedotted(&texts(&json!({"a.b": "1"}))), dotless);
    }

    #[test]
    fn a_name_of_many_dots_has_a_bounded_depth() {
        let name = "a.".repeat(100_000);
        let labels = BTreeMap::from([(name.as_str(), "1")]);
        let mut depth = 0;
        let root = tree(&labels);
        let mut value = &root;
        while let Some(inner) = value.as_object().and_then(|object| object.values().next()) {
            (value, depth) = (inner, depth + 1);
        }
        assert_eq!(depth, LABEL_LEVELS_MAX);
    }

    #[test]
    fn merging_keeps_or_replaces() {
        let mut base = json!({"a": {"b": 1}, "c": 2});
        merge_missing(&mut base, &json!({"a": {"b": 9, "d": 3}, "e": 4}));
        assert_eq!(base, json!({"a": {"b": 1, "d": 3}, "c": 2, "e": 4}));
        merge(&mut base, json!({"a": {"b": 7}, "c": {"x": 1}}));
        assert_eq!(base, json!({"a": {"b": 7, "d": 3}, "c": {"x": 1}, "e": 4}));
        set(&mut base, "c.y.z", 5);
        assert_eq!(get(&base, "c.y.z"), Some(&json!(5)));
        assert_eq!(get(&base, "c.y.z.w"), None);
    }
}
