//! `cargo xtask tidy`: the rules of this repository that no other tool checks.

mod arrows;
mod bounds;
mod changelog;
mod links;
mod output_faults;
mod prose;
mod ratchet;
mod rooms;
mod source;
mod tables;

use crate::{process, repository};
use anyhow::{Context, Result, bail};
use ratchet::{Limits, Size};
use std::fs;

/// A file's lines without its tests.
const FILE_LINES_MAX: usize = 500;
/// A function's lines, from `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;
/// Placeholders that must not be committed. Split, so that this file does not offend.
const PLACEHOLDERS: [&str; 3] = [concat!("to", "do!"), concat!("unimpl", "emented!"), "dbg!"];
/// Folders of one machine. Split for the same reason.
const MACHINE_PATHS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/t", "mp/")];

/// Whether to write computed results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Only report.
    Check,
    /// Write tables and values of the documentation, and lower the limits of what shrank; never raises one.
    Update,
}

/// Checks every rule and reports all offences at once.
pub(crate) fn run(mode: Mode) -> Result<()> {
    let mut offences = Vec::new();
    arrows::check(&repository::metadata(false)?, &mut offences);
    rooms::check(&mut offences)?;
    changelog::check(repository::root(), &mut offences)?;
    bounds::check(mode == Mode::Update, &mut offences)?;
    output_faults::check(mode == Mode::Update, &mut offences)?;
    check_text(&mut offences)?;
    prose::check(mode == Mode::Update, &mut offences)?;
    links::check(&mut offences)?;
    let sizes = check_sources(&mut offences)?;
    let mut limits = Limits::load(&repository::root().join(ratchet::FILE))?;
    limits.check(&sizes, &mut offences);
    if mode == Mode::Update {
        limits.lower(&sizes);
        limits.save(&repository::root().join(ratchet::FILE))?;
    }
    for offence in &offences {
        process::eprint(offence);
    }
    if !offences.is_empty() {
        bail!("tidy: {} offences", offences.len());
    }
    Ok(())
}

/// Rules of all text files.
fn check_text(offences: &mut Vec<String>) -> Result<()> {
    for path in repository::tracked(&[])? {
        let bytes = fs::read(repository::root().join(&path))
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        for (index, line) in text.lines().enumerate() {
            if let Some(found) = MACHINE_PATHS.iter().find(|found| names_folder(line, found)) {
                offences.push(format!("{}:{}: mentions `{found}`", path.display(), index + 1));
            }
        }
    }
    Ok(())
}

/// Whether `line` has an absolute path that begins with `folder`.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|character| {
            character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '}' | '*')
        })
    })
}

/// Rules of Rust files. Returns sizes over a limit.
fn check_sources(offences: &mut Vec<String>) -> Result<Vec<Size>> {
    let mut sizes = Vec::new();
    for path in repository::tracked(&[".rs"])? {
        let text = fs::read_to_string(repository::root().join(&path))
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        let shown = path.to_string_lossy().into_owned();
        if !text.starts_with("//!") {
            offences.push(format!("{shown}:1: does not begin with `//!` and its subject"));
        }
        let code = source::blank_comments_and_strings(&text);
        for (index, line) in code.lines().enumerate() {
            if let Some(found) = PLACEHOLDERS.iter().find(|found| line.contains(**found)) {
                offences.push(format!("{shown}:{}: `{found}` is left", index + 1));
            }
        }
        if source::is_test_file(&shown) {
            continue;
        }
        let own = source::without_tests(&code);
        let lines = own.lines().count();
        if lines > FILE_LINES_MAX {
            sizes.push(Size { what: shown.clone(), limit: FILE_LINES_MAX, lines });
        }
        for function in source::functions(own) {
            if function.lines > FUNCTION_LINES_MAX {
                let what = format!("{shown}::{}", function.name);
                sizes.push(Size { what, limit: FUNCTION_LINES_MAX, lines: function.lines });
            }
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_the_machine_is_found_and_a_name_that_contains_it_is_not() {
        let folder = MACHINE_PATHS[0];
        for line in [format!("cd {folder}x"), format!("\"{folder}\""), folder.to_owned()] {
            assert!(names_folder(&line, folder), "{line}");
        }
        for line in [format!("frame{folder}x"), format!("${{HOME}}{folder}x")] {
            assert!(!names_folder(&line, folder), "{line}");
        }
    }
}
