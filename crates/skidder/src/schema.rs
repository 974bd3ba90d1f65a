//! `skidder export schema`: every declared setting, as a JSON Schema.

use crate::commands::print;
use crate::outputs::OTHER_OUTPUTS;
use anyhow::Result;
use skidder_config::{Group, Key, Part, json_schema, settings};
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
}

/// Prints the schema.
pub(crate) fn export() -> Result<ExitCode> {
    print(&format!("{:#}\n", json_schema(&CONFIGURATION, ID, "filebeat.yml")))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
