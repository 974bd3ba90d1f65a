//! `logging.selectors`, `-d`: which parts of the program log debug lines.
//!
//! Filebeat selects by the names of its loggers. Ours are crate and module
//! (`skidder_read.catalog.watched`). A selector is the name of one, its beginning, any part of it,
//! or a name of Filebeat's for the same thing.

use std::collections::BTreeSet;

/// Names of Filebeat's loggers, and where here the same is done.
const THEIRS: &[(&str, &[&str])] = &[
    ("api", &["skidder_observe"]),
    ("beat", &["skidder"]),
    ("cfgfile", &["skidder"]),
    ("cfgwarn", &["skidder"]),
    ("cloudwatch_poller", &["skidder_input_aws.cloudwatch"]),
    ("config", &["skidder"]),
    ("crawler", &["skidder"]),
    ("diskqueue", &["skidder_pipeline.disk"]),
    ("elasticsearch", &["skidder_output_elasticsearch"]),
    ("esclientleg", &["skidder_output_elasticsearch", "skidder_net"]),
    ("eslegclient", &["skidder_output_elasticsearch", "skidder_net"]),
    ("file_watcher", &["skidder_read", "skidder_input_file.scanner"]),
    ("filestream", &["skidder_read"]),
    ("gcp.pubsub", &["skidder_input_pubsub", "skidder_grpc"]),
    ("gcs", &["skidder_input_gcs", "skidder_google", "skidder_input_objects"]),
    ("harvester", &["skidder_read"]),
    ("input", &["skidder_read"]),
    ("input.aws-cloudwatch", &["skidder_input_aws.cloudwatch"]),
    ("input.azure-blob-storage", &["skidder_input_azure", "skidder_input_objects"]),
    ("input.azure-eventhub", &["skidder_input_eventhub", "skidder_amqp"]),
    ("input.container", &["skidder_read", "skidder_parse"]),
    ("input.filestream", &["skidder_read"]),
    ("input.log", &["skidder_read"]),
    ("kafka", &["skidder_output_kafka", "skidder_input_kafka", "skidder_kafka"]),
    ("kerberos", &["skidder_kerberos"]),
    ("kubernetes", &["skidder_lookups"]),
    ("monitoring", &["skidder_observe", "skidder.monitoring"]),
    ("multiline", &["skidder_parse"]),
    ("otlp", &["skidder_output_otlp"]),
    ("parser", &["skidder_parse"]),
    ("processors", &["skidder_processors", "skidder_lookups", "skidder_script"]),
    ("prospector", &["skidder_read", "skidder_input_file.scanner"]),
    ("publish", &["skidder_pipeline"]),
    ("publisher", &["skidder_pipeline"]),
    ("publisher_pipeline_output", OUTPUTS),
    ("redis", &["skidder_outputs.redis", "skidder_input_redis", "skidder_redis"]),
    ("registrar", &["skidder_registry", "skidder_pipeline.registrar"]),
    ("registry", &["skidder_registry"]),
    ("s3", &["skidder_output_s3", "skidder_input_aws", "skidder_input_objects"]),
    ("service", &["skidder"]),
    ("sqs", &["skidder_input_aws"]),
    ("template", &["skidder_output_elasticsearch"]),
    ("tls", &["skidder_tls"]),
    ("transport", OUTPUTS),
];

/// The crates of the outputs, and the network under them.
const OUTPUTS: &[&str] = &[
    "skidder_outputs",
    "skidder_output_elasticsearch",
    "skidder_output_otlp",
    "skidder_output_s3",
    "skidder_output_kafka",
    "skidder_net",
];

/// The parts that log debug lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selectors(BTreeSet<String>);

impl Selectors {
    /// These; none or `*`: all parts.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: BTreeSet<String> = names
            .into_iter()
            .map(|name| name.trim().replace("::", "."))
            .filter(|name| !name.is_empty())
            .collect();
        if names.contains("*") { Self::default() } else { Self(names) }
    }

    /// Whether a logger, with dots between its parts, is one of them.
    pub(crate) fn select(&self, logger: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|name| selects(name, logger))
    }
}

fn selects(name: &str, logger: &str) -> bool {
    if is_in(name, logger) || logger.split('.').any(|part| part == name) {
        return true;
    }
    let theirs = THEIRS.iter().find(|(theirs, _)| *theirs == name);
    theirs.is_some_and(|(_, ours)| ours.iter().any(|ours| is_in(ours, logger)))
}

/// Whether a logger has this name, or is a part of what has.
fn is_in(name: &str, logger: &str) -> bool {
    logger.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_names_beginnings_parts_and_names_of_filebeat() {
        let table = [
            ("", "skidder_read.catalog", true),
            ("*", "skidder_read.catalog", true),
            ("x,*", "skidder_read.catalog", true),
            ("skidder_read", "skidder_read.catalog", true),
            ("skidder_read.cat", "skidder_read.catalog", false),
            ("skidder_read::catalog", "skidder_read.catalog.watched", true),
            ("catalog", "skidder_read.catalog.watched", true),
            ("elasticsearch", "skidder_output_elasticsearch.worker", true),
            ("elasticsearch", "skidder_outputs.redis", false),
            ("harvester, kafka", "skidder_read.reader", true),
            ("harvester, kafka", "skidder_output_kafka.send", true),
            ("harvester, kafka", "skidder_outputs.redis", false),
            ("config", "skidder.reload", true),
            ("config", "skidder_read.reader", false),
            ("nothing", "skidder_read.reader", false),
        ];
        for (names, logger, expected) in table {
            let selectors = Selectors::new(names.split(','));
            assert_eq!(selectors.select(logger), expected, "{names} {logger}");
        }
    }

    #[test]
    fn names_of_filebeat_are_in_order_and_lead_to_crates_of_ours() {
        assert!(THEIRS.is_sorted_by_key(|(name, _)| *name));
        for (_, ours) in THEIRS {
            assert!(ours.iter().all(|name| name.starts_with("skidder")));
        }
    }
}
