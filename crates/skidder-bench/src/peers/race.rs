//! One run of one peer: catching up with existing files, or keeping up with growing ones.

use super::cell::{Cell, Pace};
use super::input::{Input, Inputs};
use super::peer::{Job, Peer};
use crate::measure::{self, Running};
use crate::sink::{Behaviour, Count, Sink};
use anyhow::{Context, Result, ensure};
use skidder_os::{Clock, SystemClock};
use skidder_workload::Workload;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a program may take to end after SIGTERM before it is killed.
const END: Duration = Duration::from_secs(30);
/// Lines that are there before the steady ones, so that the start is over when the window begins.
const LINES_BEFORE: u64 = 1_000;
/// Between the arrival of these and the window.
const SETTLE: Duration = Duration::from_secs(2);
/// Lines are written so often.
const TICK: Duration = Duration::from_millis(10);
/// The rate is measured until this part of the lines has come: the last ones wait for others to fill a request with.
const MOST: f64 = 0.95;
/// How long nothing may come after every line has come, for lines that come twice.
const QUIET: Duration = Duration::from_secs(3);
/// Files that are written to in turn where there are many.
const FILES_STEADY: u64 = 40;

/// How long and how patiently.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// How long lines are written at a steady pace.
    pub steady: Duration,
    /// How long nothing may come before the rest counts as lost.
    pub patience: Duration,
}

/// What a run has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Run {
    /// CPU of the whole process for each line, in µs; of the steady window in such a cell.
    pub cpu_us: f64,
    /// Lines a second from the start of the program until 95 % of them have come; none in a steady cell.
    pub rate: Option<f64>,
    /// CPU in percent of a core; only in a steady cell.
    pub core_percent: Option<f64>,
    /// Peak memory.
    pub memory_bytes: u64,
    /// Bytes of bodies, as sent.
    pub sent_bytes: u64,
    /// What came and what did not.
    pub loss: Loss,
}

/// Lines that did not come, or came wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Lines that did not come.
    pub missing: u64,
    /// Lines that came once more.
    pub twice: u64,
    /// Events that are none of the lines.
    pub unknown: u64,
}

impl Loss {
    /// By the numbers of the lines if the sink read them, else by their count alone.
    pub fn of(count: &Count, lines: u64, is_checked: bool) -> Self {
        if is_checked {
            let beyond = count.sequence_end.saturating_sub(lines);
            let missing = count.missing(lines);
            return Self { missing, twice: count.repeated, unknown: count.unnumbered + beyond };
        }
        Self {
            missing: lines.saturating_sub(count.documents),
            twice: count.documents.saturating_sub(lines),
            unknown: 0,
        }
    }

    /// The larger of each number.
    pub fn worse(self, other: Self) -> Self {
        Self {
            missing: self.missing.max(other.missing),
            twice: self.twice.max(other.twice),
            unknown: self.unknown.max(other.unknown),
        }
    }

    /// Every line once and nothing else.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Runs `peer` once. `check` reads the number of each line that comes, which takes CPU of the peer's machine.
pub(super) fn run(
    inputs: &Inputs,
    peer: &Peer,
    cell: Cell,
    times: Times,
    check: bool,
) -> Result<Run> {
    match cell.pace {
        Pace::CatchUp => catch_up(inputs, peer, cell, times, check),
        Pace::Steady(rate) => steady(inputs, peer, cell, times, rate, check),
    }
}

fn catch_up(inputs: &Inputs, peer: &Peer, cell: Cell, times: Times, check: bool) -> Result<Run> {
    let Input { paths, lines } = inputs.of(&cell)?;
    let sink = Sink::start(Behaviour { check, ..Behaviour::default() })?;
    let home = tempfile::Builder::new().prefix("peer-").tempdir_in(inputs.folder())?;
    let url = sink.url();
    let job = Job { cell, paths: &paths, url: &url, durable: false, home: home.path() };
    let clock = SystemClock::new();
    let began = clock.monotonic();
    let running = start(peer, &job)?;
    let most = (lines as f64 * MOST).ceil() as u64;
    sink.wait_for(most, times.patience);
    let wall = clock.monotonic().since(began);
    sink.wait_for(lines, times.patience);
    if check {
        settle(&sink, lines, times.patience);
    }
    let cost = running.end(END).with_context(|| said(peer, home.path()))?;
    let count = sink.count();
    ensure!(count.documents > 0, "nothing came from {}; {}", peer.name, said(peer, home.path()));
    Ok(Run {
        cpu_us: cost.cpu.as_secs_f64() * 1e6 / lines as f64,
        rate: Some(most.min(count.documents) as f64 / wall.as_secs_f64()),
        core_percent: None,
        memory_bytes: cost.memory_peak_bytes,
        sent_bytes: count.bytes,
        loss: Loss::of(&count, lines, check),
    })
}

/// Waits until every line has come and what comes twice has come as well, or nothing comes any more.
pub(super) fn settle(sink: &Sink, lines: u64, patience: Duration) {
    loop {
        let before = sink.count();
        let limit = if before.missing(lines) == 0 { QUIET.min(patience) } else { patience };
        if sink.wait_for(before.documents + 1, limit).documents == before.documents {
            return;
        }
    }
}

/// Starts `peer` with its standard error in its home.
pub(super) fn start(peer: &Peer, job: &Job<'_>) -> Result<Running> {
    let log = OpenOptions::new().create(true).append(true).open(log(job.home))?;
    Running::start(peer.command(job)?.stderr(log))
}

fn log(home: &Path) -> PathBuf {
    home.join("stderr")
}

/// The end of what `peer` wrote to standard error.
pub(super) fn said(peer: &Peer, home: &Path) -> String {
    format!("{} said: {}", peer.name, measure::tail(&log(home)))
}

fn steady(
    inputs: &Inputs,
    peer: &Peer,
    cell: Cell,
    times: Times,
    rate: u32,
    check: bool,
) -> Result<Run> {
    let folder = tempfile::Builder::new().prefix("steady-").tempdir_in(inputs.folder())?;
    let home = tempfile::Builder::new().prefix("peer-").tempdir_in(inputs.folder())?;
    let mut writer = Writer::new(folder.path(), &cell, inputs.seed())?;
    writer.write(LINES_BEFORE)?;
    let sink = Sink::start(Behaviour { check, ..Behaviour::default() })?;
    let (paths, url) = (folder.path().join("*.log").to_string_lossy().into_owned(), sink.url());
    let job = Job { cell, paths: &paths, url: &url, durable: false, home: home.path() };
    let running = start(peer, &job)?;
    let came = sink.wait_for(LINES_BEFORE, times.patience);
    ensure!(
        came.documents >= LINES_BEFORE,
        "the first lines did not come; {}",
        said(peer, home.path())
    );
    measure::pause(SETTLE);
    let before = running.cpu()?;
    let clock = SystemClock::new();
    writer.keep_up(rate, times.steady, &clock)?;
    let (used, wall) = (running.cpu()?.saturating_sub(before), clock.monotonic().0);
    let lines = writer.lines;
    sink.wait_for(lines, times.patience);
    if check {
        settle(&sink, lines, times.patience);
    }
    let cost = running.end(END).with_context(|| said(peer, home.path()))?;
    let count = sink.count();
    Ok(Run {
        cpu_us: used.as_secs_f64() * 1e6 / (lines - LINES_BEFORE) as f64,
        rate: None,
        core_percent: Some(used.as_secs_f64() / wall.as_secs_f64() * 100.0),
        memory_bytes: cost.memory_peak_bytes,
        sent_bytes: count.bytes,
        loss: Loss::of(&count, lines, check),
    })
}

/// Appends numbered lines to one file, or to many in turn.
struct Writer {
    workload: Workload,
    files: Vec<File>,
    lines: u64,
    text: Vec<u8>,
}

impl Writer {
    fn new(folder: &Path, cell: &Cell, seed: u64) -> Result<Self> {
        let number = if cell.files == super::cell::Files::One { 1 } else { FILES_STEADY };
        let open = |file| {
            let path = folder.join(format!("app-{file:05}.log"));
            File::create(&path).with_context(|| format!("cannot create `{}`", path.display()))
        };
        Ok(Self {
            workload: Workload::of(cell.work.lines(), seed, 0),
            files: (0..number).map(open).collect::<Result<_>>()?,
            lines: 0,
            text: Vec::new(),
        })
    }

    /// Writes `lines` lines, an equal share to each file at once.
    fn write(&mut self, lines: u64) -> Result<()> {
        let files = self.files.len() as u64;
        for part in 0..files.min(lines) {
            let share = lines / files + u64::from(part < lines % files);
            self.text.clear();
            for _ in 0..share {
                self.workload.line(&mut self.text);
            }
            let turn = (self.lines % files) as usize;
            self.files[turn].write_all(&self.text).context("cannot write lines")?;
            self.lines += share;
        }
        Ok(())
    }

    /// Writes `rate` lines a second for `span`.
    fn keep_up(&mut self, rate: u32, span: Duration, clock: &SystemClock) -> Result<()> {
        let (began, already) = (clock.monotonic(), self.lines);
        let mut next = began + TICK;
        loop {
            measure::pause(next.since(clock.monotonic()));
            let passed = clock.monotonic().since(began).min(span);
            let due = (passed.as_secs_f64() * f64::from(rate)) as u64;
            self.write((already + due).saturating_sub(self.lines))?;
            if passed == span {
                return Ok(());
            }
            next = next + TICK;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_told_by_numbers_where_they_are_read() {
        let count = Count {
            documents: 10,
            distinct: 8,
            repeated: 1,
            unnumbered: 1,
            sequence_end: 10,
            ..Count::default()
        };
        assert_eq!(Loss::of(&count, 10, true), Loss { missing: 2, twice: 1, unknown: 1 });
        assert_eq!(Loss::of(&count, 9, true), Loss { missing: 1, twice: 1, unknown: 2 });
        assert!(Loss::of(&count, 10, false).is_none());
        assert_eq!(Loss::of(&count, 12, false).missing, 2);
        assert_eq!(Loss::of(&count, 7, false).twice, 3);
    }
}
