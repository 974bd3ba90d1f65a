//! One settings tree out of several files and command line overrides.
//!
//! - Dots in keys are levels: `a.b: 1` and `a: {b: 1}` are the same, also mixed. The same setting
//!   twice in one file is an error, except that an empty one (`setup.kibana:`) gives way.
//! - Between files the later one wins: maps are merged key by key, everything else is replaced.
//!   **Lists are replaced as a whole**; Filebeat's library would mix them item by item, so that a
//!   second file with one host would keep the second host of the first. An empty value in a later
//!   file leaves a map or list of an earlier one alone.
//! - A number in a dotted key names a list item: `filebeat.inputs.0.enabled: false` changes the
//!   first input, and the number after the last item adds one.

use crate::inline;
use crate::node::{Content, Entry, Map, Node};
use crate::problem::{Position, Problem, Problems, Source};
use std::sync::Arc;

/// Levels of one dotted key; more is an error.
const KEY_LEVELS_MAX: usize = 20;

/// What to do when both sides have the same setting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// They are in the same file: a conflict.
    Same,
    /// The new one is from a later file: it wins.
    Later,
}

/// Splits dotted keys everywhere in `node`.
pub(crate) fn expand_dots(node: Node, problems: &Problems) -> Node {
    expand_dots_at(node, "", problems)
}

fn expand_dots_at(node: Node, path: &str, problems: &Problems) -> Node {
    let content = match node.content {
        Content::List(list) => {
            let expand =
                |(index, item)| expand_dots_at(item, &format!("{path}[{index}]"), problems);
            Content::List(list.into_iter().enumerate().map(expand).collect())
        }
        Content::Map(map) => {
            let mut expanded = Map::default();
            for entry in map.into_entries() {
                let key_path = join(path, &entry.key);
                let value = expand_dots_at(entry.value, &key_path, problems);
                let Some(nested) = nest(&entry.key, &entry.key_position, value, problems) else {
                    continue;
                };
                insert(&mut expanded, nested, path, Mode::Same, problems);
            }
            Content::Map(expanded)
        }
        scalar => scalar,
    };
    Node { content, ..node }
}

/// `a.b` and a value as the entry `a` of maps in maps.
fn nest(key: &str, position: &Position, value: Node, problems: &Problems) -> Option<Entry> {
    let levels: Vec<&str> = key.split('.').collect();
    if levels.len() > KEY_LEVELS_MAX {
        let message = format!("a key of more than {KEY_LEVELS_MAX} levels");
        problems.push(Problem::error(position.clone(), message));
        return None;
    }
    let dotted = levels.len() > 1;
    let entry = |level: &str, value: Node| Entry {
        key: level.to_owned(),
        key_position: position.clone(),
        value,
        indexed: dotted && list_index(level).is_some(),
    };
    let mut inner = value;
    for level in levels[1..].iter().rev() {
        let mut map = Map::default();
        map.insert(entry(level, inner));
        inner = Node::collection(position.clone(), Content::Map(map));
    }
    Some(entry(levels[0], inner))
}

/// The number of a list item: digits without a leading zero.
fn list_index(level: &str) -> Option<usize> {
    let canonical = level == "0" || !level.starts_with('0');
    let digits = level.bytes().all(|byte| byte.is_ascii_digit());
    if canonical && digits { level.parse().ok() } else { None }
}

/// A path for messages: `a.b`, `a[0]`.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Lays `new` over `old`; `new` is from a later source and wins.
pub(crate) fn merge(old: &mut Node, new: Node, problems: &Problems) {
    combine(old, new, "", Mode::Later, problems);
}

/// What is at a dotted path.
pub(crate) fn get<'a>(root: &'a Node, path: &str) -> Option<&'a Node> {
    path.split('.').try_fold(root, |node, level| Some(&node.as_map()?.get(level)?.value))
}

/// Puts a value at a dotted path, and maps on the way where there are none.
pub(crate) fn set(root: &mut Node, path: &str, value: Node) {
    let (level, below) =
        path.split_once('.').map_or((path, None), |(level, below)| (level, Some(below)));
    if root.as_map().is_none() {
        root.content = Content::Map(Map::default());
    }
    let Content::Map(map) = &mut root.content else { return };
    let position = value.position.clone();
    if map.get(level).is_none() {
        let value = Node::collection(position.clone(), Content::Map(Map::default()));
        map.insert(Entry { key: level.to_owned(), key_position: position, value, indexed: false });
    }
    let Some(entry) = map.get_mut(level) else { return };
    match below {
        Some(below) => set(&mut entry.value, below, value),
        None => entry.value = value,
    }
}

fn insert(map: &mut Map, new: Entry, path: &str, mode: Mode, problems: &Problems) {
    let Some(old) = map.get_mut(&new.key) else {
        map.insert(new);
        return;
    };
    let key_path = join(path, &new.key);
    old.indexed |= new.indexed;
    // The later place is reported unless the later value was dropped.
    if mode == Mode::Later && !new.value.is_null() {
        old.key_position = new.key_position;
    }
    combine(&mut old.value, new.value, &key_path, mode, problems);
}

fn combine(old: &mut Node, new: Node, path: &str, mode: Mode, problems: &Problems) {
    let old_is_collection = matches!(old.content, Content::Map(_) | Content::List(_));
    if old.is_null() {
        *old = new;
        return;
    }
    if new.is_null() && (mode == Mode::Same || old_is_collection) {
        return;
    }
    let conflict = match (&mut old.content, &new.content) {
        (Content::Map(_), Content::Map(_)) => false,
        (Content::List(_), Content::Map(items)) => !names_items(items),
        (Content::Map(items), Content::List(_)) if mode == Mode::Same => {
            let swap = names_items(items);
            if swap {
                // Written in the other order: the list first, then its items.
                let items = std::mem::replace(old, new);
                combine(old, items, path, mode, problems);
                return;
            }
            true
        }
        _ => true,
    };
    if conflict {
        if mode == Mode::Later {
            *old = new;
        } else {
            let message = format!("`{path}` is already set at {}", old.position);
            problems.push(
                Problem::error(new.position, message)
                    .hint("`a.b: 1` and `a: {b: 1}` are the same setting; remove one of the two"),
            );
        }
        return;
    }
    let Content::Map(entries) = new.content else { return };
    match &mut old.content {
        Content::Map(map) => {
            for entry in entries.into_entries() {
                insert(map, entry, path, mode, problems);
            }
        }
        Content::List(list) => {
            for entry in entries.into_entries() {
                change_item(list, entry, path, mode, problems);
            }
        }
        _ => {}
    }
}

fn names_items(map: &Map) -> bool {
    !map.is_empty() && map.iter().all(|entry| list_index(&entry.key).is_some())
}

fn change_item(list: &mut Vec<Node>, entry: Entry, path: &str, mode: Mode, problems: &Problems) {
    let Some(index) = list_index(&entry.key) else { return };
    let item_path = format!("{path}[{index}]");
    if let Some(item) = list.get_mut(index) {
        combine(item, entry.value, &item_path, mode, problems);
    } else if index == list.len() {
        list.push(entry.value);
    } else {
        let message = format!("`{item_path}` does not exist; `{path}` has {} items", list.len());
        problems.push(Problem::error(entry.key_position, message).hint("items count from 0"));
    }
}

/// Turns maps whose keys are `0`, `1`, … out of dotted keys into lists. Done once, at the end.
pub(crate) fn settle_lists(node: &mut Node) {
    match &mut node.content {
        Content::List(list) => list.iter_mut().for_each(settle_lists),
        Content::Map(map) => {
            let indexed = !map.is_empty() && map.iter().all(|entry| entry.indexed);
            let complete = (0..map.len()).all(|index| map.get(&index.to_string()).is_some());
            let mut entries = std::mem::take(map).into_entries();
            for entry in &mut entries {
                settle_lists(&mut entry.value);
            }
            if indexed && complete {
                entries.sort_by_key(|entry| list_index(&entry.key));
                let items = entries.into_iter().map(|entry| entry.value).collect();
                node.content = Content::List(items);
            } else {
                for entry in entries {
                    map.insert(entry);
                }
            }
        }
        _ => {}
    }
}

/// The tree of one `-E key=value` or `-M key=value`, as `option` says; `key` alone means true. `None` if there is nothing
/// to set.
pub(crate) fn parse_override(
    option: &str,
    text: &str,
    order: u32,
    problems: &Problems,
) -> Option<Node> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key.trim(), Some(value)),
        None => (text.trim(), None),
    };
    // Only the key is shown: the value may be a password.
    let source = Source::new(order, format!("{option} {key}"));
    let position = Position::whole(&source);
    if key.is_empty() {
        problems.push(Problem::error(position, "the name of the setting is missing").hint(
            format!("write `{option} key=value`, for example `{option} {}`", example(option)),
        ));
        return None;
    }
    let value = match value {
        None => Node::scalar(position.clone(), Content::Bool(true), "true"),
        Some(empty) if empty.trim().is_empty() => {
            let message = format!("`{key}` has no value after `=`; it is left as it is");
            problems.push(Problem::warning(position, message).hint("use `''` for an empty text"));
            return None;
        }
        Some(value) => match inline::parse(value, &position) {
            Ok(value) => without_text(value),
            Err(error) => {
                let message = format!("the value of `{key}` cannot be read: {error}");
                problems.push(Problem::error(position, message).hint(
                    "put it in single quotes (inside those of the shell) to keep it as text",
                ));
                return None;
            }
        },
    };
    Some(leaf(key, value, problems))
}

/// An override that means something.
fn example(option: &str) -> &'static str {
    if option == "-M" { "nginx.access.enabled=true" } else { "output.console.pretty=true" }
}

/// A list or map in brackets is no text, as in Filebeat; `a,b` may still be one, a password say.
fn without_text(mut value: Node) -> Node {
    let is_bracketed = value.text().is_some_and(|text| text.trim_start().starts_with(['[', '{']));
    if is_bracketed && matches!(value.content, Content::List(_) | Content::Map(_)) {
        value.text = None;
    }
    value
}

/// A tree that sets `key` to the text `value`, for values that do not come from a file.
pub(crate) fn text_setting(key: &str, value: &str, source: &Arc<Source>) -> Node {
    let value = Node::scalar(Position::whole(source), Content::String, value);
    leaf(key, value, &Problems::new())
}

/// A tree with this value at a key.
pub(crate) fn at_key(key: &str, value: Node) -> Node {
    leaf(key, value, &Problems::new())
}

fn leaf(key: &str, value: Node, problems: &Problems) -> Node {
    let position = value.position.clone();
    let mut map = Map::default();
    map.insert(Entry {
        key: key.to_owned(),
        key_position: position.clone(),
        value,
        indexed: false,
    });
    expand_dots(Node::collection(position, Content::Map(map)), problems)
}

/// The node at a dotted path; numbers name list items.
pub(crate) fn find<'a>(node: &'a Node, path: &str) -> Option<&'a Node> {
    let mut current = node;
    for level in path.split('.') {
        current = match &current.content {
            Content::Map(map) => &map.get(level)?.value,
            Content::List(list) => list.get(list_index(level)?)?,
            _ => return None,
        };
    }
    Some(current)
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
