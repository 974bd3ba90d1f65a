//! Configuration of an OpenTelemetry Collector.

use super::cell::{Form, Work};
use super::peer::Job;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::process::Command;

/// The defaults of its parts, but for: files are read from their start, positions are kept, and failed requests are
/// tried again for ever; in fault scenarios its queue is on the disk too. The queue before the exporter is counted in
/// events: by default it holds ten batches of 100 lines and waits 10 s for the rest of a request of 1 MB, which is
/// 100 lines/s.
pub(super) fn prepare(job: &Job<'_>, command: &mut Command) -> Result<()> {
    let config = job.home.join("collector.yaml");
    std::fs::create_dir_all(job.home.join("state"))?;
    std::fs::write(&config, configuration(job).to_string())
        .context("cannot write its configuration")?;
    command.arg("--config").arg(config);
    Ok(())
}

/// As JSON, which YAML reads as it is.
fn configuration(job: &Job<'_>) -> Value {
    let operators = match job.cell.work {
        Work::None | Work::TenProcessors => json!([]),
        Work::Ndjson => json!([{"type": "json_parser"}]),
        Work::ContainerJson => json!([
            {"type": "container", "format": "containerd", "add_metadata_from_filepath": false},
            {"type": "json_parser"},
        ]),
    };
    let mut files = json!({
        "include": [job.paths],
        "start_at": "beginning",
        "storage": "file_storage",
        "operators": operators,
        "retry_on_failure": {"enabled": true, "max_elapsed_time": "0s"},
    });
    if job.cell.form == Form::Gz {
        files["compression"] = json!("auto");
    }
    let mut server = json!({
        "endpoints": [job.url],
        "logs_index": "peers",
        "retry": {"enabled": true, "max_retries": 1_000_000},
        "compression": if job.cell.level == 0 { "none" } else { "gzip" },
    });
    if job.cell.level > 0 {
        server["compression_params"] = json!({"level": job.cell.level});
    }
    let mut queue = json!({
        "enabled": true,
        "sizer": "items",
        "queue_size": 100_000,
        "block_on_overflow": true,
        "batch": {"sizer": "items", "min_size": 1_600, "max_size": 5_000, "flush_timeout": "1s"},
    });
    if job.durable {
        queue["storage"] = json!("file_storage");
    }
    server["sending_queue"] = queue;
    json!({
        "extensions": {"file_storage": {"directory": job.home.join("state")}},
        "receivers": {"file_log": files},
        "exporters": {"elasticsearch": server},
        "service": {
            "extensions": ["file_storage"],
            "pipelines": {"logs": {"receivers": ["file_log"], "exporters": ["elasticsearch"]}},
            "telemetry": {"metrics": {"level": "none"}},
        },
    })
}
