//! What a sender says in its documents, and what it cannot say.

use super::faces::{SPLUNK, body_of, bulk, hec};
use super::*;

/// Sends a request and takes events until it is answered.
async fn ask(bench: &mut Bench, address: SocketAddr, request: Vec<u8>) -> Answered {
    let asking = tokio::spawn(async move { exchange(address, &request).await });
    bench.until("an answer", |_| asking.is_finished()).await;
    bench.take();
    asking.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_says_nothing_of_how_its_event_is_written() {
    let evil = r#"{"@metadata":{"op_type":"delete","_id":"victim","pipeline":"p","raw_index":"x"},"@metadat\u0061":{"_id":"v"},"@timestamp":"2026-01-02T03:04:05Z","m":1}"#;
    let action = r#"{"create":{"_index":"i","_id":"7"}}"#;
    let of_action = json!({"raw_index": "i", "_id": "7"});
    let event = format!("{{\"event\":{evil},\"fields\":{{\"@metadata\":{{\"_id\":\"v\"}}}}}}");
    for (settings, request, metadata) in [
        (", prefix: .", post("/", evil), json!(null)),
        (", prefix: ., program: obj", post("/", evil), json!(null)),
        (", prefix: json", post("/", evil), json!(null)),
        (", accept: elasticsearch", bulk("/_bulk", &format!("{action}\n{evil}\n")), of_action),
        (", accept: splunk_hec, prefix: .", hec("/services/collector", &event), json!(null)),
    ] {
        let (address, sockets) = free_address();
        let mut bench = Bench::start(input(address, settings, &sockets), 100);
        assert_eq!(ask(&mut bench, address, request).await.status, 200, "{settings}");
        bench.events(1).await;
        assert_eq!(bench.specials[0].1, metadata, "{settings}");
        if settings != ", prefix: json" {
            assert_eq!(bench.events[0]["m"], 1, "{settings}");
        }
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_of_the_settings_may_be_metadata() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", prefix: '@metadata.in'", &sockets), 100);
    assert_eq!(ask(&mut bench, address, post("/", "{\"m\":1}")).await.status, 200);
    bench.events(1).await;
    assert_eq!(bench.specials[0].1, json!({"in": {"m": 1}}));
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_documents_are_read_as_elasticsearch_does() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", accept: elasticsearch", &sockets), 100);
    let day = "2026-01-02T00:00:00.000Z";
    let second = "2026-01-02T03:04:05.000Z";
    let right = [
        ("1700000000123", "2023-11-14T22:13:20.123Z"),
        ("\"1700000000123\"", "2023-11-14T22:13:20.123Z"),
        ("-1", "1969-12-31T23:59:59.999Z"),
        ("\"2026-01-02T03:04:05\"", second),
        ("\"2026-01-02T03:04:05.000000000Z\"", second),
        ("\"2026-01-02T05:04:05+02:00\"", second),
        ("\"2026-01-01T21:34:05-0530\"", second),
        ("\"2026-01-02T05:04:05+02\"", second),
        ("\"2026-01-02T03:04:05,5\"", "2026-01-02T03:04:05.500Z"),
        ("\"2026-01-02\"", day),
        ("\"2026-01\"", "2026-01-01T00:00:00.000Z"),
        ("2026", "2026-01-01T00:00:00.000Z"),
        ("\"2026-01-02T03:04Z\"", "2026-01-02T03:04:00.000Z"),
        ("\"2026-01-02T03\"", "2026-01-02T03:00:00.000Z"),
        ("[\"2026-01-02\"]", day),
    ];
    let wrong = ["\"bad\"", "\"\"", "{}", "true", "1.5e3", "\"2026-01-02 03:04:05\"", "[]"];
    let document = |time: &str| format!("{{\"create\":{{}}}}\n{{\"@timestamp\":{time}}}\n");
    let all = right.iter().map(|(time, _)| *time).chain(wrong);
    let body: String = all.map(document).chain(["{\"create\":{}}\n{}\n".to_owned()]).collect();
    let answered = ask(&mut bench, address, bulk("/i/_bulk", &body)).await;
    let answer = body_of(&answered);
    let items: Vec<_> =
        answer["items"].as_array().unwrap().iter().map(|item| &item["create"]).collect();
    for ((time, _), item) in right.iter().zip(&items) {
        assert_eq!(item["status"], 201, "{time}: {item}");
    }
    for (time, item) in wrong.iter().zip(&items[right.len()..]) {
        assert_eq!(item["status"], 400, "{time}");
        assert_eq!(item["error"]["type"], "document_parsing_exception", "{time}: {item}");
    }
    assert_eq!(items.last().unwrap()["status"], 201, "a document without a time");
    bench.events(right.len() + 1).await;
    let came: Vec<_> = bench.specials.iter().map(|(time, _)| &**time).collect();
    let expected: Vec<_> = right.iter().map(|(_, expected)| *expected).collect();
    assert_eq!(came[..right.len()], expected);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_may_have_numbers_as_texts_and_a_mark_before_them() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", accept: elasticsearch", &sockets), 100);
    let body = "\u{feff}{\"create\":{\"_id\":7,\"_index\":true,\"pipeline\":1.5}}\n{\"m\":1}\n\
                {\"create\":{\"_id\":null}}\n{\"m\":2}\n";
    let answered = ask(&mut bench, address, bulk("/_bulk", body)).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    let item = &body_of(&answered)["items"][0]["create"];
    assert_eq!((&item["_id"], &item["_index"]), (&json!("7"), &json!("true")));
    bench.events(2).await;
    let metadata = json!({"raw_index": "true", "_id": "7", "pipeline": "1.5"});
    assert_eq!(bench.specials[0].1, metadata);
    let list = bulk("/_bulk", "{\"create\":{\"_id\":[]}}\n{\"m\":1}\n");
    assert_eq!(ask(&mut bench, address, list).await.status, 400);
    bench.stop().await;
}

/// A request of one record with this body, and another one.
fn records(body: &str) -> Vec<u8> {
    let json = format!(
        r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{body},"severityNumber":"SEVERITY_NUMBER_ERROR"}},{{"body":{{"stringValue":"other"}}}}]}}]}}]}}"#
    );
    bytes_of("POST", "/v1/logs", JSON, json.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn json_of_otlp_is_that_of_protocol_buffers() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", accept: otlp", &sockets), 100);
    let nested = |levels: usize| {
        let (open, close) = ("{\"arrayValue\":{\"values\":[", "]}}");
        format!("{}{{\"intValue\":7}}{}", open.repeat(levels), close.repeat(levels))
    };
    // A value is one level by itself.
    for (body, is_taken) in [
        (nested(38), true),
        (nested(62), true),
        (nested(63), true),
        (nested(64), false),
        (nested(3000), false),
        ("null".to_owned(), true),
        ("{\"stringValue\":null}".to_owned(), true),
        ("{\"kvlistValue\":null}".to_owned(), true),
        ("{\"kvlistValue\":{\"values\":[{\"key\":\"a\",\"value\":null}]}}".to_owned(), true),
        ("{\"intValue\":\"x\"}".to_owned(), false),
    ] {
        let what = &body[..body.len().min(80)];
        let answered = ask(&mut bench, address, records(&body)).await;
        assert_eq!(answered.status, 200, "{what}: {answered:?}");
        let rejected = body_of(&answered)["partialSuccess"]["rejectedLogRecords"].clone();
        assert_eq!(rejected == "1", !is_taken, "{what}: {answered:?}");
        let events: Vec<Value> = bench.events.drain(..).collect();
        assert_eq!(events.len(), 1 + usize::from(is_taken), "{what}");
        if is_taken {
            assert_eq!(events[0]["event"]["severity"], 17, "{what}");
        }
        assert_eq!(events.last().unwrap()["message"], "other");
    }
    let deep = "[".repeat(500_000);
    for wrong in [&records(&deep)[..], &post("/v1/logs", &format!("{{\"resourceLogs\":{deep}"))] {
        assert_eq!(ask(&mut bench, address, wrong.to_vec()).await.status, 400);
    }
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_too_many_events_is_refused() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    let many = (1 << 21) + 1;
    for body in ["{}\n".repeat(many), format!("[{}{{}}]", "{},".repeat(many - 1))] {
        let answered = ask(&mut bench, address, post("/", &body)).await;
        assert_eq!(answered.status, 413, "{answered:?}");
        assert!(answered.body.contains("2097152 events"), "{answered:?}");
    }
    assert!(bench.events.is_empty());
    bench.stop().await;
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, SPLUNK.settings, &sockets), 100);
    let lines = hec("/services/collector/raw", &"x\n".repeat(many));
    let answered = ask(&mut bench, address, lines).await;
    assert_eq!(answered.status, 413, "{answered:?}");
    assert!(bench.events.is_empty());
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn small_records_with_many_labels_take_no_more_memory_than_allowed() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", accept: loki", &sockets), 100);
    let labels: serde_json::Map<String, Value> =
        (0..500).map(|number| (format!("label{number}"), json!("a value of a label"))).collect();
    let push = |lines: usize| {
        let stream = json!({"stream": labels, "values": vec![json!(["1", "a"]); lines]});
        let body = json!({ "streams": [stream] }).to_string();
        let headers = "Content-Type: application/json\r\n";
        bytes_of("POST", "/loki/api/v1/push", headers, body.as_bytes())
    };
    let answered = ask(&mut bench, address, push(2000)).await;
    assert_eq!(answered.status, 413, "{answered:?}");
    assert!(bench.events.is_empty());
    assert_eq!(ask(&mut bench, address, push(2)).await.status, 204);
    assert_eq!(bench.events.len(), 2);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_gzip_is_a_wrong_request_to_a_face() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", accept: elasticsearch", &sockets), 100);
    let headers = format!("{JSON}Content-Encoding: gzip\r\n");
    for body in [&b"{}\n"[..], b""] {
        let answered = exchange(address, &bytes_of("POST", "/_bulk", &headers, body)).await;
        assert_eq!(answered.status, 400, "{answered:?}");
    }
    bench.stop().await;
}

#[test]
fn settings_that_are_wrong_are_reported_once() {
    let (_, sockets) = free_address();
    let report = |text: &str| read_text(text, &context(&sockets)).1;
    for kind in ["", ", hmac.type: md5"] {
        let problems = report(&format!("{{hmac.header: X-S, hmac.key: k{kind}}}"));
        assert_eq!(problems.matches("hmac.type").count(), 1, "{problems}");
        assert!(problems.contains("`hmac.type`"), "{problems}");
    }
    let problems = report("{accept: []}");
    assert!(problems.contains("at least one face"), "{problems}");
    let problems = report("{accept: loki, method: PUT}");
    assert!(problems.contains("`method` has no effect"), "{problems}");
}
