//! One connection: windows go out, acknowledgements come in, at once.
//!
//! Written and unacknowledged events are still held as rows of batches, not as bytes: after a failure it is
//! encoded again, for then its numbers in the window change.

use super::frames::{ACK_BYTES, FrameWriter, read_ack};
use super::slow_start::SlowStart;
use crate::backoff::{Backoff, Failures};
use crate::supply::{Share, Supply};
use skidder_net::{Stream, WithoutTls, is_hang_up, is_tls_alert, plain_remedy};
use skidder_os::{Clock, Monotonic};
use skidder_pipeline::{Delivery, OutputMetrics, Ticket};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::time::Instant;

/// Why a connection is given up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error("the server showed no sign of life within `timeout` ({} s)", .0.as_secs_f64())]
    Silent(Duration),
    #[error("{}", plain_remedy(WithoutTls::NoSsl, true))]
    Tls,
    /// A connection without TLS was closed before the first answer.
    #[error("{}{}", .0, plain_remedy(WithoutTls::NoSsl, false))]
    Unanswered(Box<SessionError>),
    #[error("the server does not speak Lumberjack: {0}")]
    Protocol(String),
}

/// The end of a session.
#[derive(Debug)]
pub(crate) enum End {
    /// There will be no more events.
    Finished,
    /// Nothing was under way: the server closed an idle connection, or its `ttl` is over.
    Idle,
    /// Unacknowledged events have been given back: so many.
    Failed(SessionError, usize),
}

/// State of a worker that outlives a connection.
pub(crate) struct WorkerState {
    pub(crate) supply: Arc<Supply>,
    pub(crate) frames: FrameWriter,
    pub(crate) slow_start: Option<SlowStart>,
    /// Windows under way at once.
    pub(crate) windows_max: usize,
    pub(crate) timeout: Duration,
    pub(crate) ttl: Duration,
    /// Connections are not encrypted.
    pub(crate) is_plain: bool,
    pub(crate) metrics: Arc<OutputMetrics>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) backoff: Backoff,
    pub(crate) failures: Failures,
    /// The bytes of a window, kept for their room.
    pub(crate) buffer: Vec<u8>,
}

/// Events that wait for their acknowledgement.
#[derive(Debug)]
struct Window {
    /// Events that are not acknowledged.
    left: VecDeque<Delivery>,
    /// All events, and those that were acknowledged.
    events: u32,
    acked: u32,
    /// Events of the share that it was cut from.
    share: usize,
    sent: Monotonic,
}

/// See the module's text.
pub(crate) struct Session<'a> {
    kept: &'a mut WorkerState,
    read: ReadHalf<Box<dyn Stream>>,
    write: WriteHalf<Box<dyn Stream>>,
    /// Of the acknowledgement that is being read.
    ack: [u8; ACK_BYTES],
    ack_bytes: usize,
    /// There was an answer.
    is_answered: bool,
    in_flight: VecDeque<Window>,
    /// Taken and not in a window yet.
    waiting: VecDeque<Delivery>,
    /// Events of the share that `waiting` is left of.
    share: usize,
    /// Shares that were taken and not acknowledged.
    held: usize,
    /// Bytes of the buffer that are written, and whether all of them went out of the encryption too.
    written: usize,
    flushed: bool,
    /// When the server counts as dead, if anything is due from it.
    deadline: Instant,
    born: Instant,
}

/// The next step on a connection.
enum Event {
    Read(io::Result<usize>),
    Written(io::Result<usize>),
    Flushed(io::Result<()>),
    Taken(Option<Share>),
    Silent,
    TooOld,
}

impl<'a> Session<'a> {
    /// `first` was taken already.
    pub(crate) fn new(
        kept: &'a mut WorkerState,
        stream: Box<dyn Stream>,
        first: Option<Share>,
    ) -> Self {
        let (read, write) = tokio::io::split(stream);
        let now = Instant::now();
        kept.buffer.clear();
        let mut session = Self {
            deadline: now + kept.timeout,
            born: now,
            kept,
            read,
            write,
            ack: [0; ACK_BYTES],
            ack_bytes: 0,
            is_answered: false,
            in_flight: VecDeque::new(),
            waiting: VecDeque::new(),
            share: 0,
            held: 0,
            written: 0,
            flushed: true,
        };
        session.accept(first);
        session
    }

    /// Sends until the end, or until something goes wrong.
    pub(crate) async fn run(mut self) -> End {
        loop {
            if self.is_written() && self.has_room() && !self.waiting.is_empty() {
                self.begin_window().await;
            }
            if self.is_quiet() {
                self.kept.supply.done(std::mem::take(&mut self.held));
            }
            let ended = match self.next().await {
                Event::Read(Ok(0)) if self.is_quiet() => return End::Idle,
                Event::Read(Ok(0)) => Err(SessionError::Closed),
                Event::Read(Ok(bytes)) => self.on_bytes(bytes),
                Event::Written(Ok(0)) => Err(SessionError::Closed),
                Event::Written(Ok(bytes)) => {
                    self.written += bytes;
                    self.kept.metrics.write_bytes.add(bytes as u64);
                    self.alive();
                    Ok(())
                }
                Event::Flushed(Ok(())) => {
                    self.flushed = true;
                    Ok(())
                }
                Event::Read(Err(_)) if self.is_quiet() => return End::Idle,
                Event::Read(Err(error))
                | Event::Written(Err(error))
                | Event::Flushed(Err(error)) => Err(error.into()),
                Event::Taken(None) => return End::Finished,
                Event::Taken(share) => {
                    self.accept(share);
                    Ok(())
                }
                Event::Silent => Err(SessionError::Silent(self.kept.timeout)),
                Event::TooOld => return End::Idle,
            };
            if let Err(error) = ended {
                return self.fail(error);
            }
        }
    }

    async fn next(&mut self) -> Event {
        let quiet = self.is_quiet();
        let written = self.is_written();
        // A connection that is too old takes nothing new; it ends when all is acknowledged.
        let ttl = self.kept.ttl;
        let old = !ttl.is_zero() && self.born.elapsed() >= ttl;
        let may_take = written && self.waiting.is_empty() && self.has_room() && !old;
        let (deadline, too_old, flushed) = (self.deadline, self.born + ttl, self.flushed);
        let Self { kept, read, write, ack, ack_bytes, written: from, .. } = self;
        let rest = &kept.buffer[*from..];
        let push = async {
            match rest {
                [] => Event::Flushed(write.flush().await),
                rest => Event::Written(write.write(rest).await),
            }
        };
        tokio::select! {
            biased;
            read = read.read(&mut ack[*ack_bytes..]) => Event::Read(read),
            pushed = push, if !rest.is_empty() || !flushed => pushed,
            share = kept.supply.take(), if may_take => Event::Taken(share),
            () = tokio::time::sleep_until(deadline), if !quiet => Event::Silent,
            () = tokio::time::sleep_until(too_old), if quiet && !ttl.is_zero() => Event::TooOld,
        }
    }

    /// Whether nothing is due from the server.
    fn is_quiet(&self) -> bool {
        self.in_flight.is_empty() && self.waiting.is_empty()
    }

    /// Whether the last window is out.
    fn is_written(&self) -> bool {
        self.written == self.kept.buffer.len() && self.flushed
    }

    /// Whether another window may be under way.
    fn has_room(&self) -> bool {
        self.in_flight.len() < self.kept.windows_max
    }

    /// The server has shown that it is alive.
    fn alive(&mut self) {
        self.deadline = Instant::now() + self.kept.timeout;
    }

    fn accept(&mut self, share: Option<Share>) {
        if let Some(share) = share {
            self.held += 1;
            self.share = share.iter().map(Delivery::len).sum();
            self.waiting.extend(share);
        }
    }

    /// Encodes the next window out of what waits.
    async fn begin_window(&mut self) {
        let most = self.kept.slow_start.map_or(usize::MAX, |window| window.size());
        let mut left = VecDeque::new();
        let mut events = 0;
        while let Some(front) = self.waiting.front_mut() {
            let room = most - events;
            if front.len() <= room {
                events += front.len();
                left.extend(self.waiting.pop_front());
                continue;
            }
            if room > 0 {
                events += room;
                left.push_back(take_rows(front, room as u32));
            }
            break;
        }
        let events = events as u32;
        self.kept.frames.write(&mut self.kept.buffer, left.iter(), events).await;
        (self.written, self.flushed) = (0, false);
        let metrics = &self.kept.metrics;
        metrics.total.add(u64::from(events));
        metrics.batches.add(1);
        metrics.active.add(u64::from(events));
        if self.in_flight.is_empty() {
            self.alive();
        }
        let sent = self.kept.clock.monotonic();
        let share = self.share;
        self.in_flight.push_back(Window { left, events, acked: 0, share, sent });
    }

    /// Some bytes of an acknowledgement came.
    fn on_bytes(&mut self, bytes: usize) -> Result<(), SessionError> {
        self.kept.metrics.read_bytes.add(bytes as u64);
        self.ack_bytes += bytes;
        if self.ack_bytes < ACK_BYTES {
            return Ok(());
        }
        self.ack_bytes = 0;
        let Some(number) = read_ack(self.ack) else {
            if is_tls_alert(&self.ack) {
                return Err(SessionError::Tls);
            }
            let shown = String::from_utf8_lossy(&self.ack).into_owned();
            return Err(SessionError::Protocol(format!("it sent {shown:?}")));
        };
        self.is_answered = true;
        self.alive();
        // Only the newest window can be.
        let half_out = self.in_flight.len() == 1 && self.written < self.kept.buffer.len();
        let Some(window) = self.in_flight.front_mut() else {
            if number == 0 {
                return Ok(());
            }
            let what = format!("it acknowledged event {number}, but nothing was sent");
            return Err(SessionError::Protocol(what));
        };
        if number > window.events {
            let events = window.events;
            let what = format!("it acknowledged event {number} of {events}");
            return Err(SessionError::Protocol(what));
        }
        // It is compressed as one, or its last event is not out.
        if half_out && (number == window.events || number > 0 && self.kept.frames.compresses()) {
            let what = format!("it acknowledged event {number} before it was sent");
            return Err(SessionError::Protocol(what));
        }
        // Smaller numbers are only a sign of life.
        if number > window.acked {
            let rows = number - window.acked;
            window.acked = number;
            self.settle(rows);
        }
        Ok(())
    }

    /// Gives the first events of the oldest window their verdict.
    fn settle(&mut self, mut rows: u32) {
        let Some(window) = self.in_flight.front_mut() else { return };
        let metrics = &self.kept.metrics;
        metrics.acked.add(u64::from(rows));
        metrics.active.sub(u64::from(rows));
        let mut settled: Vec<Delivery> = Vec::with_capacity(window.left.len());
        while let Some(front) = window.left.front_mut()
            && rows > 0
        {
            let count = rows.min(front.len() as u32);
            rows -= count;
            if count as usize == front.len() {
                settled.extend(window.left.pop_front());
            } else {
                settled.push(take_rows(front, count));
            }
        }
        let verdicts = settled.iter().map(|delivery| (&*delivery.ticket, delivery.len() as u32));
        Ticket::deliver_all(verdicts);
        if window.acked == window.events {
            let took = self.kept.clock.monotonic().since(window.sent);
            metrics.latency_ns.add(took.as_nanos() as u64);
            if let Some(slow_start) = &mut self.kept.slow_start {
                slow_start.grow(window.share);
            }
            self.in_flight.pop_front();
        }
        // Any progress counts: a server that takes a little each time is not waited for longer and longer.
        self.kept.backoff.reset();
        let failures = self.kept.failures.clear();
        if failures > 0 {
            tracing::info!(output = "logstash", failures, "events are delivered again");
        }
    }

    /// The error of a connection that is over, with what the settings may lack.
    fn with_remedy(&self, error: SessionError) -> SessionError {
        let is_hung_up = match &error {
            SessionError::Closed => true,
            SessionError::Broken(error) => is_hang_up(error),
            _ => false,
        };
        if !self.kept.is_plain || self.is_answered || !is_hung_up {
            return error;
        }
        // An alert may be shorter than an answer, or its end is missing.
        if is_tls_alert(&self.ack[..self.ack_bytes]) {
            return SessionError::Tls;
        }
        SessionError::Unanswered(Box::new(error))
    }

    /// Gives back what was not acknowledged.
    fn fail(mut self, error: SessionError) -> End {
        let error = self.with_remedy(error);
        let mut left: Vec<Share> = Vec::new();
        let mut events = 0;
        for window in self.in_flight.drain(..) {
            let unacked = u64::from(window.events - window.acked);
            self.kept.metrics.active.sub(unacked);
            self.kept.metrics.failed.add(unacked);
            events += unacked as usize;
            left.push(window.left.into());
        }
        left.push(self.waiting.drain(..).collect());
        if let Some(slow_start) = &mut self.kept.slow_start {
            slow_start.shrink();
        }
        self.kept.supply.give_back(self.held, left);
        End::Failed(error, events)
    }
}

/// Takes the first `rows` events off a delivery.
fn take_rows(delivery: &mut Delivery, rows: u32) -> Delivery {
    let mut taken = delivery.clone();
    let middle = delivery.rows.start + rows;
    taken.rows.end = middle;
    delivery.rows.start = middle;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch_with, context, deliveries};
    use skidder_event::Map;
    use skidder_os::SystemClock;

    #[tokio::test]
    async fn a_server_that_hangs_up_without_an_answer_may_want_tls() {
        let lines = ["some line of a log"; 3];
        let perhaps =
            "the server closed the connection; if this port speaks TLS, set `ssl.enabled: true`";
        for (is_plain, answer, expected) in [
            (true, &b""[..], perhaps),
            (true, b"\x15\x03\x01", "this port speaks TLS: set `ssl.enabled: true`"),
            // A sign of life, which acknowledges nothing.
            (true, b"2A\0\0\0\0", "the server closed the connection"),
            (false, b"", "the server closed the connection"),
        ] {
            let share = deliveries(vec![batch_with(&lines, &Map::new(), &Map::new())]);
            let supply = Arc::new(Supply::default());
            let mut kept = WorkerState { is_plain, ..state(&supply, 0) };
            let (ours, mut theirs) = tokio::io::duplex(10_000);
            theirs.write_all(answer).await.unwrap();
            theirs.shutdown().await.unwrap();
            supply.give_back(0, vec![share]);
            let first = supply.take().await;
            let end = Session::new(&mut kept, Box::new(ours), first).run().await;
            let End::Failed(error, 3) = end else { panic!("{end:?}") };
            let said = error.to_string();
            assert!(said.starts_with(expected), "{said}");
            assert_eq!(said.contains("if this port"), expected == perhaps, "{said}");
        }
    }

    /// A worker's state with this supply and level of compression.
    fn state(supply: &Arc<Supply>, level: u32) -> WorkerState {
        WorkerState {
            supply: Arc::clone(supply),
            frames: FrameWriter::new(&context(), "filebeat", false, level),
            slow_start: None,
            windows_max: 2,
            timeout: Duration::from_mins(1),
            ttl: Duration::ZERO,
            is_plain: true,
            metrics: Arc::default(),
            clock: Arc::new(SystemClock::new()),
            backoff: Backoff::new(Duration::ZERO, Duration::ZERO, 1),
            failures: Failures::default(),
            buffer: Vec::new(),
        }
    }

    #[tokio::test]
    async fn an_acknowledgement_of_what_was_not_sent_yet_is_none() {
        let lines = ["some line of a log"; 100];
        for level in [0, 3] {
            let share = deliveries(vec![batch_with(&lines, &Map::new(), &Map::new())]);
            let supply = Arc::new(Supply::default());
            let mut kept = state(&supply, level);
            // It takes little, and acknowledges all before it has read anything.
            let (ours, mut theirs) = tokio::io::duplex(16);
            theirs.write_all(b"2A\0\0\0\x64").await.unwrap();
            supply.give_back(0, vec![share]);
            let first = supply.take().await;
            let end = Session::new(&mut kept, Box::new(ours), first).run().await;
            let End::Failed(SessionError::Protocol(what), 100) = end else { panic!("{end:?}") };
            assert!(what.contains("event 100 before it was sent"), "{what}");
            assert_eq!((kept.metrics.acked.get(), kept.metrics.failed.get()), (0, 100));
        }
    }
}
