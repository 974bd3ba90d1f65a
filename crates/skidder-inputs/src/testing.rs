//! Tests of inputs: one output that takes everything, and keeps the events.

use crate::{Context, Wanted};
use skidder_config::{Problems, Section, Settings};
use skidder_contract::Authority;
use skidder_event::{Encoder, Precision, Unprocessed};
use skidder_input::{
    Input, InputState, InputTask, LaneOf, Setup, TaskDriver, TaskInputs, TasksChange,
};
use skidder_net::Sockets;
use skidder_os::{Clock, RealFs, SystemClock};
use skidder_pipeline::{
    Patience, Pipeline, Queue, QueueLimits, Queues, Registrar, Settle, TakeLimits,
};
use skidder_registry::{Options, Registry};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::runtime::Handle;

/// Something that takes longer than this has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn context(sockets: &Sockets) -> Context {
    let clock = Arc::new(SystemClock::new());
    Context {
        fs: Arc::new(RealFs),
        clock,
        sockets: sockets.clone(),
        wanted: Wanted::default(),
        servers: crate::http_endpoint::Servers::default(),
        data: None,
    }
}

/// Reads settings with a function; returns the problems as text.
pub(crate) fn read_with<T>(
    text: &str,
    read: impl FnOnce(&Section<'_>) -> Option<T>,
) -> (Option<T>, String) {
    let settings = Settings::parse("x", text).unwrap();
    let problems = Problems::new();
    let root = settings.root(&problems);
    let read = read(&root);
    root.finish();
    (read, problems.to_string())
}

/// A socket that is passed as systemd does, with its address.
pub(crate) fn free_address() -> (SocketAddr, Sockets) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sockets = Sockets::default();
    sockets.adopt(listener.into(), "test").unwrap();
    (address, sockets)
}

/// An authority, and certificates of a server (`localhost`) and of clients (`shipper`) in files.
pub(crate) struct Certificates {
    directory: tempfile::TempDir,
    authority: Authority,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let (directory, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        let certificates = Self { directory, authority };
        std::fs::write(certificates.path("ca.pem"), certificates.authority.pem()).unwrap();
        certificates.sign("localhost");
        certificates.sign("shipper");
        certificates
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn sign(&self, name: &str) {
        let signed = self.authority.sign(name);
        std::fs::write(self.path(&format!("{name}.pem")), signed.pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), signed.key_pem()).unwrap();
    }

    /// `ssl` of a server with them, without its braces.
    pub(crate) fn server(&self) -> String {
        format!(
            "certificate: '{}', key: '{}', certificate_authorities: ['{}']",
            self.path("localhost.pem"),
            self.path("localhost.key"),
            self.path("ca.pem"),
        )
    }
}

/// An input that runs, and the events that came.
pub(crate) struct Bench {
    pub(crate) input: Arc<InputTask>,
    pub(crate) settle: Arc<Settle>,
    /// Events as JSON, without `@timestamp` and `@metadata`.
    pub(crate) events: Vec<serde_json::Value>,
    /// The `@timestamp` of each, and its `@metadata`, or null.
    pub(crate) specials: Vec<(String, serde_json::Value)>,
    /// Nothing is taken: the output is stuck.
    pub(crate) is_stuck: bool,
    queue: Queue,
    registry: Arc<Registry>,
    inputs: TaskInputs,
    pipeline: Option<Pipeline>,
    slot: usize,
    _directory: tempfile::TempDir,
}

fn task(input: Box<dyn Input>, before: Option<&InputTask>) -> Arc<InputTask> {
    let clock = SystemClock::new();
    let run = clock.wall().0.to_string();
    let (id, name) = ("test".into(), "test".into());
    let setup = Setup { id, name, run: run.into(), once: false, clock: Arc::new(clock) };
    match before {
        Some(before) => InputTask::after(before, input, setup, 1, Handle::current()),
        None => InputTask::new(input, setup, 1, Handle::current()),
    }
}

fn lane(input: &Arc<InputTask>, slot: usize, registry: &Arc<Registry>) -> LaneOf {
    let (input, registry) = (Arc::clone(input), Arc::clone(registry));
    LaneOf { input, slot, bind: Unprocessed::bind(), registry }
}

impl Bench {
    /// Starts an input, with room for so many events in the queue.
    pub(crate) fn start(input: Box<dyn Input>, events: usize) -> Self {
        let flush_timeout = Duration::from_millis(1);
        let limits = QueueLimits { events, bytes: usize::MAX, flush_min_events: 0, flush_timeout };
        Self::with(input, limits)
    }

    /// Starts an input with an output that waits an hour for more events than come.
    pub(crate) fn start_patient(input: Box<dyn Input>) -> Self {
        let flush_timeout = Duration::from_hours(1);
        let (events, flush_min_events) = (3200, 1600);
        Self::with(
            input,
            QueueLimits { events, bytes: usize::MAX, flush_min_events, flush_timeout },
        )
    }

    fn with(input: Box<dyn Input>, limits: QueueLimits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settle = Settle::new();
        let queue = Queue::new(limits, Arc::clone(&settle));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let fs = Arc::new(RealFs);
        let opened = Registry::open(fs, Arc::clone(&clock), directory.path(), Options::default());
        let registry = Arc::new(opened.unwrap().0);
        let input = task(input, None);
        let driver = TaskDriver::new(vec![lane(&input, 0, &registry)]);
        let inputs = driver.inputs();
        let registrar = Registrar::new(Arc::clone(&settle), Arc::clone(&registry));
        let queues = Queues { inputs: queue.clone(), disk: None };
        let flush = Duration::from_millis(20);
        let pipeline = Pipeline::start(flush, vec![Box::new(driver)], queues, registrar, clock);
        Self {
            input,
            settle,
            events: Vec::new(),
            specials: Vec::new(),
            is_stuck: false,
            queue,
            registry,
            inputs,
            pipeline: Some(pipeline.unwrap()),
            slot: 0,
            _directory: directory,
        }
    }

    /// Takes and delivers what is in the queue.
    pub(crate) fn take(&mut self) {
        if self.is_stuck {
            return;
        }
        let mut taken = Vec::new();
        self.queue.try_take(TakeLimits { events: 0, bytes: usize::MAX }, &mut taken);
        self.deliver(&taken);
    }

    /// The same as an output does it: when there is enough, or events are waited for.
    pub(crate) async fn take_as_output(&mut self) {
        let mut taken = Vec::new();
        let taking = self.queue.take(TakeLimits { events: 0, bytes: usize::MAX }, &mut taken);
        assert!(tokio::time::timeout(PATIENCE, taking).await.expect("events are taken"));
        self.deliver(&taken);
    }

    fn deliver(&mut self, taken: &[skidder_pipeline::Delivery]) {
        let mut encoder = Encoder::new(Precision::default());
        for delivery in taken {
            for row in delivery.rows.clone() {
                let mut out = Vec::new();
                encoder.write(&mut out, &delivery.batch, row as usize);
                let mut event: serde_json::Value = serde_json::from_slice(&out).unwrap();
                let fields = event.as_object_mut().unwrap();
                let time = fields.remove("@timestamp").unwrap();
                assert!(!fields.contains_key("@metadata"), "{event}");
                self.events.push(event);
                out.clear();
                encoder.write_own_metadata(&mut out, &delivery.batch, row as usize);
                let metadata = serde_json::from_slice(&out).unwrap_or_default();
                self.specials.push((time.as_str().unwrap().to_owned(), metadata));
            }
            delivery.ticket.delivered(delivery.len() as u32);
        }
        assert!(self.settle.total().adds_up());
    }

    /// Takes and delivers what is in the queue without looking at it; returns how many events.
    pub(crate) fn take_unseen(&self) -> usize {
        let mut taken = Vec::new();
        self.queue.try_take(TakeLimits { events: 0, bytes: usize::MAX }, &mut taken);
        for delivery in &taken {
            delivery.ticket.delivered(delivery.len() as u32);
        }
        taken.iter().map(skidder_pipeline::Delivery::len).sum()
    }

    /// Waits for a condition, and takes events during that.
    pub(crate) async fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
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
        assert!(came, "{what}: {:?} {:?}", self.input.state(), self.messages());
    }

    /// Waits for so many events.
    pub(crate) async fn events(&mut self, count: usize) {
        self.until("events", |bench| bench.events.len() >= count).await;
    }

    pub(crate) fn messages(&self) -> Vec<&str> {
        self.events.iter().map(|event| event["message"].as_str().unwrap_or_default()).collect()
    }

    /// Another input takes its place, as in a reload.
    pub(crate) async fn replace(&mut self, input: Box<dyn Input>) {
        let next = task(input, Some(&self.input));
        self.slot += 1;
        let (send, mut done) = tokio::sync::oneshot::channel();
        let change = TasksChange {
            remove: vec![self.slot - 1],
            when_read: false,
            add: vec![lane(&next, self.slot, &self.registry)],
            done: Box::new(move || send.send(()).unwrap_or_default()),
        };
        self.inputs.change(change).unwrap();
        self.until("the next input begins", |_| done.try_recv().is_ok()).await;
        self.input = next;
    }

    /// Asks the input to end when its far side has no more, as autodiscover does; returns whether it has ended.
    pub(crate) fn end_when_read(&self) -> tokio::sync::oneshot::Receiver<()> {
        let (send, done) = tokio::sync::oneshot::channel();
        let change = TasksChange {
            remove: vec![self.slot],
            when_read: true,
            add: Vec::new(),
            done: Box::new(move || send.send(()).unwrap_or_default()),
        };
        self.inputs.change(change).unwrap();
        done
    }

    /// Stops the input while nothing is taken.
    pub(crate) async fn stop_without_taking(&mut self) {
        let mut pipeline = self.pipeline.take().unwrap();
        let stopping = tokio::task::spawn_blocking(move || {
            let interrupt = AtomicBool::new(false);
            pipeline.stop_reading(Patience { limit: Duration::ZERO, interrupt: &interrupt });
        });
        stopping.await.unwrap();
        assert_eq!(self.input.state(), InputState::Ended);
    }

    /// Stops the input, and takes what it sends at its end.
    pub(crate) async fn stop(&mut self) {
        let mut pipeline = self.pipeline.take().unwrap();
        let input = Arc::clone(&self.input);
        let stopping = tokio::task::spawn_blocking(move || {
            let interrupt = AtomicBool::new(false);
            let limit = Duration::from_secs(5);
            pipeline.stop_reading(Patience { limit, interrupt: &interrupt });
            pipeline
        });
        self.until("it stops", |_| stopping.is_finished()).await;
        let mut pipeline = stopping.await.unwrap();
        self.take();
        assert_eq!(input.state(), InputState::Ended);
        tokio::task::spawn_blocking(move || assert!(pipeline.finish())).await.unwrap();
    }
}

/// Gives lines to a client that sends them, in parts of at most `most`, as soon as `push` takes each; `changed` is
/// notified when it may take another one.
pub(crate) async fn push_in_parts(
    lines: std::ops::Range<usize>,
    most: usize,
    changed: &tokio::sync::Notify,
    push: impl Fn(&[usize]) -> bool,
) {
    let lines: Vec<usize> = lines.collect();
    for part in lines.chunks(most) {
        loop {
            let has_changed = changed.notified();
            tokio::pin!(has_changed);
            has_changed.as_mut().enable();
            if push(part) {
                break;
            }
            has_changed.await;
        }
        changed.notify_waiters();
        changed.notify_one();
    }
}
