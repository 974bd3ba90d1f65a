//! Inputs in templates of autodiscover and in `hints.default_config`, of containers with an id.

use super::edits::Edits;
use super::input::Input;
use super::keys::Key;
use std::collections::{BTreeMap, BTreeSet};

/// Variables with the id of a container.
const CONTAINER: [&str; 3] =
    ["${data.container.id}", "${data.kubernetes.container.id}", "${data.docker.container.id}"];

/// How many parts lead to the options of an input: in a template, and in `hints.default_config`.
const BASES: [usize; 2] = [8, 6];

/// Writes them as `filestream` inputs, as those of the file. One without a type, or for no container, stays.
pub(super) fn rewrite(found: &[Key], text: &str, edits: &mut Edits) {
    let mut inputs: BTreeMap<(usize, usize), Vec<&Key>> = BTreeMap::new();
    for key in found {
        if let Some((base, begin)) = input_of(key, found) {
            inputs.entry((begin, base)).or_default().push(key);
        }
    }
    let lines: Vec<&str> = text.lines().collect();
    let ids = BTreeSet::new();
    for (number, ((_, base), keys)) in (1..).zip(&inputs) {
        let (Some(first), Some(last)) = (keys.first(), keys.iter().map(|key| key.end).max()) else {
            continue;
        };
        let own = lines[first.line..last].join("\n");
        let used = CONTAINER.into_iter().find(|variable| own.contains(variable));
        let has_type = keys.iter().any(|key| key.path[*base..] == ["type"]);
        if let (Some(container), true) = (used, has_type) {
            let (numbers, ids) = ((number..).step_by(1), &ids);
            let input = Input { numbers, ids, keys, all: found, text, base: *base, container };
            input.rewrite(edits);
        }
    }
}

/// Where the options of the input of a key begin in its path, and the line where that input begins.
fn input_of(key: &Key, found: &[Key]) -> Option<(usize, usize)> {
    let parts: Vec<&str> = key.path.iter().map(String::as_str).collect();
    let ["filebeat", "autodiscover", "providers", "[]", rest @ ..] = &parts[..] else {
        return None;
    };
    match rest {
        ["templates", "[]", "config", "[]", option @ ..] => {
            let is_own = !option.is_empty() && !option.contains(&"[]");
            Some((BASES[0], key.item.filter(|_| is_own)?))
        }
        ["hints", "default_config", option @ ..] => {
            let above = found
                .iter()
                .rfind(|above| above.line < key.line && above.path == key.path[..BASES[1]])?;
            (!option.is_empty() && !option.contains(&"[]")).then_some((BASES[1], above.line))
        }
        _ => None,
    }
}
