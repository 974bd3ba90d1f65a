//! Thousands of files at once, compressed and plain.

use super::{Goal, row, rows_or_why, ship_once, spread};
use crate::measure;
use crate::stage::{Stage, allow_many_open_files};
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};

const GOALS: [Goal; 1] =
    [("n", "wall time of 4,150 `.gz` files over the same files plain", 1.2, 1.0, "")];
const FILES: u64 = 4_150;
/// About 240 KB of text a file: 1 GB in all.
const LINES: u64 = 1_000;

/// The row n.
pub fn many(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let open_max = allow_many_open_files()?;
    ensure!(open_max > FILES, "`ulimit -n` is {open_max}; raise it above {FILES}");
    let packed = stage.many_gzipped(FILES, LINES)?.join("*.gz");
    let plain = stage.many_plain(FILES, LINES)?.join("*.log");
    let (mut packed_wall, mut plain_wall) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        for (paths, compressed, walls) in
            [(&packed, true, &mut packed_wall), (&plain, false, &mut plain_wall)]
        {
            let paths = paths.to_string_lossy();
            let (cost, _) = ship_once(stage, &stage.skidder, &paths, compressed, FILES * LINES)?;
            walls.push(cost.wall.as_secs_f64());
        }
        measure::note(&format!("many {}: {packed_wall:?} {plain_wall:?}", run + 1));
    }
    let packed = summarize(&packed_wall).context("no run was made")?;
    let plain = summarize(&plain_wall).context("no run was made")?;
    let detail = format!(
        "{LINES} lines a file; {}; {}",
        spread("`.gz` s:", packed),
        spread("plain s:", plain)
    );
    Ok(vec![row(&GOALS[0], packed.median / plain.median, detail)])
}
