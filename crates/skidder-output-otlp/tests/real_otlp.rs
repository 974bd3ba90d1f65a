//! The output for OpenTelemetry against the receiver of the OpenTelemetry Collector.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Fixture, check_report, context, number};
use serde_json::Value;
use skidder_config::{Problems, Settings};
use skidder_contract::{Proxy, Way};
use skidder_event::{Base, Map};
use skidder_output_otlp::{Config, Otlp};
use skidder_pipeline::Output as _;
use skidder_testkit::servers::Server;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const LINES: usize = 5000;
const PROTOCOLS: [&str; 2] = ["grpc", "http/protobuf"];

fn server(protocol: &str, secure: bool, settings: &str) -> Server {
    let over = if protocol == "grpc" { "" } else { "-http " };
    Server::own_otelcol(secure, &format!("{over}{settings}")).unwrap()
}

fn output(protocol: &str, host: &str, more: &str) -> Otlp {
    let text = format!(
        "hosts: ['{host}']\nprotocol: {protocol}\nbackoff: {{init: 10ms, max: 50ms}}\n{more}\n"
    );
    let settings = Settings::parse("x", &text).unwrap();
    let problems = Problems::new();
    let config = Config::read(&settings.root(&problems));
    assert_eq!(problems.to_string(), "", "{text}");
    Otlp::new(config.unwrap(), context()).unwrap()
}

fn host(server: &Server) -> String {
    format!("localhost:{}", server.port())
}

/// Requests as the receiver handed them on.
fn requests(server: &Server) -> Vec<Value> {
    let Ok(text) = std::fs::read_to_string(server.file("logs.ndjson")) else { return Vec::new() };
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Each record with its resource.
fn records(server: &Server) -> Vec<(Value, Value)> {
    let mut found = Vec::new();
    for request in requests(server) {
        for group in request["resourceLogs"].as_array().unwrap() {
            for scope in group["scopeLogs"].as_array().unwrap() {
                assert_eq!(scope["scope"]["name"], "skidder");
                let records = scope["logRecords"].as_array().unwrap().iter();
                found.extend(records.map(|record| (group["resource"].clone(), record.clone())));
            }
        }
    }
    found
}

/// How often each line was taken.
fn taken(server: &Server) -> BTreeMap<usize, usize> {
    let mut taken = BTreeMap::new();
    for (_, record) in records(server) {
        assert_eq!(record["timeUnixNano"], "1767323045000000000");
        let line = number(record["body"]["stringValue"].as_str().unwrap());
        *taken.entry(line).or_default() += 1;
    }
    taken
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn the_collector_itself_takes_every_event_once() {
    for protocol in PROTOCOLS {
        for compression in ["none", "gzip", "zstd"] {
            let server = server(protocol, false, "");
            let mut fixture = Fixture::new();
            fixture.name = format!("{protocol}, {compression}");
            fixture.push(LINES, 700);
            let more = format!("compression: {compression}\nworkers: 2");
            fixture.run(output(protocol, &host(&server), &more)).await;
            fixture.judge(&taken(&server));
            assert_eq!(fixture.feed.metrics.write_errors.get(), 0, "{}", fixture.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn the_collector_itself_understands_fields_levels_and_ids() {
    let server = server("grpc", false, "");
    let mut fields = Map::new();
    for (path, text) in [
        ("host.name", "here"),
        ("host.architecture", "x86_64"),
        ("log.level", "warning"),
        ("log.file.path", "/a.log"),
        ("trace.id", "0af7651916cd43dd8448eb211c80319c"),
        ("span.id", "b7ad6b7169203331"),
    ] {
        fields.insert_path(path, text);
    }
    fields.insert_path("tags", skidder_event::Value::List(vec!["a".into(), 7.into()]));
    let fixture = Fixture::new();
    let base = Arc::new(Base::new(&fields, &Map::new()));
    fixture.queue.push(common::batch(0, 1, base)).unwrap();
    fixture.run(output("grpc", &host(&server), "resource_attributes: {service.name: shop}")).await;
    let (resource, record) = records(&server).remove(0);
    let text =
        |key: &str, text: &str| serde_json::json!({"key": key, "value": {"stringValue": text}});
    let expected =
        [text("host.arch", "x86_64"), text("host.name", "here"), text("service.name", "shop")];
    assert_eq!(resource["attributes"], Value::from(expected.to_vec()));
    assert_eq!(
        (&record["severityNumber"], &record["severityText"]),
        (&13.into(), &"warning".into())
    );
    assert_eq!(record["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(record["spanId"], "b7ad6b7169203331");
    let attributes = record["attributes"].as_array().unwrap();
    assert!(attributes.contains(&text("log.file.path", "/a.log")), "{record}");
    let offset = serde_json::json!({"key": "log.offset", "value": {"intValue": "0"}});
    assert!(attributes.contains(&offset), "{record}");
    let items = serde_json::json!([{"stringValue": "a"}, {"intValue": "7"}]);
    let tags = serde_json::json!({"key": "tags", "value": {"arrayValue": {"values": items}}});
    assert!(attributes.contains(&tags), "{record}");
    assert_eq!(attributes.len(), 3, "{record}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_collector_that_refuses_for_now_gets_everything_and_one_that_refuses_for_good_does_not() {
    for (protocol, status) in [("grpc", 13), ("http/protobuf", 500)] {
        let server = server(protocol, false, "-busy 3 -broken 1");
        let mut fixture = Fixture::new();
        fixture.name = protocol.to_owned();
        fixture.push(LINES, 700);
        fixture.run(output(protocol, &host(&server), "bulk_max_size: 1000")).await;
        fixture.judge(&taken(&server));
        assert_eq!(fixture.feed.metrics.write_errors.get(), 3);
        let dead = fixture.dead_letters();
        assert_eq!(dead.len(), 1000);
        assert!(dead.values().all(|&of_letter| of_letter == status), "{protocol}: {dead:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_collector_that_takes_only_small_requests_gets_everything() {
    for protocol in PROTOCOLS {
        for compression in ["none", "gzip", "zstd"] {
            let server = server(protocol, false, "-large 1");
            let mut fixture = Fixture::new();
            fixture.name = format!("{protocol}, {compression}");
            fixture.push(40_000, 700);
            let more =
                format!("bulk_max_size: 0\nbulk_max_bytes: 64MiB\ncompression: {compression}");
            fixture.run(output(protocol, &host(&server), &more)).await;
            fixture.judge(&taken(&server));
            assert!(fixture.feed.metrics.split.get() > 0, "{}", fixture.name);
            assert!(fixture.dead_letters().is_empty());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_collector_is_reached_over_tls_and_through_a_proxy_of_socks() {
    let socks = Server::own_socks().unwrap();
    for protocol in PROTOCOLS {
        let server = server(protocol, true, "");
        let authority = server.certificate("ca.crt").unwrap();
        let ssl = format!("ssl.certificate_authorities: ['{}']", authority.display());
        let more = format!("{ssl}\nproxy_url: 'socks5://test:secret@localhost:{}'", socks.port());
        let through = output(protocol, &host(&server), &more);
        let (good, said) = check_report(async |report| through.check(report).await).await;
        assert!(good, "{said}");
        assert!(requests(&server).is_empty());
        let mut fixture = Fixture::new();
        fixture.push(LINES, 700);
        fixture.run(through).await;
        fixture.judge(&taken(&server));
        let other = server.certificate("other-ca.crt").unwrap();
        let ssl = format!("ssl.certificate_authorities: ['{}']", other.display());
        let stranger = output(protocol, &host(&server), &ssl);
        let (good, said) = check_report(async |report| stranger.check(report).await).await;
        assert!(!good && said.contains("handshake... ERROR"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_bad_network_before_a_collector_and_its_restart_lose_nothing() {
    for protocol in PROTOCOLS {
        let server = server(protocol, false, "");
        let ways = [1, 10, 1000, 10_000, 50_000].map(Way::ResetAfterSent);
        let answers = [0, 10, 30, 60, 100].map(Way::ResetAfterAnswered);
        let address = format!("127.0.0.1:{}", server.port());
        let proxy = Proxy::start(&address, ways.into_iter().chain(answers)).await;
        let mut fixture = Fixture::new();
        fixture.name = protocol.to_owned();
        fixture.push(LINES, 700);
        let sent = output(protocol, proxy.address(), "bulk_max_size: 300\nproxy_disable: true");
        let metrics = Arc::clone(&fixture.feed.metrics);
        let running = Box::new(sent).run(fixture.feed.clone());
        let story = async {
            until(|| metrics.acked.get() >= LINES as u64 / 2).await;
            server.stop().unwrap();
            fixture.push(LINES, 700);
            let failures = metrics.write_errors.get();
            until(|| metrics.write_errors.get() > failures).await;
            server.start_again().unwrap();
            fixture.queue.close();
        };
        tokio::join!(running, story);
        fixture.judge_repeated(&taken(&server));
        assert!(fixture.feed.metrics.write_errors.get() >= 5);
    }
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), wait).await.expect("it takes too long");
}
