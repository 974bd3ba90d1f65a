//! Where things are: the root, the target folder, cargo itself.

use crate::process;
use anyhow::{Context, Result};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// `cargo`, in the root; the same one that runs this program.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// `cargo metadata` of our own packages. With `locked` a stale Cargo.lock is an error.
pub(crate) fn metadata(locked: bool) -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--no-deps"]);
    if locked {
        command.arg("--locked");
    }
    serde_json::from_slice(&process::output(&mut command)?)
        .context("`cargo metadata` answered something else than JSON")
}

/// Where built programs are, with the profile's folder behind it.
pub(crate) fn target() -> Result<PathBuf> {
    let metadata = metadata(false)?;
    let path = metadata["target_directory"].as_str();
    path.map(PathBuf::from).context("`cargo metadata` names no target directory")
}

/// Builds programs for measuring or running, and returns the folder that holds them.
pub(crate) fn build_release(packages: &[&str], features: &[&str]) -> Result<PathBuf> {
    process::run(&mut release_command(packages, features))?;
    Ok(target()?.join("release"))
}

/// The same beside other work; who needs the programs builds them once more, which waits for this.
pub(crate) fn build_release_early(packages: &[&str]) -> Result<process::Beside> {
    process::Beside::start(&release_command(packages, &[]))
}

fn release_command(packages: &[&str], features: &[&str]) -> Command {
    let mut command = cargo();
    command.args(["build", "--release"]);
    for package in packages {
        command.args(["--package", package]);
    }
    for feature in features {
        command.args(["--features", feature]);
    }
    command
}

/// Files that git knows, relative to the root, that end in one of `endings` (all, if there is none).
pub(crate) fn tracked(endings: &[&str]) -> Result<Vec<PathBuf>> {
    let mut command = Command::new("git");
    command.current_dir(root()).args(["ls-files", "-z", "--cached"]);
    let listed = process::output(&mut command)?;
    let names = listed.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    let mut paths = Vec::new();
    for name in names {
        let name = std::str::from_utf8(name).context("a file's name is not UTF-8")?;
        let wanted = endings.is_empty() || endings.iter().any(|ending| name.ends_with(ending));
        if wanted && root().join(name).is_file() {
            paths.push(PathBuf::from(name));
        }
    }
    Ok(paths)
}
