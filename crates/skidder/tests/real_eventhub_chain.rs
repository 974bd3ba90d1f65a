//! Events of a hub to files: what stands in a hub is delivered, however often the program is killed.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{judge, lines};
use common::program::Ledger;
use common::{Place, accept};
use serde_json::json;
use skidder_testkit::servers::Server;
use std::ops::Range;

/// Lines of a message.
const MESSAGE_LINES: usize = 100;
/// A shared access signature of Azurite's account for everything, until 2099.
const SIGNATURE: &str = "sv=2019-12-12&ss=b&srt=co&sp=rwdlac&se=2099-01-01T00%3A00%3A00Z&\
                         sig=KRIYqZbaOyvgP1Ulf99mwsmY0uS562EB4to3WbXq6T0%3D";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A hub with two partitions, and Azurite.
struct Cloud {
    hub: Server,
    blobs: Server,
}

impl Cloud {
    fn new() -> Self {
        Self { hub: Server::own_eventhub().unwrap(), blobs: Server::own_azurite(false).unwrap() }
    }

    /// Publishes numbered lines, many in a message, to both partitions.
    fn fill(&self, range: Range<usize>) {
        let mut bodies = [Vec::new(), Vec::new()];
        for (number, begin) in range.clone().step_by(MESSAGE_LINES).enumerate() {
            let end = range.end.min(begin + MESSAGE_LINES);
            let text = String::from_utf8(lines("a", begin..end)).unwrap();
            let records: Vec<&str> = text.lines().collect();
            bodies[number % 2].push(json!({ "records": records }).to_string());
        }
        for (partition, messages) in bodies.iter().enumerate() {
            let path = format!("/publish?hub=logs&partition={partition}");
            let (status, answer) = self.hub.text("POST", &path, &[], &messages.join("\n")).unwrap();
            assert_eq!(status, 200, "{answer}");
        }
    }

    /// Ends the claims of a program that was killed, as a minute would.
    fn forget_claims(&self) {
        for partition in [0, 1] {
            let blob = format!("localhost/logs/%24Default/ownership/{partition}");
            let path = format!("/devstoreaccount1/filebeat-logs/{blob}?{SIGNATURE}");
            let (status, answer) = self.blobs.text("DELETE", &path, &[], "").unwrap();
            assert!(status == 202 || status == 404, "{status}: {answer}");
        }
    }

    fn receiver(&self) -> Place {
        let (hub, blobs) = (self.hub.port() - 1, self.blobs.port());
        Place::receiving(&format!(
            "filebeat.inputs:\n- type: azure-eventhub\n  id: in\n  eventhub: logs\n  processor_update_interval: 1s\n  \
             connection_string: 'Endpoint=sb://localhost:{hub};SharedAccessKeyName=test;SharedAccessKey=secret;\
             UseDevelopmentEmulator=true'\n  storage_account_connection_string: 'AccountName=devstoreaccount1;\
             AccountKey={KEY};BlobEndpoint=http://127.0.0.1:{blobs}/devstoreaccount1'\n"
        ))
    }
}

/// The lines that a receiver has written. One without an end is of a program that was killed.
fn messages(place: &Place) -> Vec<String> {
    let lines = place.messages();
    lines.iter().map(|message| serde_json::from_str::<String>(message).unwrap()).collect()
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_hub_comes_out_once() {
    const LINES: usize = 20_000;
    let cloud = Cloud::new();
    cloud.fill(0..LINES);
    let to = cloud.receiver();
    let received = to.once(&[]).succeeded().ledger();
    assert_eq!(received, Ledger { read: LINES, delivered: LINES, ..Ledger::default() });
    accept("a hub to a file", judge(&[("a", LINES)], &messages(&to)), 0);
    // All of it is behind the checkpoints.
    assert_eq!(to.once(&[]).succeeded().ledger(), Ledger::default());
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_reader_of_a_hub_that_is_killed_again_and_again_loses_no_line() {
    const ROUND: usize = 60_000;
    const KILLS: usize = 4;
    const LINES: usize = (KILLS + 1) * ROUND;
    let cloud = Cloud::new();
    let to = cloud.receiver();
    let mut program = to.start(&[]);
    for round in 0..KILLS {
        let before = messages(&to).len();
        cloud.fill(round * ROUND..(round + 1) * ROUND);
        program.await_that("more is written", || messages(&to).len() > before + ROUND / 3);
        assert!(program.kill().was_killed());
        cloud.forget_claims();
        program = to.start(&[]);
    }
    cloud.fill(KILLS * ROUND..LINES);
    let distinct = || common::lines::distinct(&messages(&to));
    program.await_that("all lines are there", || distinct() == LINES);
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!(ledger.read, ledger.delivered, "{ledger:?}");
    // What was delivered since the last checkpoint, which is a second old, comes again.
    accept("a hub to a file, `kill -9`", judge(&[("a", LINES)], &messages(&to)), LINES);
}
