//! One input with one output that takes everything, and keeps the events.

use skidder_event::{Encoder, Precision, Unprocessed};
use skidder_input::{Input, InputState, InputTask, LaneOf, Setup, TaskDriver};
use skidder_os::{Clock, RealFs, SystemClock};
use skidder_pipeline::{
    Patience, Pipeline, Queue, QueueLimits, Queues, Registrar, Settle, TakeLimits,
};
use skidder_registry::{Options, Registry};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::runtime::Handle;

/// Something that takes longer than this has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// An input that runs, and the events that came.
pub struct Bench {
    /// The input.
    pub input: Arc<InputTask>,
    /// The accounts.
    pub settle: Arc<Settle>,
    /// Events as JSON.
    pub events: Vec<serde_json::Value>,
    /// Nothing is taken: the output is stuck.
    pub is_stuck: bool,
    queue: Queue,
    pipeline: Option<Pipeline>,
}

impl Bench {
    /// Starts an input, whose cursors are in this folder.
    pub fn start(input: Box<dyn Input>, directory: &Path) -> Self {
        let settle = Settle::new();
        let limits = QueueLimits {
            events: 10_000,
            bytes: usize::MAX,
            flush_min_events: 0,
            flush_timeout: Duration::from_millis(1),
        };
        let queue = Queue::new(limits, Arc::clone(&settle));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let opened =
            Registry::open(Arc::new(RealFs), Arc::clone(&clock), directory, Options::default());
        let registry = Arc::new(opened.expect("a registry").0);
        let run = clock.wall().0.to_string().into();
        let (id, name) = ("test".into(), "test".into());
        let setup = Setup { id, name, run, once: false, clock: Arc::clone(&clock) };
        let input = InputTask::new(input, setup, 1, Handle::current());
        let lane = LaneOf {
            input: Arc::clone(&input),
            slot: 0,
            bind: Unprocessed::bind(),
            registry: Arc::clone(&registry),
        };
        let driver = TaskDriver::new(vec![lane]);
        let registrar = Registrar::new(Arc::clone(&settle), registry);
        let queues = Queues { inputs: queue.clone(), disk: None };
        let flush = Duration::from_millis(20);
        let pipeline = Pipeline::start(flush, vec![Box::new(driver)], queues, registrar, clock);
        let pipeline = Some(pipeline.expect("a pipeline"));
        Self { input, settle, events: Vec::new(), is_stuck: false, queue, pipeline }
    }

    /// Takes and delivers what is in the queue.
    pub fn take(&mut self) {
        if self.is_stuck {
            return;
        }
        let mut taken = Vec::new();
        self.queue.try_take(TakeLimits { events: 0, bytes: usize::MAX }, &mut taken);
        let mut encoder = Encoder::new(Precision::default());
        for delivery in &taken {
            for row in delivery.rows.clone() {
                let mut out = Vec::new();
                encoder.write(&mut out, &delivery.batch, row as usize);
                let event = serde_json::from_slice(&out);
                self.events.push(event.expect("JSON"));
            }
            delivery.ticket.delivered(delivery.len() as u32);
        }
        assert!(self.settle.total().adds_up());
    }

    /// Waits for a condition, and takes events during that.
    pub async fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let waiting = async {
            loop {
                self.take();
                if holds(self) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let came = tokio::time::timeout(PATIENCE, waiting).await.is_ok();
        let trouble = self.input.metrics().trouble();
        let last = self.messages().last().copied().unwrap_or_default().to_owned();
        let (state, count) = (self.input.state(), self.events.len());
        assert!(came, "{what}: {state:?} {trouble:?}, {count} events, the last one {last}");
    }

    /// Waits for trouble in which this stands.
    pub async fn trouble(&mut self, text: &str) {
        let is_there = |bench: &Self| {
            bench.input.metrics().trouble().is_some_and(|trouble| trouble.contains(text))
        };
        self.until(text, is_there).await;
    }

    /// Waits until there is none.
    pub async fn no_trouble(&mut self) {
        self.until("no trouble", |bench| bench.input.metrics().trouble().is_none()).await;
    }

    /// The messages of the events.
    pub fn messages(&self) -> Vec<&str> {
        self.events.iter().map(|event| event["message"].as_str().unwrap_or_default()).collect()
    }

    /// Stops the input, and takes what comes at its end. Returns the events.
    pub async fn stop(mut self) -> Vec<serde_json::Value> {
        let mut pipeline = self.pipeline.take().expect("it runs");
        let input = Arc::clone(&self.input);
        let stopping = tokio::task::spawn_blocking(move || {
            let interrupt = AtomicBool::new(false);
            let limit = Duration::from_secs(5);
            pipeline.stop_reading(Patience { limit, interrupt: &interrupt });
            pipeline
        });
        self.until("it stops", |_| stopping.is_finished()).await;
        let mut pipeline = stopping.await.expect("no panic");
        self.take();
        assert_eq!(input.state(), InputState::Ended);
        let finished = tokio::task::spawn_blocking(move || pipeline.finish()).await;
        assert!(finished.expect("no panic"), "the cursors are saved");
        self.events
    }
}
