//! One connection: windows of events in, answers out.
//!
//! It reads and answers at the same time: while the queue is full nothing is read, so that the window of TCP closes, and the
//! client hears every few seconds that its answer is not there yet.

use super::acks::{Acks, Due, WindowEnd};
use super::decode::Decoder;
use super::frames::{Events, FrameError, Frames, Step, Version};
use super::server::Shared;
use crate::common::known_utf8;
use skidder_event::{Parts, Progress};
use skidder_input::{Source, Stopped};
use skidder_net::{Peer, ServerConnection, Stream};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Bytes that a connection which waits for a window has room for.
const IDLE_BYTES: usize = 64;

/// How long a connection waits at a stop for the verdicts of what it has read, to answer.
const LAST_ANSWERS_MAX: Duration = Duration::from_secs(1);

/// How long the end of a TLS connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// An open connection.
pub(super) struct Connection {
    reader: Reader,
    writer: Writer,
    peer: Peer,
    shared: Arc<Shared>,
    /// Its place among the connections of the server.
    _place: Option<OwnedSemaphorePermit>,
}

/// Why nothing more is read, or answered.
#[derive(Debug)]
enum End {
    /// The client has closed it.
    Closed,
    /// The input must stop.
    Stopped,
    /// Events will get no verdict.
    Rejected,
    /// It is broken.
    Broken(io::Error),
    /// The client neither sends nor takes anything.
    Late(&'static str),
    /// Its bytes make no sense.
    Wrong(FrameError),
}

impl From<Stopped> for End {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// Reads windows.
struct Reader {
    stream: ReadHalf<Box<dyn Stream>>,
    frames: Frames,
    events: Events,
    decoder: Decoder,
    source: Source,
    acks: Arc<Acks>,
    shared: Arc<Shared>,
}

/// Answers.
struct Writer {
    stream: WriteHalf<Box<dyn Stream>>,
    acks: Arc<Acks>,
    shared: Arc<Shared>,
}

impl Connection {
    pub(super) fn new(of: ServerConnection, source: Source, shared: Arc<Shared>) -> Self {
        let settings = &shared.settings;
        let (read, write) = tokio::io::split(of.stream);
        let acks = Arc::new(Acks::default());
        let writer = Writer { stream: write, acks: Arc::clone(&acks), shared: Arc::clone(&shared) };
        let reader = Reader {
            stream: read,
            frames: Frames::new(&settings.versions, settings.event_bytes_max),
            events: Events::default(),
            decoder: Decoder::new(settings.target.clone()),
            source,
            acks,
            shared: Arc::clone(&shared),
        };
        Self { reader, writer, peer: of.peer, shared, _place: of.place }
    }

    /// Serves it until it ends or the input must stop.
    pub(super) async fn run(self) {
        let Self { mut reader, mut writer, peer, shared, _place } = self;
        let end = {
            let mut answering = pin!(writer.answer());
            let end = tokio::select! {
                biased;
                () = shared.intake.stopped() => End::Stopped,
                end = &mut answering => end,
                end = reader.read() => end,
            };
            reader.acks.close();
            match end {
                End::Closed | End::Stopped | End::Wrong(_) => {
                    let stopped = async {
                        shared.intake.stopped().await;
                        tokio::time::sleep(LAST_ANSWERS_MAX).await;
                    };
                    tokio::select! {
                        biased;
                        last = &mut answering => match last {
                            End::Closed => end,
                            last => match end {
                                // The client is gone: what it does not know it sends again.
                                End::Closed | End::Stopped => last,
                                end => end,
                            },
                        },
                        () = stopped => end,
                    }
                }
                end => end,
            }
        };
        report(&end, &peer, &reader.source);
        // The far side may be gone; it has nothing to lose.
        drop(timeout(CLOSE_TIMEOUT, writer.stream.shutdown()).await);
    }
}

/// Logs and counts why a connection ends.
fn report(end: &End, peer: &Peer, source: &Source) {
    match end {
        End::Closed | End::Stopped => {}
        End::Rejected => {
            tracing::info!(%peer, "events get no verdict in this run; the client sends them again");
        }
        End::Broken(error) => {
            source.failed(&error.to_string());
            tracing::info!(%peer, %error, "a connection is broken; the client sends again what has no answer");
        }
        End::Late(what) => {
            source.failed(what);
            tracing::warn!(%peer, "a connection is closed: {what}");
        }
        End::Wrong(error) => {
            source.failed(&error.to_string());
            tracing::warn!(%peer, %error, "a connection is closed; the client sends again what has no answer");
        }
    }
}

impl Reader {
    /// Reads until the connection ends.
    async fn read(&mut self) -> End {
        self.windows().await.err().unwrap_or(End::Closed)
    }

    async fn windows(&mut self) -> Result<(), End> {
        let limit = self.shared.settings.timeout;
        let mut buffer = Vec::new();
        loop {
            let is_idle = buffer.is_empty() && !self.frames.is_in_window();
            if is_idle {
                buffer = Vec::with_capacity(IDLE_BYTES);
            } else {
                buffer.reserve(READ_BYTES);
            }
            let reading = self.stream.read_buf(&mut buffer);
            let read = if is_idle {
                reading.await
            } else {
                let late = End::Late("nothing of a window that has begun came for `timeout`");
                timeout(limit, reading).await.map_err(|_| late)?
            };
            match read {
                Ok(0) if is_idle => return Ok(()),
                Ok(0) => return Err(End::Broken(io::ErrorKind::UnexpectedEof.into())),
                Ok(bytes) => self.shared.intake.metrics().bytes.add(bytes as u64),
                // rustls: the far side has closed TCP without the end of TLS. Go takes it for an end, too.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && is_idle => {
                    return Ok(());
                }
                Err(error) => return Err(End::Broken(error)),
            }
            let used = self.take(&buffer).await?;
            buffer.drain(..used);
        }
    }

    /// Sends the events in some bytes; returns how many bytes were used.
    async fn take(&mut self, bytes: &[u8]) -> Result<usize, End> {
        let mut used = 0;
        loop {
            let (read, step) =
                self.frames.read(&bytes[used..], &mut self.events).map_err(End::Wrong)?;
            used += read;
            match step {
                Step::More => return Ok(used),
                Step::Begin => self.acks.begin(self.frames.version() == Some(Version::Two)),
                Step::Full => self.send().await?,
                Step::End(number) => {
                    self.send().await?;
                    self.end(number);
                }
            }
        }
    }

    /// A window was read to its end.
    fn end(&self, number: u32) {
        let intake = &self.shared.intake;
        let batches = &intake.metrics().listening().batches;
        batches.received.add(1);
        batches.messages.add(u64::from(self.frames.window_events()));
        self.acks.end(WindowEnd { number, read_at: intake.clock().monotonic().0 });
    }

    /// Sends the events that were read.
    async fn send(&mut self) -> Result<(), End> {
        let Events { bytes, mut rows } = std::mem::take(&mut self.events);
        if rows.is_empty() {
            return Ok(());
        }
        let now = self.shared.intake.clock().wall().0;
        let mut taken = 0;
        for row in &mut rows {
            row.time = now;
            taken += u64::from(row.line_bytes);
        }
        self.shared.intake.metrics().listening().message_bytes.add(bytes.len() as u64);
        let utf8 = known_utf8(&bytes, &rows);
        let mut batch = self.source.batch_of(Parts { bytes, rows, ..Parts::default() }, utf8);
        if let Some((error, events)) = self.decoder.run(&mut batch) {
            self.source.failed(&error.to_string());
            tracing::warn!(source = %self.source.about().name, %error, events, "events are no JSON; their texts are sent as they are");
        }
        let progress = Progress::Acknowledge(self.acks.batch(), taken);
        self.source.send(batch, progress).await?;
        Ok(())
    }
}

impl Writer {
    /// Answers until nothing more comes, which is [`End::Closed`].
    async fn answer(&mut self) -> End {
        self.answers().await.err().unwrap_or(End::Closed)
    }

    async fn answers(&mut self) -> Result<(), End> {
        loop {
            match self.acks.take() {
                Due::Ends(windows) => {
                    let frames: Vec<u8> =
                        windows.iter().flat_map(|window| self.frame(window.number)).collect();
                    self.write(&frames).await?;
                    self.count(&windows);
                }
                Due::Later => {
                    let keepalive = self.shared.settings.keepalive;
                    let verdicts = self.shared.intake.await_verdicts(self.acks.changed());
                    let waited = timeout(keepalive, verdicts).await;
                    if waited.is_err() && self.acks.knows_keepalive() {
                        self.write(&self.frame(0)).await?;
                    }
                }
                Due::Nothing => self.acks.changed().await,
                Due::Over => return Ok(()),
                Due::Broken => return Err(End::Rejected),
            }
        }
    }

    /// Counts windows whose answers were sent.
    fn count(&self, windows: &[WindowEnd]) {
        let intake = &self.shared.intake;
        let batches = &intake.metrics().listening().batches;
        batches.acknowledged.add(windows.len() as u64);
        let now = intake.clock().monotonic().0;
        for window in windows {
            let took = now.saturating_sub(window.read_at).as_nanos();
            batches.processing_time.add(u64::try_from(took).unwrap_or(u64::MAX), 1);
        }
    }

    fn frame(&self, number: u32) -> [u8; 6] {
        let version = if self.acks.knows_keepalive() { Version::Two } else { Version::One };
        let [a, b, c, d] = number.to_be_bytes();
        [version.byte(), b'A', a, b, c, d]
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), End> {
        let limit = self.shared.settings.timeout;
        let writing = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        match timeout(limit, writing).await {
            Ok(written) => written.map_err(End::Broken),
            Err(_) => Err(End::Late("an answer could not be written for `timeout`")),
        }
    }
}
