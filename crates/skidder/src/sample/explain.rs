//! `skidder explain`: the compiled processors of each input, and their cost on a sample.

use super::{Look, Sample, one_input, one_output, only, run};
use crate::agent::Agent;
use crate::allocator;
use crate::assemble::Parts;
use crate::cli::{Explain, Global};
use crate::input_plan::{InputPlan, SourcePlan};
use crate::inputs::Input;
use crate::load::{load_settings, read_parts};
use crate::logging;
use crate::shown_plan::ShownPlan;
use crate::system::System;
use crate::table::table;
use crate::terminal::{eprint, print};
use anyhow::Result;
use skidder_event::{Batch, Map};
use skidder_observe::{Describe as _, Step};
use skidder_os::{Clock, Monotonic};
use skidder_outputs::Discard;
use skidder_processors::{Fate, Meter, StepCounts, StepNote};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::Level;

/// How often the sample goes through; the times are medians.
const PASSES: usize = 5;

/// What one pass over the sample saw.
#[derive(Default)]
struct Pass {
    notes: Vec<StepNote>,
    events: u64,
    steps: Vec<Measured>,
}

/// One step that is left for events.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    nanoseconds: u64,
    allocations: u64,
    counts: StepCounts,
}

/// Prints the compiled plan of the inputs.
pub(crate) fn explain(what: &Explain, global: &Global, system: &System) -> Result<ExitCode> {
    logging::start(Level::WARN);
    let settings = load_settings(global, system)?;
    let agent = Agent::temporary(None, system.clock.wall());
    let Some(file) = &what.sample else {
        let mut parts = read_parts(&settings, system, |name| Ok(agent.named(name)))?;
        let routes = if what.fed.output.is_none() { routes(&parts) } else { BTreeMap::new() };
        let of = one_output(&mut parts, what.fed.output.as_deref())?;
        let wanted = |input: &&Input| what.input.as_deref().is_none_or(|id| input.is_called(id));
        let inputs: Vec<_> = of.inputs.iter().filter(wanted).collect();
        if inputs.is_empty() {
            // Says which there are.
            let (input, output) = (what.input.as_deref(), what.fed.output.as_deref());
            one_input(&settings, system, &agent, input, output)?;
        }
        for input in inputs {
            let plan = without_sample(input, what.said.path.as_deref());
            print(&settings.cover_secrets(&plan))?;
            let route = routes.get(&input.number).map_or("", String::as_str);
            print(&settings.cover_secrets(route))?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let sample = Sample::file(file, what.said.path.as_deref(), system)?;
    allocator::start_counting();
    let mut passes = Vec::new();
    let mut head = String::new();
    for _ in 0..PASSES {
        let (input, output) = (what.input.as_deref(), what.fed.output.as_deref());
        let mut parts = one_input(&settings, system, &agent, input, output)?;
        let pass = Arc::new(Mutex::new(Pass::default()));
        let (output, plan) = only(&mut parts);
        head = head_of(&output.inputs[0]);
        output.output = Box::new(Discard);
        run(parts, system, &sample, look(&pass, plan, system))?;
        passes.push(std::mem::take(&mut *pass.lock().unwrap_or_else(PoisonError::into_inner)));
    }
    if passes[0].events == 0 {
        eprint("no event comes out of the sample\n");
    }
    print(&settings.cover_secrets(&format!("{head}{}", measured(&passes))))?;
    Ok(ExitCode::SUCCESS)
}

/// Which outputs each input feeds, by its number, if there are several.
fn routes(parts: &Parts) -> BTreeMap<usize, String> {
    let mut routes: BTreeMap<usize, String> = BTreeMap::new();
    for output in parts.outputs.iter().filter(|_| parts.outputs.len() > 1) {
        let id = output.id.as_deref().unwrap_or_default();
        for input in &output.inputs {
            let condition = input.plan.condition();
            let condition = condition.map_or(String::new(), |holds| format!(" only if {holds}"));
            let line = format!("to the output `{id}`{condition}\n");
            routes.entry(input.number).or_default().push_str(&line);
        }
    }
    routes
}

fn head_of(input: &Input) -> String {
    format!("input `{}` ({})\n", input.name(), input.kind())
}

/// The plan for a file that does not exist yet: the first pattern is its name.
fn without_sample(input: &Input, path: Option<&str>) -> String {
    let steps = ShownPlan::of(input, path).steps();
    let rows: Vec<_> = steps.into_iter().map(|Step { when, step, .. }| [when, step]).collect();
    format!("{}{}", head_of(input), table(["WHEN", "STEP"], &rows))
}

/// Runs the plan step by step and records the results.
fn look(pass: &Arc<Mutex<Pass>>, input: Arc<InputPlan>, system: &System) -> Look {
    let pass = Arc::clone(pass);
    let clock = Arc::clone(&system.clock);
    Arc::new(move |plan: &SourcePlan, fields: &Map, batch: &mut Batch| {
        let mut pass = pass.lock().unwrap_or_else(PoisonError::into_inner);
        pass.notes = input.describe(fields);
        // The condition of the output is one, too.
        let conditions = usize::from(input.condition().is_some());
        let left = pass.notes.iter().filter(|note| note.fate.is_left()).count() - conditions;
        pass.events += batch.len() as u64;
        let started = Started { time: clock.monotonic(), allocations: 0 };
        let mut stopwatch = Stopwatch { clock: &*clock, started, steps: &mut pass.steps };
        plan.run_measured(batch, left, &mut stopwatch);
    })
}

struct Started {
    time: Monotonic,
    allocations: u64,
}

/// Times and counts each step.
struct Stopwatch<'a> {
    clock: &'a dyn Clock,
    started: Started,
    steps: &'a mut Vec<Measured>,
}

impl Meter for Stopwatch<'_> {
    fn begin(&mut self) {
        let allocations = allocator::allocations();
        self.started = Started { time: self.clock.monotonic(), allocations };
    }

    fn end(&mut self, step: usize, counts: StepCounts) {
        let time = self.clock.monotonic().since(self.started.time);
        let allocations = allocator::allocations() - self.started.allocations;
        if self.steps.len() <= step {
            self.steps.resize(step + 1, Measured::default());
        }
        let all = &mut self.steps[step];
        all.nanoseconds += u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        all.allocations += allocations;
        all.counts.events += counts.events;
        all.counts.dropped += counts.dropped;
        all.counts.failed += counts.failed;
    }
}

/// The plan with what its steps cost.
fn measured(passes: &[Pass]) -> String {
    let first = &passes[0];
    let mut rows = Vec::new();
    let mut left = 0;
    let dash = || "-".to_owned();
    for note in &first.notes {
        let step = note.fate.is_left().then_some(left);
        left += usize::from(note.fate.is_left());
        let row = match step.and_then(|step| first.steps.get(step).map(|seen| (step, seen))) {
            // Done once for a file: it costs nothing for an event.
            None if note.fate == Fate::Once => {
                ["folded".to_owned(), dash(), dash(), dash(), dash()]
            }
            None => [(); 5].map(|()| dash()),
            Some((step, seen)) => {
                let StepCounts { events, dropped, failed } = seen.counts;
                [
                    nanoseconds(median(passes, |pass| each(pass, step).0)),
                    format!("{:.2}", median(passes, |pass| each(pass, step).1)),
                    events.to_string(),
                    failed.to_string(),
                    dropped.to_string(),
                ]
            }
        };
        let [time, allocations, events, failed, dropped] = row;
        rows.push([
            note.fate.to_string(),
            time,
            allocations,
            events,
            failed,
            dropped,
            note.step.clone(),
        ]);
    }
    let heads = ["WHEN", "NS/EVENT", "ALLOCATIONS/EVENT", "EVENTS", "FAILED", "DROPPED", "STEP"];
    let mut text = table(heads, &rows);
    if first.notes.iter().any(|note| note.fate == Fate::Once) {
        text.push_str(
            "folded: done once for a file, in what its events share; costs nothing for an event\n",
        );
    }
    let total = median(passes, |pass| {
        let all: u64 = pass.steps.iter().map(|step| step.nanoseconds).sum();
        all as f64 / pass.events.max(1) as f64
    });
    writeln!(
        text,
        "{} events; all steps together {total:.0} ns an event (medians of {PASSES} passes)",
        first.events
    )
    .expect("writing to a string cannot fail");
    text
}

/// A time that was measured is not zero.
fn nanoseconds(time: f64) -> String {
    if time < 0.5 { "<1".to_owned() } else { format!("{time:.0}") }
}

/// Nanoseconds and allocations for each event that came to a step.
fn each(pass: &Pass, step: usize) -> (f64, f64) {
    let step = pass.steps.get(step).copied().unwrap_or_default();
    let events = step.counts.events.max(1) as f64;
    (step.nanoseconds as f64 / events, step.allocations as f64 / events)
}

fn median(passes: &[Pass], of: impl Fn(&Pass) -> f64) -> f64 {
    let mut values: Vec<f64> = passes.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
