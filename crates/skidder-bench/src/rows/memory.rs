//! Memory for each file when a thousand `.gz` files are read at once.

use super::{Goal, row, rows_or_why, ship_once};
use crate::stage::{Stage, allow_many_open_files};
use crate::table::Row;
use anyhow::{Result, ensure};

const GOALS: [Goal; 1] =
    [("e2", "peak memory for each further of 1,000 `.gz` files at once", 64.0, 48.0, "KB")];
const FILES: u64 = 1_000;
/// About 2 MB of text a file: several turns of a reader, so that all files are open at once.
const LINES: u64 = 8_000;

/// The row e2: the peak with all files less the peak with one of them.
pub fn memory(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let open_max = allow_many_open_files()?;
    ensure!(open_max > FILES, "`ulimit -n` is {open_max}; raise it above {FILES}");
    let folder = stage.many_gzipped(FILES, LINES)?;
    let peak = |pattern: &str, lines: u64| -> Result<f64> {
        let paths = folder.join(pattern);
        let (cost, _) = ship_once(stage, &stage.skidder, &paths.to_string_lossy(), true, lines)?;
        Ok(cost.memory_peak_bytes as f64)
    };
    let one = peak("app-00000.log.gz", LINES)?;
    let all = peak("*.gz", FILES * LINES)?;
    let each = (all - one).max(0.0) / (FILES - 1) as f64 / 1_024.0;
    let detail = format!("{:.1} MB with one, {:.1} MB with {FILES}", one / 1e6, all / 1e6);
    Ok(vec![row(&GOALS[0], each, detail)])
}
