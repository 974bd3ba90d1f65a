//! `skidder deadletters`: what was refused is shown, thrown away, and sent again without a loss.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{judge, lines};
use common::program::{Ended, Program, command};
use common::server::{Act, BulkServer};
use common::{Place, accept};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;

const LINES: usize = 1000;

/// Refuses a tenth of the lines.
fn sevens(line: &str) -> u16 {
    if line.contains("7 ") { 400 } else { 201 }
}

/// Refuses a tenth of these.
fn seventy_sevens(line: &str) -> u16 {
    if line.contains("77 ") { 400 } else { 201 }
}

/// A place whose server has refused a tenth of all lines; with ids, an index of their own and fields of every kind.
fn refused(server: &BulkServer, exactly_once: bool) -> Place {
    server.follow(|_| Act::Items(sevens));
    let place = Place::new(server);
    let text = place.configuration().replace(
        "id: test\n",
        "id: test\n  index: 'special'\n  fields: {a: [1, 2.50, {b: true}], t: 'x\"y'}\n",
    );
    let text = text
        .replace("  timeout: 5s\n", &format!("  timeout: 60s\n  exactly_once: {exactly_once}\n"));
    place.configure(&text);
    place.write("a", &lines("a", 0..LINES));
    let ledger = place.once(&[]).was_refused().ledger();
    assert_eq!((ledger.delivered, ledger.dead_lettered), (LINES - LINES / 10, LINES / 10));
    place
}

fn deadletters(place: &Place, arguments: &[&str]) -> Program {
    let config = place.path().join("filebeat.yml");
    let mut command = command([OsStr::new("-c"), config.as_os_str()]);
    command.arg("--path.data").arg(place.data()).arg("deadletters").args(arguments);
    Program::start(command.current_dir(place.path()))
}

fn run(place: &Place, arguments: &[&str]) -> Ended {
    deadletters(place, arguments).end()
}

/// The letters in the file.
fn letters(place: &Place) -> Vec<Value> {
    let path = place.data().join("dead_letters.ndjson");
    if !path.is_file() {
        return Vec::new();
    }
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn list(place: &Place, arguments: &[&str]) -> Value {
    let arguments = [&["list", "--json"], arguments].concat();
    serde_json::from_str(&run(place, &arguments).succeeded().out).unwrap()
}

#[test]
fn what_is_refused_twice_stays_and_the_rest_is_delivered_as_it_was() {
    let server = BulkServer::start();
    let place = refused(&server, true);
    let before = letters(&place);
    let ids: BTreeMap<String, Value> = before
        .iter()
        .map(|letter| (letter["id"].as_str().unwrap().to_owned(), letter["event"].clone()))
        .collect();
    assert_eq!(ids.len(), LINES / 10);
    server.follow(|_| Act::Items(seventy_sevens));
    let ended = run(&place, &["redrive"]);
    assert_eq!(ended.code(), Some(1), "{}", ended.log);
    assert!(
        ended.out.contains("100 letters sent again: 90 delivered, 10 refused again, 0 left"),
        "{}",
        ended.out
    );
    let left = letters(&place);
    assert_eq!(left.len(), 10);
    for letter in &left {
        let was = before.iter().find(|was| was["id"] == letter["id"]).unwrap();
        assert!(letter["@timestamp"].as_str() > was["@timestamp"].as_str());
        assert_eq!((&letter["event"], &letter["source"]), (&was["event"], &was["source"]));
        assert_eq!(letter["metadata"], was["metadata"]);
    }
    server.follow(|_| Act::Take);
    run(&place, &["redrive"]).succeeded();
    assert!(!place.data().join("dead_letters.ndjson").is_file());
    accept("dead letters sent again", judge(&[("a", LINES)], &server.documents()), 0);
    let sent = server.sent();
    assert!(sent.iter().all(|document| document.index.as_deref() == Some("special")));
    let mut again = 0;
    for document in &sent {
        let Some(event) = ids.get(document.id.as_ref().unwrap()) else { continue };
        assert_eq!(document.json["message"], event["message"]);
        let mut event = event.clone();
        // The server gets milliseconds.
        event["@timestamp"] = document.json["@timestamp"].clone();
        assert_eq!(document.json, event);
        assert_eq!(document.json["fields"]["a"].to_string(), "[1,2.5,{\"b\":true}]");
        again += 1;
    }
    assert_eq!(again, LINES / 10);
    run(&place, &["redrive"]).succeeded();
}

#[test]
fn letters_of_older_versions_get_the_ids_that_they_had() {
    let server = BulkServer::start();
    let place = refused(&server, true);
    let mut ids = HashSet::new();
    let mut text = String::new();
    for mut letter in letters(&place) {
        let letter = letter.as_object_mut().unwrap();
        ids.insert(letter.remove("id").unwrap().as_str().unwrap().to_owned());
        letter.remove("metadata").unwrap();
        text.push_str(&format!("{}\n", Value::from(letter.clone())));
    }
    std::fs::write(place.data().join("dead_letters.ndjson"), text).unwrap();
    server.follow(|_| Act::Take);
    run(&place, &["redrive"]).succeeded();
    let sent = server.sent();
    let again: HashSet<String> =
        sent[LINES - LINES / 10..].iter().map(|document| document.id.clone().unwrap()).collect();
    assert_eq!(again, ids);
}

#[test]
fn a_command_that_is_killed_in_the_middle_repeats_and_loses_nothing() {
    let server = BulkServer::start();
    let place = refused(&server, true);
    let before = letters(&place);
    server.follow(|_| Act::Take);
    server.hold();
    let mut program = deadletters(&place, &["redrive"]);
    program.await_that("letters are on their way", || server.held() > 0);
    assert!(program.kill().was_killed());
    server.release();
    server.await_silence();
    assert_eq!(letters(&place), before);
    let came = server.count();
    assert!(came > LINES - LINES / 10);
    run(&place, &["redrive"]).succeeded();
    assert!(letters(&place).is_empty());
    // A real server knows the ids again.
    let mut seen = HashSet::new();
    let sent = server.sent();
    let distinct = sent.iter().filter(|document| seen.insert(document.id.clone().unwrap()));
    let messages: Vec<String> = distinct.map(|document| document.message.clone()).collect();
    accept("redrive killed, by `_id`", judge(&[("a", LINES)], &messages), 0);
}

#[test]
fn a_signal_ends_it_while_the_server_is_away() {
    let server = BulkServer::start();
    let place = refused(&server, false);
    let before = letters(&place);
    server.follow(|_| Act::Status(503));
    let program = deadletters(&place, &["redrive"]);
    program.await_log("trying again");
    let ended = program.terminate();
    assert_eq!(ended.code(), Some(1), "{}", ended.log);
    assert!(ended.out.contains("0 delivered, 0 refused again, 100 left"), "{}", ended.out);
    assert_eq!(letters(&place), before);
    server.follow(|_| Act::Take);
    run(&place, &["redrive"]).succeeded();
    accept("redrive after a signal", judge(&[("a", LINES)], &server.documents()), 0);
}

#[test]
fn beside_a_running_skidder_letters_are_only_looked_at() {
    let server = BulkServer::start();
    let place = refused(&server, false);
    let before = letters(&place);
    let program = place.start(&[]);
    program.await_log("skidder is running");
    for arguments in [&["redrive"][..], &["drop", "--all"]] {
        let ended = run(&place, arguments);
        assert_eq!(ended.code(), Some(1));
        assert!(ended.log.contains("another skidder uses the data directory"), "{}", ended.log);
    }
    assert_eq!(list(&place, &[])["count"], 100);
    program.terminate().succeeded();
    assert_eq!(letters(&place), before);
}

#[test]
fn half_a_letter_at_the_end_is_never_cut_off_in_silence() {
    let server = BulkServer::start();
    let place = refused(&server, false);
    let path = place.data().join("dead_letters.ndjson");
    let tear = || {
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"{\"half\": ");
        std::fs::write(&path, text).unwrap();
    };
    tear();
    let torn = "dead_letters.ndjson`: the last letter is not whole (9 bytes)";
    for arguments in [&["list"][..], &["redrive", "--dry-run"], &["drop", "--all", "--dry-run"]] {
        let ended = run(&place, arguments).succeeded();
        assert!(ended.log.contains(torn), "{arguments:?}: {ended:?}");
    }
    assert!(run(&place, &["redrive"]).log.contains(torn));
    assert!(!run(&place, &["list"]).log.contains("not whole"), "it is gone");
    // So is one that a run finds when it adds letters.
    tear();
    place.write("b", &lines("b", 0..LINES));
    let log = place.once(&[]).was_refused().log;
    assert!(
        log.contains("the last dead letter is not whole") && log.contains("\"bytes\":9"),
        "{log}"
    );
    assert_eq!(letters(&place).len(), 2 * LINES / 10);
    tear();
    let ended = run(&place, &["drop", "--all"]).succeeded();
    assert!(ended.log.contains(torn), "{ended:?}");
}

#[test]
fn letters_are_counted_shown_and_chosen() {
    let server = BulkServer::start();
    let place = refused(&server, false);
    let all = list(&place, &[]);
    assert_eq!((&all["count"], &all["unreadable"]), (&100.into(), &0.into()));
    let rows = all["letters"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["count"], &rows[0]["status"]), (&100.into(), &400.into()));
    assert_eq!((&rows[0]["kind"], &rows[0]["reason"]), (&"scripted".into(), &"told to".into()));
    for (filter, count) in [
        (["--status", "400"], 100),
        (["--status", "404"], 0),
        (["--reason", "told"], 100),
        (["--reason", "else"], 0),
        (["--source", "logs"], 100),
        (["--source", "log"], 0),
        (["--since", "2020-01-01T00:00:00Z"], 100),
        (["--until", "2020-01-01T00:00:00Z"], 0),
    ] {
        assert_eq!(list(&place, &filter)["count"], count, "{filter:?}");
        let dry = run(&place, &[&["drop", "--dry-run"], &filter[..]].concat()).succeeded();
        assert!(dry.out.contains(&format!("would drop {count} letters")), "{}", dry.out);
        let dry = run(&place, &[&["redrive", "--dry-run"], &filter[..]].concat()).succeeded();
        assert!(dry.out.contains(&format!("would send {count} letters")), "{}", dry.out);
    }
    let each = list(&place, &["--each", "--limit", "3"]);
    let numbers: Vec<&Value> =
        each["letters"].as_array().unwrap().iter().map(|row| &row["number"]).collect();
    assert_eq!((numbers.len(), &each["count"]), (3, &100.into()));
    let third = run(&place, &["show", "3"]).succeeded().out;
    assert!(third.contains("a 0000027 ") && third.contains("scripted"), "{third}");
    let table = run(&place, &["list"]).succeeded().out;
    assert!(table.starts_with("COUNT ") && table.ends_with("\n100 letters\n"), "{table}");
    let nobody = run(&place, &["show", "nobody"]);
    assert!(
        nobody.code() == Some(1) && nobody.log.contains("no letter `nobody`"),
        "{}",
        nobody.log
    );
}

#[test]
fn dropping_asks_which_and_keeps_the_others() {
    let server = BulkServer::start();
    let place = refused(&server, false);
    let path = place.data().join("dead_letters.ndjson");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("no letter\n");
    std::fs::write(&path, &text).unwrap();
    for arguments in [&["drop"][..], &["drop", "--all", "--status", "400"]] {
        let ended = run(&place, arguments);
        assert!(
            ended.code() == Some(1) && ended.log.contains("say which letters"),
            "{}",
            ended.log
        );
    }
    // What is no letter is neither sent nor chosen, and stays.
    let ended = run(&place, &["redrive", "--status", "404"]);
    assert!(ended.log.contains("dead_letters.ndjson:101: this line is no letter"), "{}", ended.log);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let ended = run(&place, &["drop", "--status", "400"]).succeeded();
    assert!(ended.out.contains("dropped 100 letters"), "{}", ended.out);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "no letter\n");
    run(&place, &["drop", "--all"]).succeeded();
    assert!(!path.is_file());
}

#[test]
fn a_file_that_root_writes_anew_stays_with_its_owner() {
    if !rustix::process::geteuid().is_root() {
        // Only root can give a file away.
        return;
    }
    let server = BulkServer::start();
    let place = refused(&server, false);
    let path = place.data().join("dead_letters.ndjson");
    std::os::unix::fs::chown(&path, Some(4321), Some(1234)).unwrap();
    server.follow(|_| Act::Items(seventy_sevens));
    let ended = run(&place, &["redrive"]);
    assert!(ended.out.contains("90 delivered, 10 refused again"), "{}{}", ended.out, ended.log);
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o777), (4321, 1234, 0o600));
}

#[test]
fn each_of_several_outputs_has_its_own_letters() {
    let (one, two) = (BulkServer::start(), BulkServer::start());
    two.follow(|_| Act::Items(sevens));
    let place = Place::with_outputs(&[("one", &one), ("two", &two)]);
    place.write("a", &lines("a", 0..LINES));
    place.once(&[]).was_refused();
    assert_eq!(list(&place, &["--output", "one"])["count"], 0);
    let both = list(&place, &[]);
    assert_eq!((&both["count"], &both["letters"][0]["output"]), (&100.into(), &"two".into()));
    two.follow(|_| Act::Take);
    let ended = run(&place, &["redrive", "--output", "three"]);
    assert!(ended.log.contains("there is no output `three`"), "{}", ended.log);
    let ended = run(&place, &["redrive"]).succeeded();
    assert!(ended.out.contains("output `one`: 0 letters sent again"), "{}", ended.out);
    assert!(
        ended.out.contains("output `two`: 100 letters sent again: 100 delivered"),
        "{}",
        ended.out
    );
    accept("dead letters of the second output", judge(&[("a", LINES)], &two.documents()), 0);
    accept("dead letters of the first output", judge(&[("a", LINES)], &one.documents()), 0);
}
