//! Objects of Cloud Storage to a file, by a program that is killed again and again.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{judge, lines};
use common::program::Ledger;
use common::{Place, accept};
use skidder_testkit::servers::Server;

/// Lines of an object.
const OBJECT_LINES: usize = 5_000;
/// The most events that are repeated after a kill: those of the queue, of a batch of each worker, and what was delivered since
/// the last commit.
const IN_FLIGHT_MAX: usize = 3_200 + 5 * 1_200 + 15_000;

/// A look-alike of Cloud Storage with the bucket `logs`.
struct Store(Server);

impl Store {
    fn new() -> Self {
        let store = Self(Server::own_gcs().unwrap());
        store.post("/storage/v1/b?project=test", "application/json", "{\"name\": \"logs\"}");
        store
    }

    fn post(&self, path: &str, content_type: &str, body: &str) {
        let headers = [("content-type", content_type)];
        let (status, answer) = self.0.text("POST", path, &headers, body).unwrap();
        assert_eq!(status, 200, "{answer}");
    }

    /// Puts numbered lines into objects.
    fn fill(&self, count: usize) {
        for begin in (0..count).step_by(OBJECT_LINES) {
            let text =
                String::from_utf8(lines("a", begin..count.min(begin + OBJECT_LINES))).unwrap();
            let name = format!("in%2F{begin:09}.log");
            let path = format!("/upload/storage/v1/b/logs/o?uploadType=media&name={name}");
            self.post(&path, "text/plain", &text);
        }
    }

    fn receiver(&self, input: &str) -> Place {
        let port = self.0.port();
        let place = Place::receiving(&format!(
            "filebeat.inputs:\n- {{type: gcs, id: in, project_id: p, alternative_host: 'http://127.0.0.1:{port}', \
             max_workers: 5, buckets: [{{name: logs}}], {input}}}\n"
        ));
        place.roomy();
        place
    }
}
#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn objects_come_out_once() {
    const LINES: usize = 20_000;
    let store = Store::new();
    store.fill(LINES);
    let to = store.receiver("poll_interval: 1s");
    let received = to.once(&[]).succeeded().ledger();
    assert_eq!(received, Ledger { read: LINES, delivered: LINES, ..Ledger::default() });
    accept("objects of Cloud Storage to a file", judge(&[("a", LINES)], &to.messages()), 0);
    // All of them are known.
    assert_eq!(to.once(&[]).succeeded().ledger(), Ledger::default());
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_reader_of_a_bucket_that_is_killed_again_and_again_loses_no_line() {
    const LINES: usize = 200_000;
    const KILLS: usize = 6;
    let store = Store::new();
    store.fill(LINES);
    let to = store.receiver("poll_interval: 1s");
    let mut program = to.start(&[]);
    // An event has some 400 bytes at least.
    let step = (LINES * 300 / (KILLS + 1)) as u64;
    for _ in 0..KILLS {
        let before = to.written();
        program.await_that("more is written", || to.written() > before + step);
        assert!(program.kill().was_killed());
        program = to.start(&[]);
    }
    let distinct = || common::lines::distinct(&to.messages());
    program.await_that("all lines are there", || distinct() == LINES);
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!(ledger.read, ledger.delivered, "{ledger:?}");
    let name = "objects of Cloud Storage to a file, `kill -9`";
    accept(name, judge(&[("a", LINES)], &to.messages()), KILLS * IN_FLIGHT_MAX);
}
