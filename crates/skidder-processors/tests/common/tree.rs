//! Fields as a plain JSON tree: what the tests believe in.

#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

use serde_json::{Value as Json, json};

pub(crate) fn nested(flat: &Json) -> Json {
    let mut tree = json!({});
    for (key, value) in flat.as_object().unwrap() {
        let value = if value.is_object() { nested(value) } else { value.clone() };
        set(&mut tree, key, value);
    }
    tree
}

pub(crate) fn merge(tree: &mut Json, over: &Json) {
    for (key, value) in over.as_object().unwrap() {
        let object = tree.as_object_mut().unwrap();
        match object.get_mut(key) {
            Some(old @ Json::Object(_)) if value.is_object() => merge(old, value),
            _ => {
                object.insert(key.clone(), value.clone());
            }
        }
    }
}

pub(crate) fn merge_missing(tree: &mut Json, under: &Json) {
    for (key, value) in under.as_object().unwrap() {
        let object = tree.as_object_mut().unwrap();
        match object.get_mut(key) {
            None => {
                object.insert(key.clone(), value.clone());
            }
            Some(old @ Json::Object(_)) if value.is_object() => merge_missing(old, value),
            Some(_) => {}
        }
    }
}

pub(crate) fn get<'a>(tree: &'a Json, name: &str) -> Option<&'a Json> {
    name.split('.').try_fold(tree, |at, key| at.as_object()?.get(key))
}

/// Sets a path; `false` when something that is no object is in the way.
pub(crate) fn set(tree: &mut Json, name: &str, value: Json) -> bool {
    let (parents, last) = name.rsplit_once('.').unwrap_or(("", name));
    let mut at = tree;
    for key in parents.split('.').filter(|key| !key.is_empty()) {
        let Some(object) = at.as_object_mut() else { return false };
        at = object.entry(key).or_insert_with(|| json!({}));
    }
    at.as_object_mut().is_some_and(|object| {
        object.insert(last.to_owned(), value);
        true
    })
}

pub(crate) fn delete(tree: &mut Json, name: &str) -> bool {
    let (parents, last) = name.rsplit_once('.').unwrap_or(("", name));
    let mut at = tree;
    for key in parents.split('.').filter(|key| !key.is_empty()) {
        match at.as_object_mut().and_then(|object| object.get_mut(key)) {
            Some(inner) => at = inner,
            None => return false,
        }
    }
    at.as_object_mut().is_some_and(|object| object.remove(last).is_some())
}

pub(crate) fn flatten(tree: &Json, prefix: &str, out: &mut Vec<String>) {
    for (key, value) in tree.as_object().unwrap() {
        if prefix.is_empty() && key == "@metadata" {
            continue;
        }
        let name = format!("{prefix}{key}");
        if value.is_object() {
            flatten(value, &format!("{name}."), out);
        }
        out.push(name);
    }
}
