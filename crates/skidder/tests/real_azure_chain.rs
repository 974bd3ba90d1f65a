//! Blobs to files: what stands in a container is delivered, however often the program is killed.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{distinct, judge, lines};
use common::program::Ledger;
use common::{Place, accept};
use skidder_testkit::servers::Server;

/// Lines of a blob.
const BLOB_LINES: usize = 20_000;
/// The most events that a receiver repeats after it was killed: those of its queue, of a batch of each worker, and what was
/// delivered since the last commit.
const IN_FLIGHT_MAX: usize = 3_200 + 5 * 1_200 + 15_000;
/// A shared access signature of Azurite's account for everything, until 2099.
const SIGNATURE: &str = "sv=2019-12-12&ss=b&srt=co&sp=rwdlac&se=2099-01-01T00%3A00%3A00Z&\
                         sig=KRIYqZbaOyvgP1Ulf99mwsmY0uS562EB4to3WbXq6T0%3D";

/// Azurite with the container `logs`.
struct Store(Server);

impl Store {
    fn new() -> Self {
        let store = Self(Server::own_azurite(false).unwrap());
        store.put("?restype=container&", &[], "");
        store
    }

    fn put(&self, path: &str, headers: &[(&str, &str)], body: &str) {
        let path = format!("/devstoreaccount1/logs{path}{SIGNATURE}");
        let (status, answer) = self.0.text("PUT", &path, headers, body).unwrap();
        assert_eq!(status, 201, "{answer}");
    }

    /// Puts lines into the container.
    fn fill(&self, count: usize) {
        for from in (0..count).step_by(BLOB_LINES) {
            let text = lines("a", from..count.min(from + BLOB_LINES));
            let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-version", "2021-12-02")];
            let text = String::from_utf8(text).unwrap();
            self.put(&format!("/in/{from:07}.log?"), &headers, &text);
        }
    }

    fn receiver(&self, input: &str) -> Place {
        let place = Place::receiving(&format!(
            "filebeat.inputs:\n- type: azure-blob-storage\n  id: in\n  account_name: devstoreaccount1\n  \
             auth.connection_string.uri: 'BlobEndpoint=http://127.0.0.1:{}/devstoreaccount1;SharedAccessSignature={SIGNATURE}'\n  \
             max_workers: 5\n  path_prefix: in/\n  containers: [{{name: logs}}]\n{input}",
            self.0.port()
        ));
        place.roomy();
        place
    }
}
#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn blobs_of_a_listing_come_out_once() {
    const LINES: usize = 50_000;
    let store = Store::new();
    store.fill(LINES);
    let to = store.receiver("  poll: true\n");
    let received = to.once(&[]).succeeded().ledger();
    assert_eq!(received, Ledger { read: LINES, delivered: LINES, ..Ledger::default() });
    accept("blobs to a file", judge(&[("a", LINES)], &to.messages()), 0);
    // All of them are known.
    assert_eq!(to.once(&[]).succeeded().ledger(), Ledger::default());
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_reader_of_a_container_that_is_killed_again_and_again_loses_no_line() {
    const KILLS: usize = 6;
    const LINES: usize = 200_000;
    let store = Store::new();
    store.fill(LINES);
    let to = store.receiver("  poll: true\n  poll_interval: 1s\n");
    let mut program = to.start(&[]);
    // An event has some 600 bytes.
    let step = (LINES * 400 / (KILLS + 1)) as u64;
    for _ in 0..KILLS {
        let before = to.written();
        program.await_that("more is written", || to.written() > before + step);
        assert!(program.kill().was_killed());
        program = to.start(&[]);
    }
    program.await_that("all lines are there", || distinct(&to.messages()) == LINES);
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!(ledger.read, ledger.delivered, "{ledger:?}");
    let judged = judge(&[("a", LINES)], &to.messages());
    accept("blobs of a listing to a file, `kill -9`", judged, KILLS * IN_FLIGHT_MAX);
}
