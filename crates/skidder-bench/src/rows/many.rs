//! Thousands of files at once, compressed and plain.

use super::{Goal, row, rows_or_why, ship_once, spread};
use crate::measure;
use crate::stage::{Stage, allow_many_open_files};
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::path::Path;

/// Forty gigabytes of rotated files, which the goal speaks of, are not in the memory of a machine: from disk
/// is the faithful case. Once they are cached, decoding competes with everything else for the same cores.
const GOALS: [Goal; 2] = [
    ("n1", "wall time of 4,150 `.gz` files over the same files plain, from disk", 1.2, 1.0, ""),
    ("n2", "the same, all files in the page cache", 1.2, 1.0, ""),
];
const FILES: u64 = 4_150;
/// About 240 KB of text a file: 1 GB in all.
const LINES: u64 = 1_000;

/// The rows n1 and n2.
pub fn many(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let open_max = allow_many_open_files()?;
    ensure!(open_max > FILES, "`ulimit -n` is {open_max}; raise it above {FILES}");
    let packed = stage.many_gzipped(FILES, LINES)?;
    let plain = stage.many_plain(FILES, LINES)?;
    let mut rows = Vec::new();
    for (goal, cached) in GOALS.iter().zip([false, true]) {
        let (mut packed_wall, mut plain_wall) = (Vec::new(), Vec::new());
        for run in 0..stage.runs {
            packed_wall.push(wall(stage, &packed, true, cached)?);
            plain_wall.push(wall(stage, &plain, false, cached)?);
            measure::note(&format!("{} {}: {packed_wall:?} {plain_wall:?}", goal.0, run + 1));
        }
        let packed = summarize(&packed_wall).context("no run was made")?;
        let plain = summarize(&plain_wall).context("no run was made")?;
        let detail = format!(
            "{LINES} lines a file; {}; {}",
            spread("`.gz` s:", packed),
            spread("plain s:", plain)
        );
        rows.push(row(goal, packed.median / plain.median, detail));
    }
    Ok(rows)
}

/// Seconds to ship all files of a folder.
fn wall(stage: &Stage, folder: &Path, compressed: bool, cached: bool) -> Result<f64> {
    set_cached(folder, cached)?;
    let paths = folder.join("*");
    let paths = paths.to_string_lossy();
    let (cost, _) = ship_once(stage, &stage.skidder, &paths, compressed, FILES * LINES)?;
    Ok(cost.wall.as_secs_f64())
}

/// Reads all files, or has the kernel forget what it holds of them.
fn set_cached(folder: &Path, cached: bool) -> Result<()> {
    use rustix::fs::{Advice, fadvise};
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let mut file =
            File::open(&path).with_context(|| format!("cannot open `{}`", path.display()))?;
        if cached {
            std::io::copy(&mut file, &mut std::io::sink())?;
        } else {
            // Data that is not on disk yet cannot be evicted.
            file.sync_data()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}
