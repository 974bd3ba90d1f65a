//! One run of the input: its streams, what tells the server of messages, and the end.

use crate::client::{Link, Server};
use crate::events::id_prefix;
use crate::keep;
use crate::leases::Leases;
use crate::receive::Receiver;
use crate::settings::Settings;
use skidder_input::{InputError, Intake, Source, Subscribed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

/// How long the server gives a message to nobody else: after `kill -9` it comes again so much later. With exactly-once
/// delivery a minute is the least that Google advises.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);
/// How long a stop waits for verdicts, while streams end. The program leaves an input alone that takes more than three
/// seconds in all, while an output is stuck.
const STOP_WAIT: Duration = Duration::from_secs(2);
/// How long a stop takes besides, to tell the server.
const STOP_CALLS: Duration = Duration::from_millis(900);
/// Pause between two looks at what is left, at a stop.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long no message may come before what is there counts as read, if it is read once.
const SILENCE_ONCE: Duration = Duration::from_secs(5);

/// What the tasks of the input share.
pub(crate) struct Run {
    pub(crate) intake: Intake,
    pub(crate) settings: Arc<Settings>,
    pub(crate) server: Arc<Server>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) counts: Arc<Subscribed>,
    /// One stream at a time creates the subscription.
    pub(crate) creating: Mutex<()>,
    /// Names this run to the server.
    pub(crate) client_id: String,
    /// A message came since the last look.
    pub(crate) received: AtomicBool,
    /// A stream works.
    pub(crate) opened: AtomicBool,
    /// Everything there was is read.
    read: watch::Sender<bool>,
}

impl Run {
    /// The subscription in messages.
    pub(crate) fn name(&self) -> &str {
        &self.settings.names.subscription_id
    }

    /// Resolves when nothing more is to be received.
    pub(crate) async fn stopped(&self) {
        let mut read = self.read.subscribe();
        tokio::select! {
            () = self.intake.stopped() => {}
            // The sender is this run's.
            _ = read.wait_for(|read| *read) => {}
        }
    }

    /// Resolves so long after that.
    pub(crate) async fn stopped_for(&self, span: Duration) {
        self.stopped().await;
        tokio::time::sleep(span).await;
    }
}

/// Runs until the input ends.
pub(crate) async fn run(intake: Intake, settings: Arc<Settings>) -> Result<(), InputError> {
    let leases = Leases::new(settings.messages_max, settings.bytes_max);
    let counts = intake.metrics().subscribed();
    let of_counts = Arc::clone(&leases);
    counts.set_held(move || (of_counts.len() as u64, of_counts.oldest()));
    let names = &settings.names;
    let prefix: Arc<str> = id_prefix(&names.project, &names.topic_id).into();
    let clock = Arc::clone(intake.clock());
    let server = Arc::new(Server { settings: Arc::clone(&settings), clock });
    let client_id = format!("skidder-{}-{}", std::process::id(), intake.clock().wall().0);
    let run = Arc::new(Run {
        settings: Arc::clone(&settings),
        leases,
        counts,
        creating: Mutex::default(),
        client_id,
        received: AtomicBool::new(false),
        opened: AtomicBool::new(false),
        read: watch::channel(false).0,
        server: Arc::clone(&server),
        intake,
    });
    let link = Arc::new(Link::new(server));
    let mut keeping = JoinSet::new();
    keeping.spawn(keep::answer(Arc::clone(&run), Arc::clone(&link)).in_current_span());
    keeping.spawn(keep::extend(Arc::clone(&run), Arc::clone(&link)).in_current_span());
    if run.intake.is_once() {
        keeping.spawn(end_once(Arc::clone(&run)).in_current_span());
    }
    let mut receiving = JoinSet::new();
    for number in 0..settings.streams {
        let receiver =
            Receiver::new(Arc::clone(&run), Arc::clone(&link), Arc::clone(&prefix), number);
        receiving.spawn(receiver.receive().in_current_span());
    }
    let mut sources: Vec<Source> = Vec::with_capacity(settings.streams);
    let mut stopped = None;
    loop {
        tokio::select! {
            ended = receiving.join_next() => match ended {
                Some(ended) => sources.push(ended.map_err(|error| InputError(error.to_string()))?),
                None => break,
            },
            () = run.intake.stopped(), if stopped.is_none() => stopped = Some(Instant::now()),
        }
    }
    run.intake.set_finishing();
    end(&run, stopped).await;
    keeping.shutdown().await;
    drop(sources);
    Ok(())
}

/// Waits for verdicts for a while, and gives the rest back. The stop came at `stopped`; nothing: everything is read.
async fn end(run: &Run, stopped: Option<Instant>) {
    // What is read once is waited for.
    while run.intake.is_once() && !run.intake.is_stopped() && run.leases.is_waiting() {
        run.intake.flush();
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    run.intake.flush();
    let limit = stopped.unwrap_or_else(Instant::now) + STOP_WAIT;
    while run.leases.is_waiting() && Instant::now() < limit {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let messages = run.leases.return_all();
    if messages > 0 {
        let subscription = run.name();
        tracing::info!(subscription, messages, "messages without a verdict are given back");
    }
    let limit = Instant::now() + STOP_CALLS;
    while run.leases.len() > 0 && Instant::now() < limit {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let messages = run.leases.len();
    if messages > 0 {
        let subscription = run.name();
        tracing::warn!(
            subscription,
            messages,
            "the server could not be told of all messages: these come again in a minute"
        );
    }
}

/// Ends the input when no message has come for a while, and a stream works.
async fn end_once(run: Arc<Run>) {
    loop {
        tokio::time::sleep(SILENCE_ONCE).await;
        let came = run.received.swap(false, Ordering::Relaxed);
        if !came && run.opened.load(Ordering::Relaxed) && !run.leases.is_waiting() {
            run.read.send_replace(true);
            return;
        }
    }
}
