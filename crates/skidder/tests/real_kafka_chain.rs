//! Files to Kafka to files: what one program produces, members of a group deliver, whichever of them is killed.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{Log, judge, lines};
use common::program::Ledger;
use common::{Place, QUEUE_EVENTS, accept};
use skidder_os::{Clock, SystemClock};
use skidder_testkit::kafka::Kafka;
use skidder_testkit::servers::unique_name;
use std::time::Duration;

/// Events of a batch, which may wait beside the queue.
const BATCH_EVENTS: usize = 2048;

/// The most events that a member has delivered without a commit: those of a second, of a debug build.
const REPEATED_MAX: usize = 60_000;

fn sender(broker: &str, topic: &str) -> Place {
    Place::with_output(&format!(
        "output.kafka: {{hosts: ['{broker}'], topic: {topic}, compression: lz4, required_acks: -1, \
         partition.random.group_events: 50, codec.format.string: '%{{[message]}}'}}\n"
    ))
}

fn member(broker: &str, topic: &str) -> Place {
    member_with(broker, topic, topic, "")
}

/// The same in a group, with more settings.
fn member_with(broker: &str, topic: &str, group: &str, more: &str) -> Place {
    let place = Place::with_output(
        "output.file: {path: out, filename: e, rotate_every_kb: 1000000, rotate_on_startup: false}\n",
    );
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!(
        "filebeat.inputs:\n- {{type: kafka, id: in, hosts: ['{broker}'], topics: [{topic}], group_id: {group}{more}, \
         heartbeat_interval: 100ms, session_timeout: 6s, fetch.default: 50KiB, rebalance.retry_backoff: 100ms}}\n\
         filebeat.registry.flush{rest}"
    ));
    place
}

/// The messages that members have written. A line without an end is of a program that was killed.
fn messages(members: &[&Place]) -> Vec<String> {
    let mut all = Vec::new();
    for member in members {
        let Ok(files) = std::fs::read_dir(member.path().join("out")) else { continue };
        for file in files {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for line in text.lines() {
                if let Ok(event) = serde_json::from_str::<serde_json::Value>(line) {
                    all.push(event["message"].as_str().unwrap().to_owned());
                }
            }
        }
    }
    all
}

fn distinct(members: &[&Place]) -> usize {
    let mut all = messages(members);
    all.sort_unstable();
    all.dedup();
    all.len()
}

#[test]
#[ignore = "needs Kafka"]
fn ledgers_of_both_ends_of_kafka_agree() {
    const LINES: usize = 20_000;
    let kafka = Kafka::given_or_started().unwrap();
    let (broker, topic) = (format!("127.0.0.1:{}", kafka.ports.plain), unique_name("chain"));
    let (from, to) = (sender(&broker, &topic), member(&broker, &topic));
    from.write("a", &lines("a", 0..LINES));
    let sent = from.once(&[]).succeeded().ledger();
    let received = to.once(&[]).succeeded().ledger();
    let all = Ledger { read: LINES, delivered: LINES, ..Ledger::default() };
    assert_eq!((sent, received), (all, all));
    accept("files to Kafka to a file", judge(&[("a", LINES)], &messages(&[&to])), 0);
    // The group has committed all of it.
    let again = to.once(&[]).succeeded().ledger();
    assert_eq!(again, Ledger::default());
}

#[test]
#[ignore = "needs Kafka"]
fn three_members_share_the_partitions_while_one_is_killed_and_one_is_added() {
    const LINES: usize = 200_000;
    let kafka = Kafka::given_or_started().unwrap();
    let (broker, topic) = (format!("127.0.0.1:{}", kafka.ports.plain), unique_name("group"));
    let from = sender(&broker, &topic);
    from.write("a", &lines("a", 0..LINES));
    let sending = from.start(&["--once"]);
    let sticky = ", rebalance.strategy: sticky";
    let places = [0; 4].map(|_| member_with(&broker, &topic, &topic, sticky));
    let all: Vec<&Place> = places.iter().collect();
    let mut members: Vec<_> = places[..3].iter().map(|place| place.start(&[])).collect();
    members[1].await_that("a quarter is there", || distinct(&all) > LINES / 4);
    assert!(members.remove(1).kill().was_killed());
    members.push(places[3].start(&[]));
    members[0].await_that("all lines are there", || distinct(&all) == LINES);
    sending.end().succeeded();
    for member in members {
        member.terminate().succeeded();
    }
    let verdict = judge(&[("a", LINES)], &messages(&all));
    accept("three members, one killed, one added", verdict, REPEATED_MAX);
}

#[test]
#[ignore = "needs Kafka"]
fn a_rebalance_each_second_for_a_minute_loses_nothing() {
    let kafka = Kafka::given_or_started().unwrap();
    let (broker, topic) = (format!("127.0.0.1:{}", kafka.ports.plain), unique_name("rebalance"));
    let from = sender(&broker, &topic);
    let mut log = Log::create(&from.logs(), "a");
    log.append(2_000);
    let sending = from.start(&[]);
    let places = [0; 2].map(|_| member(&broker, &topic));
    let all: Vec<&Place> = places.iter().collect();
    let mut stays = places[0].start(&[]);
    stays.await_that("the first lines", || distinct(&all) == 2_000);
    let clock = SystemClock::new();
    let mut rebalances = 0;
    while clock.monotonic().0 < Duration::from_mins(1) {
        log.append(1_500);
        let comes = places[1].start(&[]);
        comes.await_log("joined the consumer group");
        log.append(1_500);
        comes.terminate().succeeded();
        // One when it joins, and one when it leaves.
        rebalances += 2;
    }
    stays.await_that("all lines are there", || distinct(&all) == log.next);
    sending.terminate().succeeded();
    stays.terminate().succeeded();
    let verdict = judge(&[("a", log.next)], &messages(&all));
    accept("a rebalance each second", verdict, rebalances * (QUEUE_EVENTS + BATCH_EVENTS));
    assert!(rebalances >= 10, "{rebalances} rebalances");
}

#[test]
#[ignore = "needs Kafka"]
fn every_way_to_connect_reads_all_records() {
    const LINES: usize = 1_000;
    let kafka = Kafka::given_or_started().unwrap();
    let (ports, topic) = (kafka.ports, unique_name("ways"));
    let from = sender(&format!("127.0.0.1:{}", ports.plain), &topic);
    from.write("a", &lines("a", 0..LINES));
    from.once(&[]).succeeded();
    let path = |name: &str| kafka.certificate(name).display().to_string();
    let ca = format!(", ssl: {{certificate_authorities: ['{}']", path("ca.crt"));
    let own = format!(", certificate: '{}', key: '{}'", path("client.crt"), path("client.key"));
    let user = ", username: test, password: secret";
    let scram = |size: u32| format!("{user}, sasl.mechanism: SCRAM-SHA-{size}");
    for (way, port, settings) in [
        ("plain", ports.plain, String::new()),
        ("tls", ports.tls, format!("{ca}}}")),
        ("certificate", ports.tls, format!("{ca}{own}}}")),
        ("sasl", ports.sasl, user.to_owned()),
        ("scram-256", ports.sasl, scram(256)),
        ("scram-512", ports.sasl, scram(512)),
        ("sasl-tls", ports.sasl_tls, format!("{user}{ca}}}")),
        ("scram-tls", ports.sasl_tls, format!("{}{ca}}}", scram(512))),
        ("host", ports.wrong_host, format!("{ca}, verification_mode: certificate}}")),
        ("expired", ports.expired, ", ssl.verification_mode: none".to_owned()),
    ] {
        let to =
            member_with(&format!("127.0.0.1:{port}"), &topic, &format!("{topic}-{way}"), &settings);
        to.once(&[]).succeeded();
        accept(way, judge(&[("a", LINES)], &messages(&[&to])), 0);
    }
    for (port, settings, expected) in [
        (ports.sasl, ", username: test, password: wrong", "username"),
        (
            ports.sasl,
            ", username: test, password: wrong, sasl.mechanism: SCRAM-SHA-256",
            "username",
        ),
        (ports.wrong_host, &*format!("{ca}}}"), "not valid for name"),
    ] {
        let to = member_with(&format!("127.0.0.1:{port}"), &topic, &topic, settings);
        let program = to.start(&[]);
        let log = program.await_log("the consumer group cannot be read");
        assert!(log.contains(expected), "{settings}: {log}");
        program.kill();
    }
}
