//! Resuming inside a large `.gz` after a kill.

use super::{Goal, row, rows_or_why};
use crate::measure;
use crate::sink::{Behaviour, Sink};
use crate::stage::{Settings, Stage};
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use std::process::Stdio;
use std::time::Duration;

const GOALS: [Goal; 1] = [(
    "f",
    "decompressed before the first new line, when resuming at 90 % of 2 GB",
    8.0,
    2.0,
    "MB",
)];
/// About 2 GB of text.
const LINES: u64 = 8_200_000;
/// The sink answers no more after this many documents.
const STALL_AFTER: u64 = LINES / 10 * 9;
/// How long the sink may see nothing new before the experiment is given up.
const PATIENCE: Duration = Duration::from_mins(1);
/// Time for the registry to be written, which happens once a second by default.
const FLUSH: Duration = Duration::from_secs(3);
/// The message the program logs at debug level, and its field.
const MESSAGE: &str = "reader resumed";
const FIELD: &str = "\"skipped_bytes\":";

/// The row f: stop the sink at 90 %, kill the program, start it again, read what it skipped.
pub fn resume(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let file = stage.large_gzipped(LINES)?;
    let behaviour =
        Behaviour { check: true, stall_after: Some(STALL_AFTER), ..Behaviour::default() };
    let sink = Sink::start(behaviour)?;
    let settings = Settings { compressed: true, debug: true, ..Settings::default() };
    let home = stage.home(&file.to_string_lossy(), &sink, settings)?;

    let mut command = home.command(&stage.skidder);
    let mut child = command.stderr(Stdio::null()).spawn().context("cannot start the program")?;
    let came = sink.wait_for(STALL_AFTER, PATIENCE).documents;
    measure::pause(FLUSH);
    measure::kill(&mut child)?;
    ensure!(came >= STALL_AFTER, "only {came} lines came before the kill");

    sink.release();
    measure::run(home.command(&stage.skidder).arg("--once"), &home.log())?;
    let count = sink.count();
    ensure!(count.missing(LINES) == 0, "{} lines are missing after it", count.missing(LINES));
    let said = std::fs::read(home.log())?;
    let skipped = skipped_in(&String::from_utf8_lossy(&said))
        .with_context(|| format!("the program did not log `{MESSAGE}` with {FIELD}"))?;
    let detail = format!("no line missing, {} sent again", count.repeated);
    Ok(vec![row(&GOALS[0], skipped as f64 / 1e6, detail)])
}

/// The largest figure of all resumed readers.
fn skipped_in(log: &str) -> Option<u64> {
    let lines = log.lines().filter(|line| line.contains(MESSAGE));
    let figures = lines.filter_map(|line| {
        let text = line.split_once(FIELD)?.1.trim_start();
        let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse().ok()
    });
    figures.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_is_found_whatever_stands_around_it() {
        let log = "{\"message\":\"other\",\"skipped_bytes\":9}\n\
                   {\"message\":\"reader resumed\",\"path\":\"a\",\"skipped_bytes\":1500,\"offset\":7}\n\
                   {\"skipped_bytes\": 20, \"message\":\"reader resumed\"}\n";
        assert_eq!(skipped_in(log), Some(1_500));
        assert_eq!(skipped_in("{\"message\":\"reader resumed\"}"), None);
    }
}
