//! The input `stdin` in the program: files and pipes, their end, a stop, reloads, and an output that is stuck.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{judge, line, lines};
use common::program::{Ledger, Program, patiently};
use common::server::BulkServer;
use common::{Place, accept};
use rustix::process::Signal;
use std::io::{PipeWriter, Write as _};
use std::process::Stdio;

/// A place whose only input is the standard input, with these options.
fn with_stdin(place: &Place, options: &str) {
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!(
        "filebeat.inputs:\n- {{type: stdin, id: s{options}}}\nfilebeat.registry.flush{rest}"
    ));
}

fn with_server(server: &BulkServer) -> Place {
    let place = Place::new(server);
    with_stdin(&place, "");
    place
}

/// Starts the program with a pipe.
fn start(place: &Place, arguments: &[&str]) -> (Program, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let program = Program::start_with(&mut place.command(arguments), reader.into(), Stdio::piped());
    (program, writer)
}

/// Everything was delivered.
fn all(lines: usize) -> Ledger {
    Ledger { read: lines, delivered: lines, ..Ledger::default() }
}

#[test]
fn a_file_is_read_to_its_end_once() {
    let server = BulkServer::start();
    let place = with_server(&server);
    let file = place.path().join("in");
    let mut text = lines("a", 0..50_000);
    // Without a line feed at its end.
    text.extend_from_slice(line("a", 50_000).as_bytes());
    std::fs::write(&file, text).unwrap();
    let file = std::fs::File::open(&file).unwrap();
    let mut command = place.command(&["--once"]);
    let ended = Program::start_with(&mut command, file.into(), Stdio::piped()).end().succeeded();
    accept("a file on the standard input", judge(&[("a", 50_001)], &server.documents()), 0);
    assert_eq!(ended.ledger(), all(50_001));
}

#[test]
fn a_pipe_is_read_to_its_end_once_for_each_of_several_outputs() {
    let (first, second) = (BulkServer::start(), BulkServer::start());
    let place = Place::with_outputs(&[("a", &first), ("b", &second)]);
    with_stdin(&place, "");
    let (program, mut writer) = start(&place, &["--once"]);
    writer.write_all(&lines("a", 0..5000)).unwrap();
    drop(writer);
    let ended = program.end().succeeded();
    for (server, output) in [(&first, "a"), (&second, "b")] {
        accept("a pipe", judge(&[("a", 5000)], &server.documents()), 0);
        assert_eq!(ended.ledger_of(output), all(5000));
    }
}

#[test]
fn without_once_the_program_goes_on_behind_the_end_and_says_so() {
    let server = BulkServer::start();
    let place = with_server(&server);
    let (program, mut writer) = start(&place, &[]);
    writer.write_all(b"line\nlast").unwrap();
    patiently("the first line", || (server.count() == 1).then_some(()));
    drop(writer);
    program.await_log("the standard input has ended");
    patiently("the last line", || (server.count() == 2).then_some(()));
    assert_eq!(program.terminate().succeeded().ledger(), all(2));
}

#[test]
fn a_stop_reads_what_is_in_the_pipe_and_does_not_wait_for_more() {
    let server = BulkServer::start();
    let place = with_server(&server);
    let (program, mut writer) = start(&place, &[]);
    program.await_log("skidder is running");
    writer.write_all(&lines("a", 0..100)).unwrap();
    // Part of a line, and the pipe stays open.
    writer.write_all(line("a", 100).as_bytes()).unwrap();
    let ended = program.terminate().succeeded();
    accept("a stop with an open pipe", judge(&[("a", 101)], &server.documents()), 0);
    assert_eq!(ended.ledger(), all(101));
    assert!(ended.log.contains("stops before the end of the standard input"), "{}", ended.log);
}

#[test]
fn reloads_in_the_middle_of_lines_lose_none_and_repeat_none() {
    let server = BulkServer::start();
    let place = with_server(&server);
    let (mut program, mut writer) = start(&place, &[]);
    program.await_log("skidder is running");
    let mut sent = 0;
    for times in 1..=5 {
        let bytes = lines("a", sent..sent + 300);
        sent += 300;
        let half = bytes.len() - 7;
        writer.write_all(&bytes[..half]).unwrap();
        with_stdin(&place, &format!(", tags: [t{times}]"));
        program.signal(Signal::HUP);
        program.await_log_times(&["all inputs are as configured".to_owned()], times);
        // The rest of the line comes to the next input.
        writer.write_all(&bytes[half..]).unwrap();
    }
    drop(writer);
    program.await_log("the standard input has ended");
    let ended = program.terminate().succeeded();
    accept("a reload within a line", judge(&[("a", sent)], &server.documents()), 0);
    assert_eq!(ended.ledger(), all(sent));
}

#[test]
fn a_reload_without_the_input_delivers_what_was_begun() {
    let server = BulkServer::start();
    let place = with_server(&server);
    let (mut program, mut writer) = start(&place, &[]);
    writer.write_all(b"whole\nbegun").unwrap();
    patiently("the first line", || (server.count() == 1).then_some(()));
    let text = place.configuration();
    place.configure(&text.replace("type: stdin", "type: benchmark, count: 1"));
    program.signal(Signal::HUP);
    program.await_log_times(&["all inputs are as configured".to_owned()], 1);
    patiently("the rest, and the next input", || (server.count() == 3).then_some(()));
    let sent = server.sent();
    assert!(sent.iter().any(|event| event.message == "begun"), "{}", program.log());
    assert_eq!(program.terminate().succeeded().ledger(), all(3));
}

#[test]
fn a_stuck_output_fills_the_pipe_and_goes_on_later() {
    let server = BulkServer::start();
    let place = with_server(&server);
    server.hold();
    let (program, mut writer) = start(&place, &[]);
    let sender = std::thread::spawn(move || writer.write_all(&lines("a", 0..40_000)));
    patiently("requests that are held", || (server.held() > 0).then_some(()));
    assert!(!sender.is_finished(), "there is no room for so many lines");
    server.release();
    sender.join().unwrap().unwrap();
    program.await_log("the standard input has ended");
    patiently("all lines", || (server.count() == 40_000).then_some(()));
    let ended = program.terminate().succeeded();
    accept("a stuck output", judge(&[("a", 40_000)], &server.documents()), 0);
    assert_eq!(ended.ledger(), all(40_000));
}

#[test]
fn reloads_while_the_output_is_stuck_lose_none_and_repeat_none() {
    let server = BulkServer::start();
    let place = with_server(&server);
    server.hold();
    let (mut program, mut writer) = start(&place, &[]);
    let sender = std::thread::spawn(move || writer.write_all(&lines("a", 0..20_000)));
    patiently("requests that are held", || (server.held() > 0).then_some(()));
    for times in 1..=3 {
        with_stdin(&place, &format!(", tags: [t{times}]"));
        program.signal(Signal::HUP);
        program.await_log_times(&["all inputs are as configured".to_owned()], times);
    }
    server.release();
    sender.join().unwrap().unwrap();
    program.await_log("the standard input has ended");
    patiently("all lines", || (server.count() == 20_000).then_some(()));
    let ended = program.terminate().succeeded();
    accept("reloads while an output is stuck", judge(&[("a", 20_000)], &server.documents()), 0);
    assert_eq!(ended.ledger(), all(20_000));
}

#[test]
fn what_a_stuck_output_does_not_take_until_the_end_is_counted_and_said() {
    let server = BulkServer::start();
    let place = with_server(&server);
    let text = place.configuration();
    place.configure(&text.replace("shutdown_timeout: 20s", "shutdown_timeout: 300ms"));
    place.open_endpoint();
    server.hold();
    let (program, mut writer) = start(&place, &[]);
    let sender = std::thread::spawn(move || writer.write_all(&lines("a", 0..4000)));
    patiently("a full queue", || (place.stat("/skidder/ledger/in_flight")? >= 400).then_some(()));
    let ended = program.terminate();
    // The stop has read the pipe once, which may have made room for the rest.
    drop(sender.join().unwrap());
    let ledger = ended.ledger();
    assert_eq!(ledger.delivered, 0, "{ledger:?}");
    // Besides what is in flight, of which the queue had room for 400.
    assert!(ledger.dropped > 0 && ledger.read >= 400, "{ledger:?}");
    assert!(ended.log.contains("no output takes anything any more"), "{}", ended.log);
}

#[test]
fn beside_other_inputs_it_is_refused() {
    let place = Place::with_output("output.console.enabled: true\n");
    let text = place.configuration();
    place.configure(&text.replace("filebeat.inputs:\n", "filebeat.inputs:\n- type: stdin\n"));
    let ended = place.run(&["test", "config"]);
    assert_eq!(ended.code(), Some(1));
    let expected = "an input of type `stdin` must be the only one; there are `stdin`, `filestream`";
    assert!(ended.log.contains(expected), "{}", ended.log);
    let text = place.configuration();
    place
        .configure(&text.replace("- type: filestream\n", "- type: filestream\n  enabled: false\n"));
    place.run(&["test", "config"]).succeeded();
}

#[test]
fn options_of_log_inputs_about_files_are_notices_and_parsers_have_a_hint() {
    let place = Place::with_output("output.console.enabled: true\n");
    let options = [
        "exclude_files: [a]",
        "recursive_glob.enabled: false",
        "symlinks: true",
        "scan_frequency: 1s",
        "scan.sort: modtime",
        "ignore_older: 1h",
        "harvester_limit: 2",
        "file_identity.path: ~",
        "clean_inactive: 2h",
        "clean_removed: true",
        "tail_files: true",
        "close_inactive: 1m",
        "close_removed: true",
        "close_renamed: true",
        "close_timeout: 1m",
        "close_eof: true",
        "backoff: 1s",
        "max_backoff: 2s",
        "backoff_factor: 3",
    ];
    with_stdin(&place, &format!(", {}", options.join(", ")));
    let ended = place.run(&["test", "config"]).succeeded();
    assert_eq!(ended.log.matches("has no effect here").count(), options.len(), "{}", ended.log);
    // The hint is not that of inputs in general.
    assert!(!ended.log.contains("filestream"), "{}", ended.log);
    with_stdin(&place, ", parsers: [{ndjson: {}}]");
    let ended = place.run(&["test", "config"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("hint: `stdin` has `json` and `multiline`"), "{}", ended.log);
}
