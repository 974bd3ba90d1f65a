//! Log groups to files: what is in CloudWatch Logs one program delivers, however often it is killed.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{distinct, judge, line};
use common::program::Ledger;
use common::{Place, accept};
use serde_json::{Value, json};
use skidder_os::{Clock as _, SystemClock};
use skidder_testkit::servers::Server;

const REGION: &str = "eu-central-1";
const GROUP: &str = "/app/a";
/// The most events that are repeated after a kill: those of the queue, of a batch, and what was delivered since the last
/// commit.
const IN_FLIGHT_MAX: usize = 3_200 + 1_024 + 15_000;
/// Events of a request.
const PUT: usize = 2_000;

/// moto with a group that has two streams.
struct Logs(Server);

impl Logs {
    fn start() -> Self {
        let logs = Self(Server::own_moto().unwrap());
        logs.call("CreateLogGroup", &json!({ "logGroupName": GROUP }));
        for stream in ["one", "two"] {
            let place = json!({ "logGroupName": GROUP, "logStreamName": stream });
            logs.call("CreateLogStream", &place);
        }
        logs
    }

    fn call(&self, operation: &str, body: &Value) {
        let login = format!(
            "AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/logs/aws4_request, SignedHeaders=host, Signature=x"
        );
        let target = format!("Logs_20140328.{operation}");
        let headers = [
            ("authorization", login.as_str()),
            ("x-amz-target", target.as_str()),
            ("content-type", "application/x-amz-json-1.1"),
        ];
        let (status, answer) = self.0.text("POST", "/", &headers, &body.to_string()).unwrap();
        assert_eq!(status, 200, "{operation}: {answer}");
    }

    /// Adds lines with these numbers, which end some milliseconds ago: several in each millisecond.
    fn put(&self, stream: &str, numbers: std::ops::Range<usize>, ago: i64) {
        let end = SystemClock::new().wall().0 / 1_000_000 - ago;
        let all: Vec<usize> = numbers.collect();
        for (at, numbers) in all.chunks(PUT).enumerate() {
            let start = end - 60_000 + 100 * at as i64;
            let event = |(place, number): (usize, &usize)| json!({ "timestamp": start + place as i64 / 40, "message": line("a", *number) });
            let events: Vec<Value> = numbers.iter().enumerate().map(event).collect();
            self.call(
                "PutLogEvents",
                &json!({ "logGroupName": GROUP, "logStreamName": stream, "logEvents": events }),
            );
        }
    }

    fn receiver(&self, input: &str) -> Place {
        let place = Place::receiving(&format!(
            "filebeat.inputs:\n- {{type: aws-cloudwatch, id: in, endpoint: 'http://127.0.0.1:{}', access_key_id: test, \
             secret_access_key: secret, region_name: {REGION}, scan_frequency: 200ms, api_sleep: 10ms, {input}}}\n",
            self.0.port()
        ));
        place.roomy();
        place
    }
}
#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_group_is_read_once_with_once() {
    const LINES: usize = 20_000;
    let logs = Logs::start();
    logs.put("one", 0..LINES, 0);
    let to = logs.receiver("log_group_name: /app/a");
    let received = to.once(&[]).succeeded().ledger();
    assert_eq!(received, Ledger { read: LINES, delivered: LINES, ..Ledger::default() });
    accept("a log group to a file", judge(&[("a", LINES)], &to.messages()), 0);
    for event in to.events() {
        let id = event["@metadata"]["_id"].as_str().unwrap();
        assert_eq!(event["event"]["id"], id);
    }
    assert_eq!(to.once(&[]).succeeded().ledger(), Ledger::default(), "all of them are known");
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_reader_of_a_group_that_is_killed_again_and_again_loses_no_event() {
    const KILLS: usize = 6;
    const STEP: usize = 10_000;
    let logs = Logs::start();
    logs.put("one", 0..STEP, 0);
    let to = logs.receiver("log_group_name: /app/a");
    let mut program = to.start(&[]);
    for kill in 1..=KILLS {
        // It is killed while it reads what was just added, half of it among what was read.
        let before = distinct(&to.messages());
        let ago = if kill % 2 == 0 { 100_000 } else { 0 };
        logs.put(if kill % 3 == 0 { "one" } else { "two" }, kill * STEP..(kill + 1) * STEP, ago);
        program.await_that("more is written", || distinct(&to.messages()) > before + STEP / 3);
        assert!(program.kill().was_killed());
        program = to.start(&[]);
    }
    let lines = (KILLS + 1) * STEP;
    program.await_that("all are there", || distinct(&to.messages()) == lines);
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!(ledger.read, ledger.delivered, "{ledger:?}");
    let verdict = judge(&[("a", lines)], &to.messages());
    accept("a log group to a file, `kill -9`", verdict, KILLS * IN_FLIGHT_MAX);
    // Nothing comes again.
    assert_eq!(to.once(&[]).succeeded().ledger(), Ledger::default());
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn how_often_and_how_far_a_group_was_read_is_shown() {
    let logs = Logs::start();
    logs.put("one", 0..10, 0);
    let to = logs.receiver("log_group_name: /app/a");
    to.open_endpoint();
    let mut program = to.start(&[]);
    program.await_that("all are there", || to.messages().len() == 10);
    let metrics = to.get("/metrics");
    let number = |name: &str| -> f64 {
        let line = metrics.lines().find(|line| line.starts_with(&format!("{name}{{")));
        let line = line.unwrap_or_else(|| panic!("no {name}"));
        assert!(line.contains(&format!("source=\"{REGION}:/app/a\"")), "{line}");
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(number("skidder_source_requests_total") >= 1.0);
    let age = number("skidder_source_newest_age_seconds");
    assert!((55.0..120.0).contains(&age), "{age}");
    program.terminate().succeeded();
}
