//! What whoever starts the program leaves it: a closed standard output, limits on files and on their sizes.

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
fn a_limit_on_the_size_of_files_is_an_error_of_the_disk() {
    let place = Place::with_output("output.file: {path: out, filename: events}\n");
    place.write("a.log", &lines("a", 0..20_000));
    // The signal of that limit ended the program.
    let program = shell(&place, "ulimit -f 2000;", &[], "");
    let log = program.await_log("File too large");
    assert!(log.contains("os error 27"), "{log}");
    let ended = program.terminate();
    assert!(!ended.was_killed() && ended.code().is_some(), "{ended:?}");
    assert!(once(&place, "", "").succeeded().ledger().delivered > 0);
}
