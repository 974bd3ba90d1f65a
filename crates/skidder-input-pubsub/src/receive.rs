//! Receives messages over a stream, and sends their events on.
//!
//! A server sends no more messages than `subscription.max_outstanding_messages` that are not acknowledged; no more are read
//! here either, since some servers do not count. What keeps a stream open is a sign of life every half a minute.

use crate::answers::Fate;
use crate::client::{AskError, Link};
use crate::events::Gathered;
use crate::keep::{EXTEND_AFTER, confirm};
use crate::leases::{Named, Received};
use crate::messages::{
    CREATE_SUBSCRIPTION, ReceivedMessage, STREAMING_PULL, StreamingPullRequest,
    StreamingPullResponse, Subscription,
};
use crate::remedy::{Asked, PullError};
use crate::run::{DEADLINE, Run};
use http::HeaderMap;
use skidder_event::{Map, Progress};
use skidder_grpc::{Answers, Channel, Code, Requests};
use skidder_input::Source;
use skidder_os::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Pause between two signs of life: Google's clients have the same.
const ALIVE_EVERY: Duration = Duration::from_secs(30);
/// A stream that was open for so long works: a server without messages may say nothing at all.
const WORKS_AFTER: Duration = Duration::from_secs(5);
/// One that was open for so long is opened again at once when it ends.
const AT_ONCE_AFTER: Duration = Duration::from_secs(30);
/// How long what was read may take to find room in the queue after a stop.
const SEND_WAIT: Duration = Duration::from_millis(500);
/// How long the rest of a stream is waited for, to give it back. A server that is busy takes its time to end a stream, and
/// what is not read comes again only when its deadline is over.
const DRAIN_WAIT: Duration = Duration::from_millis(1500);
/// First pause after a failure; doubled with each that follows.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest of these.
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// What the deadline of a subscription is that is created, as Filebeat creates it. That of a stream wins.
const CREATED_DEADLINE_SECONDS: i32 = 10;

/// One of the streams.
pub(crate) struct Receiver {
    run: Arc<Run>,
    link: Arc<Link>,
    source: Source,
    /// In messages.
    name: String,
    /// What ids of its events begin with.
    prefix: Arc<str>,
    /// The stream that is open works.
    works: bool,
    /// Failures in a row.
    failures: u32,
}

/// A stream that is open.
struct Pull {
    requests: Requests<StreamingPullRequest>,
    answers: Answers<StreamingPullResponse>,
    ticks: Interval,
    opened: Instant,
    is_exactly_once: bool,
    /// Of the call.
    headers: HeaderMap,
    _channel: Channel,
}

impl Receiver {
    /// The one with this number; the first is 0.
    pub(crate) fn new(run: Arc<Run>, link: Arc<Link>, prefix: Arc<str>, number: usize) -> Self {
        let name = match number {
            0 => run.name().to_owned(),
            number => format!("{} #{}", run.name(), number + 1),
        };
        let source = run.intake.open(&name, Map::new());
        if number == 0 {
            // Of all streams: they share the messages that are held.
            let leases = Arc::clone(&run.leases);
            source.set_oldest(move || leases.oldest().map(Timestamp));
        }
        Self { run, link, source, name, prefix, works: false, failures: 0 }
    }

    /// Receives until the input ends. Returns the source, which must stay open until its events have their verdicts.
    pub(crate) async fn receive(mut self) -> Source {
        loop {
            let run = Arc::clone(&self.run);
            let opened = Instant::now();
            self.works = false;
            let ended = tokio::select! {
                biased;
                ended = self.session() => ended,
                () = run.stopped_for(SEND_WAIT + DRAIN_WAIT) => return self.source,
            };
            self.run.opened.store(false, Ordering::Relaxed);
            let error = match ended {
                Ok(()) | Err(PullError::Stopped(_)) => return self.source,
                Err(error) => error,
            };
            let was_long = opened.elapsed() >= AT_ONCE_AFTER;
            if error.is_usual() && (was_long || self.works) {
                tracing::debug!(stream = self.name, %error, "the stream is opened again");
                let pause = if was_long { Duration::ZERO } else { PAUSE_FIRST };
                if !self.pause(pause).await {
                    return self.source;
                }
                continue;
            }
            let goes_on = match self.create_missing(&error).await {
                Ok(true) => true,
                Ok(false) => self.failed(&error).await,
                Err(error) => self.failed(&error).await,
            };
            if !goes_on {
                return self.source;
            }
        }
    }

    /// Receives over one stream, until the input ends.
    async fn session(&mut self) -> Result<(), PullError> {
        let run = Arc::clone(&self.run);
        let mut pull = tokio::select! {
            biased;
            () = run.stopped() => return Ok(()),
            opened = self.open() => opened?,
        };
        let error = loop {
            let now = Instant::now();
            let works = pull.opened + WORKS_AFTER;
            tokio::select! {
                biased;
                () = run.stopped() => {
                    self.drain(pull).await;
                    return Ok(());
                }
                // Without room, outputs are not to wait for more events.
                () = run.intake.await_verdicts(run.leases.await_room()) => {}
                _ = pull.ticks.tick() => {
                    sign_of_life(&pull.requests).await;
                    continue;
                }
            }
            tokio::select! {
                biased;
                // The next look ends it.
                () = run.stopped() => {}
                answer = pull.answers.next() => match answer {
                    Ok(Some(answer)) => self.take(&mut pull, answer).await?,
                    Ok(None) => return Err(PullError::Ended),
                    Err(error) => break error,
                },
                _ = pull.ticks.tick() => sign_of_life(&pull.requests).await,
                () = tokio::time::sleep_until(works), if now < works => self.succeeded(),
            }
        };
        run.server.note_refusal(&error, &pull.headers).await;
        Err(self.error(Asked::Pull, AskError::Call(error)))
    }

    /// Ends a stream at a stop, and gives back what is on its way: the server would wait for its deadline.
    async fn drain(&self, pull: Pull) {
        let Pull { requests, mut answers, .. } = pull;
        // The server gives out no more, and ends its half behind what it has sent.
        drop(requests);
        let limit = Instant::now() + DRAIN_WAIT;
        while let Ok(Ok(Some(answer))) = tokio::time::timeout_at(limit, answers.next()).await {
            let mut unread = Gathered::default();
            for message in answer.received_messages {
                self.gather(message, &mut unread, 0);
            }
            // Without a verdict.
            drop(self.run.leases.batch(unread.into_numbers()));
        }
    }

    async fn open(&self) -> Result<Pull, PullError> {
        let Run { settings, server, .. } = &*self.run;
        let name = &settings.names.subscription;
        let failed = |error| self.error(Asked::Pull, error);
        let channel = server.open().await.map_err(|error| failed(error.into()))?;
        let headers = server.headers("subscription", name).await.map_err(failed)?;
        let stream = channel.stream(STREAMING_PULL, &headers).await;
        let (requests, answers) = stream.map_err(|error| failed(AskError::Call(error)))?;
        let first = StreamingPullRequest {
            subscription: name.clone(),
            stream_ack_deadline_seconds: DEADLINE.as_secs() as i32,
            client_id: self.run.client_id.clone(),
            // It counts for each stream, and here for all of them.
            max_outstanding_messages: settings
                .messages_max
                .map_or(0, |most| (most / settings.streams).max(1) as i64),
            max_outstanding_bytes: (settings.bytes_max / settings.streams as u64) as i64,
        };
        // If it is over already, the answers say why.
        let _is_over = requests.send(&first).await;
        let mut ticks = tokio::time::interval_at(Instant::now() + ALIVE_EVERY, ALIVE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let opened = Instant::now();
        let is_exactly_once = false;
        Ok(Pull { requests, answers, ticks, opened, is_exactly_once, headers, _channel: channel })
    }

    /// Sends the events of an answer on, with those of answers that are there as well.
    async fn take(
        &mut self,
        pull: &mut Pull,
        answer: StreamingPullResponse,
    ) -> Result<(), PullError> {
        self.succeeded();
        let run = Arc::clone(&self.run);
        let now = run.intake.clock().wall().0;
        let mut gathered = Gathered::default();
        let mut next = Some(answer);
        while let Some(answer) = next {
            if let Some(properties) = &answer.subscription_properties {
                pull.is_exactly_once = properties.exactly_once_delivery_enabled;
            }
            let messages = if pull.is_exactly_once {
                self.confirmed(answer.received_messages).await
            } else {
                answer.received_messages
            };
            for message in messages {
                self.gather(message, &mut gathered, now);
            }
            let has_room = !gathered.is_full() && run.leases.has_room();
            next = if has_room { pull.answers.try_next() } else { None };
        }
        if gathered.is_empty() {
            return Ok(());
        }
        run.received.store(true, Ordering::Relaxed);
        let ready = gathered.take(&mut self.source, &self.prefix, now);
        run.intake.metrics().bytes.add(ready.bytes);
        let owed = run.leases.batch(ready.numbers);
        let sending = self.source.send(ready.batch, Progress::Acknowledge(owed, ready.bytes));
        tokio::pin!(sending);
        loop {
            tokio::select! {
                biased;
                sent = &mut sending => return Ok(sent?),
                // What finds no room for so long is given back when this is dropped.
                () = run.stopped_for(SEND_WAIT) => return Ok(()),
                _ = pull.ticks.tick() => sign_of_life(&pull.requests).await,
            }
        }
    }

    /// Adds a message, if it is no second copy of one that is under way.
    fn gather(&self, received: ReceivedMessage, gathered: &mut Gathered, now: i64) {
        let ReceivedMessage { ack_id, message } = received;
        let message = message.unwrap_or_default();
        let lease = Received {
            ack_id,
            message_id: message.message_id.clone(),
            bytes: message.data.len() as u64,
            published: message.publish_time.as_ref().map_or(now, |time| time.nanoseconds()),
        };
        let extend_at = self.run.intake.clock().monotonic() + EXTEND_AFTER;
        self.run.counts.received.add(1);
        match self.run.leases.hold(lease, extend_at) {
            Some(number) => gathered.push(number, message, now),
            None => self.run.counts.again.add(1),
        }
    }

    /// Those messages whose receipt the server confirms: with exactly-once delivery the others are somebody else's.
    async fn confirmed(&self, messages: Vec<ReceivedMessage>) -> Vec<ReceivedMessage> {
        let named: Vec<Named> = messages
            .iter()
            .map(|message| Named { number: 0, ack_id: message.ack_id.as_str().into() })
            .collect();
        let fates = confirm(&self.run, &self.link, &named).await;
        let all = messages.into_iter().zip(fates);
        // One of which nothing is known is extended later, or refused when it is acknowledged.
        all.filter(|(_, fate)| *fate != Fate::Lost).map(|(message, _)| message).collect()
    }

    /// Creates the subscription if it is missing, and may be created. Returns whether it is worth a try at once.
    async fn create_missing(&mut self, error: &PullError) -> Result<bool, PullError> {
        if !error.is_missing() || !self.run.settings.names.is_created {
            return Ok(false);
        }
        // One that is said to be there, and is not found, is no reason for haste.
        let goes_on = self.create().await? || self.failures == 0;
        if goes_on {
            self.failures = self.failures.saturating_add(1);
        }
        Ok(goes_on)
    }

    /// Creates the subscription; returns whether it was not there.
    async fn create(&self) -> Result<bool, PullError> {
        let names = &self.run.settings.names;
        let _one_at_a_time = self.run.creating.lock().await;
        let request = Subscription {
            name: names.subscription.clone(),
            topic: names.topic.clone(),
            ack_deadline_seconds: CREATED_DEADLINE_SECONDS,
        };
        let about = ("name", &*names.subscription);
        match self.link.call::<Subscription>(CREATE_SUBSCRIPTION, about, &request).await {
            Ok(_) => {
                let (subscription, topic) = (&*names.subscription, &*names.topic);
                tracing::info!(subscription, topic, "the subscription is created");
                Ok(true)
            }
            Err(AskError::Call(error)) if error.code() == Some(Code::AlreadyExists) => Ok(false),
            Err(error) => Err(self.error(Asked::Create, error)),
        }
    }

    fn error(&self, asked: Asked, error: AskError) -> PullError {
        match error {
            AskError::Call(error) => {
                let names = self.run.settings.names.clone();
                PullError::Call { asked, error, names }
            }
            AskError::Token(error) => PullError::Token(error),
        }
    }

    /// It works.
    fn succeeded(&mut self) {
        self.works = true;
        self.run.opened.store(true, Ordering::Relaxed);
        if self.failures == 0 {
            return;
        }
        tracing::info!(stream = self.name, failures = self.failures, "messages can be received");
        self.failures = 0;
        self.run.intake.metrics().set_trouble_of(&self.name, None);
    }

    /// Reports a failure and waits until it is time to try again. Returns whether that is so; `false`: the input ends.
    async fn failed(&mut self, error: &PullError) -> bool {
        let factor = 2_u32.saturating_pow(self.failures.min(30));
        let pause = PAUSE_FIRST.saturating_mul(factor).min(PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        let text = error.to_string();
        self.source.failed(&text);
        self.run.intake.metrics().set_trouble_of(&self.name, Some(&text));
        if self.failures.is_power_of_two() {
            let failures = self.failures;
            tracing::error!(
                stream = self.name,
                error = text,
                failures,
                "cannot receive messages; trying again"
            );
        }
        self.pause(pause).await
    }

    /// Waits until it is time to try again. Returns whether that is so; `false`: the input ends.
    async fn pause(&self, pause: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.run.stopped() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }
}

/// Shows the server that somebody listens. If the stream is over, its answers say why.
async fn sign_of_life(requests: &Requests<StreamingPullRequest>) {
    let _is_over = requests.send(&StreamingPullRequest::default()).await;
}
