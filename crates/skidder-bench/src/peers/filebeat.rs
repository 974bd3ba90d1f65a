//! Configuration of Filebeat, and of skidder, which reads the same.

use super::cell::{Form, Pace, Work};
use super::peer::Job;
use crate::rows::TEN_PROCESSORS;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

/// Filebeat's own defaults, but for the cell's settings, and that the last lines of a file that is caught up with
/// wait 1 s for others instead of 10 s, as with the other peers; in fault scenarios files are looked for every second,
/// as by the other peers, instead of every 10 s. Text is written as JSON strings, which YAML reads as
/// they are.
pub(super) fn prepare(job: &Job<'_>, command: &mut Command, is_skidder: bool) -> Result<()> {
    let config = job.home.join("filebeat.yml");
    std::fs::write(&config, configuration(job)).context("cannot write its configuration")?;
    command.arg("-e").arg("-c").arg(&config).arg("--path.data").arg(job.home.join("data"));
    if !is_skidder {
        // It refuses configurations of other users, and looks for its own files in its own folder.
        command.arg("--strict.perms=false").arg("--path.home").arg(job.home);
    }
    Ok(())
}

fn configuration(job: &Job<'_>) -> String {
    let compression = match job.cell.form {
        Form::Plain => "",
        Form::Gz => "    compression: auto\n",
    };
    let scanner = if job.durable { "    prospector.scanner.check_interval: 1s\n" } else { "" };
    let parsers = match job.cell.work {
        Work::None | Work::TenProcessors => "",
        Work::Ndjson => "    parsers: [{ndjson: {target: \"\", overwrite_keys: true}}]\n",
        Work::ContainerJson => {
            "    parsers: [{container: {format: cri}}, {ndjson: {target: \"\", overwrite_keys: true}}]\n"
        }
    };
    let processors = match job.cell.work {
        Work::TenProcessors => format!("processors: {TEN_PROCESSORS}\n"),
        _ => String::new(),
    };
    let queue = match job.cell.pace {
        Pace::CatchUp => "queue.mem.flush.timeout: 1s\n",
        Pace::Steady(_) => "",
    };
    format!(
        "filebeat.inputs:\n  - type: filestream\n    id: peers\n    paths: [{}]\n{compression}{scanner}{parsers}\
         output.elasticsearch:\n  hosts: [{}]\n  compression_level: {}\n\
         setup.template.enabled: false\nsetup.ilm.enabled: false\n{queue}{processors}",
        Value::from(job.paths),
        Value::from(job.url),
        job.cell.level,
    )
}
