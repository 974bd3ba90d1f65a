//! The race as a user starts it, with fake peers of which two do wrong.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `skidder-bench peers` small, with fake peers in place of `--skidder`.
fn race(folder: &Path, names: &[&str], more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skidder-bench"));
    command.args(["peers", "--runs", "1", "--scale", "0.000001", "--patience", "10"]);
    command.args(["--level", "0", "--steady", "0.5"]).args(more).arg("--work").arg(folder);
    for name in names {
        let program = folder.join(name);
        fs::copy(env!("CARGO_BIN_EXE_fake-peer"), &program).expect("the fake peer can be copied");
        command.arg("--skidder").arg(format!("{name}={}", program.display()));
    }
    command.output().expect("skidder-bench starts")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const CATCH_UP: [&str; 8] =
    ["--form", "plain", "--processing", "none", "--pace", "catch-up", "--faults", "none"];

#[test]
fn a_peer_that_loses_or_doubles_a_line_is_caught() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["honest", "forgetful", "repeating"];
    let output = race(folder.path(), &names, &CATCH_UP);
    let text = printed(&output);
    let ends = |name: &str, end: &str| {
        let of_peer = |line: &&str| line.starts_with(&format!("| {name} |"));
        let mut rows = text.lines().filter(of_peer).peekable();
        assert!(rows.peek().is_some(), "{name}: {output:?}");
        rows.all(|row| row.ends_with(end))
    };
    assert!(ends("honest", "| 0 | 0 |"), "{text}");
    assert!(ends("forgetful", "| **1** | 0 |"), "{text}");
    assert!(ends("repeating", "| 0 | **1** |"), "{text}");
    assert!(!output.status.success(), "a lost line is no success");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("forgetful, plain, one file"), "{said}");
}

#[test]
fn the_judge_of_faults_sees_what_is_lost_and_what_comes_twice() {
    let folder = tempfile::tempdir().unwrap();
    // `Refused` hits the third request, and these peers send one: nothing but their own mistakes goes wrong.
    let only = ["--no-cells", "--faults", "refused", "--fault-lines", "50"];
    let output = race(folder.path(), &["honest", "forgetful", "repeating"], &only);
    let text = printed(&output);
    let row = "connection closed before it | 0 / 0 | **1** / 0 | 0 / 1 |";
    assert!(text.contains(row), "{output:?}");
    assert!(!output.status.success());
}

#[test]
fn a_peer_that_does_not_survive_a_kill_repeats_what_came() {
    let folder = tempfile::tempdir().unwrap();
    let only = ["--no-cells", "--faults", "kills", "--fault-lines", "50"];
    let output = race(folder.path(), &["honest"], &only);
    // Its one request came before each of the five kills, and once more at the end.
    assert!(printed(&output).contains("killed five times, plain file | 0 / 250 |"), "{output:?}");
    assert!(output.status.success(), "what comes twice after a kill is no loss: {output:?}");
}

#[test]
fn a_race_writes_its_tables_and_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let (table, page) = (folder.path().join("table.md"), folder.path().join("page.html"));
    let mut more = CATCH_UP.map(str::to_owned).to_vec();
    more.extend(["--table".to_owned(), table.display().to_string()]);
    more.extend(["--html".to_owned(), page.display().to_string()]);
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let output = race(folder.path(), &["honest"], &more);
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(table).unwrap();
    assert_eq!(text.trim_end(), printed(&output).trim_end());
    assert!(text.contains("honest 0.0.1. Not given: Filebeat, Fluent Bit, Vector"), "{text}");
    assert!(
        !text.contains(&folder.path().display().to_string()),
        "no path of this machine: {text}"
    );
    assert!(fs::read_to_string(page).unwrap().contains("<svg "));
}

#[test]
fn what_is_given_twice_or_wrong_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (names, more, expected) in [
        (&["honest", "honest"][..], &[][..], "two programs are called `honest`"),
        (&["honest"], &["--faults", "flood"], "expected `all`, `none`, or some of kills, kills-gz"),
        (&[], &[], "nobody races"),
        (&["honest"], &["--pace", "fast"], "expected `catch-up`"),
    ] {
        let output = race(folder.path(), names, more);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{said}");
    }
}
