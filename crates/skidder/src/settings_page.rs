//! Checks that the pages of settings list exactly the settings that are read.
use crate::agent::Agent;
use crate::assemble::assemble;
use crate::system::System;
use skidder_config::{Problems, Settings};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Pages with tables of settings. Those of processors are checked with their golden files.
const PAGES: [&str; 3] = ["settings.md", "filestream.md", "outputs.md"];

/// What begins a table with the names of an output, up to [`END`].
const OF_OUTPUT: &str = "<!-- settings: output.";
const END: &str = "<!-- end -->";

/// Settings whose tables have names that do not begin here.
const SHORT: [&str; 5] = ["filebeat.inputs.", "queue.", "outputs.", "output.", "monitoring."];

/// Settings that many parts have: the tables list them once. A queue has tables of its own.
const EVERYWHERE: [&str; 3] = ["enabled", "processors", "queue"];

/// Settings in the row of another setting.
const IN_OTHER_ROWS: [&str; 2] = [
    "filebeat.inputs.rotation.external.strategy.copytruncate.dateformat",
    "filebeat.inputs.rotation.external.strategy.copytruncate.suffix_regex",
];

/// Settings that are read before the others: to find the files, and to know what the rest means.
const READ_BEFORE: [&str; 6] =
    ["path.home", "path.config", "path.data", "path.logs", "keystore.path", "compat"];

const COMMON: &str = "
filebeat.inputs:
- {type: filestream, id: a, paths: [/none/*], compression: auto, pin: {enabled: true}, delete: {enabled: true},
   take_over: {enabled: true}, rotation.external.strategy.copytruncate: {suffix_regex: '\\.\\d+$'},
   parsers: [{multiline: {pattern: x, match: after}}, {multiline: {type: count, count_lines: 2}},
             {ndjson: {target: ''}}, {container: {stream: all}}, {syslog: {format: auto}},
             {include_message: {patterns: [a]}}, {auditd: {mode: parse}}]}
- {type: filestream, id: b, paths: [/none/*], file_identity.inode_marker.path: /none}
filebeat.config.inputs: {enabled: true, path: '/none/*.yml', reload: {enabled: true, period: 10s}}
filebeat.config.modules: {enabled: true, path: '/none/*.yml'}
http: {enabled: true, pprof: {enabled: true}}
logging: {event_data: {}, metrics: {enabled: true}}
monitoring: {enabled: true, elasticsearch: {hosts: [localhost]}, otlp: {enabled: true, endpoint: 'http://localhost'}}
";

/// An output of each kind, with a queue.
const OUTPUTS: [&str; 10] = [
    "output.elasticsearch: {hosts: [localhost]}\nqueue.mem: {}",
    "output.logstash: {hosts: [localhost]}\nqueue.disk: {max_size: 1GB, encryption: {key: abc}}",
    "output.kafka: {hosts: [localhost], topic: t}\nqueue.mem: {}",
    "output.redis: {hosts: [localhost], key: k}\nqueue.mem: {}",
    "output.otlp: {hosts: [localhost]}\nqueue.mem: {}",
    "output.s3: {bucket: logs, region: x, access_key_id: a, secret_access_key: b}\nqueue.mem: {}",
    "output.file: {path: /none}\nqueue.mem: {}",
    "output.console: {}\nqueue.mem: {}",
    "output.discard: {}\nqueue.mem: {}",
    "outputs: [{id: a, discard: {}, queue.mem: {}, dead_letters: {}}]",
];

/// Every setting that reading this text looks up, without the numbers of lists.
fn read_by(text: &str) -> BTreeSet<String> {
    let settings = Settings::parse("filebeat.yml", text).unwrap();
    let problems = Problems::new();
    problems.record_paths_read();
    let place = tempfile::tempdir().unwrap();
    let system = System::real().unwrap().for_trial();
    let system = System { directory: place.path().to_path_buf(), ..system };
    let now = system.clock.wall();
    drop(assemble(&settings, &problems, &system.config_context(), |name| {
        Some(Agent::temporary(name, now))
    }));
    problems.paths_read().iter().map(|path| without_numbers(path)).collect()
}

/// `fields[0].from` is `fields.from`.
fn without_numbers(path: &str) -> String {
    let parts = path.split('[').enumerate();
    parts.map(|(at, part)| if at == 0 { part } else { part.split_once(']').unwrap().1 }).collect()
}

/// Names between the backticks of a cell. `a.b`, `.c` is `a.b` and `a.c`.
fn names(cell: &str) -> Vec<String> {
    let all: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
    let base = all.first().and_then(|first| first.rsplit_once('.')).map_or("", |(base, _)| base);
    let whole = |name: &&str| match name.strip_prefix('.') {
        Some(last) => format!("{base}.{last}"),
        None => (*name).to_owned(),
    };
    all.iter().map(whole).collect()
}

/// Settings of the tables of a page. Those of an output get its name.
fn named(page: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let mut found = BTreeSet::new();
    let mut output = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix(OF_OUTPUT) {
            output = format!("output.{}.", name.trim_end_matches(" -->"));
        } else if line == END {
            output.clear();
        } else if line.starts_with("| `") {
            let cells: Vec<&str> = line.split('|').skip(1).collect();
            found.extend(names(cells[0]).iter().map(|name| format!("{output}{name}")));
        }
    }
    found
}

fn pages() -> Vec<PathBuf> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    PAGES.iter().map(|page| docs.join(page)).collect()
}

fn read_by_all() -> BTreeSet<String> {
    OUTPUTS.iter().flat_map(|output| read_by(&format!("{COMMON}{output}\n"))).collect()
}

/// Whether a row is about this setting, or about all that begins so. Rows of outputs have whole names.
fn is_about(name: &str, path: &str) -> bool {
    let is_output = path.starts_with("output.");
    // Tables of what several outputs have, as `codec.json.pretty`; and those of inputs and queues.
    let is_part =
        SHORT.iter().any(|start| path.starts_with(start)) && (!is_output || name.contains('.'));
    let is_end =
        |name: &str, path: &str| path == name || (is_part && path.ends_with(&format!(".{name}")));
    match name.strip_suffix(".*") {
        None => is_end(name, path),
        Some(all) => std::iter::successors(Some(path), |path| Some(path.rsplit_once('.')?.0))
            .any(|outer| is_end(all, outer)),
    }
}

#[test]
fn every_setting_that_is_read_stands_in_a_table() {
    let names: BTreeSet<String> = pages().iter().flat_map(|page| named(page)).collect();
    let paths_read = read_by_all();
    assert!(paths_read.len() > 300, "only {} settings are read", paths_read.len());
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let has_inside = |set: &BTreeSet<String>, path: &str| {
        set.iter().any(|other| other.starts_with(&format!("{path}.")))
    };
    let is_section = |path: &str| has_inside(&paths_read, path) || has_inside(&names, path);
    let missing: Vec<&String> = paths_read
        .iter()
        .filter(|path| !EVERYWHERE.contains(&&*last(path)) && !is_section(path))
        .filter(|path| !IN_OTHER_ROWS.contains(&&***path))
        .filter(|path| !names.iter().any(|name| is_about(name, path)))
        .collect();
    assert!(missing.is_empty(), "read, and in no table of {PAGES:?}: {missing:#?}");
}

#[test]
fn what_stands_in_other_rows_stands_there() {
    let text: String = pages().iter().map(|page| std::fs::read_to_string(page).unwrap()).collect();
    for path in IN_OTHER_ROWS {
        let (_, last) = path.rsplit_once('.').unwrap();
        assert!(text.contains(&format!("`{last}`")), "{path} is explained nowhere");
    }
}

#[test]
fn every_setting_of_the_tables_is_read() {
    let paths_read = read_by_all();
    let roots: BTreeSet<&str> =
        paths_read.iter().filter_map(|path| path.split('.').next()).collect();
    let unread: Vec<String> = named(&pages()[0])
        .into_iter()
        .filter(|name| name.split_once('.').is_some_and(|(root, _)| roots.contains(root)))
        .filter(|name| !READ_BEFORE.contains(&&**name))
        .filter(|name| !paths_read.iter().any(|path| is_about(name, path)))
        .collect();
    assert!(unread.is_empty(), "in a table of settings.md, and not read: {unread:#?}");
}
