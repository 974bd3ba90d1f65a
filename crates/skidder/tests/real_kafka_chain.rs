//! Files to Kafka to files: what one program produces, members of a group deliver, whichever of them is killed.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{judge, lines};
use common::program::Ledger;
use common::{Place, accept};
use skidder_testkit::kafka::Kafka;
use skidder_testkit::servers::unique_name;

/// The most events that a member has delivered without a commit: those of a second, of a debug build.
const REPEATED_MAX: usize = 60_000;

fn sender(broker: &str, topic: &str) -> Place {
    Place::with_output(&format!(
        "output.kafka: {{hosts: ['{broker}'], topic: {topic}, compression: lz4, required_acks: -1, \
         partition.random.group_events: 50, codec.format.string: '%{{[message]}}'}}\n"
    ))
}

fn member(broker: &str, topic: &str) -> Place {
    let place =
        Place::with_output("output.file: {path: out, filename: e, rotate_every_kb: 1000000}\n");
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!(
        "filebeat.inputs:\n- {{type: kafka, id: in, hosts: ['{broker}'], topics: [{topic}], group_id: {topic}, \
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
    let places = [0; 4].map(|_| member(&broker, &topic));
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
