//! A connection, and the links over it.

use crate::driver::{AttachCommand, Command, Driver, SILENCE_MAX};
use crate::error::AmqpError;
use crate::frames::{AMQP, FRAME_BYTES_MIN, Kind, halves};
use crate::links::Event;
use crate::performatives::{Performative, open};
use crate::sasl::Login;
use skidder_net::{AGENT, Stream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

/// Commands that wait for the driver.
const COMMANDS_MAX: usize = 64;

/// How a connection begins.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The name of this side, which no other connection has.
    pub container: String,
    /// The name of the server.
    pub host: String,
    /// The login.
    pub login: Login,
    /// Of the whole beginning, and of each answer afterwards.
    pub timeout: Duration,
}

/// A connection. It is closed when this, all receivers and all requesters are dropped.
#[derive(Debug)]
pub struct Connection {
    pub(crate) line: Line,
    links: AtomicU64,
}

/// The way to the driver.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) commands: mpsc::Sender<Command>,
    ended: Arc<OnceLock<AmqpError>>,
    pub(crate) timeout: Duration,
}

impl Line {
    /// Why nothing is sent any more.
    pub(crate) fn error(&self) -> AmqpError {
        self.ended.get().cloned().unwrap_or(AmqpError::Gone)
    }

    pub(crate) async fn send(&self, command: Command) -> Result<(), AmqpError> {
        self.commands.send(command).await.map_err(|_| self.error())
    }

    /// Waits for an answer.
    pub(crate) async fn ask<T>(
        &self,
        what: &'static str,
        command: impl FnOnce(oneshot::Sender<Result<T, AmqpError>>) -> Command,
    ) -> Result<T, AmqpError> {
        let (reply, answer) = oneshot::channel();
        let asking = async {
            self.send(command(reply)).await?;
            answer.await.map_err(|_| self.error())?
        };
        let late = Err(AmqpError::Timeout(what, self.timeout.as_secs()));
        tokio::time::timeout(self.timeout, asking).await.unwrap_or(late)
    }
}

/// A session, which ends with this.
#[derive(Debug)]
pub(crate) struct OwnSession {
    pub(crate) line: Line,
    pub(crate) channel: u16,
}

impl Drop for OwnSession {
    fn drop(&mut self) {
        // If there is no room now, the driver ends it with the next message.
        drop(self.line.commands.try_send(Command::End { channel: self.channel }));
    }
}

/// A link to open in a session.
pub(crate) struct Wanted<'a> {
    pub(crate) name: String,
    pub(crate) is_receiver: bool,
    pub(crate) node: &'a str,
    pub(crate) own: &'a str,
    pub(crate) filter: Option<&'a str>,
    pub(crate) properties: Option<Vec<u8>>,
    pub(crate) credit: u32,
    pub(crate) message_bytes_max: u64,
}

impl OwnSession {
    /// Opens a link; returns its handle, and what comes.
    pub(crate) async fn attach(
        &self,
        wanted: Wanted<'_>,
    ) -> Result<(u32, mpsc::Receiver<Event>), AmqpError> {
        // Room for all messages, and for the end.
        let (events, receiver) = mpsc::channel(wanted.credit as usize + 2);
        let channel = self.channel;
        let attaching = self.line.ask("`attach`", |reply| {
            Command::Attach(Box::new(AttachCommand {
                channel,
                name: wanted.name,
                is_receiver: wanted.is_receiver,
                node: wanted.node.to_owned(),
                own: wanted.own.to_owned(),
                filter: wanted.filter.map(str::to_owned),
                properties: wanted.properties,
                credit_max: wanted.credit,
                message_bytes_max: wanted.message_bytes_max,
                events,
                reply,
            }))
        });
        Ok((attaching.await?, receiver))
    }
}

impl Connection {
    /// Opens a connection over a stream, which is encrypted if it is to be.
    ///
    /// # Errors
    ///
    /// There is no connection.
    pub async fn open(stream: Box<dyn Stream>, opening: &Opening) -> Result<Self, AmqpError> {
        let begun = tokio::time::timeout(opening.timeout, Self::begin(stream, opening));
        let late = Err(AmqpError::Timeout("the beginning of AMQP", opening.timeout.as_secs()));
        begun.await.unwrap_or(late)
    }

    async fn begin(stream: Box<dyn Stream>, opening: &Opening) -> Result<Self, AmqpError> {
        let (mut frames, mut output) = halves(stream);
        opening.login.run(&mut frames, &mut output, &opening.host).await?;
        output.raw(&AMQP).await?;
        frames.protocol(AMQP).await?;
        let idle = u32::try_from(SILENCE_MAX.as_millis() / 2).unwrap_or(u32::MAX);
        let body = open(&opening.container, &opening.host, idle, AGENT);
        output.frame(Kind::Amqp, 0, &body).await?;
        let (frame_bytes_max, idle_milliseconds) = loop {
            let frame = frames.next().await?;
            if frame.body.is_empty() {
                continue;
            }
            match Performative::read(&frame.body)? {
                Performative::Open { frame_bytes_max, idle_milliseconds } => {
                    break (frame_bytes_max, idle_milliseconds);
                }
                Performative::Close { error } => {
                    return Err(AmqpError::Closed(error.unwrap_or_default()));
                }
                _ => return Err(AmqpError::Protocol("expected `open`".into())),
            }
        };
        output.frame_bytes_max = frame_bytes_max.max(FRAME_BYTES_MIN);
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let idle = Duration::from_millis(u64::from(idle_milliseconds));
        let driver = Driver::new(frames, output, receiver, idle);
        let ended = Arc::new(OnceLock::new());
        let of_driver = Arc::clone(&ended);
        // It ends when the last sender of commands is dropped.
        tokio::spawn(
            async move {
                let error = driver.run().await;
                tracing::debug!(%error, "a connection of AMQP ended");
                of_driver.get_or_init(|| error);
            }
            .in_current_span(),
        );
        let line = Line { commands, ended, timeout: opening.timeout };
        Ok(Self { line, links: AtomicU64::new(0) })
    }

    /// Whether nothing can be done over it any more.
    pub fn is_closed(&self) -> bool {
        self.line.commands.is_closed()
    }

    /// Begins a session.
    pub(crate) async fn session(&self) -> Result<OwnSession, AmqpError> {
        let channel = self.line.ask("`begin`", |reply| Command::Begin { reply }).await?;
        Ok(OwnSession { line: self.line.clone(), channel })
    }

    /// A name that no other link of the connection has.
    pub(crate) fn link_name(&self, of: &str) -> String {
        format!("{of}-{}", self.links.fetch_add(1, Ordering::Relaxed))
    }

    /// Closes the connection; waits until that is sent.
    pub async fn close(&self) {
        let (reply, answer) = oneshot::channel();
        if self.line.send(Command::Close { reply }).await.is_ok() {
            // It is closed one way or the other.
            drop(tokio::time::timeout(Duration::from_secs(1), answer).await);
        }
    }
}
