//! The process and the machine, and Filebeat's numbers of its configuration.

use super::{Metric, Value, count, counter, gauge, text};
use crate::reload::is_good;
use crate::snapshot::Snapshot;
use std::time::Duration;

/// Filebeat's `ticks` are milliseconds too; they are absolute in the periodic line where `time.ms` is
/// the difference.
pub(super) const METRICS: &[Metric] = &[
    text("beat.info.name", |s| Some(Value::Text(s.program.name.clone()))),
    text("beat.info.version", |s| Some(Value::Text(s.program.version.clone()))),
    text("beat.info.ephemeral_id", |s| Some(Value::Text(s.program.ephemeral_id.clone()))),
    gauge("beat.info.uptime.ms", "", "", |s| milliseconds(Some(s.uptime))),
    gauge(
        "",
        "process_start_time_seconds",
        "Start time of the process in seconds since 1970-01-01 UTC.",
        |s| Some(Value::Real(s.program.start.wall.0 as f64 / 1e9)),
    ),
    gauge("beat.cpu.system.ticks", "", "", |s| milliseconds(s.process.cpu_system)),
    counter("beat.cpu.system.time.ms", "", "", |s| milliseconds(s.process.cpu_system)),
    gauge("beat.cpu.user.ticks", "", "", |s| milliseconds(s.process.cpu_user)),
    counter("beat.cpu.user.time.ms", "", "", |s| milliseconds(s.process.cpu_user)),
    gauge("beat.cpu.total.ticks", "", "", |s| milliseconds(s.process.cpu_total())),
    counter("beat.cpu.total.time.ms", "", "", |s| milliseconds(s.process.cpu_total())),
    gauge("beat.cpu.total.value", "", "", |s| milliseconds(s.process.cpu_total())),
    counter("", "process_cpu_seconds_total", "User and system processor time in seconds.", |s| {
        s.process.cpu_total().map(|time| Value::Real(time.as_secs_f64()))
    }),
    gauge("beat.memstats.rss", "process_resident_memory_bytes", "Resident memory in bytes.", |s| {
        s.process.resident_bytes.map(Value::Count)
    }),
    gauge("", "process_virtual_memory_bytes", "Virtual memory in bytes.", |s| {
        s.process.virtual_bytes.map(Value::Count)
    }),
    gauge("beat.handles.open", "process_open_fds", "Open file descriptors.", |s| {
        s.process.descriptors.map(Value::Count)
    }),
    gauge(
        "beat.handles.limit.soft",
        "process_max_fds",
        "Most file descriptors that may be open.",
        |s| s.process.descriptors_soft.map(Value::Count),
    ),
    gauge("beat.handles.limit.hard", "", "", |s| s.process.descriptors_hard.map(Value::Count)),
    gauge("system.cpu.cores", "", "", |s| count(s.system.cores)),
    gauge("system.load.1", "", "", |s| load(s, 0, false)),
    gauge("system.load.5", "", "", |s| load(s, 1, false)),
    gauge("system.load.15", "", "", |s| load(s, 2, false)),
    gauge("system.load.norm.1", "", "", |s| load(s, 0, true)),
    gauge("system.load.norm.5", "", "", |s| load(s, 1, true)),
    gauge("system.load.norm.15", "", "", |s| load(s, 2, true)),
    counter(
        "libbeat.config.reloads",
        "skidder_config_reloads_total",
        "Configurations that were read again and taken.",
        |s| count(s.reloads.taken),
    ),
    counter(
        "skidder.config.reloads_refused",
        "skidder_config_reloads_refused_total",
        "Configurations that were read again and refused.",
        |s| count(s.reloads.refused),
    ),
    gauge(
        "",
        "skidder_config_last_reload_successful",
        "Whether the configuration that was read again last was taken.",
        |s| is_good(s).map(Value::Count),
    ),
    text("skidder.config.last_reload", |s| {
        let (_, error) = s.reloads.last.as_ref()?;
        let text = error.as_ref().map(|error| format!("failed: {error}"));
        Some(Value::Text(text.unwrap_or_else(|| "succeeded".to_owned())))
    }),
    counter("libbeat.config.scans", "", "", |s| count(s.reloads.scans)),
    counter("libbeat.config.starts", "", "", |s| count(s.reloads.starts)),
    counter("libbeat.config.stops", "", "", |s| count(s.reloads.stops)),
    counter(
        "skidder.log.failed",
        "skidder_log_failed_total",
        "Lines of our own log that could not be written where they belong.",
        |s| count(s.log.failed),
    ),
    counter(
        "skidder.log.left_out",
        "skidder_log_left_out_total",
        "Lines of our own log that came faster than they could be written.",
        |s| count(s.log.left_out),
    ),
    // True zeros: there are no modules.
    gauge("libbeat.config.running", "", "", |_| count(0)),
    gauge("libbeat.config.module.running", "", "", |_| count(0)),
    counter("libbeat.config.module.starts", "", "", |_| count(0)),
    counter("libbeat.config.module.stops", "", "", |_| count(0)),
    gauge("libbeat.pipeline.inputs.count", "skidder_inputs", "Configured inputs.", |s| {
        count(s.inputs.len() as u64)
    }),
];

fn milliseconds(time: Option<Duration>) -> Option<Value> {
    time.map(|time| Value::Count(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
}

/// A load average, over the number of processors with `per_core`; two digits, as Filebeat shows it.
fn load(snapshot: &Snapshot, index: usize, per_core: bool) -> Option<Value> {
    let load = snapshot.system.load[index];
    let divisor = if per_core { snapshot.system.cores.max(1) as f64 } else { 1.0 };
    Some(Value::Real((load / divisor * 100.0).round() / 100.0))
}
