//! The client: one session after the other, as long as the input runs.

use super::decode::Connected;
use super::gather::Gathered;
use super::inbox::{Inbox, Place};
use super::link::{Link, LinkError};
use super::session::{End, Session};
use super::settings::Settings;
use skidder_event::{Map, Progress};
use skidder_input::{Intake, Sending, Source, Stopped};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// A session that lasted so long was a good one: the next failure is a new one.
const STABLE: Duration = Duration::from_secs(10);

/// How long a stop waits for room in the queues.
const LAST_ROOM_MAX: Duration = Duration::from_secs(1);

/// See the module's text.
pub(super) struct Client {
    pub(super) settings: Settings,
    pub(super) intake: Intake,
    pub(super) inbox: Arc<Inbox>,
    pub(super) gathered: Gathered,
    /// The broker keeps messages of QoS 1 and 2 until they are acknowledged, whatever happens to the connection.
    pub(super) is_kept: bool,
    source: Source,
    /// A batch that waits for room in a queue, and its messages, if that is all that their acknowledgements wait for.
    sending: Option<(Sending, Vec<Place>)>,
    /// The same failure is logged once.
    reported: String,
}

impl Client {
    pub(super) fn new(settings: Settings, intake: Intake, address: &str) -> Self {
        Self {
            source: intake.open(address, Map::new()),
            settings,
            intake,
            inbox: Arc::default(),
            gathered: Gathered::default(),
            is_kept: false,
            sending: None,
            reported: String::new(),
        }
    }

    /// Reads until the input must stop.
    pub(super) async fn run(mut self) {
        self.run_sessions().await;
        // What was received over a connection that is gone.
        drop(timeout(LAST_ROOM_MAX, self.drain()).await);
    }

    async fn run_sessions(&mut self) {
        let intake = self.intake.clone();
        let mut failures = 0_u32;
        loop {
            let opened = tokio::select! {
                biased;
                () = intake.stopped() => return,
                opened = self.open() => opened,
            };
            let begun = Instant::now();
            let result = match opened {
                Ok((link, connected)) => {
                    let name = link.name.clone();
                    let end = Session::new(self, link, &connected).run().await;
                    end.map_err(|error| format!("{name}: {error}"))
                }
                Err(error) => Err(error),
            };
            if begun.elapsed() >= STABLE {
                failures = 0;
                self.reported.clear();
            }
            match result {
                Ok(End::Stopped) => return,
                Ok(End::Rejected) => {
                    tracing::warn!(
                        "messages get no verdict in this run; the broker sends them again"
                    );
                }
                Err(error) => self.report(&error),
            }
            let (init, max) = self.settings.backoff;
            let pause = init.saturating_mul(2_u32.saturating_pow(failures)).min(max);
            failures = failures.saturating_add(1);
            tokio::select! {
                biased;
                () = intake.stopped() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// A connection to the first broker that takes one. The error names each broker.
    async fn open(&mut self) -> Result<(Link, Connected), String> {
        let mut errors = Vec::new();
        for broker in &self.settings.brokers {
            match Link::open(&self.settings, broker).await {
                Ok(opened) => return Ok(opened),
                Err(error) => errors.push(format!("{}: {error}", broker.route.host)),
            }
        }
        Err(errors.join(". "))
    }

    /// Notes a failure: for the status page, and in the log when it is a new one.
    pub(super) fn report(&mut self, error: &str) {
        self.source.failed(error);
        self.intake.metrics().set_trouble(Some(error));
        let client_id = &*self.settings.client_id;
        if self.reported == error {
            tracing::debug!(client_id, error, "the broker still cannot be read");
        } else {
            tracing::warn!(client_id, error, "the broker cannot be read; trying again");
            error.clone_into(&mut self.reported);
        }
    }

    /// A message is longer than the bound.
    pub(super) fn cut(&self, topic: &str, was_reported: bool) {
        let error = "a message is longer than `max_message_size` and was cut";
        self.source.failed(error);
        if !was_reported {
            tracing::warn!(topic, "{error}");
        }
    }

    /// Everything is in order again.
    pub(super) fn recovered(&mut self) {
        self.intake.metrics().set_trouble(None);
    }

    /// Whether a batch waits for room in a queue.
    pub(super) fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Waits until the batch that waits for room has it. May be dropped while it waits.
    pub(super) async fn sent(&mut self) -> Result<(), Stopped> {
        let Some((sending, places)) = &mut self.sending else { return Ok(()) };
        let sent = sending.await;
        if sent.is_ok() && !places.is_empty() {
            self.inbox.settle(places);
        }
        self.sending = None;
        sent
    }

    /// Sends what was gathered.
    pub(super) fn send(&mut self) {
        let now = self.intake.clock().wall().0;
        let ready = self.gathered.take(&mut self.source, now);
        let (progress, places) = if self.is_kept && !ready.places.is_empty() {
            let owed = self.inbox.batch(ready.places);
            (Progress::Acknowledge(owed, ready.bytes), Vec::new())
        } else {
            (Progress::Nothing(ready.bytes), ready.places)
        };
        let sending = self.source.send(ready.batch, progress);
        if sending.is_waiting() {
            self.sending = Some((sending, places));
        } else if !places.is_empty() {
            self.inbox.settle(&places);
        }
    }

    /// Waits until everything that was gathered is in the queues.
    pub(super) async fn drain(&mut self) -> Result<(), Stopped> {
        loop {
            self.sent().await?;
            if self.gathered.is_empty() {
                return Ok(());
            }
            self.send();
        }
    }
}

/// The error of a session is one of its connection.
pub(super) type SessionResult = Result<End, LinkError>;
