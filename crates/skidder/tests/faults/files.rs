//! Files that are hard to distinguish, and rotation without crashes.

use crate::common::lines::{Log, UNNUMBERED, Verdict, gzip, judge, lines};
use crate::common::program::Program;
use crate::common::server::BulkServer;
use crate::common::{Place, accept};
use skidder_testkit::Random;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::Command;

/// More than a fingerprint covers, the same in every file.
fn header() -> Vec<u8> {
    let mut text = Vec::new();
    for number in 0..30 {
        writeln!(
            text,
            "{UNNUMBERED} header of the application, version 1.2.3, line {number:03} of it"
        )
        .unwrap();
    }
    assert!(text.len() > 1024);
    text
}

#[test]
fn tiny_files_are_all_delivered() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let labels: Vec<String> = (0..300).map(|number| format!("t{number}")).collect();
    let mut logs = Vec::new();
    for (number, label) in labels.iter().enumerate() {
        let count = 1 + number % 3;
        let text = lines(label, 0..count);
        place.write(label, &if number % 2 == 0 { text } else { gzip(&text) });
        logs.push((&**label, count));
    }
    place.once(&[]).succeeded();
    accept("300 tiny files", judge(&logs, &server.documents()), 0);
    // They grow past the length of a fingerprint, plain ones in place.
    for (number, label) in labels.iter().enumerate().filter(|(number, _)| number % 2 == 0) {
        let path = place.logs().join(label);
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(&lines(label, logs[number].1..20)).unwrap();
        logs[number].1 = 20;
    }
    assert!(place.once(&[]).succeeded().ledger().read < 150 * 20);
    accept("300 tiny files, grown", judge(&logs, &server.documents()), 0);
    assert_eq!(place.once(&[]).succeeded().ledger().read, 0);
}

#[test]
fn tiny_files_that_begin_alike_are_all_delivered() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let labels: Vec<String> = (0..40).map(|number| format!("t{number}")).collect();
    let logs: Vec<(&str, usize)> = labels.iter().map(|label| (&**label, 2)).collect();
    for label in &labels {
        let mut text = format!("{UNNUMBERED} started\n").into_bytes();
        text.extend(lines(label, 0..2));
        place.write(label, &text);
    }
    place.once(&[]).succeeded();
    accept("40 tiny files, first line equal", judge(&logs, &server.documents()), 0);
    assert_eq!(place.once(&[]).succeeded().ledger().read, 0);
}

#[test]
fn tiny_files_that_begin_alike_are_all_delivered_while_they_are_written() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let labels: Vec<String> = (0..10).map(|number| format!("t{number}")).collect();
    let mut program = place.start(&[]);
    for label in &labels {
        place.write(label, format!("{UNNUMBERED} started\n").as_bytes());
    }
    program.await_that("the first line of one is there", || server.count() > 0);
    let mut logs = Vec::new();
    for label in &labels {
        let mut file = OpenOptions::new().append(true).open(place.logs().join(label)).unwrap();
        file.write_all(&lines(label, 0..30)).unwrap();
        logs.push((&**label, 30));
    }
    program.await_that("every line is there", || judge(&logs, &server.documents()).missing == 0);
    program.terminate().succeeded();
    accept("10 growing files, first line equal", judge(&logs, &server.documents()), 0);
}

#[test]
fn files_with_equal_headers_are_told_apart() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let labels = ["a", "b", "c", "d", "e", "f"];
    let text = |label: &str, count: usize| [header(), lines(label, 0..count)].concat();
    for label in &labels[..3] {
        place.write(label, &text(label, 300));
    }
    for label in &labels[3..] {
        place.write(&format!("{label}.gz"), &gzip(&text(label, 300)));
    }
    let mut logs: Vec<(&str, usize)> = labels.iter().map(|label| (*label, 300)).collect();
    place.once(&[]).succeeded();
    accept("equal headers of more than 1024 bytes", judge(&logs, &server.documents()), 0);
    // They grow, and one is renamed, while the program is away.
    for (at, label) in labels[..3].iter().enumerate() {
        let path = place.logs().join(label);
        OpenOptions::new()
            .append(true)
            .open(path)
            .unwrap()
            .write_all(&lines(label, 300..400))
            .unwrap();
        logs[at].1 = 400;
    }
    std::fs::rename(place.logs().join("b"), place.logs().join("b.1")).unwrap();
    place.once(&[]).succeeded();
    accept("equal headers, grown and renamed", judge(&logs, &server.documents()), 0);
}

/// Rotates a log whose files all begin alike, every other one compressed. With `orderly`, the program
/// sees each file under each of its names.
fn rotates_with_equal_headers(seed: u64, orderly: bool) -> Verdict {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let mut random = Random::new(seed);
    let mut log = Log::create(&place.logs(), "app.log");
    let mut program = place.start(&["-d", "*"]);
    let missing = |lines| judge(&[("app.log", lines)], &server.documents()).missing;
    for rotation in 0..12 {
        log.append_text(&header());
        for _ in 0..3 {
            log.append(1 + random.below(100) as usize);
            if orderly || random.one_in(2) {
                program.await_that("it catches up", || missing(log.next) == 0);
            }
        }
        log.rename();
        let renamed = |from: &str, to: &str| {
            let (from, to) = (log.path.with_file_name(from), log.path.with_file_name(to));
            [format!("\"from\":\"{}\"", from.display()), format!("\"to\":\"{}\"", to.display())]
        };
        if orderly {
            program.await_log_times(&renamed("app.log", "app.log.1"), rotation + 1);
        }
        if rotation % 2 == 0 {
            log.compress(1);
            if orderly {
                program.await_log_times(&renamed("app.log.1", "app.log.1.gz"), rotation / 2 + 1);
            }
        }
    }
    program.await_that("every line is there", || missing(log.next) == 0);
    program.terminate().succeeded();
    judge(&[("app.log", log.next)], &server.documents())
}

#[test]
fn rotated_files_with_equal_headers_are_told_apart() {
    let verdict = rotates_with_equal_headers(21, true);
    accept("rotation with equal headers", verdict, 0);
}

#[test]
fn rotated_files_with_equal_headers_lose_nothing_when_a_scan_misses_a_name() {
    // A file that is gone under its old name and not yet complete under its new one looks like
    // a file that was written anew: then it comes again.
    let verdict = rotates_with_equal_headers(22, false);
    accept("rotation with equal headers, too fast for scans", verdict, verdict.lines);
}

#[test]
fn an_inode_that_is_used_again_is_another_file() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.write("a", &lines("a", 0..100));
    let mut program = place.start(&[]);
    program.await_that("the first file is there", || server.count() >= 100);
    // Truncated and written anew: the surest way to have an inode again. Longer than before.
    let mut file = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    file.write_all(&lines("b", 0..150)).unwrap();
    program.await_that("the second file is there", || server.count() >= 250);
    program.terminate().succeeded();
    let mut file = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    file.write_all(&lines("c", 0..150)).unwrap();
    place.once(&[]).succeeded();
    // Removed and made again under another name, as a file system that reuses inodes does it.
    std::fs::remove_file(&path).unwrap();
    place.write("d", &lines("d", 0..120));
    place.once(&[]).succeeded();
    let logs = [("a", 100), ("b", 150), ("c", 150), ("d", 120)];
    accept("inode used again", judge(&logs, &server.documents()), 0);
}

#[test]
fn a_file_that_shrinks_is_read_from_the_start() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.write("a", &lines("a", 0..100));
    let mut program = place.start(&[]);
    program.await_that("the first lines are there", || server.count() >= 100);
    let mut file = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    file.write_all(&lines("b", 0..20)).unwrap();
    program.await_that("the new lines are there", || server.count() >= 120);
    program.terminate().succeeded();
    accept("truncated", judge(&[("a", 100), ("b", 20)], &server.documents()), 0);
}

#[test]
fn a_file_that_is_removed_while_it_is_read_is_read_to_its_end() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    server.hold();
    let path = place.write("a", &lines("a", 0..3000));
    let mut program = place.start(&[]);
    program.await_that("it is being read", || server.count() > 0);
    std::fs::remove_file(path).unwrap();
    server.release();
    program.await_that("every line is there", || server.count() >= 3000);
    program.terminate().succeeded();
    accept("removed while it was read", judge(&[("a", 3000)], &server.documents()), 0);
}

#[test]
fn half_a_line_waits_for_its_other_half() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let text = lines("a", 0..2);
    let path = place.write("a", &text[..150]);
    let mut program = place.start(&[]);
    program.await_that("the whole line is there", || server.count() == 1);
    let ended = program.terminate().succeeded();
    assert_eq!(ended.ledger().read, 1);
    OpenOptions::new().append(true).open(path).unwrap().write_all(&text[150..]).unwrap();
    place.once(&[]).succeeded();
    accept("half a line", judge(&[("a", 2)], &server.documents()), 0);
}

#[test]
fn with_very_few_descriptors_the_output_has_its_file_too() {
    const FILES: usize = 300;
    let place =
        Place::with_output("output.file: {path: out, filename: events, number_of_files: 7}\n");
    for file in 0..FILES {
        place.write(&format!("f{file}.log"), &lines(&format!("f{file}"), 0..40));
    }
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 24 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_skidder")]);
    let paths = ["--path.home", ".", "--path.logs", "log"];
    command.args(["-c", "filebeat.yml", "--once"]).args(paths).current_dir(place.path());
    // It went on trying for ever.
    let ended = Program::run(&mut command).succeeded();
    assert_eq!(ended.ledger().delivered, FILES * 40);
}

#[test]
fn with_very_few_descriptors_every_file_is_read_while_others_sleep_at_their_ends() {
    const FILES: usize = 100;
    let server = BulkServer::start();
    let place = Place::new(&server);
    let labels: Vec<String> = (0..FILES).map(|file| format!("f{file}")).collect();
    for label in &labels {
        place.write(label, &lines(label, 0..20));
    }
    for descriptors in [24, 32, 64] {
        let limited = format!("ulimit -n {descriptors} && exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_skidder"), "-e", "-c", "filebeat.yml"]);
        let data = format!("data-{descriptors}");
        command.args(["--path.data", &data]).current_dir(place.path());
        let before = server.count();
        let mut program = Program::start(&mut command);
        program.await_that("every line is there", || server.count() >= before + FILES * 20);
        program.terminate().succeeded();
    }
    let logs: Vec<(&str, usize)> = labels.iter().map(|label| (&**label, 20)).collect();
    accept("24, 32 and 64 descriptors, 100 files", judge(&logs, &server.documents()), FILES * 40);
}
