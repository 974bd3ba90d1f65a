//! Requests of OTLP that are not what the SDKs write: other names, unknown members, wrong shapes.

use super::faces::{OTLP, body_of, export, plain};
use super::*;
use crate::http_endpoint::faces::testing::{bytes, varint};

/// An input that takes what it is sent.
struct Receiver {
    bench: Bench,
    address: SocketAddr,
}

impl Receiver {
    fn new() -> Self {
        let (address, sockets) = free_address();
        Self { bench: Bench::start(input(address, OTLP.settings, &sockets), 100), address }
    }

    /// Sends a request; returns the answer and the events.
    async fn send(&mut self, request: Vec<u8>) -> (Answered, Vec<Value>) {
        let address = self.address;
        let asking = tokio::spawn(async move { exchange(address, &request).await });
        self.bench.until("an answer", |_| asking.is_finished()).await;
        self.bench.take();
        (asking.await.unwrap(), plain(&mut self.bench))
    }

    /// Sends JSON of which every record is taken; returns the events.
    async fn taken(&mut self, json: &str) -> Vec<Value> {
        let (answered, events) = self.send(post("/v1/logs", json)).await;
        assert_eq!((answered.status, &*answered.body), (200, "{}"), "{json}");
        events
    }

    /// Sends JSON of which nothing is taken.
    async fn refused(&mut self, json: &str) -> Answered {
        let (answered, events) = self.send(post("/v1/logs", json)).await;
        assert_eq!((answered.status, events.len()), (400, 0), "{json}: {answered:?}");
        answered
    }
}

/// A request with these records.
fn of_records(records: &str) -> String {
    format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{records}]}}]}}]}}"#)
}

/// A record with this body.
fn of_body(body: &str) -> String {
    of_records(&format!(r#"{{"body":{body}}}"#))
}

/// A record with a text, and attributes that are numbers from 0 on.
fn of_attributes(names: &[&str]) -> String {
    let pairs = names.iter().enumerate();
    let pairs = pairs.map(|(at, name)| json!({"key": name, "value": {"intValue": at}}));
    let pairs: Vec<Value> = pairs.collect();
    of_records(&json!({"body": {"stringValue": "a"}, "attributes": pairs}).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_are_not_known_are_ignored() {
    let mut receiver = Receiver::new();
    let value = r#"{"aFuture":{"x":[1]},"stringValue":"s","zFuture":1}"#;
    let pair = format!(r#"{{"key":"service.name","value":{value},"aFuture":[]}}"#);
    let record = r#"{"aFuture":1e999,"body":{"stringValue":"hi","aFuture":1},"zFuture":"x"}"#;
    let without = r#"{"body":{"aFuture":1}},{"body":{}}"#;
    let json = format!(
        r#"{{"aFuture":1,"resourceLogs":[{{"aFuture":[],"resource":{{"attributes":[{pair}],"aFuture":1}},
           "scopeLogs":[{{"scope":{{"aFuture":7}},"aFuture":{{}},"logRecords":[{record},{without}]}}]}}]}}"#
    );
    let of_resource = json!({"service": {"name": "s"}});
    let expected =
        [json!({"message": "hi", "service": {"name": "s"}}), of_resource.clone(), of_resource];
    assert_eq!(receiver.taken(&json).await, expected);
    receiver.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_may_be_those_of_fields_or_older_ones() {
    let mut receiver = Receiver::new();
    let new = json!({"resourceLogs": [{
        "resource": {"attributes": [{"key": "list", "value": {"arrayValue": {"values": [
            {"boolValue": true}, {"intValue": "7"}, {"doubleValue": 0.5}, {"bytesValue": "aGk="}]}}}]},
        "scopeLogs": [{"scope": {"name": "lib"}, "logRecords": [{
            "observedTimeUnixNano": "1000000000", "severityNumber": 17, "severityText": "ERROR",
            "body": {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}},
            "traceId": "AB".repeat(16), "spanId": "CD".repeat(8), "eventName": "e"}]}]}]})
    .to_string();
    let mut fields = new.clone();
    for (member, field) in [
        ("resourceLogs", "resource_logs"),
        ("arrayValue", "array_value"),
        ("boolValue", "bool_value"),
        ("intValue", "int_value"),
        ("doubleValue", "double_value"),
        ("bytesValue", "bytes_value"),
        ("scopeLogs", "scope_logs"),
        ("logRecords", "log_records"),
        ("observedTimeUnixNano", "observed_time_unix_nano"),
        ("severityNumber", "severity_number"),
        ("severityText", "severity_text"),
        ("kvlistValue", "kvlist_value"),
        ("stringValue", "string_value"),
        ("traceId", "trace_id"),
        ("spanId", "span_id"),
        ("eventName", "event_name"),
    ] {
        let renamed = fields.replace(&format!("\"{member}\""), &format!("\"{field}\""));
        assert_ne!(renamed, fields, "{member}");
        fields = renamed;
    }
    let old = new
        .replace("\"scopeLogs\"", "\"scopeLogs\":[],\"instrumentationLibraryLogs\"")
        .replace("\"scope\"", "\"instrumentationLibrary\"")
        .replace("\"logRecords\"", "\"logs\"");
    let old_fields = new
        .replace("\"scopeLogs\"", "\"instrumentation_library_logs\"")
        .replace("\"scope\"", "\"instrumentation_library\"");
    let expected = json!({"list": [true, 7, 0.5, "aGk="], "log": {"level": "ERROR"},
        "event": {"severity": 17}, "trace": {"id": "ab".repeat(16)}, "span": {"id": "cd".repeat(8)},
        "otlp": {"scope": {"name": "lib"}, "body": {"k": "v"}, "event_name": "e"}});
    for json in [new, fields, old, old_fields] {
        assert_eq!(receiver.taken(&json).await, std::slice::from_ref(&expected), "{json}");
    }
    assert!(receiver.bench.specials.iter().all(|(time, _)| time == "1970-01-01T00:00:01.000Z"));
    receiver.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_known_member_is_no_request() {
    let mut receiver = Receiver::new();
    for empty in ["{}", r#"{"resourceLogs":[]}"#, r#"{"resource_logs":null,"more":1}"#] {
        assert_eq!(receiver.taken(empty).await, Vec::<Value>::new(), "{empty}");
    }
    for wrong in
        [r#"{"logs":[]}"#, r#"{"resourceSpans":[]}"#, r#"{"logRecords":[{}]}"#, "[]", "7", "null"]
    {
        let answered = receiver.refused(wrong).await;
        assert!(answered.body.contains("expected an object with `resourceLogs`"), "{answered:?}");
    }
    receiver.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_shape_around_records_is_a_wrong_request() {
    let mut receiver = Receiver::new();
    let logs = r#"{"logRecords":[{}]}"#;
    let right = format!(r#"{{"scopeLogs":[{logs}]}}"#);
    for wrong in ["5", "null", "\"x\"", "[]"] {
        receiver.refused(&format!(r#"{{"resourceLogs":[{right},{wrong}]}}"#)).await;
    }
    for wrong in ["5", "{}", "true"] {
        receiver.refused(&format!(r#"{{"resourceLogs":{wrong}}}"#)).await;
    }
    for wrong in [
        r#""scopeLogs":["y"]"#,
        r#""scopeLogs":{}"#,
        r#""resource":7"#,
        r#""resource":[]"#,
        r#""resource":{"attributes":{}}"#,
        r#""resource":{"attributes":[5]}"#,
        r#""resource":{"attributes":[{"key":7,"value":{"stringValue":"a"}}]}"#,
        r#""resource":{"attributes":[{"key":"k","value":"a"}]}"#,
        r#""scopeLogs":[{"scope":"x"}]"#,
        r#""scopeLogs":[{"scope":{"name":5}}]"#,
        r#""scopeLogs":[{"scope":{"version":{}}}]"#,
        r#""scopeLogs":[{"scope":{"attributes":[5]}}]"#,
        r#""scopeLogs":[{"logRecords":{}}]"#,
        r#""scopeLogs":[{"logRecords":[{}],"logRecords":[]}]"#,
        r#""scopeLogs":[{"logRecords":[{}],"log_records":[]}]"#,
        r#""scopeLogs":[],"scopeLogs":[]"#,
        r#""resource":{},"resource":{}"#,
        r#""resource":{"attributes":[],"attributes":[]}"#,
    ] {
        receiver.refused(&format!(r#"{{"resourceLogs":[{right},{{{wrong}}}]}}"#)).await;
    }
    let twice = format!(r#"{{"resourceLogs":[{right}],"resourceLogs":[]}}"#);
    let answered = receiver.refused(&twice).await;
    assert!(answered.body.contains("no name twice"), "{answered:?}");
    let null = format!(
        r#"{{"resourceLogs":[{{"resource":null,"scopeLogs":null}},{{"resource":{{"attributes":null}},
           "scopeLogs":[{{"scope":null,"logRecords":null}},{{"scope":{{"name":null}}}},{logs}]}}]}}"#
    );
    assert_eq!(receiver.taken(&null).await, [json!({})]);
    receiver.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_shape_in_a_record_costs_that_record() {
    let mut receiver = Receiver::new();
    for wrong in [
        "5",
        "\"x\"",
        "null",
        "[]",
        r#"{"severityText":5}"#,
        r#"{"severityNumber":[]}"#,
        r#"{"timeUnixNano":{}}"#,
        r#"{"traceId":77}"#,
        r#"{"spanId":[]}"#,
        r#"{"eventName":{}}"#,
        r#"{"attributes":{}}"#,
        r#"{"attributes":[5]}"#,
        r#"{"attributes":[null]}"#,
        r#"{"attributes":[{"key":7}]}"#,
        r#"{"attributes":[{"key":"k","value":7}]}"#,
        r#"{"attributes":[{"key":"k","key":"l"}]}"#,
        r#"{"body":"x"}"#,
        r#"{"body":{"stringValue":5}}"#,
        r#"{"body":{"stringValue":"a","intValue":"1"}}"#,
        r#"{"body":{"stringValue":"a","string_value":"b"}}"#,
        r#"{"body":{"stringValue":"a"},"body":{"stringValue":"b"}}"#,
        r#"{"body":{"arrayValue":[]}}"#,
        r#"{"body":{"arrayValue":{"values":5}}}"#,
        r#"{"body":{"arrayValue":{"values":[5]}}}"#,
        r#"{"body":{"kvlistValue":{"values":[5]}}}"#,
        r#"{"body":{"bytesValue":"no base64"}}"#,
        r#"{"body":{"bytesValue":"aGk==="}}"#,
    ] {
        let json = of_records(&format!(r#"{wrong},{{"body":{{"stringValue":"right"}}}}"#));
        let (answered, events) = receiver.send(post("/v1/logs", &json)).await;
        assert_eq!(answered.status, 200, "{wrong}: {answered:?}");
        let partial = &body_of(&answered)["partialSuccess"];
        assert_eq!(partial["rejectedLogRecords"], "1", "{wrong}: {answered:?}");
        assert_eq!(events, [json!({"message": "right"})], "{wrong}");
    }
    let null = r#"{"timeUnixNano":null,"severityNumber":null,"severityText":null,"body":null,
        "attributes":null,"traceId":null,"spanId":null,"eventName":null}"#;
    assert_eq!(receiver.taken(&of_records(null)).await, [json!({})]);
    receiver.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attribute_is_lost_that_has_no_place() {
    let mut receiver = Receiver::new();
    for (names, mut expected) in [
        (&["k", "k", "k"][..], json!({"k": 0, "labels": {"k": [1, 2]}})),
        (&["labels.a", "a.b", "a"], json!({"a": {"b": 1}, "labels": {"a": [0, 2]}})),
        (&["a", "a.b"], json!({"a": 0, "labels": {"a_b": 1}})),
        (
            &["message", "message.x", "message"],
            json!({"labels": {"message": [0, 2], "message_x": 1}}),
        ),
    ] {
        expected["message"] = json!("a");
        assert_eq!(receiver.taken(&of_attributes(names)).await, [expected], "{names:?}");
    }
    // Those of the resource are there first; the text of the record stays its message.
    let pair = |name: &str, text: &str| json!({"key": name, "value": {"stringValue": text}});
    let json = json!({"resourceLogs": [{
        "resource": {"attributes": [pair("message", "r"), pair("k", "r"), pair("k", "s")]},
        "scopeLogs": [{"scope": {"attributes": [pair("n", "1"), pair("n", "2")]}, "logRecords": [
            {"body": {"stringValue": "a"}, "attributes": [pair("message", "b"), pair("k", "c")]},
            {"body": {"kvlistValue": {"values": [pair("m", "d"), pair("l", "e"), pair("m", "f")]}}}]}]}]});
    let scope = json!({"attributes": {"n": "1", "labels": {"n": "2"}}});
    let expected = [
        json!({"message": "a", "k": "r", "labels": {"k": ["s", "c"], "message": ["r", "b"]},
            "otlp": {"scope": scope}}),
        json!({"message": "r", "k": "r", "labels": {"k": "s"},
            "otlp": {"scope": scope, "body": {"l": "e", "m": ["d", "f"]}}}),
    ];
    assert_eq!(receiver.taken(&json.to_string()).await, expected);
    receiver.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_a_message_unless_it_is_a_map() {
    let mut receiver = Receiver::new();
    for (body, expected) in [
        (r#"{"stringValue":""}"#, json!({"message": ""})),
        (r#"{"boolValue":false}"#, json!({"message": "false"})),
        (r#"{"intValue":"-7"}"#, json!({"message": "-7"})),
        (r#"{"doubleValue":1.5}"#, json!({"message": "1.5"})),
        (r#"{"doubleValue":"NaN"}"#, json!({"message": "NaN"})),
        (r#"{"bytesValue":"-_8"}"#, json!({"message": "+/8="})),
        (
            r#"{"arrayValue":{"values":[{"intValue":1},null,{"stringValue":"\""}]}}"#,
            json!({"message": r#"[1,null,"\""]"#}),
        ),
        (r#"{"arrayValue":{}}"#, json!({"message": "[]"})),
        (
            r#"{"kvlistValue":{"values":[{"key":"k","value":{"intValue":1}}]}}"#,
            json!({"otlp": {"body": {"k": 1}}}),
        ),
        (
            r#"{"kvlistValue":{"values":[{"key":"k","value":{"doubleValue":"-Infinity"}}]}}"#,
            json!({"otlp": {"body": {"k": "-Infinity"}}}),
        ),
    ] {
        assert_eq!(receiver.taken(&of_body(body)).await, [expected], "{body}");
    }
    receiver.bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_protocol_buffers_that_are_not_known_are_skipped() {
    let mut receiver = Receiver::new();
    // A group of field 14 with a number in it, and known fields in another form.
    let group = [vec![14 << 3 | 3], varint(1, 300), vec![14 << 3 | 4]].concat();
    let record = [group.clone(), varint(3, 5), bytes(5, &bytes(1, b"a")), varint(5, 5)].concat();
    let scope = [group.clone(), bytes(2, &record), varint(2, 5)].concat();
    let resource = [group.clone(), varint(1, 5), bytes(2, &scope)].concat();
    let request = [group.clone(), bytes(1, &resource), varint(1, 5)].concat();
    let (answered, events) = receiver.send(export(&request)).await;
    assert_eq!((answered.status, &*answered.body), (200, ""), "{answered:?}");
    assert_eq!(events, [json!({"message": "a"})]);
    let open = [bytes(1, &resource), group[..group.len() - 1].to_vec()].concat();
    let (answered, events) = receiver.send(export(&open)).await;
    assert_eq!((answered.status, events.len()), (400, 0), "{answered:?}");
    receiver.bench.stop().await;
}
