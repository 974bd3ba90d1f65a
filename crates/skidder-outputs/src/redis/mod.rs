//! `output.redis`: events as values of lists (`RPUSH`) or messages of channels (`PUBLISH`).
//!
//! Own code for the protocol (`skidder-redis`): it is five commands, which go over the streams that the other outputs use
//! too (SOCKS5, the TLS of skidder-tls), and values are written into the request once.
//!
//! A worker has one connection and one request under way. Each command's answer is the verdict of its events: what
//! the server did not take is sent again for ever, also by other workers.

mod check;
mod config;
mod request;
mod worker;

pub use config::{Config, DataType, REDIS};
pub use skidder_redis::Server;

use crate::backoff::{Backoff, Failures};
use crate::context::Context;
use crate::crew::{run_all, share_out};
use crate::refusal::Refuser;
use crate::supply::Supply;
use request::{Request, RequestWriter};
use skidder_net::{Proxy, Route, WithoutTls};
use skidder_pipeline::{Feed, Output, OutputFuture, TakeLimits};
use skidder_redis::{Network, Target};
use skidder_tls::{TlsClient, TlsError};
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::JoinSet;
use tracing::Instrument as _;
use worker::Worker;

/// Most bytes of messages that are sent together.
const TAKE_BYTES_MAX: usize = 8 << 20;

/// Why `skidder tune` does not try it.
pub(crate) const NO_TRIAL: &str = "a list for trials would fill the memory of the Redis server, which takes what it is \
                                   sent faster than anybody reads it";

/// The output, ready to run, on a tokio runtime with time and I/O enabled.
#[derive(Clone, Debug)]
pub struct Redis {
    config: Arc<Config>,
    context: Context,
    targets: Vec<Arc<Target>>,
}

impl Redis {
    /// Reads certificates; connects to nothing. An error is a mistake of the configuration, in `ssl`.
    pub fn new(config: Config, context: Context) -> Result<Self, TlsError> {
        let proxy = config.proxy.clone().map(|proxy| Arc::new(Proxy::Socks(proxy)));
        let settings = config.tls.clone().unwrap_or_default();
        let mut targets = Vec::new();
        for server in &config.servers {
            let tls = if config.encrypts(server) {
                Some(TlsClient::new(&settings, Arc::clone(&context.fs))?)
            } else {
                None
            };
            let route = Route {
                host: server.host.clone(),
                proxy: proxy.clone(),
                tls,
                http2: false,
                without_tls: WithoutTls::Redis,
            };
            let own = config.password.clone().map(|password| (config.username.clone(), password));
            targets.push(Arc::new(Target {
                route,
                network: Network::Tcp,
                credentials: server.credentials.clone().or(own),
                db: server.db.unwrap_or(config.db),
            }));
        }
        Ok(Self { config: Arc::new(config), context, targets })
    }

    fn writer(&self) -> RequestWriter {
        let config = &self.config;
        let beat = config.index.as_ref().unwrap_or(&self.context.beat).to_lowercase();
        let key = config.key.clone();
        RequestWriter::new(&config.codec, key, config.datatype, &self.context, &beat)
    }

    /// The hosts of each worker.
    fn workers(&self) -> Vec<Vec<Arc<Target>>> {
        share_out(&self.targets, self.config.workers, self.config.loadbalance)
    }

    async fn work(self, feed: Feed) {
        let supply = Arc::new(Supply::default());
        let refuser = Arc::new(Refuser::new("redis", &feed));
        let seed = feed.clock.wall().0 as u64;
        let config = &self.config;
        let mut tasks = JoinSet::new();
        for (worker, targets) in self.workers().into_iter().enumerate() {
            let seed = seed.wrapping_add(worker as u64);
            let worker = Worker {
                current: seed as usize % targets.len().max(1),
                targets,
                supply: Arc::clone(&supply),
                writer: self.writer(),
                request: Request::default(),
                refuser: Arc::clone(&refuser),
                timeout: config.timeout,
                metrics: Arc::clone(&feed.metrics),
                clock: Arc::clone(&feed.clock),
                backoff: Backoff::new(config.backoff_init, config.backoff_max, seed),
                failures: Failures::default(),
            };
            tasks.spawn(worker.run().in_current_span());
        }
        let events = match config.bulk_max_size {
            0 => request::VALUES_MAX,
            events => events.min(request::VALUES_MAX),
        };
        let limits = TakeLimits { events, bytes: TAKE_BYTES_MAX };
        let queue = feed.queue.clone();
        let feeding = async move { supply.feed(&queue, limits).await };
        tasks.spawn(feeding.in_current_span());
        run_all(tasks).await;
    }
}

impl Output for Redis {
    fn kind(&self) -> &'static str {
        "redis"
    }

    fn parallelism(&self) -> usize {
        self.workers().len()
    }

    fn check<'a>(
        &'a self,
        report: &'a mut (dyn FnMut(&str) + Send),
    ) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        Box::pin(Redis::check(self, report))
    }

    fn run(self: Box<Self>, feed: Feed) -> OutputFuture {
        Box::pin(self.work(feed))
    }
}
