//! A worker: brings shares of events to one server, or to one of several that stand in for each other.

use super::config::DataType;
use super::request::{Request, RequestWriter};
use crate::backoff::{Backoff, Failures};
use crate::refusal::{Refusal, Refuser};
use crate::supply::{Share, Supply};
use skidder_os::Clock;
use skidder_pipeline::{Delivery, OutputMetrics, Ticket};
use skidder_redis::{Connection, Failure, Reply, RespError, Target};
use std::sync::Arc;
use std::time::Duration;

/// Largest request that is kept for its room.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// The server's error for a value longer than its `proto-max-bulk-len`.
const TOO_LARGE: &str = "ERR Protocol error: invalid bulk length";

/// Whether an answer shows that a command took its values: how long the list is now, or how many listen to the channel.
fn shows(command: DataType, values: u32, answer: &Reply) -> bool {
    match (command, answer) {
        (DataType::List, &Reply::Number(length)) => length >= i64::from(values.max(1)),
        (DataType::Channel, &Reply::Number(listeners)) => listeners >= 0,
        _ => false,
    }
}

/// See the module's text.
pub(crate) struct Worker {
    pub(crate) targets: Vec<Arc<Target>>,
    /// Which of them is in use.
    pub(crate) current: usize,
    pub(crate) supply: Arc<Supply>,
    pub(crate) writer: RequestWriter,
    pub(crate) request: Request,
    pub(crate) refuser: Arc<Refuser>,
    pub(crate) timeout: Duration,
    pub(crate) metrics: Arc<OutputMetrics>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) backoff: Backoff,
    pub(crate) failures: Failures,
}

impl Worker {
    /// Sends until there will be no more events.
    pub(crate) async fn run(mut self) {
        let supply = Arc::clone(&self.supply);
        // While a server cannot be reached nothing is taken for it: others may have it.
        let mut reached = false;
        loop {
            let mut first: Option<Share> = None;
            if reached {
                // It may close connections that are idle; a new one is made when it is needed.
                match supply.take().await {
                    None => return,
                    share => first = share,
                }
            }
            let target = Arc::clone(&self.targets[self.current]);
            let opened = tokio::select! {
                biased;
                opened = target.open(self.timeout) => opened,
                () = supply.ended() => return,
            };
            let failure = match opened {
                Ok(connection) => match self.serve(connection, first).await {
                    Ok(ended) if ended => return,
                    Ok(_) => {
                        reached = true;
                        continue;
                    }
                    Err((failure, events)) => (failure, events),
                },
                Err(failure) => {
                    if let Some(share) = first {
                        supply.give_back(1, vec![share]);
                    }
                    (failure, 0)
                }
            };
            reached = false;
            if self.fail(&failure.0, failure.1).await {
                return;
            }
        }
    }

    /// Sends over one connection. Returns whether there will be no more events; `false`: the server closed an idle
    /// connection. A failure comes with the number of events that were given back.
    async fn serve(
        &mut self,
        mut connection: Connection,
        first: Option<Share>,
    ) -> Result<bool, (Failure, usize)> {
        let supply = Arc::clone(&self.supply);
        let mut next = first;
        loop {
            let share = match next.take() {
                Some(share) => share,
                None => tokio::select! {
                    biased;
                    () = connection.closed() => return Ok(false),
                    share = supply.take() => match share {
                        Some(share) => share,
                        None => return Ok(true),
                    },
                },
            };
            self.send(&mut connection, share).await?;
        }
    }

    /// Sends a share and gives its events their verdicts.
    async fn send(
        &mut self,
        connection: &mut Connection,
        share: Share,
    ) -> Result<(), (Failure, usize)> {
        self.writer.write(&share, &mut self.request);
        let refusals = std::mem::take(&mut self.request.refusals);
        self.refuser.settle(refusals).await;
        let events = self.request.events.len() as u64;
        if events == 0 {
            self.supply.done(1);
            return Ok(());
        }
        let metrics = Arc::clone(&self.metrics);
        metrics.total.add(events);
        metrics.batches.add(1);
        metrics.active.add(events);
        let started = self.clock.monotonic();
        let read_before = connection.read_bytes;
        let outcome = self.exchange(connection).await;
        metrics.active.sub(events);
        metrics.read_bytes.add(connection.read_bytes - read_before);
        metrics.latency_ns.add(self.clock.monotonic().since(started).as_nanos() as u64);
        let result = self.settle(&share, outcome).await;
        self.request.bytes.clear();
        self.request.bytes.shrink_to(KEPT_BYTES_MAX);
        result
    }

    /// Writes the request and reads the answers.
    async fn exchange(&mut self, connection: &mut Connection) -> Outcome {
        let mut outcome = Outcome::default();
        if let Err(error) = connection.send(&self.request.bytes).await {
            // The server may have answered with the reason.
            outcome.error = match &error {
                RespError::Ended(words) => Some(words.clone()),
                _ => match connection.reply().await {
                    Ok(Reply::Error(words)) => Some(words),
                    _ => None,
                },
            };
            outcome.broken = Some(error);
            outcome.failed = (0..self.request.commands.len()).collect();
            return outcome;
        }
        self.metrics.write_bytes.add(self.request.bytes.len() as u64);
        let datatype = self.writer.datatype();
        for (command, &values) in self.request.commands.iter().enumerate() {
            let broken = match connection.reply().await {
                Ok(Reply::Error(error)) => {
                    outcome.error.get_or_insert(error);
                    outcome.failed.push(command);
                    continue;
                }
                Ok(answer) if shows(datatype, values, &answer) => continue,
                // The next answers can no longer be matched to commands.
                Ok(answer) => RespError::Unproven { command: datatype.command(), answer },
                Err(error) => error,
            };
            outcome.broken = Some(broken);
            outcome.failed.extend(command..self.request.commands.len());
            break;
        }
        outcome
    }

    /// Gives the events of a share their verdicts, and back what failed.
    async fn settle(&mut self, share: &Share, outcome: Outcome) -> Result<(), (Failure, usize)> {
        let failed = self.settle_good(share, &outcome.failed);
        let count: usize = failed.iter().map(Delivery::len).sum();
        if count == 0 {
            self.supply.done(1);
            self.backoff.reset();
            let failures = self.failures.clear();
            if failures > 0 {
                tracing::info!(output = "redis", failures, "events are delivered again");
            }
            return Ok(());
        }
        let too_large = outcome.error.as_deref().is_some_and(|error| error.starts_with(TOO_LARGE));
        if too_large && count == 1 {
            let reason = "the event is larger than `proto-max-bulk-len` of the server";
            let refusal = Refusal::unsent(&failed[0], failed[0].rows.start, reason);
            self.refuser.settle(vec![refusal]).await;
            self.supply.done(1);
        } else if too_large {
            self.metrics.split.add(1);
            let (head, tail) = halves(failed, count / 2);
            self.supply.give_back(1, vec![head, tail]);
        } else {
            self.metrics.failed.add(count as u64);
            self.supply.give_back(1, vec![failed]);
        }
        match (outcome.error, outcome.broken) {
            (Some(error), _) => Err((Failure::Answer(error), count)),
            (None, Some(error)) => Err((error.into(), count)),
            (None, None) => Ok(()),
        }
    }

    /// Counts the events of all commands but `failed` as delivered; gives the others.
    fn settle_good(&self, share: &Share, failed: &[usize]) -> Share {
        let mut delivered = vec![0_u32; share.len()];
        let mut left: Share = Vec::new();
        let mut events = self.request.events.iter();
        let mut failed = failed.iter().copied().peekable();
        for (command, &count) in self.request.commands.iter().enumerate() {
            let is_failed = failed.next_if_eq(&command).is_some();
            for &(index, row) in events.by_ref().take(count as usize) {
                if !is_failed {
                    delivered[index as usize] += 1;
                    continue;
                }
                let delivery = &share[index as usize];
                match left.last_mut() {
                    Some(last)
                        if Arc::ptr_eq(&last.ticket, &delivery.ticket) && last.rows.end == row =>
                    {
                        last.rows.end += 1;
                    }
                    _ => left.push(Delivery { rows: row..row + 1, ..delivery.clone() }),
                }
            }
        }
        self.metrics.acked.add(delivered.iter().copied().map(u64::from).sum());
        let verdicts = share.iter().zip(&delivered);
        Ticket::deliver_all(verdicts.map(|(delivery, &rows)| (&*delivery.ticket, rows)));
        left
    }

    /// Logs a failure, switches to the next server and waits. Returns whether there will be no more events.
    async fn fail(&mut self, error: &Failure, events: usize) -> bool {
        let host = &self.targets[self.current].route.host;
        self.metrics.write_error(host, error);
        if let Some(failures) = self.failures.add() {
            tracing::error!(
                output = "redis", %host, %error, events, failures,
                "cannot send events; trying again"
            );
        }
        self.current = (self.current + 1) % self.targets.len();
        let wait = self.backoff.next_wait();
        tokio::select! {
            () = tokio::time::sleep(wait) => false,
            () = self.supply.ended() => true,
        }
    }
}

/// The outcome of a request.
#[derive(Debug, Default)]
struct Outcome {
    /// Commands whose events were not taken.
    failed: Vec<usize>,
    /// The first error that the server answered.
    error: Option<String>,
    /// The connection is over.
    broken: Option<RespError>,
}

/// The first `count` events of a share, and the others.
fn halves(share: Share, count: usize) -> (Share, Share) {
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    let mut room = count as u32;
    for delivery in share {
        let first = room.min(delivery.len() as u32);
        room -= first;
        let middle = delivery.rows.start + first;
        if first > 0 {
            head.push(Delivery { rows: delivery.rows.start..middle, ..delivery.clone() });
        }
        if middle < delivery.rows.end {
            tail.push(Delivery { rows: middle..delivery.rows.end, ..delivery });
        }
    }
    (head, tail)
}
