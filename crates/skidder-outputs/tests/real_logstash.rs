//! The Logstash output against Elastic's own Lumberjack library.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Fixture, context, number};
use skidder_contract::{Proxy, Way};
use skidder_net::Host;
use skidder_outputs::Logstash;
use skidder_outputs::logstash::Config;
use skidder_testkit::servers::Server;
use skidder_tls::{Pem, TlsSettings};
use std::collections::BTreeMap;
use std::time::Duration;

const LINES: usize = 5000;

fn host(port: u16) -> Host {
    Host { name: "localhost".to_owned(), port }
}

fn config(port: u16) -> Config {
    Config {
        backoff_init: Duration::from_millis(10),
        backoff_max: Duration::from_millis(50),
        ..Config::new(vec![host(port)])
    }
}

/// How often each line was taken.
fn taken(server: &Server) -> BTreeMap<usize, usize> {
    let mut taken = BTreeMap::new();
    let Ok(text) = std::fs::read_to_string(server.file("events.ndjson")) else { return taken };
    for event in text.lines() {
        let event: serde_json::Value = serde_json::from_str(event).unwrap();
        assert_eq!(event["@timestamp"], "2026-01-02T03:04:05.000Z");
        assert_eq!(event["@metadata"]["beat"], "filebeat");
        *taken.entry(number(event["message"].as_str().unwrap())).or_default() += 1;
    }
    taken
}

async fn run(fixture: &Fixture, config: Config) {
    fixture.run(Logstash::new(config, context()).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn elastics_own_lumberjack_server_takes_every_event_once() {
    for (compression_level, pipelining, slow_start) in [(3, 2, false), (0, 2, true), (9, 0, false)]
    {
        let server = Server::own_lumberjack(false, "").unwrap();
        let mut fixture = Fixture::new();
        fixture.push(LINES, 700);
        let config = Config { compression_level, pipelining, slow_start, ..config(server.port()) };
        run(&fixture, config).await;
        fixture.judge(&taken(&server));
        assert_eq!(fixture.feed.metrics.write_errors.get(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_slow_lumberjack_server_keeps_the_connection_alive() {
    let server = Server::own_lumberjack(false, "-delay 4s").unwrap();
    let mut fixture = Fixture::new();
    fixture.push(100, 100);
    run(&fixture, Config { timeout: Duration::from_secs(3), ..config(server.port()) }).await;
    fixture.judge(&taken(&server));
    assert_eq!(fixture.feed.metrics.write_errors.get(), 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn lumberjack_over_tls_and_through_a_proxy_of_socks() {
    let server = Server::own_lumberjack(true, "").unwrap();
    let socks = Server::own_socks().unwrap();
    let authority = Pem::File(server.certificate("ca.crt").unwrap());
    let tls = TlsSettings { certificate_authorities: vec![authority], ..TlsSettings::default() };
    for local_resolver in [false, true] {
        let proxy = skidder_net::SocksProxy {
            host: host(socks.port()),
            credentials: Some(("test".to_owned(), skidder_config::Secret::new("secret"))),
            local_resolver,
        };
        let config = Config { tls: Some(tls.clone()), proxy: Some(proxy), ..config(server.port()) };
        let output = Logstash::new(config.clone(), context()).unwrap();
        let mut printed = String::new();
        assert!(output.check(&mut |line| printed.push_str(line)).await, "{printed}");
        let before = taken(&server).len();
        assert!(before == 0 || local_resolver);
        let mut fixture = Fixture::new();
        fixture.push(LINES, 700);
        run(&fixture, config).await;
        assert_eq!(fixture.settle.total().delivered(), LINES as u64);
    }
    assert!(taken(&server).values().all(|&times| times == 2));
    let other = Pem::File(server.certificate("other-ca.crt").unwrap());
    let tls = TlsSettings { certificate_authorities: vec![other], ..TlsSettings::default() };
    let output =
        Logstash::new(Config { tls: Some(tls), ..config(server.port()) }, context()).unwrap();
    assert!(!output.check(&mut |_| {}).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_bad_network_before_a_lumberjack_server_loses_nothing() {
    let server = Server::own_lumberjack(false, "").unwrap();
    let ways = [1, 10, 1000, 10_000, 50_000].map(Way::ResetAfterSent);
    let answers = [0, 3, 6, 9].map(Way::ResetAfterAnswered);
    let address = format!("127.0.0.1:{}", server.port());
    let proxy = Proxy::start(&address, ways.into_iter().chain(answers)).await;
    let port = proxy.address().rsplit_once(':').unwrap().1.parse().unwrap();
    let mut fixture = Fixture::new();
    fixture.push(LINES, 700);
    let hosts = vec![Host { name: "127.0.0.1".to_owned(), port }];
    run(&fixture, Config { hosts, bulk_max_size: 300, ..config(port) }).await;
    fixture.judge_repeated(&taken(&server));
    assert!(fixture.feed.metrics.write_errors.get() >= 8);
}
