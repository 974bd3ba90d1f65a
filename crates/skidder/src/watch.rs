//! What a run tells while it lives: the endpoint, the periodic line, the ledger at the end.

use crate::agent::{Agent, BEAT, COMPATIBLE_VERSION};
use crate::commands::World;
use crate::run::Running;
use anyhow::{Context as _, Result};
use skidder_observe::{
    HttpConfig, InputSource, Program, Serving, Sources, Start, SummaryLine, ledger_line,
    ledger_table, serve,
};
use skidder_os::Clock;
use skidder_read::{InputKind, ReadMetrics};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long requests under way may take when the program ends.
const ENDPOINT_END: Duration = Duration::from_secs(2);

/// Watches one run.
pub(crate) struct Watch {
    sources: Arc<Sources>,
    line: SummaryLine,
    clock: Arc<dyn Clock>,
    start: Start,
    endpoint: Option<OpenEndpoint>,
}

/// The endpoint, until it is told to stop.
struct OpenEndpoint {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// What is known of a run before it starts.
pub(crate) struct About {
    pub(crate) agent: Agent,
    pub(crate) output: &'static str,
    /// The ids and kinds of the inputs.
    pub(crate) inputs: Vec<(String, InputKind)>,
}

impl Watch {
    /// Watches `running`; serves the endpoint if it is enabled.
    pub(crate) fn new(
        running: &Running,
        about: &About,
        http: Option<&HttpConfig>,
        period: Option<Duration>,
        world: &World,
    ) -> Result<Self> {
        let start = Start::now(&*world.clock);
        let program = Program {
            beat: BEAT.to_owned(),
            name: about.agent.name.clone(),
            version: COMPATIBLE_VERSION.to_owned(),
            hostname: about.agent.hostname.clone(),
            uuid: about.agent.id.clone(),
            ephemeral_id: about.agent.ephemeral_id.clone(),
            build_commit: None,
            build_time: None,
            output: about.output.to_owned(),
            start,
        };
        let input =
            |((id, kind), metrics): (&(String, InputKind), &Arc<ReadMetrics>)| InputSource {
                id: id.clone(),
                kind: kind.name().to_owned(),
                metrics: Arc::clone(metrics),
            };
        let sources = Arc::new(Sources {
            program: Arc::new(program),
            inputs: about.inputs.iter().zip(&running.read_metrics).map(input).collect(),
            settle: Arc::clone(&running.settle),
            queue: running.queue.clone(),
            output: Arc::clone(&running.output_metrics),
            looks: Some(running.looks()),
            registrar: Some(Arc::clone(&running.registrar_metrics)),
            clock: Arc::clone(&world.clock),
            fs: Arc::clone(&world.fs),
        });
        let endpoint = match http {
            Some(config) if config.enabled => Some(open(running, config, &sources)?),
            _ => None,
        };
        let line = SummaryLine::new(period.unwrap_or(SummaryLine::PERIOD));
        Ok(Self { sources, line, clock: Arc::clone(&world.clock), start, endpoint })
    }

    /// Logs the periodic line.
    pub(crate) fn tick(&mut self) {
        let summary = self.line.next(self.sources.snapshot());
        let monitoring = serde_json::json!({"metrics": summary.metrics});
        tracing::info!(monitoring = %monitoring, "{}", summary.message);
        let ledger = self.sources.settle.total();
        tracing::info!("{}", ledger_line(&ledger, self.files()));
    }

    /// Logs the totals and gives the ledger for the terminal.
    pub(crate) fn end(&self) -> String {
        let summary = SummaryLine::total(&self.sources.snapshot());
        let monitoring = serde_json::json!({"metrics": summary.metrics});
        tracing::info!(monitoring = %monitoring, "{}", summary.message);
        let duration = self.clock.monotonic().since(self.start.monotonic);
        ledger_table(&self.sources.settle.total(), self.files(), duration)
    }

    /// Closes the endpoint and waits until its address is free again.
    pub(crate) fn close_endpoint(&mut self, running: &Running) {
        let Some(OpenEndpoint { stop, task }) = self.endpoint.take() else { return };
        if stop.send(()).is_err() {
            tracing::debug!("the endpoint has ended by itself");
        }
        let ended = running.runtime().block_on(async { timeout(ENDPOINT_END, task).await });
        if ended.is_err() {
            tracing::warn!("the endpoint did not close in time");
        }
    }

    /// Files that match, as the last scans saw them.
    fn files(&self) -> u64 {
        self.sources.inputs.iter().map(|input| input.metrics.files_matched.get()).sum()
    }
}

fn open(running: &Running, config: &HttpConfig, sources: &Arc<Sources>) -> Result<OpenEndpoint> {
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
    Ok(OpenEndpoint { stop, task })
}
