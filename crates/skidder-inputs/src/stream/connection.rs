//! One connection: bytes in, events out.
//!
//! It holds a buffer only while there are bytes. What arrives between two looks becomes one batch; when the queue is full
//! nothing is read, so that the window of TCP closes. The incomplete rest of the last message is kept, and is never longer
//! than `max_message_size`.

use super::buffers::{BATCH_EVENTS, BUFFER_BYTES};
use super::framing::{Frame, FrameError, Rest};
use super::server::{Phase, Shared};
use bytes::BufMut as _;
use skidder_event::{DropReason, Parts, Progress, Row, Text};
use skidder_input::{Sending, Source, Stopped};
use skidder_net::{Peer, ServerConnection, Stream, TlsSession};
use std::future::poll_fn;
use std::io;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::coop::unconstrained;
use tokio::time::Instant;

/// A rest of a message up to this is copied before the bytes that follow it; a longer one grows where it is.
const REST_COPIED_MAX: usize = 4 << 10;

/// At a stop, a connection without new bytes for so long has delivered what the kernel had received.
const DRAIN_SILENCE: Duration = Duration::from_millis(20);

/// How long a connection whose far side goes on sending is read at a stop.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// How long the end of a TLS connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// An open connection, with what was read of a message that is not complete.
pub(super) struct Connection {
    pub(super) stream: Box<dyn Stream>,
    pub(super) peer: Peer,
    pub(super) tls: Option<TlsSession>,
    /// The beginning of a message.
    pub(super) rest: Vec<u8>,
    /// No delimiter begins in so many bytes of it.
    pub(super) searched: usize,
    /// Its place among the connections of the server.
    pub(super) place: Option<OwnedSemaphorePermit>,
    /// What was received is still read, and then it is closed.
    pub(super) must_end: bool,
    /// All of it was read: only what is sent last is on its way.
    has_ended: bool,
    /// What the input before could not send yet: what follows goes behind it.
    sending: Option<Sending>,
}

/// What was read: the rest of before, and new bytes.
struct Filled {
    parts: Parts,
    /// The far side has sent all, or the connection is broken.
    end: Option<io::Result<()>>,
}

/// What a connection that waits wakes up for.
enum Woken {
    Phase(Phase),
    Filled(Filled),
    Idle,
}

/// Why a connection is over.
enum End {
    /// The far side has closed it.
    Closed,
    /// It is broken.
    Broken(io::Error),
    /// Nothing came for `timeout`.
    Idle,
    /// Its bytes make no sense.
    Wrong(FrameError),
    /// The next input goes on with it.
    HandedOver,
    /// No output takes anything any more.
    Stopped,
}

impl From<Stopped> for End {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl Connection {
    /// A new one.
    pub(super) fn new(of: ServerConnection) -> Self {
        let ServerConnection { stream, peer, tls, place } = of;
        Self {
            stream,
            peer,
            tls,
            rest: Vec::new(),
            searched: 0,
            place,
            must_end: false,
            has_ended: false,
            sending: None,
        }
    }

    /// Reads until the connection ends or the input must stop. Returns the connection if it must be handed over.
    pub(super) async fn run(mut self, shared: Arc<Shared>, mut source: Source) -> Option<Self> {
        let end = match Box::pin(self.go_on(&shared, &mut source)).await {
            Ok(()) => match self.read(&shared, &mut source).await {
                ControlFlow::Continue(Phase::HandOver) => End::HandedOver,
                ControlFlow::Continue(_) => {
                    Box::pin(self.drain(End::Closed, &shared, &mut source)).await
                }
                ControlFlow::Break(end) => end,
            },
            Err(end) => end,
        };
        let end = match end {
            // What the kernel has received is counted, too.
            End::Stopped => Box::pin(self.drain(end, &shared, &mut source)).await,
            end => end,
        };
        Box::pin(self.close(end, shared, source)).await
    }

    /// Goes on where the input before left off: with what it could not send, and messages that it has read only.
    async fn go_on(&mut self, shared: &Arc<Shared>, source: &mut Source) -> Result<(), End> {
        if let Some(sending) = self.sending.take() {
            match self.sent(sending, shared).await {
                Err(End::Stopped) => self.must_end = true,
                sent => sent?,
            }
        }
        if self.has_ended {
            return Err(End::Closed);
        }
        if !self.rest.is_empty() {
            let bytes = std::mem::take(&mut self.rest);
            let parts = Parts { bytes, ..Parts::default() };
            self.deliver(Filled { parts, end: None }, shared, source).await?;
        }
        if self.must_end { Err(self.drain(End::Closed, shared, source).await) } else { Ok(()) }
    }

    /// Returns the connection if the next input is to go on with it.
    async fn close(mut self, end: End, shared: Arc<Shared>, mut source: Source) -> Option<Self> {
        if let End::HandedOver = self.finish(end, &shared, &mut source).await {
            self.place = None;
            return Some(self);
        }
        if self.tls.is_some() {
            // The far side may be gone; it has nothing to lose.
            drop(tokio::time::timeout(CLOSE_TIMEOUT, self.stream.shutdown()).await);
        }
        None
    }

    /// Waits until events are in the queues. If the next input is to go on with the connection, it waits for them instead.
    async fn sent(&mut self, mut sending: Sending, shared: &Shared) -> Result<(), End> {
        if !sending.is_waiting() {
            return Ok(());
        }
        let mut phase = shared.phase.subscribe();
        let is_sent = tokio::select! {
            biased;
            sent = &mut sending => Some(sent),
            _ = phase.wait_for(|phase| *phase == Phase::HandOver) => None,
        };
        match is_sent {
            Some(sent) => Ok(sent?),
            None => {
                self.sending = Some(sending);
                Err(End::HandedOver)
            }
        }
    }

    /// Reads until the end, or until the input is in another phase.
    async fn read(&mut self, shared: &Arc<Shared>, source: &mut Source) -> ControlFlow<End, Phase> {
        let mut phase = shared.phase.subscribe();
        let mut changed = pin!(async move {
            match phase.wait_for(|phase| *phase != Phase::Run).await {
                Ok(phase) => *phase,
                // The server is gone.
                Err(_) => Phase::Drain,
            }
        });
        let timeout = shared.settings.timeout;
        let mut last = Instant::now();
        let mut idle = pin!(tokio::time::sleep(timeout));
        loop {
            let woken = poll_fn(|context| {
                if let Poll::Ready(phase) = changed.as_mut().poll(context) {
                    return Poll::Ready(Woken::Phase(phase));
                }
                if let Poll::Ready(filled) = self.poll_fill(context, shared) {
                    return Poll::Ready(Woken::Filled(filled));
                }
                idle.as_mut().poll(context).map(|()| Woken::Idle)
            });
            match woken.await {
                Woken::Phase(phase) => return ControlFlow::Continue(phase),
                Woken::Filled(filled) => {
                    // In a box of its own, so that a connection that waits is small.
                    if let Err(end) = Box::pin(self.deliver(filled, shared, source)).await {
                        return ControlFlow::Break(end);
                    }
                    last = Instant::now();
                }
                // The timer is not set anew for each read, which would cost more than the read.
                Woken::Idle if last.elapsed() < timeout => idle.as_mut().reset(last + timeout),
                Woken::Idle => return ControlFlow::Break(End::Idle),
            }
        }
    }

    /// Reads what the kernel has received. When no output takes anything any more, it is counted as dropped. Returns why it is
    /// over: `end`, unless there is another reason.
    async fn drain(&mut self, end: End, shared: &Arc<Shared>, source: &mut Source) -> End {
        let mut deadline = Instant::now() + DRAIN_MAX;
        let mut over = end;
        // A task that has used its share of the runtime would take it for silence.
        let work = unconstrained(async {
            while Instant::now() < deadline {
                let filled = poll_fn(|context| self.poll_fill(context, shared));
                let Ok(filled) = tokio::time::timeout(DRAIN_SILENCE, filled).await else { break };
                let start = Instant::now();
                match self.deliver(filled, shared, source).await {
                    Ok(()) => {}
                    Err(End::Stopped) => over = End::Stopped,
                    Err(end) => return end,
                }
                // How long the queue was full does not count.
                deadline += start.elapsed();
            }
            over
        });
        work.await
    }

    /// Reads what is there, behind the rest of before. No buffer is held while there is nothing.
    fn poll_fill(&mut self, context: &mut Context<'_>, shared: &Shared) -> Poll<Filled> {
        let is_copied = self.rest.len() <= REST_COPIED_MAX;
        let mut parts = if is_copied {
            let mut parts = shared.buffers.take();
            parts.bytes.extend_from_slice(&self.rest);
            parts
        } else {
            let bytes = std::mem::take(&mut self.rest);
            Parts { bytes, ..Parts::default() }
        };
        let before = parts.bytes.len();
        // A long message makes its buffer grow by half, and is read in as large pieces.
        let room = if is_copied { BUFFER_BYTES - before } else { before.min(BUFFER_BYTES) / 2 };
        let mut end = None;
        while end.is_none() && parts.bytes.len() < before + room {
            let most = before + room - parts.bytes.len();
            parts.bytes.reserve(if is_copied { 0 } else { most });
            let mut target = (&mut parts.bytes).limit(most);
            let reading = pin!(self.stream.read_buf(&mut target));
            match reading.poll(context) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => end = Some(Ok(())),
                Poll::Ready(Ok(_)) => {}
                // rustls: the far side has closed TCP without the end of TLS. Go takes it for an end, too.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    end = Some(Ok(()));
                }
                Poll::Ready(Err(error)) => end = Some(Err(error)),
            }
        }
        let read = parts.bytes.len() - before;
        if read == 0 && end.is_none() {
            if is_copied {
                shared.buffers.put(parts);
            } else {
                self.rest = parts.bytes;
            }
            return Poll::Pending;
        }
        shared.received(read as u64);
        Poll::Ready(Filled { parts, end })
    }

    /// Sends the messages that are complete and keeps the rest.
    async fn deliver(
        &mut self,
        filled: Filled,
        shared: &Arc<Shared>,
        source: &mut Source,
    ) -> Result<(), End> {
        let Filled { mut parts, end } = filled;
        let now = shared.now();
        loop {
            let (bytes, frame) = self.split(&mut parts, shared, now.wall);
            let events = parts.rows.len();
            if events == 0 {
                self.keep(parts, bytes, shared);
            } else {
                // What follows is small, unless there are very many very short messages.
                self.rest = parts.bytes[bytes..].to_vec();
                self.searched = self.searched.saturating_sub(bytes);
                let sending = shared.send(source, parts, bytes, now);
                self.sent(sending, shared).await?;
                shared.sent(events as u64, now);
            }
            if let Frame::Wrong(error) = frame {
                return Err(End::Wrong(error));
            }
            if events < BATCH_EVENTS || self.rest.is_empty() {
                break;
            }
            parts = Parts { bytes: std::mem::take(&mut self.rest), ..Parts::default() };
        }
        match end {
            None => Ok(()),
            Some(Ok(())) => Err(End::Closed),
            Some(Err(error)) => Err(End::Broken(error)),
        }
    }

    /// Makes rows of complete messages. Returns how many bytes they take, and what stands behind them.
    fn split(&mut self, parts: &mut Parts, shared: &Shared, time: i64) -> (usize, Frame) {
        let Parts { bytes, rows, .. } = parts;
        let framing = &shared.settings.framing;
        let mut start = 0;
        while rows.len() < BATCH_EVENTS {
            match framing.next(bytes, start, &mut self.searched) {
                Frame::Message { text, end } => {
                    let message = Text { start: text.start as u32, len: text.len() as u32 };
                    rows.push(Row::numbered(0, (end - start) as u32, message, time));
                    start = end;
                }
                other => return (start, other),
            }
        }
        (start, Frame::Incomplete)
    }

    /// Keeps a buffer without a complete message.
    fn keep(&mut self, parts: Parts, start: usize, shared: &Shared) {
        debug_assert_eq!(start, 0, "nothing was complete");
        if parts.bytes.len() <= REST_COPIED_MAX {
            self.rest.clear();
            self.rest.extend_from_slice(&parts.bytes);
            shared.buffers.put(parts);
        } else if parts.bytes.len() < parts.bytes.capacity() / 4 {
            self.rest = parts.bytes.as_slice().to_vec();
            shared.buffers.put(parts);
        } else {
            self.rest = parts.bytes;
        }
    }

    /// Messages that were read and that no output takes any more are counted as dropped.
    async fn give_up(&mut self, shared: &Arc<Shared>, source: &mut Source) {
        loop {
            let bytes = std::mem::take(&mut self.rest);
            let mut parts = Parts { bytes, ..Parts::default() };
            let now = shared.now();
            let (end, _) = self.split(&mut parts, shared, now.wall);
            self.rest = parts.bytes[end..].to_vec();
            self.searched = 0;
            if parts.rows.is_empty() {
                return;
            }
            if shared.send(source, parts, end, now).await.is_ok() {
                tracing::debug!(peer = %self.peer, "an output took the rest after all");
            }
        }
    }

    /// Sends what is left, and reports and counts what went wrong. Returns whether it is over, or handed over.
    async fn finish(&mut self, end: End, shared: &Arc<Shared>, source: &mut Source) -> End {
        let mut dropped = None;
        match &end {
            End::HandedOver => return end,
            End::Closed => {}
            End::Idle => {
                tracing::debug!(peer = %self.peer, "nothing came for `timeout`; a connection is closed");
            }
            End::Broken(error) => {
                source.failed(&error.to_string());
                tracing::info!(peer = %self.peer, %error, "a connection is broken");
            }
            End::Wrong(error) => {
                source.failed(&error.to_string());
                tracing::warn!(peer = %self.peer, %error, "a connection is closed; the rest of what it sent is lost");
                dropped = Some(match error {
                    FrameError::TooLong(_) => DropReason::LineTooLong,
                    FrameError::NoLength => DropReason::Parser,
                });
            }
            End::Stopped => self.give_up(shared, source).await,
        }
        let bytes = std::mem::take(&mut self.rest);
        let now = shared.now();
        let text = match shared.settings.framing.rest(&bytes) {
            _ if dropped.is_some() => None,
            Rest::Nothing => return end,
            Rest::Message(text) => Some(text),
            Rest::Cut => {
                source.failed("the connection has ended within a message");
                tracing::warn!(peer = %self.peer, bytes = bytes.len(), "a connection has ended within a message");
                dropped = Some(DropReason::Parser);
                None
            }
        };
        let mut parts = Parts::default();
        let length = bytes.len();
        parts.bytes = bytes;
        let sending = if let Some(text) = text {
            let message = Text { start: text.start as u32, len: text.len() as u32 };
            parts.rows.push(Row::numbered(0, length as u32, message, now.wall));
            shared.send(source, parts, length, now)
        } else if let Some(reason) = dropped {
            let mut batch = source.batch(Vec::new(), 0);
            batch.count_dropped(reason, 1);
            source.send(batch, Progress::Nothing(length as u64))
        } else {
            return end;
        };
        self.has_ended = true;
        match self.sent(sending, shared).await {
            Err(End::Stopped) => {
                tracing::debug!(peer = %self.peer, "all ends; the rest of a connection is counted as dropped");
                end
            }
            Err(handed_over) => handed_over,
            Ok(()) => {
                if dropped.is_none() {
                    shared.sent(1, now);
                }
                end
            }
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = out.debug_struct("Connection");
        out.field("peer", &self.peer).field("rest", &self.rest.len()).finish_non_exhaustive()
    }
}

/// The work of a connection.
pub(super) type Running = Pin<Box<dyn Future<Output = Option<Connection>> + Send>>;
