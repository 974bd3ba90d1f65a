//! CPU with very many files that nobody writes to.

use super::{Goal, row, rows_or_why};
use crate::measure;
use crate::sink::{Behaviour, Sink};
use crate::stage::{Settings, Stage, allow_many_open_files};
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::time::Duration;

const GOALS: [Goal; 1] = [("g", "CPU of one core with 100,000 idle files", 3.0, 0.5, "%")];
const FILES: u64 = 100_000;
/// Enough for the 1,024 bytes that the identity of a file needs.
const LINES: u64 = 8;
/// How long the sink may see nothing new before the experiment is given up.
const PATIENCE: Duration = Duration::from_mins(2);
/// Time for acknowledgements and the registry after the last line.
const SETTLE: Duration = Duration::from_secs(15);
const WINDOW: Duration = Duration::from_mins(1);

/// The row g: everything is read first; then a minute in which nothing happens.
pub fn idle(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let open_max = allow_many_open_files()?;
    let folder = stage.many_small(FILES, LINES)?;
    let sink = Sink::start(Behaviour::default())?;
    let paths = folder.join("*/*.log");
    let home = stage.home(&paths.to_string_lossy(), &sink, Settings::default())?;
    let mut command = home.command(&stage.skidder);
    let mut child =
        command.stderr(File::create(home.log())?).spawn().context("cannot start the program")?;
    let measured = watch(&sink, child.id());
    measure::kill(&mut child)?;
    let (cpu, reading) = measured?;
    let percent = cpu.as_secs_f64() / WINDOW.as_secs_f64() * 100.0;
    let detail = format!(
        "{:.2} s in {} s; {:.1} s to read all; `ulimit -n` {open_max}",
        cpu.as_secs_f64(),
        WINDOW.as_secs(),
        reading.as_secs_f64()
    );
    Ok(vec![row(&GOALS[0], percent, detail)])
}

/// CPU within the window, and before it.
fn watch(sink: &Sink, id: u32) -> Result<(Duration, Duration)> {
    let came = sink.wait_for(FILES * LINES, PATIENCE).documents;
    ensure!(came >= FILES * LINES, "only {came} of {} lines came", FILES * LINES);
    measure::pause(SETTLE);
    let before = measure::cpu_of(id)?;
    measure::pause(WINDOW);
    Ok((measure::cpu_of(id)?.saturating_sub(before), before))
}
