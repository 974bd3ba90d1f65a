//! `skidder export schema`: every declared setting, as a JSON Schema.

use crate::input_settings::EVENTS;
use crate::inputs::INPUT;
use crate::terminal::print;
use anyhow::Result;
use skidder_config::{Group, Key, Part, Parts, json_schema, settings};
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

mod filebeat {
    use super::*;

    settings! {
        /// `filebeat`. Other settings in it are not declared yet.
        pub(super) static FILEBEAT = Group::new("filebeat", "The inputs, and what is theirs.").open();

        pub(crate) INPUTS: Parts = Key::parts("inputs", &INPUT).about("where events come from");
    }
}

pub(crate) use filebeat::INPUTS;

settings! {
    /// The whole configuration. Settings that are not declared yet are not checked.
    pub(crate) static CONFIGURATION =
        Group::new("configuration", "The configuration of skidder, as `filebeat.yml`.")
            .include(&[&EVENTS])
            .open();

    FILEBEAT: Part = Key::part("filebeat", &filebeat::FILEBEAT).about("the inputs, and what is theirs");
    OUTPUT: Part = Key::part("output", &output::OUTPUT).about("where events go: exactly one output");
}

/// Prints the schema.
pub(crate) fn export() -> Result<ExitCode> {
    print(&format!("{:#}\n", json_schema(&CONFIGURATION, ID, "filebeat.yml")))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
