//! Supported settings that behave differently: only what matters for a migration. All of it is in
//! `docs/filebeat-differences.md`.

use skidder_config::{Content, Node};

/// A setting as it is written in some file.
pub(super) struct Written<'a> {
    /// With dots, and `[]` for items of lists.
    pub(super) path: String,
    pub(super) node: &'a Node,
}

/// Settings, by the beginning of their path, or by a part of it behind `*`; and the difference.
const SET: &[(&str, &str)] = &[
    (
        "queue.disk",
        "the queue has a format of its own: let Filebeat deliver what it has in its queue before (stop \
         its inputs)",
    ),
    ("*.ssl.supported_protocols", "TLS 1.0 and 1.1 are not spoken; what is left of the list holds"),
    (
        "*.ignore_older",
        "a file that is ignored keeps its place; Filebeat moves it to the end of the file",
    ),
    ("*.tail_files", "holds for files that are there at the start, not for every new one"),
    (
        "*.clean_inactive",
        "a file with something to read is not forgotten; a running skidder goes on where it was",
    ),
    ("*.harvester_limit", "files that wait are served in turn, and a file that sleeps makes way"),
    ("output.file", "dates in file names are in UTC"),
    ("output.kafka.bulk_max_size", "also bounds a batch of a partition"),
    ("output.kafka.version", "brokers are asked what they speak; the setting decides nothing"),
    ("path.data", "`--path.data` on the command line, as in our service, wins over it"),
];

/// Settings that are not there, and what their default is here.
const UNSET: &[(&str, &str)] = &[(
    "filebeat.shutdown_timeout",
    "5s here (Filebeat: 0): a stop waits so long for answers, and repeats less",
)];

/// All settings that the file called `name` has.
pub(super) fn written<'a>(root: &'a Node, name: &str) -> Vec<Written<'a>> {
    let mut found = Vec::new();
    collect(root, String::new(), name, &mut found);
    found
}

fn collect<'a>(node: &'a Node, path: String, name: &str, found: &mut Vec<Written<'a>>) {
    match node.content() {
        Content::Map(map) if !map.is_empty() => {
            for entry in map.iter() {
                let dot = if path.is_empty() { "" } else { "." };
                collect(&entry.value, format!("{path}{dot}{}", entry.key), name, found);
            }
        }
        Content::List(list) if list.iter().any(|item| item.as_map().is_some()) => {
            for item in list {
                collect(item, format!("{path}[]"), name, found);
            }
        }
        _ if node.position().source().name() == name => found.push(Written { path, node }),
        _ => {}
    }
}

/// What behaves differently with these settings: the path, the place if it is written, and what.
pub(super) fn differences<'a>(
    written: &[Written<'a>],
) -> Vec<(&'static str, Option<&'a Node>, &'static str)> {
    let mut found = Vec::new();
    for (pattern, what) in SET {
        if let Some(setting) = written.iter().find(|setting| matches(pattern, &setting.path)) {
            found.push((*pattern, Some(setting.node), *what));
        }
    }
    for (pattern, what) in UNSET {
        if !written.iter().any(|setting| matches(pattern, &setting.path)) {
            found.push((*pattern, None, *what));
        }
    }
    found
}

fn matches(pattern: &str, path: &str) -> bool {
    let (path, pattern) = match pattern.strip_prefix('*') {
        Some(part) => match path.find(part) {
            Some(at) => (&path[at..], part),
            None => return false,
        },
        None => (path, pattern),
    };
    let rest = path.strip_prefix(pattern);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::Settings;

    #[test]
    fn settings_are_found_by_their_beginning_or_by_a_part() {
        assert!(
            matches("queue.disk", "queue.disk.max_size") && matches("queue.disk", "queue.disk")
        );
        assert!(!matches("queue.disk", "queue.diskette"));
        assert!(matches("*.ignore_older", "filebeat.inputs[].ignore_older"));
        assert!(!matches("*.ignore_older", "filebeat.inputs[].ignore_older_than"));
    }

    #[test]
    fn each_setting_is_told_once_and_a_missing_one_too() {
        let text = "filebeat.inputs:\n- {type: log, ignore_older: 1h, paths: [a, b]}\n\
                    - {type: log, ignore_older: 2h}\nqueue.disk.max_size: 1GB\n";
        let settings = Settings::parse("f.yml", text).unwrap();
        let written = written(settings.node(), "f.yml");
        let paths: Vec<&str> = written.iter().map(|setting| &*setting.path).collect();
        let input = "filebeat.inputs[]";
        let expected = [
            &format!("{input}.type"),
            &format!("{input}.ignore_older"),
            &format!("{input}.paths"),
            &format!("{input}.type"),
            &format!("{input}.ignore_older"),
            "queue.disk.max_size",
        ];
        assert_eq!(paths, expected);
        let found = differences(&written);
        let found: Vec<(&str, bool)> =
            found.iter().map(|found| (found.0, found.1.is_some())).collect();
        let expected =
            [("queue.disk", true), ("*.ignore_older", true), ("filebeat.shutdown_timeout", false)];
        assert_eq!(found, expected);
        let quiet = Settings::parse("f.yml", "filebeat.shutdown_timeout: 1s\n").unwrap();
        assert!(differences(&super::written(quiet.node(), "f.yml")).is_empty());
    }
}
