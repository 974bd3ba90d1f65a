//! A configuration of an older Filebeat in the words of today's, line by line: what need not change stays as it is,
//! comments among it, and each change has a comment above it.

mod edits;
mod input;
mod keys;
mod templates;

use edits::Edits;
use input::Input;
use keys::{Key, keys};
use std::collections::{BTreeMap, BTreeSet};

/// Keys with another name today: the whole path without lists; the new name of the last parts as they are written; why.
const RENAMED: &[(&str, &str, &str)] = &[
    ("filebeat.prospectors", "filebeat.inputs", "they are inputs since Filebeat 6.3"),
    ("filebeat.config.prospectors", "filebeat.config.inputs", "they are inputs since Filebeat 6.3"),
    ("filebeat.idle_timeout", "queue.mem.flush.timeout", "since Filebeat 6 this is the queue's"),
    ("output.elasticsearch.tls", "output.elasticsearch.ssl", "`ssl` since Filebeat 5"),
    ("output.logstash.tls", "output.logstash.ssl", "`ssl` since Filebeat 5"),
    (
        "output.elasticsearch.template.enabled",
        "setup.template.enabled",
        "since Filebeat 6 templates are in `setup`",
    ),
    (
        "output.elasticsearch.template.name",
        "setup.template.name",
        "since Filebeat 6 templates are in `setup`",
    ),
    (
        "output.elasticsearch.template.pattern",
        "setup.template.pattern",
        "since Filebeat 6 templates are in `setup`",
    ),
    (
        "output.elasticsearch.template.overwrite",
        "setup.template.overwrite",
        "since Filebeat 6 templates are in `setup`",
    ),
    ("output.elasticsearch.ilm.enabled", "setup.ilm.enabled", "since Filebeat 7 in `setup`"),
    (
        "output.elasticsearch.ilm.policy_name",
        "setup.ilm.policy_name",
        "since Filebeat 7 in `setup`",
    ),
];

/// Settings that stand at the left edge today, with all that is below them: the section that they are in, their name in
/// it, and why.
const AT_ROOT: &[(&str, &str, &str)] = &[
    ("xpack", "monitoring", "since Filebeat 7 without `xpack`"),
    ("shipper", "name", "`shipper` went with Filebeat 5"),
    ("shipper", "tags", "`shipper` went with Filebeat 5"),
];

/// Keys that have no place any more, and why.
const GONE: &[(&str, &str)] = &[
    (
        "filebeat.registry_file",
        "the registry is a folder since Filebeat 7, `filebeat.registry.path`",
    ),
    ("filebeat.spool_size", "it went with Filebeat 6: `queue.mem.events` bounds what waits"),
    ("filebeat.publish_async", "it went with Filebeat 6: always so"),
    ("filebeat.registry_flush", "see `filebeat.registry.flush`"),
    (
        "output.elasticsearch.template",
        "the template that it names is of an older Filebeat; `setup.template` makes one",
    ),
    ("output.elasticsearch.ilm", "see `setup.ilm`"),
    ("output.elasticsearch.document_type", "Elasticsearch has no types any more"),
    ("output.elasticsearch.save_topology", "it went with Filebeat 5"),
    ("output.elasticsearch.flush_interval", "it went with Filebeat 6: `queue.mem.flush.timeout`"),
    ("output.elasticsearch.tls.insecure", "see `ssl.verification_mode`"),
    ("output.logstash.tls.insecure", "see `ssl.verification_mode`"),
    ("output.logstash.port", "a host is written with its port: `hosts: [name:port]`"),
    ("output.logstash.flush_interval", "it went with Filebeat 6: `queue.mem.flush.timeout`"),
    ("shipper", "it went with Filebeat 5: `name` and `tags`"),
    ("shipper.refresh_topology_freq", "it went with Filebeat 5"),
    ("shipper.ignore_outgoing", "it went with Filebeat 5"),
    ("shipper.topology_expire", "it went with Filebeat 5"),
    ("shipper.geoip", "it went with Filebeat 5"),
    ("setup.template.versions", "it went with Filebeat 7"),
    ("bulk_queue_size", "it went with Filebeat 5: `queue.mem.events`"),
    ("queue_size", "it went with Filebeat 5: `queue.mem.events`"),
];

/// The file as it would be written today; nothing if it need not change.
pub(super) fn rewrite(text: &str) -> Option<String> {
    let found = keys(text);
    let mut edits = Edits::default();
    let lines: Vec<&str> = text.lines().collect();
    for key in &found {
        if !to_root(key, &found, &lines, &mut edits) {
            rewrite_key(key, &found, &mut edits);
        }
    }
    let mut items: BTreeMap<usize, Vec<&Key>> = BTreeMap::new();
    for key in found.iter().filter(|key| is_of_input(key)) {
        items.entry(key.item.unwrap_or(key.line)).or_default().push(key);
    }
    let ids: BTreeSet<&str> = found
        .iter()
        .filter(|key| is_of_input(key) && key.path.last().is_some_and(|last| last == "id"))
        .map(|key| bare(&key.value))
        .collect();
    for (at, keys) in items.values().enumerate() {
        let numbers = (at + 1..).step_by(items.len());
        let of = Input { numbers, ids: &ids, keys, all: &found, text, base: 3, container: "" };
        of.rewrite(&mut edits);
    }
    templates::rewrite(&found, text, &mut edits);
    (!edits.is_empty()).then(|| edits.apply(text))
}

/// Inputs below both the old and the new name, which would be one name twice: the line, from 1, and what to do.
pub(super) fn given_twice(text: &str) -> Option<(usize, String)> {
    let found = keys(text);
    let named = |name: &str| found.iter().find(|key| key.name() == name);
    let below = |name: &str| {
        let is_below = |key: &&Key| {
            key.name()
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        found.iter().find(is_below)
    };
    // An old setting with the value of the new one is only removed.
    let says_the_same = |old: &Key| {
        old.value.is_empty()
            || old
                .name()
                .strip_prefix("xpack.")
                .and_then(named)
                .is_some_and(|new| bare(&new.value) == bare(&old.value))
    };
    let mut olds = found.iter().filter(|key| key.name().starts_with("xpack.monitoring"));
    if let (Some(old), Some(new)) = (below("xpack.monitoring"), below("monitoring"))
        && !olds.all(says_the_same)
    {
        let new = new.line + 1;
        return Some((
            old.line + 1,
            format!(
                "`xpack.monitoring` and `monitoring` (line {new}) are the same setting: keep one of the two, and run this again"
            ),
        ));
    }
    if let (Some(old), Some(new)) = (named("filebeat.prospectors"), named("filebeat.inputs")) {
        let new = new.line + 1;
        return Some((
            old.line + 1,
            format!(
                "`filebeat.prospectors` and `filebeat.inputs` (line {new}) are the same setting: move all inputs below one of \
                 the two, and run this again"
            ),
        ));
    }
    None
}

/// The line, from 1, of the first inputs in braces that are of an older Filebeat: they are not rewritten.
pub(super) fn in_braces(text: &str) -> Option<usize> {
    let found = keys(text);
    let named = |name: &str| found.iter().find(|key| key.name() == name);
    let sections = ["filebeat.inputs", "filebeat.prospectors"].into_iter().filter_map(named);
    for section in sections {
        let lines = text.lines().enumerate().take(section.end).skip(section.line);
        for (at, line) in lines {
            let value = if at == section.line { &*section.value } else { line };
            let item = value.trim_start().trim_start_matches("- ").trim_start();
            let in_braces = item.starts_with('{') || at == section.line && item.starts_with('[');
            // Such a text of several lines ends with the section, at the latest.
            let rest = text.lines().take(section.end).skip(at).enumerate();
            let rest =
                rest.take_while(|(more, line)| *more == 0 || !line.trim_start().starts_with("- "));
            let is_modern = rest.into_iter().any(|(_, line)| line.contains("filestream"));
            if in_braces && item != "[]" && !is_modern {
                return Some(at + 1);
            }
        }
    }
    None
}

/// Whether a key is an option of an input, at its first level.
fn is_of_input(key: &Key) -> bool {
    let parts: Vec<&str> = key.path.iter().map(String::as_str).collect();
    key.item.is_some()
        && matches!(parts[..], ["filebeat", "inputs" | "prospectors", "[]", ref rest @ ..] if !rest.contains(&"[]"))
}

/// Moves a setting at the left edge, or the section that has nothing else; returns whether it is one.
fn to_root(key: &Key, all: &[Key], lines: &[&str], edits: &mut Edits) -> bool {
    let name = key.name();
    let above = key.path.len() - all_parts(key);
    for (section, own, why) in AT_ROOT {
        let Some(rest) = name.strip_prefix(section) else { continue };
        if rest.is_empty() && *section == "xpack" {
            let mut inner = all.iter().filter(|other| {
                other.path.first().is_some_and(|first| first == section) && other.path.len() > 1
            });
            if key.value.is_empty() && inner.all(|other| other.path[1] == *own) {
                edits.take_out(key, why);
                return true;
            }
        }
        let rest = rest.strip_prefix('.').and_then(|rest| rest.strip_prefix(own));
        let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('.')) else {
            continue;
        };
        let to = format!("{own}{rest}");
        let has_new = all.iter().any(|other| other.name() == to);
        match above {
            0 if !has_new => edits.rename(key, &to, why),
            0 => edits.take_out(key, why),
            1 => {
                if !edits.takes_out(key) {
                    edits.take_out(key, why);
                }
                if !has_new {
                    let top = all.iter().rfind(|top| top.column() == 0 && top.line <= key.line);
                    let last = top.map_or(key.end, |top| top.end.max(key.end)) - 1;
                    let first = format!("{to}{}", &lines[key.line][key.written.end..]);
                    let rest = lines[key.line + 1..key.end].iter().map(|line| {
                        let indent = line.len() - line.trim_start().len();
                        line[indent.min(key.column())..].to_owned()
                    });
                    let moved = [Edits::marked(0, why), first].into_iter().chain(rest);
                    edits.add(last, moved);
                }
            }
            _ => {}
        }
        return true;
    }
    false
}

fn rewrite_key(key: &Key, all: &[Key], edits: &mut Edits) {
    let name = key.name();
    // The parts that are written here.
    let own = all_parts(key);
    if let Some((_, to, why)) = RENAMED.iter().find(|(from, ..)| *from == name) {
        let to: Vec<&str> = to.split('.').collect();
        let above: Vec<&str> = key.path[..key.path.len() - own]
            .iter()
            .map(String::as_str)
            .filter(|part| *part != "[]")
            .collect();
        match to.strip_prefix(&above[..]) {
            Some(rest) if !rest.is_empty() => edits.rename(key, &rest.join("."), why),
            _ => move_to_root(key, &to.join("."), why, all, edits),
        }
    } else if let Some((_, why)) = GONE.iter().find(|(from, _)| *from == name) {
        edits.take_out(key, why);
    } else if name == "filebeat.config_dir" {
        let value = bare(&key.value);
        let to = format!("filebeat.config.inputs.path: '{}/*.yml'", value.trim_end_matches('/'));
        let why = "`config_dir` is `config.inputs` since Filebeat 6; its files are lists of inputs";
        if key.column() == 0 {
            edits.replace(key, &to, why);
        } else {
            edits.replace(key, to.trim_start_matches("filebeat."), why);
        }
    } else if name.ends_with("add_kubernetes_metadata.host") {
        edits.rename(key, "node", "`host` is `node` since Filebeat 7");
    }
}

/// How many parts of its path a key has in its own line.
fn all_parts(key: &Key) -> usize {
    let written = key.written.len();
    let mut length = 0;
    let mut count = 0;
    for part in key.path.iter().rev() {
        let next = length + part.len() + usize::from(count > 0);
        if next > written {
            break;
        }
        length = next;
        count += 1;
    }
    count.max(1)
}

/// Takes a key out of the section that it is in, and writes it at the left edge, behind the section.
fn move_to_root(key: &Key, to: &str, why: &str, all: &[Key], edits: &mut Edits) {
    let top = all.iter().rfind(|top| top.column() == 0 && top.line <= key.line);
    let last = top.map_or(key.end, |top| top.end.max(key.end)) - 1;
    edits.take_out(key, why);
    edits.add(last, [Edits::marked(0, why), format!("{to}: {}", key.value)]);
}

fn bare(value: &str) -> &str {
    let value = value.split(" #").next().unwrap_or(value).trim();
    value.trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests;
