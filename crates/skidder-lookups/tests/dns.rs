//! The cache of `dns`, and its times; and a real Unbound.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod names;

use serde_json::{Value as Json, json};
use skidder_config::{Problems, Settings};
use skidder_event::{Base, Map};
use skidder_golden::{batch, document, map};
use skidder_processors::{Context, Plan, Shape, read_processors};
use skidder_testkit::servers::Server;
use skidder_testkit::{SimClock, SimFs, wait_until};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The plan of one processor.
fn plan(yaml: &str, clock: &SimClock) -> Plan {
    let context = Context::new(Arc::new(SimFs::new(clock)), Arc::new(clock.clone()))
        .with(skidder_lookups::KINDS);
    let settings = Settings::parse("test.yml", yaml).unwrap();
    let problems = Problems::new();
    let list = read_processors(settings.root(&problems).items("processors"), &context);
    assert!(problems.is_empty(), "{problems}");
    Plan::compile(&list, &Map::new(), &[])
}

/// The result for an event with these fields of its own.
fn run(plan: &Plan, fields: &Json) -> Json {
    let bound = plan.bind(&Map::new(), &Map::new(), Shape::Any);
    let base: Arc<Base> = Arc::clone(bound.input_base());
    let mut events = batch(&["hello"], &base);
    events.event_mut(0, &base).merge(&map(fields));
    bound.run(&mut events);
    document(&events, 0)
}

#[test]
fn answers_are_remembered_for_the_time_of_the_server_or_longer_and_failures_for_theirs() {
    let (server, queries) = names::serve();
    let clock = SimClock::new();
    let plan = plan(
        &format!(
            "processors:\n- dns:\n    {{type: A, nameservers: ['{server}'], fields: {{a: b}},\n    \
             success_cache.min_ttl: 10s, failure_cache.ttl: 5s, tag_on_failure: [failed]}}"
        ),
        &clock,
    );
    let mut expected = 0;
    for (after, name, is_asked) in [
        (0, "short.test", true),
        (9, "short.test", false),
        (1, "short.test", true),
        (0, "long.test", true),
        (3599, "long.test", false),
        (1, "long.test", true),
        (0, "nobody.test", true),
        (4, "nobody.test", false),
        (1, "nobody.test", true),
    ] {
        clock.advance(Duration::from_secs(after));
        let document = run(&plan, &json!({ "a": name }));
        let found = document["b"].is_array();
        assert!(found != (document["tags"] == json!(["failed"])), "{document}");
        assert_eq!(found, name != "nobody.test", "{document}");
        expected += u32::from(is_asked);
        assert_eq!(queries.load(Ordering::SeqCst), expected, "{name} after {after} s");
    }
}

#[test]
fn a_server_that_does_not_answer_is_asked_once_for_a_value() {
    let clock = SimClock::new();
    let (server, queries) = names::silent();
    let settings = format!("type: A, nameservers: ['{server}'], timeout: 50ms, fields: {{a: b}}");
    let plan = plan(&format!("processors: [{{dns: {{{settings}}}}}]"), &clock);
    for _ in 0..100 {
        assert_eq!(run(&plan, &json!({ "a": "host.test" }))["b"], Json::Null);
    }
    let limit = Duration::from_secs(10);
    wait_until("the server has seen the question", limit, || queries.load(Ordering::SeqCst) > 0);
    assert_eq!(queries.load(Ordering::SeqCst), 1);
}

/// The result of one processor for a name or an address.
fn ask(settings: &str, value: &str) -> Json {
    let clock = SimClock::new();
    let settings = format!("{settings}, timeout: 5s, tag_on_failure: [failed], fields: {{a: b}}");
    let document = run(
        &plan(&format!("processors: [{{dns: {{{settings}}}}}]"), &clock),
        &json!({ "a": value }),
    );
    assert_eq!(document["b"].is_null(), document["tags"] == json!(["failed"]), "{document}");
    document["b"].clone()
}

#[test]
#[ignore = "needs Unbound"]
fn unbound_is_asked() {
    let server = Server::own_unbound(false).unwrap();
    let of = |kind: &str, value: &str| {
        ask(&format!("type: {kind}, nameservers: ['127.0.0.1:{}']", server.port()), value)
    };
    assert_eq!(of("A", "host.example.test"), json!(["192.0.2.1"]));
    let two = of("A", "TWO.example.test.");
    let mut two: Vec<&str> = two.as_array().unwrap().iter().filter_map(Json::as_str).collect();
    two.sort_unstable();
    assert_eq!(two, ["192.0.2.2", "192.0.2.3"]);
    assert_eq!(of("AAAA", "host.example.test"), json!(["2001:db8::1"]));
    assert_eq!(of("AAAA", "two.example.test"), Json::Null, "the name is there without an address");
    assert_eq!(of("TXT", "host.example.test"), json!(["v=spf1 -all"]));
    assert_eq!(of("PTR", "192.0.2.1"), json!("host.example.test"));
    assert_eq!(of("reverse", "2001:db8::1"), json!("host.example.test"));
    assert_eq!(of("PTR", "192.0.2.9"), Json::Null);
    assert_eq!(of("A", "nobody.example.test"), Json::Null);
    let big = of("TXT", "big.example.test");
    assert_eq!(big.as_array().map(Vec::len), Some(20), "over TCP, as it fits into no datagram");
}

/// The certificate authorities of the system are set by the environment, so that another process does the look-up.
#[test]
#[ignore = "needs Unbound"]
fn unbound_is_asked_over_tls() {
    const SERVER: &str = "SKIDDER_TEST_DNS_OVER_TLS";
    const FOUND: &str = "SKIDDER_TEST_DNS_FOUND";
    if let (Ok(server), Ok(found)) = (std::env::var(SERVER), std::env::var(FOUND)) {
        let settings = format!("type: A, transport: tls, nameservers: ['{server}']");
        let expected = if found.is_empty() { Json::Null } else { json!([found]) };
        assert_eq!(ask(&settings, "host.example.test"), expected);
        return;
    }
    let server = Server::own_unbound(true).unwrap();
    for (authority, found) in [("ca.crt", "192.0.2.1"), ("other-ca.crt", "")] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "unbound_is_asked_over_tls", "--include-ignored"]);
        child.env("SSL_CERT_FILE", server.certificate(authority).unwrap()).env(FOUND, found);
        child.env(SERVER, format!("127.0.0.1:{}", server.port()));
        assert!(child.status().unwrap().success(), "{authority}");
    }
}
