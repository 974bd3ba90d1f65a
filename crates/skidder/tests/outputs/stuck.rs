//! One output does not take anything: the others are not held up, and it loses nothing.

use crate::common::lines::{Log, distinct, judge, lines};
use crate::common::program::{Program, command};
use crate::common::server::{Act, BulkServer};
use crate::common::{Place, QUEUE_EVENTS, accept, seeds};
use crate::{LINES, all_delivered, two};
use skidder_testkit::Random;
use std::ffi::OsStr;
use std::process::Stdio;
use std::time::Duration;

const PIN: [&str; 2] = ["-E", "filebeat.inputs.0.pin.enabled=true"];

/// How an output does not take anything.
#[derive(Clone, Copy, Debug)]
enum Stuck {
    /// The server accepts requests and never answers.
    Silent,
    /// The server is down.
    Down,
}

/// Rotates, compresses and deletes while one output is stuck; the other one has all of it meanwhile.
fn rotates_while_stuck(stuck: Stuck) {
    let (main, archive, place) = two();
    match stuck {
        Stuck::Silent => archive.hold(),
        Stuck::Down => archive.follow(|_| Act::DropBefore),
    }
    let mut log = Log::create(&place.logs(), "log");
    log.append(1000);
    let mut program = place.start(&PIN);
    for rotation in 0..8 {
        program.await_that("the other output has all lines", || main.count() >= log.next);
        log.rename();
        if rotation % 2 == 1 {
            log.compress(2);
        }
        log.append(300);
    }
    let mut gone = Log::create(&place.logs(), "gone");
    gone.append(2000);
    let all = |log: &Log, gone: &Log| log.next + gone.next;
    program.await_that("the other output has all", || main.count() >= all(&log, &gone));
    // The stuck one knows of the file when it has a second name for it.
    let pins = place.data().join("outputs/archive/pins");
    let is_pinned = || {
        use std::os::unix::fs::MetadataExt as _;
        let file = std::fs::metadata(&gone.path).unwrap();
        file.nlink() > 1 && pins.is_dir()
    };
    program.await_that("the file is pinned", is_pinned);
    std::fs::remove_file(&gone.path).unwrap();
    let logs = [("log", log.next), ("gone", gone.next)];
    let name = format!("an output that is not stuck, beside one that is {stuck:?}");
    accept(&name, judge(&logs, &main.documents()), 0);
    assert!(archive.count() <= QUEUE_EVENTS, "it cannot have more than was sent at once");
    match stuck {
        Stuck::Silent => archive.release(),
        Stuck::Down => archive.follow(|_| Act::Take),
    }
    log.append(100);
    program.await_that("the stuck one catches up and goes on", || {
        distinct(&archive.documents()) >= all(&log, &gone) && main.count() >= all(&log, &gone)
    });
    let ended = program.terminate().succeeded();
    let lines = all(&log, &gone);
    assert_eq!(ended.ledger_of("main"), all_delivered(lines));
    assert_eq!(ended.ledger_of("archive"), all_delivered(lines));
    let logs = [("log", log.next), ("gone", gone.next)];
    accept(&format!("an output that was {stuck:?}"), judge(&logs, &archive.documents()), 0);
    accept(&format!("the one beside it ({stuck:?})"), judge(&logs, &main.documents()), 0);
}

#[test]
fn a_server_that_never_answers_delays_nobody_and_loses_nothing() {
    rotates_while_stuck(Stuck::Silent);
}

#[test]
fn a_server_that_is_down_delays_nobody_and_loses_nothing() {
    rotates_while_stuck(Stuck::Down);
}

#[test]
fn killed_in_the_middle_each_output_goes_on_where_it_was() {
    for seed in seeds(31) {
        let mut random = Random::new(seed);
        let main = BulkServer::paced(Duration::from_millis(3));
        let archive = BulkServer::paced(Duration::from_millis(6));
        let place = Place::with_outputs(&[("main", &main), ("archive", &archive)]);
        let logs = [("a", 9000), ("b", 5000)];
        for (label, count) in logs {
            place.write(label, &lines(label, 0..count));
        }
        let mut kills = 0;
        for _ in 0..6 {
            let next = archive.count() + random.below(1500) as usize;
            let mut program = place.start(&[]);
            let held = random.one_in(2);
            if held {
                main.hold();
            }
            program.await_that("the moment of the kill", || {
                archive.count() >= next && (!held || main.held() > 0)
            });
            assert!(program.kill().was_killed());
            kills += 1;
            for server in [&main, &archive] {
                server.release();
                server.await_silence();
            }
        }
        place.once(&[]).succeeded();
        for (id, server) in [("main", &main), ("archive", &archive)] {
            let verdict = judge(&logs, &server.documents());
            // What was in flight, and what was delivered and not yet saved.
            assert_eq!((verdict.missing, verdict.altered), (0, 0), "{id}: {verdict:?}");
            assert!(verdict.duplicates < 14_000 * kills, "{id}: {verdict:?}");
        }
        let ended = place.once(&[]).succeeded();
        assert_eq!((ended.ledger_of("main").read, ended.ledger_of("archive").read), (0, 0));
    }
}

#[test]
fn a_stuck_output_does_not_lengthen_the_end_and_the_others_are_drained() {
    let (main, archive, place) = two();
    place.write("a", &lines("a", 0..LINES));
    archive.hold();
    let mut program = place.start(&["-E", "filebeat.shutdown_timeout=200ms"]);
    program
        .await_that("one has all, the other holds", || main.count() >= LINES && archive.held() > 0);
    let held = archive.count();
    let ended = program.terminate().succeeded();
    let said: Vec<&str> =
        ended.log.lines().filter(|line| line.contains("ended before everything was")).collect();
    assert_eq!(said.len(), 1, "{}", ended.log);
    assert!(said[0].contains(r#""output.id":"archive""#), "{}", said[0]);
    assert_eq!(ended.ledger_of("main"), all_delivered(LINES));
    assert!(ended.ledger_of("archive").in_flight > 0);
    archive.release();
    place.once(&[]).succeeded();
    accept(
        "SIGTERM, one of two does not answer",
        judge(&[("a", LINES)], &archive.documents()),
        held,
    );
    accept("SIGTERM, the other one", judge(&[("a", LINES)], &main.documents()), 0);
}

#[test]
fn files_are_deleted_only_when_every_output_has_them() {
    let (main, archive, place) = two();
    archive.hold();
    let deletes = [
        "-E",
        "filebeat.inputs.0.delete.enabled=true",
        "-E",
        "filebeat.inputs.0.delete.grace_period=0",
        "-E",
        "filebeat.inputs.0.close.reader.on_eof=true",
    ];
    let files = ["a", "b"].map(|name| place.write(name, &lines(name, 0..LINES)));
    let small = place.write("small", &lines("small", 0..20));
    let mut program = place.start(&deletes);
    let all = 2 * LINES + 20;
    program.await_that("one output has all", || main.count() >= all);
    // Many scans later, too.
    place.write("c", &lines("c", 0..LINES));
    program.await_that("and more", || main.count() >= all + LINES);
    assert!(files.iter().all(|path| path.is_file()) && small.is_file());
    archive.release();
    let logs = place.logs();
    program.await_that("nothing is left", || std::fs::read_dir(&logs).unwrap().next().is_none());
    let ended = program.terminate().succeeded();
    let written = [("a", LINES), ("b", LINES), ("small", 20), ("c", LINES)];
    for (id, server) in [("main", &main), ("archive", &archive)] {
        assert_eq!(ended.ledger_of(id), all_delivered(all + LINES));
        accept(&format!("delete, {id}"), judge(&written, &server.documents()), 0);
    }
}

#[test]
fn an_output_that_ends_by_itself_stops_no_other() {
    let main = BulkServer::start();
    let text = format!(
        "outputs:\n{}- {{id: screen, console.enabled: true}}\n",
        Place::output("main", &main)
    );
    let place = Place::with_output(&text);
    place.write("a", &lines("a", 0..LINES));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let config = place.path().join("filebeat.yml");
    let mut command = command([OsStr::new("-e"), OsStr::new("-c"), config.as_os_str()]);
    command.arg("--path.data").arg(place.data()).current_dir(place.path());
    let mut program = Program::start_into(&mut command, Stdio::from(writer));
    let line = program.await_log("an output has ended by itself");
    assert!(line.contains(r#""output.id":"screen""#), "{line}");
    place.write("b", &lines("b", 0..LINES));
    program.await_that("the other one goes on", || main.count() >= 2 * LINES);
    let ended = program.terminate();
    assert_eq!(ended.ledger_of("main"), all_delivered(2 * LINES));
}
