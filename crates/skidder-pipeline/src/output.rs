//! An output: workers that take deliveries from a queue and give each row its verdict.

use crate::dead_letter::DeadLetters;
use crate::metrics::OutputMetrics;
use crate::queue::Queue;
use skidder_os::Clock;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The work of an output, until its queue ends.
pub type OutputFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Everything that an output gets.
#[derive(Clone)]
pub struct Feed {
    /// Where events come from. The output ends when it does.
    pub queue: Queue,
    /// Where events go that it can never deliver; without it they are dropped and counted.
    pub dead_letters: Option<Arc<DeadLetters>>,
    /// Its counters.
    pub metrics: Arc<OutputMetrics>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// What `skidder setup` sets up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetUp {
    /// Index template and lifecycle policy.
    pub index_management: bool,
    /// Ingest pipelines.
    pub pipelines: bool,
}

impl SetUp {
    /// All of it.
    pub const ALL: Self = Self { index_management: true, pipelines: true };
}

/// A destination of events.
///
/// Contract: every row of every delivery taken gets exactly one verdict through its ticket, or the
/// future is dropped before. A failure that may pass is tried again without end; only the queue's end
/// ends the work.
pub trait Output: Send {
    /// Its kind, as in `output.<kind>`.
    fn kind(&self) -> &'static str;

    /// Requests under way at once: how many threads for sockets and encoding are of use.
    fn parallelism(&self) -> usize {
        1
    }

    /// Implements `skidder test output`, inside a tokio runtime: returns whether the output would work, without
    /// sending events. Each line for the user goes to `report`, without a line feed.
    ///
    /// An output that does not say otherwise has nothing that could fail.
    fn check<'a>(
        &'a self,
        report: &'a mut (dyn FnMut(&str) + Send),
    ) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        report(&format!("{}: nothing to test... OK", self.kind()));
        Box::pin(std::future::ready(true))
    }

    /// Implements `skidder setup`, as [`Output::check`]: sets up `what` the servers need before events come. `None` if
    /// this kind of output has nothing to set up.
    fn set_up<'a>(
        &'a self,
        _what: SetUp,
        _report: &'a mut (dyn FnMut(&str) + Send),
    ) -> Option<Pin<Box<dyn Future<Output = bool> + 'a>>> {
        None
    }

    /// Takes events until the queue ends.
    fn run(self: Box<Self>, feed: Feed) -> OutputFuture;
}
