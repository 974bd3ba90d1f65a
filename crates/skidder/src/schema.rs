//! `skidder export schema`: every declared setting, as a JSON Schema. The settings at the root.

use crate::commands::print;
use crate::outputs::{OTHER_OUTPUTS, OUTPUTS_ITEM};
use crate::root_settings::{BESIDE_INPUTS, ROOT};
use crate::{cloud, monitoring, outputs};
use anyhow::Result;
use skidder_config::{Any, Group, Key, Part, Parts, json_schema, settings};
use std::process::ExitCode;

/// Names the schema.
const ID: &str = "urn:skidder:filebeat.yml";

/// `output`.
static ONE_OUTPUT: Group = Group::new("output", "Where events go: exactly one output.")
    .include(&[&skidder_outputs::OUTPUTS, &OTHER_OUTPUTS]);

mod filebeat {
    use super::*;

    settings! {
        /// `filebeat`.
        pub(super) static OF_FILEBEAT =
            Group::new("filebeat", "The inputs, and what is theirs.").include(&[&BESIDE_INPUTS]);

        INPUTS: Any = Key::new("inputs").about("where events come from");
    }
}

mod events {
    use super::*;

    settings! {
        /// What is done with every event.
        pub(super) static EVENTS = Group::new("events", "What every event has.");

        TAGS: Any = Key::new("tags");
        FIELDS: Any = Key::new("fields");
        FIELDS_UNDER_ROOT: Any = Key::new("fields_under_root");
        PROCESSORS: Any = Key::new("processors");
    }
}

settings! {
    /// The whole configuration.
    pub(crate) static CONFIGURATION =
        Group::new("configuration", "The configuration of skidder, as `filebeat.yml`.")
            .include(&[&ROOT, &events::EVENTS]);

    pub(crate) FILEBEAT: Part =
        Key::part("filebeat", &filebeat::OF_FILEBEAT).about("the inputs, and what is theirs");
    pub(crate) OUTPUT: Part = Key::part("output", &ONE_OUTPUT).about("where events go: exactly one output");
    pub(crate) OUTPUTS: Parts =
        Key::parts("outputs", &OUTPUTS_ITEM).about("several outputs, in the place of `output`").ours();
    pub(crate) QUEUE: Part =
        Key::part("queue", &skidder_outputs::QUEUE).about("the queue before each output");
    pub(crate) DEAD_LETTERS: Part = Key::part("dead_letters", &outputs::DEAD_LETTERS)
        .about("events that the output can never take, kept locally")
        .ours();
    pub(crate) SETUP: Part = Key::part("setup", &skidder_output_elasticsearch::SETUP)
        .about("what should exist in Elasticsearch before the first event");
    pub(crate) CLOUD: Part = Key::part("cloud", &cloud::CLOUD).about("a deployment of Elastic Cloud");
    pub(crate) LOGGING: Part =
        Key::part("logging", &skidder_log::LOGGING).about("the log of the program itself");
    pub(crate) HTTP: Part =
        Key::part("http", &skidder_observe::HTTP).about("the endpoint with numbers, files and the page");
    pub(crate) MONITORING: Part =
        Key::part("monitoring", &monitoring::MONITORING).about("our own numbers for a monitoring cluster");
}

/// Prints the schema.
pub(crate) fn export() -> Result<ExitCode> {
    print(&format!("{:#}\n", json_schema(&CONFIGURATION, ID, "filebeat.yml")))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
