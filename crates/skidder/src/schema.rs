//! `skidder export schema`: every declared setting, as a JSON Schema. The settings at the root.

use crate::commands::print;
use crate::root_settings::{BESIDE_INPUTS, ROOT};
use crate::{cloud, monitoring, outputs};
use anyhow::Result;
use skidder_config::{Any, Group, Key, Part, json_schema, settings};
use std::process::ExitCode;

/// Names the schema.
const ID: &str = "urn:skidder:filebeat.yml";

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
            .include(&[
                &ROOT,
                &events::EVENTS,
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
