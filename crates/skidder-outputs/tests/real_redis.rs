//! The Redis output against Redis itself.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Fixture, context, number};
use skidder_config::Secret;
use skidder_contract::{Proxy, Way};
use skidder_event::Format;
use skidder_outputs::Redis;
use skidder_outputs::redis::{Config, Server as Target};
use skidder_testkit::servers::Server;
use skidder_tls::{Pem, TlsSettings};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

const LINES: usize = 5000;

fn config(address: &str, key: &str) -> Config {
    Config {
        backoff_init: Duration::from_millis(10),
        backoff_max: Duration::from_millis(50),
        ..Config::new(vec![Target::parse(address).unwrap()], Format::parse(key).unwrap())
    }
}

fn url(server: &Server, credentials: &str) -> String {
    format!("redis://{credentials}@127.0.0.1:{}/0", server.port())
}

/// The output of `redis-cli` for a command.
fn cli(server: &Server, command: &[&str]) -> String {
    let mut cli = Command::new("redis-cli");
    cli.args(["-p", &server.port().to_string(), "-a", "secret", "--no-auth-warning", "--raw"]);
    if let Some(authority) = server.certificate("ca.crt") {
        cli.arg("--tls").arg("--cacert").arg(authority);
    }
    let output = cli.args(command).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// How often each line is in the lists.
fn taken(server: &Server, keys: &[&str]) -> BTreeMap<usize, usize> {
    let mut taken = BTreeMap::new();
    for key in keys {
        for event in
            cli(server, &["LRANGE", key, "0", "-1"]).lines().filter(|line| !line.is_empty())
        {
            let event: serde_json::Value = serde_json::from_str(event).unwrap();
            *taken.entry(number(event["message"].as_str().unwrap())).or_default() += 1;
        }
    }
    taken
}

async fn run(fixture: &Fixture, config: Config) {
    fixture.run(Redis::new(config, context()).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn redis_itself_takes_every_event_once() {
    let server = Server::own_redis(false, "").unwrap();
    for credentials in [":secret", "test:secret"] {
        let mut fixture = Fixture::new();
        fixture.push(LINES, 700);
        run(&fixture, config(&url(&server, credentials), "logs")).await;
        fixture.judge(&taken(&server, &["logs"]));
        assert_eq!(fixture.feed.metrics.write_errors.get(), 0);
        cli(&server, &["DEL", "logs"]);
    }
    let mut fixture = Fixture::new();
    fixture.push(LINES, 700);
    run(&fixture, config(&url(&server, "test:secret"), "at-%{+yyyy}")).await;
    fixture.judge(&taken(&server, &["at-2026"]));
    // A key of another type is waited for, until it is deleted.
    cli(&server, &["SET", "wrong", "x"]);
    let mut fixture = Fixture::new();
    fixture.push(LINES, 700);
    let output = Redis::new(config(&url(&server, ":secret"), "wrong"), context()).unwrap();
    let mut printed = String::new();
    assert!(!output.check(&mut |line| printed.push_str(line)).await);
    assert!(printed.contains("is a string and no list"), "{printed}");
    let helper = async {
        while fixture.feed.metrics.write_errors.get() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cli(&server, &["DEL", "wrong"]);
    };
    tokio::join!(fixture.run(output), helper);
    fixture.judge(&taken(&server, &["wrong"]));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn redis_itself_refuses_what_is_too_large_and_who_may_not() {
    let server = Server::own_redis(false, "--proto-max-bulk-len 1048576").unwrap();
    let mut fixture = Fixture::new();
    fixture.push(LINES, 700);
    // The line is short, but its document is too long for the server.
    let mut fields = skidder_event::Map::new();
    fields.insert("large", "x".repeat(2 << 20).as_str());
    let base = skidder_event::Base::new(&fields, &skidder_event::Map::new());
    let large = skidder_contract::batch(LINES, 1, std::sync::Arc::new(base));
    assert!(fixture.queue.push(large).is_ok());
    fixture.lines += 1;
    run(&fixture, config(&url(&server, ":secret"), "logs")).await;
    assert_eq!(fixture.dead_letters().into_keys().collect::<Vec<_>>(), [LINES]);
    fixture.judge_repeated(&taken(&server, &["logs"]));

    cli(&server, &["ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@read", "+ping", "+acl"]);
    let output = Redis::new(config(&url(&server, "reader:secret"), "logs"), context()).unwrap();
    let mut printed = String::new();
    assert!(!output.check(&mut |line| printed.push_str(line)).await, "{printed}");
    assert!(printed.contains("ACL SETUSER reader"), "{printed}");
    let output = Redis::new(config(&url(&server, "test:secret"), "logs"), context()).unwrap();
    printed.clear();
    assert!(output.check(&mut |line| printed.push_str(line)).await, "{printed}");
    assert!(printed.contains("permission... OK") && printed.contains("version: "), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_bad_network_and_a_restart_of_redis_lose_nothing() {
    let server = Server::own_redis(false, "").unwrap();
    let ways = [1, 10, 1000, 10_000, 50_000].map(Way::ResetAfterSent);
    let answers = [0, 3, 6, 13].map(Way::ResetAfterAnswered);
    let address = format!("127.0.0.1:{}", server.port());
    let proxy = Proxy::start(&address, ways.into_iter().chain(answers)).await;
    let mut fixture = Fixture::new();
    fixture.push(LINES, 700);
    let config = Config {
        password: Some(Secret::new("secret")),
        bulk_max_size: 300,
        ..config(proxy.address(), "logs")
    };
    run(&fixture, config.clone()).await;
    fixture.judge_repeated(&taken(&server, &["logs"]));

    let mut fixture = Fixture::new();
    fixture.push(LINES, 700);
    server.stop().unwrap();
    let helper = async {
        while fixture.feed.metrics.write_errors.get() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.start_again().unwrap();
    };
    let output = Redis::new(config, context()).unwrap();
    tokio::join!(fixture.run(output), helper);
    assert_eq!(fixture.settle.total().delivered(), LINES as u64);
    assert_eq!(taken(&server, &["logs"]).len(), LINES);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn redis_over_tls_and_through_a_proxy_of_socks() {
    let server = Server::own_redis(true, "").unwrap();
    let socks = Server::own_socks().unwrap();
    let authority = Pem::File(server.certificate("ca.crt").unwrap());
    let tls = TlsSettings { certificate_authorities: vec![authority], ..TlsSettings::default() };
    let proxy = skidder_net::SocksProxy {
        host: skidder_net::Host { name: "127.0.0.1".to_owned(), port: socks.port() },
        credentials: Some(("test".to_owned(), Secret::new("secret"))),
        local_resolver: false,
    };
    let address = format!("rediss://:secret@localhost:{}", server.port());
    let config = Config { tls: Some(tls), proxy: Some(proxy), ..config(&address, "logs") };
    let mut fixture = Fixture::new();
    fixture.push(LINES, 700);
    run(&fixture, config).await;
    fixture.judge(&taken(&server, &["logs"]));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn redis_itself_without_memory_or_rights_gets_everything_later() {
    let server = Server::own_redis(false, "").unwrap();
    cli(&server, &["ACL", "SETUSER", "late", "on", ">secret", "~*", "+@read", "+ping", "+info"]);
    let no_memory: (&[&str], &[&str]) =
        (&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]);
    let wrong_password: (&[&str], &[&str]) = (
        &["ACL", "SETUSER", "test", "resetpass", ">other"],
        &["ACL", "SETUSER", "test", ">secret"],
    );
    let no_right: (&[&str], &[&str]) = (&["PING"], &["ACL", "SETUSER", "late", "+rpush"]);
    for (list, user, (before, later)) in [
        ("memory", "", no_memory),
        ("password", "test", wrong_password),
        ("rights", "late", no_right),
    ] {
        cli(&server, before);
        let mut fixture = Fixture::new();
        fixture.name = list.to_owned();
        fixture.push(LINES, 700);
        let metrics = std::sync::Arc::clone(&fixture.feed.metrics);
        let helper = async {
            while metrics.write_errors.get() + metrics.failed.get() < 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(fixture.settle.total().in_flight(), LINES as u64, "{list}");
            cli(&server, later);
        };
        let output =
            Redis::new(config(&url(&server, &format!("{user}:secret")), list), context()).unwrap();
        tokio::join!(fixture.run(output), helper);
        fixture.judge(&taken(&server, &[list]));
    }
}
