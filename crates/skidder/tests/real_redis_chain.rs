//! Files to Redis to files: what one program writes to a list or a stream another one delivers, however often it is
//! killed.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{judge, lines};
use common::program::Ledger;
use common::{Place, accept};
use skidder_testkit::servers::Server;
use std::process::Command;

/// The most events that a receiver has taken and not removed from the server: those of its queue, and what it takes at
/// once.
const IN_FLIGHT_MAX: usize = 3200 + 3 * 2048;

fn sender(server: &Server, key: &str) -> Place {
    let port = server.port();
    Place::with_output(&format!(
        "output.redis: {{hosts: ['127.0.0.1:{port}'], password: secret, key: {key}}}\n"
    ))
}

fn receiver(server: &Server, settings: &str) -> Place {
    let port = server.port();
    let place = Place::receiving(&format!(
        "filebeat.inputs:\n- {{type: redis, id: in, hosts: ['127.0.0.1:{port}'], password: secret, {settings}}}\n\
         processors:\n- decode_json_fields: {{fields: [message], target: '', overwrite_keys: true}}\n"
    ));
    place.roomy();
    place
}
/// The output of `redis-cli` for a command.
fn cli(server: &Server, command: &[&str]) -> String {
    let mut cli = Command::new("redis-cli");
    cli.args(["-p", &server.port().to_string(), "-a", "secret", "--no-auth-warning", "--raw"]);
    String::from_utf8(cli.args(command).output().unwrap().stdout).unwrap()
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn events_come_out_of_a_list_as_they_were_written_to_it() {
    const LINES: usize = 20_000;
    let server = Server::own_redis(false, "").unwrap();
    let (from, to) = (sender(&server, "logs"), receiver(&server, "lists: [logs]"));
    from.write("a", &lines("a", 0..LINES));
    let sent = from.once(&[]).succeeded().ledger();
    let first = cli(&server, &["LINDEX", "logs", "0"]);
    let received = to.once(&[]).succeeded().ledger();
    let all = Ledger { read: LINES, delivered: LINES, ..Ledger::default() };
    assert_eq!((sent, received), (all, all));
    accept("files to a list to a file", judge(&[("a", LINES)], &to.messages()), 0);
    assert_eq!(cli(&server, &["KEYS", "*"]).trim(), "", "nothing is left in Redis");
    let written: serde_json::Value = serde_json::from_str(&first).unwrap();
    let mut event = to.events().swap_remove(0);
    let redis = event.as_object_mut().unwrap().remove("redis");
    assert_eq!(redis, Some(serde_json::json!({"list": {"key": "logs"}})));
    assert_eq!(event, written);
    // The list is empty.
    assert_eq!(to.once(&[]).succeeded().ledger(), Ledger::default());
}

fn survives_kills(name: &str, settings: &str, fill: impl Fn(&Server, &Place)) {
    const LINES: usize = 200_000;
    const KILLS: usize = 6;
    let server = Server::own_redis(false, "").unwrap();
    let from = sender(&server, "logs");
    from.write("a", &lines("a", 0..LINES));
    let to = receiver(&server, settings);
    // All of it waits in Redis before the receiver starts: one that keeps up with the sender would have nothing left to
    // write at the later kills.
    fill(&server, &from);
    let mut program = to.start(&[]);
    // An event has some 600 bytes.
    let step = (LINES * 400 / (KILLS + 1)) as u64;
    for _ in 0..KILLS {
        let before = to.written();
        program.await_that("more is written", || to.written() > before + step);
        assert!(program.kill().was_killed());
        program = to.start(&[]);
    }
    let distinct = || {
        let mut all = to.messages();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    program.await_that("all lines are there", || distinct() == LINES);
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!(ledger.read, ledger.delivered, "{ledger:?}");
    accept(name, judge(&[("a", LINES)], &to.messages()), KILLS * IN_FLIGHT_MAX);
    assert_eq!(cli(&server, &["LLEN", "logs"]).trim().parse(), Ok(0), "all of it was taken");
    assert_eq!(cli(&server, &["KEYS", "*:pending:*"]).trim(), "", "nothing is pending");
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_receiver_of_a_list_that_is_killed_again_and_again_loses_no_line() {
    survives_kills("files to a list to a file, `kill -9`", "lists: [logs]", |_, from| {
        from.once(&[]).succeeded();
    });
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_receiver_of_a_stream_that_is_killed_again_and_again_loses_no_line() {
    let settings = "streams: [events], group: g";
    survives_kills("files to a stream to a file, `kill -9`", settings, |server, from| {
        from.once(&[]).succeeded();
        // What came into the list goes into the stream.
        let add = "local all = redis.call('LPOP', KEYS[1], 20000) \
                   if not all then return 0 end \
                   for _, one in ipairs(all) do redis.call('XADD', KEYS[2], '*', 'message', one) end \
                   return #all";
        while cli(server, &["EVAL", add, "2", "logs", "events"]).trim() != "0" {}
    });
}
