//! `skidder export schema`: every declared setting, as a JSON Schema. The settings at the root.

use crate::input_settings::EVENTS;
use crate::inputs::INPUT;
use crate::root_settings::{BESIDE_INPUTS, ROOT};
use crate::terminal::print;
use crate::{cloud, monitoring, outputs};
use anyhow::Result;
use skidder_config::{Group, Key, Part, Parts, json_schema, settings};
use std::process::ExitCode;

/// Names the schema.
const ID: &str = "urn:skidder:filebeat.yml";

mod filebeat {
    use super::*;

    settings! {
        /// `filebeat`.
        pub(super) static OF_FILEBEAT =
            Group::new("filebeat", "The inputs, and what is theirs.").include(&[&BESIDE_INPUTS]);

        pub(crate) INPUTS: Parts = Key::parts("inputs", &INPUT).about("where events come from");
    }
}

pub(crate) use filebeat::INPUTS;

settings! {
    /// The whole configuration.
    pub(crate) static CONFIGURATION =
        Group::new("configuration", "The configuration of skidder, as `filebeat.yml`.")
            .include(&[
                &ROOT,
                &EVENTS,
                &outputs::AT_ROOT,
                &cloud::AT_ROOT,
                &monitoring::AT_ROOT,
            ]);

    pub(crate) FILEBEAT: Part =
        Key::part("filebeat", &filebeat::OF_FILEBEAT).about("the inputs, and what is theirs");
    pub(crate) SETUP: Part = Key::part("setup", &skidder_output_elasticsearch::SETUP)
        .about("what should exist in Elasticsearch before the first event");
    pub(crate) LOGGING: Part =
        Key::part("logging", &skidder_log::LOGGING).about("the log of the program itself");
    pub(crate) HTTP: Part =
        Key::part("http", &skidder_observe::HTTP).about("the endpoint with numbers, files and the page");
}

/// Prints the schema.
pub(crate) fn export() -> Result<ExitCode> {
    print(&format!("{:#}\n", json_schema(&CONFIGURATION, ID, "filebeat.yml")))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
