//! All tests, in two lanes: those of real servers wait most of the time, and the others run meanwhile.

use crate::{process, repository};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// What the names of tests with real servers begin with.
const REAL: &str = "real_";

/// The names of all tests of the workspace that are programs of their own.
pub(crate) struct Built {
    real: BTreeSet<String>,
    others: BTreeSet<String>,
}

/// Builds all tests of the workspace.
pub(crate) fn build(features: &[&str], arguments: &[String]) -> Result<Built> {
    let mut command = cargo_test(features, &without_workspace(arguments));
    command.args(["--workspace", "--no-run", "--message-format", "json-render-diagnostics"]);
    let (real, others) = split(&process::output(&mut command)?)?;
    Ok(Built { real, others })
}

/// Runs the tests that the `arguments` choose, one program behind the other, also the ignored ones. `prepare` gets
/// the command before it starts.
pub(crate) fn run_chosen(
    features: &[&str],
    arguments: &[String],
    prepare: &dyn Fn(&mut Command),
) -> Result<()> {
    let split = arguments.iter().position(|argument| argument == "--");
    let (for_cargo, for_tests) = arguments.split_at(split.unwrap_or(arguments.len()));
    let mut command = cargo_test(features, for_cargo);
    command.args(["--", "--include-ignored"]).args(for_tests.iter().skip(1));
    prepare(&mut command);
    process::run_and_find(&mut command)
}

/// Runs all tests in two lanes, also the ignored ones. `prepare` gets each command before it starts.
pub(crate) fn run(
    features: &[&str],
    arguments: &[String],
    built: &Built,
    prepare: &dyn Fn(&mut Command),
) -> Result<()> {
    let arguments = without_workspace(arguments);
    let lane = |chosen: &[&str], names: &BTreeSet<String>| {
        let mut command = cargo_test(features, &arguments);
        command.arg("--workspace").args(chosen);
        for name in names {
            command.args(["--test", name]);
        }
        command.args(["--", "--include-ignored"]);
        prepare(&mut command);
        command
    };
    let mut first = lane(&["--lib", "--bins", "--examples"], &built.others);
    let mut second = lane(&[], &built.real);
    let mut documentation = lane(&["--doc"], &BTreeSet::new());
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let servers = process::run_and_keep(&mut second);
            (servers, process::run_and_keep(&mut documentation))
        });
        let outcome = process::run_and_find(&mut first);
        let Ok((servers, documentation)) = beside.join() else { bail!("a thread panicked") };
        let mut failed = Vec::new();
        failed.extend(outcome.err());
        for (text, outcome) in [servers, documentation] {
            process::print(&text);
            failed.extend(outcome.err());
        }
        if failed.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = failed.iter().map(|error| format!("{error:#}")).collect();
        bail!("{}", texts.join("\n"))
    })
}

fn cargo_test(features: &[&str], arguments: &[String]) -> Command {
    let mut command = repository::cargo();
    command.arg("test").args(features).args(arguments);
    command
}

/// Whether arguments choose tests: anything but what holds for all of them.
pub(crate) fn chooses(arguments: &[String]) -> bool {
    let all = ["--workspace", "--no-fail-fast", "--offline", "--locked"];
    arguments.iter().any(|argument| !all.contains(&argument.as_str()))
}

/// What is left for the commands, each of which says `--workspace` itself: cargo takes it once.
fn without_workspace(arguments: &[String]) -> Vec<String> {
    arguments.iter().filter(|argument| *argument != "--workspace").cloned().collect()
}

/// The names of the tests of folders `tests` that `messages` of a build tell of: with real servers, and others.
fn split(messages: &[u8]) -> Result<(BTreeSet<String>, BTreeSet<String>)> {
    let mut names = BTreeSet::new();
    for line in messages.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value =
            serde_json::from_slice(line).context("a message of `cargo test --no-run`")?;
        if message["executable"].is_string() && message["target"]["kind"][0] == "test" {
            names.extend(message["target"]["name"].as_str().map(str::to_owned));
        }
    }
    let (real, others): (BTreeSet<_>, BTreeSet<_>) =
        names.into_iter().partition(|name| name.starts_with(REAL));
    if real.is_empty() || others.is_empty() {
        bail!(
            "the build lists {} tests with real servers and {} others: both kinds are expected",
            real.len(),
            others.len()
        );
    }
    Ok((real, others))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_split_by_what_was_built() {
        let built = |kind: &str, name: &str| {
            let target = serde_json::json!({"kind": [kind], "name": name});
            format!("{}\n", serde_json::json!({"target": target, "executable": "/x"}))
        };
        let messages = [
            built("test", "real_a"),
            built("test", "real_a"),
            built("lib", "real_b"),
            built("test", "c"),
            "{\"target\": {\"kind\": [\"test\"], \"name\": \"d\"}, \"executable\": null}\n"
                .to_owned(),
        ]
        .concat();
        let (real, others) = split(messages.as_bytes()).unwrap();
        assert_eq!(Vec::from_iter(real), ["real_a"]);
        assert_eq!(Vec::from_iter(others), ["c"]);
        split(built("test", "c").as_bytes()).unwrap_err();
        split(b"no JSON\n").unwrap_err();
    }

    #[test]
    fn all_tests_are_meant_unless_some_are_chosen() {
        let chosen = |arguments: &[&str]| {
            chooses(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
        };
        let all = ["--workspace", "--no-fail-fast"].map(str::to_owned);
        assert_eq!(without_workspace(&all), ["--no-fail-fast"]);
        assert!(!chosen(&[]) && !chosen(&["--workspace", "--no-fail-fast"]));
        assert!(chosen(&["-p", "skidder"]) && chosen(&["--", "name"]));
    }
}
