//! Very many files: the start with them, CPU and memory while they do not change.

use super::{Goal, row, rows_or_why, ship_once, spread};
use crate::measure;
use crate::sink::{Behaviour, Sink};
use crate::stage::{Settings, Stage, allow_many_open_files};
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

const GOALS: [Goal; 3] = [
    ("g", "CPU of one core with 100,000 idle files", 3.0, 0.5, "%"),
    ("h", "start with 100,000 new files: found, recognised, read, delivered", 3.0, 2.0, "s"),
    ("i", "memory for each of 100,000 idle files", 1.5, 1.0, "KB"),
];
const FILES: u64 = 100_000;
/// Enough for the 1,024 bytes that the identity of a file needs.
const LINES: u64 = 8;
/// How long the sink may see nothing new before the experiment is given up.
const PATIENCE: Duration = Duration::from_mins(2);
/// Time for acknowledgements and the registry after the last line.
const SETTLE: Duration = Duration::from_secs(15);
const WINDOW: Duration = Duration::from_mins(1);

/// The rows g, h and i: everything is read first; then a minute in which nothing happens.
pub fn idle(stage: &Stage) -> Vec<Row> {
    let mut rows = rows_or_why(&GOALS[1..2], start(stage));
    rows.extend(rows_or_why(&[GOALS[0], GOALS[2]], rest(stage)));
    rows.sort_by_key(|row| row.letter);
    rows
}

/// Wall time from start to end with `--once`, the files in the page cache.
fn start(stage: &Stage) -> Result<Vec<Row>> {
    allow_many_open_files()?;
    let folder = stage.many_small(FILES, LINES)?;
    let paths = folder.join("*/*.log");
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        read_all(&folder)?;
        let lines = FILES * LINES;
        let (cost, _) = ship_once(stage, &stage.skidder, &paths.to_string_lossy(), false, lines)?;
        walls.push(cost.wall.as_secs_f64());
        cpus.push(cost.cpu.as_secs_f64());
    }
    let wall = summarize(&walls).context("no run was made")?;
    let cpu = summarize(&cpus).context("no run was made")?;
    let detail = format!("{}; {}", spread("wall s:", wall), spread("CPU s:", cpu));
    Ok(vec![row(&GOALS[1], wall.median, detail)])
}

/// Brings the files into the page cache.
fn read_all(folder: &Path) -> Result<()> {
    for part in fs::read_dir(folder)? {
        for file in fs::read_dir(part?.path())? {
            fs::read(file?.path())?;
        }
    }
    Ok(())
}

fn rest(stage: &Stage) -> Result<Vec<Row>> {
    let open_max = allow_many_open_files()?;
    let folder = stage.many_small(FILES, LINES)?;
    let one = at_rest(stage, &folder.join("000/app-000000.log"), LINES, Duration::ZERO)?;
    let all = at_rest(stage, &folder.join("*/*.log"), FILES * LINES, WINDOW)?;
    let percent = all.cpu.as_secs_f64() / WINDOW.as_secs_f64() * 100.0;
    let cpu = format!(
        "{:.2} s in {} s; {:.1} s to read all; `ulimit -n` {open_max}",
        all.cpu.as_secs_f64(),
        WINDOW.as_secs(),
        all.reading.as_secs_f64()
    );
    let each = all.memory_bytes.saturating_sub(one.memory_bytes) as f64 / FILES as f64 / 1_024.0;
    let memory = format!(
        "{:.1} MB with one, {:.1} MB with all",
        one.memory_bytes as f64 / 1e6,
        all.memory_bytes as f64 / 1e6
    );
    Ok(vec![row(&GOALS[0], percent, cpu), row(&GOALS[2], each, memory)])
}

/// What a program costs that has read everything.
struct Rest {
    /// CPU within the window, and before it.
    cpu: Duration,
    reading: Duration,
    /// Resident at the end of the window.
    memory_bytes: u64,
}

fn at_rest(stage: &Stage, paths: &Path, lines: u64, window: Duration) -> Result<Rest> {
    let sink = Sink::start(Behaviour::default())?;
    let home = stage.home(&paths.to_string_lossy(), &sink, Settings::default())?;
    let mut command = home.command(&stage.skidder);
    let mut child =
        command.stderr(File::create(home.log())?).spawn().context("cannot start the program")?;
    let measured = watch(&sink, child.id(), lines, window);
    measure::kill(&mut child)?;
    measured
}

fn watch(sink: &Sink, id: u32, lines: u64, window: Duration) -> Result<Rest> {
    let came = sink.wait_for(lines, PATIENCE).documents;
    ensure!(came >= lines, "only {came} of {lines} lines came");
    measure::pause(SETTLE);
    let reading = measure::cpu_of(id)?;
    measure::pause(window);
    let cpu = measure::cpu_of(id)?.saturating_sub(reading);
    Ok(Rest { cpu, reading, memory_bytes: measure::memory_of(id)? })
}
