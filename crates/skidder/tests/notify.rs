//! What is written is noticed long before the next scan.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::server::BulkServer;
use std::fs::{File, OpenOptions};
use std::io::Write;

/// A place whose readers do not look by themselves.
fn place(server: &BulkServer, scanner: &str, more: &str) -> Place {
    let place = Place::new(server);
    place.configure(&format!(
        "filebeat.inputs:\n- type: filestream\n  id: test\n  paths: ['{0}/*.log', '{0}/*/*.log']\n  \
         prospector.scanner: {{{scanner}, symlinks: true}}\n  \
         backoff: {{init: 1h, max: 1h}}\n{more}\
         queue.mem: {{flush.timeout: 0s}}\nlogging.metrics.enabled: false\n\
         output.elasticsearch:\n  hosts: ['{1}']\n",
        place.logs().display(),
        server.url
    ));
    place
}

fn append(path: &std::path::Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn lines_and_files_arrive_although_a_scan_comes_once_an_hour() {
    let server = BulkServer::start();
    let place = place(&server, "check_interval: 1h", "");
    let log = place.write("a.log", b"one\n");
    let elsewhere = place.path().join("target.txt");
    File::create(&elsewhere).unwrap().write_all(b"link\n").unwrap();
    std::os::unix::fs::symlink(&elsewhere, place.logs().join("link.log")).unwrap();
    let mut program = place.start(&[]);
    let mut count = 2;
    program.await_that("what was there", || server.count() == count);
    append(&log, "two\n");
    count += 1;
    program.await_that("a line of an idle file", || server.count() == count);
    place.write("new.log", b"three\n");
    count += 1;
    program.await_that("a new file", || server.count() == count);
    let outside = place.path().join("moved");
    std::fs::write(&outside, "four\n").unwrap();
    std::fs::rename(&outside, place.logs().join("moved.log")).unwrap();
    count += 1;
    program.await_that("a file that was moved here", || server.count() == count);
    std::fs::create_dir(place.logs().join("pod")).unwrap();
    place.write("pod/0.log", b"five\n");
    count += 1;
    program.await_that("a file in a new directory", || server.count() == count);
    append(&elsewhere, "six\n");
    count += 1;
    program.await_that("a line of a file behind a link", || server.count() == count);
    File::create(&log).unwrap().write_all(b"7\n").unwrap();
    count += 1;
    program.await_that("a line of a truncated file", || server.count() == count);
    assert_eq!(program.terminate().succeeded().code(), Some(0));
}

#[test]
fn a_closed_file_is_opened_for_a_line() {
    let server = BulkServer::start();
    let place = place(&server, "check_interval: 1h", "  close.reader.on_eof: true\n");
    let log = place.write("a.log", b"one\n");
    let mut program = place.start(&[]);
    program.await_that("what was there", || server.count() == 1);
    append(&log, "two\n");
    program.await_that("a line of a closed file", || server.count() == 2);
    assert_eq!(program.terminate().succeeded().code(), Some(0));
}

#[test]
fn without_notification_the_next_scan_finds_it() {
    let server = BulkServer::start();
    let place = place(&server, "check_interval: 20ms, notify: off", "");
    let log = place.write("a.log", b"one\n");
    let mut program = place.start(&[]);
    program.await_that("what was there", || server.count() == 1);
    append(&log, "two\n");
    program.await_that("a line", || server.count() == 2);
    assert_eq!(program.terminate().succeeded().code(), Some(0));
}
