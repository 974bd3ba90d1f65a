//! CPU against `gzip -dc`, `.gz` against plain by the clock, and the memory of one file.

use super::{Goal, row, rows_or_why, ship_once, spread};
use crate::measure::{self, Cost};
use crate::stage::Stage;
use crate::statistics::{Summary, summarize};
use crate::table::Row;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::{Command, Stdio};

const GOALS: [Goal; 4] = [
    ("a", "CPU of a `.gz` file, over `gzip -dc`", 0.8, 0.5, ""),
    ("b", "CPU of the plain file, over `gzip -dc` of the `.gz`", 0.4, 0.22, ""),
    ("c", "wall time of the `.gz` over the plain file", 1.3, 1.05, ""),
    ("e1", "peak memory with one file", 40.0, 20.0, "MB"),
];

/// The rows a, b, c and e1.
pub fn cpu(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, measure(stage))
}

/// The three of one round, in turn, so that a machine that slows down slows all of them.
#[derive(Clone, Copy, Debug)]
struct Round {
    gzip: Cost,
    packed: Cost,
    plain: Cost,
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let plain = stage.plain(stage.lines)?;
    let packed = stage.gzipped(stage.lines)?;
    let mut rounds = Vec::new();
    for run in 0..stage.runs {
        let round = Round {
            gzip: gunzip(&packed, &stage.work)?,
            packed: ship(stage, &packed, true)?,
            plain: ship(stage, &plain, false)?,
        };
        measure::note(&format!("run {}: {round:?}", run + 1));
        rounds.push(round);
    }
    rows(&rounds, stage.lines)
}

/// What `gzip -dc` costs.
pub(super) fn gunzip(packed: &Path, work: &Path) -> Result<Cost> {
    decompress("gzip", packed, work)
}

/// What a codec's own tool costs.
pub(super) fn decompress(tool: &str, packed: &Path, work: &Path) -> Result<Cost> {
    let mut command = Command::new(tool);
    command.arg("-dc").arg(packed).stdout(Stdio::null());
    measure::run(&mut command, &work.join(format!("{tool}.stderr")))
}

fn ship(stage: &Stage, file: &Path, compressed: bool) -> Result<Cost> {
    let paths = file.to_string_lossy();
    Ok(ship_once(stage, &stage.skidder, &paths, compressed, stage.lines)?.0)
}

fn rows(rounds: &[Round], lines: u64) -> Result<Vec<Row>> {
    let over = |value: fn(&Round) -> f64| -> Result<Summary> {
        let values: Vec<f64> = rounds.iter().map(value).collect();
        summarize(&values).context("no run was made")
    };
    let gzip = over(|round| round.gzip.cpu.as_secs_f64())?;
    let packed = over(|round| round.packed.cpu.as_secs_f64())?;
    let plain = over(|round| round.plain.cpu.as_secs_f64())?;
    let packed_wall = over(|round| round.packed.wall.as_secs_f64())?;
    let plain_wall = over(|round| round.plain.wall.as_secs_f64())?;
    let memory = over(|round| {
        round.packed.memory_peak_bytes.max(round.plain.memory_peak_bytes) as f64 / 1e6
    })?;
    let each = plain.median / lines as f64 * 1e6;
    let base = spread("`gzip -dc` s:", gzip);
    Ok(vec![
        row(&GOALS[0], packed.median / gzip.median, format!("{}; {base}", spread("s:", packed))),
        row(
            &GOALS[1],
            plain.median / gzip.median,
            format!("{}, {each:.2} µs a line; {base}", spread("s:", plain)),
        ),
        row(
            &GOALS[2],
            packed_wall.median / plain_wall.median,
            format!("{}; {}", spread("`.gz` s:", packed_wall), spread("plain s:", plain_wall)),
        ),
        row(
            &GOALS[3],
            memory.median,
            format!("the larger of `.gz` and plain, {}", spread("MB:", memory)),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn cost(cpu: f64, wall: f64, megabytes: u64) -> Cost {
        Cost {
            cpu: Duration::from_secs_f64(cpu),
            user: Duration::from_secs_f64(cpu),
            wall: Duration::from_secs_f64(wall),
            memory_peak_bytes: megabytes * 1_000_000,
        }
    }

    #[test]
    fn rows_are_ratios_of_medians() {
        let round = |factor: f64| Round {
            gzip: cost(2.0 * factor, 2.0, 2),
            packed: cost(1.0 * factor, 1.2, 20),
            plain: cost(0.5 * factor, 1.0, 18),
        };
        let rows = rows(&[round(1.0), round(5.0), round(1.0)], 1_000_000).unwrap();
        let measured: Vec<f64> = rows.iter().map(|row| *row.measured.as_ref().unwrap()).collect();
        assert_eq!(measured, [0.5, 0.25, 1.2, 20.0]);
        assert!(rows[1].detail.contains("0.50 µs a line"), "{}", rows[1].detail);
    }
}
