//! A session over one connection: messages in, acknowledgements out.
//!
//! Nothing is read while a queue is full, while `receive_maximum` messages have no acknowledgement, or while the broker does
//! not take what is to be sent; signs of life go out nevertheless, and their answers are not missed then.

use super::client::{Client, SessionResult};
use super::decode::{BadPacket, Connected, Packet};
use super::encode::{put_complete, put_disconnect, put_ping, put_subscribe};
use super::link::{Link, LinkError, READ_BYTES, SUBSCRIPTION, ended, receive, send_some};
use super::reasons;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep_until, timeout};

/// Bytes that wait to be sent, beyond which nothing is read.
const OUTGOING_BYTES_MAX: usize = 64 << 10;

/// Outputs take what there is when nothing came for so long and messages wait for verdicts: the broker may wait for these.
const FLUSH_AFTER: Duration = Duration::from_millis(5);

/// A refused subscription is tried again so often.
const SUBSCRIBE_AGAIN: Duration = Duration::from_mins(1);

/// How long a stop waits for verdicts, to acknowledge their messages.
const LAST_VERDICTS_MAX: Duration = Duration::from_secs(1);

/// How long the end of a connection may take, as in Filebeat.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Nothing came for so long: what there is was read (`--once`).
const ONCE_SILENCE: Duration = Duration::from_secs(1);

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The input must stop, or has read everything.
    Stopped,
    /// Messages get no verdict: the broker must send them again.
    Rejected,
}

/// See the module's text.
pub(super) struct Session<'a> {
    client: &'a mut Client,
    link: Link,
    /// The interval of signs of life; `None`: none.
    keep_alive: Option<Duration>,
    times: Times,
    /// A message was cut, which is logged once.
    has_cut: bool,
}

/// When something happened last.
#[derive(Debug)]
struct Times {
    sent: Instant,
    received: Instant,
    /// Reading goes on since then.
    reading: Option<Instant>,
    /// A sign of life that has no answer yet.
    pinged: Option<Instant>,
    /// A subscription that has no answer yet.
    subscribed: Option<Instant>,
    /// When refused filters are subscribed to again.
    again: Option<Instant>,
    /// The broker takes nothing since then.
    stuck: Option<Instant>,
    /// When outputs take what there is.
    flush: Option<Instant>,
}

impl<'a> Session<'a> {
    pub(super) fn new(client: &'a mut Client, link: Link, connected: &Connected) -> Self {
        let settings = &client.settings;
        let own = settings.keep_alive;
        let keep_alive = connected.keep_alive.map_or(own, |it| Duration::from_secs(it.into()));
        let is_kept = !settings.clean_session && connected.session_expiry != Some(0);
        if !settings.clean_session && !is_kept {
            tracing::warn!(
                "the broker keeps no session, so that a break of the connection may lose messages"
            );
        }
        client.is_kept = is_kept;
        client.inbox.connected(connected.has_session);
        tracing::info!(broker = link.name, has_session = connected.has_session, "connected");
        let now = Instant::now();
        let times = Times {
            sent: now,
            received: now,
            reading: None,
            pinged: None,
            subscribed: Some(now),
            again: None,
            stuck: None,
            flush: None,
        };
        let keep_alive = Some(keep_alive).filter(|interval| !interval.is_zero());
        Self { client, link, keep_alive, times, has_cut: false }
    }

    /// Reads until the session ends.
    pub(super) async fn run(mut self) -> SessionResult {
        let end = self.attend().await;
        match end {
            Ok(End::Stopped) => self.finish().await,
            Ok(End::Rejected) => {}
            // What was decoded goes on with the next connection, and the broker sends the rest again.
            Err(_) if self.client.is_kept => {}
            Err(_) => {
                let intake = self.client.intake.clone();
                tokio::select! {
                    biased;
                    () = self.rest() => {}
                    () = intake.stopped() => {}
                }
            }
        }
        end
    }

    async fn attend(&mut self) -> SessionResult {
        let intake = self.client.intake.clone();
        let inbox = Arc::clone(&self.client.inbox);
        loop {
            let reads = !self.client.is_sending() && self.take()?;
            inbox.take_due(&mut self.link.outgoing);
            if inbox.is_rejected() {
                return Ok(End::Rejected);
            }
            if !reads && !self.client.is_sending() && self.may_take() {
                continue;
            }
            if let Some(end) = self.look_at_times(reads)? {
                return Ok(end);
            }
            let wake = self.next_time(reads);
            let Self { client, link, times, .. } = self;
            let Link { reader, writer, incoming, outgoing, is_unflushed, .. } = link;
            tokio::select! {
                biased;
                () = intake.stopped() => return Ok(End::Stopped),
                sent = client.sent(), if client.is_sending() => {
                    if sent.is_err() {
                        return Ok(End::Stopped);
                    }
                }
                sent = send_some(writer, outgoing, is_unflushed), if !outgoing.is_empty() || *is_unflushed => {
                    sent?;
                    times.sent = Instant::now();
                    times.stuck = None;
                }
                received = receive(reader, incoming), if reads => {
                    let received = received?;
                    intake.metrics().bytes.add(received as u64);
                    times.received = Instant::now();
                    times.pinged = None;
                    times.flush = None;
                }
                () = inbox.news.notified() => {}
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Whether another packet may be read.
    fn may_take(&self) -> bool {
        self.client.inbox.owed() < usize::from(self.client.settings.receive_maximum)
            && self.link.outgoing.len() < OUTGOING_BYTES_MAX
    }

    /// Makes a batch of what was received, and sends it. Returns whether more bytes are wanted.
    fn take(&mut self) -> Result<bool, LinkError> {
        let mut used = 0;
        let taken = self.decode(&mut used);
        self.link.incoming.drain(..used);
        if self.link.incoming.is_empty() && self.link.incoming.capacity() > 4 * READ_BYTES {
            // A long message has made it large.
            self.link.incoming.shrink_to(READ_BYTES);
        }
        if !self.client.is_sending() && !self.client.gathered.is_empty() {
            self.client.send();
        }
        Ok(taken? && !self.client.is_sending())
    }

    fn decode(&mut self, used: &mut usize) -> Result<bool, LinkError> {
        while self.may_take() {
            if self.client.gathered.is_full() {
                self.client.send();
                if self.client.is_sending() {
                    return Ok(false);
                }
            }
            let (length, packet) = self.link.decoder.next(&self.link.incoming[*used..])?;
            *used += length;
            match packet {
                None => return Ok(true),
                Some(Packet::Message(message)) => {
                    let client = &mut *self.client;
                    let place = match message.qos {
                        0 => None,
                        // Otherwise it is an event already.
                        _ => match client.inbox.arrived(&message) {
                            None => continue,
                            place => place,
                        },
                    };
                    if !client.gathered.fits(message.qos) {
                        client.send();
                    }
                    if message.is_cut {
                        client.cut(&message.topic, std::mem::replace(&mut self.has_cut, true));
                    }
                    client.gathered.push(&message, place);
                    if client.is_sending() {
                        return Ok(false);
                    }
                }
                Some(Packet::Release(id)) => {
                    self.client.inbox.released(id)?;
                    put_complete(&mut self.link.outgoing, id);
                }
                Some(Packet::Subscribed { id, codes, words }) => {
                    let codes = codes.to_vec();
                    self.subscribed(id, &codes, words.as_deref())?;
                }
                Some(Packet::Pong) => {}
                Some(Packet::Disconnect { code, words }) => {
                    return Err(ended(self.client.settings.version, code, words.as_deref()));
                }
                Some(Packet::Connected(_)) => return Err(BadPacket("a second `CONNACK`").into()),
            }
        }
        Ok(false)
    }

    /// The broker has answered the subscription.
    fn subscribed(&mut self, id: u16, codes: &[u8], words: Option<&str>) -> Result<(), LinkError> {
        let settings = &self.client.settings;
        if id != SUBSCRIPTION || codes.len() != settings.topics.len() {
            return Err(BadPacket("a `SUBACK` is of another subscription").into());
        }
        if self.times.subscribed.take().is_none() {
            return Err(BadPacket("a `SUBACK` is of no subscription").into());
        }
        let mut refused = Vec::new();
        for (topic, code) in settings.topics.iter().zip(codes) {
            if *code >= 0x80 {
                let reason = reasons::subscription(settings.version, *code);
                refused.push(format!("`{topic}`: {}", reasons::sentence(reason, *code, words)));
            } else if *code < settings.qos {
                tracing::warn!(
                    topic,
                    qos = settings.qos,
                    granted = code,
                    "the broker grants a lower quality of service"
                );
            }
        }
        if refused.is_empty() {
            tracing::info!(broker = self.link.name, "subscribed");
            self.client.recovered();
            return Ok(());
        }
        let error = format!("a topic cannot be read: {}", refused.join(", "));
        self.client.report(&error);
        self.times.again = Some(Instant::now() + SUBSCRIBE_AGAIN);
        Ok(())
    }

    /// Does what is due, and ends what takes too long.
    fn look_at_times(&mut self, reads: bool) -> Result<Option<End>, LinkError> {
        let now = Instant::now();
        let limit = self.client.settings.timeout;
        let times = &mut self.times;
        times.reading = if reads { times.reading.or(Some(now)) } else { None };
        if let Some(reading) = times.reading {
            let is_late = |since: Option<Instant>| {
                since.is_some_and(|since| now >= since.max(reading) + limit)
            };
            if is_late(times.pinged) {
                return Err(LinkError::Silent { request: "PINGREQ", limit });
            }
            if is_late(times.subscribed) {
                return Err(LinkError::Silent { request: "SUBSCRIBE", limit });
            }
        }
        if self.keep_alive.is_some_and(|interval| now >= times.sent + interval) {
            put_ping(&mut self.link.outgoing);
            times.pinged = times.pinged.or(Some(now));
            // The next one follows after another interval, even if this one is not sent yet.
            times.sent = now;
        }
        if times.again.is_some_and(|at| now >= at) {
            let settings = &self.client.settings;
            let (version, topics) = (settings.version, &settings.topics);
            put_subscribe(&mut self.link.outgoing, version, SUBSCRIPTION, topics, settings.qos);
            (times.again, times.subscribed) = (None, Some(now));
        }
        if self.link.outgoing.is_empty() {
            times.stuck = None;
        } else if now >= *times.stuck.get_or_insert(now) + limit {
            return Err(LinkError::Stuck(limit));
        }
        let is_waiting = self.client.inbox.is_waiting();
        if !is_waiting {
            times.flush = None;
        } else if !reads || times.flush.is_some_and(|at| now >= at) {
            self.client.intake.flush();
            times.flush = Some(now + limit);
        } else {
            times.flush = times.flush.or(Some(now + FLUSH_AFTER));
        }
        let is_read = reads && times.subscribed.is_none() && now >= times.received + ONCE_SILENCE;
        if self.client.intake.is_once() && is_read && !is_waiting {
            return Ok(Some(End::Stopped));
        }
        Ok(None)
    }

    /// When to look at the times again.
    fn next_time(&self, reads: bool) -> Instant {
        let limit = self.client.settings.timeout;
        let times = &self.times;
        let late = |since: Option<Instant>| {
            since.zip(times.reading).map(|(since, reading)| since.max(reading) + limit)
        };
        let once = self.client.intake.is_once() && reads && times.subscribed.is_none();
        [
            late(times.pinged),
            late(times.subscribed),
            self.keep_alive.map(|interval| times.sent + interval),
            times.again,
            times.stuck.map(|since| since + limit),
            times.flush,
            once.then(|| Instant::now() + ONCE_SILENCE / 4),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or_else(|| Instant::now() + limit)
    }

    /// Sends on what was received: of a session that is kept only what was decoded, since the broker sends the rest again.
    async fn rest(&mut self) {
        let mut is_last = self.client.is_kept;
        while self.client.drain().await.is_ok() && !is_last {
            self.link.outgoing.clear();
            is_last = !matches!(self.take(), Ok(false));
            self.client.inbox.take_due(&mut self.link.outgoing);
        }
    }

    /// The end of the input: what has a verdict soon is acknowledged.
    async fn finish(&mut self) {
        let inbox = Arc::clone(&self.client.inbox);
        let last = async {
            self.rest().await;
            while inbox.is_waiting() && !inbox.is_rejected() {
                self.client.intake.flush();
                inbox.news.notified().await;
            }
        };
        // What has no verdict until then comes again.
        drop(timeout(LAST_VERDICTS_MAX, last).await);
        if !self.client.gathered.is_empty() && !self.client.is_sending() {
            self.client.send();
        }
        inbox.take_due(&mut self.link.outgoing);
        put_disconnect(&mut self.link.outgoing);
        let close = async {
            if self.link.send().await.is_err() || self.link.writer.shutdown().await.is_err() {
                return;
            }
            // The broker closes the connection when it has read everything. A client that connects before could be sent again
            // what is acknowledged here.
            let Link { reader, incoming, .. } = &mut self.link;
            while receive(reader, incoming).await.is_ok() {
                incoming.clear();
            }
        };
        // The broker may be gone; it has nothing to lose.
        drop(timeout(CLOSE_TIMEOUT, close).await);
    }
}
