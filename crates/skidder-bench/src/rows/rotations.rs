//! A burst of rotations with compression: lost lines, and repeated ones.

use super::{Goal, row, rows_or_why};
use crate::measure;
use crate::sink::{Behaviour, Count, Sink};
use crate::stage::{Settings, Stage};
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use skidder_os::{Clock, SystemClock};
use skidder_workload::Workload;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const GOALS: [Goal; 2] = [
    ("r1", "lines lost in a burst of 1,000 rotations a minute with compression", 0.0, 0.0, ""),
    ("r2", "lines that come twice in it", 0.0, 0.0, ""),
];
/// A rotation begins so long after the one before.
const PACE: Duration = Duration::from_millis(60);
/// Lines between two rotations, about 48 KB, in pieces.
const PIECES: u64 = 4;
const LINES_PER_PIECE: u64 = 50;
const SEED: u64 = 3;
/// How long the sink may see nothing new before the rest counts as lost: several scans.
const PATIENCE: Duration = Duration::from_secs(45);

/// The rows r1 and r2: a service writes a log that is renamed and compressed as logrotate does it, while the
/// program reads.
pub fn rotations(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let folder = tempfile::Builder::new().prefix("rotations-").tempdir_in(&stage.work)?;
    let sink = Sink::start(Behaviour { check: true, ..Behaviour::default() })?;
    let paths = folder.path().join("app.log*");
    let settings = Settings { compressed: true, ..Settings::default() };
    let home = stage.home(&paths.to_string_lossy(), &sink, settings)?;
    let mut command = home.command(&stage.skidder);
    let mut child =
        command.stderr(File::create(home.log())?).spawn().context("cannot start the program")?;
    let clock = SystemClock::new();
    let burst = burst(folder.path(), stage.rotations, &clock);
    let wrote = clock.monotonic().0;
    let count = burst.map(|lines| (lines, wait(&sink, lines, &clock)));
    measure::kill(&mut child)?;
    let (lines, (count, last)) = count?;
    ensure!(count.unnumbered == 0, "{} lines came altered", count.unnumbered);
    let detail = format!(
        "{} rotations in {:.0} s, {lines} lines, the last one came after {:.0} s",
        stage.rotations,
        wrote.as_secs_f64(),
        last.as_secs_f64()
    );
    Ok(vec![
        row(&GOALS[0], count.missing(lines) as f64, detail.clone()),
        row(&GOALS[1], count.repeated as f64, detail),
    ])
}

/// Writes, renames, compresses; returns how many lines were written.
fn burst(folder: &Path, rotations: u32, clock: &SystemClock) -> Result<u64> {
    let log = folder.join("app.log");
    let mut workload = Workload::new(SEED, 0);
    let mut text = Vec::new();
    let mut lines = 0;
    let began = clock.monotonic();
    for rotation in 0..=rotations {
        let mut file = OpenOptions::new().create(true).append(true).open(&log)?;
        for piece in 1..=PIECES {
            text.clear();
            for _ in 0..LINES_PER_PIECE {
                workload.line(&mut text);
            }
            file.write_all(&text).context("cannot write a log")?;
            lines += LINES_PER_PIECE;
            let due = began + PACE * rotation + PACE * piece as u32 / PIECES as u32;
            let early = due.since(clock.monotonic());
            if !early.is_zero() {
                measure::pause(early);
            }
        }
        drop(file);
        if rotation < rotations {
            let rotated = folder.join(format!("app.log-{rotation:06}"));
            fs::rename(&log, &rotated)?;
            File::create_new(&log)?;
            let gzip = Command::new("gzip").arg(&rotated).stdin(Stdio::null()).status();
            ensure!(gzip.context("cannot start `gzip`")?.success(), "`gzip` failed");
        }
    }
    Ok(lines)
}

/// Waits until every line has come, and for what comes again after it; returns when the last one came.
fn wait(sink: &Sink, lines: u64, clock: &SystemClock) -> (Count, Duration) {
    let mut last = clock.monotonic().0;
    loop {
        let before = sink.count();
        let limit = if before.missing(lines) == 0 { PATIENCE / 2 } else { PATIENCE };
        let count = sink.wait_for(before.documents + 1, limit);
        if count.documents == before.documents {
            return (count, last);
        }
        last = clock.monotonic().0;
    }
}
