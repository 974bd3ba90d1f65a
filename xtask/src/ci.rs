//! `cargo xtask ci`: everything that is checked before a change lands, with the minutes of each step.

use crate::tidy::{self, Mode};
use crate::{bench, package, process, repository, servers, settings, ship, simulate};
use anyhow::{Result, bail};
use std::process::Command;
use std::time::Duration;

type Step = (&'static str, fn() -> Result<()>);

/// What is released.
const PACKAGES: [&str; 1] = ["skidder"];

/// The cheap ones first. The tests and the release build wait for builds that go on beside the others.
const STEPS: [Step; 12] = [
    ("lock file", lock_file),
    ("format", format),
    ("tidy", || tidy::run(Mode::Check)),
    ("clippy", clippy),
    ("documentation", documentation),
    ("tests", tests),
    ("settings", settings::check),
    ("kerberos", servers::test_kerberos),
    ("release build", release),
    ("package", package::run),
    ("smoke run", ship::run),
    ("world and race", world_and_race),
];

/// Runs all steps, also after one failed, and fails if one did.
pub(crate) fn run() -> Result<()> {
    // Tests wait most of the time, for servers and for each other.
    let _early =
        (servers::install_kube_apiserver_early()?, repository::build_release_early(&PACKAGES)?);
    let mut summary = Vec::new();
    let mut failed = Vec::new();
    for (name, step) in STEPS {
        match process::timed(name, step) {
            Ok(took) => summary.push(line(name, took)),
            Err(error) => {
                process::eprint(&format!("error: {error:#}"));
                summary.push(format!("{name:<16}  FAILED"));
                failed.push((name, error));
            }
        }
        if process::stopping() {
            bail!("stopped");
        }
    }
    process::print(&summary.join("\n"));
    if !failed.is_empty() {
        // Once more: where only the end of all this is kept, the reasons are in it.
        for (_, error) in &failed {
            process::eprint(&format!("error: {error:#}"));
        }
        process::eprint(&free_space());
        let names: Vec<&str> = failed.iter().map(|(name, _)| *name).collect();
        bail!("failed: {}", names.join(", "));
    }
    Ok(())
}

fn line(name: &str, took: Duration) -> String {
    format!("{name:<16}  {}", process::minutes(took))
}

/// A full disk fails in many ways, most of which do not say so.
fn free_space() -> String {
    match process::output(Command::new("df").arg("-h").arg(repository::root())) {
        Ok(table) => String::from_utf8_lossy(&table).into_owned(),
        Err(error) => format!("{error:#}"),
    }
}

fn lock_file() -> Result<()> {
    repository::metadata(true).map(|_| ())
}

fn format() -> Result<()> {
    process::run(repository::cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    let mut command = repository::cargo();
    command.args(["clippy", "--locked", "--workspace", "--all-targets"]);
    command.args(["--features", servers::KUBE_APISERVER_FEATURE, "--", "-D", "warnings"]);
    process::run(&mut command)
}

fn documentation() -> Result<()> {
    let mut command = repository::cargo();
    command
        .args(["doc", "--locked", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    process::run(&mut command)
}

/// All of them. What later steps need is installed meanwhile.
fn tests() -> Result<()> {
    let later = [servers::KERBEROS, package::LINTERS, package::MANIFESTS];
    settings::run_tests(&|arguments, variables| servers::test_all(&later, arguments, variables))
}

/// The simulated world needs processors, the small race waits.
fn world_and_race() -> Result<()> {
    std::thread::scope(|scope| {
        let race = scope.spawn(bench::peers_small);
        let world = simulate::short();
        let Ok(race) = race.join() else { bail!("a thread panicked") };
        world.and(race)
    })
}

fn release() -> Result<()> {
    repository::build_release(&PACKAGES, &[]).map(|_| ())
}
