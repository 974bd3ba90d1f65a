//! Servers that refuse, break, dawdle or talk nonsense.

use crate::common::lines::{judge, lines};
use crate::common::server::{Act, BulkServer};
use crate::common::{Place, accept};

/// Requests that the script spoils.
const SPOILED: usize = 6;
/// `bulk_max_size` of the configuration.
const REQUEST_EVENTS: usize = 50;
const LINES: usize = 2000;

/// Spoils some requests in the middle of others; everything must be delivered once the server is well
/// again. `taken`: the server takes what it does not confirm, so that it comes again.
fn spoils(fault: &str, act: Act, taken: bool, arguments: &[&str]) {
    let server = BulkServer::scripted(move |number| {
        // In a row and apart: a connection that was just made, and one that was used.
        let spoiled =
            (2..2 + SPOILED / 2).contains(&number) || (10..10 + SPOILED / 2).contains(&number);
        if spoiled { act } else { Act::Take }
    });
    let place = Place::new(&server);
    place.write("a", &lines("a", 0..LINES));
    let ended = place.once(arguments).succeeded();
    let ledger = ended.ledger();
    assert_eq!((ledger.read, ledger.delivered), (LINES, LINES));
    let verdict = judge(&[("a", LINES)], &server.documents());
    assert!(matches!(act, Act::Items(_)) || verdict.reordered == 0, "{verdict:?}");
    accept(fault, verdict, if taken { SPOILED * REQUEST_EVENTS } else { 0 });
    assert!(ended.log.contains("trying again"), "{}", ended.log);
    assert!(ended.log.contains("are delivered again"), "{}", ended.log);
    assert!(!place.data().join("dead_letters.ndjson").is_file());
}

#[test]
fn refused_as_too_many() {
    let some = |message: &str| if message.contains('7') { 429 } else { 201 };
    spoils("429 for some events", Act::Items(some), false, &[]);
    spoils("429 for all events", Act::Items(|_| 429), false, &[]);
    spoils("429 for the request", Act::Status(429), false, &[]);
}

#[test]
fn not_available() {
    let some = |message: &str| if message.contains('7') { 503 } else { 201 };
    spoils("503 for some events", Act::Items(some), false, &[]);
    spoils("503 for the request", Act::Status(503), false, &[]);
    spoils("502 for the request", Act::Status(502), false, &[]);
}

#[test]
fn connections_that_break() {
    spoils("connection dropped before the body was read", Act::DropBefore, false, &[]);
    spoils("connection dropped after events were taken", Act::TakeAndDrop, true, &[]);
}

#[test]
fn answers_that_do_not_come_in_time() {
    let timeout = ["-E", "output.elasticsearch.timeout=100ms"];
    spoils("no answer within the timeout", Act::TakeAndStall, true, &timeout);
}

#[test]
fn answers_that_say_nothing() {
    spoils("half an answer", Act::TakeAndHalf, true, &[]);
    spoils("an answer that is no JSON", Act::TakeAndSay("<html>ok</html>"), true, &[]);
    spoils("an empty answer", Act::TakeAndSay(""), true, &[]);
    let few = r#"{"errors":false,"items":[{"create":{"status":201}}]}"#;
    spoils("an answer with one item", Act::TakeAndSay(few), true, &[]);
}

#[test]
fn a_request_that_is_too_large_is_cut_until_it_fits() {
    // The place that counts is the size: a server cannot recognise it by the number of a request.
    let server = BulkServer::scripted(|number| match number {
        0..3 => Act::Status(413),
        _ => Act::Take,
    });
    let place = Place::new(&server);
    place.write("a", &lines("a", 0..LINES));
    place.once(&[]).succeeded();
    accept("413 three times", judge(&[("a", LINES)], &server.documents()), 0);
}

#[test]
fn a_server_that_is_away_when_we_start_and_comes_later() {
    let server = BulkServer::scripted(|_| Act::DropBefore);
    let place = Place::new(&server);
    place.write("a", &lines("a", 0..LINES));
    let mut program = place.start(&[]);
    program.await_log("cannot send events");
    server.follow(|_| Act::Take);
    program.await_that("every line is there", || server.count() >= LINES);
    program.terminate().succeeded();
    accept("no server at the start", judge(&[("a", LINES)], &server.documents()), 0);
}

#[test]
fn refused_events_do_not_hold_up_the_others() {
    let server =
        BulkServer::scripted(|_| Act::Items(|line| if line.contains("7 ") { 400 } else { 201 }));
    let place = Place::new(&server);
    place.write("a", &lines("a", 0..LINES));
    let ledger = place.once(&[]).was_refused().ledger();
    assert_eq!((ledger.delivered, ledger.dead_lettered), (LINES - LINES / 10, LINES / 10));
    let letters = std::fs::read_to_string(place.data().join("dead_letters.ndjson")).unwrap();
    let message = |letter: &str| {
        let letter: serde_json::Value = serde_json::from_str(letter).unwrap();
        assert_eq!(letter["status"], 400);
        letter["event"]["message"].as_str().unwrap().to_owned()
    };
    let mut all = server.documents();
    all.extend(letters.lines().map(message));
    accept("400 for some events: dead letters", judge(&[("a", LINES)], &all), 0);
}
