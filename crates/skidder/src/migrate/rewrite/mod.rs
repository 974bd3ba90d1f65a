//! A configuration of an older Filebeat in the words of today's, line by line: what need not change stays as it is,
//! comments among it, and each change has a comment above it.

mod edits;
mod keys;

use edits::Edits;
use keys::{Key, keys};
use std::collections::BTreeMap;

/// Keys with another name today: the whole path without lists; the new name of the last parts as they are written; why.
const RENAMED: &[(&str, &str, &str)] = &[
    ("filebeat.prospectors", "filebeat.inputs", "they are inputs since Filebeat 6.3"),
    ("filebeat.config.prospectors", "filebeat.config.inputs", "they are inputs since Filebeat 6.3"),
    ("filebeat.idle_timeout", "queue.mem.flush.timeout", "since Filebeat 6 this is the queue's"),
    ("xpack.monitoring", "monitoring", "since Filebeat 7 without `xpack`"),
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
    ("setup.template.versions", "it went with Filebeat 7"),
    ("bulk_queue_size", "it went with Filebeat 5: `queue.mem.events`"),
    ("queue_size", "it went with Filebeat 5: `queue.mem.events`"),
];

/// Options of `log` inputs that have another name in `filestream` inputs.
const OPTIONS: &[(&str, &str)] = &[
    ("scan_frequency", "prospector.scanner.check_interval"),
    ("exclude_files", "prospector.scanner.exclude_files"),
    ("symlinks", "prospector.scanner.symlinks"),
    ("recursive_glob.enabled", "prospector.scanner.recursive_glob"),
    ("harvester_buffer_size", "buffer_size"),
    ("max_bytes", "message_max_bytes"),
    ("backoff", "backoff.init"),
    ("max_backoff", "backoff.max"),
    ("close_inactive", "close.on_state_change.inactive"),
    ("close_older", "close.on_state_change.inactive"),
    ("close_renamed", "close.on_state_change.renamed"),
    ("force_close_files", "close.on_state_change.removed"),
    ("close_removed", "close.on_state_change.removed"),
    ("close_eof", "close.reader.on_eof"),
    ("close_timeout", "close.reader.after_interval"),
];

/// Options of `log` inputs that have no place in `filestream` inputs.
const OPTIONS_GONE: &[(&str, &str)] = &[
    ("backoff_factor", "`filestream` doubles the pause"),
    ("document_type", "it went with Filebeat 6; a field of your own says it: `fields`"),
    ("partial_line_waiting", "it went with Filebeat 5"),
    ("spool_size", "it went with Filebeat 5"),
    ("combine_partial", "records that were cut are joined, always"),
    ("cri", "both kinds of records are known, always"),
    ("allow_deprecated_use", "it is for inputs that are deprecated"),
    ("containers", "`paths` and the parser `container` say it"),
    ("scan", "all files get their turns at the same time"),
];

/// The file as it would be written today; nothing if it need not change.
pub(super) fn rewrite(text: &str) -> Option<String> {
    let found = keys(text);
    let mut edits = Edits::default();
    for key in &found {
        rewrite_key(key, &found, &mut edits);
    }
    let mut items: BTreeMap<usize, Vec<&Key>> = BTreeMap::new();
    for key in found.iter().filter(|key| is_of_input(key)) {
        items.entry(key.item.unwrap_or(key.line)).or_default().push(key);
    }
    for (number, keys) in items.values().enumerate() {
        rewrite_input(number + 1, keys, &found, text, &mut edits);
    }
    (!edits.is_empty()).then(|| edits.apply(text))
}

/// Whether a key is an option of an input, at its first level.
fn is_of_input(key: &Key) -> bool {
    let parts: Vec<&str> = key.path.iter().map(String::as_str).collect();
    key.item.is_some()
        && matches!(parts[..], ["filebeat", "inputs" | "prospectors", "[]", ref rest @ ..] if !rest.contains(&"[]"))
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
    let top = all.iter().filter(|top| top.column() == 0 && top.line <= key.line).next_back();
    let last = top.map_or(key.end, |top| top.end.max(key.end)) - 1;
    edits.take_out(key, why);
    edits.add(last, [Edits::marked(0, why), format!("{to}: {}", key.value)]);
}

fn bare(value: &str) -> &str {
    let value = value.split(" #").next().unwrap_or(value).trim();
    value.trim_matches(['"', '\''])
}

/// One input: a `log`, `container` or `docker` input becomes a `filestream` input with parsers.
fn rewrite_input(number: usize, keys: &[&Key], all: &[Key], text: &str, edits: &mut Edits) {
    let option = |key: &Key| -> String {
        let at = key.path.iter().rposition(|part| part == "[]").map_or(0, |at| at + 1);
        key.path[at..].join(".")
    };
    let is_of = |key: &Key, name: &str| {
        let own = option(key);
        own == name || own.starts_with(&format!("{name}."))
    };
    let find = |name: &str| keys.iter().find(|key| option(key) == name).copied();
    let kind_key = find("type").or_else(|| find("input_type"));
    // As in Filebeat.
    let kind = kind_key.map_or("log", |key| bare(&key.value));
    let kinds = ["log", "container", "docker"];
    if !kinds.contains(&kind) {
        if let Some(key) = find("input_type") {
            edits.rename(key, "type", "`input_type` is `type` since Filebeat 6");
        }
        return;
    }
    let why = format!(
        "`{kind}` inputs are `filestream` inputs since Filebeat 7.14; it takes their files over"
    );
    let (Some(first), Some(last)) = (keys.first(), keys.iter().map(|key| key.end).max()) else {
        return;
    };
    let column = first.column();
    let indent = " ".repeat(column);
    let mut added = Vec::new();
    match kind_key {
        Some(key) => edits.replace(key, "type: filestream", &why),
        None => {
            added.push(Edits::marked(column, &why));
            added.push(format!("{indent}type: filestream"));
        }
    }
    for key in keys {
        let name = option(key);
        if let Some((_, to)) = OPTIONS.iter().find(|(from, _)| *from == name) {
            edits.rename(key, to, &format!("`{name}` of `log` inputs"));
        } else if let Some((_, why)) = OPTIONS_GONE.iter().find(|(from, _)| is_of(key, from)) {
            edits.take_out(key, why);
        } else if name == "tail_files" {
            match bare(&key.value) {
                "true" => edits.replace(
                    key,
                    "ignore_inactive: since_first_start",
                    "`tail_files` of `log` inputs",
                ),
                _ => edits.take_out(key, "it is the default"),
            }
        }
    }
    if find("id").is_none() {
        added.push(Edits::marked(
            column,
            "each `filestream` input has an `id` of its own; never change it",
        ));
        added.push(format!("{indent}id: {kind}-{number}"));
    }
    added.push(format!("{indent}take_over.enabled: true"));
    if kind == "docker" && find("paths").is_none() {
        let ids =
            all.iter().find(|key| is_below(key, keys) && key.name().ends_with("containers.ids"));
        let folder =
            all.iter().find(|key| is_below(key, keys) && key.name().ends_with("containers.path"));
        let folder = folder.map_or("/var/lib/docker/containers", |key| bare(&key.value));
        added.push(format!("{indent}paths:"));
        for id in ids.map(|key| items(key, text)).unwrap_or_default() {
            added.push(format!("{indent}  - '{}/{id}/*.log'", folder.trim_end_matches('/')));
        }
    }
    added.extend(parsers(kind, keys, all, text, column, &is_of, edits));
    edits.add(last - 1, added);
}

fn is_below(key: &Key, item: &[&Key]) -> bool {
    let first = item.iter().map(|key| key.line).min().unwrap_or(0);
    let last = item.iter().map(|key| key.end).max().unwrap_or(0);
    (first..last).contains(&key.line)
}

/// The items of a list, written in brackets or one a line.
fn items(key: &Key, text: &str) -> Vec<String> {
    let bracketed = key.value.trim_start_matches('[').trim_end_matches(']');
    if !bracketed.is_empty() {
        return bracketed.split(',').map(|item| bare(item).to_owned()).collect();
    }
    let lines = text.lines().skip(key.line + 1).take(key.end - key.line - 1);
    lines
        .filter_map(|line| line.trim_start().strip_prefix('-'))
        .map(|item| bare(item).to_owned())
        .collect()
}

/// The lines of `parsers`, made of `json.*`, `multiline.*` and the records of a container, which are taken out.
fn parsers(
    kind: &str,
    keys: &[&Key],
    all: &[Key],
    text: &str,
    column: usize,
    is_of: &dyn Fn(&Key, &str) -> bool,
    edits: &mut Edits,
) -> Vec<String> {
    let pad = " ".repeat(column);
    let lines: Vec<&str> = text.lines().collect();
    let mut made = Vec::new();
    if kind != "log" {
        made.push(format!("{pad}  - container:"));
        let mut any = false;
        for name in ["stream", "format"] {
            let below = format!("containers.{name}");
            let own = |key: &&Key| {
                let whole = key.name();
                is_below(key, keys) && (is_of(key, name) || whole.ends_with(&below))
            };
            if let Some(key) = all.iter().find(own) {
                made.push(format!("{pad}      {name}: {}", key.value));
                any = true;
                if is_of(key, name) {
                    edits.take_out(key, "it is an option of the parser `container`");
                }
            }
        }
        if !any {
            made.pop();
            made.push(format!("{pad}  - container: ~"));
        }
    }
    for (name, parser) in [("json", "ndjson"), ("multiline", "multiline")] {
        let own: Vec<&Key> = keys.iter().copied().filter(|key| is_of(key, name)).collect();
        if own.is_empty() {
            continue;
        }
        let why = format!("`{name}` is the parser `{parser}`");
        let mut options: Vec<(String, Vec<&str>, usize)> = Vec::new();
        for key in &own {
            let is_whole = key.path.last().is_some_and(|last| last == name);
            let inner: Vec<&Key> = if is_whole {
                let below = |other: &&Key| other.line > key.line && other.line < key.end;
                all.iter()
                    .filter(below)
                    .filter(|other| other.path.len() == key.path.len() + 1)
                    .collect()
            } else {
                vec![key]
            };
            for option in inner {
                let last = option.path.last().cloned().unwrap_or_default();
                let own = lines[option.line..option.end].to_vec();
                options.push((last, own, option.written.end));
            }
            edits.take_out(key, &why);
        }
        made.push(format!("{pad}  - {parser}:"));
        if name == "json" {
            let under_root = options.iter().any(|(last, own, end)| {
                last == "keys_under_root"
                    && bare(own[0][*end..].trim_start_matches([':', ' '])) == "true"
            });
            made.push(format!("{pad}      target: {}", if under_root { "''" } else { "json" }));
            options.retain(|(last, ..)| last != "keys_under_root");
        }
        for (last, own, end) in options {
            made.push(format!("{pad}      {last}{}", &own[0][end..]));
            made.extend(own[1..].iter().map(|line| format!("{pad}    {line}")));
        }
    }
    if !made.is_empty() {
        made.insert(0, format!("{pad}parsers:"));
        made.insert(
            0,
            Edits::marked(column, "what was said of lines and records is done by parsers"),
        );
    }
    made
}

#[cfg(test)]
mod tests;
