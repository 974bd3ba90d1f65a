//! `skidder export schema`: every declared setting, as a JSON Schema.

use crate::terminal::print;
use anyhow::Result;
use skidder_config::{Group, Key, Part, Typed, json_schema, settings};
use std::process::ExitCode;

/// Names the schema.
const ID: &str = "urn:skidder:filebeat.yml";

mod output {
    use super::*;

    settings! {
        /// `output`. Outputs whose settings are not declared yet are not checked.
        pub(super) static OUTPUT = Group::new("output", "Where events go: exactly one output.")
            .include(&[&skidder_outputs::OUTPUTS])
            .open();
    }
}

settings! {
    /// The whole configuration. Settings that are not declared yet are not checked.
    pub(crate) static CONFIGURATION =
        Group::new("configuration", "The configuration of skidder, as `filebeat.yml`.").open();

    INPUTS: Typed = Key::typed("filebeat.inputs", skidder_inputs::SETTINGS)
        .about("where events come from; settings of files are not checked");
    OUTPUT: Part = Key::part("output", &output::OUTPUT).about("where events go: exactly one output");
}

/// Prints the schema.
pub(crate) fn export() -> Result<ExitCode> {
    print(&format!("{:#}\n", json_schema(&CONFIGURATION, ID, "filebeat.yml")))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
