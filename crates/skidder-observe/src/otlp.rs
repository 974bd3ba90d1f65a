//! The numbers of `/metrics` as OTLP, the protocol of OpenTelemetry.
//!
//! A name is that of `/metrics` with dots behind its first words and without `_total`, so that a collector that makes
//! Prometheus names of it makes those of `/metrics` again. Counters are cumulative sums since the start of the process.

mod messages;

use crate::names::{
    INPUT_METRICS, Kind, LABEL_INPUT, LABEL_OUTPUT, Series, Value, output_metrics, process_metrics,
};
use crate::snapshot::Snapshot;
use messages::{
    AnyValue, CUMULATIVE, ExportRequest, ExportResponse, Gauge, KeyValue, Metric, Point, Resource,
    ResourceMetrics, Scope, ScopeMetrics, Sum,
};
use prost::Message as _;

/// The name of the service, and of the scope.
const SERVICE: &str = "skidder";

/// The answer of a server that took only some of the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// How many it did not take.
    pub points: i64,
    /// Why; or, if it took all, its remark.
    pub message: String,
}

/// An `ExportMetricsServiceRequest`; `attributes` are further ones of the resource, which win over ours.
pub fn otlp(snapshot: &Snapshot, version: &str, attributes: &[(String, String)]) -> Vec<u8> {
    let mut families = Families::new(snapshot);
    for metric in output_metrics() {
        let Some(series) = metric.series else { continue };
        if snapshot.outputs.is_empty() {
            families.add(series, metric.kind, metric.help, metric.value(snapshot), &[]);
        }
        for (id, one) in &snapshot.outputs {
            let of_output = [(LABEL_OUTPUT, &**id)];
            families.add(series, metric.kind, metric.help, metric.value(one), &of_output);
        }
    }
    for metric in INPUT_METRICS {
        for input in &snapshot.inputs {
            let mut labels = vec![(LABEL_INPUT, &*input.name)];
            labels.extend(input.output.as_deref().map(|id| (LABEL_OUTPUT, id)));
            families.add(metric.series, metric.kind, metric.help, (metric.read)(input), &labels);
        }
    }
    for metric in process_metrics() {
        let Some(series) = metric.series else { continue };
        families.add(series, metric.kind, metric.help, metric.value(snapshot), &[]);
    }
    let scope = Scope { name: SERVICE.to_owned(), version: version.to_owned() };
    let metrics = ResourceMetrics {
        resource: Some(resource(snapshot, version, attributes)),
        scope_metrics: vec![ScopeMetrics { scope: Some(scope), metrics: families.metrics }],
    };
    ExportRequest { resource_metrics: vec![metrics] }.encode_to_vec()
}

/// The refused part in a successful answer; nothing if there is none.
pub fn otlp_refused(answer: &[u8]) -> Option<Refused> {
    let partial = ExportResponse::decode(answer).ok()?.partial_success?;
    let refused = Refused { points: partial.rejected_data_points, message: partial.error_message };
    (refused.points > 0 || !refused.message.is_empty()).then_some(refused)
}

/// The program that sends the numbers.
fn resource(snapshot: &Snapshot, version: &str, more: &[(String, String)]) -> Resource {
    let program = &snapshot.program;
    let ours = [
        ("service.name", SERVICE),
        ("service.version", version),
        ("service.instance.id", &*program.uuid),
        ("host.name", &*program.hostname),
    ];
    let ours = ours.into_iter().filter(|(key, _)| more.iter().all(|(other, _)| other != key));
    let all = ours.chain(more.iter().map(|(key, value)| (&**key, &**value)));
    Resource { attributes: all.map(attribute).collect() }
}

fn attribute((key, text): (&str, &str)) -> KeyValue {
    let value = Some(AnyValue { text: Some(text.to_owned()) });
    KeyValue { key: key.to_owned(), value }
}

/// The metrics written so far.
struct Families {
    start: u64,
    now: u64,
    family: &'static str,
    metrics: Vec<Metric>,
}

impl Families {
    fn new(snapshot: &Snapshot) -> Self {
        let nanos = |at: skidder_os::Timestamp| u64::try_from(at.0).unwrap_or(0);
        let (start, now) = (nanos(snapshot.program.start.wall), nanos(snapshot.time));
        Self { start, now, family: "", metrics: Vec::new() }
    }

    /// Adds a number, if it is known, to its family, which is the last one or a new one.
    fn add(
        &mut self,
        series: Series,
        kind: Kind,
        help: &str,
        value: Option<Value>,
        labels: &[(&str, &str)],
    ) {
        let Some(value) = value else { return };
        let (whole, real) = match value {
            Value::Count(number) => (Some(i64::try_from(number).unwrap_or(i64::MAX)), None),
            Value::Real(number) => (None, Some(number)),
            // Texts are labels, never values; the table's test makes sure.
            Value::Text(_) => return,
        };
        if series.name != self.family {
            self.family = series.name;
            let (gauge, sum) = match kind {
                Kind::Counter => {
                    let sum = Sum { temporality: CUMULATIVE, is_monotonic: true, ..Sum::default() };
                    (None, Some(sum))
                }
                Kind::Gauge | Kind::Text => (Some(Gauge::default()), None),
            };
            self.metrics.push(Metric {
                name: name_of(series.name),
                description: help.to_owned(),
                unit: unit_of(series.name).to_owned(),
                gauge,
                sum,
            });
        }
        let constant = series.labels.iter().filter(|(_, text)| !text.is_empty()).copied();
        let attributes = constant.chain(labels.iter().copied()).map(attribute).collect();
        let Some(metric) = self.metrics.last_mut() else { return };
        let mut point =
            Point { time_unix_nano: self.now, whole, real, attributes, ..Point::default() };
        if let Some(sum) = &mut metric.sum {
            point.start_time_unix_nano = self.start;
            sum.data_points.push(point);
        } else if let Some(gauge) = &mut metric.gauge {
            gauge.data_points.push(point);
        }
    }
}

/// `skidder_ledger_read_lines_total` is `skidder.ledger.read_lines`.
fn name_of(series: &str) -> String {
    let name = series.strip_suffix("_total").unwrap_or(series);
    let dots = if name.starts_with("skidder_") { 2 } else { 1 };
    name.replacen('_', ".", dots)
}

/// The unit, in the words of UCUM; counted things in braces.
fn unit_of(series: &str) -> &'static str {
    let has = |word: &str| series.split('_').any(|other| other == word);
    match () {
        // Of `By/s` a collector would put `per_second` behind the name once more.
        () if series.ends_with("_per_second") => "",
        () if has("bytes") => "By",
        () if has("seconds") => "s",
        () if has("lines") => "{line}",
        () if has("events") => "{event}",
        () if has("files") => "{file}",
        () if has("requests") => "{request}",
        () => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::metrics;
    use std::collections::BTreeSet;

    #[test]
    fn names_lead_back_to_those_of_metrics_and_are_not_shared() {
        let of_outputs = metrics().filter_map(|metric| Some((metric.series?, metric.kind)));
        let of_inputs = INPUT_METRICS.iter().map(|metric| (metric.series, metric.kind));
        let all: BTreeSet<(&str, bool)> = of_outputs
            .chain(of_inputs)
            .map(|(series, kind)| (series.name, kind == Kind::Counter))
            .collect();
        let mut names = BTreeSet::new();
        for (series, is_counter) in all {
            let name = name_of(series);
            let end = if is_counter { "_total" } else { "" };
            assert_eq!(format!("{}{end}", name.replace('.', "_")), series);
            assert!(names.insert(name.clone()), "{name} twice");
            assert!(name.split('.').all(|part| !part.is_empty()), "{name}");
        }
        assert!(
            names.contains("skidder.ledger.read_lines") && names.contains("process.cpu_seconds")
        );
        let units = [
            ("skidder_queue_bytes_max", "By"),
            ("skidder_lag_bytes_per_second", ""),
            ("process_cpu_seconds_total", "s"),
            ("skidder_reader_files_open", "{file}"),
            ("skidder_inputs", ""),
        ];
        for (series, unit) in units {
            assert_eq!(unit_of(series), unit, "{series}");
        }
    }

    #[test]
    fn what_a_server_did_not_take_is_told() {
        assert_eq!(otlp_refused(b""), None);
        assert_eq!(otlp_refused(b"<html>"), None);
        // partial_success { rejected_data_points: 3, error_message: "no" }
        let refused = Refused { points: 3, message: "no".to_owned() };
        assert_eq!(otlp_refused(b"\x0a\x06\x08\x03\x12\x02no"), Some(refused));
        assert_eq!(otlp_refused(b"\x0a\x00"), None);
    }
}
