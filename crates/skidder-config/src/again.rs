//! Settings that are read again while the program runs: which of them are taken, and which have
//! changed in vain.

use crate::node::{Content, Entry, Map, Node};
use crate::settings::Settings;
use std::sync::Arc;

impl Settings {
    /// These settings with those of `newer` at the dotted keys `live`, whether these are set or
    /// not; with the secrets and further files of `newer`.
    #[must_use]
    pub fn with_live(&self, newer: &Self, live: &[&str]) -> Self {
        Self {
            root: replaced(&self.root, Some(&newer.root), live),
            pending: Vec::new(),
            secrets: Arc::clone(&newer.secrets),
            paths: Arc::clone(&self.paths),
            inputs: newer.inputs.clone(),
            modules: newer.modules.clone(),
        }
    }

    /// The dotted keys of settings that are not the same in `other`, but for those at `except` and
    /// below. Names only.
    pub fn differences(&self, other: &Self, except: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        differ(Some(&self.root), Some(&other.root), "", except, &mut found);
        found.sort();
        found
    }
}

/// The rest of `keys` below `key`.
fn below<'a>(keys: &[&'a str], key: &str) -> Vec<&'a str> {
    let rest = |full: &&'a str| full.strip_prefix(key)?.strip_prefix('.');
    keys.iter().filter_map(rest).collect()
}

fn entry<'a>(node: Option<&'a Node>, key: &str) -> Option<&'a Entry> {
    node?.as_map()?.get(key)
}

fn keys_of(node: Option<&Node>) -> impl Iterator<Item = &Entry> {
    node.and_then(Node::as_map).into_iter().flat_map(Map::iter)
}

/// `old`, a map or nothing of use, with what `new` has at `keys`.
fn replaced(old: &Node, new: Option<&Node>, keys: &[&str]) -> Node {
    let mut map = Map::default();
    let only_new = keys_of(new).filter(|of_new| entry(Some(old), &of_new.key).is_none());
    for any in keys_of(Some(old)).chain(only_new) {
        let key = &*any.key;
        let of_new = entry(new, key);
        let inner = below(keys, key);
        if keys.contains(&key) {
            if let Some(of_new) = of_new {
                map.insert(of_new.clone());
            }
        } else if !inner.is_empty() {
            let of_old = entry(Some(old), key);
            let nothing =
                Node::collection(any.value.position.clone(), Content::Map(Map::default()));
            let value = of_old.map_or(&nothing, |of_old| &of_old.value);
            let value = replaced(value, of_new.map(|of_new| &of_new.value), &inner);
            map.insert(Entry { value, ..any.clone() });
        } else if let Some(of_old) = entry(Some(old), key) {
            map.insert(of_old.clone());
        }
    }
    Node { content: Content::Map(map), ..old.clone() }
}

fn differ(
    one: Option<&Node>,
    other: Option<&Node>,
    path: &str,
    except: &[&str],
    found: &mut Vec<String>,
) {
    if except.contains(&path) {
        return;
    }
    let is_map = |node: Option<&Node>| node.is_some_and(|node| node.as_map().is_some());
    if is_map(one) && is_map(other) {
        let only_other = keys_of(other).filter(|of_other| entry(one, &of_other.key).is_none());
        for any in keys_of(one).chain(only_other) {
            let value = |node| entry(node, &any.key).map(|entry| &entry.value);
            differ(value(one), value(other), &crate::tree::join(path, &any.key), except, found);
        }
        return;
    }
    let kept = |node: &Node| {
        // A section of nothing but omitted keys counts as empty.
        let inner: Vec<&str> = below(except, path);
        keys_of(Some(node)).next().is_some()
            && keys_of(Some(node)).all(|entry| inner.contains(&&*entry.key))
    };
    let one = one.filter(|node| !node.is_null() && !kept(node)).map(Node::to_value);
    let other = other.filter(|node| !node.is_null() && !kept(node)).map(Node::to_value);
    if one != other {
        found.push(path.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: &[&str] = &["filebeat.inputs", "filebeat.config", "tags"];

    fn settings(text: &str) -> Settings {
        Settings::parse("a.yml", text).unwrap()
    }

    #[test]
    fn only_what_is_live_is_taken() {
        let old = settings("name: a\nfilebeat: {inputs: [1], registry.flush: 1s}\ntags: [x]\n");
        let new = settings("name: b\nfilebeat: {inputs: [2, 3], config.inputs.path: p}\n");
        let yaml = old.with_live(&new, LIVE).export_yaml();
        for part in ["name: a", "flush: 1s", "- 2\n", "- 3\n", "path: p"] {
            assert!(yaml.contains(part), "{part} in {yaml}");
        }
        assert!(!yaml.contains("tags") && !yaml.contains("- 1\n"), "{yaml}");
        let from_nothing = settings("name: a").with_live(&new, LIVE).export_yaml();
        assert!(from_nothing.contains("- 3\n") && from_nothing.contains("name: a"));
    }

    #[test]
    fn what_has_changed_in_vain_is_named() {
        let old = settings(
            "name: a\nfilebeat: {inputs: [1], registry.flush: 1s}\noutput: {x: {hosts: [1], pw: 2}}\n",
        );
        assert_eq!(old.differences(&old, LIVE), Vec::<String>::new());
        let new = settings(
            "filebeat: {inputs: [2]}\noutput: {x: {hosts: [1], pw: 3}}\nqueue.mem.events: 7\ntags: [z]\n",
        );
        let changed = ["filebeat.registry", "name", "output.x.pw", "queue"];
        assert_eq!(old.differences(&new, LIVE), changed);
        let without = settings("name: a\noutput: {x: {hosts: [1], pw: 2}}\n");
        let only_live =
            settings("name: a\nfilebeat.inputs: [1]\noutput: {x: {hosts: [1], pw: 2}}\n");
        assert_eq!(without.differences(&only_live, LIVE), Vec::<String>::new());
    }
}
