//! `skidder tune`: which sizes of requests suit a server, by trying all of a grid, one after the other, with events of a
//! sample, in an index that is removed again.

mod cells;
mod events;
mod html;
mod report;

use crate::agent::Agent;
use crate::cli::{Global, Tune};
use crate::load::load_settings;
use crate::sample::{Sample, one_input};
use crate::system::System;
use crate::terminal::{eprint, print};
use crate::{logging, run};
use anyhow::{Context as _, Result, bail};
use cells::{Bench, Cell};
use events::Events;
use indicatif::{ProgressBar, ProgressStyle};
use report::Report;
use skidder_outputs::{Trial, TrialSizes};
use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use tokio::runtime::Runtime;
use tracing::Level;

/// What the names of indices for trials begin with.
const INDEX_PREFIX: &str = "skidder-tune-";
/// Exit code after SIGINT, as shells have it.
const INTERRUPTED: u8 = 130;

/// Tries all cells, prints the table, and cleans up whatever happens.
pub(crate) fn tune(what: &Tune, global: &Global, system: &System) -> Result<ExitCode> {
    logging::start(if global.debug.is_some() { Level::DEBUG } else { Level::ERROR });
    let settings = load_settings(global, system)?;
    let agent = Agent::temporary(None, system.clock.wall());
    let (input, output) = (what.input.as_deref(), what.output.as_deref());
    let mut parts = one_input(&settings, system, &agent, input, output)?;
    if parts.output_ids.len() > 1 && output.is_none() {
        bail!("there are several outputs; choose one with `--output ID`");
    }
    let tuning = std::mem::replace(&mut parts.outputs[0].tuning, Err("it is tried already"));
    let index = format!("{INDEX_PREFIX}{}", uuid::Uuid::new_v4().simple());
    let trial = tuning.and_then(|output| output.trial(&index, what.pipelines, what.really_send));
    let trial = match trial {
        Ok(trial) => trial,
        Err(why) => bail!("{why}"),
    };
    // Better now than after some minutes.
    let mut html = match &what.html {
        Some(path) => Some(
            File::create(system.directory.join(path))
                .with_context(|| format!("cannot write `{}`", path.display()))?,
        ),
        None => None,
    };
    let sample = Sample::file(&what.sample, what.said.path.as_deref(), system)?;
    let events = Events::of(parts, system, &sample)?;
    let grid = grid(what, &*trial);
    let most = grid.iter().map(|sizes| trial.output(*sizes).parallelism()).max();
    let runtime =
        crate::runtime::runtime("sockets", run::socket_threads(most.unwrap_or(1), system))?;
    let place = ScratchPlace { trial: &*trial, index: &index, runtime: &runtime, removed: false };
    let bench = Bench { system, runtime: &runtime, events: &events, seconds: what.seconds };
    let stop = signals(trial.has_place().then(|| index.clone()))?;
    let (cells, failed) = try_all(&bench, &place, &grid, &stop);
    let removed = place.remove();
    let report = Report { cells: &cells, events: &events, seconds: what.seconds };
    if !cells.is_empty() {
        print(&report.text())?;
    }
    if let Some(file) = &mut html {
        file.write_all(html::page(&report).as_bytes()).context("cannot write the page")?;
    }
    removed?;
    match failed {
        Some(Ended::Failed(error)) => Err(error),
        Some(Ended::Interrupted) => {
            eprint("interrupted: the table is not complete\n");
            Ok(ExitCode::from(INTERRUPTED))
        }
        None if report.best().is_none() => bail!("no event was delivered: see the last columns"),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Why not all cells were tried.
enum Ended {
    Failed(anyhow::Error),
    Interrupted,
}

/// All combinations; the levels are the innermost, so that similar ones are adjacent.
fn grid(what: &Tune, trial: &dyn Trial) -> Vec<TrialSizes> {
    let mut workers = what.workers.clone();
    if !trial.has_workers() && workers != [1] {
        eprint("`loadbalance` is off: there is one worker, whatever is set\n");
        workers = vec![1];
    }
    let mut grid = Vec::new();
    for &workers in &workers {
        for &events in &what.events {
            grid.extend(what.levels.iter().map(|&level| TrialSizes { workers, events, level }));
        }
    }
    grid
}

fn try_all(
    bench: &Bench<'_>,
    place: &ScratchPlace<'_>,
    grid: &[TrialSizes],
    stop: &Receiver<()>,
) -> (Vec<Cell>, Option<Ended>) {
    // It draws on a terminal only.
    let bar = ProgressBar::new(grid.len() as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut cells = Vec::new();
    // A server is slower at first: compilers, caches. The warm-up is not measured.
    let warm_up = grid.first().into_iter().map(|sizes| (sizes, false));
    let mut ended = None;
    for (sizes, counts) in warm_up.chain(grid.iter().map(|sizes| (sizes, true))) {
        bar.set_message(format!(
            "worker {}, bulk_max_size {}, compression_level {}",
            sizes.workers, sizes.events, sizes.level
        ));
        bar.tick();
        // Each begins with an empty index.
        if let Err(error) = place.renew() {
            ended = Some(Ended::Failed(error));
            break;
        }
        match bench.run(place.trial, *sizes, stop) {
            Ok(Some(cell)) if counts => {
                cells.push(cell);
                bar.inc(1);
            }
            Ok(Some(_)) => {}
            Ok(None) => ended = Some(Ended::Interrupted),
            Err(error) => ended = Some(Ended::Failed(error)),
        }
        if ended.is_some() {
            break;
        }
    }
    bar.finish_and_clear();
    (cells, ended)
}

/// The index of the trial: removed also if something panics.
struct ScratchPlace<'a> {
    trial: &'a dyn Trial,
    index: &'a str,
    runtime: &'a Runtime,
    removed: bool,
}

impl ScratchPlace<'_> {
    fn renew(&self) -> Result<()> {
        self.runtime.block_on(self.trial.remove()).context("cannot remove the index for trials")?;
        self.runtime.block_on(self.trial.prepare()).context("cannot make an index for trials")
    }

    fn remove(mut self) -> Result<()> {
        self.removed = true;
        let removed = self.runtime.block_on(self.trial.remove());
        removed.with_context(|| {
            format!("the index `{}` could not be removed: please do it", self.index)
        })
    }
}

impl Drop for ScratchPlace<'_> {
    fn drop(&mut self) {
        if !self.removed
            && let Err(error) = self.runtime.block_on(self.trial.remove())
        {
            eprint(&format!("the index `{}` could not be removed: {error}\n", self.index));
        }
    }
}

/// Reports the first SIGINT, SIGTERM or SIGHUP. The second ends the program, and prints what it leaves behind.
fn signals(index: Option<String>) -> Result<Receiver<()>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let (send, stop) = channel();
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])
        .context("cannot listen to signals")?;
    let work = move || {
        for (count, _) in signals.forever().enumerate() {
            if count >= 1 {
                if let Some(index) = &index {
                    eprint(&format!("the index `{index}` may be left\n"));
                }
                std::process::exit(i32::from(INTERRUPTED));
            }
            let sent = send.send(());
            tracing::debug!(heard = sent.is_ok(), "a signal asks to stop");
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(work)
        .context("cannot start a thread")?;
    Ok(stop)
}
