//! `cargo xtask simulate`: builds the simulated world and hands over to it; the part of it that is in CI.

use crate::{process, repository};
use anyhow::Result;

/// Seeds of the run that is part of CI.
const CI_SEEDS: &str = "2400";

/// Seeds of each of these.
const CI_SEEDS_OF_THEME: &str = "200";

/// Themes that few seeds have by themselves, or none.
const THEMES: [&str; 9] =
    ["containers", "pins", "outputs", "disk", "delete", "names", "ids", "reload", "hang"];

/// Seeds in which each deliberate bug must be found.
const CI_SEEDS_FOR_BUGS: &str = "1000";

/// The cargo feature that compiles the deliberate bugs in.
const BUGS_FEATURE: &str = "sabotage";

/// Builds what the arguments need and hands them over.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let with_bug = arguments.iter().any(|argument| argument == "--with-bug");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    simulate(with_bug, &arguments)
}

/// The short run: many seeds, the ones that have found something, and each deliberate bug must be found.
pub(crate) fn short() -> Result<()> {
    simulate(false, &["--seeds", CI_SEEDS])?;
    for theme in THEMES {
        simulate(false, &["--theme", theme, "--seeds", CI_SEEDS_OF_THEME])?;
    }
    simulate(false, &["--found", "--twice"])?;
    simulate(true, &["--with-bug", "all", "--seeds", CI_SEEDS_FOR_BUGS])
}

fn simulate(with_bug: bool, arguments: &[&str]) -> Result<()> {
    let mut command = repository::cargo();
    command.args(["run", "--quiet", "--release", "--package", "skidder-simulate"]);
    if with_bug {
        command.args(["--features", BUGS_FEATURE]);
    }
    process::run(command.arg("--").args(arguments))
}
