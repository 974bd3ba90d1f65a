//! The text of `/metrics`: Prometheus exposition format 0.0.4.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>

use crate::names::{
    INPUT_METRICS, Kind, LABEL_INPUT, LABEL_OUTPUT, LABEL_SOURCE, Metric, Value, output_metrics,
    process_metrics,
};
use crate::snapshot::Snapshot;
use skidder_input::OpenSources;
use skidder_os::Timestamp;
use std::fmt::Write as _;
use std::sync::Arc;

/// The `Content-Type` header.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics that have a Prometheus name, and `skidder_build_info`. Each of several outputs has lines of its own, with
/// its id as the label `output`.
pub fn prometheus(snapshot: &Snapshot) -> String {
    let mut out = String::with_capacity(12 * 1024);
    let program = &snapshot.program;
    head(&mut out, "skidder_build_info", "gauge", "Version and output of this process.");
    let info = [("output", &*program.output), ("version", &*program.version)];
    line(&mut out, "skidder_build_info", &info, &Value::Count(1));
    let mut family = "";
    for metric in output_metrics() {
        if snapshot.outputs.is_empty() {
            write(&mut out, &mut family, metric, snapshot, None);
        }
        for (id, one) in &snapshot.outputs {
            write(&mut out, &mut family, metric, one, Some(id));
        }
    }
    for metric in INPUT_METRICS {
        let name = metric.series.name;
        for input in &snapshot.inputs {
            let Some(value) = (metric.read)(input) else { continue };
            if name != family {
                family = name;
                head(&mut out, name, kind_of(metric.kind), metric.help);
            }
            let mut labels = vec![(LABEL_INPUT, &*input.name)];
            labels.extend(metric.series.labels);
            labels.extend(input.output.as_deref().map(|id| (LABEL_OUTPUT, id)));
            line(&mut out, name, &labels, &value);
        }
    }
    write_sources(&mut out, snapshot);
    for metric in process_metrics() {
        write(&mut out, &mut family, metric, snapshot, None);
    }
    out
}

/// What is known of sources: of each one how far it is behind, or how often it was asked and how old its newest event is.
fn write_sources(out: &mut String, snapshot: &Snapshot) {
    let age = |time: Timestamp| Value::Real(snapshot.time.since(time).as_secs_f64());
    let count = |(source, count): (Arc<str>, u64)| (source, Value::Count(count));
    write_each(
        out,
        snapshot,
        ("skidder_source_behind_events", "gauge"),
        "Records of a partition from the offset that is committed next to the end at the last look.",
        |sources| sources.behind().into_iter().map(count).collect(),
    );
    write_each(
        out,
        snapshot,
        ("skidder_source_requests_total", "counter"),
        "Requests for the events of a source, as a log group.",
        |sources| sources.requests().into_iter().map(count).collect(),
    );
    write_each(
        out,
        snapshot,
        ("skidder_source_newest_age_seconds", "gauge"),
        "Age of the newest event that was read of a source, as a log group.",
        |sources| sources.newest().into_iter().map(|(source, time)| (source, age(time))).collect(),
    );
}

/// One number of each source that has it.
fn write_each(
    out: &mut String,
    snapshot: &Snapshot,
    (name, kind): (&str, &str),
    help: &str,
    values: impl Fn(&OpenSources) -> Vec<(Arc<str>, Value)>,
) {
    let mut has_head = false;
    for input in &snapshot.inputs {
        let Some(task) = &input.task else { continue };
        for (source, value) in values(&task.metrics().sources) {
            if !std::mem::replace(&mut has_head, true) {
                head(out, name, kind, help);
            }
            let mut labels = vec![(LABEL_INPUT, &*input.name), (LABEL_SOURCE, &*source)];
            labels.extend(input.output.as_deref().map(|id| (LABEL_OUTPUT, id)));
            line(out, name, &labels, &value);
        }
    }
}

/// Writes one number, under the head of its family if that is a new one.
fn write(
    out: &mut String,
    family: &mut &'static str,
    metric: &Metric,
    snapshot: &Snapshot,
    output: Option<&str>,
) {
    let Some(series) = metric.series else { return };
    let Some(value) = metric.value(snapshot) else { return };
    if series.name != *family {
        *family = series.name;
        head(out, family, kind_of(metric.kind), metric.help);
    }
    let mut labels = series.labels.to_vec();
    labels.extend(output.map(|id| (LABEL_OUTPUT, id)));
    line(out, series.name, &labels, &value);
}

fn kind_of(kind: Kind) -> &'static str {
    if kind == Kind::Counter { "counter" } else { "gauge" }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    out.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
}

fn line(out: &mut String, name: &str, labels: &[(&str, &str)], value: &Value) {
    out.push_str(name);
    for (index, (label, text)) in labels.iter().enumerate() {
        out.push(if index == 0 { '{' } else { ',' });
        out.push_str(label);
        out.push_str("=\"");
        escape(out, text);
        out.push('"');
    }
    if !labels.is_empty() {
        out.push('}');
    }
    let written = match value {
        Value::Count(number) => writeln!(out, " {number}"),
        Value::Real(number) => writeln!(out, " {number}"),
        // Texts are labels, never values; the table's test makes sure.
        Value::Text(_) => writeln!(out, " 1"),
    };
    written.expect("writing to a string cannot fail");
}

fn escape(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_backslashes_and_line_ends_in_a_label_are_escaped() {
        let mut out = String::new();
        line(&mut out, "name", &[("label", "a\"b\\c\nd")], &Value::Real(0.5));
        assert_eq!(out, "name{label=\"a\\\"b\\\\c\\nd\"} 0.5\n");
    }
}
