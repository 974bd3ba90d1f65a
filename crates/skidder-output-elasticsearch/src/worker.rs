//! A worker's two halves: one encodes the next request while the other brings the last one to a
//! server, as often as it takes.

use super::answer::{self, AnswerError};
use super::client::{Client, Failure};
use super::dead_index;
use super::encode::BulkEncoder;
use super::outcome::{Outcome, refusal};
use super::ready::Ready;
use super::request::{BodyWriter, Item, Request};
use crate::tuner::{Ended, Tuner};
use skidder_net::ConnectionError;
use skidder_outputs::{Backoff, Failures, Refusal, Refuser};
use skidder_pipeline::{Delivery, OutputMetrics, Queue, TakeLimits, Ticket};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A request that broke so many connections in a row, to servers that greeted us before each, is cut in
/// two like one that was answered 413: some proxies close the connection without waiting until that
/// answer could be read.
const BROKEN_MAX: u32 = 5;

/// How long a request waits that was too much, if the next ones are fewer or smaller: that is what helps.
const YIELDED_PAUSE: Duration = Duration::from_millis(20);

/// The state of the encoding half.
pub(crate) struct Encoding {
    pub(crate) encoder: BulkEncoder,
    /// The worker's number among those of its host.
    pub(crate) number: usize,
    /// How many hosts have workers.
    pub(crate) hosts: usize,
    pub(crate) tuner: Arc<Tuner>,
    /// `bulk_max_bytes`.
    pub(crate) bytes_max: usize,
    pub(crate) queue: Queue,
    pub(crate) ready: Arc<Ready>,
}

/// Takes events and makes requests of them until the queue ends.
pub(crate) async fn encode(encoding: Encoding) {
    let Encoding { mut encoder, number, hosts, tuner, bytes_max, queue, ready } = encoding;
    let mut taken: Vec<Delivery> = Vec::new();
    let mut waiting: VecDeque<Delivery> = VecDeque::new();
    let mut last = 0;
    loop {
        if waiting.is_empty() {
            tuner.may_take(number).await;
        }
        ready.place(|| hosts * tuner.workers()).await;
        let events = tuner.events();
        if waiting.is_empty() {
            let limits = TakeLimits { events, bytes: bytes_max };
            if !queue.take(limits, &mut taken).await {
                tuner.end();
                break;
            }
            waiting.extend(taken.drain(..));
        } else if number < tuner.workers() {
            // The last request was full of bytes: what it left would make a small one.
            top_up(&queue, TakeLimits { events: last, bytes: bytes_max }, &mut waiting);
        }
        encoder.set(events, tuner.level());
        let mut request = Request::default();
        while !encoder.fill(&mut request, &mut waiting) {
            // Compressing a piece takes half a millisecond; others want to run too.
            tokio::task::yield_now().await;
        }
        last = request.items.len();
        ready.push(request);
    }
    ready.encoder_ended();
}

/// Takes events that are there to those that wait, up to `limits.events` of both.
fn top_up(queue: &Queue, limits: TakeLimits, waiting: &mut VecDeque<Delivery>) {
    let left: usize = waiting.iter().map(|delivery| delivery.rows.len()).sum();
    // 0 would mean that there is no limit.
    if left < limits.events {
        let mut taken = Vec::new();
        queue.try_take(TakeLimits { events: limits.events - left, ..limits }, &mut taken);
        waiting.extend(taken);
    }
}

/// Brings requests to one host, or to one of several that stand in for each other.
pub(crate) struct Sender {
    pub(crate) clients: Vec<Client>,
    /// Which of them is in use.
    pub(crate) current: usize,
    /// The worker's number among those of its host.
    pub(crate) number: usize,
    pub(crate) tuner: Arc<Tuner>,
    pub(crate) ready: Arc<Ready>,
    pub(crate) writer: BodyWriter,
    pub(crate) refuser: Arc<Refuser>,
    pub(crate) metrics: Arc<OutputMetrics>,
    pub(crate) backoff: Backoff,
    pub(crate) failures: Failures,
    pub(crate) idle: Duration,
    /// Kept from answer to answer, so that the usual one allocates nothing.
    pub(crate) delivered: Vec<u32>,
    /// Where refused events are sent, if not to our own dead letters.
    pub(crate) dead_letter_index: Option<Arc<str>>,
}

/// The next step after an attempt.
enum Next {
    /// The request is settled.
    Done,
    /// These events of it must be sent again, after a pause.
    Again(Box<Request>),
    /// The server did not take it at all: any worker may send it.
    Failed(Box<Request>, Failure),
    /// The server is overloaded, and gets fewer or smaller requests from now on: any worker may send it,
    /// soon.
    Yielded(Box<Request>),
}

impl Sender {
    /// Sends until there will be no more requests.
    pub(crate) async fn run(mut self) {
        let ready = Arc::clone(&self.ready);
        loop {
            tokio::select! {
                () = self.tuner.may_send(self.number) => {}
                () = ready.ended() => return,
            }
            // While the server cannot be reached nothing is taken: others may have it.
            tokio::select! {
                biased;
                () = self.greet() => {}
                () = ready.ended() => return,
            }
            let request = match tokio::time::timeout(self.idle, ready.pop()).await {
                Ok(Some(request)) => request,
                Ok(None) => return,
                Err(_) => {
                    self.clients[self.current].close();
                    match ready.pop().await {
                        Some(request) => request,
                        None => return,
                    }
                }
            };
            self.deliver(request).await;
        }
    }

    /// Waits until the current server has said what it is.
    async fn greet(&mut self) {
        while let Err(failure) = self.clients[self.current].greet().await {
            self.fail(&failure, 0);
            tokio::time::sleep(self.backoff.next_wait()).await;
        }
    }

    /// Brings one request to its end, or gives it back.
    async fn deliver(&mut self, mut request: Request) {
        let refusals = std::mem::take(&mut request.refusals);
        self.refuser.settle(refusals).await;
        loop {
            match self.attempt(request).await {
                Next::Done => {
                    self.ready.done();
                    return;
                }
                Next::Again(rest) => {
                    tokio::time::sleep(self.backoff.next_wait()).await;
                    request = *rest;
                }
                Next::Yielded(whole) => {
                    tokio::time::sleep(YIELDED_PAUSE).await;
                    self.ready.put_back(*whole);
                    return;
                }
                Next::Failed(whole, failure) => {
                    self.fail(&failure, whole.items.len());
                    self.metrics.failed.add(whole.items.len() as u64);
                    self.give_back(*whole, &failure);
                    let wait = self.backoff.next_wait();
                    let ready = Arc::clone(&self.ready);
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = ready.ended() => {}
                    }
                    return;
                }
            }
        }
    }

    /// Lets others try a request, in halves if its size seems to be the trouble.
    fn give_back(&mut self, mut request: Request, failure: &Failure) {
        if matches!(failure, Failure::Connection(ConnectionError::Broken(_))) {
            request.broken += 1;
        }
        if request.broken < BROKEN_MAX || request.items.len() < 2 {
            self.ready.put_back(request);
            return;
        }
        self.split(&request);
        self.ready.done();
    }

    /// Logs a failure and turns to the next host.
    fn fail(&mut self, failure: &Failure, events: usize) {
        let host = &self.clients[self.current].target.host;
        self.metrics.write_error(host, failure);
        if let Some(failures) = self.failures.add() {
            tracing::error!(%host, error = %failure, events, failures, "cannot send events; trying again");
        }
        self.current = (self.current + 1) % self.clients.len();
    }

    async fn attempt(&mut self, request: Request) -> Next {
        let events = request.items.len();
        if events == 0 {
            return Next::Done;
        }
        self.metrics.total.add(events as u64);
        self.metrics.batches.add(1);
        let active = self.metrics.hold_active(events as u64);
        let sent = self.clients[self.current].bulk(&request).await;
        drop(active);
        let client = &self.clients[self.current];
        match sent {
            Err(failure) => Next::Failed(Box::new(request), failure),
            Ok(status @ 200..300) => match answer::read(client.answer(), events) {
                Ok(answer) => {
                    let outcome =
                        Outcome::new(&request, &answer, std::mem::take(&mut self.delivered));
                    if outcome.unproven == events {
                        self.delivered = outcome.delivered;
                        return self.unreadable(request, status, AnswerError::Unproven);
                    }
                    self.settle(request, outcome).await
                }
                Err(error) => self.unreadable(request, status, error),
            },
            Ok(413) => {
                let answer = client.answer().to_vec();
                self.too_large(request, answer).await
            }
            Ok(429) if self.tuner.report(0, 0, Ended::TooMany) => {
                self.metrics.too_many.add(events as u64);
                self.metrics.failed.add(events as u64);
                let host = &client.target.host;
                self.metrics.note_failure(host, Failure::status(429, client.answer()), None);
                Next::Yielded(Box::new(request))
            }
            Ok(status) => {
                let failure = Failure::status(status, client.answer());
                Next::Failed(Box::new(request), failure)
            }
        }
    }

    /// The answer has no verdict for any event.
    fn unreadable(&self, request: Request, status: u16, error: AnswerError) -> Next {
        self.metrics.read_errors.add(1);
        Next::Failed(Box::new(request), Failure::Unreadable { status, error })
    }

    /// Gives each item the verdict of the server.
    async fn settle(&mut self, request: Request, outcome: Outcome) -> Next {
        let metrics = &self.metrics;
        metrics.duplicates.add(outcome.duplicates);
        metrics.too_many.add(outcome.too_many);
        metrics.failed.add(outcome.again.len() as u64);
        metrics.read_errors.add(u64::from(outcome.unproven > 0));
        let taken = outcome.delivered.iter().map(|&rows| u64::from(rows)).sum::<u64>();
        if request.dead_letters {
            metrics.dead_letter.add(taken);
            for (delivery, &rows) in request.deliveries.iter().zip(&outcome.delivered) {
                delivery.ticket.dead_lettered(rows);
            }
        } else {
            metrics.acked.add(taken - outcome.duplicates);
            let verdicts = request.deliveries.iter().zip(&outcome.delivered);
            Ticket::deliver_all(verdicts.map(|(delivery, &rows)| (&*delivery.ticket, rows)));
        }
        self.delivered = outcome.delivered;
        self.refuse(&request, outcome.refused).await;
        let ended = if outcome.too_many > 0 { Ended::TooMany } else { Ended::Taken };
        let yielded = self.tuner.report(taken, request.plain_bytes, ended);
        if outcome.again.is_empty() {
            self.backoff.reset();
            let failures = self.failures.clear();
            if failures > 0 {
                let host = &self.clients[self.current].target.host;
                tracing::info!(%host, failures, "events are delivered again");
            }
            return Next::Done;
        }
        let host = &self.clients[self.current].target.host;
        let (events, status) = (outcome.again.len(), outcome.again_status);
        let why = format_args!("the server could not take {events} events ({status})");
        self.metrics.note_failure(host, why, None);
        if yielded {
            return Next::Yielded(Box::new(self.writer.part(&request, outcome.again)));
        }
        if let Some(failures) = self.failures.add() {
            tracing::warn!(
                %host, events, status, without_verdict = outcome.unproven, failures,
                "the server could not take some events; trying again"
            );
        }
        Next::Again(Box::new(self.writer.part(&request, outcome.again)))
    }

    /// Sends events that were refused to the index for them, if there is one; else to the dead letters.
    async fn refuse(&mut self, request: &Request, refused: Vec<(Item, Refusal)>) {
        let index = self.dead_letter_index.clone().filter(|_| !request.dead_letters);
        let Some(index) = index.filter(|_| !refused.is_empty()) else {
            let refusals = refused.into_iter().map(|(_, refusal)| refusal).collect();
            return self.refuser.settle(refusals).await;
        };
        let (redirected, left) = dead_index::redirect(&mut self.writer, request, refused, &index);
        if let Some(redirected) = redirected {
            self.ready.add_part(redirected);
        }
        self.refuser.settle(left).await;
    }

    /// The request is larger than the server allows: two halves, or a verdict for a single event.
    async fn too_large(&mut self, request: Request, answer: Vec<u8>) -> Next {
        if request.items.len() < 2 {
            let refusals = request.items.iter().map(|item| refusal(&request, item, 413, &answer));
            self.refuser.settle(refusals.collect()).await;
            return Next::Done;
        }
        self.split(&request);
        Next::Done
    }

    /// Makes two requests of one.
    fn split(&mut self, request: &Request) {
        self.metrics.split.add(1);
        let (first, second) = request.items.split_at(request.items.len() / 2);
        let second = self.writer.part(request, second.to_vec());
        let first = self.writer.part(request, first.to_vec());
        self.ready.add_part(second);
        self.ready.add_part(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::batch_with;
    use skidder_event::Map;
    use skidder_pipeline::{QueueLimits, Settle};

    #[test]
    fn what_a_full_request_left_is_sent_with_others() {
        let limits = QueueLimits { flush_min_events: 0, ..QueueLimits::default() };
        let queue = Queue::new(limits, Settle::new());
        for lines in [&["a", "b"][..], &["c", "d", "e"], &["f"]] {
            queue.push(batch_with(lines, &Map::new(), &Map::new())).expect("the queue is open");
        }
        let mut waiting = VecDeque::new();
        let rows = |waiting: &VecDeque<Delivery>| {
            let ends = waiting.iter().map(|delivery| (delivery.rows.start, delivery.rows.end));
            ends.collect::<Vec<_>>()
        };
        let limits = |events| TakeLimits { events, bytes: usize::MAX };
        top_up(&queue, limits(1), &mut waiting);
        assert_eq!(rows(&waiting), [(0, 1)]);
        // As many as the last request had.
        top_up(&queue, limits(4), &mut waiting);
        assert_eq!(rows(&waiting), [(0, 1), (1, 2), (0, 2)]);
        // There are enough.
        for enough in [0, 3, 4] {
            top_up(&queue, limits(enough), &mut waiting);
            assert_eq!(waiting.len(), 3);
        }
        // Takes the events at hand, without waiting for more.
        top_up(&queue, limits(100), &mut waiting);
        top_up(&queue, limits(100), &mut waiting);
        assert_eq!(rows(&waiting), [(0, 1), (1, 2), (0, 2), (2, 3), (0, 1)]);
    }
}
