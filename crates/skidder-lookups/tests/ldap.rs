//! `translate_ldap_attribute`: what it remembers, how it gets over broken connections, and a real OpenLDAP.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod directory;
mod names;

use serde_json::{Value as Json, json};
use skidder_config::{Problems, Settings};
use skidder_event::{Base, Map};
use skidder_golden::{batch, document, map};
use skidder_processors::{Context, Plan, Shape, read_processors};
use skidder_testkit::servers::Server;
use skidder_testkit::{SimClock, SimFs};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpSocket;

/// The plan of one processor that searches for `uid` of `a`.
fn plan(address: &str, more: &str, files: &[(&str, &[u8])], clock: &SimClock) -> Plan {
    plan_by("uid", address, more, files, clock)
}

/// The same for another attribute.
fn plan_by(
    attribute: &str,
    address: &str,
    more: &str,
    files: &[(&str, &[u8])],
    clock: &SimClock,
) -> Plan {
    let fs = SimFs::new(clock);
    for (path, content) in files {
        fs.write_as_other(path, content);
    }
    let context = Context::new(Arc::new(fs), Arc::new(clock.clone())).with(skidder_lookups::KINDS);
    let address = match address {
        "" => String::new(),
        address => format!("ldap_address: '{address}', "),
    };
    let yaml = format!(
        "processors: [{{translate_ldap_attribute: {{field: a, {address}\
         ldap_search_attribute: {attribute}{more}}}}}]"
    );
    let settings = Settings::parse("test.yml", &yaml).unwrap();
    let problems = Problems::new();
    let list = read_processors(settings.root(&problems).items("processors"), &context);
    assert!(problems.is_empty(), "{problems}");
    Plan::compile(&list, &Map::new(), &[])
}

/// The result for an event with `value` in `a`: the values, or the message of the failure.
fn run(plan: &Plan, value: &str) -> Json {
    let bound = plan.bind(&Map::new(), &Map::new(), Shape::Any);
    let base: Arc<Base> = Arc::clone(bound.input_base());
    let mut events = batch(&["hello"], &base);
    events.event_mut(0, &base).merge(&map(&json!({ "a": value })));
    bound.run(&mut events);
    let document = document(&events, 0);
    let message = document["error"]["message"].clone();
    if message.is_null() { document["a"].clone() } else { message }
}

#[test]
fn what_was_found_is_remembered_for_five_minutes_and_that_nothing_was_for_half_a_one() {
    let (address, requests) = directory::serve();
    let clock = SimClock::new();
    let plan = plan(&address, "", &[], &clock);
    let mut expected = 0;
    for (after, value, is_asked) in [
        (0, "jane", true),
        (299, "jane", false),
        (1, "jane", true),
        (0, "nobody", true),
        (29, "nobody", false),
        (1, "nobody", true),
    ] {
        clock.advance(Duration::from_secs(after));
        assert_eq!(run(&plan, value).is_array(), value == "jane", "{value}");
        expected += usize::from(is_asked);
        let seen = requests.lock().unwrap();
        let asked = seen.iter().filter(|request| request.starts_with("search")).count();
        assert_eq!(asked, expected, "{value} after {after} s: {seen:?}");
        // One connection serves all of them.
        assert_eq!(seen.iter().filter(|request| request.starts_with("bind")).count(), 1);
    }
}

#[test]
fn a_connection_that_broke_is_made_anew() {
    let (address, requests) = directory::serve();
    let plan = plan(&address, "", &[], &SimClock::new());
    assert_eq!(run(&plan, "jane"), json!(["Jane Doe"]));
    let failed = run(&plan, "hang up");
    assert!(failed.as_str().unwrap().starts_with("search failed: "), "{failed}");
    assert!(run(&plan, "bare").is_array());
    let seen = requests.lock().unwrap();
    assert_eq!(seen.iter().filter(|request| *request == "bind  ").count(), 3, "{seen:?}");
}

#[test]
fn a_server_that_does_not_answer_is_left_alone_for_a_while() {
    let (address, requests) = directory::serve();
    let clock = SimClock::new();
    let plan = plan(&address, ", ldap_search_time_limit: 1", &[], &clock);
    assert_eq!(run(&plan, "silent"), json!("search failed: no answer within 1 s"));
    for _ in 0..100 {
        let paused = "ldap client initialization paused: search failed: no answer within 1 s";
        assert_eq!(run(&plan, "jane"), json!(paused));
    }
    let searches = requests.lock().unwrap().len();
    assert_eq!(searches, 2, "a bind and a search");
    clock.advance(Duration::from_secs(31));
    assert_eq!(run(&plan, "jane"), json!(["Jane Doe"]));
}

/// A port without a listener; it is held, so that no other program gets it.
fn dead_port() -> (TcpSocket, u16) {
    let held = TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = held.local_addr().unwrap().port();
    (held, port)
}

fn port_of(address: &str) -> u16 {
    address.rsplit(':').next().unwrap().parse().unwrap()
}

#[test]
fn servers_are_found_by_the_dns_of_the_domain() {
    let (address, requests) = directory::serve();
    let (alive, clock) = (port_of(&address), SimClock::new());
    let (_held, dead) = dead_port();
    let (_held_too, dead_too) = dead_port();
    let server = names::serve_services(vec![
        ("_ldaps._tcp.forest.test".to_owned(), 0, dead),
        ("_ldap._tcp.forest.test".to_owned(), 20, alive),
        ("_ldap._tcp.forest.test".to_owned(), 10, dead_too),
    ]);
    let resolver = |domain: &str| format!("{domain}\nnameserver {server}\n").into_bytes();
    for (first_line, more, kerberos) in [
        ("search forest.test other.test", "", ""),
        ("search other.test", ", ldap_domain: forest.test", ""),
        ("", "", "[libdefaults]\n  default_realm = FOREST.TEST\n"),
    ] {
        let resolver = resolver(first_line);
        let files = [("/etc/resolv.conf", &resolver[..]), ("/etc/krb5.conf", kerberos.as_bytes())];
        let plan = plan("", more, &files, &clock);
        assert_eq!(run(&plan, "jane"), json!(["Jane Doe"]), "{first_line}{more}{kerberos}");
    }
    assert!(!requests.lock().unwrap().is_empty());
    let nowhere = resolver("search nowhere.test");
    let said = run(&plan("", "", &[("/etc/resolv.conf", &nowhere[..])], &clock), "jane");
    let expected = "no LDAP server found via DNS for the domain nowhere.test; set `ldap_address`";
    assert_eq!(said, json!(expected));
}

#[test]
fn refusals_are_told() {
    let (address, _) = directory::serve();
    let clock = SimClock::new();
    let wrong = plan(&address, ", ldap_bind_user: u, ldap_bind_password: wrong", &[], &clock);
    let said = run(&wrong, "jane");
    assert!(said.as_str().unwrap().starts_with("failed to bind to LDAP server: "), "{said}");
    assert!(said.as_str().unwrap().contains("rc=49"), "{said}");
    let elsewhere = plan(&address, ", ldap_base_dn: dc=other", &[], &clock);
    for (plan, value, code) in [(&elsewhere, "jane", "rc=32"), (&elsewhere, "many", "rc=32")] {
        let said = run(plan, value);
        assert!(said.as_str().unwrap().starts_with("search failed: "), "{said}");
        assert!(said.as_str().unwrap().contains(code), "{said}");
    }
    let many = run(&plan(&address, "", &[], &clock), "many");
    assert!(many.as_str().unwrap().contains("rc=4"), "{many}");
}

const ADMIN: &str = ", ldap_bind_user: 'cn=admin,dc=example,dc=test', ldap_bind_password: secret";

#[test]
#[ignore = "needs OpenLDAP"]
fn openldap_is_asked() {
    let server = Server::openldap().unwrap();
    let clock = SimClock::new();
    let people = plan(server.url(), ADMIN, &[], &clock);
    assert_eq!(run(&people, "jane"), json!(["Jane Doe", "Jane D."]));
    assert_eq!(run(&people, "lucic"), json!(["Lučić"]));
    assert_eq!(run(&people, "*"), json!("no entries found for search attribute \\2a"));
    let by_text = plan_by("description", server.url(), ADMIN, &[], &clock);
    assert_eq!(run(&by_text, "the (one) with * and \\ in it"), json!(["Jane Doe", "Jane D."]));
    let wrong = plan(server.url(), &ADMIN.replace("secret", "wrong"), &[], &clock);
    assert!(run(&wrong, "jane").as_str().unwrap().contains("rc=49"));
    let nobody = plan(server.url(), "", &[], &clock);
    assert!(!run(&nobody, "jane").is_array(), "without a user nothing can be read");
}

#[test]
#[ignore = "needs OpenLDAP"]
fn openldap_is_asked_over_tls() {
    let server = Server::openldap_secure().unwrap();
    let clock = SimClock::new();
    let authority = |name: &str| std::fs::read(server.certificate(name).unwrap()).unwrap();
    let files = [("/ca.crt", &authority("ca.crt")[..]), ("/other.crt", &authority("other-ca.crt"))];
    let more = format!("{ADMIN}, ldap_ssl.certificate_authorities: [/ca.crt]");
    let trusting = plan(server.url(), &more, &files, &clock);
    assert_eq!(run(&trusting, "jim"), json!(["Jim Doe"]));
    let other = plan(server.url(), &more.replace("/ca.crt", "/other.crt"), &files, &clock);
    let refused = run(&other, "jim");
    assert!(refused.as_str().unwrap().starts_with("failed to dial LDAP server: "), "{refused}");
}
