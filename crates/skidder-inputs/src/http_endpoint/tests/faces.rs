//! Clients of other servers: each face keeps the contract of inputs, and answers as its server does.

use super::*;
use crate::http_endpoint::faces::testing::{bytes, fixed64, varint};
use std::fmt::Write as _;

pub(super) fn body_of(answered: &Answered) -> Value {
    serde_json::from_str(&answered.body).unwrap_or_else(|_| panic!("{answered:?}"))
}

fn get(path: &str) -> Vec<u8> {
    bytes_of("GET", path, "", b"")
}

const NDJSON: &str = "Content-Type: application/x-ndjson\r\n";

pub(super) fn bulk(path: &str, body: &str) -> Vec<u8> {
    bytes_of("POST", path, NDJSON, body.as_bytes())
}

pub(super) const ELASTICSEARCH: Dialect = Dialect {
    settings: ", accept: elasticsearch",
    is_grpc: false,
    request: |lines| {
        let mut body = String::new();
        for &number in lines {
            let document = json!({"message": line(number)});
            writeln!(body, "{{\"create\":{{\"_index\":\"i\"}}}}\n{document}").unwrap();
        }
        bulk("/_bulk", &body)
    },
    is_taken: |answered| answered.status == 200 && body_of(answered)["errors"] == false,
    garbage: || {
        let bodies =
            ["{\"create\":{}}\n{\"message\":\"line 0\"}\nline 0\n", "", "{\"create\":{}}\n"];
        bodies.map(|body| bulk("/_bulk", body)).to_vec()
    },
};

#[tokio::test(flavor = "multi_thread")]
async fn elasticsearch_keeps_the_contract_of_inputs() {
    keep_input(|| Client::new(ELASTICSEARCH)).await;
}

pub(super) const SPLUNK: Dialect = Dialect {
    settings: ", accept: splunk_hec, splunk_hec.token: t",
    is_grpc: false,
    request: |lines| {
        let events = lines.iter().map(|&number| json!({"event": line(number)}).to_string());
        hec("/services/collector", &events.collect::<String>())
    },
    is_taken: |answered| answered.status == 200 && body_of(answered)["code"] == 0,
    garbage: || {
        let bodies = ["{\"event\":\"line 0\"}{\"event\":\"\"}", "{\"event\":\"line 0\"}line 0", ""];
        bodies.map(|body| hec("/services/collector/event", body)).to_vec()
    },
};

pub(super) fn hec(path: &str, body: &str) -> Vec<u8> {
    bytes_of("POST", path, "Authorization: Splunk t\r\n", body.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn splunk_hec_keeps_the_contract_of_inputs() {
    keep_input(|| Client::new(SPLUNK)).await;
}

pub(super) const LOKI: Dialect = Dialect {
    settings: ", accept: loki",
    is_grpc: false,
    request: |lines| {
        let entries = lines.iter().map(|&number| (1_000_000_000, line(number), vec![]));
        push(&[("{app=\"a\"}", entries.collect())])
    },
    is_taken: |answered| answered.status == 204,
    garbage: || {
        let wrong = push(&[("{}", vec![(1, "line 0".to_owned(), vec![])]), ("no labels", vec![])]);
        vec![wrong, loki(b"no snappy"), loki(&snap(b"\x0a\x7f{}"))]
    },
};

fn snap(plain: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(plain).unwrap()
}

fn loki(body: &[u8]) -> Vec<u8> {
    let headers = "Content-Type: application/x-protobuf\r\nX-Scope-OrgID: me\r\n";
    bytes_of("POST", "/loki/api/v1/push", headers, body)
}

type Entry = (u64, String, Vec<(&'static str, &'static str)>);

/// A push in Protocol Buffers.
fn push(streams: &[(&str, Vec<Entry>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (labels, entries) in streams {
        let mut stream = bytes(1, labels.as_bytes());
        for (time, line, metadata) in entries {
            let time = [varint(1, time / 1_000_000_000), varint(2, time % 1_000_000_000)].concat();
            let mut entry = [bytes(1, &time), bytes(2, line.as_bytes())].concat();
            for (name, value) in metadata {
                let pair = [bytes(1, name.as_bytes()), bytes(2, value.as_bytes())].concat();
                entry.extend(bytes(3, &pair));
            }
            stream.extend(bytes(2, &entry));
        }
        body.extend(bytes(1, &stream));
    }
    loki(&snap(&body))
}

#[tokio::test(flavor = "multi_thread")]
async fn loki_keeps_the_contract_of_inputs() {
    keep_input(|| Client::new(LOKI)).await;
}

pub(super) const OTLP: Dialect = Dialect {
    settings: ", accept: otlp",
    is_grpc: false,
    request: |lines| {
        let record = |number: &usize| bytes(2, &bytes(5, &bytes(1, line(*number).as_bytes())));
        let records: Vec<u8> = lines.iter().flat_map(record).collect();
        export(&bytes(1, &bytes(2, &records)))
    },
    is_taken: |answered| answered.status == 200 && answered.body.is_empty(),
    garbage: || {
        let line = bytes(2, &bytes(2, &bytes(5, &bytes(1, b"line 0"))));
        vec![export(&[bytes(1, &line), vec![0x0a, 0x7f]].concat()), export(b"\x0bline 0")]
    },
};

pub(super) fn export(body: &[u8]) -> Vec<u8> {
    bytes_of("POST", "/v1/logs", "Content-Type: application/x-protobuf\r\n", body)
}

#[tokio::test(flavor = "multi_thread")]
async fn otlp_keeps_the_contract_of_inputs() {
    keep_input(|| Client::new(OTLP)).await;
}

fn face(address: SocketAddr, more: &str, sockets: &Sockets) -> Box<dyn Input> {
    input(address, more, sockets)
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_elasticsearch_find_what_they_look_for_before_they_send() {
    let (address, sockets) = free_address();
    let login = ", accept: [elasticsearch], basic_auth: true, username: u, password: p";
    let mut bench = Bench::start(face(address, login, &sockets), 100);
    let anonymous = exchange(address, &get("/")).await;
    assert_eq!(anonymous.status, 401);
    assert_eq!(anonymous.header("www-authenticate"), "Basic realm=\"skidder\"");
    assert_eq!(body_of(&anonymous)["error"]["type"], "security_exception");
    let ask = async |method: &str, path: &str| {
        let headers = "Authorization: Basic dTpw\r\n";
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&bytes_of(method, path, headers, b"")).await.unwrap();
        if method == "HEAD" {
            // There is a length, but no body.
            let mut head = [0; 15];
            stream.read_exact(&mut head).await.unwrap();
            return (String::from_utf8_lossy(&head[9..12]).parse().unwrap(), json!(null), None);
        }
        let answered = Answered::read(&mut stream, &mut Vec::new()).await.unwrap();
        let product = answered.headers.get("x-elastic-product").cloned();
        (answered.status, body_of(&answered), product)
    };
    let (status, info, product) = ask("GET", "/").await;
    assert_eq!((status, &info["version"]["number"]), (200, &json!("9.6.0")));
    assert_eq!(product, Some(vec!["Elasticsearch".to_owned()]));
    let (status, license, _) = ask("GET", "/_license?human=false").await;
    assert_eq!((status, &license["license"]["status"]), (200, &json!("active")));
    assert_eq!(ask("GET", "/_xpack").await.1["features"]["ilm"]["enabled"], true);
    assert_eq!(ask("GET", "/_cluster/health").await.1["status"], "green");
    assert_eq!(ask("PUT", "/_index_template/a").await.1["acknowledged"], true);
    for (method, path) in [("HEAD", "/"), ("HEAD", "/_index_template/a"), ("GET", "/_ilm/policy/a")]
    {
        assert_eq!(ask(method, path).await.0, 200, "{method} {path}");
    }
    assert_eq!(ask("GET", "/i/_search").await.0, 404);
    assert_eq!(ask("POST", "/_bulk").await.0, 400, "a body is missing");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_events_and_each_has_its_answer() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(face(address, ", accept: elasticsearch", &sockets), 100);
    let body = "{\"index\":{\"_index\":\"i\",\"_id\":\"7\"}}\n\
                {\"@timestamp\":\"2026-01-02T03:04:05.678Z\",\"message\":\"a\",\"host\":{\"name\":\"h\"},\"n\":1.50}\n\
                {\"create\":{}}\n{\"broken\":\n{\"create\":{}}\n[1]\n\
                {\"delete\":{\"_index\":\"i\",\"_id\":\"7\"}}\n\
                {\"create\":{}}\n{\"message\":\"b\",\"input\":{\"type\":\"x\"}}\n";
    let asking = bulk("/logs/_bulk?pipeline=p&filter_path=errors", body);
    let asking = tokio::spawn(async move { exchange(address, &asking).await });
    bench.events(2).await;
    let answered = asking.await.unwrap();
    assert_eq!(answered.status, 200);
    let answer = body_of(&answered);
    let items = answer["items"].as_array().unwrap();
    let seen: Vec<_> = items
        .iter()
        .map(|item| {
            let (verb, result) = item.as_object().unwrap().iter().next().unwrap();
            (verb.as_str(), result["_index"].as_str().unwrap(), result["status"].as_u64().unwrap())
        })
        .collect();
    let expected = [
        ("index", "i", 201),
        ("create", "logs", 400),
        ("create", "logs", 400),
        ("delete", "i", 400),
        ("create", "logs", 201),
    ];
    assert_eq!(seen, expected);
    assert_eq!(answer["errors"], true);
    let events = [
        json!({"message": "a", "host": {"name": "h"}, "n": 1.50, "input": {"type": "http_endpoint"}}),
        json!({"message": "b", "input": {"type": "x"}}),
    ];
    assert_eq!(bench.events, events);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_room_or_no_verdict_in_time_is_answered_with_429() {
    let (address, sockets) = free_address();
    let more = ", accept: elasticsearch, completion_timeout: 100ms, retry_after: 3";
    let mut bench = Bench::start(face(address, more, &sockets), 1);
    bench.is_stuck = true;
    let one = bulk("/_bulk", "{\"create\":{}}\n{\"message\":\"a\"}\n");
    for reason in ["no verdict within completion_timeout", "the queue is full"] {
        let busy = exchange(address, &one).await;
        assert_eq!((busy.status, &busy.headers["retry-after"][0][..]), (429, "3"));
        let error = &body_of(&busy)["error"];
        assert_eq!(error["type"], "es_rejected_execution_exception");
        assert_eq!(error["reason"], reason);
    }
    bench.is_stuck = false;
    bench.events(1).await;
    // A first batch that gets in, and a second one that does not.
    let large = "x".repeat(300_000);
    let two = format!("{{\"create\":{{}}}}\n{{\"message\":\"{large}\"}}\n").repeat(2);
    let asking = tokio::spawn(async move { exchange(address, &bulk("/_bulk", &two)).await });
    bench.events(2).await;
    bench.is_stuck = true;
    let answer = body_of(&asking.await.unwrap());
    let statuses: Vec<_> =
        answer["items"].as_array().unwrap().iter().map(|item| &item["create"]["status"]).collect();
    assert_eq!(statuses[0], 201);
    assert!([json!(201), json!(429)].contains(statuses[1]), "{statuses:?}");
    bench.stop_without_taking().await;
}

/// The events without the type of the input.
pub(super) fn plain(bench: &mut Bench) -> Vec<Value> {
    bench.events.drain(..).map(|event| without_type(&event)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_splunk_have_their_fields_and_errors_their_codes() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(face(address, SPLUNK.settings, &sockets), 100);
    let health = exchange(address, &get("/services/collector/health")).await;
    assert_eq!((health.status, &body_of(&health)["code"]), (200, &json!(17)));
    let body = r#"{"time":"1426279439.5","host":"h","source":"s","sourcetype":"t","index":"i","event":"a\u00e9","fields":{"k":"v"}}
        {"event":{"n":1.50,"m":{"x":[]}},"host":"h"} {"event":7,"time":1767225600123}"#;
    let asking = hec("/services/collector/event", body);
    let asking = tokio::spawn(async move { exchange(address, &asking).await });
    bench.events(3).await;
    assert_eq!(body_of(&asking.await.unwrap()), json!({"text": "Success", "code": 0}));
    let expected = [
        json!({"message": "aé", "host": {"name": "h"}, "labels": {"k": "v"},
            "splunk": {"source": "s", "sourcetype": "t", "index": "i"}}),
        json!({"json": {"n": 1.50, "m": {"x": []}}, "host": {"name": "h"}}),
        json!({"message": "7"}),
    ];
    assert_eq!(plain(&mut bench), expected);
    assert_eq!(bench.specials[2].0, "2026-01-01T00:00:00.123Z", "it came in milliseconds");
    let asking = hec("/services/collector/raw?host=r&sourcetype=x", "one\r\n\ntwo");
    let asking = tokio::spawn(async move { exchange(address, &asking).await });
    bench.events(2).await;
    assert_eq!(asking.await.unwrap().status, 200);
    let of =
        |line: &str| json!({"message": line, "host": {"name": "r"}, "splunk": {"sourcetype": "x"}});
    assert_eq!(plain(&mut bench), [of("one"), of("two")]);
    for (body, status, code, event) in [
        ("", 400, 5, Some(0)),
        ("{}", 400, 12, Some(0)),
        ("{\"event\":null}", 400, 12, Some(0)),
        ("{\"event\":1}{\"event\":\"\"}", 400, 13, Some(1)),
        ("{\"event\":1}[]", 400, 6, Some(1)),
        ("{\"event\":1,\"time\":\"x\"}", 400, 6, Some(0)),
        ("{\"event\":1,\"fields\":", 400, 6, Some(0)),
    ] {
        let answered = exchange(address, &hec("/services/collector", body)).await;
        let answer = body_of(&answered);
        let number = answer["invalid-event-number"].as_u64();
        assert_eq!(
            (answered.status, answer["code"].as_u64(), number),
            (status, Some(code), event),
            "{body}"
        );
        let text = answer["text"].as_str().unwrap();
        assert_eq!(text.contains("`time`"), body.contains("time"), "{answer}");
    }
    for (bytes, status, code) in [
        (bytes_of("POST", "/services/collector", "", b"{}"), 401, 2),
        (bytes_of("POST", "/services/collector", "Authorization: Splunk x\r\n", b"{}"), 403, 4),
        (hec("/services/collector/ack?channel=c", "{\"acks\":[0]}"), 400, 14),
    ] {
        let answered = exchange(address, &bytes).await;
        assert_eq!((answered.status, &body_of(&answered)["code"]), (status, &json!(code)));
    }
    assert_eq!(exchange(address, &get("/services/collector")).await.status, 405);
    assert_eq!(exchange(address, &get("/other")).await.status, 404);
    bench.take();
    assert!(bench.events.is_empty(), "what was refused is no event: {:?}", bench.events);
    bench.stop().await;
}

/// Asks whether requests of channel `c` have their verdicts.
async fn acknowledged(address: SocketAddr, ids: &[u64]) -> Vec<bool> {
    let body = json!({ "acks": ids }).to_string();
    let answered = exchange(address, &hec("/services/collector/ack?channel=c", &body)).await;
    let answer = body_of(&answered);
    ids.iter().map(|id| answer["acks"][id.to_string()].as_bool().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn splunks_acknowledgements_are_true_only_behind_the_verdict() {
    let (address, sockets) = free_address();
    let settings = ", accept: splunk_hec, splunk_hec.use_ack: true, completion_timeout: 200ms";
    let mut bench = Bench::start(face(address, settings, &sockets), 1);
    bench.is_stuck = true;
    let missing = exchange(address, &hec("/services/collector", "{\"event\":1}")).await;
    assert_eq!(body_of(&missing)["code"], 10);
    let send = || hec("/services/collector?channel=c", "{\"event\":1}");
    let taken = body_of(&exchange(address, &send()).await);
    assert_eq!((&taken["text"], &taken["code"]), (&json!("Success"), &json!(0)));
    let id = taken["ackId"].as_u64().unwrap();
    assert_eq!(acknowledged(address, &[id, id + 1]).await, [false, false]);
    let full = exchange(address, &send()).await;
    assert_eq!((full.status, &body_of(&full)["code"]), (503, &json!(9)), "there is no room");
    bench.is_stuck = false;
    bench.events(1).await;
    let mut acked = acknowledged(address, &[id, id + 1]).await;
    for _ in 0..100 {
        if acked[0] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        acked = acknowledged(address, &[id, id + 1]).await;
    }
    assert_eq!(acked, [true, false]);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledgement_of_splunk_is_of_no_request_of_another_run() {
    let settings = ", accept: splunk_hec, splunk_hec.use_ack: true, completion_timeout: 2s";
    let send = async |address| {
        let sent = hec("/services/collector?channel=c", "{\"event\":1}");
        body_of(&exchange(address, &sent).await)["ackId"].as_u64().unwrap()
    };
    let (address, sockets) = free_address();
    let mut stuck = Bench::start(face(address, settings, &sockets), 1);
    stuck.is_stuck = true;
    let before = send(address).await;
    let (address, sockets) = free_address();
    let mut bench = Bench::start(face(address, settings, &sockets), 1);
    let id = send(address).await;
    bench.events(1).await;
    assert_eq!(acknowledged(address, &[before]).await, [false]);
    assert!(id > before, "{id} {before}");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_loki_have_labels_and_structured_metadata() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(face(address, LOKI.settings, &sockets), 100);
    assert_eq!(exchange(address, &get("/ready")).await.status, 200);
    let entry = (1, "a".to_owned(), vec![("trace_id", "x"), ("k", "v")]);
    let protobuf = push(&[("{app=\"web\", env=\"p\"}", vec![entry])]);
    let json = r#"{"streams":[{"stream":{"app":"web","env":"p"},"values":[["1","a",{"trace_id":"x","k":"v"}]]}]}"#;
    let headers = "Content-Type: application/json; charset=utf-8\r\nX-Scope-OrgID: me\r\n";
    let json = bytes_of("POST", "/loki/api/v1/push", headers, json.as_bytes());
    for sent in [protobuf, json] {
        let asking = tokio::spawn(async move { exchange(address, &sent).await });
        bench.events(1).await;
        assert_eq!(asking.await.unwrap().status, 204);
        let expected = json!({"message": "a", "labels": {"app": "web", "env": "p"},
            "loki": {"tenant": "me", "structured_metadata": {"k": "v", "trace_id": "x"}}});
        assert_eq!(plain(&mut bench), [expected]);
    }
    for wrong in [
        "[]",
        "{\"streams\":[{\"values\":[[\"x\",\"a\"]]}]}",
        "{\"streams\":[{\"values\":[[\"1\"]]}]}",
    ] {
        let sent = bytes_of("POST", "/loki/api/v1/push", headers, wrong.as_bytes());
        assert_eq!(exchange(address, &sent).await.status, 400, "{wrong}");
    }
    bench.stop().await;
}

/// A request with a large attribute of the resource, of which every small record gets its own copy.
fn with_large_resource(records: usize) -> Vec<u8> {
    let large = [bytes(1, b"k"), bytes(2, &bytes(1, &[b'x'; 100_000]))].concat();
    let resource = bytes(1, &bytes(1, &large));
    let scope = bytes(2, &bytes(2, b"").repeat(records));
    export(&bytes(1, &[resource, scope].concat()))
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_whose_events_take_too_much_together_are_sent_again_later() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(face(address, OTLP.settings, &sockets), 100);
    // Ten million bytes of 16 MiB, until it is answered: behind the verdicts.
    let ask = || {
        let asked = with_large_resource(100);
        tokio::spawn(async move { exchange(address, &asked).await.status })
    };
    bench.is_stuck = true;
    let waits = ask();
    bench.until("its events are on the way", |bench| bench.settle.total().read() > 0).await;
    assert_eq!(ask().await.unwrap(), 429);
    bench.is_stuck = false;
    bench.events(100).await;
    assert_eq!(waits.await.unwrap(), 200);
    let again = ask();
    bench.events(200).await;
    assert_eq!(again.await.unwrap(), 200, "there is room again");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_otlp_whose_events_take_too_much_is_refused_before_all_are_made() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(face(address, OTLP.settings, &sockets), 100);
    // Copies for all of them would be 40 GB.
    let answered = exchange(address, &with_large_resource(400_000)).await;
    assert_eq!(answered.status, 413, "{}", answered.body);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_otlp_are_the_same_in_both_encodings() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(face(address, OTLP.settings, &sockets), 100);
    let text = |text: &str| bytes(1, text.as_bytes());
    let pair = |name: &str, value: &[u8]| [bytes(1, name.as_bytes()), bytes(2, value)].concat();
    let record = [
        fixed64(1, 1_000_000_000),
        varint(2, 17),
        bytes(3, b"ERROR"),
        bytes(5, &text("boom")),
        bytes(6, &pair("http.route", &text("/x"))),
        bytes(6, &pair("n", &varint(3, 7))),
        bytes(6, &pair("exception.type", &text("E"))),
        bytes(
            6,
            &pair("list", &bytes(5, &[bytes(1, &varint(2, 1)), bytes(1, &text("t"))].concat())),
        ),
        bytes(9, &[0xab; 16]),
        // Of the length of a trace, so no span.
        bytes(10, &[7; 16]),
    ]
    .concat();
    let of_scope =
        bytes(1, &[bytes(1, b"lib"), bytes(3, &pair("short.name", &text("l")))].concat());
    let scope = [of_scope, bytes(2, &record), bytes(2, b"\x0b")].concat();
    let resource = bytes(
        1,
        &[
            bytes(1, &pair("service.name", &text("shop"))),
            bytes(1, &pair("k8s.pod.name", &text("p"))),
        ]
        .concat(),
    );
    let protobuf = export(&bytes(1, &[bytes(2, &scope), resource].concat()));
    let json = json!({"resourceLogs": [{
        "resource": {"attributes": [
            {"key": "service.name", "value": {"stringValue": "shop"}},
            {"key": "k8s.pod.name", "value": {"stringValue": "p"}}]},
        "scopeLogs": [{"scope": {"name": "lib", "attributes": [
            {"key": "short.name", "value": {"stringValue": "l"}}]}, "logRecords": [{
            "timeUnixNano": "1000000000", "severityNumber": 17, "severityText": "ERROR",
            "body": {"stringValue": "boom"}, "traceId": "AB".repeat(16), "spanId": "no span",
            "attributes": [
                {"key": "http.route", "value": {"stringValue": "/x"}},
                {"key": "n", "value": {"intValue": "7"}},
                {"key": "exception.type", "value": {"stringValue": "E"}},
                {"key": "list", "value": {"arrayValue": {"values": [{"boolValue": true}, {"stringValue": "t"}]}}}]},
            {"timeUnixNano": "x"}]}]}]});
    let json = bytes_of("POST", "/v1/logs", JSON, json.to_string().as_bytes());
    let expected = json!({"message": "boom", "log": {"level": "ERROR"}, "event": {"severity": 17},
        "service": {"name": "shop"}, "kubernetes": {"pod": {"name": "p"}},
        "otlp": {"scope": {"name": "lib", "attributes": {"short": {"name": "l"}}}},
        "http": {"route": "/x"}, "n": 7, "error": {"type": "E"}, "list": [true, "t"],
        "trace": {"id": "ab".repeat(16)}});
    for (sent, is_json) in [(protobuf, false), (json, true)] {
        let asking = tokio::spawn(async move { exchange(address, &sent).await });
        bench.events(1).await;
        let answered = asking.await.unwrap();
        assert_eq!(answered.status, 200);
        if is_json {
            let partial = &body_of(&answered)["partialSuccess"];
            assert_eq!(partial["rejectedLogRecords"], "1", "the second record is malformed");
        } else {
            let message = "malformed records are left out";
            let partial = [varint(1, 1), bytes(2, message.as_bytes())].concat();
            assert_eq!(answered.body.as_bytes(), bytes(1, &partial));
        }
        assert_eq!(plain(&mut bench), std::slice::from_ref(&expected));
    }
    let wrong = exchange(address, &post("/v1/logs", "[]")).await;
    assert_eq!((wrong.status, &body_of(&wrong)["code"]), (400, &json!(3)));
    let other = bytes_of("POST", "/v1/logs", "Content-Type: text/plain\r\n", b"x");
    assert_eq!(exchange(address, &other).await.status, 415);
    bench.stop().await;
}
