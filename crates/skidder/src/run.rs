//! Running a checked configuration: start, watch, drain with a deadline, account.

mod changes;
mod discovery;
mod ending;
mod inputs;
mod left_queues;
mod limits;
mod outcome;
mod output;
mod output_changes;
mod reload;
mod remembered;
mod trimming;
mod watch;

pub(crate) use ending::Shortfall;
pub(crate) use outcome::Outcome;
pub(crate) use output::RunningOutput;
pub(crate) use reload::Reloader;
pub(crate) use watch::Watch;

use crate::agent::Agent;
use crate::assemble::Parts;
use crate::cli::FailOn;
use crate::logging;
use crate::outputs::OutputParts;
use crate::page_token;
use crate::program_pages;
use crate::runtime::runtime;
use crate::signals::Request;
use crate::startup::Awaited;
use crate::system::System;
use crate::terminal::eprint;
use anyhow::Result;
use ending::Files;
use inputs::Tasks;
use limits::{open_files_max, refuse_closed_stdout};
use outcome::{Settles, Undelivered};
use output::{Start, open_registry};
use skidder_autodiscover::Autodiscover;
use skidder_event::DropReason;
use skidder_net::Sockets;
use skidder_observe::{Reloads, grouped, span_text};
use skidder_os::{Clock, Fs, Monotonic, Timestamp};
use skidder_pipeline::{Patience, Settle};
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::runtime::Runtime;
use tracing::Span;
use trimming::Trimming;

/// Threads for sockets and encoding of an output, at most. There is no more than one for each request under way:
/// passing work between threads costs more than it gains. For the same reason outputs do not share them: beside one
/// that is stuck, the work of another one would move between its own thread and the idle one, which cost a tenth.
const SOCKET_THREADS_MAX: usize = 4;

/// How long inputs may take until they have taken the sockets of systemd.
const UNTAKEN_AFTER: Duration = Duration::from_secs(10);

/// How long the runtime may take to let go of its tasks.
const RUNTIME_END: Duration = Duration::from_secs(1);

/// Exit code of a run that has lost events: they were in a damaged place of the disk queue, or
/// all of it is gone, or its state.
const LOST: u8 = 6;

/// What the main thread waits for.
enum Happened {
    /// SIGINT or SIGTERM, or SIGHUP where nothing is read again.
    Signal,
    /// SIGHUP: read the configuration again.
    Reload,
    /// An output has finished a change of its inputs: the old ones have ended, the new ones have begun.
    InputsChanged,
    /// Watchers of autodiscover have something to report.
    Discovered,
    /// Inputs of autodiscover with these keys have ended for one output, and others have begun.
    Exchanged(Vec<String>),
    /// With `once`: everything that was there is read for the output with this number.
    ReadOnce(usize),
    /// The output with this number has ended: its queue is closed and empty, or it cannot go on.
    OutputEnded(usize),
}

/// Everything that runs, for observers.
pub(crate) struct Running {
    /// At least one.
    pub(crate) outputs: Vec<RunningOutput>,
    /// Of each output.
    runtimes: Vec<Runtime>,
    happened: Receiver<Happened>,
    send: Sender<Happened>,
    /// Outputs whose inputs are being changed.
    changing: usize,
    /// The outcomes of reloads.
    pub(crate) reloads: Arc<Reloads>,
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    shutdown_timeout: Duration,
    /// With `once`: the files, when everything was read.
    pub(crate) files: Files,
    interrupt: Arc<AtomicBool>,
    /// The inputs that are tasks.
    tasks: Tasks,
    sockets: Sockets,
    /// When sockets of systemd must have been taken; nothing if it was looked.
    untaken_at: Option<Monotonic>,
}

/// Runs until a signal comes or, without a reloader, until everything that is there is delivered.
pub(crate) fn run(
    mut parts: Parts,
    system: &System,
    mut reloader: Option<Reloader>,
    fail_on: &[FailOn],
) -> Result<ExitCode> {
    let once = reloader.is_none();
    let (mut http, data) = (parts.http.clone(), parts.data.clone());
    let (metrics, agent) = (parts.log.metrics, parts.agent.clone());
    let (monitoring, otlp) = (parts.monitoring.clone(), parts.otlp.clone());
    let discovery = take_discovery(&mut parts, once);
    let ended_since = ended_since(&agent, &*system.clock);
    let mut running = Running::start(parts, system, once)?;
    // Behind the lock of the data directory.
    http.auth.own = page_token::token(&*system.fs, &data, &http);
    let explain = discovery.clone().map(discovery::explain);
    let mut watch = Watch::new(&running, &agent, Some(&http), &metrics, explain, system)?;
    watch.ship(monitoring, &running);
    watch.export(otlp, &running);
    running.log_start(once);
    system.startup.step(|| "endpoint opened".to_owned());
    watch.survey()?;
    let report =
        system.startup.report_in_background(running.outputs.iter().flat_map(awaited).collect());
    let is_watched = once || std::io::stderr().is_terminal();
    system.service.ready();
    let period = watch.ticks(metrics.enabled, is_watched && logging::is_elsewhere());
    if let (Some(reloader), Some(discovery)) = (&mut reloader, discovery) {
        reloader.discover(discovery, ended_since, &running)?;
    }
    running.watch(reloader.as_mut(), period, |_| watch.tick());
    system.service.stopping();
    watch.close_endpoint(&running);
    watch.end_export(&running);
    let settle = |of: &RunningOutput| (of.id.clone(), of.kind, Arc::clone(&of.settle));
    let settles: Vec<_> = running.outputs.iter().map(settle).collect();
    let mut shortfall = Shortfall::of_files(std::mem::take(&mut running.files));
    let may_have_lost = running.outputs.iter().any(RunningOutput::may_have_lost);
    shortfall.left = running.outputs.iter().map(|output| output.left.events).sum();
    shortfall.queues = running.outputs.iter().flat_map(RunningOutput::queue_lines).collect();
    let spoiled: Vec<u64> = running.outputs.iter().map(RunningOutput::spoiled).collect();
    let outcome = running.end(once);
    let (failed, lost) = (&outcome.failed, &outcome.lost);
    for ((.., settle), spoiled) in settles.iter().zip(spoiled) {
        shortfall.add(&settle.total(), spoiled);
    }
    let failures = failed.iter().map(|why| format!("error: {why}\n"));
    let losses = lost.iter().map(|what| format!("! {what}\n"));
    eprint(&failures.chain(losses).collect::<String>());
    let good = outcome.saved && ((outcome.settled && failed.is_empty()) || !once);
    if let Some(report) = report {
        // It only waited for scans, which are over.
        drop(report.join());
    }
    // Text for the terminal must not mix with events.
    let kind = if settles.iter().any(|(_, kind, _)| *kind == "console") { "console" } else { "" };
    crate::terminal::print_beside(kind, &watch.end())?;
    outcome.log_undelivered();
    if once || !good {
        watch.report_problems();
    }
    shortfall.report(once);
    let lost = |settle: &Settle| settle.total().dropped().get(DropReason::QueueDamaged) > 0;
    Ok(match good {
        _ if may_have_lost || settles.iter().any(|(_, _, settle)| lost(settle)) => LOST.into(),
        false => ExitCode::FAILURE,
        true if once => shortfall.code(fail_on),
        true => ExitCode::SUCCESS,
    })
}

/// What makes inputs while the program runs.
fn take_discovery(parts: &mut Parts, once: bool) -> Option<Arc<Mutex<Autodiscover>>> {
    let machine = parts.discovery.take()?;
    if once {
        tracing::warn!(
            "`filebeat.autodiscover` makes no inputs with `--once`: it does not wait for containers"
        );
    }
    Some(Arc::new(Mutex::new(machine)))
}

/// How long ago a container may have ended that is read at the start.
const ENDED_MAX: Duration = Duration::from_hours(24);

/// Since when containers that have ended are of interest: some of their lines may be unread, or without a verdict. None
/// has ended since the first start when that is now.
fn ended_since(agent: &Agent, clock: &dyn Clock) -> Timestamp {
    let ago = i64::try_from(ENDED_MAX.as_nanos()).unwrap_or(i64::MAX);
    agent.first_start.max(Timestamp(clock.wall().0.saturating_sub(ago)))
}

/// The inputs of an output, whose first scans `--trace-startup` waits for.
fn awaited(output: &RunningOutput) -> impl Iterator<Item = Awaited> {
    let of_files = output.inputs.iter().filter(|input| input.reads_files());
    of_files.map(|input| Awaited {
        name: format!("`{}`", input.id),
        looks: output.looks(),
        number: input.slot,
    })
}

/// Log lines inside this span carry the output's id, if there are several.
pub(crate) fn span_of(id: Option<&str>) -> Span {
    match id {
        Some(id) => tracing::error_span!("output", id),
        None => Span::none(),
    }
}

/// How many threads for sockets are of use for so many requests under way.
pub(crate) fn socket_threads(parallelism: usize, system: &System) -> usize {
    parallelism.min(system.cores).min(SOCKET_THREADS_MAX)
}

/// Forwards signals to the main thread.
fn listen(
    system: &System,
    once: bool,
    send: Sender<Happened>,
    settles: Arc<OnceLock<Settles>>,
) -> Result<()> {
    system.caught.listen(!once, Arc::clone(&system.clock), move |request| {
        // The main thread may be gone already.
        drop(send.send(match request {
            Request::Reload => Happened::Reload,
            Request::Stop => Happened::Signal,
            Request::Leave => {
                // A second signal does not wait for anything but the log.
                outcome::log_given_up(settles.get().into_iter().flatten());
                logging::flush();
                std::process::exit(1);
            }
        }));
    })
}

impl Running {
    /// Opens the registries and starts everything.
    pub(crate) fn start(parts: Parts, system: &System, once: bool) -> Result<Self> {
        // Settings are read; nothing is open yet.
        program_pages::give_back();
        // An output without inputs may get some later.
        let more = parts.may_get_inputs && !once;
        let outputs: Vec<OutputParts> =
            parts.outputs.into_iter().filter(|output| more || !output.inputs.is_empty()).collect();
        refuse_closed_stdout(&outputs)?;
        let (send, happened) = channel();
        let start = Start {
            system,
            send: &send,
            open_files: (open_files_max()? / outputs.len().max(1)).max(1),
            workers: parts.workers,
            flush: parts.flush,
            once,
        };
        let mut registries = Vec::with_capacity(outputs.len());
        for output in &outputs {
            let _in = span_of(output.id.as_deref()).entered();
            registries.push(open_registry(&system.fs, &system.clock, &output.place.registry)?);
            system.startup.step(|| format!("registry {} opened", output.place.registry.display()));
        }
        let settles = Arc::default();
        listen(system, once, send.clone(), Arc::clone(&settles))?; // Before anything is received.
        let mut tasks = Tasks::of(&parts.agent, system, once, parts.workers);
        tasks.expect(outputs.iter().flat_map(|output| &output.inputs));
        let mut started = Vec::with_capacity(outputs.len());
        let mut runtimes = Vec::with_capacity(outputs.len());
        for (number, (output, registry)) in outputs.into_iter().zip(registries).enumerate() {
            let span = span_of(output.id.as_deref());
            let parallelism = output.output.parallelism();
            let runtime = runtime("sockets", socket_threads(parallelism, system))?;
            started.push(
                span.in_scope(|| start.output(number, output, registry, &runtime, &mut tasks))?,
            );
            runtimes.push(runtime);
        }
        let of = |output: &RunningOutput| (output.id.clone(), Arc::clone(&output.settle));
        settles.get_or_init(|| started.iter().map(of).collect());
        system.startup.step(|| "outputs and readers started".to_owned());
        // What opening registries and connections took is not needed again either.
        program_pages::give_back();
        Ok(Self {
            files: Files::of(&started),
            outputs: started,
            runtimes,
            happened,
            send,
            changing: 0,
            reloads: Arc::default(),
            fs: Arc::clone(&system.fs),
            clock: Arc::clone(&system.clock),
            shutdown_timeout: parts.shutdown_timeout,
            interrupt: Arc::clone(&system.interrupt),
            tasks,
            sockets: system.sockets.clone(),
            untaken_at: Some(system.clock.monotonic() + UNTAKEN_AFTER),
        })
    }

    /// The only output, where there cannot be several.
    pub(crate) fn first(&self) -> &RunningOutput {
        &self.outputs[0]
    }

    /// The runtime of the first output, where what belongs to all of them runs too.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtimes[0]
    }

    /// Waits for the end, calling `tick` every `period`. Without a reloader everything is read once.
    pub(crate) fn watch(
        &mut self,
        mut reloader: Option<&mut Reloader>,
        period: Option<Duration>,
        mut tick: impl FnMut(&Self),
    ) {
        let once = reloader.is_none();
        let period = period.unwrap_or(Duration::from_hours(1));
        let mut due = self.clock.monotonic() + period;
        let mut trimming = Trimming::new(Arc::clone(&self.fs), self.clock.monotonic());
        loop {
            let now = self.clock.monotonic();
            if now >= due {
                tick(self);
                due = now + period;
            }
            let free = || self.outputs.iter().for_each(|output| output.shared.give_back());
            trimming.step(now, || self.is_any_at_rest(), free);
            let mut wake = due.min(trimming.due());
            if let Some(at) = self.look_for_untaken(now) {
                wake = wake.min(at);
            }
            if let Some(reloader) = &mut reloader {
                reloader.step(self);
                wake = wake.min(reloader.due());
            }
            match self.happened.recv_timeout(wake.since(now)) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Happened::ReadOnce(number)) if once => {
                    // Reading is over; what ends a run comes instead.
                    program_pages::give_back();
                    self.files.look(&self.outputs[number]);
                    // All turns are over; the workers finish the queue, then the output ends.
                    let limit = self.shutdown_timeout;
                    let patience = Patience { limit, interrupt: &self.interrupt };
                    self.outputs[number].stop_reading(patience);
                }
                Ok(Happened::Signal) => {
                    tracing::info!("a signal asks to stop");
                    self.report_waiting();
                    return;
                }
                Ok(Happened::Reload) => {
                    tracing::info!("a signal asks to read the configuration again");
                    if let Some(reloader) = &mut reloader {
                        reloader.ask();
                    }
                }
                Ok(Happened::InputsChanged) => self.inputs_changed(),
                // The reloader takes them with its next step.
                Ok(Happened::Discovered) => {}
                Ok(Happened::Exchanged(keys)) => {
                    if let Some(reloader) = &mut reloader {
                        reloader.exchanged(&keys);
                    }
                }
                Ok(Happened::OutputEnded(number)) => {
                    if self.output_ended(number, once) {
                        return;
                    }
                }
                // Only `once` sends the first.
                Ok(Happened::ReadOnce(_)) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Warns once of sockets of systemd that no input has taken in time; returns when that is.
    fn look_for_untaken(&mut self, now: Monotonic) -> Option<Monotonic> {
        let at = self.untaken_at?;
        if now < at {
            return Some(at);
        }
        self.untaken_at = None;
        for socket in self.sockets.untaken() {
            tracing::warn!(socket, "systemd passes this socket, and no input has its address");
        }
        None
    }

    /// Logs that the outputs run.
    fn log_start(&self, once: bool) {
        for output in &self.outputs {
            let _in = span_of(output.id.as_deref()).entered();
            let inputs = output.inputs.len();
            tracing::info!(output = output.kind, inputs, once, "skidder is running");
        }
    }

    /// Prints what the shutdown waits for, for the user who pressed Ctrl-C.
    fn report_waiting(&self) {
        let in_flight: u64 = self.outputs.iter().map(|output| output.settle.in_flight()).sum();
        if in_flight > 0 && std::io::stderr().is_terminal() {
            let span = span_text(self.shutdown_timeout);
            eprint(&format!(
                "\r\x1b[Kwaiting up to {span} for answers to {} events; Ctrl-C again to leave\n",
                grouped(in_flight)
            ));
        }
    }

    /// Whether an output has nothing in flight.
    fn is_any_at_rest(&self) -> bool {
        self.outputs.iter().any(|output| output.settle.in_flight() == 0)
    }

    /// Records the end of an output; returns whether it was the last one.
    fn output_ended(&self, number: usize, once: bool) -> bool {
        let output = &self.outputs[number];
        output.ended.store(true, Ordering::Relaxed);
        if !once && self.outputs.len() > 1 {
            let _in = span_of(output.id.as_deref()).entered();
            tracing::error!(
                "an output has ended by itself; what it has not taken stays in the files, and the others go on"
            );
        }
        self.outputs.iter().all(RunningOutput::has_ended)
    }

    /// Stops reading, waits for verdicts as long as is allowed, saves the cursors.
    pub(crate) fn end(mut self, once: bool) -> Outcome {
        let patience = Patience { limit: self.shutdown_timeout / 2, interrupt: &self.interrupt };
        stop_reading(&mut self.outputs, patience);
        let deadline = self.clock.monotonic() + self.shutdown_timeout;
        let mut settled = true;
        for output in &self.outputs {
            // No more verdicts can come, or none is missing.
            let over = output.has_ended() || (once && output.settle.in_flight() == 0);
            let left = deadline.since(self.clock.monotonic());
            settled &= output.drain(if over { Duration::ZERO } else { left });
        }
        let (failed, lost) = (self.tasks.failed(), self.tasks.lost_before());
        for runtime in self.tasks.into_runtime().into_iter().chain(self.runtimes) {
            runtime.shutdown_timeout(if settled { RUNTIME_END } else { Duration::ZERO });
        }
        let (mut saved, mut undelivered) = (true, Vec::new());
        for output in self.outputs {
            let _in = span_of(output.id.as_deref()).entered();
            let (id, settle) = (output.id.clone(), Arc::clone(&output.settle));
            saved &= output.finish();
            undelivered.push(Undelivered::of(id, &settle));
        }
        Outcome { settled, saved, failed, lost, undelivered }
    }
}

/// Stops the reading for all outputs at the same time: each may take as long as `read_until_eof` allows.
fn stop_reading(outputs: &mut [RunningOutput], patience: Patience<'_>) {
    let Some((last, others)) = outputs.split_last_mut() else { return };
    std::thread::scope(|scope| {
        for output in others {
            scope.spawn(move || output.stop_reading(patience));
        }
        last.stop_reading(patience);
    });
}
