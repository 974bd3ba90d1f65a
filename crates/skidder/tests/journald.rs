//! The input `journald` over files that are written, rotated and removed while the program is killed, and over those of
//! a real journald.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{distinct, judge, line};
use common::server::BulkServer;
use common::{Place, QUEUE_EVENTS, accept};
use skidder_testkit::journal::{JournalOptions, JournalWriter};
use skidder_testkit::servers::Server;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A place whose only input is the journal in this directory.
fn place(server: &BulkServer, journal: &Path, more: &str) -> Place {
    let place = Place::new(server);
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    let input = format!("{{type: journald, id: journal, paths: ['{}']{more}}}", journal.display());
    place.configure(&format!("filebeat.inputs:\n- {input}\nfilebeat.registry.flush{rest}"));
    place
}

/// Writes numbered lines, and rotates as journald does.
struct Writer {
    directory: tempfile::TempDir,
    file: JournalWriter,
    next: usize,
}

impl Writer {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = Self::create(directory.path(), 0);
        Self { directory, file, next: 0 }
    }

    fn create(directory: &Path, number: usize) -> JournalWriter {
        let compact = number.is_multiple_of(2);
        let options = JournalOptions { compact, ..JournalOptions::default() };
        JournalWriter::create(&directory.join("system.journal"), options)
    }

    fn write(&mut self, count: usize) {
        for _ in 0..count {
            let message = format!("MESSAGE={}", line("journal", self.next));
            self.next += 1;
            let number = self.next as u64;
            self.file.entry(number, 1_000_000 + number, &[message.as_bytes(), b"_PID=1"]);
        }
    }

    fn rotate(&mut self) {
        self.file.set_state(2);
        let archived = format!("system@{}.journal", self.next);
        let directory = self.directory.path();
        std::fs::rename(directory.join("system.journal"), directory.join(archived)).unwrap();
        self.file = Self::create(directory, self.next);
    }
}

#[test]
fn killed_again_and_again_between_rotations_it_loses_no_line() {
    let server = BulkServer::paced(Duration::from_millis(2));
    let mut writer = Writer::new();
    let place = place(&server, writer.directory.path(), "");
    let mut kills = 0;
    while writer.next < 20_001 {
        writer.write(1501);
        let before = server.count();
        let mut program = place.start(&[]);
        program.await_that("it gets on", || server.count() > before + 500);
        writer.rotate();
        writer.write(1500);
        program.kill();
        kills += 1;
    }
    let mut program = place.start(&[]);
    let count = writer.next;
    program.await_that("all lines", || distinct(&server.documents()) == count);
    // What is in the queue, and what was delivered since the last commit.
    let bound = kills * (QUEUE_EVENTS + 2500);
    accept("kill -9 over a journal", judge(&[("journal", count)], &server.documents()), bound);
    program.terminate().succeeded();
    let sent = server.count();
    let ended = place.once(&[]).succeeded();
    assert_eq!((server.count(), ended.ledger().read), (sent, 0), "nothing more is to be read");
}

#[test]
fn what_was_removed_before_it_was_read_is_reported() {
    let server = BulkServer::start();
    let mut writer = Writer::new();
    let place = place(&server, writer.directory.path(), "");
    writer.write(100);
    place.once(&[]).succeeded();
    writer.write(100);
    writer.rotate();
    writer.write(100);
    std::fs::remove_file(writer.directory.path().join("system@200.journal")).unwrap();
    let mut program = place.start(&[]);
    program.await_log("entries 101 to 200 are gone");
    program.await_that("the rest", || server.count() == 200);
    program.terminate().succeeded();
}

#[test]
fn a_journal_that_is_not_there_is_a_problem_until_it_is_and_fails_a_run_with_once() {
    let server = BulkServer::start();
    let mut writer = Writer::new();
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none");
    let paths = format!("{}', '{}", missing.display(), writer.directory.path().display());
    let place = place(&server, Path::new(&paths), "");
    writer.write(10);
    let ended = place.once(&[]);
    let trouble = format!("{}: No such file or directory (os error 2)", missing.display());
    assert_eq!((ended.code(), server.count()), (Some(1), 10), "{}", ended.log);
    assert!(ended.log.contains(&format!("input `journal`: {trouble}")), "{}", ended.log);

    place.open_endpoint();
    let mut program = place.start(&[]);
    let status = || place.run(&["status", "--seconds", "0.1"]);
    let what = format!("! input `journal` cannot read `{}` since ", missing.display());
    let cause = ": No such file or directory (os error 2); it is tried again";
    program.await_that("a problem", || {
        let ended = status();
        ended.code() == Some(1) && ended.out.contains(&what) && ended.out.contains(cause)
    });
    std::fs::create_dir(&missing).unwrap();
    let cause = ": there is no file of a journal; see `paths`";
    program.await_that("another problem", || status().out.contains(cause));
    std::fs::copy(writer.directory.path().join("system.journal"), missing.join("a.journal"))
        .unwrap();
    program.await_that("no problem", || status().out.contains("all is well"));
    program.terminate().succeeded();
}

#[test]
#[ignore = "needs journald"]
fn a_real_journal_is_read_through_rotations_vacuum_and_kills() {
    let journald = Server::own_journald().unwrap();
    let namespace = format!("skidder{}", journald.port());
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap();
    let directory = format!("/var/log/journal/{}.{namespace}", machine.trim());
    let socket = UnixDatagram::unbound().unwrap();
    socket.connect(format!("/run/systemd/journal.{namespace}/socket")).unwrap();
    let server = BulkServer::start();
    let place = place(&server, Path::new(&directory), ", include_matches.match: ['OWN=skidder']");
    let journalctl = |arguments: &[&str]| {
        let mut command = Command::new("journalctl");
        let output = command.args(["--namespace", &namespace]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let mut next = 0;
    let mut write = |count: usize| {
        for _ in 0..count {
            let message = line("journal", next);
            next += 1;
            socket
                .send(format!("MESSAGE={message}\nOWN=skidder\nPRIORITY=6\n").as_bytes())
                .unwrap();
        }
        next
    };
    let mut kills = 0;
    for round in 0..6 {
        let mut program = place.start(&[]);
        let written = write(2000);
        if round % 2 == 0 {
            journalctl(&["--rotate"]);
        }
        program.await_that("the lines", || distinct(&server.documents()) == written);
        // All of it is read: what is removed now is not missing.
        journalctl(&["--rotate", "--vacuum-size=1"]);
        program.kill();
        kills += 1;
        write(500);
    }
    let written = write(1);
    let mut program = place.start(&[]);
    program.await_that("all lines", || distinct(&server.documents()) == written);
    let bound = kills * (QUEUE_EVENTS + 2500);
    accept("a real journal", judge(&[("journal", written)], &server.documents()), bound);
    program.terminate().succeeded();
}
