//! `cargo xtask settings`: whether a test sets each declared setting.
//!
//! In a debug build, each process that reads a setting with a value writes its name into a folder (`seen.rs` of
//! `skidder-config`). A test of the program writes all that are declared there.

use crate::{process, repository};
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Names the folder to the tests.
const VARIABLE: &str = "SKIDDER_SETTINGS_SEEN";
/// The file in it with all declared settings.
const DECLARED: &str = "declared";

/// Settings that an error names.
const SHOWN_MAX: usize = 20;

/// Runs tests.
type RunTests<'a> = dyn Fn(&[String], &[(&str, &Path)]) -> Result<()> + 'a;

/// Lets all tests run with the folder, also after one failed: one run names all that has to be mended.
pub(crate) fn run_tests(run: &RunTests<'_>) -> Result<()> {
    let seen = prepare()?;
    let arguments = ["--workspace", "--no-fail-fast"].map(str::to_owned);
    run(&arguments, &[(VARIABLE, seen.as_path())])
}

/// Recreates the folder.
fn prepare() -> Result<PathBuf> {
    let folder = repository::root().join("target/settings-seen");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Reports the settings that no test has set since [`prepare`].
pub(crate) fn check() -> Result<()> {
    let unused = unused(&repository::root().join("target/settings-seen"))?;
    for setting in &unused {
        process::eprint(&format!("no test sets `{setting}`"));
    }
    if !unused.is_empty() {
        // Where only the end of the output is kept, the names are in it.
        let shown = &unused[..unused.len().min(SHOWN_MAX)];
        bail!("settings: {} are declared, and set by no test: {}", unused.len(), shown.join(", "));
    }
    Ok(())
}

/// Unused declarations, each as its group and its name.
fn unused(folder: &Path) -> Result<Vec<String>> {
    let declared = fs::read_to_string(folder.join(DECLARED))
        .context("no test of the program has listed what is declared: run all tests before")?;
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            seen.extend(fs::read_to_string(path)?.lines().map(str::to_owned));
        }
    }
    let unused = declared.lines().filter(|setting| !seen.contains(*setting));
    Ok(unused.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_process_has_seen_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        unused(folder.path()).unwrap_err();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write(DECLARED, "a x\na y\nb x\n");
        write("1.txt", "a x\n");
        write("2.txt", "b x\na x\n");
        assert_eq!(unused(folder.path()).unwrap(), ["a y"]);
        write("3.txt", "a y\n");
        assert!(unused(folder.path()).unwrap().is_empty());
    }
}
