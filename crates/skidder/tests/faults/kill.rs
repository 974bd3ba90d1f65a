//! `kill -9` at random moments, and SIGTERM.

use crate::common::lines::{LINE_BYTES, Log, distinct, gzip, judge, lines};
use crate::common::program::Program;
use crate::common::server::BulkServer;
use crate::common::{Place, QUEUE_EVENTS, accept, print, seeds};
use skidder_testkit::Random;
use std::time::Duration;

/// How long a request takes: the program must still be at work when it is killed.
const PACE: Duration = Duration::from_millis(3);
/// A commit of the registry takes at most so long, the interval before it included, on a busy machine.
const COMMIT: Duration = Duration::from_secs(2);
const KILLS: usize = 8;

/// Kills the program, once the server has taken so many documents; half of the time while an answer
/// is under way.
fn kill_at(mut program: Program, server: &BulkServer, count: usize, random: &mut Random) {
    let held = random.one_in(2);
    program.await_that("the moment of the kill", || server.count() >= count);
    if held {
        server.hold();
        program.await_that("an answer is held", || server.held() > 0);
    }
    assert!(program.kill().was_killed());
    server.release();
    server.await_silence();
}

/// Lines that the server has and the registry does not know of: they will come again.
fn not_durable(place: &Place, server: &BulkServer, recent: usize) -> usize {
    let taken = distinct(&server.documents());
    let durable = place.durable_bytes();
    assert!(durable.is_multiple_of(LINE_BYTES as u64), "a cursor is inside of a line");
    let durable = (durable / LINE_BYTES as u64) as usize;
    assert!(
        durable <= taken,
        "cursors have passed lines that are not delivered: {durable}, {taken}"
    );
    let undone = taken - durable;
    assert!(undone <= QUEUE_EVENTS + recent, "{undone} lines are not durable after a long time");
    undone
}

/// Kills again and again while what is there is read.
fn kills_while_reading(fault: &str, seed: u64, packed: bool) {
    print(&format!("{fault}: seed {seed}"));
    let mut random = Random::new(seed);
    let server = BulkServer::paced(PACE);
    let place = Place::new(&server);
    let logs = [("a", 9000), ("b", 5000)];
    let all = 14_000;
    for (label, count) in logs {
        let text = lines(label, 0..count);
        place.write(label, &if packed { gzip(&text) } else { text });
    }
    let mut bound = 0;
    let mut next = 0;
    for _ in 0..KILLS {
        next += random.below((all / KILLS) as u64) as usize;
        let program = place.start(&[]);
        kill_at(program, &server, server.count().max(next), &mut random);
        bound += not_durable(&place, &server, server.count_in_last(COMMIT));
    }
    place.once(&[]).succeeded();
    let verdict = judge(&logs, &server.documents());
    assert_eq!(verdict.reordered, 0);
    accept(fault, verdict, bound);
    // And now everything is durable.
    assert_eq!(place.once(&[]).succeeded().ledger().read, 0);
}

#[test]
fn killed_while_reading_plain_files() {
    for seed in seeds(1) {
        kills_while_reading("kill -9, plain files", seed, false);
    }
}

#[test]
fn killed_while_reading_compressed_files() {
    for seed in seeds(2) {
        kills_while_reading("kill -9, gzip files", seed, true);
    }
}

/// How a log is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rotation {
    Rename,
    /// Compressed at once.
    Compress,
    /// Compressed with the next rotation.
    CompressLater,
    CopyTruncate,
}

fn rotate(log: &mut Log, rotation: Rotation) {
    match rotation {
        Rotation::CopyTruncate => log.copy_and_truncate(),
        Rotation::Rename => log.rename(),
        Rotation::Compress => {
            log.rename();
            log.compress(1);
        }
        Rotation::CompressLater => {
            log.rename();
            log.compress(2);
        }
    }
}

/// Writes, rotates and kills in random order, while the program runs or does not run.
fn kills_while_rotating(fault: &str, seed: u64, rotation: Rotation) {
    print(&format!("{fault}: seed {seed}"));
    let mut random = Random::new(seed);
    let server = BulkServer::paced(PACE);
    let place = Place::new(&server);
    let mut log = Log::create(&place.logs(), "app.log");
    let mut running = None;
    let (mut bound, mut kills, mut began_with) = (0, 0, 0);
    while kills < KILLS || log.next < 10_000 {
        log.append(1 + random.below(150) as usize);
        if random.one_in(12) {
            rotate(&mut log, rotation);
        }
        if running.is_none() && random.one_in(3) {
            began_with = server.count();
            running = Some(place.start(&[]));
        }
        if random.one_in(4)
            && let Some(program) = &mut running
        {
            // Far behind, a little behind, or nothing is left to do.
            let least = log.next - (random.below(1500) as usize).min(log.next);
            program.await_that("it catches up", || server.count() >= least);
        }
        if kills < KILLS
            && random.one_in(10)
            && let Some(program) = running.take()
        {
            kills += 1;
            let count = server.count() + random.below(100) as usize;
            kill_at(program, &server, count.min(log.next.saturating_sub(200)), &mut random);
            let recent = server.count_in_last(COMMIT);
            bound += match rotation {
                // Offsets of earlier generations are not in the registry.
                Rotation::CopyTruncate => (QUEUE_EVENTS + recent).min(server.count() - began_with),
                _ => not_durable(&place, &server, recent),
            };
        }
    }
    let mut program = running.unwrap_or_else(|| place.start(&[]));
    program.await_that("every line is there", || distinct(&server.documents()) >= log.next);
    program.terminate().succeeded();
    accept(fault, judge(&[("app.log", log.next)], &server.documents()), bound);
}

#[test]
fn killed_while_rotating_by_rename() {
    for seed in seeds(3) {
        kills_while_rotating("kill -9, rename", seed, Rotation::Rename);
    }
}

#[test]
fn killed_while_rotating_with_compression_at_once() {
    for seed in seeds(4) {
        kills_while_rotating("kill -9, rename and gzip at once", seed, Rotation::Compress);
    }
}

#[test]
fn killed_while_rotating_with_delayed_compression() {
    for seed in seeds(5) {
        kills_while_rotating("kill -9, rename and gzip later", seed, Rotation::CompressLater);
    }
}

#[test]
fn killed_while_rotating_by_copytruncate() {
    for seed in seeds(6) {
        kills_while_rotating("kill -9, copytruncate", seed, Rotation::CopyTruncate);
    }
}

#[test]
fn what_a_kill_repeats_is_bounded_by_events_however_rarely_cursors_are_saved() {
    const ALL: usize = 120_000;
    /// After so many events with a verdict there is a commit before its time.
    const COMMIT_ROWS: usize = 50_000;
    let server = BulkServer::start();
    let place = Place::new(&server);
    place.open_endpoint();
    place.write("a", &lines("a", 0..ALL));
    let mut program = place.start(&["-E", "filebeat.registry.flush=1h"]);
    program.await_that("every line is there", || server.count() >= ALL);
    program.await_that("cursors are saved", || {
        place.stat("/registrar/writes/success").is_some_and(|writes| writes > 0)
    });
    program.kill();
    let durable = place.durable_bytes() as usize / LINE_BYTES;
    assert!(durable + QUEUE_EVENTS >= COMMIT_ROWS, "{durable} lines are durable");
    place.once(&[]).succeeded();
    let fault = "kill -9 with `registry.flush: 1h`";
    accept(fault, judge(&[("a", ALL)], &server.documents()), ALL - durable);
}

#[test]
fn stopped_midway_it_drains_and_repeats_nothing() {
    // So many that they outlast a test that has to wait for its turn on a busy machine.
    const A: usize = 40_000;
    let mut random = Random::new(7);
    let server = BulkServer::paced(PACE);
    let place = Place::new(&server);
    place.write("a", &lines("a", 0..A));
    place.write("b.gz", &gzip(&lines("b", 0..4000)));
    let mut last = 0;
    for _ in 0..5 {
        let mut program = place.start(&[]);
        // Counted from what the program before has delivered while it ended: this one must have begun when it is asked to
        // stop.
        let count = last + 1500 + random.below(300) as usize;
        program.await_that("some lines are there", || server.count() >= count);
        let ended = program.terminate().succeeded();
        let ledger = ended.ledger();
        assert_eq!((ledger.in_flight, ledger.delivered), (0, server.count() - last));
        last = server.count();
        assert!(last < A + 4000, "it had nothing left to do: the test says nothing");
    }
    place.once(&[]).succeeded();
    accept("SIGTERM, five times", judge(&[("a", A), ("b", 4000)], &server.documents()), 0);
}

#[test]
fn stopped_while_the_server_is_stuck_it_ends_in_time_and_loses_nothing() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    place.write("a", &lines("a", 0..3000));
    server.hold();
    let mut program = place.start(&["-E", "filebeat.shutdown_timeout=200ms"]);
    program.await_that("a request is held", || server.count() > 0);
    let held = server.count();
    let ended = program.terminate().succeeded();
    assert!(ended.log.contains("ended before everything was delivered"), "{}", ended.log);
    assert!(ended.ledger().in_flight > 0);
    server.release();
    place.once(&[]).succeeded();
    let verdict = judge(&[("a", 3000)], &server.documents());
    accept("SIGTERM, server does not answer", verdict, held);
}

#[test]
fn asked_twice_it_does_not_wait() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    place.write("a", &lines("a", 0..3000));
    server.hold();
    let mut program = place.start(&["-E", "filebeat.shutdown_timeout=10m"]);
    program.await_that("a request is held", || server.held() > 0);
    program.ask_to_stop();
    program.await_log("a signal asks to stop");
    // Only a signal that comes a second later or more is a second request.
    program.await_log_while("ended before everything was delivered", || program.ask_to_stop());
    assert_eq!(program.end().code(), Some(1));
    let bound = server.count();
    server.release();
    server.await_silence();
    place.once(&[]).succeeded();
    accept("SIGTERM, twice", judge(&[("a", 3000)], &server.documents()), bound);
}

#[test]
fn a_signal_ends_the_program_while_a_script_loops_and_nothing_is_lost() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let text = place.configuration();
    let source = "var console = require('console'); function process(event) { if (/^b 0*7 /.test(event.Get('message'))) { console.warn('it loops'); while (true) {} } }";
    place.configure(&format!(
        "{text}processors: [{{script: {{lang: javascript, source: \"{source}\"}}}}]\n"
    ));
    place.write("a", &lines("a", 0..100));
    let mut program = place.start(&["-E", "filebeat.shutdown_timeout=1s"]);
    program.await_that("what comes before is there", || server.count() == 100);
    place.write("b", &lines("b", 0..20));
    program.await_log("it loops");
    let ended = program.terminate().succeeded();
    assert!(ended.log.contains("a processor does not end; it is interrupted"), "{}", ended.log);
    server.await_silence();
    // What was with it is read again.
    place.configure(&text);
    place.once(&[]).succeeded();
    accept("a script that loops", judge(&[("a", 100), ("b", 20)], &server.documents()), 0);
}
