//! Two outputs of which one is stuck: what the other one takes.

use super::{Goal, row, rows_or_why, spread};
use crate::measure;
use crate::sink::{Behaviour, Sink};
use crate::stage::{Home, Settings, Stage};
use crate::statistics::{Summary, summarize};
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

/// How long the second output is stuck in all runs together, at least.
const STUCK: Duration = Duration::from_mins(1);

/// How long nothing may come before the experiment is given up.
const PATIENCE: Duration = Duration::from_mins(1);

/// The row o. The second output's server accepts requests and does not answer; when the first one has everything, it
/// answers again, and must get everything too.
pub fn outputs(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let files = stage.many_plain(FILES, stage.lines)?;
    let place = Place { paths: files.join("*.log").to_string_lossy().into_owned(), stage };
    let mut rounds = Vec::new();
    let mut stuck = 0.0;
    while rounds.len() < stage.runs as usize || stuck < STUCK.as_secs_f64() {
        // In this order, so that a machine that becomes slower is as bad for both.
        let (first, before) = (place.alone()?, place.beside()?);
        let (after, last) = (place.beside()?, place.alone()?);
        stuck += before.seconds + after.seconds;
        let round = Round { alone: first.and(last), beside: before.and(after) };
        measure::note(&format!("round {}: {round:?}", rounds.len() + 1));
        rounds.push(round);
    }
    let over = |value: &dyn Fn(&Round) -> f64| -> Result<Summary> {
        let values: Vec<f64> = rounds.iter().map(value).collect();
        summarize(&values).context("nothing was measured")
    };
    let lines = (FILES * stage.lines) as f64;
    let ratio = over(&|round| round.beside.seconds / round.alone.seconds)?;
    let detail = format!(
        "{}; stuck for {stuck:.0} s in {} rounds; {}; {}; {}; {}",
        spread("ratio", ratio),
        rounds.len(),
        spread("CPU ratio", over(&|round| round.beside.cpu / round.alone.cpu)?),
        spread("thousand lines/s alone:", over(&|round| lines / round.alone.seconds / 1e3)?),
        spread("beside:", over(&|round| lines / round.beside.seconds / 1e3)?),
        spread("the stuck one then had all in s:", over(&|round| round.beside.late)?)
    );
    Ok(vec![row(&GOALS[0], ratio.median, detail)])
}

/// Two runs of each kind.
#[derive(Clone, Copy, Debug)]
struct Round {
    alone: Run,
    beside: Run,
}

/// One run, or the mean of two.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Until the output had everything.
    seconds: f64,
    /// Of the whole process until then, in seconds.
    cpu: f64,
    /// Until the output that was stuck had everything too, from its release on.
    late: f64,
}

impl Run {
    fn and(self, other: Self) -> Self {
        Self {
            seconds: f64::midpoint(self.seconds, other.seconds),
            cpu: f64::midpoint(self.cpu, other.cpu),
            late: f64::midpoint(self.late, other.late),
        }
    }
}

/// Where all runs find their files.
struct Place<'a> {
    stage: &'a Stage,
    paths: String,
}

impl Place<'_> {
    fn lines(&self) -> u64 {
        FILES * self.stage.lines
    }

    fn alone(&self) -> Result<Run> {
        let sink = Sink::start(Behaviour::default())?;
        // The last lines do not wait for more, which would be most of the time.
        let settings = Settings { at_once: true, ..Settings::default() };
        let home = self.stage.home(&self.paths, &sink, settings)?;
        let (run, mut child) = until_all(self.stage, &home, &sink, self.lines())?;
        measure::kill(&mut child)?;
        Ok(run)
    }

    fn beside(&self) -> Result<Run> {
        let lines = self.lines();
        let stuck = Sink::start(Behaviour { stall_after: Some(0), ..Behaviour::default() })?;
        let sink = Sink::start(Behaviour::default())?;
        let home = self.stage.home_of_several(&self.paths, &[&sink, &stuck])?;
        let (run, mut child) = until_all(self.stage, &home, &sink, lines)?;
        let came = stuck.count().documents;
        ensure!(came < lines / 2, "the stuck output has taken {came} lines");
        let clock = SystemClock::new();
        let released = clock.monotonic();
        stuck.release();
        let came = stuck.wait_for(lines, PATIENCE).documents;
        measure::kill(&mut child)?;
        ensure!(came >= lines, "{came} of {lines} lines came late");
        Ok(Run { late: clock.monotonic().since(released).as_secs_f64(), ..run })
    }
}

/// Starts the program; what it takes until the sink has every line.
fn until_all(stage: &Stage, home: &Home, sink: &Sink, lines: u64) -> Result<(Run, Child)> {
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
    let cpu = measure::cpu_of(child.id())?.as_secs_f64();
    Ok((Run { seconds, cpu, late: 0.0 }, child))
}
