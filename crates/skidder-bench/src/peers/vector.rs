//! Configuration of Vector.

use super::cell::Work;
use super::peer::Job;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::process::Command;

const JSON: &str = ". = merge(., object!(parse_json!(.message)))";
const CONTAINER_JSON: &str = "record = parse_regex!(.message, \
    r'^(?P<time>[^ ]+) (?P<stream>stdout|stderr) (?P<tag>[PF]) (?P<log>.*)$')\n\
    .stream = record.stream\n. = merge(., object!(parse_json!(record.log)))";

/// Its defaults, but for: files are read from their start, and positions move only when the server has the events.
pub(super) fn prepare(job: &Job<'_>, command: &mut Command) -> Result<()> {
    let config = job.home.join("vector.json");
    std::fs::create_dir_all(job.home.join("state"))?;
    std::fs::write(&config, configuration(job).to_string())
        .context("cannot write its configuration")?;
    command.arg("--config").arg(config);
    Ok(())
}

fn configuration(job: &Job<'_>) -> Value {
    let program = match job.cell.work {
        Work::None | Work::TenProcessors => None,
        Work::Ndjson => Some(JSON),
        Work::ContainerJson => Some(CONTAINER_JSON),
    };
    let compression = match job.cell.level {
        0 => json!("none"),
        level => json!({"algorithm": "gzip", "level": level}),
    };
    let transforms = match program {
        None => json!({}),
        Some(source) => json!({"parsed": {"type": "remap", "inputs": ["files"], "source": source}}),
    };
    json!({
        "data_dir": job.home.join("state"),
        "sources": {"files": {"type": "file", "include": [job.paths], "read_from": "beginning"}},
        "transforms": transforms,
        "sinks": {"server": {
            "type": "elasticsearch",
            "inputs": [if program.is_some() { "parsed" } else { "files" }],
            "endpoints": [job.url],
            "api_version": "v8",
            "bulk": {"action": "create", "index": "peers"},
            "compression": compression,
            "healthcheck": {"enabled": false},
            "acknowledgements": {"enabled": true},
        }},
    })
}
