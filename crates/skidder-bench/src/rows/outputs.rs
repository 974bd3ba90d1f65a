//! Two outputs of which one is stuck: what the other one takes.

use super::{Goal, row, rows_or_why, spread};
use crate::measure;
use crate::sink::{Behaviour, Sink};
use crate::stage::{Home, Settings, Stage};
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use skidder_os::{Clock, SystemClock};
use std::fs::File;
use std::process::Child;
use std::time::Duration;

const GOALS: [Goal; 1] = [(
    "o",
    "time until an output has everything beside a stuck one, over the time alone",
    1.11,
    1.02,
    "",
)];

/// Files of `--lines` lines each: a run has to last long enough that what the second output takes before it is
/// stuck does not count.
const FILES: u64 = 10;

/// How long nothing may come before the experiment is given up.
const PATIENCE: Duration = Duration::from_mins(1);

/// The row o. The second output's server accepts requests and does not answer; when the first one has everything, it
/// answers again, and must get everything too.
pub fn outputs(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let files = stage.many_plain(FILES, stage.lines)?;
    let paths = files.join("*.log").to_string_lossy().into_owned();
    let lines = FILES * stage.lines;
    let (mut ratios, mut alone, mut beside, mut late) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        let sink = Sink::start(Behaviour::default())?;
        // The last lines do not wait for more, which would be most of the time.
        let settings = Settings { at_once: true, ..Settings::default() };
        let home = stage.home(&paths, &sink, settings)?;
        let (seconds, mut child) = until_all(stage, &home, &sink, lines)?;
        measure::kill(&mut child)?;
        let stuck = Sink::start(Behaviour { stall_after: Some(0), ..Behaviour::default() })?;
        let sink = Sink::start(Behaviour::default())?;
        let home = stage.home_of_several(&paths, &[&sink, &stuck])?;
        let (seconds_beside, mut child) = until_all(stage, &home, &sink, lines)?;
        let came = stuck.count().documents;
        ensure!(came < lines / 2, "the stuck output has taken {came} lines");
        let clock = SystemClock::new();
        let released = clock.monotonic();
        stuck.release();
        let came = stuck.wait_for(lines, PATIENCE).documents;
        measure::kill(&mut child)?;
        ensure!(came >= lines, "{came} of {lines} lines came late");
        late.push(clock.monotonic().since(released).as_secs_f64());
        ratios.push(seconds_beside / seconds);
        alone.push(lines as f64 / seconds / 1e3);
        beside.push(lines as f64 / seconds_beside / 1e3);
    }
    let all = |times: &[f64]| summarize(times).context("nothing was measured");
    let ratio = all(&ratios)?;
    let detail = format!(
        "{}; {}; {}; {}",
        spread("ratio", ratio),
        spread("thousand lines/s alone:", all(&alone)?),
        spread("beside:", all(&beside)?),
        spread("the stuck one then had all in s:", all(&late)?)
    );
    Ok(vec![row(&GOALS[0], ratio.median, detail)])
}

/// Starts the program; seconds until the sink has every line.
fn until_all(stage: &Stage, home: &Home, sink: &Sink, lines: u64) -> Result<(f64, Child)> {
    let clock = SystemClock::new();
    let began = clock.monotonic();
    let mut command = home.command(&stage.skidder);
    let mut child =
        command.stderr(File::create(home.log())?).spawn().context("cannot start the program")?;
    let came = sink.wait_for(lines, PATIENCE).documents;
    let seconds = clock.monotonic().since(began).as_secs_f64();
    if came < lines {
        measure::kill(&mut child)?;
        anyhow::bail!("{came} of {lines} lines came");
    }
    Ok((seconds, child))
}
