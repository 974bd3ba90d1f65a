//! Small objects, announced by messages of a queue: how many a second, beside Filebeat.

use super::{Goal, row, rows_or_why, spread};
use crate::measure::{self, Running};
use crate::queue::{self, Queue};
use crate::sink::{Behaviour, Sink};
use crate::stage::Stage;
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use skidder_os::{Clock, SystemClock};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

const GOAL: Goal = (
    "z5",
    "objects of 2 KB by SQS, each with its defaults: time over Filebeat's (`--filebeat`)",
    1.0 / 3.0,
    0.1,
    "",
);

/// Objects of a run: one for so many lines of the main workload.
const LINES_OF_AN_OBJECT: u64 = 20;
/// How long a program may take until it asks for messages, and without anything new.
const PATIENCE: Duration = Duration::from_mins(1);

/// The row z5.
pub fn queue_alone(stage: &Stage) -> Vec<Row> {
    rows_or_why(&[GOAL], measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let objects = (stage.lines / LINES_OF_AN_OBJECT).max(1);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        ours.push(seconds(stage, &stage.skidder, objects, &[])?);
        if let Some(filebeat) = &stage.filebeat {
            // It refuses configurations of other users, and looks for its own files in its own folder.
            let home = tempfile::tempdir_in(&stage.work)?;
            let folder = home.path().to_string_lossy();
            let more = ["--strict.perms=false", "--path.home", &folder];
            theirs.push(seconds(stage, filebeat, objects, &more)?);
        }
        measure::note(&format!("{} {}: {ours:?} and {theirs:?}", GOAL.0, run + 1));
    }
    let ours = summarize(&ours).context("no run was made")?;
    let alone = format!(
        "{objects} objects, {:.0} a second; {}",
        objects as f64 / ours.median,
        spread("s:", ours)
    );
    let theirs =
        summarize(&theirs).with_context(|| format!("no `--filebeat`; skidder alone: {alone}"))?;
    let detail = format!("{alone}; {}", spread("Filebeat s:", theirs));
    Ok(vec![row(&GOAL, ours.median / theirs.median, detail)])
}

/// From the first request for messages until the last event is at the sink.
fn seconds(stage: &Stage, program: &Path, objects: u64, more: &[&str]) -> Result<f64> {
    let queue = Queue::start(objects)?;
    let sink = Sink::start(Behaviour::default())?;
    let url = Value::from(sink.url());
    let home = stage.home_of(&format!(
        "filebeat.inputs: [{{{}}}]\noutput.elasticsearch: {{hosts: [{url}]}}\n\
         setup.template.enabled: false\nsetup.ilm.enabled: false\n",
        queue.input()
    ))?;
    let mut command = home.command(program);
    let running = Running::start(command.args(more).stderr(File::create(home.log())?))?;
    ensure!(queue.wait_for_request(PATIENCE), "no request: {}", measure::tail(&home.log()));
    let clock = SystemClock::new();
    let wanted = objects * queue::LINES;
    let count = sink.wait_for(wanted, PATIENCE);
    let took = clock.monotonic().0;
    // What a shipper repeats is no loss; Filebeat did so here.
    ensure!(
        count.documents >= wanted,
        "{} of {wanted} events came: {}",
        count.documents,
        measure::tail(&home.log())
    );
    while queue.deleted() < objects && clock.monotonic().0 < took + PATIENCE {
        measure::pause(Duration::from_millis(50));
    }
    running.end(PATIENCE)?;
    ensure!(queue.deleted() == objects, "{} of {objects} messages were deleted", queue.deleted());
    Ok(took.as_secs_f64())
}
