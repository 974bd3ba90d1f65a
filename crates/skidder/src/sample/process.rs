//! `skidder process`: sample lines as the events that would be delivered.

use super::{Sample, one_input, only, run};
use crate::agent::Agent;
use crate::cli::{Global, Process};
use crate::input_plan::SourcePlan;
use crate::load::load_settings;
use crate::logging;
use crate::system::System;
use crate::terminal::eprint;
use anyhow::Result;
use skidder_event::{Batch, Map};
use skidder_outputs::{CodecConfig, Console, ConsoleConfig};
use skidder_read::Bound as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::Level;

/// Prints the events, one a line, and how many there were.
pub(crate) fn process(what: &Process, global: &Global, system: &System) -> Result<ExitCode> {
    logging::start(Level::WARN);
    let settings = load_settings(global, system)?;
    let agent = Agent::temporary(None, system.clock.wall());
    let (input, output) = (what.input.as_deref(), what.fed.output.as_deref());
    let mut parts = one_input(&settings, system, &agent, input, output)?;
    let sample = match &what.file {
        Some(file) => Sample::file(file, what.said.path.as_deref(), system)?,
        None => Sample::standard_input(what.said.path.as_deref())?,
    };
    let config = ConsoleConfig {
        codec: CodecConfig::Json { pretty: what.pretty, escape_html: false },
        ..ConsoleConfig::default()
    };
    let console = Console::new(config, parts.output_context.clone());
    let (read, printed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counts = (Arc::clone(&read), Arc::clone(&printed));
    let (output, plan) = only(&mut parts);
    output.output = Box::new(console);
    let look = move |plan: &SourcePlan, _: &Map, batch: &mut Batch| {
        plan.run(batch);
        counts.0.fetch_add(batch.lines(), Ordering::Relaxed);
        counts.1.fetch_add(batch.len() as u64, Ordering::Relaxed);
    };
    if !run(parts, system, &sample, Arc::new(look))? {
        // `| head` has seen enough.
        return Ok(ExitCode::SUCCESS);
    }
    let (read, printed) = (read.load(Ordering::Relaxed), printed.load(Ordering::Relaxed));
    eprint(&format!("{read} events read, {printed} delivered, {} dropped\n", read - printed));
    for failures in plan.failures().iter().filter(|failures| failures.get() > 0) {
        eprint(&format!("`{}` failed on {} events\n", failures.name(), failures.get()));
    }
    Ok(ExitCode::SUCCESS)
}
