//! `queue.disk`: what it holds outlives the program, and the files that it was read from.

use super::disk::SmallDisk;
use crate::common::lines::{judge, lines};
use crate::common::program::Program;
use crate::common::server::BulkServer;
use crate::common::{Place, accept, seeds};
use base64::Engine as _;
use skidder_testkit::Random;
use std::time::Duration;

/// A place whose queue is on the disk.
fn place(server: &BulkServer, options: &str) -> Place {
    let place = Place::new(server);
    let text = place.configuration();
    let mem = text.lines().find(|line| line.starts_with("queue.mem")).unwrap();
    let disk = format!("queue.disk: {{max_size: 50MiB, retry_interval: 20ms{options}}}");
    place.configure(&text.replace(mem, &disk));
    place
}

#[test]
fn what_a_stuck_server_did_not_take_outlives_the_program_and_the_log() {
    let server = BulkServer::start();
    let place = place(&server, "");
    let log = place.write("a", &lines("a", 0..6000));
    server.hold();
    let mut program = place.start(&["-E", "filebeat.shutdown_timeout=200ms"]);
    program.await_that("a request is held", || server.held() > 0);
    await_queued(&mut program, &place, 6000);
    let ended = program.terminate().succeeded();
    let ledger = ended.ledger();
    assert_eq!((ledger.read, ledger.in_flight, ledger.delivered), (6000, 0, 0));
    assert_eq!(ledger.stored, 6000);
    assert_eq!(place.durable_bytes(), std::fs::metadata(&log).unwrap().len());
    std::fs::remove_file(log).unwrap();
    let held = server.count();
    server.release();
    server.await_silence();
    let ledger = place.once(&[]).succeeded().ledger();
    assert_eq!((ledger.read, ledger.recovered, ledger.delivered), (0, 6000, 6000));
    accept("queue.disk, server does not answer", judge(&[("a", 6000)], &server.documents()), held);
    let ledger = place.once(&[]).found_nothing().ledger();
    assert_eq!((ledger.recovered, ledger.stored), (0, 0), "it is known to be delivered");
}

#[test]
fn a_queue_whose_path_was_changed_or_taken_out_is_named_with_its_events() {
    let server = BulkServer::start();
    let place = place(&server, ", path: one");
    let with_one = place.configuration();
    place.write("a", &lines("a", 0..3000));
    server.hold();
    let mut program = place.start(&["-E", "filebeat.shutdown_timeout=200ms"]);
    program.await_that("a request is held", || server.held() > 0);
    await_queued(&mut program, &place, 3000);
    program.terminate().succeeded();
    let held = server.count();
    server.release();
    server.await_silence();
    // It ended with the words that a new queue was opened, or with none, and the events were unknown.
    for next in [with_one.replace("path: one", "path: two"), with_one.replace("queue.disk", "#")] {
        place.configure(&next);
        let ended = place.once(&[]);
        assert_eq!(ended.status.code(), Some(8), "{}", ended.log);
        let log = ended.log;
        assert!(log.contains("a disk queue holds events that nobody delivers"), "{log}");
        assert!(log.contains("/one\"") && log.contains("\"events\":3000"), "{log}");
        let line = log.lines().find(|line| line.starts_with("! 3,000 events are left")).unwrap();
        assert!(line.contains("/one`") && line.contains("`queue.disk.path`"), "{line}");
    }
    place.configure(&with_one);
    place.once(&[]);
    accept("a queue that was left", judge(&[("a", 3000)], &server.documents()), held);
    place.configure(&with_one.replace("queue.disk", "#"));
    let log = place.once(&[]).succeeded().log;
    assert!(!log.contains("a disk queue holds events"), "{log}");
}

#[test]
fn a_queue_that_was_deleted_is_a_loss_and_an_empty_one_is_not() {
    for options in ["", ", path: elsewhere"] {
        let server = BulkServer::start();
        let place = place(&server, options);
        let queue =
            place.path().join(if options.is_empty() { "data/diskqueue" } else { "elsewhere" });
        place.write("a", &lines("a", 0..3000));
        server.hold();
        let mut program = place.start(&["-E", "filebeat.shutdown_timeout=200ms"]);
        program.await_that("a request is held", || server.held() > 0);
        await_queued(&mut program, &place, 3000);
        program.terminate().succeeded();
        server.release();
        server.await_silence();
        std::fs::remove_dir_all(&queue).unwrap();
        // It ended with 0, and 3000 events were never delivered.
        let ended = place.once(&[]);
        assert_eq!(ended.status.code(), Some(6), "{}", ended.log);
        assert!(ended.log.contains("a disk queue is gone"), "{}", ended.log);
        let line = ended.log.lines().find(|line| line.starts_with("! the disk queue `")).unwrap();
        let path = queue.display().to_string();
        assert!(line.contains(&path) && line.contains("`skidder registry forget`"), "{line}");
        place.write("b", &lines("b", 0..10));
        place.once(&[]).succeeded();
        std::fs::remove_dir_all(&queue).unwrap();
        place.write("c", &lines("c", 0..10));
        let log = place.once(&[]).succeeded().log;
        assert!(!log.contains("a disk queue is gone"), "{log}");
    }
}

#[test]
fn what_was_cut_off_the_queue_is_counted_as_lost() {
    let server = BulkServer::start();
    let place = place(&server, "");
    place.write("a", &lines("a", 0..3000));
    server.hold();
    let mut program = place.start(&["-E", "filebeat.shutdown_timeout=200ms"]);
    program.await_that("a request is held", || server.held() > 0);
    await_queued(&mut program, &place, 3000);
    // Killed at once it may not have saved yet how far it has read, and what is cut off is read again.
    program.terminate().succeeded();
    server.release();
    server.await_silence();
    let segments = segments(&place);
    let last = std::fs::File::options().write(true).open(segments.last().unwrap()).unwrap();
    last.set_len(last.metadata().unwrap().len() - 1).unwrap();
    let ended = place.once(&[]);
    assert_eq!(ended.code(), Some(6), "{}", ended.log);
    assert!(
        ended.log.contains("the end of the disk queue was cut off or damaged"),
        "{}",
        ended.log
    );
    assert!(!ended.log.contains("its lines are read again"), "{}", ended.log);
    let line = ended.log.lines().find(|line| line.starts_with("! ")).unwrap();
    let queue = place.data().join("diskqueue").display().to_string();
    assert!(line.contains("events were lost in the disk queue") && line.contains(&queue), "{line}");
    let ledger = ended.ledger();
    assert!(ledger.dropped > 0 && ledger.recovered == 3000, "{ledger:?}");
    let missing = judge(&[("a", 3000)], &server.documents()).missing;
    assert_eq!(missing, ledger.dropped, "{ledger:?}");
}

#[test]
fn a_queue_without_its_state_is_not_taken_for_whole() {
    for (state_is_gone, which) in [(true, "first"), (true, "last"), (true, "cut"), (false, "first")]
    {
        let server = BulkServer::start();
        let place = place(&server, ", segment_size: 1MB");
        place.write("a", &lines("a", 0..12_000));
        server.hold();
        let mut program = place.start(&["-E", "filebeat.shutdown_timeout=200ms"]);
        program.await_that("a request is held", || server.held() > 0);
        await_queued(&mut program, &place, 12_000);
        program.terminate().succeeded();
        let held = server.count();
        server.release();
        server.await_silence();
        let segments = segments(&place);
        assert!(segments.len() > 1, "{segments:?}");
        let (first, last) = (&segments[0], &segments[segments.len() - 1]);
        match which {
            "first" => std::fs::remove_file(first).unwrap(),
            "last" => std::fs::remove_file(last).unwrap(),
            _ => {
                let last = std::fs::File::options().write(true).open(last).unwrap();
                last.set_len(last.metadata().unwrap().len() / 2).unwrap();
            }
        }
        let state = place.data().join("diskqueue/queue.state");
        if state_is_gone {
            std::fs::remove_file(&state).unwrap();
        } else {
            std::fs::write(&state, vec![0x5a; 4176]).unwrap();
        }
        let shown = place.run(&["queue", "inspect"]);
        assert_eq!(shown.code(), Some(1), "{}", shown.out);
        assert!(shown.out.contains("events may be missing"), "{}", shown.out);
        // It ended with 0, and the events of the segment were never delivered.
        let ended = place.once(&[]);
        assert_eq!(ended.code(), Some(6), "{}", ended.log);
        assert!(ended.log.contains("events may be missing"), "{}", ended.log);
        let line = ended.log.lines().find(|line| line.starts_with("! the disk queue `")).unwrap();
        assert!(line.contains("had no `queue.state`"), "{line}");
        let verdict = judge(&[("a", 12_000)], &server.documents());
        assert!(verdict.missing > 0 && server.count() > held, "{verdict:?}");
        place.once(&[]).succeeded();
        place.run(&["queue", "inspect"]).succeeded();
    }
}

/// The segments of the queue in the data directory, in order.
fn segments(place: &Place) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(place.data().join("diskqueue")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "skq")).collect();
    paths.sort();
    paths
}

/// Waits until so many events are in the queue, according to a second program.
fn await_queued(program: &mut Program, place: &Place, events: usize) {
    let waiting = format!("\"waiting\": {events}\n");
    program.await_that("all is in the queue", || {
        place.start(&["queue", "inspect", "--json"]).end().out.contains(&waiting)
    });
}

#[test]
fn killed_again_and_again_with_a_queue_on_the_disk() {
    killed_again_and_again("kill -9, queue.disk", "", seeds(31));
}

#[test]
fn killed_again_and_again_with_an_encrypted_queue() {
    let key = format!(", encryption.key: {}", key(1));
    killed_again_and_again("kill -9, queue.disk encrypted", &key, seeds(32));
}

/// A key as it is written in the configuration.
fn key(number: u8) -> String {
    base64::engine::general_purpose::STANDARD.encode([number; 32])
}

fn killed_again_and_again(name: &str, options: &str, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut random = Random::new(seed);
        let server = BulkServer::paced(Duration::from_millis(3));
        let place = place(&server, &format!(", segment_size: 1MiB{options}"));
        let all = 14_000;
        place.write("a", &lines("a", 0..all));
        let (mut bound, mut next) = (0, 0);
        for _ in 0..8 {
            next += random.below(all as u64 / 8) as usize;
            let mut program = place.start(&[]);
            let count = server.count().max(next);
            program.await_that("the moment of the kill", || server.count() >= count);
            assert!(program.kill().was_killed());
            server.await_silence();
            // What was delivered since it was saved last, and the frames of it.
            bound += server.count_in_last(Duration::from_secs(2)) + 2 * 512;
        }
        let ledger = place.once(&[]).succeeded().ledger();
        assert_eq!((ledger.in_flight, ledger.stored), (0, 0));
        let verdict = judge(&[("a", all)], &server.documents());
        accept(name, verdict, bound);
        let ledger = place.once(&[]).succeeded().ledger();
        assert_eq!((ledger.read, ledger.recovered), (0, 0), "everything is durable");
    }
}

#[test]
fn a_queue_on_a_full_disk_waits_and_loses_nothing() {
    let server = BulkServer::start();
    let mount = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(&mount.path().join("small"), 512) else { return };
    let path = mount.path().join("small/queue");
    let place = place(&server, &format!(", path: '{}'", path.display()));
    place.write("a", &lines("a", 0..300));
    place.once(&[]).succeeded();
    let filling = disk.fill();
    place.write("b", &lines("b", 0..9000));
    let program = place.start(&[]);
    program.await_log("the disk queue cannot write");
    assert!(server.count() < 9300);
    std::fs::remove_file(filling).unwrap();
    program.await_log("the disk queue can write again");
    let mut program = program;
    program.await_that("every line is there", || server.count() >= 9300);
    let ended = program.terminate().succeeded();
    let count = ended.log.matches("the disk queue cannot write").count();
    assert_eq!(count, 1, "once a minute, however often it fails: {}", ended.log);
    let ledger = ended.ledger();
    assert_eq!((ledger.read, ledger.delivered, ledger.stored), (9000, 9000, 0));
    accept("queue.disk, full disk", judge(&[("a", 300), ("b", 9000)], &server.documents()), 0);
}

#[test]
fn an_encrypted_queue_waits_for_its_key_and_holds_no_line_in_the_clear() {
    let server = BulkServer::start();
    let place = place(&server, &format!(", encryption.key: {}", key(1)));
    let log = place.write("a", &lines("a", 0..6000));
    server.hold();
    let mut program = place.start(&["-E", "filebeat.shutdown_timeout=200ms"]);
    program.await_that("a request is held", || server.held() > 0);
    let queue = place.data().join("diskqueue");
    await_queued(&mut program, &place, 6000);
    assert_eq!(program.terminate().succeeded().ledger().stored, 6000);
    let line = std::fs::read(&log).unwrap()[..8].to_vec();
    let files = || std::fs::read_dir(&queue).unwrap().map(|entry| entry.unwrap().path());
    for path in files() {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(8).any(|window| window == line), "{}", path.display());
    }
    std::fs::remove_file(log).unwrap();
    let held = server.count();
    server.release();
    server.await_silence();

    let right = place.configuration();
    let shown = place.start(&["queue", "inspect", "--path", "data/diskqueue"]).end().succeeded();
    assert!(shown.out.contains("6000 events wait") && shown.out.contains("are encrypted"));
    let shown = place.start(&["queue", "inspect"]).end().succeeded();
    assert!(!shown.out.contains("are encrypted"), "{}", shown.out);
    std::fs::write(place.path().join("key"), key(1)).unwrap();
    let with_file = ["queue", "inspect", "--path", "data/diskqueue", "--key-file", "key"];
    let shown = place.start(&with_file).end().succeeded();
    assert!(!shown.out.contains("are encrypted"), "{}", shown.out);
    for (wrong, said) in [
        (right.replace(&key(1), &key(2)), "has another key"),
        (right.replace(&format!(", encryption.key: {}", key(1)), ""), "has no key"),
    ] {
        place.configure(&wrong);
        let ended = place.once(&[]);
        assert_eq!(ended.code(), Some(1));
        assert!(
            ended.log.contains(said) && ended.log.contains("nothing was changed"),
            "{}",
            ended.log
        );
    }
    assert_eq!(server.count(), held);
    place
        .configure(&right.replace("encryption.key", "encryption.key_file").replace(&key(1), "key"));
    let ledger = place.once(&[]).succeeded().ledger();
    assert_eq!((ledger.recovered, ledger.delivered), (6000, 6000));
    accept("queue.disk, encrypted", judge(&[("a", 6000)], &server.documents()), held);
}

#[test]
fn a_queue_of_filebeat_is_named_and_nothing_starts() {
    let server = BulkServer::start();
    let place = place(&server, "");
    let queue = place.data().join("diskqueue");
    std::fs::create_dir_all(&queue).unwrap();
    std::fs::write(queue.join("1.seg"), [1; 300]).unwrap();
    place.write("a", &lines("a", 0..10));
    let ended = place.once(&[]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("holds a disk queue of Filebeat"), "{}", ended.log);
    assert_eq!((server.count(), place.durable_bytes()), (0, 0));
}

#[test]
fn a_damaged_queue_is_shown_and_repaired() {
    let server = BulkServer::start();
    let place = place(&server, "");
    place.write("a", &lines("a", 0..6000));
    server.hold();
    let mut program = place.start(&["-E", "filebeat.shutdown_timeout=200ms"]);
    program.await_that("a request is held", || server.held() > 0);
    let queue = place.data().join("diskqueue");
    await_queued(&mut program, &place, 6000);
    let beside = place.start(&["queue", "inspect", "--json"]).end().succeeded();
    assert!(beside.out.contains("\"missing\": 0"), "{}", beside.out);
    let refused = place.start(&["queue", "repair", "--path", "data/diskqueue"]).end();
    assert!(refused.code() == Some(0) && refused.out.contains("nothing is damaged"), "{refused:?}");
    program.terminate().succeeded();
    server.release();
    server.await_silence();
    let segment = queue.join("000000000001.skq");
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let shown = place.start(&["queue", "inspect"]).end();
    assert_eq!(shown.code(), Some(1), "{shown:?}");
    assert!(shown.out.contains(" are missing at 1 damaged places"), "{}", shown.out);
    let repaired = place.start(&["queue", "repair"]).end().succeeded();
    assert!(repaired.out.contains("are missing at 1 damaged places"), "{}", repaired.out);
    place.start(&["queue", "inspect"]).end().succeeded();
    let ledger = place.once(&[]).succeeded().ledger();
    assert!((5488..6000).contains(&ledger.delivered), "{ledger:?}");
    assert_eq!((ledger.recovered, ledger.dropped), (ledger.delivered, 0));
    let missing = judge(&[("a", 6000)], &server.documents()).missing;
    assert!(missing <= 6000 - ledger.delivered, "{missing} of {ledger:?}");
}
