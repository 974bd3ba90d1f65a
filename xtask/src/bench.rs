//! `cargo xtask bench` and `peers`: build the measured programs, then hand over to `skidder-bench`.

use crate::{process, repository, servers};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// The cargo feature that makes the program print its number of heap allocations.
const COUNTING_FEATURE: &str = "count-allocations";

/// Builds the program twice: counting its allocations, and as it is shipped.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let kept = repository::target()?.join("bench");
    std::fs::create_dir_all(&kept)
        .with_context(|| format!("cannot create `{}`", kept.display()))?;
    let counting = kept.join("skidder-counting");
    let programs = repository::build_release(&["skidder"], &[COUNTING_FEATURE])?;
    std::fs::copy(programs.join("skidder"), &counting)
        .context("cannot keep the program that counts its allocations")?;
    let programs = repository::build_release(&["skidder", "skidder-bench"], &[])?;
    let mut command = Command::new(programs.join("skidder-bench"));
    command.current_dir(repository::root()).arg("run");
    command.arg("--skidder").arg(programs.join("skidder"));
    command.arg("--counting").arg(counting);
    process::run(command.arg("--work").arg(kept).args(arguments))
}

/// What CI races, skidder alone and in about three minutes: most kinds of work and every fault; then a steady trickle.
const SMALL: [&str; 2] = [
    "--runs 1 --scale 0.00002 --files many --processing none,container-json,ten-processors --level 1 \
     --pace catch-up --fault-lines 20000",
    "--runs 1 --form plain --files many --processing none --level 1 --pace 1000 --steady 1 --faults none",
];

/// Builds the program and races it: alone, or against the programs in `arguments`.
pub(crate) fn peers(arguments: &[String]) -> Result<()> {
    let programs = repository::build_release(&["skidder", "skidder-bench"], &[])?;
    let mut race = race(&programs.join("skidder-bench"), &programs.join("skidder"))?;
    process::run(race.args(arguments))
}

/// The races that CI runs, beside other work: they wait most of the time. They fail if skidder loses a line. What drives
/// them is the one that the tests have built.
pub(crate) fn peers_small() -> Result<()> {
    let mut build = repository::cargo();
    build.args(["test", "--no-run", "--locked", "--workspace", "--test", "peers"]);
    build.args(["--features", servers::KUBE_APISERVER_FEATURE]);
    process::run(&mut build)?;
    let driver = repository::target()?.join("debug/skidder-bench");
    let skidder = repository::build_release(&["skidder"], &[])?.join("skidder");
    for arguments in SMALL {
        let mut race = race(&driver, &skidder)?;
        let (table, outcome) = process::run_and_keep(race.args(arguments.split_whitespace()));
        process::print(&table);
        outcome?;
    }
    Ok(())
}

fn race(driver: &Path, skidder: &Path) -> Result<Command> {
    let mut command = Command::new(driver);
    command.current_dir(repository::root()).arg("peers").arg("--skidder").arg(skidder);
    command.arg("--work").arg(repository::target()?.join("bench"));
    Ok(command)
}
