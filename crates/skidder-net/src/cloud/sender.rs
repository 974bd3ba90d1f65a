//! Connects, signs, sends, and keeps connections for the next request.

use super::{Ask, Failure, FailureOf, RefusedAnswer, Signer};
use crate::{
    ANSWER_KEPT_BYTES_MAX, AnswerPieces, Connection, ConnectionError, Pieces, Route, StreamedAnswer,
};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use skidder_os::{Clock, Monotonic};
use std::collections::VecDeque;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A connection that was idle for longer is not used again: servers and proxies close it about then.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// Longest refusal of a request whose answer is taken in pieces.
const REFUSAL_BYTES_MAX: usize = 1 << 20;

/// Counts what goes over the connections of clients.
pub trait Meter: fmt::Debug + Send + Sync {
    /// A request was answered, with success or not: the bytes of its body, and the time until the end of the answer, or
    /// until its beginning if it is taken in pieces.
    fn answered(&self, _sent_bytes: u64, _latency: Duration) {}
    /// So many bytes of an answer's body came.
    fn received(&self, bytes: u64);
}

/// Counts nothing.
impl Meter for () {
    fn received(&self, _: u64) {}
}

/// Sends the requests of a service; workers may share it.
pub struct Sender<S> {
    signer: S,
    route: Route,
    meter: Arc<dyn Meter>,
    clock: Arc<dyn Clock>,
    /// Connections that no answer uses; the last one was used last.
    idle: Mutex<VecDeque<(Connection, Monotonic)>>,
    idle_max: usize,
}

/// One worker's way to a service. It keeps one connection.
#[derive(Debug)]
pub struct Client<S> {
    sender: Sender<S>,
    answer: Vec<u8>,
}

/// A good answer.
#[derive(Debug)]
pub struct Answer<'a> {
    /// 200 to 299.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: &'a [u8],
}

/// The beginning of a good answer that is taken in pieces. `K` refers to the [`Sender`].
#[derive(Debug)]
pub struct Opened<K> {
    /// 200 to 299.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// The body to come.
    pub body: Body<K>,
}

/// A body on its way. Dropping it before its end closes the connection; the sender makes a new one then.
#[derive(Debug)]
pub struct Body<K> {
    sender: K,
    /// Nothing behind its end.
    pieces: Option<AnswerPieces>,
}

impl<S: fmt::Debug> fmt::Debug for Sender<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sender").field("signer", &self.signer).finish_non_exhaustive()
    }
}

impl<S: Signer> Client<S> {
    /// Without a connection yet.
    pub fn new(signer: S, route: Route, meter: Arc<dyn Meter>, clock: Arc<dyn Clock>) -> Self {
        Self { sender: Sender::new(signer, route, meter, clock, 1), answer: Vec::new() }
    }

    /// The service.
    pub fn service(&self) -> &S {
        &self.sender.signer
    }

    /// Uses this connection for the next request.
    pub fn adopt(&mut self, connection: Connection) {
        self.sender.keep(connection);
    }

    /// Sends a request and reads the whole answer. A request over a connection that the server closed while it was idle is
    /// repeated, and what the server may have taken from it is asked twice.
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no success.
    pub async fn ask(&mut self, ask: Ask<'_>) -> Result<Answer<'_>, FailureOf<S>> {
        let (status, headers) = self.sender.ask(&ask, &mut self.answer).await?;
        Ok(Answer { status, headers, body: &self.answer })
    }

    /// Sends a request and reads the beginning of the answer, whose body is taken in pieces. Repeats it as [`Client::ask`].
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no success.
    pub async fn open(&mut self, ask: Ask<'_>) -> Result<Opened<&Sender<S>>, FailureOf<S>> {
        Sender::open(&self.sender, &ask).await
    }
}

impl<S: Signer> Sender<S> {
    /// Without a connection yet. At most `idle_max` are kept while they are not used.
    pub fn new(
        signer: S,
        route: Route,
        meter: Arc<dyn Meter>,
        clock: Arc<dyn Clock>,
        idle_max: usize,
    ) -> Self {
        Self { signer, route, meter, clock, idle: Mutex::default(), idle_max }
    }

    /// The service.
    pub fn signer(&self) -> &S {
        &self.signer
    }

    /// Reads the whole answer into `answer`. Returns its status, 200 to 299, and its headers.
    async fn ask(
        &self,
        ask: &Ask<'_>,
        answer: &mut Vec<u8>,
    ) -> Result<(u16, HeaderMap), FailureOf<S>> {
        let started = self.clock.monotonic();
        let timeout = self.signer.timeout() + ask.patience;
        let (status, headers, login) = loop {
            let (uri, headers) = self.signer.sign(ask, &self.clock).await?;
            let login = headers.get(AUTHORIZATION).cloned();
            let mut connection = self.connect().await?;
            let was_used = connection.is_used();
            let body = Pieces::new(ask.body);
            let sent = connection.send(ask.method.clone(), uri, headers, body, answer, timeout);
            match sent.await {
                Ok((status, headers)) => {
                    self.keep(connection);
                    break (status, headers, login);
                }
                // The server closed the connection while it was idle: no failure, but a new one.
                Err(ConnectionError::Broken(_)) if was_used => {}
                Err(error) => return Err(error.into()),
            }
        };
        self.measure(ask, started);
        self.meter.received(answer.len() as u64);
        answer.shrink_to(ANSWER_KEPT_BYTES_MAX);
        if !(200..300).contains(&status) {
            return Err(self.refused(status, &headers, answer, login.as_ref()).await);
        }
        Ok((status, headers))
    }

    /// Sends a request by `sender` and reads the beginning of the answer, whose body is taken in pieces. Repeats it as
    /// [`Client::ask`].
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no success.
    pub async fn open<K>(sender: K, ask: &Ask<'_>) -> Result<Opened<K>, FailureOf<S>>
    where
        K: Deref<Target = Self>,
    {
        let started = sender.clock.monotonic();
        let timeout = sender.signer.timeout() + ask.patience;
        let (answer, login) = loop {
            let (uri, headers) = sender.signer.sign(ask, &sender.clock).await?;
            let login = headers.get(AUTHORIZATION).cloned();
            let connection = sender.connect().await?;
            let was_used = connection.is_used();
            let body = Pieces::new(ask.body);
            match connection.send_streamed(ask.method.clone(), uri, headers, body, timeout).await {
                Ok(answer) => break (answer, login),
                Err(ConnectionError::Broken(_)) if was_used => {}
                Err(error) => return Err(error.into()),
            }
        };
        let StreamedAnswer { status, headers, body } = answer;
        sender.measure(ask, started);
        if (200..300).contains(&status) {
            return Ok(Opened { status, headers, body: Body { sender, pieces: Some(body) } });
        }
        let mut answer = Vec::new();
        let read = body.refusal(&mut answer, REFUSAL_BYTES_MAX, timeout).await?;
        sender.meter.received(answer.len() as u64);
        if let Some(connection) = read {
            sender.keep(connection);
        }
        Err(sender.refused(status, &headers, &answer, login.as_ref()).await)
    }

    fn measure(&self, ask: &Ask<'_>, started: Monotonic) {
        self.meter.answered(ask.body_bytes(), self.clock.monotonic().since(started));
    }

    async fn refused(
        &self,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
        login: Option<&HeaderValue>,
    ) -> FailureOf<S> {
        let answer = RefusedAnswer { status, headers, body, login };
        Failure::Refused(Box::new(self.signer.refused(answer).await))
    }

    /// A connection that was used before, or a new one.
    async fn connect(&self) -> Result<Connection, ConnectionError> {
        let now = self.clock.monotonic();
        // The guard must not live while a new one is opened.
        let kept = loop {
            let Some((connection, used)) = self.lock().pop_back() else { break None };
            if connection.is_open() && now.since(used) <= IDLE_MAX {
                break Some(connection);
            }
        };
        match kept {
            Some(connection) => Ok(connection),
            None => Connection::open(&self.route, None, self.signer.timeout()).await,
        }
    }

    /// Keeps a connection for the next request.
    fn keep(&self, connection: Connection) {
        let now = self.clock.monotonic();
        let mut idle = self.lock();
        idle.push_back((connection, now));
        if idle.len() > self.idle_max {
            idle.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Connection, Monotonic)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Signer, K: Deref<Target = Sender<S>>> Body<K> {
    /// The next piece: 1 to `bytes_max` bytes, for which it waits the service's time limit at most; `None` at the end. Loses
    /// nothing if it is cancelled.
    ///
    /// # Errors
    ///
    /// The connection broke, or nothing came in time. Everything behind is missing, and further calls fail too.
    pub async fn piece(&mut self, bytes_max: usize) -> Result<Option<Bytes>, ConnectionError> {
        let Some(pieces) = &mut self.pieces else { return Ok(None) };
        let piece = pieces.piece(bytes_max, self.sender.signer.timeout()).await?;
        match &piece {
            Some(piece) => self.sender.meter.received(piece.len() as u64),
            None => {
                let connection = self.pieces.take().and_then(AnswerPieces::into_connection);
                if let Some(connection) = connection {
                    self.sender.keep(connection);
                }
            }
        }
        Ok(piece)
    }
}
