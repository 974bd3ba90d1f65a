//! The time from a write to the event at the sink.

use super::{Goal, row, rows_or_why, spread};
use crate::measure;
use crate::sink::{Behaviour, Sink};
use crate::stage::{Settings, Stage};
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use skidder_os::{Clock, SystemClock};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const GOALS: [Goal; 2] = [
    ("j1", "from a write to an idle file to the event at the sink", 50.0, 5.0, "ms"),
    ("j2", "from the writing of a new file to its event at the sink", 50.0, 5.0, "ms"),
];
/// Writes of each kind.
const WRITES: u64 = 51;
/// Between two writes, so that the reader is idle again.
const PAUSE: Duration = Duration::from_millis(150);
/// How long a line may take before the experiment is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The rows j1 and j2. The queue gives events away at once: its waiting for more is a setting of its own.
pub fn latency(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let folder = tempfile::Builder::new().prefix("latency-").tempdir_in(&stage.work)?;
    let idle = folder.path().join("idle.log");
    std::fs::write(&idle, "the first line\n")?;
    let sink = Sink::start(Behaviour::default())?;
    let settings = Settings { at_once: true, ..Settings::default() };
    let paths = folder.path().join("*.log");
    let home = stage.home(&paths.to_string_lossy(), &sink, settings)?;
    let mut command = home.command(&stage.skidder);
    let mut child =
        command.stderr(File::create(home.log())?).spawn().context("cannot start the program")?;
    let measured = times(&sink, folder.path(), &idle);
    measure::kill(&mut child)?;
    let (appended, created) = measured?;
    let rows = GOALS.iter().zip([appended, created]).map(|(goal, times)| {
        let summary = summarize(&times).context("nothing was written")?;
        Ok(row(goal, summary.median, spread("ms:", summary)))
    });
    rows.collect()
}

/// Milliseconds of each write to the idle file, and of each new file.
fn times(sink: &Sink, folder: &Path, idle: &Path) -> Result<(Vec<f64>, Vec<f64>)> {
    let clock = SystemClock::new();
    let mut expected = 1;
    let came = sink.wait_for(expected, PATIENCE).documents;
    ensure!(came == expected, "the first line did not come");
    let mut file = OpenOptions::new().append(true).open(idle)?;
    let (mut appended, mut created) = (Vec::new(), Vec::new());
    for number in 0..WRITES {
        for is_new in [false, true] {
            measure::pause(PAUSE);
            let began = clock.monotonic();
            if is_new {
                let text = format!("this is file number {number}\n");
                std::fs::write(folder.join(format!("new-{number}.log")), text)?;
            } else {
                file.write_all(format!("this is line number {number}\n").as_bytes())?;
            }
            expected += 1;
            let came = sink.wait_for(expected, PATIENCE).documents;
            let took = clock.monotonic().since(began);
            ensure!(came == expected, "write {number} did not come (new file: {is_new})");
            let times = if is_new { &mut created } else { &mut appended };
            times.push(took.as_secs_f64() * 1e3);
        }
    }
    Ok((appended, created))
}
