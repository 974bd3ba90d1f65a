//! The output for OpenTelemetry against a scripted receiver, over gRPC and over HTTP.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::otlp::{Act, FakeCollector, lines};
use common::{Fixture, check_report, context, trusting};
use skidder_config::{Problems, Settings};
use skidder_contract::{
    Authority, Certificate, FakeHttpProxy, Manner, Place, Proxy, Trial, Way, keep,
};
use skidder_output_otlp::{Compression, Config, Otlp};
use skidder_pipeline::Output;
use std::collections::BTreeMap;
use std::time::Duration;

const LINES: usize = 1000;
const PROTOCOLS: [bool; 2] = [true, false];

/// Answers that look like success and are none.
const PROVE_NOTHING: [Act; 6] = [
    Act::Reply("text/html", ""),
    Act::Reply("text/html", "<html>welcome</html>"),
    Act::Reply("application/json", "{\"status\":\"ok\"}"),
    Act::Reply("application/json", "[]"),
    Act::Reply("text/plain", "OK"),
    Act::Reply("application/x-protobuf", "{}"),
];

/// Settings as users write them.
fn read(grpc: bool, hosts: &str, more: &str) -> Config {
    let protocol = if grpc { "grpc" } else { "http/protobuf" };
    let text = format!(
        "hosts: [{hosts}]\nprotocol: {protocol}\nbulk_max_size: 100\n\
         backoff: {{init: 1ms, max: 5ms}}\n{more}"
    );
    let settings = Settings::parse("x", &text).unwrap();
    let problems = Problems::new();
    let config = Config::read(&settings.root(&problems));
    assert_eq!(problems.to_string(), "", "{text}");
    config.unwrap()
}

fn config(grpc: bool, address: &str) -> Config {
    read(grpc, &format!("'{address}'"), "proxy_disable: true")
}

fn output(config: Config) -> Otlp {
    Otlp::new(config, context()).unwrap()
}

/// A thousand lines to a server with this script.
async fn run(grpc: bool, name: &str, script: &[Act]) -> (FakeCollector, Fixture) {
    let server = FakeCollector::start(grpc, script.iter().copied()).await;
    let mut fixture = Fixture::new();
    fixture.name = format!("{name}, gRPC: {grpc}");
    fixture.push(LINES, 70);
    fixture.run(output(config(grpc, &server.address))).await;
    fixture.judge(&server.taken());
    (server, fixture)
}

impl Place for FakeCollector {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn taken(&self) -> BTreeMap<usize, usize> {
        self.taken()
    }
}

/// The subject of the contract.
struct OtlpTrial {
    grpc: bool,
    authority: Authority,
}

impl OtlpTrial {
    fn certificate(&self, manner: Manner) -> Option<Certificate> {
        match manner {
            Manner::CertificateExpired => Some(self.authority.sign_expired("localhost")),
            Manner::WrongName => Some(self.authority.sign("elsewhere")),
            _ => None,
        }
    }
}

impl Trial for OtlpTrial {
    fn kind(&self) -> &'static str {
        if self.grpc { "otlp over gRPC" } else { "otlp over HTTP" }
    }

    async fn place(&self, manner: Manner) -> Option<Box<dyn Place>> {
        let script: &[Act] = match manner {
            Manner::RefusesWhole => &[Act::Busy, Act::TooMany(0), Act::Bad, Act::Exhausted],
            Manner::RefusesSome => &[Act::AllBut(7), Act::Ok, Act::AllBut(100), Act::AllBut(1)],
            Manner::RefusesLarge => &[Act::AtMost(7)],
            Manner::Confused => &[Act::Nonsense, Act::Drop, Act::Silence, Act::Nonsense],
            Manner::ProvesNothing => &PROVE_NOTHING,
            _ => &[],
        };
        let tls = self.certificate(manner);
        let tls = tls.map(|certificate| self.authority.acceptor(&certificate, false));
        let script = script.iter().copied();
        let server = FakeCollector::start_with(self.grpc, script, tls).await;
        if manner == Manner::WrongCredentials {
            server.state.lock().unwrap().allows = Some("Bearer right");
        }
        Some(Box::new(server))
    }

    fn output(&self, address: &str, manner: Manner) -> Box<dyn Output> {
        let port = address.rsplit_once(':').unwrap().1;
        let more = "proxy_disable: true\nheaders: {authorization: Bearer wrong}\n";
        let mut config = match manner {
            Manner::CertificateExpired | Manner::WrongName => {
                read(self.grpc, &format!("'https://localhost:{port}'"), more)
            }
            _ => read(self.grpc, &format!("'{address}'"), more),
        };
        if manner == Manner::Confused {
            // One of its answers is silence.
            config.timeout = Duration::from_millis(500);
        }
        config.tls = trusting(&self.authority);
        Box::new(output(config))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn otlp_over_grpc_keeps_the_contract_of_outputs() {
    keep(&OtlpTrial { grpc: true, authority: Authority::new() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn otlp_over_http_keeps_the_contract_of_outputs() {
    keep(&OtlpTrial { grpc: false, authority: Authority::new() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_what_receivers_expect_in_every_codec() {
    for grpc in PROTOCOLS {
        for (compression, name) in [
            (Compression::None, None),
            (Compression::Gzip, Some("gzip")),
            (Compression::Zstd, Some("zstd")),
        ] {
            let server = FakeCollector::start(grpc, []).await;
            let mut fixture = Fixture::new();
            fixture.push(LINES, 70);
            let more = "proxy_disable: true\nheaders: {X-Scope-OrgID: me}";
            let hosts = format!("'http://u:p@{}'", server.address);
            let mut config = read(grpc, &hosts, more);
            config.compression = compression;
            fixture.run(output(config)).await;
            fixture.judge(&server.taken());
            let state = server.state.lock().unwrap();
            assert_eq!(state.requests.len(), 10);
            for (path, headers, request) in &state.requests {
                let (expected, codec) = if grpc {
                    ("/opentelemetry.proto.collector.logs.v1.LogsService/Export", "grpc-encoding")
                } else {
                    ("/v1/logs", "content-encoding")
                };
                assert_eq!(path, expected);
                assert_eq!(headers.get(codec).map(|value| value.to_str().unwrap()), name);
                assert_eq!(headers["x-scope-orgid"], "me");
                assert_eq!(headers["authorization"], "Basic dTpw");
                assert_eq!(headers.contains_key("grpc-timeout"), grpc);
                assert_eq!(lines(request).len(), 100);
            }
            assert_eq!(state.connections, 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_can_never_be_taken_goes_to_the_dead_letters() {
    for grpc in PROTOCOLS {
        let (_, fixture) = run(grpc, "bad", &[Act::Ok, Act::Bad]).await;
        let dead = fixture.dead_letters();
        let status = if grpc { 3 } else { 400 };
        assert_eq!(dead, (100..200).map(|number| (number, status)).collect());
        assert_eq!(fixture.feed.metrics.write_errors.get(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_of_a_request_is_dropped_and_counted_and_does_not_come_again() {
    for grpc in PROTOCOLS {
        let (server, fixture) =
            run(grpc, "partly", &[Act::AllBut(30), Act::Ok, Act::AllBut(1)]).await;
        assert_eq!(server.state.lock().unwrap().requests.len(), 10);
        let total = fixture.settle.total();
        assert_eq!((total.dropped().total(), total.delivered()), (31, LINES as u64 - 31));
        assert!(fixture.dead_letters().is_empty());
        let metrics = &fixture.feed.metrics;
        assert_eq!((metrics.dropped.get(), metrics.acked.get()), (31, LINES as u64 - 31));
        // Of a request that is refused as a whole it is known which events it were.
        let (_, fixture) = run(grpc, "wholly", &[Act::AllBut(100)]).await;
        assert_eq!(fixture.dead_letters(), (0..100).map(|number| (number, 200)).collect());
        assert_eq!(fixture.settle.total().dropped().total(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_dead_letters_what_is_refused_is_dropped_and_counted() {
    for grpc in PROTOCOLS {
        let server = FakeCollector::start(grpc, [Act::Bad]).await;
        let mut fixture = Fixture::with_dead_letters(0);
        fixture.push(LINES, 70);
        fixture.run(output(config(grpc, &server.address))).await;
        fixture.judge(&server.taken());
        assert_eq!(fixture.settle.total().dropped().total(), 100);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_too_large_become_smaller_and_a_single_event_is_refused() {
    for grpc in PROTOCOLS {
        let (server, fixture) = run(grpc, "at most 7", &[Act::AtMost(7)]).await;
        assert!(fixture.dead_letters().is_empty());
        assert!(fixture.feed.metrics.split.get() > 0);
        // Not every request has to be tried in its full size first.
        assert!(server.state.lock().unwrap().requests.len() < LINES / 2);
        let (_, fixture) = run(grpc, "none", &[Act::AtMost(0)]).await;
        assert_eq!(fixture.dead_letters().len(), LINES);
    }
    // The error does not name the size: smaller requests are tried, and nothing is given up.
    let (_, fixture) = run(true, "exhausted", &[Act::Exhausted; 20]).await;
    assert!(fixture.dead_letters().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_so_is_left_alone_for_as_long() {
    for grpc in PROTOCOLS {
        let began = tokio::time::Instant::now();
        let (_, fixture) = run(grpc, "too many", &[Act::TooMany(1)]).await;
        assert!(began.elapsed() >= Duration::from_secs(1));
        assert_eq!(fixture.feed.metrics.too_many.get(), 100);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_breaks_every_connection_becomes_smaller() {
    for grpc in PROTOCOLS {
        let (_, fixture) = run(grpc, "broken", &[Act::Drop; 12]).await;
        assert!(fixture.dead_letters().is_empty());
        assert_eq!(fixture.feed.metrics.write_errors.get(), 12);
        assert!(fixture.feed.metrics.batches.get() > 22);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_a_collector_closed_while_it_was_idle_is_no_failure() {
    let mut fixture = Fixture::new();
    fixture.push(100, 100);
    let server = FakeCollector::start(false, [Act::OkAndClose; 5]).await;
    let running = Box::new(output(config(false, &server.address))).run(fixture.feed.clone());
    let metrics = std::sync::Arc::clone(&fixture.feed.metrics);
    let story = async {
        for round in 1..=5_u64 {
            while server.state.lock().unwrap().closed < round as usize {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            fixture.push(100, 100);
        }
        fixture.queue.close();
    };
    tokio::join!(running, story);
    fixture.judge(&server.taken());
    assert_eq!(metrics.write_errors.get(), 0);
    assert_eq!(server.state.lock().unwrap().connections, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_balanced_over_all_collectors_that_are_up() {
    for grpc in PROTOCOLS {
        let (one, other) =
            (FakeCollector::start(grpc, []).await, FakeCollector::start(grpc, []).await);
        let dead = Proxy::start(&one.address, vec![Way::Refuse; 1000]).await;
        let hosts = format!("'{}', '{}', '{}'", one.address, dead.address(), other.address);
        let mut fixture = Fixture::new();
        fixture.push(LINES, 70);
        fixture.run(output(read(grpc, &hosts, "workers: 2\nproxy_disable: true"))).await;
        let mut taken = one.taken();
        taken.extend(other.taken());
        assert_eq!(taken.len(), one.taken().len() + other.taken().len());
        fixture.judge(&taken);
        // Without it one takes all, until it fails.
        let mut fixture = Fixture::new();
        fixture.push(LINES, 70);
        let hosts = format!("'{}', '{}'", dead.address(), one.address);
        let before = one.taken().len();
        let config = read(grpc, &hosts, "loadbalance: false\nproxy_disable: true");
        assert_eq!(output(config.clone()).parallelism(), 1);
        fixture.run(output(config)).await;
        assert_eq!(fixture.settle.total().delivered(), LINES as u64);
        assert!(one.taken().len() >= before);
        dead.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn otlp_goes_through_tls_with_a_client_certificate_and_through_proxies() {
    for grpc in PROTOCOLS {
        let authority = Authority::new();
        let (ours, theirs) = (authority.sign("us"), authority.sign("localhost"));
        let acceptor = authority.acceptor(&theirs, true);
        let server = FakeCollector::start_with(grpc, [], Some(acceptor)).await;
        let port = server.address.rsplit_once(':').unwrap().1;
        let mut config = read(grpc, &format!("'https://localhost:{port}'"), "proxy_disable: true");
        config.tls = trusting(&authority);
        config.tls.identity = Some((pem(&ours.pem()), pem(&ours.key_pem())));
        let mut fixture = Fixture::new();
        fixture.push(LINES, 70);
        fixture.run(output(config)).await;
        fixture.judge(&server.taken());

        let server = FakeCollector::start(grpc, []).await;
        let proxy = FakeHttpProxy::start(&server.address, "Basic dTpw").await;
        let more =
            format!("proxy_url: 'http://u:p@{}'\nproxy_headers: {{X-Who: us}}", proxy.address);
        let config = read(grpc, &format!("'{}'", server.address), &more);
        let mut fixture = Fixture::new();
        fixture.push(LINES, 70);
        fixture.run(output(config)).await;
        fixture.judge(&server.taken());
        // gRPC needs a tunnel; HTTP is given to the proxy as it is.
        let head = &proxy.heads()[0];
        assert_eq!(head.starts_with("CONNECT "), grpc);
        assert_eq!(head.contains("x-who: us\r\n"), grpc);
    }
}

fn pem(text: &str) -> skidder_tls::Pem {
    skidder_tls::Pem::of(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn test_output_exports_nothing_to_each_collector() {
    for grpc in PROTOCOLS {
        let server = FakeCollector::start(grpc, [Act::Bad]).await;
        let checked = output(config(grpc, &server.address));
        let (good, said) = check_report(async |report| checked.check(report).await).await;
        assert!(good, "{said}");
        let address = &server.address;
        let head = format!("otlp: http://{address}...\n  parse url... OK\n  connection...\n");
        assert!(said.starts_with(&head), "{said}");
        assert!(said.ends_with("  talk to server... OK\n"), "{said}");
        let requests = server.state.lock().unwrap().requests.len();
        assert_eq!((requests, server.taken().len()), (1, 0));

        server.state.lock().unwrap().allows = Some("Bearer right");
        let (good, said) = check_report(async |report| checked.check(report).await).await;
        assert!(!good && said.contains("ERROR") && said.contains("see `headers`"), "{said}");

        // A port of the other protocol.
        let checked = output(config(!grpc, &server.address));
        let (good, said) = check_report(async |report| checked.check(report).await).await;
        assert!(!good && said.contains("talk to server... ERROR"), "{said}");
    }
}
