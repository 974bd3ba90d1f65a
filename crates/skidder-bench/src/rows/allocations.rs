//! Heap allocations per line in the steady state.

use super::{Goal, row, rows_or_why, ship_once};
use crate::stage::{Home, Stage};
use crate::table::Row;
use anyhow::{Context, Result, ensure};

const GOALS: [Goal; 1] =
    [("d", "heap allocations per line, plain file to Elasticsearch", 0.1, 0.02, "")];
/// What the program prints at its end when it was built with the feature `count-allocations`.
const MARK: &str = "allocations: ";

/// The row d: two sizes of file, so that start and end cancel out.
pub fn allocations(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    ensure!(
        stage.counting.is_file(),
        "`{}` is not there; build it with `--features count-allocations`",
        stage.counting.display()
    );
    let (fewer, more) = (stage.lines / 2, stage.lines);
    let (less, most) = (count(stage, fewer)?, count(stage, more)?);
    let per_line = most.saturating_sub(less) as f64 / (more - fewer) as f64;
    let detail = format!("{less} for {fewer} lines, {most} for {more}");
    Ok(vec![row(&GOALS[0], per_line, detail)])
}

fn count(stage: &Stage, lines: u64) -> Result<u64> {
    let plain = stage.plain(lines)?;
    let paths = plain.to_string_lossy();
    let (_, home) = ship_once(stage, &stage.counting, &paths, false, lines)?;
    total_in_log(&home)
}

/// What the program that ran with this home counted.
pub(super) fn total_in_log(home: &Home) -> Result<u64> {
    let said = std::fs::read(home.log())?;
    total_in(&String::from_utf8_lossy(&said))
        .with_context(|| format!("the program did not print `{MARK}`"))
}

fn total_in(stderr: &str) -> Option<u64> {
    let line = stderr.lines().rev().find_map(|line| line.strip_prefix(MARK))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_total_is_taken() {
        assert_eq!(total_in("{\"message\":\"x\"}\nallocations: 12\nallocations: 34\n"), Some(34));
        assert_eq!(total_in("allocations: many\n"), None);
    }
}
