//! The Elasticsearch output against Elasticsearch and OpenSearch themselves.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Fixture, batch, context, number};
use serde_json::json;
use skidder_config::Secret;
use skidder_contract::{Manner, Place, Proxy, Trial, Way, keep};
use skidder_event::{Base, Format, Map, Path, Value};
use skidder_output_elasticsearch::{
    Config, Credentials, Elasticsearch, Pem, Setup, TlsSettings, parse_host,
};
use skidder_pipeline::{Output, SetUp};
use skidder_testkit::servers::{Server, USER, unique_name};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LINES: usize = 5000;

fn config(server: &Server, index: &str) -> Config {
    Config {
        index: Format::parse(index).unwrap(),
        backoff_init: Duration::from_millis(10),
        workers: 2,
        ..Config::new(vec![parse_host(server.url(), "http", "").unwrap()])
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

/// The contract of outputs, as far as a server can be brought to it.
struct RealTrial {
    server: Arc<Server>,
    /// Where the next output is to write.
    index: Mutex<String>,
}

struct RealPlace {
    server: Arc<Server>,
    index: String,
}

impl Place for RealPlace {
    fn address(&self) -> String {
        self.server.url().trim_start_matches("http://").trim_end_matches('/').to_owned()
    }

    fn taken(&self) -> BTreeMap<usize, usize> {
        found(&self.server, &self.index)
    }
}

impl Trial for RealTrial {
    fn kind(&self) -> &'static str {
        "elasticsearch"
    }

    async fn place(&self, manner: Manner) -> Option<Box<dyn Place>> {
        let index = unique_name("contract");
        let mapping = match manner {
            Manner::Good => json!({}),
            // Most offsets are no byte.
            Manner::RefusesSome => {
                json!({ "mappings": { "properties": { "log.offset": { "type": "byte" } } } })
            }
            _ => return None,
        };
        self.server.put(&format!("/{index}"), &mapping).unwrap();
        self.index.lock().unwrap().clone_from(&index);
        Some(Box::new(RealPlace { server: Arc::clone(&self.server), index }))
    }

    fn output(&self, address: &str, _: Manner) -> Box<dyn Output> {
        let config = Config {
            index: Format::parse(&self.index.lock().unwrap()).unwrap(),
            backoff_init: Duration::from_millis(1),
            backoff_max: Duration::from_millis(5),
            bulk_max_size: 100,
            ..Config::new(vec![parse_host(address, "http", "").unwrap()])
        };
        Box::new(Elasticsearch::new(config, context()).unwrap())
    }
}

async fn keeps_the_contract(server: Server) {
    keep(&RealTrial { server: Arc::new(server), index: Mutex::default() }).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn the_contract_is_kept_with_elasticsearch_itself() {
    keeps_the_contract(Server::elasticsearch().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn the_contract_is_kept_with_opensearch_itself() {
    keeps_the_contract(Server::opensearch().unwrap()).await;
}

/// The tests of every server.
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
    let hosts = vec![parse_host(proxy.address(), "http", "").unwrap()];
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

/// The template is there before the first event, which makes the data stream.
async fn is_set_up(server: Server) {
    let name = unique_name("stream");
    let text = format!(
        "{{template: {{name: {name}, pattern: {name}, append_fields: [{{name: app, type: long}}]}}}}"
    );
    let settings = skidder_config::Settings::parse("x", &text).unwrap();
    let problems = skidder_config::Problems::new();
    let setup = Setup::read(&settings.root(&problems), &context(), std::path::Path::new("/"));
    assert_eq!(problems.to_string(), "");
    let config = Config { setup: Some(Arc::new(setup)), ..config(&server, &name) };
    let mut fixture = Fixture::new();
    fixture.push(LINES, 700);
    let output = Elasticsearch::new(config.clone(), context()).unwrap();
    fixture.run(output.clone()).await;
    fixture.judge(&found(&server, &name));
    assert_eq!(fixture.feed.metrics.write_errors.get(), 0);
    let template = server.request("GET", &format!("/_index_template/{name}"), None).unwrap();
    assert_eq!(template.status, 200);
    let mappings = &template.body["index_templates"][0]["index_template"]["template"]["mappings"];
    assert_eq!(mappings["properties"]["app"]["type"], "long");
    // The result on the server: the documents are in the index behind a data stream.
    let hits = server.search(&name, &json!({ "match": { "message": "line" } })).unwrap();
    assert_eq!(hits.len(), LINES);
    let made = server.request("GET", &format!("/{name}/_mapping"), None).unwrap().body;
    let index = made.as_object().unwrap().keys().next().unwrap().clone();
    assert!(index.starts_with(&format!(".ds-{name}-")), "{index}");
    // Again, by the command.
    let mut printed = String::new();
    assert!(output.set_up(SetUp::ALL, &mut |line| printed.push_str(line)).await, "{printed}");
    // One without some of its modules prints more between the two.
    assert!(printed.contains(&format!("the index template `{name}`")), "{printed}");
    assert!(printed.ends_with(": loaded"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn elasticsearch_is_set_up() {
    is_set_up(Server::elasticsearch().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn opensearch_is_set_up() {
    is_set_up(Server::opensearch().unwrap()).await;
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
    // A key that may only read.
    let role =
        json!({ "cluster": ["monitor"], "index": [{ "names": ["*"], "privileges": ["read"] }] });
    let wish = json!({ "name": unique_name("key"), "role_descriptors": { "reader": role } });
    let key = server.post("/_security/api_key", &wish).unwrap();
    let key = format!("{}:{}", key["id"].as_str().unwrap(), key["api_key"].as_str().unwrap());
    let credentials = Credentials::ApiKey(Secret::new(key));
    let reader = Config { credentials, tls: tls.clone(), ..config(&server, "none") };
    let output = Elasticsearch::new(reader, context()).unwrap();
    let mut printed = String::new();
    assert!(!output.check(&mut |line| printed.push_str(line)).await);
    assert!(
        printed.contains("give the role of the user, or the API key, `create_doc`"),
        "{printed}"
    );
    // Without credentials the check names the cause.
    let output = Elasticsearch::new(Config { tls, ..config(&server, "none") }, context()).unwrap();
    let mut printed = String::new();
    assert!(!output.check(&mut |line| printed.push_str(line)).await);
    assert!(printed.contains("401"), "{printed}");
}

/// Blocks are removed by hand after making room on the disk; meanwhile the server answers each item with 429.
async fn waits_for_a_block(server: Server) {
    let index = unique_name("blocked");
    server.put(&format!("/{index}"), &json!({})).unwrap();
    let block = |is_on: Option<bool>| {
        let settings = json!({ "index.blocks.read_only_allow_delete": is_on });
        server.put(&format!("/{index}/_settings"), &settings).unwrap();
    };
    block(Some(true));
    let mut fixture = Fixture::new();
    fixture.push(LINES, 700);
    let metrics = Arc::clone(&fixture.feed.metrics);
    let helper = async {
        while metrics.failed.get() + metrics.too_many.get() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(fixture.settle.total().in_flight(), LINES as u64);
        block(None);
    };
    tokio::join!(run(&fixture, config(&server, &index)), helper);
    fixture.judge(&found(&server, &index));
    assert!(fixture.dead_letters().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn elasticsearch_with_a_full_disk_gets_everything_later() {
    waits_for_a_block(Server::elasticsearch().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn opensearch_with_a_full_disk_gets_everything_later() {
    waits_for_a_block(Server::opensearch().unwrap()).await;
}
