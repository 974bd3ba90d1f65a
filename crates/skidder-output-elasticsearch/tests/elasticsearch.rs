//! The Elasticsearch output against a scripted server: every line is delivered once or
//! dead-lettered, whatever the server does.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::server::{Act, FakeServer, VERSION, header};
use common::{Fixture, context};
use skidder_config::Secret;
use skidder_contract::{Authority, Manner, Place, Proxy, Trial, Way, keep};
use skidder_event::{Base, Map};
use skidder_output_elasticsearch::{Config, Credentials, Elasticsearch, Pem, parse_host};
use skidder_pipeline::Output;
use skidder_testkit::Random;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const LINES: usize = 1000;

fn config(servers: &[&FakeServer]) -> Config {
    let host = |server: &&FakeServer| parse_host(&server.address, "http", "").unwrap();
    let mut config = Config::new(servers.iter().map(host).collect());
    config.backoff_init = Duration::from_millis(1);
    config.backoff_max = Duration::from_millis(5);
    config.timeout = Duration::from_millis(500);
    config.bulk_max_size = 100;
    config
}

fn output(config: Config) -> Elasticsearch {
    Elasticsearch::new(config, context()).unwrap()
}

/// Sends a thousand lines past a script and judges; plain and compressed.
async fn survives(name: &str, script: Vec<Act>) -> (Fixture, FakeServer) {
    let mut last = None;
    for compression_level in [1, 0] {
        let mut fixture = Fixture::new();
        fixture.name = format!("{name}, compression level {compression_level}");
        fixture.push(LINES, 70);
        let server = FakeServer::start(script.clone()).await;
        fixture.run(output(Config { compression_level, ..config(&[&server]) })).await;
        fixture.judge(&server.taken());
        last = Some((fixture, server));
    }
    last.unwrap()
}

impl Place for FakeServer {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn taken(&self) -> BTreeMap<usize, usize> {
        self.taken()
    }
}

/// The subject of the contract.
struct ElasticsearchTrial {
    authority: Authority,
}

impl Trial for ElasticsearchTrial {
    fn kind(&self) -> &'static str {
        "elasticsearch"
    }

    async fn place(&self, manner: Manner) -> Option<Box<dyn Place>> {
        let some = |number: usize| match number % 50 {
            0 => 429,
            1 => 503,
            2 => 400,
            _ => 201,
        };
        let script = match manner {
            Manner::RefusesWhole => vec![Act::Status(503), Act::Ok, Act::Status(429)],
            Manner::RefusesSome => vec![Act::Items(some), Act::Ok, Act::Items(some)],
            Manner::RefusesLarge => vec![Act::AtMost(7)],
            Manner::Confused => {
                vec![Act::Body("<html>"), Act::Silence, Act::Half, Act::OneLess, Act::DropAfter]
            }
            Manner::ProvesNothing => vec![
                Act::Body("{\"took\":1,\"errors\":false}"),
                Act::Body("{\"took\":1,\"errors\":false,\"items\":[]}"),
                Act::Did("delete", 200),
                Act::Did("delete", 404),
                Act::Did("update", 200),
                Act::Did("create", 0),
                Act::OneLess,
                Act::OneMore,
                Act::HalfDid,
            ],
            _ => Vec::new(),
        };
        let certificate = match manner {
            Manner::CertificateExpired => Some(self.authority.sign_expired("localhost")),
            Manner::WrongName => Some(self.authority.sign("elsewhere")),
            _ => None,
        };
        let tls = certificate.map(|certificate| self.authority.acceptor(&certificate, false));
        let server = FakeServer::start_with(script, tls).await;
        if manner == Manner::WrongCredentials {
            server.state.lock().unwrap().allows = Some(Arc::new(|sender| sender == "Basic dTpw"));
        }
        Some(Box::new(server))
    }

    fn output(&self, address: &str, manner: Manner) -> Box<dyn Output> {
        let secure = matches!(manner, Manner::CertificateExpired | Manner::WrongName);
        let host = if secure {
            format!("https://localhost:{}", address.rsplit_once(':').unwrap().1)
        } else {
            address.to_owned()
        };
        let mut config = Config {
            backoff_init: Duration::from_millis(1),
            backoff_max: Duration::from_millis(5),
            bulk_max_size: 100,
            ..Config::new(vec![parse_host(&host, "http", "").unwrap()])
        };
        match manner {
            // One of its answers is silence.
            Manner::Confused => config.timeout = Duration::from_millis(500),
            Manner::WrongCredentials => {
                config.credentials = Credentials::Basic("u".to_owned(), Secret::new("wrong"));
            }
            _ => config.tls.certificate_authorities = vec![Pem::of(&self.authority.pem())],
        }
        Box::new(output(config))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn elasticsearch_keeps_the_contract_of_outputs() {
    keep(&ElasticsearchTrial { authority: Authority::new() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_events_go_to_the_index_for_them_once() {
    // Of the first hundred every tenth is refused; of these the server does not want 50 there either, and 60 not yet.
    let script = [
        Act::Items(|number| if number.is_multiple_of(10) { 400 } else { 201 }),
        Act::Items(|number| match number {
            50 => 400,
            60 => 429,
            _ => 201,
        }),
    ];
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let server = FakeServer::start(script).await;
    let config = Config { dead_letter_index: Some("dead".to_owned()), ..config(&[&server]) };
    fixture.run(output(config)).await;
    let all: BTreeMap<usize, usize> =
        (0..LINES).filter(|number| *number != 50).map(|number| (number, 1)).collect();
    assert_eq!(server.taken(), all);
    assert_eq!(fixture.dead_letters(), BTreeMap::from([(50, 400)]));
    let bulks = server.bulks();
    assert_eq!(bulks[1].lines, (0..100).step_by(10).collect::<Vec<_>>());
    assert_eq!(bulks[2].lines, [60]);
    let document: serde_json::Value =
        serde_json::from_str(bulks[2].body.lines().nth(1).unwrap()).unwrap();
    assert!(bulks[2].body.starts_with("{\"create\":{\"_index\":\"dead\"}}\n"));
    assert_eq!(document["@timestamp"], "2026-01-02T03:04:05.000Z");
    assert_eq!(document["error.type"], 400);
    assert!(document["error.message"].as_str().unwrap().contains("says 400"));
    let total = fixture.settle.total();
    assert!(total.adds_up() && total.in_flight() == 0, "{total:?}");
    assert_eq!((total.delivered(), total.dead_lettered()), (LINES as u64 - 10, 10));
    assert_eq!(fixture.feed.metrics.dead_letter.get(), 10);
}

/// The network is cut after the server read a request and before its answer arrived: its fate is unknown.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_answer_is_lost_is_taken_exactly_once() {
    for exactly_once in [true, false] {
        let mut fixture = Fixture::new();
        fixture.push(LINES, 70);
        let server = FakeServer::start([]).await;
        // The first connection carries the greeting, which has an answer of some hundred bytes.
        let ways = [Way::ResetAfterAnswered(200); 3].into_iter().chain([Way::ResetInsteadOfAnswer]);
        let proxy = Proxy::start(&server.address, ways).await;
        let host = parse_host(proxy.address(), "http", "").unwrap();
        let config = Config { exactly_once, hosts: vec![host], ..config(&[&server]) };
        fixture.run(output(config)).await;
        let repeated = server.taken().values().any(|&times| times > 1);
        assert_eq!(repeated, !exactly_once);
        if exactly_once {
            fixture.judge(&server.taken());
            assert!(fixture.feed.metrics.duplicates.get() >= 100);
        } else {
            fixture.judge_repeated(&server.taken());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_have_html_escaped_only_if_it_is_asked_for() {
    for escape_html in [false, true] {
        let fixture = Fixture::new();
        let server = FakeServer::start([]).await;
        let mut fields = Map::new();
        fields.insert("<k>", "&");
        let base = Arc::new(Base::new(&fields, &Map::new()));
        assert!(fixture.queue.push(common::batch(1, 1, base)).is_ok());
        fixture.run(output(Config { escape_html, ..config(&[&server]) })).await;
        let body = server.bulks()[0].body.clone();
        assert_eq!(body.contains("\"<k>\":\"&\""), !escape_html, "{body}");
        assert_eq!(body.contains("\"\\u003ck\\u003e\":\"\\u0026\""), escape_html, "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_server_gets_everything_once_and_in_order() {
    let (fixture, server) = survives("good", vec![]).await;
    let all: Vec<usize> = server.bulks().into_iter().flat_map(|seen| seen.lines).collect();
    assert_eq!(all, (0..LINES).collect::<Vec<_>>());
    let metrics = &fixture.feed.metrics;
    assert_eq!((metrics.total.get(), metrics.acked.get()), (LINES as u64, LINES as u64));
    assert_eq!((metrics.batches.get(), metrics.failed.get()), (10, 0));
    assert!(metrics.write_bytes.get() > 0 && metrics.latency_ns.get() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_look_like_filebeats() {
    let mut fixture = Fixture::new();
    fixture.push(10, 10);
    let server = FakeServer::start([]).await;
    let mut config = config(&[&server]);
    config.hosts[0].path = "/base".to_owned();
    config.hosts[0].credentials = Some(("u".to_owned(), skidder_config::Secret::new("p")));
    config.parameters = vec![("a b".to_owned(), "c&d".to_owned())];
    config.headers = vec![("x-my".parse().unwrap(), "header".parse().unwrap())];
    fixture.run(output(config)).await;
    let head = server.bulks()[0].head.clone();
    let first = head.lines().next().unwrap();
    assert_eq!(
        first,
        "post /base/_bulk?filter_path=errors%2citems.%2a.error%2citems.%2a.status&a%20b=c%26d http/1.1"
    );
    for (name, value) in [
        ("host", server.address.as_str()),
        ("content-type", "application/json; charset=UTF-8"),
        ("accept", "application/json"),
        ("content-encoding", "gzip"),
        ("authorization", "Basic dTpw"),
        ("x-my", "header"),
    ] {
        assert_eq!(header(&head, name), Some(value), "{head}");
    }
    assert!(header(&head, "user-agent").unwrap().starts_with("Elastic-Filebeat/9.5.0 ("));
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_requests_that_are_refused_are_sent_again() {
    for status in [301, 400, 401, 403, 404, 429, 500, 502, 503] {
        let act = Act::Status(status);
        let name = format!("status {status}");
        let script = vec![act.clone(), Act::Ok, act.clone(), act.clone(), Act::Ok, act];
        let (fixture, _) = survives(&name, script).await;
        assert_eq!(fixture.feed.metrics.write_errors.get(), 4, "{status}");
        assert_eq!(fixture.feed.metrics.failed.get(), 400, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_connections_and_answers_are_survived() {
    let bad: [(&str, Act); 12] = [
        ("dropped before", Act::DropBefore),
        ("dropped after", Act::DropAfter),
        ("garbage", Act::Body("<html>nothing</html>")),
        ("empty", Act::Body("")),
        ("other JSON", Act::Body("{\"acknowledged\":true}")),
        ("errors without items", Act::Body("{\"errors\":true}")),
        ("no items", Act::Body("{\"errors\":false,\"items\":[]}")),
        ("half", Act::Half),
        ("silence", Act::Silence),
        ("one less", Act::OneLess),
        ("one more", Act::OneMore),
        ("closed", Act::OkAndClose),
    ];
    for (name, act) in bad {
        survives(name, vec![act.clone(), Act::Ok, act.clone(), act, Act::Ok]).await;
    }
    survives("verbose", vec![Act::Verbose; 20]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_are_retried_alone_and_the_impossible_ones_are_dead_lettered() {
    let status_of = |number: usize| match number % 10 {
        0 => 429,
        1 => 503,
        2 => 400,
        3 => 409,
        _ => 201,
    };
    let retried = |number: usize| if number.is_multiple_of(20) { 429 } else { 200 };
    let script = vec![Act::Items(status_of), Act::Items(retried), Act::Items(|_| 500)];
    let (fixture, server) = survives("items", script).await;
    let dead = fixture.dead_letters();
    // The first request had the lines 0 to 99.
    assert_eq!(dead.keys().copied().collect::<Vec<_>>(), (2..100).step_by(10).collect::<Vec<_>>());
    assert!(dead.values().all(|&status| status == 400));
    let path = fixture.directory.path().join("dead_letters.ndjson");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains("says 400"), "{text}");
    let bulks = server.bulks();
    let again: Vec<usize> = (0..100).filter(|number| number % 10 < 2).collect();
    assert_eq!(bulks[1].lines, again, "only what was refused is sent again");
    assert_eq!(bulks[2].lines, (0..100).step_by(20).collect::<Vec<_>>());
    assert_eq!(bulks[3].lines, bulks[2].lines);
    let metrics = &fixture.feed.metrics;
    assert_eq!(metrics.duplicates.get(), 10);
    assert_eq!(metrics.dead_letter.get(), 10);
    assert_eq!(metrics.too_many.get(), 10 + 5);
    assert_eq!(metrics.failed.get(), 20 + 5 + 5);
    assert_eq!(metrics.acked.get(), LINES as u64 - 10 - 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_large_requests_are_halved_until_they_fit() {
    let (fixture, server) = survives("at most 7", vec![Act::AtMost(7)]).await;
    assert!(server.bulks().iter().all(|seen| seen.lines.len() <= 100));
    assert!(fixture.feed.metrics.split.get() > 0);
    // Not even one event is small enough.
    let (fixture, server) = survives("at most none", vec![Act::AtMost(0)]).await;
    assert!(server.taken().is_empty());
    let dead = fixture.dead_letters();
    assert_eq!(dead.len(), LINES);
    assert!(dead.values().all(|&status| status == 413));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_break_every_connection_are_halved_too() {
    let (fixture, server) = survives("break above 30", vec![Act::BreakAbove(30)]).await;
    assert!(fixture.feed.metrics.split.get() > 0);
    let taken_in = server.bulks().iter().filter(|seen| seen.lines.len() <= 30).count();
    assert_eq!(taken_in, 40, "a hundred lines go in quarters of 25");
}

#[tokio::test(flavor = "multi_thread")]
async fn full_or_missing_dead_letters_drop_and_count() {
    for bytes in [0, 1, 2000] {
        let mut fixture = Fixture::with_dead_letters(bytes);
        fixture.push(100, 100);
        let server =
            FakeServer::start([Act::Items(|number| if number < 50 { 400 } else { 201 })]).await;
        fixture.run(output(config(&[&server]))).await;
        let dead = fixture.dead_letters().len() as u64;
        assert_eq!(dead > 0, bytes == 2000);
        let total = fixture.settle.total();
        assert_eq!(total.dropped().get(skidder_event::DropReason::Rejected), 50 - dead);
        assert_eq!(fixture.feed.metrics.dropped.get(), 50 - dead);
        fixture.judge(&server.taken());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_hosts_and_workers_share_the_work() {
    let mut fixture = Fixture::new();
    fixture.push(5000, 100);
    let servers = [FakeServer::start([]).await, FakeServer::start([]).await];
    let config = Config { workers: 3, ..config(&[&servers[0], &servers[1]]) };
    fixture.run(output(config)).await;
    let mut taken = servers[0].taken();
    taken.extend(servers[1].taken());
    fixture.judge(&taken);
    assert!(servers.iter().all(|server| !server.bulks().is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_host_holds_nothing_back() {
    for loadbalance in [true, false] {
        let mut fixture = Fixture::new();
        fixture.push(5000, 100);
        let server = FakeServer::start([]).await;
        // Its port is held, so that no other program gets it, and there is no listener.
        let held = tokio::net::TcpSocket::new_v4().unwrap();
        held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let dead = FakeServer { address: held.local_addr().unwrap().to_string(), ..server.clone() };
        // One that greets and then refuses everything is no better.
        let sick = FakeServer::start(vec![Act::Status(503); 1000]).await;
        let config = Config { loadbalance, ..config(&[&dead, &server, &sick]) };
        fixture.run(output(config)).await;
        fixture.judge(&server.taken());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_greet_gets_nothing_until_it_does() {
    let mut fixture = Fixture::new();
    fixture.push(100, 100);
    let server = FakeServer::start([]).await;
    server.state.lock().unwrap().greeting.extend([
        (401, "who are you"),
        (503, ""),
        (200, "<html>"),
        (200, "{\"version\":{\"number\":\"8.1.0\"}}"),
        (200, VERSION),
    ]);
    let config = Config { allow_older_versions: false, ..config(&[&server]) };
    fixture.run(output(config)).await;
    fixture.judge(&server.taken());
    assert_eq!(server.state.lock().unwrap().greetings, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_is_closed_and_opened_again() {
    let mut fixture = Fixture::new();
    fixture.push(100, 100);
    let server = FakeServer::start([Act::Ok, Act::OkAndClose]).await;
    let mut config = config(&[&server]);
    config.idle_connection_timeout = Duration::from_millis(20);
    let running = tokio::spawn(Box::new(output(config)).run(fixture.feed.clone()));
    for round in 1..5 {
        while fixture.settle.in_flight() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if round % 2 == 0 {
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        fixture.push(100, 100);
    }
    fixture.queue.close();
    running.await.unwrap();
    fixture.judge(&server.taken());
    assert_eq!(server.state.lock().unwrap().greetings, 1, "an idle connection is no failure");
    assert_eq!(fixture.feed.metrics.write_errors.get(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_output_settles_nothing_that_was_not_answered() {
    let mut fixture = Fixture::new();
    fixture.push(500, 100);
    let server = FakeServer::start([Act::Ok, Act::Ok, Act::Silence]).await;
    let config = Config { timeout: Duration::from_mins(1), ..config(&[&server]) };
    let running = tokio::spawn(Box::new(output(config)).run(fixture.feed.clone()));
    while server.bulks().len() < 3 || fixture.settle.total().delivered() < 200 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let total = fixture.settle.total();
    assert!(total.adds_up());
    assert_eq!((total.delivered(), total.in_flight()), (200, 300));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_before_the_body_was_read_is_heard() {
    let mut fixture = Fixture::new();
    fixture.push(50_000, 1000);
    // Some MiB in each request: more than the sockets hold.
    let server = FakeServer::start([Act::EarlyTooLarge, Act::Ok, Act::EarlyTooLarge]).await;
    let config = Config {
        compression_level: 0,
        bulk_max_size: 0,
        bulk_max_bytes: 16 << 20,
        timeout: Duration::from_secs(10),
        ..config(&[&server])
    };
    fixture.run(output(config)).await;
    fixture.judge(&server.taken());
    assert_eq!(fixture.feed.metrics.split.get(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_anything_at_any_time_lose_nothing() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut act = move || match random.below(16) {
            0 => Act::Items(|number| if number.is_multiple_of(3) { 429 } else { 200 }),
            1 => Act::Items(|number| if number.is_multiple_of(5) { 503 } else { 409 }),
            2 => Act::Items(|number| if number.is_multiple_of(50) { 400 } else { 201 }),
            3 => Act::Status(503),
            4 => Act::Status(413),
            5 => Act::DropBefore,
            6 => Act::DropAfter,
            7 => Act::Half,
            8 => Act::OneLess,
            9 => Act::OneMore,
            10 => Act::OkAndClose,
            11 => Act::Body("{}"),
            12 => Act::EarlyTooLarge,
            13 => Act::Verbose,
            _ => Act::Ok,
        };
        let mut fixture = Fixture::new();
        fixture.name = format!("seed {seed}");
        fixture.push(3000, 130);
        let mut script = |count: usize| (0..count).map(|_| act()).collect::<Vec<_>>();
        let servers = [FakeServer::start(script(60)).await, FakeServer::start(script(60)).await];
        let config = Config {
            workers: 2,
            loadbalance: seed % 4 != 0,
            compression_level: u32::from(seed % 2 == 0),
            ..config(&[&servers[0], &servers[1]])
        };
        fixture.run(output(config)).await;
        let mut taken = servers[0].taken();
        for (line, times) in servers[1].taken() {
            *taken.entry(line).or_default() += times;
        }
        fixture.judge(&taken);
    }
}
