//! The Elasticsearch output against Elasticsearch and OpenSearch themselves.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Fixture, batch, context, number};
use serde_json::json;
use skidder_config::Secret;
use skidder_contract::{Proxy, Way};
use skidder_event::{Base, Format, Map, Path, Value};
use skidder_outputs::Elasticsearch;
use skidder_outputs::elasticsearch::{Config, Credentials, HostUrl, Pem, TlsSettings};
use skidder_testkit::servers::{Server, USER, unique_name};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const LINES: usize = 5000;

fn config(server: &Server, index: &str) -> Config {
    Config {
        index: Format::parse(index).unwrap(),
        backoff_init: Duration::from_millis(10),
        workers: 2,
        ..Config::new(vec![HostUrl::parse(server.url(), "http", "").unwrap()])
    }
}

async fn run(fixture: &Fixture, config: Config) {
    fixture.run(Elasticsearch::new(config, context()).unwrap()).await;
}

/// How often each line is in an index.
fn found(server: &Server, index: &str) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    for document in server.search(index, &json!({ "match_all": {} })).unwrap() {
        assert_eq!(document["@timestamp"], "2026-01-02T03:04:05.000Z");
        *found.entry(number(document["message"].as_str().unwrap())).or_default() += 1;
    }
    found
}

/// What every server must do.
async fn takes_refuses_and_recognises(server: Server) {
    for compression_level in [0, 1] {
        let index = unique_name("taken");
        let mut fixture = Fixture::new();
        fixture.push(LINES, 700);
        run(&fixture, Config { compression_level, ..config(&server, &index) }).await;
        fixture.judge(&found(&server, &index));
        assert_eq!(fixture.feed.metrics.write_errors.get(), 0);
    }

    let index = unique_name("refused");
    let mapping = json!({ "mappings": { "properties": { "message": { "type": "long" } } } });
    server.put(&format!("/{index}"), &mapping).unwrap();
    let mut fixture = Fixture::new();
    fixture.push(100, 100);
    run(&fixture, config(&server, &index)).await;
    assert_eq!(fixture.dead_letters().len(), 100);
    assert!(fixture.dead_letters().values().all(|&status| status == 400));
    fixture.judge(&BTreeMap::new());

    // The same events twice, under the same ids.
    let index = unique_name("recognised");
    let id = Path::parse("@metadata._id").unwrap();
    let mut fixture = Fixture::new();
    for _ in 0..2 {
        let base = Arc::new(Base::new(&Map::new(), &Map::new()));
        let mut lines = batch(0, 100, Arc::clone(&base));
        for row in 0..100 {
            let name = Value::from(format!("id-{row}"));
            lines.event_mut(row, &base).put(&id, &name).unwrap();
        }
        assert!(fixture.queue.push(lines).is_ok());
    }
    fixture.lines = 200;
    run(&fixture, config(&server, &index)).await;
    assert_eq!(server.count(&index).unwrap(), 100);
    assert_eq!(fixture.feed.metrics.duplicates.get(), 100);
    assert_eq!(fixture.settle.total().delivered(), 200);
}

/// Requests are read by the server, and their answers lost.
async fn recognises_what_comes_again(server: Server) {
    let index = unique_name("once");
    let address = server.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let ways =
        [Way::ResetInsteadOfAnswer, Way::ResetAfterAnswered(900), Way::ResetAfterAnswered(900)];
    let proxy = Proxy::start(&address, ways).await;
    let mut fixture = Fixture::new();
    fixture.push(LINES, 700);
    let hosts = vec![HostUrl::parse(proxy.address(), "http", "").unwrap()];
    run(&fixture, Config { exactly_once: true, hosts, ..config(&server, &index) }).await;
    fixture.judge(&found(&server, &index));
    assert!(fixture.feed.metrics.duplicates.get() > 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn elasticsearch_recognises_events_that_come_again() {
    recognises_what_comes_again(Server::elasticsearch().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn opensearch_recognises_events_that_come_again() {
    recognises_what_comes_again(Server::opensearch().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn elasticsearch_takes_refuses_and_recognises_events() {
    takes_refuses_and_recognises(Server::elasticsearch().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn opensearch_takes_refuses_and_recognises_events() {
    takes_refuses_and_recognises(Server::opensearch().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn the_secure_server_knows_us_by_password_and_by_api_key() {
    let server = Server::elasticsearch_secure().unwrap();
    let authority = server.certificate("ca.crt").unwrap();
    let tls = TlsSettings {
        certificate_authorities: vec![Pem::File(authority)],
        ..TlsSettings::default()
    };
    let key = server.post("/_security/api_key", &json!({ "name": unique_name("key") })).unwrap();
    let key = format!("{}:{}", key["id"].as_str().unwrap(), key["api_key"].as_str().unwrap());
    let password = Credentials::Basic(USER.0.to_owned(), Secret::new(USER.1));
    for credentials in [password, Credentials::ApiKey(Secret::new(key))] {
        let index = unique_name("secure");
        let config = Config { credentials, tls: tls.clone(), ..config(&server, &index) };
        let mut fixture = Fixture::new();
        fixture.push(LINES, 700);
        run(&fixture, config.clone()).await;
        fixture.judge(&found(&server, &index));
        let output = Elasticsearch::new(config, context()).unwrap();
        assert!(output.check(&mut |_| {}).await);
    }
    // Without credentials the check says why.
    let output = Elasticsearch::new(Config { tls, ..config(&server, "none") }, context()).unwrap();
    let mut told = String::new();
    assert!(!output.check(&mut |line| told.push_str(line)).await);
    assert!(told.contains("401"), "{told}");
}
