//! What a peer loses or repeats when it is killed, when files rotate, and when the server misbehaves.

use super::cell::{Cell, Files, Form, Pace, Work};
use super::input::Inputs;
use super::peer::{Job, Kind, Peer};
use super::race::{self, Loss};
use super::rotating::{Habit, Log};
use crate::measure;
use crate::sink::{Behaviour, Fault, Sink, Trouble};
use anyhow::{Context, Result};
use clap::ValueEnum;
use skidder_workload::{self as workload, Plan};
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Kills of a scenario with kills, evenly over the lines.
const KILLS: u64 = 5;
/// The server takes so long for a request while programs are killed, so that the kills come in the middle.
const SLOW: Duration = Duration::from_millis(20);
/// With every third request something is wrong.
const EVERY: u64 = 3;
/// Lines written a second while files rotate, and lines of a file.
const ROTATING_RATE: u64 = 20_000;
const ROTATING_FILE_LINES: u64 = 6_000;
/// How long the server gives no answer.
const HANG: Duration = Duration::from_secs(5);
/// How long a program may take to end.
const END: Duration = Duration::from_secs(30);

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Killed (SIGKILL) and started again, five times in a plain file.
    Kills,
    /// The same in a `.gz`.
    KillsGz,
    /// Renamed as logrotate does it, the newest five kept.
    Rename,
    /// The same, and compressed one rotation later.
    RenameGzip,
    /// Copied and truncated, the newest five copies kept.
    Copytruncate,
    /// The server hangs for 5 s while files rotate; three are kept.
    HangRotate,
    /// Every third request is refused with 429.
    Busy,
    /// Every third request is refused with 503.
    Unavailable,
    /// Half of every third request is refused with 429.
    PartlyBusy,
    /// The connection is closed before every third request is taken.
    Refused,
    /// Every third request is taken, and the connection closed before the answer.
    Unanswered,
}

impl Scenario {
    /// In tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kills => "killed five times, plain file",
            Self::KillsGz => "killed five times, `.gz`",
            Self::Rename => "rotation by rename",
            Self::RenameGzip => "rotation by rename, then gzip",
            Self::Copytruncate => "rotation by copytruncate",
            Self::HangRotate => "server hangs 5 s while files rotate",
            Self::Busy => "429 to every third request",
            Self::Unavailable => "503 to every third request",
            Self::PartlyBusy => "429 to half of every third request",
            Self::Refused => "every third request: connection closed before it",
            Self::Unanswered => "every third request: taken, no answer",
        }
    }

    /// Whether lines must come twice whatever a shipper does: it cannot know that they were taken.
    pub fn must_repeat(self) -> bool {
        self == Self::Unanswered
    }

    /// Why a peer takes no part.
    pub fn unfit(self, kind: Kind) -> Option<&'static str> {
        match self {
            Self::KillsGz if !kind.reads_gzip() => Some("it reads no `.gz`"),
            Self::PartlyBusy if kind == Kind::Vlagent => {
                Some("its protocol has no answer for a part of a request")
            }
            _ => None,
        }
    }

    fn trouble(self) -> Option<Trouble> {
        let fault = match self {
            Self::Busy => Fault::Status(429),
            Self::Unavailable => Fault::Status(503),
            Self::PartlyBusy => Fault::SomeBusy,
            Self::Refused => Fault::Refused,
            Self::Unanswered => Fault::Unanswered,
            _ => return None,
        };
        Some(Trouble { fault, every: EVERY })
    }

    fn form(self, kind: Kind) -> Form {
        match self {
            Self::KillsGz => Form::Gz,
            Self::RenameGzip if kind.reads_gzip() => Form::Gz,
            _ => Form::Plain,
        }
    }
}

/// Runs a scenario and returns what `peer` lost. Rotating ones write `lines`, too, at their own pace.
pub fn judge(
    inputs: &Inputs,
    peer: &Peer,
    scenario: Scenario,
    lines: u64,
    patience: Duration,
) -> Result<Loss> {
    let work = tempfile::Builder::new().prefix("fault-").tempdir_in(inputs.folder())?;
    let (logs, home) = (work.path().join("logs"), work.path().join("home"));
    std::fs::create_dir(&logs)?;
    std::fs::create_dir(&home)?;
    let kills = matches!(scenario, Scenario::Kills | Scenario::KillsGz);
    let sink = Sink::start(Behaviour {
        check: true,
        trouble: scenario.trouble(),
        delay: if kills { SLOW } else { Duration::ZERO },
        stall_after: (scenario == Scenario::HangRotate).then_some(0),
        ..Behaviour::default()
    })?;
    let form = scenario.form(peer.kind);
    let pace = Pace::CatchUp;
    let cell = Cell { form, files: Files::One, work: Work::None, level: 1, pace };
    let (pattern, url) = (logs.join("app.log*").to_string_lossy().into_owned(), sink.url());
    let job = Job { cell, paths: &pattern, url: &url, durable: true, home: &home };
    play(inputs, peer, scenario, lines, patience, &job, &sink)
        .with_context(|| race::said(peer, &home))?;
    Ok(Loss::of(&sink.count(), lines, true))
}

/// What happens in the scenario, until nothing comes any more.
fn play(
    inputs: &Inputs,
    peer: &Peer,
    scenario: Scenario,
    lines: u64,
    patience: Duration,
    job: &Job<'_>,
    sink: &Sink,
) -> Result<()> {
    let logs = Path::new(job.paths).parent().context("the pattern has a folder")?;
    let rotates = matches!(
        scenario,
        Scenario::Rename | Scenario::RenameGzip | Scenario::Copytruncate | Scenario::HangRotate
    );
    if !rotates {
        write_file(logs, inputs.seed(), lines, job.cell.form)?;
    }
    if matches!(scenario, Scenario::Kills | Scenario::KillsGz) {
        killed(peer, job, sink, lines, patience)?;
    }
    let running = race::start(peer, job)?;
    if rotates {
        rotate(logs, inputs.seed(), scenario, lines, sink)?;
    }
    race::settle(sink, lines, patience);
    running.end(END)?;
    Ok(())
}

fn write_file(logs: &Path, seed: u64, lines: u64, form: Form) -> Result<()> {
    let plain = logs.join("app.log");
    let plan = Plan { kind: Work::None.lines(), lines, seed, first: 0, members: 0 };
    workload::generate(&plan, &plain)?;
    if form == Form::Gz {
        gzip(&plain)?;
    }
    Ok(())
}

/// Replaces a file by its `.gz`, as `gzip` does it.
pub(super) fn gzip(plain: &Path) -> Result<()> {
    let status = Command::new("gzip").arg(plain).status().context("cannot start `gzip`")?;
    anyhow::ensure!(status.success(), "`gzip` failed on `{}`", plain.display());
    Ok(())
}

/// Kills the program each time when a part of the lines has come.
fn killed(peer: &Peer, job: &Job<'_>, sink: &Sink, lines: u64, patience: Duration) -> Result<()> {
    for kill in 1..=KILLS {
        let running = race::start(peer, job)?;
        // What comes twice counts here, too: the next part is behind all that has come.
        let came = sink.count();
        let next = came.documents + (lines - came.distinct.min(lines)) / (KILLS - kill + 2);
        sink.wait_for(next.max(came.documents + 1), patience);
        running.kill()?;
    }
    Ok(())
}

fn rotate(logs: &Path, seed: u64, scenario: Scenario, lines: u64, sink: &Sink) -> Result<()> {
    let habit = match scenario {
        Scenario::RenameGzip => Habit::RenameGzip,
        Scenario::Copytruncate => Habit::Copytruncate,
        _ => Habit::Rename,
    };
    let keep = if scenario == Scenario::HangRotate { 3 } else { 5 };
    let mut log = Log::new(logs, habit, keep, seed)?;
    std::thread::scope(|scope| {
        if scenario == Scenario::HangRotate {
            scope.spawn(|| {
                measure::pause(HANG);
                sink.release();
            });
        }
        log.write(lines, ROTATING_RATE, ROTATING_FILE_LINES)
    })
}

/// A file that can be written to, in `logs`.
pub(super) fn open(logs: &Path) -> Result<File> {
    let path = logs.join("app.log");
    let mut options = File::options();
    let file = options.create(true).append(true).open(&path);
    file.with_context(|| format!("cannot open `{}`", path.display()))
}
