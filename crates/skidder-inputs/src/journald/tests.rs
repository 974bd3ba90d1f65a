//! The input over files that the test writes.

use super::*;
use crate::testing::{Bench, context, read_with};
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line};
use skidder_input::InputState;
use skidder_net::Sockets;
use skidder_parse::chain::{Match, Matcher, Multiline, Parser, Rule};
use skidder_testkit::journal::{JournalOptions, JournalWriter};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;

const MAX_BYTES: usize = 1 << 20;

/// A directory with a journal.
struct Journal {
    directory: tempfile::TempDir,
    writer: Mutex<(JournalWriter, u64)>,
}

impl Journal {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let writer = JournalWriter::create(
            &directory.path().join("system.journal"),
            JournalOptions { compact: true, ..JournalOptions::default() },
        );
        Self { directory, writer: Mutex::new((writer, 0)) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Adds an entry with this message.
    fn log(&self, message: &str) {
        self.log_as(&[format!("MESSAGE={message}").as_bytes(), b"_PID=7", b"PRIORITY=6"]);
    }

    fn log_as(&self, fields: &[&[u8]]) {
        let mut writer = self.writer.lock().unwrap();
        writer.1 += 1;
        let number = writer.1;
        writer.0.entry(number, 1_000_000 + number, fields);
    }

    /// Moves the file aside, as journald does, and begins another one.
    fn rotate(&self, name: &str) {
        let mut writer = self.writer.lock().unwrap();
        writer.0.set_state(2);
        std::fs::rename(self.path("system.journal"), self.path(name)).unwrap();
        writer.0 = JournalWriter::create(&self.path("system.journal"), JournalOptions::default());
    }

    fn input(&self, more: &str) -> Box<dyn Input> {
        self.parsed(more, Vec::new())
    }

    fn parsed(&self, more: &str, parsers: Vec<Parser>) -> Box<dyn Input> {
        let settings = format!("{{paths: ['{}']{more}}}", self.directory.path().display());
        let (input, problems) = read_with(&settings, |section| {
            section.declared_by(&JOURNAL);
            let chain = Chain::new(parsers, 2 * MAX_BYTES as u64);
            read(section, &context(&Sockets::default()), chain, MAX_BYTES)
        });
        assert_eq!(problems, "");
        input.unwrap()
    }
}

impl InputTrial for Journal {
    fn input(&self) -> Box<dyn Input> {
        self.input("")
    }

    fn meaning(&self) -> Meaning {
        Meaning::Cursor
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            for number in lines {
                self.log(&line(number));
            }
        })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async {
            let mut writer = self.writer.lock().unwrap();
            writer.1 += 1;
            let number = writer.1;
            let entry = writer.0.entry(number, 1_000_000 + number, &[b"MESSAGE=lost"]);
            writer.0.put(entry, &[9]);
        }))
    }

    fn on_the_way_max(&self) -> usize {
        // Two batches.
        5000
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_the_contract_of_inputs() {
    keep_input(Journal::new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_become_events_with_the_fields_of_filebeat() {
    let journal = Journal::new();
    journal.log_as(&[b"MESSAGE=a\nb", b"_PID=7", b"_HOSTNAME=h", b"_TRANSPORT=stdout", b"OWN=x"]);
    // That of the entry counts, as for journalctl.
    journal.log_as(&[
        b"_BOOT_ID=00000000000000000000000000000009",
        b"MESSAGE=c",
        b"_PID=7",
        b"_HOSTNAME=h",
        b"_TRANSPORT=stdout",
        b"OWN=x",
    ]);
    journal.log_as(&[b"MESSAGE=", b"PRIORITY=3"]);
    let mut bench = Bench::start(journal.input(""), 100);
    bench.events(3).await;
    bench.stop().await;
    assert_eq!(bench.messages(), ["a\nb", "c", ""]);
    for event in &mut bench.events {
        assert!(event["event"].as_object_mut().unwrap().remove("created").is_some());
    }
    let expected = serde_json::json!({
        "message": "c",
        "input": {"type": "journald"},
        "event": {"kind": "event"},
        "host": {"hostname": "h"},
        "journald": {"pid": 7, "custom": {"own": "x"}, "host": {"boot_id": "0".repeat(32)}},
        "process": {"pid": 7},
        "systemd": {"transport": "stdout"},
    });
    assert_eq!(bench.events[1], expected);
    assert_eq!(bench.events[2].get("message"), None, "as Filebeat");
    assert_eq!(bench.events[2]["log"]["syslog"]["priority"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn rotated_files_are_read_to_their_end_and_new_ones_from_their_start() {
    let journal = Journal::new();
    journal.log("1");
    let mut bench = Bench::start(journal.input(""), 100);
    bench.events(1).await;
    for number in 2..8 {
        journal.log(&number.to_string());
        journal.rotate(&format!("system@{number}.journal"));
        journal.log(&format!("{number} new"));
    }
    bench.events(13).await;
    // Vacuumed.
    std::fs::remove_file(journal.path("system@2.journal")).unwrap();
    journal.log("last");
    bench.events(14).await;
    bench.replace(journal.input("")).await;
    journal.log("of the next input");
    bench.events(15).await;
    bench.stop().await;
    let mut expected = vec!["1".to_owned()];
    expected.extend((2..8).flat_map(|at| [at.to_string(), format!("{at} new")]));
    expected.extend(["last".to_owned(), "of the next input".to_owned()]);
    assert_eq!(bench.messages(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_files_are_one_journal_in_order() {
    let journal = Journal::new();
    let options = JournalOptions::default();
    let mut user = JournalWriter::create(&journal.path("user-1.journal"), options);
    for number in 0..300_u64 {
        let message = format!("MESSAGE={number}");
        if number % 3 == 0 {
            user.entry(number + 1, number, &[message.as_bytes()]);
        } else {
            journal.writer.lock().unwrap().0.entry(number + 1, number, &[message.as_bytes()]);
        }
    }
    // Of another boot, which was before.
    let before = JournalOptions { seqnum_id: 5, boot_id: 6, ..options };
    let mut before = JournalWriter::create(&journal.path("system@5.journal"), before);
    before.set_state(2);
    before.entry(1000, 0, &[b"MESSAGE=before"]);
    let mut bench = Bench::start(journal.input(""), 1000);
    bench.events(301).await;
    bench.stop().await;
    let mut expected: Vec<String> = (0..300).map(|number: u64| number.to_string()).collect();
    expected.insert(0, "before".to_owned());
    let mut messages = bench.messages();
    messages[..2].sort_unstable_by_key(|message| *message != "before");
    assert_eq!(messages, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_are_late_in_another_file_are_read_after_a_restart() {
    let journal = Journal::new();
    let mut user =
        JournalWriter::create(&journal.path("user-1.journal"), JournalOptions::default());
    user.entry(1, 1, &[b"MESSAGE=first"]);
    journal.writer.lock().unwrap().0.entry(9, 9, &[b"MESSAGE=ninth"]);
    let mut bench = Bench::start(journal.input(""), 100);
    bench.events(2).await;
    bench.replace(journal.input("")).await;
    // With numbers before that of the cursor.
    user.entry(2, 2, &[b"MESSAGE=late"]);
    bench.events(3).await;
    bench.stop().await;
    assert_eq!(bench.messages(), ["first", "ninth", "late"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_matches_is_read() {
    let journal = Journal::new();
    for (unit, transport, facility, identifier) in [
        ("a", "stdout", "3", "x"),
        ("b", "kernel", "0", "x"),
        ("a", "syslog", "4", "y"),
        ("a", "syslog", "3", "x"),
    ] {
        let message = format!("MESSAGE={unit} {transport} {facility} {identifier}");
        journal.log_as(&[
            message.as_bytes(),
            format!("_SYSTEMD_UNIT={unit}.service").as_bytes(),
            format!("_TRANSPORT={transport}").as_bytes(),
            format!("SYSLOG_FACILITY={facility}").as_bytes(),
            format!("SYSLOG_IDENTIFIER={identifier}").as_bytes(),
        ]);
    }
    for (settings, expected) in [
        ("units: [a]", vec!["a stdout 3 x", "a syslog 4 y", "a syslog 3 x"]),
        ("transports: [syslog]", vec!["a syslog 4 y", "a syslog 3 x"]),
        ("facilities: [0, 4]", vec!["b kernel 0 x", "a syslog 4 y"]),
        ("syslog_identifiers: [y]", vec!["a syslog 4 y"]),
        ("units: [a], facilities: [3], transports: [stdout]", vec!["a stdout 3 x"]),
        (
            "include_matches.match: ['_TRANSPORT=kernel', '+', 'log.syslog.facility.code=4']",
            vec!["b kernel 0 x", "a syslog 4 y"],
        ),
        (
            "include_matches: ['_TRANSPORT=kernel', '+', 'log.syslog.facility.code=4']",
            vec!["b kernel 0 x", "a syslog 4 y"],
        ),
    ] {
        let mut bench = Bench::start(journal.input(&format!(", {settings}")), 100);
        bench.events(expected.len()).await;
        bench.stop().await;
        assert_eq!(bench.messages(), expected, "{settings}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_start_can_be_chosen() {
    let journal = Journal::new();
    journal.log("long ago");
    let now = skidder_os::Clock::wall(&skidder_os::SystemClock::new()).0 as u64 / 1000;
    let write = |number, time, message: &str| {
        let message = format!("MESSAGE={message}");
        journal.writer.lock().unwrap().0.entry(number, time, &[message.as_bytes()]);
    };
    write(2, now - 60_000_000, "a minute ago");
    let mut tail = Bench::start(journal.input(", seek: tail"), 100);
    let mut since = Bench::start(journal.input(", seek: since, since: -5m"), 100);
    since.events(1).await;
    tail.until("it reads", |bench| bench.input.state() == InputState::Running).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    write(3, now + 1_000_000, "now");
    since.events(2).await;
    tail.events(1).await;
    since.stop().await;
    tail.stop().await;
    assert_eq!(since.messages(), ["a minute ago", "now"]);
    assert_eq!(tail.messages(), ["now"]);
}

fn multiline() -> Vec<Parser> {
    vec![Parser::Multiline(Multiline {
        rule: Rule::Pattern {
            pattern: Matcher::new(regex::bytes::Regex::new("^ ").unwrap()),
            negate: false,
            side: Match::After,
            flush: None,
        },
        max_lines: Multiline::MAX_LINES,
        max_bytes: MAX_BYTES,
        timeout: None,
        skip_newline: false,
    })]
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_group_are_joined_also_over_a_restart() {
    let journal = Journal::new();
    let log = |message: &str, own: &str| {
        let (message, own) = (format!("MESSAGE={message}"), format!("OWN={own}"));
        journal.log_as(&[message.as_bytes(), own.as_bytes()]);
    };
    log("a", "1");
    log(" b", "2");
    log("c", "3");
    let mut bench = Bench::start(journal.parsed("", multiline()), 100);
    bench.events(1).await;
    bench.replace(journal.parsed("", multiline())).await;
    log(" d", "4");
    log("e", "5");
    bench.events(2).await;
    bench.stop().await;
    assert_eq!(bench.messages()[..2], ["a\n b", "c\n d"]);
    assert_eq!(bench.events[0]["journald"]["custom"]["own"], "2", "of the last one, as Filebeat");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_host_keeps_its_name() {
    let journal = Journal::new();
    journal.log_as(&[b"MESSAGE=a", b"_HOSTNAME=far"]);
    let mut bench = Bench::start(journal.input(", save_remote_hostname: true"), 100);
    bench.events(1).await;
    bench.stop().await;
    assert_eq!(bench.events[0]["log"]["source"]["address"], "far");
}
