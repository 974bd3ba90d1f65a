//! Several outputs: each gets all that it is to have, whatever happens to the others.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

#[path = "../common/mod.rs"]
mod common;

mod configuration;
mod looking;
mod stuck;

use common::lines::{gzip, judge, lines};
use common::program::Ledger;
use common::server::{Act, BulkServer};
use common::{Place, accept};

const LINES: usize = 3000;

/// Everything read, delivered and nothing else.
fn all_delivered(lines: usize) -> Ledger {
    Ledger { read: lines, delivered: lines, ..Ledger::default() }
}

/// Two servers that are the outputs `main` and `archive`.
fn two() -> (BulkServer, BulkServer, Place) {
    let (main, archive) = (BulkServer::start(), BulkServer::start());
    let place = Place::with_outputs(&[("main", &main), ("archive", &archive)]);
    (main, archive, place)
}

#[test]
fn both_outputs_get_everything_once() {
    let (main, archive, place) = two();
    place.write("a", &lines("a", 0..LINES));
    place.write("b.gz", &gzip(&lines("b", 0..LINES)));
    let ended = place.once(&[]).succeeded();
    for (id, server) in [("main", &main), ("archive", &archive)] {
        assert_eq!(ended.ledger_of(id), all_delivered(2 * LINES));
        let verdict = judge(&[("a", LINES), ("b", LINES)], &server.documents());
        accept(&format!("two outputs, {id}"), verdict, 0);
    }
    assert!(place.registry().is_dir());
    assert!(place.data().join("registry/filebeat-outputs/archive").is_dir());
    // Each has its own cursors.
    let ended = place.once(&[]).succeeded();
    assert_eq!((ended.ledger_of("main").read, ended.ledger_of("archive").read), (0, 0));
}

#[test]
fn who_goes_to_a_list_goes_on_where_he_was_and_a_new_output_begins_anew() {
    let (main, archive) = (BulkServer::start(), BulkServer::start());
    let place = Place::new(&main);
    let single = place.configuration();
    let head = single.split("output.elasticsearch").next().unwrap().to_owned();
    let list = |outputs: &[(&str, &BulkServer)]| {
        let outputs: String =
            outputs.iter().map(|(id, server)| Place::output(id, server)).collect();
        place.configure(&format!("{head}outputs:\n{outputs}"));
    };
    place.write("a", &lines("a", 0..1000));
    assert_eq!(place.once(&[]).succeeded().ledger(), all_delivered(1000));
    // One is added.
    list(&[("main", &main), ("archive", &archive)]);
    place.write("b", &lines("b", 0..500));
    let ended = place.once(&[]).succeeded();
    assert_eq!(ended.ledger_of("main"), all_delivered(500));
    assert_eq!(ended.ledger_of("archive"), all_delivered(1500));
    // The order changes, and one is turned off for a while.
    list(&[("archive", &archive), ("main", &main)]);
    let ended = place.once(&[]).succeeded();
    assert_eq!((ended.ledger_of("main").read, ended.ledger_of("archive").read), (0, 0));
    place.write("c", &lines("c", 0..300));
    list(&[("main", &main)]);
    let ended = place.once(&[]).succeeded();
    assert_eq!(ended.ledger_of("main"), all_delivered(300));
    assert!(ended.log.contains("that the configuration does not have is kept"), "{}", ended.log);
    assert!(ended.log.contains("archive"), "{}", ended.log);
    list(&[("main", &main), ("archive", &archive)]);
    assert_eq!(place.once(&[]).succeeded().ledger_of("archive"), all_delivered(300));
    // And back to a single one.
    place.configure(&single);
    place.write("d", &lines("d", 0..200));
    assert_eq!(place.once(&[]).succeeded().ledger(), all_delivered(200));
    let logs = [("a", 1000), ("b", 500), ("c", 300), ("d", 200)];
    accept("from one output to two and back", judge(&logs, &main.documents()), 0);
    accept("an output that is added", judge(&logs[..3], &archive.documents()), 0);
}

#[test]
fn inputs_choose_outputs_by_conditions_behind_all_processors() {
    let servers = [(); 3].map(|()| BulkServer::start());
    let [all, some, none] = &servers;
    let place = Place::with_outputs(&[("all", all), ("some", some), ("none", none)]);
    let text = place.configuration().replacen(
        "  compression: auto\n",
        "  compression: auto\n  outputs: [all, {id: some, when.equals.kind: seven}]\n  processors:\n  - if.regexp.message: '7 [a-z]+$'\n    \
         then: {add_fields: {target: '', fields: {kind: seven}}}\n\
         \x20 - drop_event.when.regexp.message: '3 [a-z]+$'\n",
        1,
    );
    place.configure(&text);
    place.write("a", &lines("a", 0..1000));
    let ended = place.once(&[]).succeeded();
    assert!(ended.log.contains("no input feeds the output `none`"), "{}", ended.log);
    let expected = Ledger { read: 1000, delivered: 900, dropped: 100, ..Ledger::default() };
    assert_eq!(ended.ledger_of("all"), expected);
    let expected = Ledger { read: 1000, delivered: 100, dropped: 900, ..Ledger::default() };
    assert_eq!(ended.ledger_of("some"), expected);
    assert_eq!((all.count(), some.count(), none.count()), (900, 100, 0));
    let of_some = &ended.out[ended.out.find("output `some`").unwrap()..];
    let row = |name: &str| of_some.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(row("drop_event").contains(" 100 "), "{of_some}");
    assert!(row("not_for_output").contains(" 800 "), "{of_some}");
    let sevens = some.documents().iter().all(|message| message.contains("7 "));
    assert!(sevens, "only what the condition says");
    // What was not for an output is behind its cursor, like everything that has its verdict.
    let ended = place.once(&[]).succeeded();
    assert_eq!((ended.ledger_of("all").read, ended.ledger_of("some").read), (0, 0));
}

#[test]
fn what_one_output_refuses_is_in_its_own_dead_letters() {
    let (main, archive, place) = two();
    archive.follow(|_| Act::Items(|line| if line.contains("7 ") { 400 } else { 201 }));
    place.write("a", &lines("a", 0..1000));
    let ended = place.once(&[]).was_refused();
    assert_eq!(ended.ledger_of("main"), all_delivered(1000));
    let expected = Ledger { read: 1000, delivered: 900, dead_lettered: 100, ..Ledger::default() };
    assert_eq!(ended.ledger_of("archive"), expected);
    let letters = place.data().join("outputs/archive/dead_letters.ndjson");
    assert_eq!(std::fs::read_to_string(letters).unwrap().lines().count(), 100);
    assert!(!place.data().join("dead_letters.ndjson").is_file());
    accept("beside one that refuses", judge(&[("a", 1000)], &main.documents()), 0);
}
