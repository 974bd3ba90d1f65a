//! `cargo xtask run`: ships a small set of rotated logs into files and checks every line.
//!
//! The live file grows while the first pass reads it; the second pass continues where the first one
//! stopped. Nothing may be lost or repeated between them.

use crate::rotated::{self, Rotated};
use crate::verify::{Progress, Tally};
use crate::{process, repository};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Folders of the run, all below `./run`.
struct Folders {
    logs: PathBuf,
    out: PathBuf,
    data: PathBuf,
    root: PathBuf,
}

/// Builds, ships, verifies.
pub(crate) fn run() -> Result<()> {
    let programs = repository::build_release(&["skidder"], &[])?;
    let folders = prepare(&repository::root().join("run"))?;
    let rotated = rotated::make(&folders.logs, &folders.root)?;
    let config = folders.root.join("filebeat.yml");
    fs::write(&config, configuration(&folders))?;
    process::print(&format!("shipping {} with {}", folders.logs.display(), config.display()));

    ship_both_passes(&programs.join("skidder"), &config, &folders, &rotated)?;

    let mut tally = Tally::new(rotated.lines);
    tally.add_folder(&folders.out)?;
    let verdict = tally.verdict().context("the output is not what was written to the logs")?;
    process::print(&format!("{verdict}\nthe events are in {}", folders.out.display()));
    Ok(())
}

fn prepare(root: &Path) -> Result<Folders> {
    if let Err(error) = fs::remove_dir_all(root)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error).with_context(|| format!("cannot empty `{}`", root.display()));
    }
    let folder = |name| -> Result<PathBuf> {
        let path = root.join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot create `{}`", path.display()))?;
        Ok(path)
    };
    Ok(Folders {
        logs: folder("logs")?,
        out: folder("out")?,
        data: folder("data")?,
        root: root.to_owned(),
    })
}

/// A configuration that needs no server. Paths are JSON strings, which YAML reads as they are.
fn configuration(folders: &Folders) -> String {
    let quoted = |path: PathBuf| serde_json::Value::from(path.to_string_lossy()).to_string();
    format!(
        "\
filebeat.inputs:
  - type: filestream
    id: rotated-logs
    paths:
      - {logs}
    # Rotated files that were compressed are read like the others.
    compression: auto

output.file:
  path: {out}
  filename: events
  # One large file: the default keeps only the newest 70 MB.
  rotate_every_kb: 1000000
  number_of_files: 100
",
        logs = quoted(folders.logs.join("*.log*")),
        out = quoted(folders.out.clone()),
    )
}

fn ship_both_passes(
    skidder: &Path,
    config: &Path,
    folders: &Folders,
    rotated: &Rotated,
) -> Result<()> {
    let stop = AtomicBool::new(false);
    let mut progress = Progress::default();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| rotated.grow(&stop));
        let first = pass(skidder, config, folders, rotated, &mut progress);
        if first.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        let written = writer.join();
        first.context("the pass while the live file grew")?;
        written.unwrap_or_else(|_| bail!("the writer of the live file panicked"))
    })?;
    process::print("the live file is complete; once more, from where the first pass stopped");
    pass(skidder, config, folders, rotated, &mut progress).context("the second pass")
}

/// Runs the program to the end of all files, with a line of progress on a terminal.
fn pass(
    skidder: &Path,
    config: &Path,
    folders: &Folders,
    rotated: &Rotated,
    progress: &mut Progress,
) -> Result<()> {
    let (printed, log) = (folders.root.join("skidder.out"), folders.root.join("skidder.log"));
    let mut command = Command::new(skidder);
    command.arg("-e").arg("-c").arg(config).arg("--once");
    command.arg("--path.data").arg(&folders.data).stdin(Stdio::null());
    command.stdout(File::create(&printed)?).stderr(File::create(&log)?);
    let child = command.spawn().with_context(|| format!("cannot start `{}`", skidder.display()))?;

    let shows = std::io::stdout().is_terminal();
    let mut trouble = None;
    let status = process::wait(child, &mut || {
        let looked = progress.look(&folders.out);
        trouble = looked.and_then(|()| show(progress, rotated.lines, shows)).err();
    })?;
    progress.look(&folders.out)?;
    show(progress, rotated.lines, shows)?;
    if shows {
        process::print("");
    }
    if let Some(error) = trouble {
        return Err(error.context("cannot show the progress"));
    }
    say_plain_lines(&printed)?;
    say_plain_lines(&log)?;
    if process::stopping() {
        bail!("stopped");
    }
    if !status.success() {
        bail!("skidder failed: {status}; its log is {}", log.display());
    }
    Ok(())
}

fn show(progress: &Progress, lines: u64, shows: bool) -> Result<()> {
    if shows {
        let mut out = std::io::stdout();
        write!(
            out,
            "\r{} of {lines} lines, {} MB written ",
            progress.lines,
            progress.bytes / 1_000_000
        )?;
        out.flush()?;
    }
    Ok(())
}

/// Repeats the lines for people (the ledger); log lines, which are JSON, stay in the file.
fn say_plain_lines(path: &Path) -> Result<()> {
    let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    for line in text.lines().filter(|line| !line.starts_with('{')) {
        process::print(line);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_folder_is_empty_whatever_was_there() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("run");
        fs::create_dir_all(root.join("out")).unwrap();
        fs::write(root.join("out/events.ndjson"), "old").unwrap();
        let folders = prepare(&root).unwrap();
        assert_eq!(fs::read_dir(&folders.out).unwrap().count(), 0);
    }

    /// Stands in for the program: ships nothing at first, then all; its ledger goes to standard error.
    const PROGRAM: &str = "#!/bin/sh\n\
        for last; do :; done\n\
        [ -e $last/second ] && cat $last/../logs/* >$last/../out/events.ndjson\n\
        touch $last/second; echo ledger >&2\n";

    #[test]
    fn the_second_pass_ships_what_the_first_one_left() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let folders = prepare(&parent.path().join("run")).unwrap();
        let program = parent.path().join("program");
        fs::write(&program, PROGRAM).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let (live, staged) = (folders.logs.join("app.log"), folders.root.join("app.log"));
        File::create(&live).unwrap();
        let mut lines = String::new();
        for number in 0..5_000 {
            lines.push_str(&format!("seq={number:010}\n"));
        }
        fs::write(&staged, lines).unwrap();
        let rotated = Rotated::live_only(5_000, live, staged);

        ship_both_passes(&program, Path::new("none"), &folders, &rotated).unwrap();
        let mut tally = Tally::new(5_000);
        tally.add_folder(&folders.out).unwrap();
        tally.verdict().unwrap();
    }

    #[test]
    fn paths_with_quotes_stay_one_string_in_the_configuration() {
        let root = PathBuf::from("/a \"b\"");
        let folders =
            Folders { logs: root.join("l"), out: root.join("o"), data: root.join("d"), root };
        assert!(configuration(&folders).contains(r#"- "/a \"b\"/l/*.log*""#));
    }
}
