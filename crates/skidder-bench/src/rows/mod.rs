//! The experiments behind the rows of the table, one file each.

mod allocations;
mod answers;
mod bodies;
mod brokers;
mod clouds;
mod codecs;
mod containers;
mod cpu;
mod encoded;
mod faces;
mod flows;
mod grok;
mod idle;
mod idle_inputs;
mod kubernetes;
mod latency;
mod many;
mod memory;
mod network;
mod outputs;
mod page;
mod parsers;
mod processors;
mod queue;
mod resume;
mod rotations;
mod sources;
mod tuned;

pub use allocations::allocations;
pub use answers::answers;
pub use bodies::bodies;
pub use brokers::brokers;
pub use clouds::clouds;
pub use codecs::codecs;
pub use containers::{churn_alone, containers, inputs_alone};
pub use cpu::cpu;
pub use encoded::encoded;
pub use faces::faces;
pub use flows::flows_alone;
pub use idle::idle;
pub use idle_inputs::idle_inputs;
pub use kubernetes::kubernetes;
pub use latency::latency;
pub use many::many;
pub use memory::memory;
pub use network::{network, requests_of_http};
pub use outputs::outputs;
pub use page::page;
pub use parsers::parsers;
pub use processors::{TEN_PROCESSORS, module_alone, processors};
pub use queue::queue_alone;
pub use resume::resume;
pub use rotations::rotations;
pub use sources::sources;
pub(crate) use sources::write_journal;
pub use tuned::tuned;

use crate::measure::{self, Cost};
use crate::sink::{Behaviour, Sink};
use crate::stage::{Home, Settings, Stage};
use crate::statistics::Summary;
use crate::table::Row;
use anyhow::{Result, ensure};
use std::path::Path;

/// Every row. An experiment that fails leaves rows with the reason, and the others go on.
pub fn all(stage: &Stage) -> Vec<Row> {
    let experiments = [
        cpu,
        allocations,
        memory,
        resume,
        idle,
        latency,
        parsers,
        processors,
        bodies,
        many,
        outputs,
        page,
        encoded,
        answers,
        tuned,
        rotations,
        codecs,
        network,
        containers,
        kubernetes,
        clouds,
    ];
    experiments.iter().flat_map(|experiment| experiment(stage)).collect()
}

/// A goal before it is measured: letter, text, must, moonshot, unit.
type Goal = (&'static str, &'static str, f64, f64, &'static str);

fn row(goal: &Goal, measured: f64, detail: String) -> Row {
    let (letter, what, must, moonshot, unit) = *goal;
    Row { letter, what: what.to_owned(), must, moonshot, unit, measured: Ok(measured), detail }
}

/// The rows of an experiment, or one row for each of its goals with the reason why there is no number.
fn rows_or_why(goals: &[Goal], measured: Result<Vec<Row>>) -> Vec<Row> {
    match measured {
        Ok(rows) => rows,
        Err(error) => goals
            .iter()
            .map(|goal| Row {
                measured: Err(format!("{error:#}")),
                ..row(goal, 0.0, String::new())
            })
            .collect(),
    }
}

/// Ships `paths` with `--once` to a new sink and returns the cost; all `lines` must have come.
fn ship_once(
    stage: &Stage,
    program: &Path,
    paths: &str,
    compressed: bool,
    lines: u64,
) -> Result<(Cost, Home)> {
    ship_with(stage, program, paths, Settings { compressed, ..Settings::default() }, lines)
}

/// The same with any settings; all `events` must have come.
fn ship_with(
    stage: &Stage,
    program: &Path,
    paths: &str,
    settings: Settings,
    events: u64,
) -> Result<(Cost, Home)> {
    let sink = Sink::start(Behaviour::default())?;
    let home = stage.home(paths, &sink, settings)?;
    let cost = measure::run(home.command(program).arg("--once"), &home.log())?;
    let came = sink.count().documents;
    ensure!(
        came == events,
        "{came} of {events} events came from {paths}: the run counts for nothing"
    );
    Ok((cost, home))
}

fn spread(what: &str, summary: Summary) -> String {
    format!("{what} {:.2} ({:.2} to {:.2})", summary.median, summary.least, summary.most)
}
