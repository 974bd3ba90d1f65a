//! `output.s3`: events as objects of a bucket, of Amazon or of a compatible server.
//!
//! One task gathers events that share an object (`gather.rs`), until that is closed; workers make the object (`object.rs`),
//! sign it (`skidder-amazon`) and put it (`worker.rs`):
//!
//! ```text
//! queue ─▶ gather ─▶ ready (closed, not encoded) ─▶ encode, compress ─▶ put ─▶ bucket
//! ```
//!
//! An object is made once and has a name of its own. So a try whose answer was lost is repeated with the same bytes under the
//! same key, and replaces what may be there. Its events are delivered when the server has confirmed its digest.
//!
//! Bound: events that are gathered, closed or on their way are in flight and count against the queue. Besides, one encoded object
//! a worker.

mod answer;
mod check;
mod client;
mod compress;
mod config;
mod gather;
mod key;
mod object;
mod read;
mod ready;
#[cfg(test)]
mod testing;
mod worker;

pub use config::{Batch, Compression, Config};
pub use read::S3;

use client::{BucketClient, Metered};
use compress::Compressor;
use gather::{Gatherer, Parts};
use key::Names;
use object::Maker;
use ready::Ready;
use skidder_amazon::{Provider, Service};
use skidder_config::Section;
use skidder_event::Format;
use skidder_os::Clock;
use skidder_outputs::{Backoff, Built, Codec, Context, Failures, QueueSettings, Refuser};
use skidder_pipeline::{Feed, Output, OutputFuture, OutputMetrics};
use skidder_tls::{TlsClient, TlsError};
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::JoinSet;
use tracing::Instrument as _;
use worker::Worker;

/// Why the output cannot be set up. All are mistakes of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The endpoint needs encryption that is turned off.
    #[error("`https://{0}` needs TLS, but `ssl.enabled` is false")]
    TlsOff(String),
    /// A file or setting of `ssl` is wrong.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl SetupError {
    /// The key to complain about, inside `output.s3`.
    pub fn setting(&self) -> &'static str {
        match self {
            Self::TlsOff(_) => "ssl.enabled",
            Self::Tls(error) => error.setting(),
        }
    }

    /// Reports it to the section of the output.
    pub fn report(&self, section: &Section<'_>) {
        match self {
            Self::Tls(error) => error.report(section),
            Self::TlsOff(_) => section.problem_named(self.setting(), self),
        }
    }
}

/// Why `skidder tune` does not try it.
const NO_TRIAL: &str = "what costs is an object, whatever is in it: `batch.max_bytes` and the queue say how \
                                   large it becomes";

/// The output, ready to run, on a tokio runtime with time and I/O enabled.
#[derive(Clone, Debug)]
pub struct S3 {
    config: Arc<Config>,
    context: Context,
    service: Service,
}

impl S3 {
    /// Reads certificates; connects to nothing.
    pub fn new(config: Config, context: Context) -> Result<Self, SetupError> {
        let target = config.target();
        let mut tls = None;
        if target.https {
            if !config.tls.enabled {
                return Err(SetupError::TlsOff(target.authority));
            }
            tls = Some(TlsClient::new(&config.tls, Arc::clone(&context.fs))?);
        }
        let source = config.credentials.clone();
        let provider = Provider::new(source, config.proxy.clone(), Arc::clone(&context.fs))?;
        let service = Service {
            name: "s3",
            region: config.region.clone(),
            target: Arc::new(target),
            tls,
            provider: Arc::new(provider),
            timeout: config.timeout,
        };
        Ok(Self { config: Arc::new(config), context, service })
    }

    fn client(&self, metrics: Arc<OutputMetrics>, clock: Arc<dyn Clock>) -> BucketClient {
        let client = self.service.client(Arc::new(Metered(metrics)), clock);
        BucketClient { config: Arc::clone(&self.config), client }
    }

    fn codec(&self) -> Codec {
        Codec::new(&self.config.codec, &self.context, &self.context.beat)
    }

    /// `key_prefix`, with the constants of the process.
    fn prefix(&self) -> Format {
        let mut prefix = self.config.key_prefix.clone();
        self.context.bind(&mut prefix);
        prefix
    }

    /// Names of objects that have `before` before their extension.
    fn names(&self, before: &str) -> Names {
        Names::new(&format!("{before}{}", self.config.extension()))
    }

    async fn work(self, feed: Feed) {
        let ready = Arc::new(Ready::default());
        let refuser = Arc::new(Refuser::new("s3", &feed));
        let names = self.names("");
        let seed = feed.clock.wall().0 as u64;
        let config = &self.config;
        let mut tasks = JoinSet::new();
        for worker in 0..config.workers {
            let seed = seed.wrapping_add(worker as u64);
            let worker = Worker {
                client: self.client(Arc::clone(&feed.metrics), Arc::clone(&feed.clock)),
                maker: Maker {
                    codec: self.codec(),
                    compressor: Compressor::new(config.compression),
                    names: names.clone(),
                    piece: Vec::new(),
                },
                ready: Arc::clone(&ready),
                refuser: Arc::clone(&refuser),
                metrics: Arc::clone(&feed.metrics),
                backoff: Backoff::new(config.backoff_init, config.backoff_max, seed),
                failures: Failures::default(),
            };
            tasks.spawn(worker.run().in_current_span());
        }
        let parts = Parts {
            codec: self.codec(),
            prefix: self.prefix(),
            extension: config.extension(),
            batch: config.batch,
        };
        let gatherer = Gatherer::new(parts, feed.queue, ready, refuser, feed.clock);
        tasks.spawn(gatherer.run().in_current_span());
        skidder_outputs::run_all(tasks).await;
    }
}

/// `output.s3` from its section. Mistakes go to the section's problems.
pub fn build(section: &Section<'_>, context: &Context) -> Option<Built> {
    let config = Config::read(section, context, |name| std::env::var(name).ok())?;
    match S3::new(config, context.clone()) {
        Ok(output) => {
            // A number of events would bound the objects.
            let queue = QueueSettings::bounded_in_bytes();
            Some(Built { output: Box::new(output), tuning: Err(NO_TRIAL), queue })
        }
        Err(error) => {
            error.report(section);
            None
        }
    }
}

impl Output for S3 {
    fn kind(&self) -> &'static str {
        "s3"
    }

    fn parallelism(&self) -> usize {
        1 + self.config.workers
    }

    fn check<'a>(
        &'a self,
        report: &'a mut (dyn FnMut(&str) + Send),
    ) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        Box::pin(S3::check(self, report))
    }

    fn run(self: Box<Self>, feed: Feed) -> OutputFuture {
        Box::pin(self.work(feed))
    }
}
