//! `cargo xtask bench`: builds what is measured, then hands over to `skidder-bench run`.

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
