//! `output.elasticsearch`: bulk requests to Elasticsearch or OpenSearch.
//!
//! Every worker has two tasks. One takes events and encodes the next request; the other sends
//! requests, one at a time, over a connection of its own, and gives each event the server's verdict:
//!
//! ```text
//! queue ─▶ encode ─▶ ready (one request a worker) ─▶ send ─▶ server
//!                       ▲                              │
//!                       └── what a host did not take ──┘
//! ```
//!
//! Bound: two requests a worker, each of at most `bulk_max_bytes` and its compressed form.

mod action;
mod answer;
mod ask;
mod build;
mod check;
mod client;
mod config;
mod dead_index;
mod declared;
mod encode;
mod ids;
mod manage;
mod outcome;
mod preset;
mod read;
mod ready;
mod request;
mod server;
mod setup;
#[cfg(test)]
mod testing;
mod trial;
mod tuner;
mod worker;

pub use ask::AskError;
pub use build::build;
pub use config::{Auto, Config, Credentials, Steering};
pub use declared::ELASTICSEARCH;
#[doc(hidden)]
pub use encode::BulkBench;
#[doc(hidden)]
pub use outcome::{AnswerBench, WaitingRequest};
pub use preset::Preset;
pub use read::read;
pub use read::{DEFAULT_PORT, parse_host};
pub use server::TargetError;
pub use setup::{
    Enabled, Lifecycle, Pipeline, PipelineGroup, PipelineSource, Pipelines, SETUP,
    SETUP_DASHBOARDS, SETUP_KIBANA, Setup, Template,
};
pub use skidder_tls::{Pem, TlsError, TlsSettings, VerificationMode};

use crate::tuner::{Bounds, Sizes, Tuner};
use client::Client;
use encode::BulkEncoder;
use ready::Ready;
use request::BodyWriter;
use server::Target;
use setup::{Installer, PipelineLoader};
use skidder_config::Section;
use skidder_kerberos::LoginError;
use skidder_net::{Route, WithoutTls};
use skidder_outputs::Buffers;
use skidder_outputs::{Backoff, Context, Failures, Refuser};
use skidder_pipeline::{Feed, Output, OutputFuture, SetUp};
use skidder_tls::TlsClient;
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::JoinSet;
use tracing::Instrument as _;
use worker::{Encoding, Sender};

/// Why the output cannot be set up. All are mistakes of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// No server is named.
    #[error("`output.elasticsearch.hosts` is empty")]
    NoHosts,
    /// A host needs encryption that is turned off.
    #[error("`{0}` needs TLS, but `ssl.enabled` is false")]
    TlsOff(String),
    /// A file or setting of `ssl` is wrong.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A request to the host cannot be made.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The login as configured in `kerberos` fails.
    #[error(transparent)]
    Kerberos(#[from] LoginError),
}

impl SetupError {
    /// The key to complain about, inside `output.elasticsearch`.
    pub fn setting(&self) -> &'static str {
        match self {
            Self::NoHosts | Self::Target(_) => "hosts",
            Self::TlsOff(_) => "ssl.enabled",
            Self::Tls(error) => error.setting(),
            Self::Kerberos(_) => "kerberos",
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

/// The output, ready to run, on a tokio runtime with time and I/O enabled.
#[derive(Clone, Debug)]
pub struct Elasticsearch {
    config: Arc<Config>,
    context: Context,
    targets: Vec<Arc<Target>>,
    tls: Option<Arc<TlsClient>>,
    installer: Option<Arc<Installer>>,
    pipelines: Option<Arc<PipelineLoader>>,
}

impl Elasticsearch {
    /// Reads certificates and prepares requests; connects to nothing.
    pub fn new(config: Config, context: Context) -> Result<Self, SetupError> {
        if config.hosts.is_empty() {
            return Err(SetupError::NoHosts);
        }
        let mut tls = None;
        if let Some(host) = config.hosts.iter().find(|host| host.https) {
            if !config.tls.enabled {
                return Err(SetupError::TlsOff(host.to_string()));
            }
            tls = Some(TlsClient::new(&config.tls, Arc::clone(&context.fs))?);
        } else if config.tls.enabled && config.tls.names_certificates() {
            // Checked as for https, so that a change of `hosts` brings no surprise.
            TlsClient::new(&config.tls, Arc::clone(&context.fs))?;
        }
        let kerberos = config.kerberos.as_ref().map(skidder_kerberos::Login::new);
        let kerberos = kerberos.transpose()?.map(Arc::new);
        let targets: Result<_, TargetError> = config
            .hosts
            .iter()
            .map(|host| {
                let proxy = config.proxy.of(host.https, &host.address());
                let (proxy, kerberos) = (proxy.as_deref(), kerberos.as_ref());
                Ok(Arc::new(Target::new(host, &config, &context, proxy, kerberos)?))
            })
            .collect();
        let installer =
            config.setup.clone().map(|setup| Arc::new(Installer::new(setup, context.clone())));
        Ok(Self {
            targets: targets?,
            config: Arc::new(config),
            context,
            tls,
            installer,
            pipelines: None,
        })
    }

    /// The same with ingest pipelines; with `in_run` the first connection of a run loads them.
    #[must_use]
    pub fn with_pipelines(self, source: Option<Arc<dyn PipelineSource>>, in_run: bool) -> Self {
        let pipelines = source.map(|source| Arc::new(PipelineLoader::new(source, in_run)));
        Self { pipelines, ..self }
    }

    fn client(&self, target: &Arc<Target>, feed: &Feed) -> Client {
        Client {
            target: Arc::clone(target),
            route: self.route(target),
            timeout: self.config.timeout,
            idle: self.config.idle_connection_timeout,
            installer: self.installer.clone(),
            pipelines: self.pipelines.clone(),
            version_min: (!self.config.allow_older_versions).then(|| self.context.version.clone()),
            metrics: Arc::clone(&feed.metrics),
            clock: Arc::clone(&feed.clock),
            connection: None,
            last_used: feed.clock.monotonic(),
            known: None,
            logged: None,
            answer: Vec::new(),
        }
    }

    /// The way to a server.
    fn route(&self, target: &Target) -> Route {
        let host = target.host.address();
        let proxy = self.config.proxy.of(target.host.https, &host);
        let tls = self.tls.clone().filter(|_| target.host.https);
        Route { host, proxy, tls, http2: false, without_tls: WithoutTls::Http }
    }

    /// The hosts of each worker.
    fn workers(&self) -> Vec<Vec<Arc<Target>>> {
        if !self.config.loadbalance {
            return vec![self.targets.clone()];
        }
        let each = |_| self.targets.iter().map(|target| vec![Arc::clone(target)]);
        (0..self.workers_max()).flat_map(each).collect()
    }

    /// Most requests under way at once to a host.
    fn workers_max(&self) -> usize {
        match (self.config.loadbalance, self.config.auto.workers) {
            (false, _) => 1,
            (true, true) => Config::WORKERS_MAX,
            (true, false) => self.config.workers.max(1),
        }
    }

    /// The tuner of sizes that are `auto`.
    fn tuner(&self, feed: &Feed) -> Tuner {
        let Config { workers, bulk_max_size, compression_level, auto, .. } = *self.config;
        let sizes = Sizes {
            workers: if auto.workers { 1 } else { workers.clamp(1, self.workers_max()) },
            events: bulk_max_size,
            level: compression_level,
        };
        let bounds = Bounds {
            workers: (sizes.workers, self.workers_max()),
            events: if auto.events { Config::AUTO_EVENTS } else { (bulk_max_size, bulk_max_size) },
            plain: auto.level,
            hosts: self.workers().len() / self.workers_max(),
            request_bytes: self.config.bulk_max_bytes as u64,
            // The encoded form is longer than the queued one; both together stay within a few times of it.
            bytes: (feed.queue.limits().bytes as u64).saturating_mul(4),
        };
        Tuner::new(bounds, sizes, feed)
    }

    async fn work(self, feed: Feed) {
        let workers = self.workers();
        let tuner = Arc::new(self.tuner(&feed));
        let hosts = workers.len() / self.workers_max();
        let ready = Arc::new(Ready::new(workers.len()));
        let buffers = Buffers::default();
        let refuser = Arc::new(Refuser::new("elasticsearch", &feed));
        let seed = feed.clock.wall().0 as u64;
        let config = &self.config;
        let mut tasks = JoinSet::new();
        for (worker, targets) in workers.iter().enumerate() {
            let encoder = BulkEncoder::new(config, &self.context, buffers.clone());
            let number = worker / hosts;
            let encoding = worker::encode(Encoding {
                encoder,
                number,
                hosts,
                tuner: Arc::clone(&tuner),
                bytes_max: config.bulk_max_bytes,
                queue: feed.queue.clone(),
                ready: Arc::clone(&ready),
            });
            tasks.spawn(encoding.in_current_span());
            let seed = seed.wrapping_add(worker as u64);
            let sender = Sender {
                clients: targets.iter().map(|target| self.client(target, &feed)).collect(),
                current: seed as usize % targets.len(),
                number,
                tuner: Arc::clone(&tuner),
                ready: Arc::clone(&ready),
                writer: BodyWriter::new(config.compression_level, buffers.clone()),
                refuser: Arc::clone(&refuser),
                metrics: Arc::clone(&feed.metrics),
                backoff: Backoff::new(config.backoff_init, config.backoff_max, seed),
                failures: Failures::default(),
                idle: config.idle_connection_timeout,
                delivered: Vec::new(),
                dead_letter_index: config.dead_letter_index.as_deref().map(Arc::from),
            };
            tasks.spawn(sender.run().in_current_span());
        }
        tokio::select! {
            () = skidder_outputs::run_all(tasks) => {}
            () = buffers.give_back_unused() => {}
        }
    }
}

impl Output for Elasticsearch {
    fn kind(&self) -> &'static str {
        "elasticsearch"
    }

    fn parallelism(&self) -> usize {
        let hosts = if self.config.loadbalance { self.config.hosts.len() } else { 1 };
        hosts * self.workers_max()
    }

    fn check<'a>(
        &'a self,
        report: &'a mut (dyn FnMut(&str) + Send),
    ) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        Box::pin(Elasticsearch::check(self, report))
    }

    fn set_up<'a>(
        &'a self,
        what: SetUp,
        report: &'a mut (dyn FnMut(&str) + Send),
    ) -> Option<Pin<Box<dyn Future<Output = bool> + 'a>>> {
        Some(Box::pin(Elasticsearch::set_up(self, what, report)))
    }

    fn run(self: Box<Self>, feed: Feed) -> OutputFuture {
        Box::pin(self.work(feed))
    }
}
