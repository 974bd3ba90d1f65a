//! `output.logstash`: Lumberjack v2 to Logstash, Elastic Agent, or any other server with that input.
//!
//! Every worker has a connection of its own and up to `pipelining` windows of events under way on it. An
//! acknowledgement settles the first events of the oldest window; when the connection fails, the others go back
//! to be sent again, by this worker or another.
//!
//! Bound: one share of events ready for all workers, one window in bytes for each, and windows under way in the
//! queue's own bounds.

mod check;
mod config;
mod frames;
mod session;
mod slow_start;

pub use config::{Config, LOGSTASH};
#[doc(hidden)]
pub use frames::FrameBench;

use crate::backoff::{Backoff, Failures};
use crate::context::Context;
use crate::crew::{run_all, share_out};
use crate::supply::{Share, Supply};
use crate::trial::{Trial, TrialSizes, Tunable, sized};
use frames::FrameWriter;
use session::{End, Session, WorkerState};
use skidder_net::{Proxy, Route, WithoutTls};
use skidder_pipeline::{Feed, Output, OutputFuture, TakeLimits};
use skidder_tls::{TlsClient, TlsError};
use slow_start::SlowStart;
use std::fmt::Display;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tracing::Instrument as _;

/// Most bytes of messages that are sent together.
const TAKE_BYTES_MAX: usize = 8 << 20;

/// The output, ready to run, on a tokio runtime with time and I/O enabled.
#[derive(Clone, Debug)]
pub struct Logstash {
    config: Arc<Config>,
    context: Context,
    routes: Vec<Arc<Route>>,
}

impl Logstash {
    /// Reads certificates; connects to nothing. An error is a mistake of the configuration, in `ssl`.
    pub fn new(config: Config, context: Context) -> Result<Self, TlsError> {
        let tls = match &config.tls {
            None => None,
            Some(settings) => Some(TlsClient::new(settings, Arc::clone(&context.fs))?),
        };
        let proxy = config.proxy.clone().map(|proxy| Arc::new(Proxy::Socks(proxy)));
        let route = |host| {
            Arc::new(Route {
                host,
                proxy: proxy.clone(),
                tls: tls.clone(),
                http2: false,
                without_tls: WithoutTls::NoSsl,
            })
        };
        let routes = config.hosts.iter().cloned().map(route).collect();
        Ok(Self { config: Arc::new(config), context, routes })
    }

    /// The same with other sizes.
    fn sized(&self, sizes: TrialSizes) -> Self {
        let config = sized(&*self.config, sizes, |config| {
            (&mut config.workers, &mut config.bulk_max_size, &mut config.compression_level)
        });
        Self { config, ..self.clone() }
    }

    /// The hosts of each worker.
    fn workers(&self) -> Vec<Vec<Arc<Route>>> {
        share_out(&self.routes, self.config.workers, self.config.loadbalance)
    }

    fn worker(
        &self,
        routes: Vec<Arc<Route>>,
        supply: &Arc<Supply>,
        feed: &Feed,
        seed: u64,
    ) -> Worker {
        let config = &self.config;
        let beat = config.index.as_ref().unwrap_or(&self.context.beat);
        let level = config.compression_level;
        Worker {
            current: seed as usize % routes.len().max(1),
            routes,
            kept: WorkerState {
                supply: Arc::clone(supply),
                frames: FrameWriter::new(&self.context, beat, config.escape_html, level),
                slow_start: config.slow_start.then(|| SlowStart::new(config.bulk_max_size)),
                windows_max: config.pipelining.max(1),
                timeout: config.timeout,
                ttl: config.ttl,
                is_plain: config.tls.is_none(),
                metrics: Arc::clone(&feed.metrics),
                clock: Arc::clone(&feed.clock),
                backoff: Backoff::new(config.backoff_init, config.backoff_max, seed),
                failures: Failures::default(),
                buffer: Vec::new(),
            },
        }
    }

    async fn work(self, feed: Feed) {
        let supply = Arc::new(Supply::default());
        let seed = feed.clock.wall().0 as u64;
        let mut tasks = JoinSet::new();
        for (worker, routes) in self.workers().into_iter().enumerate() {
            let seed = seed.wrapping_add(worker as u64);
            tasks.spawn(self.worker(routes, &supply, &feed, seed).run().in_current_span());
        }
        let limits = TakeLimits { events: self.config.bulk_max_size, bytes: TAKE_BYTES_MAX };
        let queue = feed.queue.clone();
        let feeding = async move { supply.feed(&queue, limits).await };
        tasks.spawn(feeding.in_current_span());
        run_all(tasks).await;
    }
}

impl Tunable for Logstash {
    fn trial(&self, _: &str, _: bool, really_send: bool) -> Result<Box<dyn Trial>, &'static str> {
        if really_send { Ok(Box::new(self.clone())) } else { Err(NO_PLACE) }
    }
}

/// Trials go where Logstash sends its events: it has no place for them.
impl Trial for Logstash {
    fn output(&self, sizes: TrialSizes) -> Box<dyn Output> {
        Box::new(self.sized(sizes))
    }

    fn has_workers(&self) -> bool {
        self.config.loadbalance
    }
}

/// Why there is no trial by default.
const NO_PLACE: &str = "Logstash has no place for trials: what it is sent goes the way of all events. `--really-send` does \
                        that, again and again; take a pipeline of Logstash that throws events away";

impl Output for Logstash {
    fn kind(&self) -> &'static str {
        "logstash"
    }

    fn parallelism(&self) -> usize {
        self.workers().len()
    }

    fn check<'a>(
        &'a self,
        report: &'a mut (dyn FnMut(&str) + Send),
    ) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        Box::pin(Logstash::check(self, report))
    }

    fn run(self: Box<Self>, feed: Feed) -> OutputFuture {
        Box::pin(self.work(feed))
    }
}

/// Brings events to one host, or to one of several that stand in for each other.
struct Worker {
    routes: Vec<Arc<Route>>,
    /// Which of them is in use.
    current: usize,
    kept: WorkerState,
}

impl Worker {
    /// Sends until there will be no more events.
    async fn run(mut self) {
        // While a host cannot be reached nothing is taken for it: others may have it.
        let mut reached = false;
        loop {
            let supply = Arc::clone(&self.kept.supply);
            let mut first: Option<Share> = None;
            if reached {
                // It closes connections that are idle; a new one is made when it is needed.
                match supply.take().await {
                    None => return,
                    share => first = share,
                }
            }
            let route = Arc::clone(&self.routes[self.current]);
            let opened = tokio::select! {
                biased;
                opened = route.open(self.kept.timeout) => opened,
                () = supply.ended() => return,
            };
            let stream = match opened {
                Ok(stream) => stream,
                Err(error) => {
                    if let Some(share) = first {
                        supply.give_back(1, vec![share]);
                    }
                    reached = false;
                    if self.fail(&error, 0).await {
                        return;
                    }
                    continue;
                }
            };
            tracing::debug!(host = %route.host, "connected");
            match Session::new(&mut self.kept, stream, first).run().await {
                End::Finished => return,
                End::Idle => reached = true,
                End::Failed(error, events) => {
                    reached = false;
                    if self.fail(&error, events).await {
                        return;
                    }
                }
            }
        }
    }

    /// Logs a failure, switches to the next host and waits. Returns whether there will be no more events.
    async fn fail(&mut self, error: &impl Display, events: usize) -> bool {
        let host = &self.routes[self.current].host;
        self.kept.metrics.write_error(host, error);
        if let Some(failures) = self.kept.failures.add() {
            tracing::error!(
                output = "logstash", %host, %error, events, failures,
                "cannot send events; trying again"
            );
        }
        self.current = (self.current + 1) % self.routes.len();
        let wait: Duration = self.kept.backoff.next_wait();
        tokio::select! {
            () = tokio::time::sleep(wait) => false,
            () = self.kept.supply.ended() => true,
        }
    }
}
