//! Files to objects to files: what one program puts into a bucket another one delivers, however often it is killed.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{judge, lines};
use common::program::Ledger;
use common::{Place, accept};
use serde_json::{Value, json};
use skidder_testkit::servers::Server;

/// Lines of an object.
const OBJECT_LINES: usize = 2_000;
/// The most events that a receiver repeats after it was killed: those of its queue, of a batch of each worker, and what was
/// delivered since the last commit.
const IN_FLIGHT_MAX: usize = 3_200 + 5 * 1_200 + 15_000;

/// A server of S3, and what it is called in settings.
struct Store {
    server: Server,
    settings: String,
}

impl Store {
    fn new(server: Server, region: &str) -> Self {
        let settings = format!(
            "endpoint: 'http://127.0.0.1:{}', region: {region}, access_key_id: test, secret_access_key: 'secret of tests'",
            server.port()
        );
        Self { server, settings }
    }

    fn versitygw() -> Self {
        Self::new(Server::own_s3(false).unwrap(), "eu-test-1")
    }

    /// With the bucket `logs`.
    fn moto() -> Self {
        let store = Self::new(Server::own_moto().unwrap(), "us-east-1");
        store.call("PUT", "/logs", "s3", &[], "");
        store
    }

    /// Sends a request to moto, which believes who sends it.
    fn call(
        &self,
        method: &str,
        path: &str,
        service: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> String {
        let login = format!(
            "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=x"
        );
        let mut headers = vec![("authorization", login.as_str())];
        headers.extend_from_slice(more);
        let (status, answer) = self.server.text(method, path, &headers, body).unwrap();
        assert_eq!(status, 200, "{answer}");
        answer
    }

    fn sqs(&self, operation: &str, body: &Value) -> Value {
        let target = format!("AmazonSQS.{operation}");
        let headers =
            [("x-amz-target", target.as_str()), ("content-type", "application/x-amz-json-1.0")];
        let answer = self.call("POST", "/", "sqs", &headers, &body.to_string());
        serde_json::from_str(&answer).unwrap_or_default()
    }

    /// A queue of moto. Returns its URL.
    fn queue(&self) -> String {
        let made = self.sqs("CreateQueue", &json!({ "QueueName": "news" }));
        made["QueueUrl"].as_str().unwrap().to_owned()
    }

    /// Sends a message for each object of the bucket to the queue `url`.
    fn announce(&self, url: &str) {
        let listing = self.call("GET", "/logs?list-type=2", "s3", &[], "");
        let keys = listing.split("<Key>").skip(1).map(|rest| rest.split_once('<').unwrap().0);
        for key in keys {
            let news = json!({ "Records": [{
                "eventSource": "aws:s3", "awsRegion": "us-east-1", "eventName": "ObjectCreated:Put",
                "s3": { "bucket": { "name": "logs" }, "object": { "key": key } },
            }]});
            let message = json!({ "QueueUrl": url, "MessageBody": news.to_string() });
            self.sqs("SendMessage", &message);
        }
    }

    /// Messages that wait, and those that are hidden.
    fn count(&self, url: &str) -> (String, String) {
        let names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
        let body = json!({ "QueueUrl": url, "AttributeNames": names });
        let got = self.sqs("GetQueueAttributes", &body);
        let text = |name: &str| got["Attributes"][name].as_str().unwrap().to_owned();
        (text(names[0]), text(names[1]))
    }

    /// Puts lines into the bucket, compressed.
    fn fill(&self, count: usize) {
        let from = Place::with_output(&format!(
            "output.s3: {{bucket: logs, {}, key_prefix: 'in/', batch: {{max_events: {OBJECT_LINES}, timeout: 1s}}}}\n",
            self.settings
        ));
        from.write("a", &lines("a", 0..count));
        let sent = from.once(&[]).succeeded().ledger();
        assert_eq!(sent, Ledger { read: count, delivered: count, ..Ledger::default() });
    }

    fn receiver(&self, input: &str) -> Place {
        let place = Place::receiving(&format!(
            "filebeat.inputs:\n- {{type: aws-s3, id: in, {}, {input}}}\n\
             processors:\n- decode_json_fields: {{fields: [message], target: '', overwrite_keys: true}}\n",
            self.settings
        ));
        place.roomy();
        place
    }
}
#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn objects_of_a_listing_come_out_once() {
    const LINES: usize = 20_000;
    let store = Store::versitygw();
    store.fill(LINES);
    let to = store.receiver("non_aws_bucket_name: logs");
    let received = to.once(&[]).succeeded().ledger();
    assert_eq!(received, Ledger { read: LINES, delivered: LINES, ..Ledger::default() });
    accept("files to objects to a file", judge(&[("a", LINES)], &to.messages()), 0);
    // All of them are known.
    assert_eq!(to.once(&[]).succeeded().ledger(), Ledger::default());
}

/// `is_done` returns whether nothing is left of what the input reads.
fn survives_kills(name: &str, store: &Store, input: &str, is_done: impl Fn() -> bool) {
    const KILLS: usize = 6;
    let to = store.receiver(input);
    let mut program = to.start(&[]);
    // An event has some 600 bytes.
    let step = (LINES * 400 / (KILLS + 1)) as u64;
    for _ in 0..KILLS {
        let before = to.written();
        program.await_that("more is written", || to.written() > before + step);
        assert!(program.kill().was_killed());
        program = to.start(&[]);
    }
    let distinct = || common::lines::distinct(&to.messages());
    program.await_that("all lines are there", || distinct() == LINES);
    // What was delivered and not deleted by a program that was killed comes again.
    program.await_that("nothing is left", &is_done);
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!(ledger.read, ledger.delivered, "{ledger:?}");
    accept(name, judge(&[("a", LINES)], &to.messages()), KILLS * IN_FLIGHT_MAX);
}

/// Lines of the tests that kill.
const LINES: usize = 100_000;

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_reader_of_a_bucket_that_is_killed_again_and_again_loses_no_line() {
    let store = Store::versitygw();
    store.fill(LINES);
    let input = "non_aws_bucket_name: logs, bucket_list_interval: 1s";
    survives_kills("objects of a listing to a file, `kill -9`", &store, input, || true);
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_reader_of_a_queue_that_is_killed_again_and_again_loses_no_line() {
    let store = Store::moto();
    store.fill(LINES);
    let queue = store.queue();
    store.announce(&queue);
    let input = format!("queue_url: '{queue}', sqs.wait_time: 1s, visibility_timeout: 2s");
    let none = ("0".to_owned(), "0".to_owned());
    let is_empty = || store.count(&queue) == none;
    survives_kills("objects of a queue to a file, `kill -9`", &store, &input, is_empty);
    assert_eq!(store.count(&queue), none, "all messages are deleted");
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn three_readers_share_a_queue_while_each_is_killed_once() {
    const READERS: usize = 3;
    let store = Store::moto();
    store.fill(LINES);
    let queue = store.queue();
    let input = format!("queue_url: '{queue}', sqs.wait_time: 1s, visibility_timeout: 2s");
    let places = [(); READERS].map(|()| store.receiver(&input));
    let mut programs: Vec<_> = places.iter().map(|place| place.start(&[])).collect();
    for program in &programs {
        program.await_log("skidder is running");
    }
    store.announce(&queue);
    let written = || places.iter().map(Place::written).sum::<u64>();
    for reader in 0..READERS {
        // An event has some 600 bytes.
        let enough = (LINES * 400 * (reader + 1) / (READERS + 1)) as u64;
        programs[reader].await_that("more is written", || written() > enough);
        assert!(programs.remove(reader).kill().was_killed());
        programs.insert(reader, places[reader].start(&[]));
    }
    let messages = || places.iter().flat_map(Place::messages).collect::<Vec<_>>();
    programs[0].await_that("all lines are there", || common::lines::distinct(&messages()) == LINES);
    let none = ("0".to_owned(), "0".to_owned());
    programs[0].await_that("all messages are deleted", || store.count(&queue) == none);
    for program in programs {
        let ledger = program.terminate().succeeded().ledger();
        assert_eq!(ledger.read, ledger.delivered, "{ledger:?}");
    }
    let shares: Vec<u64> = places.iter().map(Place::written).collect();
    assert!(shares.iter().all(|&share| share > 0), "{shares:?}");
    let verdict = judge(&[("a", LINES)], &messages());
    accept("three readers of a queue, each killed once", verdict, READERS * IN_FLIGHT_MAX);
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn messages_of_a_queue_do_not_wait_for_a_full_request() {
    const LINES: usize = 100;
    let store = Store::moto();
    store.fill(LINES);
    let queue = store.queue();
    store.announce(&queue);
    let to = store.receiver(&format!("queue_url: '{queue}', sqs.wait_time: 1s"));
    to.configure(&to.configuration().replace("flush.timeout: 50ms", "flush.timeout: 1h"));
    let mut program = to.start(&[]);
    let is_empty = || store.count(&queue) == ("0".to_owned(), "0".to_owned());
    program.await_that("the message is deleted", is_empty);
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!(ledger, Ledger { read: LINES, delivered: LINES, ..Ledger::default() });
}
