//! Inputs as configured, and their types: two lists, of those that read files and of those that are tasks, from the name
//! in `type` to the function that reads the settings.

#[cfg(feature = "azure")]
use crate::azure_eventhub;
use crate::filestream::{self, InputContext, log};
#[cfg(feature = "gcp-pubsub")]
use crate::gcp_pubsub;
use crate::input_plan::{InputPlan, OfType};
use crate::input_print::InputPrint;
use crate::input_settings::{EVERY_INPUT, TYPE};
use crate::redis_input;
use skidder_config::{Group, Item, Kinds, Section, nearest};
use skidder_event::Map;
use skidder_inputs::Context;
use skidder_read::{Bind, FilestreamSettings, InputKind, Peer, TakeOver};
use std::sync::Arc;

/// One input, as it feeds one output.
pub(crate) struct Input {
    /// Its number in the configuration; the first is 0.
    pub(crate) number: usize,
    /// Its id; empty if it has none.
    pub(crate) id: String,
    /// The container or other object that it is for, if autodiscover made it.
    pub(crate) object: Option<String>,
    pub(crate) reads: Reads,
    pub(crate) print: InputPrint,
    pub(crate) plan: Arc<InputPlan>,
    /// The plan that runs, or in a trial a wrapper that records its work.
    pub(crate) bind: Arc<dyn Bind>,
    /// If it reads files and feeds several outputs: its place among its like.
    pub(crate) peer: Option<Peer>,
}

/// Where an input gets its events from.
pub(crate) enum Reads {
    /// Files, which each output reads for itself.
    Files(Box<FilestreamSettings>),
    /// Anything else; of an input that feeds several outputs, only one of these runs.
    Task(Box<dyn skidder_input::Input>),
}

impl Input {
    /// Its type, as in `type: filestream`.
    pub(crate) fn kind(&self) -> &'static str {
        self.reads.kind()
    }

    /// Its name in messages: its id; without one its type and address, or its number.
    pub(crate) fn name(&self) -> String {
        let address = match &self.reads {
            Reads::Files(_) => None,
            Reads::Task(input) => input.address(),
        };
        match address {
            _ if !self.id.is_empty() => self.id.clone(),
            Some(address) => format!("{} {address}", self.kind()),
            None => format!("{} #{}", self.kind(), self.number),
        }
    }

    /// What it is called where inputs are listed: one that autodiscover made by its container, since its id is made of
    /// numbers.
    pub(crate) fn title(&self) -> String {
        match &self.object {
            // It names metrics, too, which differ.
            Some(object) if self.id.is_empty() => format!("{object} #{}", self.number),
            Some(object) => object.clone(),
            None => self.name(),
        }
    }

    /// Whether `name` is its id, or its name in messages.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.id == name || self.name() == name
    }

    /// Its settings, if it reads files.
    pub(crate) fn files(&self) -> Option<&FilestreamSettings> {
        match &self.reads {
            Reads::Files(settings) => Some(settings),
            Reads::Task(_) => None,
        }
    }

    /// The same, mutable.
    pub(crate) fn files_mut(&mut self) -> Option<&mut FilestreamSettings> {
        match &mut self.reads {
            Reads::Files(settings) => Some(settings),
            Reads::Task(_) => None,
        }
    }
}

impl Reads {
    /// The type, as in `type: filestream`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Files(settings) => settings.kind.name(),
            Self::Task(input) => input.kind(),
        }
    }

    /// Its effect on events.
    pub(crate) fn of_type(&self) -> OfType {
        match self {
            Self::Files(settings) => {
                let tag = (settings.take_over != TakeOver::Off).then_some("take_over");
                OfType {
                    tag,
                    makes_fields: settings.parsers.makes_fields(),
                    relays: false,
                    metadata: Map::new(),
                }
            }
            Self::Task(input) => OfType {
                tag: None,
                makes_fields: input.makes_fields(),
                relays: input.relays(),
                metadata: input.metadata(),
            },
        }
    }
}

/// Reads what is special to a type of file input. Keys that all inputs share are left to the caller.
type Read = fn(&Section<'_>, &InputContext<'_>) -> FilestreamSettings;

/// An item of `filebeat.inputs`.
pub(crate) static INPUT: Group = Group::new("input", "An input, by its `type`.")
    .kinds(Kinds::by_tag("type", "log", kinds).with(&[&EVERY_INPUT]));

/// The types that there are, with their settings.
fn kinds() -> Vec<(&'static str, &'static Group)> {
    let files = FILES.iter().map(|(name, _, group)| (*name, *group));
    files
        .chain(skidder_inputs::SETTINGS.iter().copied())
        .chain([
            (STDIN, &filestream::stdin::STDIN),
            (DOCKER_LOGS, &filestream::docker_logs::DOCKER_LOGS),
            (JOURNALD, &filestream::journald::JOURNALD),
            (REDIS, &redis_input::REDIS),
            #[cfg(feature = "aws")]
            (AWS_S3, &filestream::aws_s3::AWS_S3),
            #[cfg(feature = "azure")]
            (AZURE_BLOB_STORAGE, &filestream::azure_blob_storage::AZURE_BLOB_STORAGE),
            #[cfg(feature = "azure")]
            (AZURE_EVENTHUB, &azure_eventhub::AZURE_EVENTHUB),
            #[cfg(feature = "aws")]
            (AWS_CLOUDWATCH, &filestream::aws_cloudwatch::AWS_CLOUDWATCH),
            #[cfg(feature = "gcp-pubsub")]
            (GCP_PUBSUB, &gcp_pubsub::GCP_PUBSUB),
            #[cfg(feature = "gcs")]
            (GCS, &filestream::gcs::GCS),
            #[cfg(feature = "kafka")]
            (KAFKA, &filestream::kafka::KAFKA),
        ])
        .collect()
}

/// The types that read files; the others are [`skidder_inputs::KINDS`].
const FILES: [(&str, Read, &Group); 4] = [
    ("filestream", filestream::read, &filestream::FILESTREAM),
    ("log", |section, context| log::read(section, context, InputKind::Log), &log::LOG),
    ("container", read_container, &log::CONTAINER),
    ("docker", read_container, &log::CONTAINER),
];

fn read_container(section: &Section<'_>, context: &InputContext<'_>) -> FilestreamSettings {
    log::read(section, context, InputKind::Container)
}

/// The type that reads no files, but has settings of those that do.
const STDIN: &str = skidder_inputs::stdin::KIND;

/// Another type that has settings of those that read files.
const DOCKER_LOGS: &str = skidder_inputs::docker_logs::KIND;

/// One more, whose events can go through parsers.
const JOURNALD: &str = skidder_inputs::journald::KIND;

/// A type with a crate of its own.
const REDIS: &str = skidder_input_redis::KIND;

/// Another one, whose objects are read as files are.
#[cfg(feature = "aws")]
const AWS_S3: &str = skidder_input_aws::KIND;

/// A type of the same crate.
#[cfg(feature = "aws")]
const AWS_CLOUDWATCH: &str = skidder_input_aws::cloudwatch::KIND;

/// The same for containers of Azure.
#[cfg(feature = "azure")]
const AZURE_BLOB_STORAGE: &str = skidder_input_azure::KIND;

/// A type of Azure with a crate of its own.
#[cfg(feature = "azure")]
const AZURE_EVENTHUB: &str = skidder_input_eventhub::KIND;

/// A third one, of Google's.
#[cfg(feature = "gcs")]
const GCS: &str = skidder_input_gcs::KIND;

/// A type with a crate of its own.
#[cfg(feature = "gcp-pubsub")]
const GCP_PUBSUB: &str = skidder_input_pubsub::KIND;

/// A type with a crate of its own, and parsers.
#[cfg(feature = "kafka")]
const KAFKA: &str = skidder_input_kafka::KIND;

/// The types that Filebeat 9.6 has besides: an input of one of them is no typing mistake.
const NOT_HERE: [&str;
    12 + 2 * cfg!(not(feature = "aws")) as usize
        + 2 * cfg!(not(feature = "azure")) as usize
        + cfg!(not(feature = "gcp-pubsub")) as usize
        + cfg!(not(feature = "gcs")) as usize
        + cfg!(not(feature = "kafka")) as usize] = [
    #[cfg(not(feature = "aws"))]
    "aws-cloudwatch",
    #[cfg(not(feature = "aws"))]
    "aws-s3",
    #[cfg(not(feature = "azure"))]
    "azure-blob-storage",
    #[cfg(not(feature = "azure"))]
    "azure-eventhub",
    "cel",
    "cloudfoundry",
    "cometd",
    "entity-analytics",
    "etw",
    #[cfg(not(feature = "gcp-pubsub"))]
    "gcp-pubsub",
    #[cfg(not(feature = "gcs"))]
    "gcs",
    "httpjson",
    #[cfg(not(feature = "kafka"))]
    "kafka",
    "o365audit",
    "salesforce",
    "streaming",
    "unifiedlogs",
    "websocket",
    "winlog",
];

/// Protocols that are no types of their own, and inputs of others, with where they are.
const ELSEWHERE: [(&str, &str); 10] = [
    ("beats", "set `type: lumberjack`"),
    ("elasticsearch", "set `type: http_endpoint` and `accept: elasticsearch`"),
    ("file", "set `type: filestream`"),
    ("google-pubsub", "set `type: gcp-pubsub`"),
    ("ipfix", "set `type: netflow`"),
    ("loki", "set `type: http_endpoint` and `accept: loki`"),
    ("otlp", "set `type: http_endpoint` and `accept: otlp`"),
    ("sflow", "set `type: netflow` and `protocols: [sflow]`"),
    ("splunk_hec", "set `type: http_endpoint` and `accept: splunk_hec`"),
    ("tail", "set `type: filestream`"),
];

/// Reads what is special to the type of an input. `None`, and the problem is reported, if there is no such type or
/// something is wrong with it.
pub(crate) fn read(
    section: &Section<'_>,
    input_context: &InputContext<'_>,
    context: &Context,
) -> Option<Reads> {
    section.declared_by(&EVERY_INPUT);
    let kind = section.get(&TYPE).value();
    if let Some((_, read, _)) = FILES.iter().find(|(name, ..)| *name == &*kind) {
        return Some(Reads::Files(Box::new(read(section, input_context))));
    }
    if *kind == *STDIN {
        return filestream::stdin::read(section, context).map(Reads::Task);
    }
    if *kind == *DOCKER_LOGS {
        return filestream::docker_logs::read(section, context).map(Reads::Task);
    }
    if *kind == *JOURNALD {
        return filestream::journald::read(section, context).map(Reads::Task);
    }
    if *kind == *REDIS {
        return redis_input::read(section, context).map(Reads::Task);
    }
    #[cfg(feature = "aws")]
    if *kind == *AWS_S3 {
        return filestream::aws_s3::read(section, context).map(Reads::Task);
    }
    #[cfg(feature = "aws")]
    if *kind == *AWS_CLOUDWATCH {
        return filestream::aws_cloudwatch::read(section, context).map(Reads::Task);
    }
    #[cfg(feature = "azure")]
    if *kind == *AZURE_BLOB_STORAGE {
        return filestream::azure_blob_storage::read(section, context).map(Reads::Task);
    }
    #[cfg(feature = "azure")]
    if *kind == *AZURE_EVENTHUB {
        return azure_eventhub::read(section, context).map(Reads::Task);
    }
    #[cfg(feature = "gcp-pubsub")]
    if *kind == *GCP_PUBSUB {
        return gcp_pubsub::read(section, context).map(Reads::Task);
    }
    #[cfg(feature = "gcs")]
    if *kind == *GCS {
        return filestream::gcs::read(section, context).map(Reads::Task);
    }
    #[cfg(feature = "kafka")]
    if *kind == *KAFKA {
        return filestream::kafka::read(section, context).map(Reads::Task);
    }
    if let Some((_, read)) = skidder_inputs::KINDS.iter().find(|(name, _)| *name == &*kind) {
        return read(section, context).map(Reads::Task);
    }
    if !kind.is_empty() {
        let message = format!("input type `{kind}` is not supported by skidder yet");
        let names: Vec<&str> = names().collect();
        let hint = if NOT_HERE.contains(&&*kind) {
            format!("there is {}; leave such inputs to Filebeat", listed(&names))
        } else if let Some((_, meant)) = ELSEWHERE.iter().find(|(name, _)| *name == &*kind) {
            (*meant).to_owned()
        } else if let Some(near) = nearest(&kind, names.iter().copied()) {
            format!("did you mean `{near}`?")
        } else {
            format!("there is {}", listed(&names))
        };
        section.problem(TYPE.name(), message, hint);
    }
    None
}

/// Reports an item without anything in it. Anything else that is no map is reported already.
pub(crate) fn refuse_empty(item: &Item<'_>) {
    if item.node().is_null() {
        let hint = "for example `{type: filestream, id: logs, paths: [/var/log/*.log]}`";
        item.problem(format!("`{}` is empty; expected an input", item.path()), hint);
    }
}

/// Ends the reading of an input that is turned off: only names are checked, and nothing of a type that is not here.
pub(crate) fn turned_off(section: Section<'_>) {
    match settings_of(&section) {
        Some(group) => {
            section.declared_by(&EVERY_INPUT);
            section.declared_by(group);
            section.off();
        }
        None => section.skip(),
    }
}

/// Ends the reading of an input with a mistake in what its type has: those in what all inputs have, which `read_common`
/// reads, and in the names of its other settings are found, too.
pub(crate) fn wrong(section: Section<'_>, read_common: impl FnOnce(&Section<'_>)) {
    match settings_of(&section) {
        Some(group) => {
            section.declared_by(group);
            read_common(&section);
            section.finish();
        }
        None => section.skip(),
    }
}

/// The settings of the type of an input, if it is here.
fn settings_of(section: &Section<'_>) -> Option<&'static Group> {
    let kind = section.item(TYPE.name()).and_then(|item| Some(item.node().text()?.to_owned()));
    let kind = kind.as_deref().unwrap_or("log");
    kinds().into_iter().find(|(name, _)| *name == kind).map(|(_, group)| group)
}

/// Refuses other inputs beside one of the standard input, as Filebeat does. `kinds` are the types of the inputs that are
/// enabled.
pub(crate) fn refuse_beside_stdin<'a>(
    beat: &Section<'_>,
    kinds: impl Iterator<Item = &'a str> + Clone,
) {
    if kinds.clone().count() > 1 && kinds.clone().any(|kind| kind == STDIN) {
        let kinds: Vec<&str> = kinds.collect();
        let message = format!(
            "an input of type `{STDIN}` must be the only one; there are {}",
            listed(&kinds)
        );
        let hint = "run a second skidder for the others, with another `path.data`";
        beat.problem("inputs", message, hint);
    }
}

/// The types that there are.
fn names() -> impl Iterator<Item = &'static str> {
    let files = FILES.iter().map(|(name, ..)| *name);
    files
        .chain(skidder_inputs::KINDS.iter().map(|(name, _)| *name))
        .chain([STDIN, DOCKER_LOGS, JOURNALD, REDIS])
        .chain(cfg!(feature = "aws").then_some(["aws-cloudwatch", "aws-s3"]).into_iter().flatten())
        .chain(
            cfg!(feature = "azure")
                .then_some(["azure-blob-storage", "azure-eventhub"])
                .into_iter()
                .flatten(),
        )
        .chain(cfg!(feature = "gcp-pubsub").then_some("gcp-pubsub"))
        .chain(cfg!(feature = "gcs").then_some("gcs"))
        .chain(cfg!(feature = "kafka").then_some("kafka"))
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
        let all: Vec<&str> = names().chain(NOT_HERE).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(NOT_HERE.is_sorted());
        assert!(ELSEWHERE.iter().all(|(name, _)| !all.contains(name)));
    }
}
