//! What the program may inherit: a closed standard output, limits on files and on their sizes.

use crate::common::Place;
use crate::common::lines::lines;
use crate::common::program::{Ended, Program};
use std::process::Command;

/// The program as a shell starts it behind `before`, with `behind` at its end.
fn shell(place: &Place, before: &str, arguments: &[&str], behind: &str) -> Program {
    let mut command = Command::new("sh");
    let text = format!("{before} exec \"$0\" \"$@\" {behind}");
    command.args(["-c", &text, env!("CARGO_BIN_EXE_skidder"), "-e", "-c", "filebeat.yml"]);
    command.args(["--path.home", ".", "--path.data", "data", "--path.logs", "log"]);
    command.args(arguments).current_dir(place.path());
    Program::start(&mut command)
}

fn once(place: &Place, before: &str, behind: &str) -> Ended {
    shell(place, before, &["--once"], behind).end()
}

#[test]
fn a_standard_output_that_is_closed_takes_no_event() {
    let place = Place::with_output("output.console: {}\n");
    place.write("a.log", &lines("a", 0..100));
    // The events went to `/dev/null`, which the language opens in its place, and were delivered.
    let ended = once(&place, "", ">&-");
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert!(ended.log.contains("the standard output is closed"), "{ended:?}");
    assert_eq!(place.durable_bytes(), 0);
    let ended = once(&place, "", "").succeeded();
    assert_eq!(ended.ledger().delivered, 100);
    place.write("b.log", &lines("b", 0..100));
    let ended = once(&place, "", ">/dev/null").succeeded();
    assert_eq!(ended.ledger().delivered, 100, "that is asked for");
    // Where nothing is written there it may be closed.
    place.configure(&place.configuration().replace("output.console: {}", "output.file: {path: o}"));
    once(&place, "", ">&-").succeeded();
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_of_the_disk() {
    let place = Place::with_output("output.file: {path: out, filename: events}\n");
    place.write("a.log", &lines("a", 0..20_000));
    // The signal of that limit ended the program.
    let program = shell(&place, "ulimit -f 2000;", &[], "");
    let log = program.await_log("File too large");
    assert!(log.contains("os error 27"), "{log}");
    // It cannot make its registry, and ends by itself: a signal to stop would come while it does.
    let ended = program.end();
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert!(once(&place, "", "").succeeded().ledger().delivered > 0);
}

#[test]
fn too_few_descriptors_to_run_with_are_named_at_the_start() {
    let place = Place::with_output("output.file: {path: out, filename: events}\n");
    place.write("a.log", &lines("a", 0..100));
    for limit in [16, 20, 23] {
        let ended = once(&place, &format!("ulimit -n {limit};"), "");
        assert_eq!(ended.code(), Some(1), "{limit}: {ended:?}");
        let message = format!("{limit} files may be open");
        assert!(ended.log.contains(&message) && ended.log.contains("24"), "{ended:?}");
    }
    assert_eq!(once(&place, "ulimit -n 24;", "").succeeded().ledger().delivered, 100);
}
