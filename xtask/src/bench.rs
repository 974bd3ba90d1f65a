//! `cargo xtask bench` and `peers`: build the measured programs, then hand over to `skidder-bench`.

use crate::{process, repository};
use anyhow::{Context, Result};
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
    let kept = repository::target()?.join("bench");
    let programs = repository::build_release(&["skidder", "skidder-bench"], &[])?;
    let mut command = Command::new(programs.join("skidder-bench"));
    command.current_dir(repository::root()).arg("peers");
    command.arg("--skidder").arg(programs.join("skidder"));
    process::run(command.arg("--work").arg(kept).args(arguments))
}

/// The races that CI runs; they fail if skidder loses a line.
pub(crate) fn peers_small() -> Result<()> {
    for arguments in SMALL {
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        peers(&arguments)?;
    }
    Ok(())
}
