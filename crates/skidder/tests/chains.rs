//! Chains of programs: what one delivers the next one receives, whichever of them is killed, and their ledgers agree.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{judge, lines};
use common::program::Ledger;
use common::{Place, accept};
use std::net::TcpListener;
use std::path::Path;

/// The most events that a program has read and not settled.
const IN_FLIGHT_MAX: usize = 3200 + 2 * 2048;

/// A port that nothing listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Files to Lumberjack.
fn sender(port: u16) -> Place {
    let place = Place::with_output(&format!(
        "output.logstash: {{hosts: ['127.0.0.1:{port}'], backoff: {{init: 10ms, max: 50ms}}}}\n"
    ));
    with_larger_queue(&place);
    place
}

/// Lumberjack to a file.
fn receiver(port: u16) -> Place {
    let place =
        Place::with_output("output.file: {path: out, filename: e, rotate_every_kb: 1000000}\n");
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!(
        "filebeat.inputs:\n- {{type: lumberjack, id: in, listen_address: '127.0.0.1:{port}', target: ''}}\n\
         filebeat.registry.flush{rest}"
    ));
    with_larger_queue(&place);
    place
}

/// The queue of 400 events would take windows one by one.
fn with_larger_queue(place: &Place) {
    let text = place.configuration();
    let queue = text.lines().find(|line| line.starts_with("queue.mem")).unwrap();
    place.configure(
        &text.replace(
            queue,
            "queue.mem: {events: 3200, flush.min_events: 1600, flush.timeout: 50ms}",
        ),
    );
}

/// The messages that a receiver has written. A line without an end is of a program that was killed.
fn messages(place: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for file in std::fs::read_dir(place.join("out")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for line in text.lines() {
            if let Ok(event) = serde_json::from_str::<serde_json::Value>(line) {
                all.push(event["message"].as_str().unwrap().to_owned());
            }
        }
    }
    all
}

fn written(place: &Place) -> u64 {
    let Ok(listed) = std::fs::read_dir(place.path().join("out")) else { return 0 };
    listed.map(|file| file.unwrap().metadata().map_or(0, |of| of.len())).sum()
}

#[test]
fn ledgers_of_both_ends_of_lumberjack_agree() {
    const LINES: usize = 20_000;
    let port = free_port();
    let (from, to) = (sender(port), receiver(port));
    from.write("a", &lines("a", 0..LINES));
    let receiving = to.start(&[]);
    let sent = from.once(&[]).succeeded().ledger();
    let received = receiving.terminate().succeeded().ledger();
    let all = Ledger { read: LINES, delivered: LINES, ..Ledger::default() };
    assert_eq!((sent, received), (all, all));
    accept("files to Lumberjack to a file", judge(&[("a", LINES)], &messages(to.path())), 0);
    let out = std::fs::read_dir(to.path().join("out")).unwrap().next().unwrap().unwrap();
    let event = std::fs::read_to_string(out.path()).unwrap();
    let event: serde_json::Value = serde_json::from_str(event.lines().next().unwrap()).unwrap();
    assert_eq!(event["input"]["type"], "filestream", "the event is the one that was sent");
    assert_eq!(event["log"]["offset"], 0);
}

#[test]
fn a_million_lines_go_through_two_programs_whichever_is_killed() {
    const LINES: usize = 1_000_000;
    const KILLS: usize = 10;
    let port = free_port();
    let (from, to) = (sender(port), receiver(port));
    from.write("a", &lines("a", 0..LINES));
    // Who sends, and who receives.
    let mut programs = [from.start(&["--once"]), to.start(&[])].map(Some);
    // An event has some 500 bytes.
    let step = (LINES * 400 / (KILLS + 1)) as u64;
    for kill in 0..KILLS {
        let before = written(&to);
        let victim = &mut programs[kill % 2];
        let mut running = victim.take().unwrap();
        running.await_that("more is written", || written(&to) > before + step);
        assert!(running.kill().was_killed());
        *victim = Some(if kill % 2 == 0 { from.start(&["--once"]) } else { to.start(&[]) });
    }
    let [sending, receiving] = programs.map(Option::unwrap);
    sending.end().succeeded();
    receiving.terminate().succeeded();
    let verdict = judge(&[("a", LINES)], &messages(to.path()));
    accept("two programs, ten times `kill -9`", verdict, KILLS * IN_FLIGHT_MAX);
}
