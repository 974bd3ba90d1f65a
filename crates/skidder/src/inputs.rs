//! The types of inputs: one list, from the name in `type` to the function that reads its settings.

use crate::filestream::{self, Surroundings};
use skidder_config::{Section, nearest};
use skidder_read::{FilestreamSettings, InputKind};

/// Reads what is special to a type of input. Keys that all inputs share are left to the caller.
type Read = fn(&Section<'_>, &Surroundings<'_>) -> FilestreamSettings;

/// The types that there are.
const KINDS: [(&str, Read); 4] = [
    ("filestream", filestream::read),
    ("log", |section, outside| filestream::log::read(section, outside, InputKind::Log)),
    ("container", |section, outside| filestream::log::read(section, outside, InputKind::Container)),
    ("docker", |section, outside| filestream::log::read(section, outside, InputKind::Container)),
];

/// The types that Filebeat 9.6 has besides: an input of one of them is no typing mistake.
const NOT_HERE: [&str; 31] = [
    "aws-cloudwatch",
    "aws-s3",
    "azure-blob-storage",
    "azure-eventhub",
    "benchmark",
    "cel",
    "cloudfoundry",
    "cometd",
    "entity-analytics",
    "etw",
    "gcp-pubsub",
    "gcs",
    "http_endpoint",
    "httpjson",
    "journald",
    "kafka",
    "lumberjack",
    "mqtt",
    "netflow",
    "o365audit",
    "redis",
    "salesforce",
    "stdin",
    "streaming",
    "syslog",
    "tcp",
    "udp",
    "unifiedlogs",
    "unix",
    "websocket",
    "winlog",
];

/// Reads what is special to the type of an input. `None`, and the problem is reported, if there is no such type.
pub(crate) fn read(
    section: &Section<'_>,
    surroundings: &Surroundings<'_>,
) -> Option<FilestreamSettings> {
    // As in Filebeat.
    let kind = section.string("type").or("log");
    if let Some((_, read)) = KINDS.iter().find(|(name, _)| *name == &*kind) {
        return Some(read(section, surroundings));
    }
    if !kind.is_empty() {
        let message = format!("input type `{kind}` is not supported by skidder yet");
        let names = KINDS.map(|(name, _)| name);
        let hint = if NOT_HERE.contains(&&*kind) {
            format!("skidder reads files ({}); leave such inputs to Filebeat", listed(&names))
        } else if let Some(near) = nearest(&kind, names) {
            format!("did you mean `{near}`?")
        } else {
            format!("there is {}", listed(&names))
        };
        section.problem("type", message, hint);
    }
    None
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_type_is_here_or_not_and_named_once() {
        let all: Vec<&str> = KINDS.iter().map(|(name, _)| *name).chain(NOT_HERE).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(NOT_HERE.is_sorted());
    }
}
