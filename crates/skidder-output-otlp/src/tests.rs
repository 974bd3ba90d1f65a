//! Requests are read by another implementation, and compared with the documents of the same events.

use super::encode::{Content, Limits, RequestWriter};
use super::fields::Naming;
use super::resource::{FIELDS, rename};
use crate::testing::{batch_with, context, deliveries};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message as _;
use serde_json::{Value as Json, json};
use skidder_event::{
    Base, Batch, Encoder, Map, Path, Precision, Provenance, Row, SourceId, Text, Value,
};
use skidder_pipeline::Delivery;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

const OBSERVED: u64 = 1_790_000_000_000_000_000;
/// 2026-01-02 03:04:05 UTC.
const TIME: u64 = 1_767_323_045_000_000_000;
const ALL: Limits = Limits { events: 0, bytes: usize::MAX };

fn naming(attributes: &[(&str, &str)]) -> Arc<Naming> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    Arc::new(Naming {
        resource_fields: FIELDS.map(str::to_owned).to_vec(),
        resource_attributes: attributes.iter().map(owned).collect(),
    })
}

async fn written(
    writer: &mut RequestWriter,
    waiting: &mut VecDeque<Delivery>,
    limits: Limits,
) -> (ExportLogsServiceRequest, Content, usize) {
    let mut out = b"what was there".to_vec();
    let content = writer.write(&mut out, waiting, limits, OBSERVED).await;
    (ExportLogsServiceRequest::decode(&*out).unwrap(), content, out.len())
}

async fn request(batches: Vec<Batch>, naming: Arc<Naming>) -> ExportLogsServiceRequest {
    let mut writer = RequestWriter::new(naming, &context());
    let mut waiting = VecDeque::from(deliveries(batches));
    written(&mut writer, &mut waiting, ALL).await.0
}

/// The value of JSON that means the same.
fn json(value: &Option<AnyValue>) -> Json {
    match value.as_ref().and_then(|any| any.value.as_ref()) {
        None => Json::Null,
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::BoolValue(truth)) => json!(truth),
        Some(Any::IntValue(number)) => json!(number),
        Some(Any::DoubleValue(number)) => json!(number),
        Some(Any::BytesValue(bytes)) => json!(String::from_utf8_lossy(bytes)),
        Some(Any::ArrayValue(array)) => {
            array.values.iter().map(|value| json(&Some(value.clone()))).collect()
        }
        Some(Any::KvlistValue(list)) => Json::Object(
            list.values.iter().map(|pair| (pair.key.clone(), json(&pair.value))).collect(),
        ),
        Some(other) => panic!("{other:?}"),
    }
}

fn attributes(pairs: &[KeyValue]) -> BTreeMap<String, Json> {
    let all: BTreeMap<String, Json> =
        pairs.iter().map(|pair| (pair.key.clone(), json(&pair.value))).collect();
    assert_eq!(all.len(), pairs.len(), "a name comes twice: {pairs:?}");
    all
}

/// Each record with the attributes of its resource.
fn records(request: &ExportLogsServiceRequest) -> Vec<(BTreeMap<String, Json>, &LogRecord)> {
    let mut records = Vec::new();
    for group in &request.resource_logs {
        let resource = attributes(&group.resource.as_ref().unwrap().attributes);
        for scope in &group.scope_logs {
            assert_eq!(scope.scope.as_ref().unwrap().name, "skidder");
            records.extend(scope.log_records.iter().map(|record| (resource.clone(), record)));
        }
    }
    records
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The expected result of a document: attributes of the resource, and all that is in the record.
fn expected(document: &Json) -> (BTreeMap<String, Json>, BTreeMap<String, Json>) {
    let (mut resource, mut record) = (BTreeMap::new(), BTreeMap::new());
    flatten("", document, &mut |name: &str, value: &Json| {
        let value = match value.as_u64() {
            Some(number) if i64::try_from(number).is_err() => json!(number.to_string()),
            _ => value.clone(),
        };
        if FIELDS.contains(&name.split('.').next().unwrap()) {
            let mut renamed = name.as_bytes().to_vec();
            rename(&mut renamed);
            resource.insert(String::from_utf8(renamed).unwrap(), value);
        } else {
            record.insert(name.to_owned(), value);
        }
    });
    record.remove("@timestamp");
    (resource, record)
}

fn flatten(name: &str, value: &Json, each: &mut impl FnMut(&str, &Json)) {
    match value {
        Json::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                let dot = if name.is_empty() { "" } else { "." };
                flatten(&format!("{name}{dot}{key}"), value, each);
            }
        }
        _ => each(name, value),
    }
}

/// All that is in a record, under the names of the event.
fn all_of(record: &LogRecord) -> BTreeMap<String, Json> {
    let mut all = attributes(&record.attributes);
    let places = [
        ("message", record.body.as_ref().map(|_| json(&record.body))),
        ("log.level", (!record.severity_text.is_empty()).then(|| json!(record.severity_text))),
        ("trace.id", (!record.trace_id.is_empty()).then(|| json!(hex(&record.trace_id)))),
        ("span.id", (!record.span_id.is_empty()).then(|| json!(hex(&record.span_id)))),
    ];
    for (name, value) in places {
        if let Some(value) = value {
            assert!(all.insert(name.to_owned(), value).is_none(), "{name} comes twice");
        }
    }
    all
}

fn base_fields() -> Map {
    let mut fields = Map::new();
    for (path, text) in [
        ("agent.name", "here"),
        ("agent.type", "filebeat"),
        ("host.name", "here"),
        ("host.architecture", "x86_64"),
        ("host.os.name", "Debian"),
        ("kubernetes.labels.app", "shop"),
        ("ecs.version", "8.0.0"),
        ("input.type", "filestream"),
        ("log.file.path", "/var/log/a.log"),
        ("event.dataset", "a"),
    ] {
        fields.insert_path(path, text);
    }
    let tags = vec![Value::from("a"), Value::Null, Value::Map(base_item())];
    fields.insert_path("tags", Value::List(tags));
    fields.insert_path("empty", Map::new());
    fields
}

fn base_item() -> Map {
    let mut item = Map::new();
    item.insert_path("in.side", "x");
    item
}

/// The edits of each event.
fn edits() -> Vec<(&'static str, Value)> {
    let mut object = Map::new();
    object.insert_path("a.b", 1_i64);
    object.insert_path("empty", Map::new());
    let numbers = vec![Value::Int(-1), Value::Float(1.5), Value::Bool(true), Value::Null];
    vec![
        ("message", Value::Int(7)),
        ("message", Value::Map(object.clone())),
        ("log.level", Value::from("WARN")),
        ("log.level", Value::Int(4)),
        ("log.level", Value::from("unheard of")),
        ("log.file.path", Value::from("/another")),
        ("log.origin", Value::Map(object.clone())),
        ("trace.id", Value::from("0af7651916cd43dd8448eb211c80319c")),
        ("trace.id", Value::from("0af7651916cd43dd8448eb211c80319")),
        ("trace.id", Value::from("00000000000000000000000000000000")),
        ("trace.id", Value::from("xaf7651916cd43dd8448eb211c80319c")),
        ("span.id", Value::from("b7ad6b7169203331")),
        ("host.name", Value::from("elsewhere")),
        ("host.os", Value::from("a text over an object")),
        ("container.id", Value::from("0123")),
        ("kubernetes.labels.app", Value::from("other")),
        ("event.dataset", Value::Null),
        ("event", Value::Bool(false)),
        ("object", Value::Map(object.clone())),
        ("numbers", Value::List(numbers)),
        ("large", Value::UInt(u64::MAX)),
        ("small", Value::Int(i64::MIN)),
        ("real", Value::Float(-0.25)),
        ("when", Value::Time(TIME as i64)),
        ("objects", Value::List(vec![Value::Map(object), Value::List(Vec::new())])),
    ]
}

#[tokio::test]
async fn an_event_is_in_its_record_and_resource_as_it_is_in_its_document() {
    let base_fields = base_fields();
    let edits = edits();
    // Each edit by itself, each pair of neighbours, all, and removals of existing fields.
    let mut cases: Vec<Vec<(&str, Value)>> = vec![Vec::new(), edits.clone()];
    cases.extend(edits.iter().map(|edit| vec![edit.clone()]));
    cases.extend(edits.windows(2).map(<[_]>::to_vec));
    for edit in cases {
        for removed in
            ["", "log", "log.offset", "message", "host", "host.os.name", "tags", "input.type"]
        {
            let mut batch =
                batch_with(&["hello", "with \"quotes\" and \u{e9}"], &base_fields, &Map::new());
            let base = Arc::clone(batch.base());
            for (path, value) in &edit {
                // Where a text is, there is no object to put something into.
                let _refused = batch.event_mut(1, &base).put(&Path::parse(path).unwrap(), value);
            }
            if !removed.is_empty() {
                batch.event_mut(1, &base).delete(&Path::parse(removed).unwrap());
            }
            let mut documents = Vec::new();
            for row in 0..2 {
                let mut document = Vec::new();
                Encoder::new(Precision::Millisecond).write(&mut document, &batch, row);
                documents.push(serde_json::from_slice::<Json>(&document).unwrap());
            }
            let request = request(vec![batch], naming(&[])).await;
            let records = records(&request);
            assert_eq!(records.len(), 2);
            for (document, (resource, record)) in documents.iter().zip(records) {
                let (expected_resource, expected_record) = expected(document);
                assert_eq!(resource, expected_resource, "{document}");
                assert_eq!(all_of(record), expected_record, "{document}");
                assert_eq!(
                    (record.time_unix_nano, record.observed_time_unix_nano),
                    (TIME, OBSERVED)
                );
            }
        }
    }
}

#[tokio::test]
async fn levels_and_ids_have_places_of_their_own() {
    let mut batch = batch_with(&["x"], &Map::new(), &Map::new());
    let base = Arc::clone(batch.base());
    for (path, text) in [
        ("log.level", "Error"),
        ("trace.id", "0AF7651916cd43dd8448eb211c80319c"),
        ("span.id", "b7ad6b7169203331"),
    ] {
        batch.event_mut(0, &base).put_text(&Path::parse(path).unwrap(), text.as_bytes()).unwrap();
    }
    let request = request(vec![batch], naming(&[])).await;
    let (_, record) = records(&request)[0].clone();
    assert_eq!((record.severity_number, &*record.severity_text), (17, "Error"));
    assert_eq!(hex(&record.trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&record.span_id), "b7ad6b7169203331");
    assert_eq!(
        attributes(&record.attributes),
        BTreeMap::from([("log.offset".to_owned(), json!(0))])
    );
}

#[tokio::test]
async fn what_is_no_utf8_is_bytes_and_a_time_before_1970_is_an_attribute() {
    let line = b"caf\xe9";
    let provenance = Provenance::new(SourceId(1), 0..5);
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    let mut batch = Batch::new(line.to_vec(), false, base, provenance);
    batch.push(Row::new(0, 5, Text { start: 0, len: 4 }, -1_000_000));
    let base = Arc::clone(batch.base());
    batch.event_mut(0, &base).put_text(&Path::parse("a").unwrap(), b"\xff").unwrap();
    let request = request(vec![batch], naming(&[])).await;
    let (_, record) = records(&request)[0].clone();
    assert_eq!(record.body.clone().unwrap().value, Some(Any::BytesValue(line.to_vec())));
    assert_eq!(record.time_unix_nano, 0);
    let attributes = &record.attributes;
    let value = |key| attributes.iter().find(|pair| pair.key == key).unwrap().value.clone();
    assert_eq!(value("a").unwrap().value, Some(Any::BytesValue(vec![0xff])));
    assert_eq!(json(&value("@timestamp")), "1969-12-31T23:59:59.999Z");
}

#[tokio::test]
async fn attributes_of_the_settings_win_over_fields() {
    let mut fields = Map::new();
    fields.insert_path("host.architecture", "x86_64");
    fields.insert_path("service.name", "of the event");
    let batches = || vec![batch_with(&["x"], &fields, &Map::new())];
    let given = naming(&[("service.name", "shop"), ("host.arch", "arm64")]);
    let request = request(batches(), given).await;
    let resource = &records(&request)[0].0;
    let wanted = [("host.arch", "arm64"), ("service.name", "shop")];
    assert_eq!(*resource, wanted.map(|(name, text)| (name.to_owned(), json!(text))).into());
    // Other fields belong to the resource if configured.
    let naming = Naming { resource_fields: vec!["a".to_owned()], resource_attributes: Vec::new() };
    let mut fields = fields.clone();
    fields.insert_path("a.b", "c");
    let batch = batch_with(&["x"], &fields, &Map::new());
    let request = self::request(vec![batch], Arc::new(naming)).await;
    let (resource, record) = records(&request)[0].clone();
    assert_eq!(resource, BTreeMap::from([("a.b".to_owned(), json!("c"))]));
    assert_eq!(attributes(&record.attributes)["host.architecture"], "x86_64");
}

#[tokio::test]
async fn events_of_one_resource_share_it() {
    let host = |name: &str, path: &str| {
        let mut fields = Map::new();
        fields.insert_path("host.name", name);
        fields.insert_path("log.file.path", path);
        fields
    };
    let mut batches = vec![
        batch_with(&["a", "b"], &host("one", "/1"), &Map::new()),
        batch_with(&["c", "d", "e"], &host("one", "/2"), &Map::new()),
        batch_with(&["f"], &host("two", "/3"), &Map::new()),
    ];
    let base = Arc::clone(batches[1].base());
    let path = Path::parse("host.name").unwrap();
    batches[1].event_mut(1, &base).put_text(&path, b"two").unwrap();
    let request = request(batches, naming(&[])).await;
    let seen: Vec<(String, usize)> = request
        .resource_logs
        .iter()
        .map(|group| {
            let resource = attributes(&group.resource.as_ref().unwrap().attributes);
            let count = group.scope_logs[0].log_records.len();
            (resource["host.name"].as_str().unwrap().to_owned(), count)
        })
        .collect();
    let expected = [("one", 3), ("two", 1), ("one", 1), ("two", 1)];
    assert_eq!(seen, expected.map(|(name, count)| (name.to_owned(), count)));
}

#[tokio::test]
async fn requests_end_at_their_bounds_and_together_hold_every_event() {
    let lines: Vec<String> =
        (0..500).map(|at| format!("line {at} {}", "x".repeat(at % 90))).collect();
    let table = [(0, usize::MAX), (7, usize::MAX), (0, 1000), (0, 1), (100, 5000)];
    for (events, bytes) in table {
        let mut batches = Vec::new();
        for (at, lines) in lines.chunks(70).enumerate() {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let mut fields = Map::new();
            fields.insert_path("host.name", if at % 2 == 0 { "even" } else { "odd" });
            batches.push(batch_with(&lines, &fields, &Map::new()));
        }
        let mut writer = RequestWriter::new(naming(&[]), &context());
        let mut waiting = VecDeque::from(deliveries(batches));
        let (mut bodies, mut rows) = (Vec::new(), 0);
        while !waiting.is_empty() {
            let limits = Limits { events, bytes };
            let (request, content, len) = written(&mut writer, &mut waiting, limits).await;
            let records = records(&request);
            assert_eq!(records.len(), content.events);
            assert_eq!(content.deliveries.iter().map(Delivery::len).sum::<usize>(), content.events);
            assert!(len <= bytes || content.events == 1, "{len} bytes of {bytes}");
            assert!(events == 0 || content.events <= events);
            rows += content.events;
            bodies.extend(
                records.iter().map(|(_, record)| json(&record.body).as_str().unwrap().to_owned()),
            );
        }
        assert_eq!((rows, &bodies), (lines.len(), &lines));
    }
}
