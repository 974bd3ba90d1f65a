//! A worker: makes requests of events and brings them to one host, or to one of several that stand in for each other.

use super::answer::Verdict;
use super::body::Packer;
use super::client::{Link, Target};
use super::encode::{Content, Limits, RequestWriter};
use super::size::Size;
use bytes::Bytes;
use skidder_event::DropReason;
use skidder_net::ConnectionError;
use skidder_os::Clock;
use skidder_outputs::{Backoff, Failures, Refusal, Refuser, Share, Supply};
use skidder_pipeline::{Delivery, OutputMetrics, Ticket};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A request that broke so many connections in a row is made smaller, like one that was too large: some proxies close
/// the connection without waiting until that answer could be read.
const BROKEN_MAX: u32 = 5;
/// The status of an answer that is a success, of HTTP under both protocols.
const SUCCESS: u16 = 200;
/// Largest buffer that is kept for the next request.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// See the module's text.
pub(crate) struct Worker {
    pub(crate) targets: Vec<Arc<Target>>,
    /// Which of them is in use.
    pub(crate) current: usize,
    pub(crate) connection: Option<Connection>,
    pub(crate) supply: Arc<Supply>,
    pub(crate) writer: RequestWriter,
    pub(crate) packer: Packer,
    /// The request before it is compressed, kept for its room.
    pub(crate) plain: Vec<u8>,
    /// `bulk_max_size`.
    pub(crate) events_max: usize,
    pub(crate) size: Size,
    /// How many connections broke in a row with a request under way.
    pub(crate) broken: u32,
    pub(crate) timeout: Duration,
    pub(crate) refuser: Arc<Refuser>,
    pub(crate) metrics: Arc<OutputMetrics>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) backoff: Backoff,
    pub(crate) failures: Failures,
    /// Refusals of a part that were logged so far.
    pub(crate) partials_logged: Failures,
    /// Remarks of servers that were logged so far.
    pub(crate) remarks_logged: Failures,
}

/// A connection to the current host.
pub(crate) struct Connection {
    link: Link,
    /// Whether it has answered before: then the server may have closed it while it was idle.
    was_used: bool,
}

/// The next step after an attempt.
enum Next {
    /// Every event has its verdict.
    Done,
    /// The same events, fewer at once.
    Smaller,
    /// The same events, later.
    Later(Failure),
}

/// Why events are not there yet.
struct Failure {
    why: String,
    wait: Option<Duration>,
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        Self { why: error.to_string(), wait: None }
    }
}

impl Worker {
    /// Sends until there will be no more events.
    pub(crate) async fn run(mut self) {
        let supply = Arc::clone(&self.supply);
        loop {
            // While a host cannot be reached nothing is taken for it: others may have it.
            if self.connection.is_none() {
                let opened = tokio::select! {
                    biased;
                    opened = self.open() => opened,
                    () = supply.ended() => return,
                };
                if let Err(error) = opened {
                    if self.fail(error.into(), 0).await {
                        return;
                    }
                    continue;
                }
            }
            let Some(share) = supply.take().await else { return };
            if let Some((failure, events)) = self.deliver(share).await
                && self.fail(failure, events).await
            {
                return;
            }
        }
    }

    async fn open(&mut self) -> Result<(), ConnectionError> {
        let target = &self.targets[self.current];
        let stream = target.route.open(self.timeout).await?;
        let link = target.over(stream, self.timeout).await?;
        self.connection = Some(Connection { link, was_used: false });
        tracing::debug!(host = %target.host, "connected");
        Ok(())
    }

    /// Brings events to their end, or returns the remaining ones, with the failure and how many of them were under
    /// way.
    async fn deliver(&mut self, share: Share) -> Option<(Failure, usize)> {
        let mut waiting = VecDeque::from(share);
        while !waiting.is_empty() {
            let limits = Limits { events: self.events_max, bytes: self.size.bytes() };
            let observed = u64::try_from(self.clock.wall().0).unwrap_or(0);
            self.plain.clear();
            self.plain.shrink_to(KEPT_BYTES_MAX);
            let content = self.writer.write(&mut self.plain, &mut waiting, limits, observed).await;
            let plain_bytes = self.plain.len();
            let body = self.packer.pack(&mut self.plain).await;
            match self.attempt(&content, plain_bytes, &body).await {
                Next::Done => {}
                Next::Smaller => restore(&mut waiting, content.deliveries),
                Next::Later(failure) => {
                    restore(&mut waiting, content.deliveries);
                    self.metrics.failed.add(content.events as u64);
                    self.supply.give_back(1, vec![waiting.into()]);
                    return Some((failure, content.events));
                }
            }
        }
        self.supply.done(1);
        None
    }

    /// Sends a request and settles what it can.
    async fn attempt(&mut self, content: &Content, plain_bytes: usize, body: &[Bytes]) -> Next {
        let events = content.events as u64;
        self.metrics.total.add(events);
        self.metrics.batches.add(1);
        self.metrics.active.add(events);
        let sent = self.send(body).await;
        self.metrics.active.sub(events);
        let verdict = match sent {
            Ok(verdict) => {
                self.broken = 0;
                verdict
            }
            Err(error) => {
                self.count_broken(&error, content, plain_bytes);
                return Next::Later(error.into());
            }
        };
        match verdict {
            Verdict::Taken { remark } => {
                self.take(&content.deliveries, 0);
                self.size.took(plain_bytes);
                self.log_remark(&remark);
                self.recover();
                Next::Done
            }
            Verdict::Partly { refused, why } if refused < events => {
                self.log_partial(refused, &why);
                self.take(&content.deliveries, refused as u32);
                self.recover();
                Next::Done
            }
            Verdict::Partly { why, .. } => {
                self.refuse(content, SUCCESS, "partial_success", &why).await;
                Next::Done
            }
            Verdict::TooLarge { .. } if content.events > 1 => {
                self.metrics.split.add(1);
                self.make_smaller(plain_bytes);
                Next::Smaller
            }
            Verdict::TooLarge { status, why, sure: true } => {
                self.refuse(content, status, "too_large", &why).await;
                Next::Done
            }
            Verdict::Refused { status, kind, why } => {
                self.refuse(content, status, &kind, &why).await;
                Next::Done
            }
            Verdict::TooLarge { why, sure: false, .. } => {
                self.metrics.too_many.add(events);
                Next::Later(Failure { why, wait: None })
            }
            Verdict::Later { why, wait, too_many } => {
                if too_many {
                    self.metrics.too_many.add(events);
                }
                Next::Later(Failure { why, wait })
            }
            Verdict::Unreadable { why } => {
                self.metrics.read_errors.add(1);
                self.connection = None;
                Next::Later(Failure { why, wait: None })
            }
        }
    }

    /// Sends a request to the current host and reads the answer.
    async fn send(&mut self, body: &[Bytes]) -> Result<Verdict, ConnectionError> {
        let started = self.clock.monotonic();
        loop {
            let mut connection = match self.connection.take().filter(|held| held.link.is_open()) {
                Some(connection) => connection,
                None => {
                    self.open().await?;
                    continue;
                }
            };
            let target = &self.targets[self.current];
            match target.ask(&mut connection.link, body, self.timeout).await {
                Ok((verdict, bytes)) => {
                    connection.was_used = true;
                    self.connection = Some(connection);
                    let took = self.clock.monotonic().since(started);
                    let sent: usize = body.iter().map(Bytes::len).sum();
                    self.metrics.write_bytes.add(sent as u64);
                    self.metrics.read_bytes.add(bytes as u64);
                    self.metrics.latency_ns.add(took.as_nanos() as u64);
                    return Ok(verdict);
                }
                // The server closed the connection while it was idle: no failure, but a new one.
                Err(ConnectionError::Broken(_)) if connection.was_used => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives events their verdict: all are there but for so many.
    fn take(&self, deliveries: &[Delivery], refused: u32) {
        let mut left = refused;
        let mut taken = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            let rows = delivery.len() as u32;
            let lost = rows.min(left);
            left -= lost;
            if lost > 0 {
                delivery.ticket.dropped(DropReason::Rejected, lost);
            }
            if rows > lost {
                taken.push((&*delivery.ticket, rows - lost));
            }
        }
        let rows: u32 = taken.iter().map(|(_, rows)| rows).sum();
        self.metrics.acked.add(u64::from(rows));
        self.metrics.dropped.add(u64::from(refused - left));
        Ticket::deliver_all(taken);
    }

    /// None of the events can ever be taken.
    async fn refuse(&mut self, content: &Content, status: u16, kind: &str, why: &str) {
        let reason = serde_json::json!({ "type": kind, "reason": why }).to_string().into_bytes();
        let rows = content
            .deliveries
            .iter()
            .flat_map(|delivery| delivery.rows.clone().map(move |row| (delivery.clone(), row)));
        let refusals = rows.map(|(delivery, row)| {
            let reason = reason.clone();
            Refusal { delivery, row, status, reason, id: None }
        });
        self.refuser.settle(refusals.collect()).await;
        self.recover();
    }

    /// There is no answer to a request. Its size may be why.
    fn count_broken(&mut self, error: &ConnectionError, content: &Content, plain_bytes: usize) {
        if matches!(error, ConnectionError::Broken(_)) {
            self.broken += 1;
        }
        if self.broken >= BROKEN_MAX && content.events > 1 {
            self.broken = 0;
            self.make_smaller(plain_bytes);
        }
    }

    fn make_smaller(&mut self, plain_bytes: usize) {
        self.size.was_too_large(plain_bytes);
        let host = &self.targets[self.current].host;
        tracing::warn!(
            output = "otlp", %host, bytes = plain_bytes,
            "a request was too large; the next ones are smaller (`bulk_max_bytes`)"
        );
    }

    /// The server refused a part, and does not report which.
    fn log_partial(&mut self, refused: u64, why: &str) {
        if let Some(times) = self.partials_logged.add() {
            let host = &self.targets[self.current].host;
            tracing::error!(
                output = "otlp", %host, events = refused, why, times,
                "the server refused some events of a request and does not say which; they are lost"
            );
        }
    }

    fn log_remark(&mut self, remark: &str) {
        if !remark.is_empty()
            && let Some(times) = self.remarks_logged.add()
        {
            let host = &self.targets[self.current].host;
            tracing::warn!(output = "otlp", %host, remark, times, "the server has taken events with a remark");
        }
    }

    /// The server works.
    fn recover(&mut self) {
        self.backoff.reset();
        let failures = self.failures.clear();
        if failures > 0 {
            let host = &self.targets[self.current].host;
            tracing::info!(output = "otlp", %host, failures, "events are delivered again");
        }
    }

    /// Logs a failure, switches to the next host and waits. Returns whether there will be no more events.
    async fn fail(&mut self, failure: Failure, events: usize) -> bool {
        let host = &self.targets[self.current].host;
        let Failure { why, wait } = failure;
        self.metrics.write_error(host, &why);
        if let Some(failures) = self.failures.add() {
            tracing::error!(
                output = "otlp", %host, error = why, events, failures,
                "cannot send events; trying again"
            );
        }
        if self.targets.len() > 1 {
            self.connection = None;
            self.current = (self.current + 1) % self.targets.len();
        }
        let wait = self.backoff.next_wait().max(wait.unwrap_or_default());
        tokio::select! {
            () = tokio::time::sleep(wait) => false,
            () = self.supply.ended() => true,
        }
    }
}

/// Puts events back before those that wait.
fn restore(waiting: &mut VecDeque<Delivery>, deliveries: Vec<Delivery>) {
    for delivery in deliveries.into_iter().rev() {
        waiting.push_front(delivery);
    }
}
