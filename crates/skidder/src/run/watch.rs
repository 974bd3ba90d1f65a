//! What a run reports: the endpoint, the periodic line, the ledger at the end.

mod reports;

use super::{Running, RunningOutput, span_of};
use crate::agent::{Agent, BEAT, COMPATIBLE_VERSION};
use crate::logging;
use crate::monitoring::{Monitoring, Otlp};
use crate::problems::{self, Notices};
use crate::system::System;
use crate::terminal::eprint;
use anyhow::{Context as _, Result};
use reports::Reports;
use skidder_log::MetricsConfig;
use skidder_observe::{
    Explain, HttpConfig, OutputSource, Problems, Program, Serving, Sources, Start, Summary,
    SummaryLine, ledger_line, ledger_table, serve,
};
use skidder_os::{Clock, Monotonic};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long requests under way may take when the program ends.
const TASK_END: Duration = Duration::from_secs(2);

/// Watches one run.
pub(crate) struct Watch {
    sources: Arc<Sources>,
    line: SummaryLine,
    /// Whether the periodic line has the numbers.
    logs_metrics: bool,
    line_due: Option<Monotonic>,
    notices: Option<Notices>,
    reports: Reports,
    clock: Arc<dyn Clock>,
    start: Start,
    endpoint: Option<Task>,
    export: Option<Task>,
}

/// The endpoint or the export, until `stop`.
struct Task {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Watch {
    /// Watches `running`; serves the endpoint if it is enabled. `explain` answers `/autodiscover`.
    pub(crate) fn new(
        running: &Running,
        agent: &Agent,
        http: Option<&HttpConfig>,
        metrics: &MetricsConfig,
        explain: Option<Explain>,
        system: &System,
    ) -> Result<Self> {
        let start = Start::now(&*system.clock);
        let kinds: Vec<&str> = running.outputs.iter().map(|output| output.kind).collect();
        let program = Program {
            beat: BEAT.to_owned(),
            name: agent.name.clone(),
            version: COMPATIBLE_VERSION.to_owned(),
            hostname: agent.hostname.clone(),
            uuid: agent.id.clone(),
            ephemeral_id: agent.ephemeral_id.clone(),
            build_commit: None,
            build_time: None,
            output: kinds.join(","),
            start,
        };
        let sources = Arc::new(Sources {
            program: Arc::new(program),
            outputs: running.outputs.iter().map(source_of).collect(),
            reloads: Arc::clone(&running.reloads),
            log: crate::logging::log(),
            lag: Arc::default(),
            explain,
            clock: Arc::clone(&system.clock),
            fs: Arc::clone(&system.fs),
        });
        let endpoint = match http {
            Some(config) if config.enabled => Some(open(running, config, &sources)?),
            _ => None,
        };
        let line = SummaryLine::new(metrics.period);
        Ok(Self {
            sources,
            line,
            logs_metrics: metrics.stats,
            line_due: None,
            notices: None,
            reports: Reports::default(),
            clock: Arc::clone(&system.clock),
            start,
            endpoint,
            export: None,
        })
    }

    /// Ships the numbers, as long as the run's runtime lives.
    pub(crate) fn ship(&self, monitoring: Option<Monitoring>, running: &Running) {
        if let Some(monitoring) = monitoring {
            running.runtime().spawn(monitoring.ship(Arc::clone(&self.sources)));
        }
    }

    /// Exports the numbers, until the end.
    pub(crate) fn export(&mut self, otlp: Option<Otlp>, running: &Running) {
        let Some(otlp) = otlp else { return };
        let (stop, stopped) = oneshot::channel();
        let task = running.runtime().spawn(otlp.ship(Arc::clone(&self.sources), stopped));
        self.export = Some(Task { stop, task });
    }

    /// Exports the last numbers, if that can be done at once.
    pub(crate) fn end_export(&mut self, running: &Running) {
        end(self.export.take(), running, "the last export of our own numbers took too long");
    }

    /// How often to call [`Self::tick`]. `has_line`: the periodic line is wanted; `is_unseen`: the user at the
    /// terminal does not see the log.
    pub(crate) fn ticks(&mut self, has_line: bool, is_unseen: bool) -> Option<Duration> {
        let period = has_line.then(|| self.line.period());
        self.line_due = period.map(|period| self.clock.monotonic() + period);
        self.notices = is_unseen.then(Notices::default);
        let notices = self.notices.as_ref().map(|_| Notices::EVERY);
        Some(look_every(period).min(notices.unwrap_or(Duration::MAX)))
    }

    /// Does the work that is due: a notice of problems, a look at the inputs, the periodic line.
    pub(crate) fn tick(&mut self) {
        if let Some(notices) = &mut self.notices {
            eprint(&notices.text(Problems::default().of_outputs(&self.sources)));
        }
        let now = self.clock.monotonic();
        self.reports.look(&self.sources, now);
        if self.line_due.is_some_and(|due| now >= due) {
            self.line_due = Some(now + self.line.period());
            self.log_metrics();
        }
    }

    /// Logs the periodic line, and the ledger of each output.
    fn log_metrics(&mut self) {
        if self.logs_metrics {
            log_summary(&self.line.next(self.sources.snapshot()));
        }
        for output in &self.sources.outputs {
            let _in = span_of(output.id.as_deref()).entered();
            tracing::info!("{}", ledger_line(&output.settle.total(), output.files()));
        }
    }

    /// Logs the totals and returns the ledgers for the terminal: one for each output, under its id if there are
    /// several.
    pub(crate) fn end(&self) -> String {
        self.reports.look_last(&self.sources);
        if self.logs_metrics {
            log_summary(&SummaryLine::total(&self.sources.snapshot()));
        }
        let duration = self.clock.monotonic().since(self.start.monotonic);
        let mut text = String::new();
        for output in &self.sources.outputs {
            if let Some(id) = &output.id {
                text.push_str(&format!("output `{id}` ({})\n", output.kind));
            }
            text.push_str(&ledger_table(&output.settle.total(), output.files(), duration));
        }
        text
    }

    /// Reports problems at the end: on stderr, and in the log.
    pub(crate) fn report_problems(&self) {
        let is_log_there = logging::is_on_pipe();
        let problems = Problems { failing: Duration::ZERO, ..Problems::default() };
        for problem in problems.of_outputs(&self.sources) {
            if !is_log_there {
                eprint(&problems::lines(&problem));
            }
            if is_log_there || logging::is_elsewhere() {
                let (what, remedy) = (problems::line(&problem), problem.remedy.as_deref());
                tracing::error!(remedy, "at the end: {what}");
            }
        }
        // The log has these already; losses are on stderr, too.
        let of_surveys = Problems::of_surveys(&self.sources, Some(Duration::MAX));
        for problem in of_surveys.into_iter().chain(Problems::of_tasks(&self.sources)) {
            if !is_log_there {
                eprint(&problems::lines(&problem));
            }
        }
    }

    /// Surveys the files of the inputs, in a thread of its own, and logs problems. Those of other inputs are logged as they
    /// begin.
    pub(crate) fn survey(&self) -> Result<()> {
        let sources = Arc::clone(&self.sources);
        let work = move || {
            for problem in Problems::of_surveys(&sources, None) {
                let remedy = problem.remedy.as_deref();
                tracing::warn!(remedy, "{}", problem.what);
            }
        };
        std::thread::Builder::new()
            .name("survey".to_owned())
            .spawn(work)
            .context("cannot start a thread")?;
        Ok(())
    }

    /// Closes the endpoint and waits until its address is free again.
    pub(crate) fn close_endpoint(&mut self, running: &Running) {
        end(self.endpoint.take(), running, "the endpoint did not close in time");
    }
}

/// How often to look at the inputs, so that the periodic line still comes every `period`.
fn look_every(period: Option<Duration>) -> Duration {
    let Some(period) = period else { return Reports::EVERY };
    let looks = period.as_millis().div_ceil(Reports::EVERY.as_millis()).max(1);
    period / u32::try_from(looks).unwrap_or(u32::MAX)
}

/// Stops a task and waits for it, at most [`TASK_END`].
fn end(open: Option<Task>, running: &Running, late: &'static str) {
    let Some(Task { stop, task }) = open else { return };
    if stop.send(()).is_err() {
        tracing::debug!("what was to be ended has ended by itself");
    }
    let ended = running.runtime().block_on(async { timeout(TASK_END, task).await });
    if ended.is_err() {
        tracing::warn!("{late}");
    }
}

fn log_summary(summary: &Summary) {
    let monitoring = serde_json::json!({"metrics": summary.metrics});
    tracing::info!(monitoring = %monitoring, "{}", summary.message);
}

/// The numbers of an output.
fn source_of(output: &RunningOutput) -> OutputSource {
    OutputSource {
        id: output.id.clone(),
        kind: output.kind.to_owned(),
        inputs: output.list.clone(),
        settle: Arc::clone(&output.settle),
        queue: output.queue.clone(),
        disk: output.disk.clone(),
        metrics: Arc::clone(&output.metrics),
        ended: Arc::clone(&output.ended),
        looks: Some(output.looks()),
        registrar: Some(Arc::clone(&output.registrar_metrics)),
        dead_letters: output.dead_letters.as_ref().map(|letters| letters.path().to_owned()),
    }
}

fn open(running: &Running, config: &HttpConfig, sources: &Arc<Sources>) -> Result<Task> {
    let (stop, stopped) = oneshot::channel();
    let shutdown = async move {
        // Either way the run is over.
        drop(stopped.await);
    };
    let Serving { address, task } = running
        .runtime()
        .block_on(serve(config, Arc::clone(sources), shutdown))
        .context("cannot serve metrics")?;
    tracing::debug!(%address, "the endpoint is open");
    Ok(Task { stop, task })
}
