//! `skidder export schema`: every declared setting, as a JSON Schema.

use crate::cloud::CLOUD;
use crate::commands::print;
use crate::outputs::{DEAD_LETTERS, OTHER_OUTPUTS, OUTPUTS_ITEM};
use anyhow::Result;
use skidder_config::{Group, Key, Part, Parts, json_schema, settings};
use skidder_output_elasticsearch::SETUP;
use skidder_outputs::QUEUE;
use std::process::ExitCode;

/// Names the schema.
const ID: &str = "urn:skidder:filebeat.yml";

mod output {
    use super::*;

    settings! {
        /// `output`.
        pub(super) static OUTPUT = Group::new("output", "Where events go: exactly one output.")
            .include(&[&skidder_outputs::OUTPUTS, &OTHER_OUTPUTS]);
    }
}

settings! {
    /// The whole configuration. Settings that are not declared yet are not checked.
    pub(crate) static CONFIGURATION =
        Group::new("configuration", "The configuration of skidder, as `filebeat.yml`.").open();

    OUTPUT: Part = Key::part("output", &output::OUTPUT).about("where events go: exactly one output");
    OUTPUTS: Parts = Key::parts("outputs", &OUTPUTS_ITEM).about("several outputs, in the place of `output`").ours();
    OF_QUEUE: Part = Key::part("queue", &QUEUE).about("the queue before each output");
    OF_DEAD_LETTERS: Part = Key::part("dead_letters", &DEAD_LETTERS)
        .about("events that the output can never take, kept locally")
        .ours();
    OF_CLOUD: Part = Key::part("cloud", &CLOUD).about("a deployment of Elastic Cloud");
    OF_SETUP: Part = Key::part("setup", &SETUP).about("what should exist in Elasticsearch before the first event");
}

/// Prints the schema.
pub(crate) fn export() -> Result<ExitCode> {
    print(&format!("{:#}\n", json_schema(&CONFIGURATION, ID, "filebeat.yml")))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
