//! One worker's way to a service: connects, signs, sends, and keeps the connection for the next request.

use crate::credentials::{CredentialsError, Provider};
use crate::refused::Refused;
use crate::sign::{HeaderError, ToSign};
use crate::target::Target;
use bytes::Bytes;
use http::header::{PROXY_AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use skidder_aws::{EMPTY_DIGEST, escape};
use skidder_net::{
    AGENT, ANSWER_KEPT_BYTES_MAX, AnswerPieces, Connection, ConnectionError, Pieces, Route,
    StreamedAnswer, secret_header,
};
use skidder_os::{Clock, Monotonic};
use skidder_tls::TlsClient;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A connection that was idle for longer is not used again: servers close it about then.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// Longest refusal of a request whose answer is taken in pieces.
const REFUSAL_BYTES_MAX: usize = 1 << 20;

/// Why a request was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no answer. The next try uses a new connection.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The request cannot be signed.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The server answered with an error.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// A setting, or the name of an object, has characters that no header has.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The answer says success, and is not what the service answers. It counts as none.
    #[error(
        "the server answered {status}, but not as {service} does: {what}; is there a proxy or a portal before the server \
         that answers for it?"
    )]
    Unexpected {
        /// The name of the service, as `S3`.
        service: &'static str,
        /// The HTTP status.
        status: u16,
        /// The difference.
        what: String,
    },
}

/// Counts what goes over the connections of clients.
pub trait Meter: fmt::Debug + Send + Sync {
    /// A request was answered, with success or not: the bytes of its body, and the time until the end of the answer, or
    /// until its beginning if it is taken in pieces.
    fn answered(&self, sent_bytes: u64, latency: Duration);
    /// So many bytes of an answer's body came.
    fn received(&self, bytes: u64);
}

/// Counts nothing.
impl Meter for () {
    fn answered(&self, _: u64, _: Duration) {}
    fn received(&self, _: u64) {}
}

/// A service and how to get there. Each worker has a [`Client`] of it.
#[derive(Clone, Debug)]
pub struct Service {
    /// The name that requests are signed for, as `s3`.
    pub name: &'static str,
    /// The region that they are signed for, as `eu-central-1`.
    pub region: String,
    /// Where it is.
    pub target: Arc<Target>,
    /// For a target with TLS, whose absence there is a mistake of the configuration.
    pub tls: Option<Arc<TlsClient>>,
    /// Gives the credentials.
    pub provider: Arc<Provider>,
    /// Of connecting, and of a request with its answer, or of each piece of that.
    pub timeout: Duration,
}

impl Service {
    /// A client without a connection yet.
    pub fn client(&self, meter: Arc<dyn Meter>, clock: Arc<dyn Clock>) -> Client {
        let route = self.target.route(self.tls.clone());
        let last_used = clock.monotonic();
        let service = self.clone();
        Client { service, route, meter, clock, connection: None, last_used, answer: Vec::new() }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// `GET`, `PUT`, ….
    pub method: Method,
    /// Of an object, not escaped; nothing for the target itself.
    pub key: Option<&'a str>,
    /// Parameters, not escaped, in any order.
    pub query: Vec<(&'a str, &'a str)>,
    /// Names in lower case.
    pub headers: Vec<(&'static str, &'a str)>,
    /// The body in pieces.
    pub body: &'a [Bytes],
    /// SHA-256 of the body, as [`skidder_aws::digest`] writes it.
    pub digest: &'a str,
    /// Added to the time limit of the service, for a request whose answer the server holds back on purpose.
    pub patience: Duration,
}

impl<'a> Ask<'a> {
    /// Without a body.
    pub fn empty(method: Method, key: Option<&'a str>) -> Self {
        let (query, headers) = (Vec::new(), Vec::new());
        let patience = Duration::ZERO;
        Self { method, key, query, headers, body: &[], digest: EMPTY_DIGEST, patience }
    }
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

/// The beginning of a good answer that is taken in pieces.
#[derive(Debug)]
pub struct Opened<'a> {
    /// 200 to 299.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// The body to come.
    pub body: Body<'a>,
}

/// A body on its way. Dropping it before its end closes the connection; the client makes a new one then.
#[derive(Debug)]
pub struct Body<'a> {
    client: &'a mut Client,
    /// Nothing behind its end, and after an error.
    pieces: Option<AnswerPieces>,
}

/// See the module's text.
pub struct Client {
    service: Service,
    route: Route,
    meter: Arc<dyn Meter>,
    clock: Arc<dyn Clock>,
    connection: Option<Connection>,
    last_used: Monotonic,
    answer: Vec<u8>,
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").field("service", &self.service).finish_non_exhaustive()
    }
}

impl Client {
    /// The service.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Uses this connection for the next request.
    pub fn adopt(&mut self, connection: Connection) {
        self.last_used = self.clock.monotonic();
        self.connection = Some(connection);
    }

    /// Sends a request and reads the whole answer. A request over a connection that the server closed while it was idle is
    /// repeated once, and what the server may have taken from it is asked twice.
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no success.
    pub async fn ask(&mut self, ask: Ask<'_>) -> Result<Answer<'_>, Failure> {
        let started = self.clock.monotonic();
        let (path, query) = self.place(&ask);
        let timeout = self.service.timeout + ask.patience;
        let (status, headers) = loop {
            let headers = self.headers(&ask, &path, &query).await?;
            let mut connection = self.connect().await?;
            let was_used = connection.is_used();
            let uri = self.service.target.uri(&path, &query);
            let body = Pieces::new(ask.body);
            let answer = &mut self.answer;
            let sent = connection.send(ask.method.clone(), uri, headers, body, answer, timeout);
            match sent.await {
                Ok(head) => {
                    self.adopt(connection);
                    break head;
                }
                // The server closed the connection while it was idle: no failure, but a new one.
                Err(ConnectionError::Broken(_)) if was_used => {}
                Err(error) => return Err(error.into()),
            }
        };
        self.measure(&ask, started);
        self.meter.received(self.answer.len() as u64);
        self.answer.shrink_to(ANSWER_KEPT_BYTES_MAX);
        if !(200..300).contains(&status) {
            return Err(self.refused(status, &headers).await);
        }
        Ok(Answer { status, headers, body: &self.answer })
    }

    /// As [`Client::ask`], as a future of a known type, for a request that is part of another one's signing.
    pub(crate) fn ask_boxed<'a>(
        &'a mut self,
        ask: Ask<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Answer<'a>, Failure>> + Send + 'a>> {
        Box::pin(self.ask(ask))
    }

    /// Sends a request and reads the beginning of the answer, whose body is taken in pieces. Repeats it as [`Client::ask`].
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no success.
    pub async fn open(&mut self, ask: Ask<'_>) -> Result<Opened<'_>, Failure> {
        let started = self.clock.monotonic();
        let (path, query) = self.place(&ask);
        let timeout = self.service.timeout + ask.patience;
        let StreamedAnswer { status, headers, body } = loop {
            let headers = self.headers(&ask, &path, &query).await?;
            let connection = self.connect().await?;
            let was_used = connection.is_used();
            let uri = self.service.target.uri(&path, &query);
            let body = Pieces::new(ask.body);
            match connection.send_streamed(ask.method.clone(), uri, headers, body, timeout).await {
                Ok(answer) => break answer,
                Err(ConnectionError::Broken(_)) if was_used => {}
                Err(error) => return Err(error.into()),
            }
        };
        self.measure(&ask, started);
        if !(200..300).contains(&status) {
            let read = body.refusal(&mut self.answer, REFUSAL_BYTES_MAX, timeout).await?;
            self.meter.received(self.answer.len() as u64);
            if let Some(connection) = read {
                self.adopt(connection);
            }
            return Err(self.refused(status, &headers).await);
        }
        Ok(Opened { status, headers, body: Body { client: self, pieces: Some(body) } })
    }

    /// The escaped path and query of a request.
    fn place(&self, ask: &Ask<'_>) -> (String, String) {
        (self.service.target.path(ask.key), query(&ask.query))
    }

    fn measure(&self, ask: &Ask<'_>, started: Monotonic) {
        let sent = ask.body.iter().map(|piece| piece.len() as u64).sum();
        self.meter.answered(sent, self.clock.monotonic().since(started));
    }

    /// The connection of the request before, or a new one.
    async fn connect(&mut self) -> Result<Connection, ConnectionError> {
        let idle = self.clock.monotonic().since(self.last_used);
        match self.connection.take() {
            Some(connection) if connection.is_open() && idle <= IDLE_MAX => Ok(connection),
            _ => Connection::open(&self.route, None, self.service.timeout).await,
        }
    }

    /// What a refusal means, whose body is in `answer`.
    async fn refused(&self, status: u16, headers: &HeaderMap) -> Failure {
        let refused = Refused::read(status, headers, &self.answer);
        if refused.is_about_credentials() {
            self.service.provider.forget().await;
        }
        Failure::Refused(Box::new(refused))
    }

    /// All headers of a request.
    async fn headers(&self, ask: &Ask<'_>, path: &str, query: &str) -> Result<HeaderMap, Failure> {
        let Service { name, region, target, provider, .. } = &self.service;
        let credentials = provider.get(&self.clock).await?;
        let to_sign = ToSign {
            service: name,
            region,
            method: ask.method.as_str(),
            path,
            query,
            authority: &target.authority,
            headers: &ask.headers,
            digest: ask.digest,
        };
        let mut headers = to_sign.sign(&credentials, self.clock.wall())?;
        if let Some(login) = &target.proxy_login {
            let login = secret_header(login).ok_or(HeaderError("proxy-authorization"))?;
            headers.insert(PROXY_AUTHORIZATION, login);
        }
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        Ok(headers)
    }
}

impl Body<'_> {
    /// The next piece: 1 to `bytes_max` bytes, for which it waits the service's `timeout` at most; `None` at the end. Loses
    /// nothing if it is cancelled.
    ///
    /// # Errors
    ///
    /// The connection broke, or nothing came in time. Everything behind is missing, and further calls fail too.
    pub async fn piece(&mut self, bytes_max: usize) -> Result<Option<Bytes>, Failure> {
        let Some(pieces) = &mut self.pieces else { return Ok(None) };
        let piece = pieces.piece(bytes_max, self.client.service.timeout).await?;
        match &piece {
            Some(piece) => self.client.meter.received(piece.len() as u64),
            None => {
                let connection = self.pieces.take().and_then(AnswerPieces::into_connection);
                if let Some(connection) = connection {
                    self.client.adopt(connection);
                }
            }
        }
        Ok(piece)
    }
}

/// The escaped parameters in the order in which they are signed.
fn query(parameters: &[(&str, &str)]) -> String {
    let escaped = |text: &str| {
        let mut out = String::with_capacity(text.len());
        escape(&mut out, text, None);
        out
    };
    let pairs = parameters.iter().map(|(name, value)| (escaped(name), escaped(value)));
    let mut pairs: Vec<(String, String)> = pairs.collect();
    pairs.sort_unstable();
    let pairs: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_sorted_and_escaped_as_they_are_signed() {
        let table: [(&[(&str, &str)], &str); 4] = [
            (&[], ""),
            (&[("uploads", "")], "uploads="),
            (&[("prefix", "a/ä +~"), ("list-type", "2")], "list-type=2&prefix=a%2F%C3%A4%20%2B~"),
            (&[("b", "2"), ("B", "1"), ("b", "1")], "B=1&b=1&b=2"),
        ];
        for (parameters, expected) in table {
            assert_eq!(query(parameters), expected);
        }
    }
}
