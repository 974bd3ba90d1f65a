//! OTLP, read by an independent library: the same numbers as in `/metrics`.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Run;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, NumberDataPoint, metric, number_data_point,
};
use prost::Message as _;
use skidder_observe::{Snapshot, otlp, prometheus};
use std::collections::BTreeMap;

fn text(attribute: &KeyValue) -> String {
    match attribute.value.as_ref().unwrap().value.as_ref().unwrap() {
        any_value::Value::StringValue(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// `name{label="value"}` as in `/metrics`, and the value.
fn sample(name: &str, point: &NumberDataPoint) -> (String, f64) {
    let labels: BTreeMap<_, _> =
        point.attributes.iter().map(|label| (label.key.clone(), text(label))).collect();
    let value = match point.value.as_ref().unwrap() {
        number_data_point::Value::AsDouble(real) => *real,
        number_data_point::Value::AsInt(whole) => *whole as f64,
    };
    (format!("{name} {labels:?}"), value)
}

/// The samples of an export, under the names of `/metrics`.
fn exported(snapshot: &Snapshot) -> BTreeMap<String, f64> {
    let message = otlp(snapshot, "1.2.3", &[("team".to_owned(), "shop".to_owned())]);
    let request = ExportMetricsServiceRequest::decode(&*message).unwrap();
    let [of_resource] = &*request.resource_metrics else { panic!("one resource") };
    let resource = of_resource.resource.as_ref().unwrap();
    let resource: BTreeMap<_, _> =
        resource.attributes.iter().map(|it| (&*it.key, text(it))).collect();
    assert_eq!((&*resource["service.name"], &*resource["service.version"]), ("skidder", "1.2.3"));
    assert_eq!(resource["service.instance.id"], snapshot.program.uuid);
    assert_eq!((&*resource["host.name"], &*resource["team"]), ("forest", "shop"));
    let mut samples = BTreeMap::new();
    for metric in &of_resource.scope_metrics[0].metrics {
        assert!(!metric.description.is_empty());
        let name = metric.name.replace('.', "_");
        let (name, points) = match metric.data.as_ref().unwrap() {
            metric::Data::Gauge(gauge) => (name, &gauge.data_points),
            metric::Data::Sum(sum) => {
                assert!(sum.is_monotonic);
                assert_eq!(sum.aggregation_temporality(), AggregationTemporality::Cumulative);
                let start = snapshot.program.start.wall.0 as u64;
                assert!(sum.data_points.iter().all(|point| point.start_time_unix_nano == start));
                (format!("{name}_total"), &sum.data_points)
            }
            other => panic!("{other:?}"),
        };
        for point in points {
            assert_eq!(point.time_unix_nano, snapshot.time.0 as u64);
            let (series, value) = sample(&name, point);
            assert!(samples.insert(series.clone(), value).is_none(), "{series} twice");
        }
    }
    samples
}

/// The samples of `/metrics`, without labels that are empty.
fn shown(snapshot: &Snapshot) -> BTreeMap<String, f64> {
    let text = prometheus(snapshot);
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("skidder_build_info"));
    let sample = |line: &str| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let labels = labels.strip_suffix('}').unwrap().split(',').filter(|it| !it.is_empty());
        let labels: BTreeMap<String, String> = labels
            .map(|label| label.split_once('=').unwrap())
            .map(|(label, text)| (label.to_owned(), text.trim_matches('"').to_owned()))
            .filter(|(_, text)| !text.is_empty())
            .collect();
        (format!("{name} {labels:?}"), value.parse().unwrap())
    };
    lines.map(sample).collect()
}

#[test]
fn a_collector_reads_the_numbers_of_metrics() {
    for snapshot in [Run::busy().snapshot(), Run::busy().behind()] {
        let samples = exported(&snapshot);
        assert!(samples.len() > 80, "{}", samples.len());
        assert_eq!(samples, shown(&snapshot));
    }
}

#[test]
fn each_of_several_outputs_has_points_of_its_own() {
    let mut sources = (*Run::busy().sources).clone();
    let mut second = sources.outputs[0].clone();
    sources.outputs[0].id = Some("one".to_owned());
    second.id = Some("two".to_owned());
    sources.outputs.push(second);
    let mut snapshot = sources.snapshot();
    snapshot.process = skidder_observe::Process::default();
    let samples = exported(&snapshot);
    assert_eq!(samples, shown(&snapshot));
    assert!(samples.keys().any(|series| series.contains(r#""output": "two""#)));
}
