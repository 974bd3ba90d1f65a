//! `output.otlp`: logs to a collector of OpenTelemetry, or any other OTLP server, over gRPC or over HTTP.
//!
//! Every worker has a connection of its own and one request under way on it. The answer settles the request as a
//! whole: OTLP has no verdict for a single event. What could not be sent goes back, for this worker or another.
//!
//! | module | does |
//! |---|---|
//! | `config` | reads the settings |
//! | `encode`, `record`, `fields`, `values`, `wire` | events to the bytes of a request |
//! | `resource`, `severity` | names and numbers of OpenTelemetry for those of ECS |
//! | `body` | compresses it |
//! | `client`, `http2` | brings it to a server |
//! | `answer`, `messages` | reads the answer |
//! | `worker`, `size` | gives events their verdict |
//!
//! Bound: one share of events ready for all workers, and for each worker one request of `bulk_max_bytes` with its
//! compressed form.

mod answer;
mod body;
mod check;
mod client;
mod config;
mod encode;
mod fields;
mod messages;
mod record;
mod resource;
mod severity;
mod size;
#[cfg(test)]
mod testing;
mod values;
mod wire;
mod worker;

pub use client::TargetError;
pub use config::{Compression, Config, OTLP, Protocol};
#[doc(hidden)]
pub use encode::ExportBench;

use body::Packer;
use client::Target;
use encode::RequestWriter;
use size::Size;
use skidder_config::Section;
use skidder_outputs::{
    Backoff, Built, Context, Failures, QueueSettings, Refuser, Supply, run_all, share_out,
};
use skidder_pipeline::{Feed, Output, OutputFuture, TakeLimits};
use skidder_tls::{TlsClient, TlsError};
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::JoinSet;
use tracing::Instrument as _;
use worker::Worker;

/// Most bytes of messages that are taken together.
const TAKE_BYTES_MAX: usize = 8 << 20;

/// Why the output cannot be set up. All are mistakes of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A host needs encryption that is turned off.
    #[error("`{0}` needs TLS, but `ssl.enabled` is false")]
    TlsOff(String),
    /// A file or setting of `ssl` is wrong.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A request to the host cannot be made.
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl SetupError {
    /// The key to complain about, inside `output.otlp`.
    pub fn setting(&self) -> &'static str {
        match self {
            Self::TlsOff(_) => "ssl.enabled",
            Self::Tls(error) => error.setting(),
            Self::Target(_) => "hosts",
        }
    }

    /// Reports it to the section of the output.
    pub fn report(&self, section: &Section<'_>) {
        match self {
            Self::Tls(error) => error.report(section),
            error => section.problem_named(error.setting(), error),
        }
    }
}

/// Why `skidder tune` does not try it.
const NO_TRIAL: &str =
    "a collector has no place for trials: what it is sent goes the way of all logs";

/// The output, ready to run, on a tokio runtime with time and I/O enabled.
#[derive(Clone, Debug)]
pub struct Otlp {
    config: Arc<Config>,
    context: Context,
    targets: Vec<Arc<Target>>,
}

impl Otlp {
    /// Reads certificates and prepares requests; connects to nothing.
    pub fn new(config: Config, context: Context) -> Result<Self, SetupError> {
        let mut tls = None;
        if let Some(host) = config.hosts.iter().find(|host| host.https) {
            if !config.tls.enabled {
                return Err(SetupError::TlsOff(host.to_string()));
            }
            tls = Some(TlsClient::new(&config.tls, Arc::clone(&context.fs))?);
        }
        let target = |host| Target::new(host, &config, tls.as_ref()).map(Arc::new);
        let targets: Result<_, TargetError> = config.hosts.iter().map(target).collect();
        Ok(Self { targets: targets?, config: Arc::new(config), context })
    }

    /// The hosts of each worker.
    fn workers(&self) -> Vec<Vec<Arc<Target>>> {
        share_out(&self.targets, self.config.workers, self.config.loadbalance)
    }

    fn worker(
        &self,
        targets: Vec<Arc<Target>>,
        supply: &Arc<Supply>,
        refuser: &Arc<Refuser>,
        feed: &Feed,
        seed: u64,
    ) -> Worker {
        let config = &self.config;
        Worker {
            current: seed as usize % targets.len().max(1),
            targets,
            connection: None,
            supply: Arc::clone(supply),
            writer: RequestWriter::new(Arc::clone(&config.naming), &self.context),
            packer: Packer::new(config.compression, config.protocol == Protocol::Grpc),
            plain: Vec::new(),
            events_max: config.bulk_max_size,
            size: Size::new(config.bulk_max_bytes),
            broken: 0,
            timeout: config.timeout,
            refuser: Arc::clone(refuser),
            metrics: Arc::clone(&feed.metrics),
            clock: Arc::clone(&feed.clock),
            backoff: Backoff::new(config.backoff_init, config.backoff_max, seed),
            failures: Failures::default(),
            partials_logged: Failures::default(),
            remarks_logged: Failures::default(),
        }
    }

    async fn work(self, feed: Feed) {
        let supply = Arc::new(Supply::default());
        let refuser = Arc::new(Refuser::new("otlp", &feed));
        let seed = feed.clock.wall().0 as u64;
        let mut tasks = JoinSet::new();
        for (worker, targets) in self.workers().into_iter().enumerate() {
            let seed = seed.wrapping_add(worker as u64);
            let worker = self.worker(targets, &supply, &refuser, &feed, seed);
            tasks.spawn(worker.run().in_current_span());
        }
        let limits = TakeLimits { events: self.config.bulk_max_size, bytes: TAKE_BYTES_MAX };
        let queue = feed.queue.clone();
        let feeding = async move { supply.feed(&queue, limits).await };
        tasks.spawn(feeding.in_current_span());
        run_all(tasks).await;
    }
}

/// `output.otlp` from its section. Mistakes go to the section's problems.
pub fn build(section: &Section<'_>, context: &Context) -> Option<Built> {
    match Otlp::new(Config::read(section)?, context.clone()) {
        Ok(output) => {
            let queue = QueueSettings::default();
            Some(Built { output: Box::new(output), tuning: Err(NO_TRIAL), queue })
        }
        Err(error) => {
            error.report(section);
            None
        }
    }
}

impl Output for Otlp {
    fn kind(&self) -> &'static str {
        "otlp"
    }

    fn parallelism(&self) -> usize {
        self.workers().len()
    }

    fn check<'a>(
        &'a self,
        report: &'a mut (dyn FnMut(&str) + Send),
    ) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        Box::pin(Otlp::check(self, report))
    }

    fn run(self: Box<Self>, feed: Feed) -> OutputFuture {
        Box::pin(self.work(feed))
    }
}

#[cfg(test)]
mod tests;
