//! The connection to one broker that takes batches: a task that compresses, sends, and reads answers.
//!
//! Orders are answered in the order in which they came. A failed link ends, and reports why; what had no answer by
//! then may or may not have been written.

use crate::buffers::Buffers;
use crate::compress::Compressor;
use crate::config::{Compression, Config};
use crate::connect::{Dialer, Stream};
use crate::connection::{AskError, Connection, Incoming};
use crate::produce::{self, Frame, Outcome, Parcel, Terms};
use crate::wire::Nonsense;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The first version of `Produce` that takes Zstandard.
const ZSTD_VERSION: i16 = 7;

/// An event of a link.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// The broker takes orders.
    Up,
    /// The oldest order that was not answered is.
    Done {
        /// In the order of its parcels.
        outcomes: Vec<Outcome>,
        sent_bytes: u64,
        read_bytes: u64,
        took: Duration,
    },
    /// The link has ended.
    Down(AskError),
}

/// An event, with the number of its link.
pub(crate) type LinkMessage = (u64, LinkEvent);

/// The shared parts of all links.
pub(crate) struct Links {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) config: Arc<Config>,
    pub(crate) buffers: Buffers,
    pub(crate) link_messages: UnboundedSender<LinkMessage>,
}

/// How long a broker may take to read what it does not answer, in the end.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// The other end of a link; it ends with it.
pub(crate) struct Link {
    orders: Option<UnboundedSender<Vec<Parcel>>>,
    task: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Link {
    /// To `node`, a `host:port`; `number` comes with all its events. Must be called within a runtime.
    pub(crate) fn new(links: &Links, node: &str, number: u64) -> Self {
        let (orders, incoming) = unbounded_channel();
        let (dialer, config) = (Arc::clone(&links.dialer), Arc::clone(&links.config));
        let (buffers, link_messages, node) =
            (links.buffers.clone(), links.link_messages.clone(), node.to_owned());
        let task = tokio::spawn(async move {
            let opened = Connection::open(&dialer, &node).await;
            let ended = match opened.and_then(|connection| ready(&config, connection)) {
                Ok((stream, version)) => {
                    // The receiver is gone only when this task is ended too.
                    drop(link_messages.send((number, LinkEvent::Up)));
                    let (reader, writer) = tokio::io::split(stream);
                    let serving = Serving {
                        reader,
                        writer,
                        compressor: Compressor::new(config.compression, config.compression_level),
                        config,
                        buffers,
                        link_messages: link_messages.clone(),
                        link: number,
                        version,
                        incoming: Incoming::default(),
                        number: 0,
                        writing: None,
                        pending: VecDeque::new(),
                    };
                    serving.run(incoming).await
                }
                Err(error) => error,
            };
            drop(link_messages.send((number, LinkEvent::Down(ended))));
        });
        Self { orders: Some(orders), task }
    }

    /// Gives it an order; parcels of a topic stand together.
    pub(crate) fn send(&self, parcels: Vec<Parcel>) {
        // A link that has ended reports `Down`; that answers the order.
        if let Some(orders) = &self.orders {
            drop(orders.send(parcels));
        }
    }

    /// Ends it when the broker has read all that it was sent.
    pub(crate) async fn close(mut self) {
        self.orders = None;
        // It is ended hereafter.
        drop(tokio::time::timeout(CLOSE_MAX, &mut self.task).await);
    }
}

/// The version of `Produce` to be spoken.
fn ready(config: &Config, connection: Connection) -> Result<(Box<dyn Stream>, i16), AskError> {
    let version = connection.versions.produce.ok_or(AskError::TooOld("0.11"))?;
    if config.compression == Compression::Zstd && version < ZSTD_VERSION {
        return Err(AskError::TooOld("2.1, which has no Zstandard"));
    }
    Ok((connection.stream, version))
}

/// An order on its way.
struct Pending {
    number: i32,
    addresses: Vec<(Arc<str>, i32)>,
    sent_bytes: usize,
    since: Instant,
}

struct Serving {
    reader: ReadHalf<Box<dyn Stream>>,
    writer: WriteHalf<Box<dyn Stream>>,
    config: Arc<Config>,
    compressor: Compressor,
    buffers: Buffers,
    link_messages: UnboundedSender<LinkMessage>,
    /// The number of the link.
    link: u64,
    version: i16,
    incoming: Incoming,
    /// Of the last order.
    number: i32,
    writing: Option<Frame>,
    pending: VecDeque<Pending>,
}

impl Serving {
    /// Until something fails.
    async fn run(mut self, mut orders: UnboundedReceiver<Vec<Parcel>>) -> AskError {
        loop {
            let limit = self.config.timeout;
            let deadline = self.pending.front().map(|oldest| oldest.since + limit);
            self.incoming.reserve();
            let step = tokio::select! {
                biased;
                read = self.reader.read_buf(&mut self.incoming.0) => match read {
                    Ok(0) => Err(AskError::Ended),
                    Ok(_) => self.answers(),
                    Err(error) => Err(error.into()),
                },
                written = write(&mut self.writer, self.writing.as_ref()) => match written {
                    Ok(count) => {
                        self.written(count);
                        Ok(())
                    }
                    Err(error) => Err(error.into()),
                },
                order = orders.recv(), if self.writing.is_none() => match order {
                    Some(parcels) => {
                        self.begin(parcels);
                        Ok(())
                    }
                    None => return self.close().await,
                },
                () = until(deadline) => Err(AskError::Time(limit)),
            };
            if let Err(error) = step {
                return error;
            }
        }
    }

    /// Ends our side of the stream. A broker that has read that has read, and done, all before it.
    async fn close(mut self) -> AskError {
        if let Err(error) = self.writer.shutdown().await {
            return error.into();
        }
        loop {
            self.incoming.0.clear();
            self.incoming.reserve();
            match self.reader.read_buf(&mut self.incoming.0).await {
                Ok(0) => return AskError::Ended,
                Ok(_) => {}
                Err(error) => return error.into(),
            }
        }
    }

    fn begin(&mut self, parcels: Vec<Parcel>) {
        self.number = self.number.wrapping_add(1);
        let addresses = parcels.iter().map(|parcel| (Arc::clone(&parcel.topic), parcel.partition));
        let addresses = addresses.collect();
        let config = &self.config;
        let terms = Terms {
            version: self.version,
            client_id: &config.client_id,
            acks: config.required_acks,
            timeout: config.broker_timeout.as_millis().min(i32::MAX as u128) as i32,
        };
        let buffers = &self.buffers;
        let free = |buffer| buffers.put(buffer);
        let frame = Frame::new(self.number, parcels, &terms, &mut self.compressor, free);
        self.pending.push_back(Pending {
            number: self.number,
            addresses,
            sent_bytes: frame.len(),
            since: Instant::now(),
        });
        self.writing = Some(frame);
    }

    /// So many bytes were written; none once all are flushed.
    fn written(&mut self, count: usize) {
        let Some(frame) = &mut self.writing else { return };
        frame.advance(count);
        if count > 0 {
            return;
        }
        for buffer in self.writing.take().into_iter().flat_map(Frame::into_parts) {
            self.buffers.put(buffer);
        }
        if self.config.required_acks == 0
            && let Some(order) = self.pending.pop_back()
        {
            // There is no answer to be waited for.
            let outcomes = order.addresses.iter().map(|_| Outcome::of(crate::codes::Code::NONE));
            self.done(&order, outcomes.collect(), 0);
        }
    }

    /// Reports the answers that came in.
    fn answers(&mut self) -> Result<(), AskError> {
        while let Some((number, body)) = self.incoming.take_answer()? {
            let order = self.pending.pop_front().ok_or(Nonsense("nothing was asked"))?;
            if order.number != number {
                return Err(Nonsense("it is for another request").into());
            }
            let outcomes = produce::read_answer(&body, self.version, &order.addresses)?;
            self.done(&order, outcomes, body.len() as u64 + 8);
        }
        Ok(())
    }

    fn done(&self, order: &Pending, outcomes: Vec<Outcome>, read_bytes: u64) {
        let (sent_bytes, took) = (order.sent_bytes as u64, order.since.elapsed());
        let event = LinkEvent::Done { outcomes, sent_bytes, read_bytes, took };
        // The receiver is gone only when this task is ended too.
        drop(self.link_messages.send((self.link, event)));
    }
}

/// Writes a part of a frame, or flushes when there is none left, and then returns 0. Nothing is lost
/// when the future is dropped.
async fn write(
    writer: &mut WriteHalf<Box<dyn Stream>>,
    frame: Option<&Frame>,
) -> io::Result<usize> {
    let Some(frame) = frame else { return std::future::pending().await };
    if frame.is_written() {
        return writer.flush().await.map(|()| 0);
    }
    let pieces = frame.rest();
    let count =
        poll_fn(|context| Pin::new(&mut *writer).poll_write_vectored(context, &pieces)).await?;
    if count == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(count) }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
