//! Compressed files: half-written, damaged, empty, of several members.

use crate::common::lines::{gzip, judge, lines};
use crate::common::program::{Program, command};
use crate::common::server::BulkServer;
use crate::common::{Place, accept};
use skidder_testkit::Random;
use std::fs::OpenOptions;
use std::io::Write as _;

fn append(path: &std::path::Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn a_half_written_file_is_read_on_when_it_grows() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let packed = gzip(&lines("a", 0..3000));
    let (first, rest) = packed.split_at(packed.len() / 3);
    let path = place.write("a.gz", first);
    let mut program = place.start(&[]);
    program.await_that("the first lines are there", || server.count() > 0);
    let (second, third) = rest.split_at(rest.len() / 2);
    let before = server.count();
    append(&path, second);
    program.await_that("more lines are there", || server.count() > before);
    append(&path, third);
    program.await_that("every line is there", || server.count() >= 3000);
    program.terminate().succeeded();
    accept("gzip written in pieces", judge(&[("a", 3000)], &server.documents()), 0);
}

#[test]
fn a_half_written_file_is_read_on_after_a_restart() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let packed = gzip(&lines("a", 0..3000));
    let mut random = Random::new(11);
    let mut cut = 0;
    let path = place.write("a.gz", b"");
    while cut < packed.len() {
        let next = (cut + 1 + random.below(packed.len() as u64 / 5) as usize).min(packed.len());
        append(&path, &packed[cut..next]);
        cut = next;
        let ended = place.once(&[]);
        if cut == packed.len() {
            ended.succeeded()
        } else {
            ended.left_unread()
        };
    }
    accept("gzip written in pieces, a run for each", judge(&[("a", 3000)], &server.documents()), 0);
    assert_eq!(place.once(&[]).succeeded().ledger().read, 0);
}

#[test]
fn a_file_that_ends_early_gives_all_lines_that_are_there() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let packed = gzip(&lines("a", 0..3000));
    place.write("a.gz", &packed[..packed.len() - 4]);
    place.once(&[]).left_unread();
    accept("gzip without its last four bytes", judge(&[("a", 3000)], &server.documents()), 0);
}

/// A file whose second member is damaged.
fn damaged() -> Vec<u8> {
    let mut bytes = gzip(&lines("a", 0..1000));
    let mut second = gzip(&lines("x", 0..1000));
    // The header of the deflate block: type 3 is reserved.
    second[10] |= 0x06;
    bytes.extend_from_slice(&second);
    bytes
}

#[test]
fn a_damaged_file_gives_all_lines_before_the_damage_and_an_error_that_names_it() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.write("a.gz", &damaged());
    place.write("b", &lines("b", 0..10));
    let ended = place.once(&[]);
    let verdict = judge(&[("a", 1000), ("b", 10)], &server.documents());
    accept("damaged gzip: lines before the damage", verdict, 0);
    let error = ended.log.lines().find(|line| line.contains("is damaged")).unwrap();
    assert!(error.contains(&*path.to_string_lossy()), "{error}");
    assert!(error.contains("\"offset\":100000"), "{error}");
    assert!(ended.log.contains("\"gzip_errors\":"), "{}", ended.log);
    assert!(!ended.log.contains("\"gzip_errors\":0"), "{}", ended.log);
    // The next run tries again and delivers nothing twice.
    place.once(&[]);
    let verdict = judge(&[("a", 1000), ("b", 10)], &server.documents());
    accept("damaged gzip, read again", verdict, 0);
}

#[test]
fn shipping_a_damaged_file_fails_and_says_why() {
    let server = BulkServer::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.gz");
    std::fs::write(&path, damaged()).unwrap();
    let path = path.to_string_lossy();
    let ended = Program::run(&mut command(["ship", &*path, "--to", &server.url]));
    assert_eq!(ended.code(), Some(4), "{}", ended.log);
    assert!(ended.log.contains("is damaged") && ended.log.contains(&*path), "{}", ended.log);
    assert_eq!(judge(&[("a", 1000)], &server.documents()).missing, 0);
}

#[test]
fn a_file_with_a_wrong_checksum_is_delivered_and_told() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let mut bytes = gzip(&lines("a", 0..1000));
    let crc = bytes.len() - 8;
    bytes[crc] ^= 1;
    place.write("a.gz", &bytes);
    let ended = place.once(&[]);
    accept("gzip with a wrong checksum", judge(&[("a", 1000)], &server.documents()), 0);
    assert!(ended.log.contains("fails its integrity check"), "{}", ended.log);
}

#[test]
fn members_are_read_as_one_file() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    // Some members end inside of a line, one is empty.
    let text = lines("a", 0..2000);
    let mut random = Random::new(12);
    let mut bytes = Vec::new();
    let mut rest = &text[..];
    while !rest.is_empty() {
        let (member, after) = rest.split_at((1 + random.below(9000) as usize).min(rest.len()));
        bytes.extend(gzip(member));
        bytes.extend(gzip(b""));
        rest = after;
    }
    let path = place.write("a.gz", &bytes);
    place.once(&[]).succeeded();
    accept("gzip of many members", judge(&[("a", 2000)], &server.documents()), 0);
    append(&path, &gzip(&lines("a", 2000..2500)));
    place.once(&[]).succeeded();
    accept("gzip, a member appended later", judge(&[("a", 2500)], &server.documents()), 0);
}

#[test]
fn empty_files_are_no_trouble() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    place.write("empty.gz", b"");
    place.write("nothing.gz", &gzip(b""));
    place.write("empty", b"");
    place.write("a.gz", &gzip(&lines("a", 0..5)));
    let ended = place.once(&[]).succeeded();
    assert!(!ended.log.contains("\"error\""), "{}", ended.log);
    accept("empty files beside others", judge(&[("a", 5)], &server.documents()), 0);
    // And then they are written.
    place.write("empty.gz", &gzip(&lines("b", 0..5)));
    place.write("empty", &lines("c", 0..5));
    place.once(&[]).succeeded();
    let logs = [("a", 5), ("b", 5), ("c", 5)];
    accept("empty files that are written later", judge(&logs, &server.documents()), 0);
}

#[test]
fn a_last_line_without_line_feed_is_a_line() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let mut text = lines("a", 0..100);
    text.pop();
    place.write("a.gz", &gzip(&text));
    place.once(&[]).succeeded();
    accept("gzip without a last line feed", judge(&[("a", 100)], &server.documents()), 0);
}

#[test]
fn another_shorter_file_in_the_place_of_one_that_was_read_to_its_end_is_no_loss() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.write("a.gz", &gzip(&lines("a", 0..200)));
    place.once(&[]).succeeded();
    std::fs::remove_file(&path).unwrap();
    // It begins with the same lines.
    let other = [lines("a", 0..30), lines("b", 0..20)].concat();
    place.write("a.gz", &gzip(&other));
    let ended = place.once(&[]).succeeded();
    assert_eq!(ended.ledger().read, 50, "{}", ended.log);
    assert_eq!(server.count(), 250);
}
