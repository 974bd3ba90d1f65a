//! One worker's way to a container: connects, signs, sends, and keeps the connection for the next request.

use crate::VERSION;
use crate::account::Account;
use crate::credentials::{Credential, CredentialsError, Provider, Shown};
use crate::refused::Refused;
use crate::sign::ToSign;
use crate::time::http_time;
use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, PROXY_AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use skidder_config::Secret;
use skidder_net::{
    AGENT, ANSWER_KEPT_BYTES_MAX, AnswerPieces, Connection, ConnectionError, Pieces, Route,
    StreamedAnswer, percent_encoded, redact, secret_header,
};
use skidder_os::{Clock, Monotonic};
use skidder_tls::TlsClient;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A connection that was idle for longer is not used again: proxies and servers close it.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// Longest refusal of a request whose answer is taken in pieces.
const REFUSAL_BYTES_MAX: usize = 1 << 20;

/// Why a request was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no answer. The next try uses a new connection.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// There is nothing to show.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The server answered with an error.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// A setting, or the name of a blob, has characters that no request has.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The answer says success, and is not what Azure answers. It counts as none.
    #[error(
        "the server answered {status}, but not as Azure Blob Storage does: {what}; is there a proxy or a portal before the \
         server that answers for it?"
    )]
    Unexpected {
        /// The HTTP status.
        status: u16,
        /// The difference.
        what: String,
    },
}

impl Failure {
    pub(crate) fn unexpected(status: u16, what: impl Into<String>) -> Self {
        Self::Unexpected { status, what: what.into() }
    }
}

/// A part of the request has characters that cannot be sent; this is its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a part of the request cannot be sent: `{0}`")]
pub struct HeaderError(pub String);

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

/// A container and how to get there. Each worker has a [`Client`] of it.
#[derive(Clone, Debug)]
pub struct Service {
    /// Where its account is.
    pub account: Arc<Account>,
    /// Its name, as [`crate::check_container_name`] takes it.
    pub container: String,
    /// For an account with TLS, whose absence there is a mistake of the configuration.
    pub tls: Option<Arc<TlsClient>>,
    /// Gives the credentials.
    pub provider: Arc<Provider>,
    /// Of connecting, and of a request with its answer, or of each piece of that.
    pub timeout: Duration,
}

impl Service {
    /// A client without a connection yet.
    pub fn client(&self, meter: Arc<dyn Meter>, clock: Arc<dyn Clock>) -> Client {
        let route = self.account.route(self.tls.clone());
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
    /// The name of a blob, not escaped; `None` for the container itself.
    pub blob: Option<&'a str>,
    /// Parameters, not escaped, in any order.
    pub query: Vec<(&'a str, &'a str)>,
    /// Names in lower case.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The body in pieces.
    pub body: &'a [Bytes],
}

impl<'a> Ask<'a> {
    /// Without a body.
    pub fn empty(method: Method, blob: Option<&'a str>) -> Self {
        Self { method, blob, query: Vec::new(), headers: Vec::new(), body: &[] }
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
    /// The container.
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
        let timeout = self.service.timeout;
        let (status, headers) = loop {
            let (uri, headers) = self.signed(&ask).await?;
            let mut connection = self.connect().await?;
            let was_used = connection.is_used();
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

    /// Sends a request and reads the beginning of the answer, whose body is taken in pieces. Repeats it as [`Client::ask`].
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no success.
    pub async fn open(&mut self, ask: Ask<'_>) -> Result<Opened<'_>, Failure> {
        let started = self.clock.monotonic();
        let timeout = self.service.timeout;
        let StreamedAnswer { status, headers, body } = loop {
            let (uri, headers) = self.signed(&ask).await?;
            let connection = self.connect().await?;
            let was_used = connection.is_used();
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

    fn measure(&self, ask: &Ask<'_>, started: Monotonic) {
        self.meter.answered(body_bytes(ask), self.clock.monotonic().since(started));
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
        let provider = &self.service.provider;
        // A proxy may show the URL in its answer.
        let refused = match provider.credential() {
            Credential::Sas(sas) => Refused::read(status, headers, &without(&self.answer, sas)),
            _ => Refused::read(status, headers, &self.answer),
        };
        if refused.is_about_credentials() {
            provider.forget().await;
        }
        Failure::Refused(Box::new(refused))
    }

    /// Where a request goes, and all of its headers.
    async fn signed(&self, ask: &Ask<'_>) -> Result<(Uri, HeaderMap), Failure> {
        let Service { account, container, provider, .. } = &self.service;
        let shown = provider.get(&self.clock).await?;
        let path = account.path(container, ask.blob);
        let (time, length) = (http_time(self.clock.wall()), body_bytes(ask).to_string());
        let mut signed = ask.headers.clone();
        signed.push(("x-ms-date", &time));
        signed.push(("x-ms-version", VERSION));
        if ask.method == Method::PUT || ask.method == Method::POST {
            signed.push(("content-length", &length));
        }
        let mut headers = HeaderMap::new();
        for (name, text) in &signed {
            let wrong = || HeaderError((*name).to_owned());
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            headers.insert(header, HeaderValue::from_str(text).map_err(|_| wrong())?);
        }
        let mut sas = None;
        let login = match &shown {
            Shown::Key(key) => {
                let method = ask.method.as_str();
                let to_sign = ToSign { method, path: &path, query: &ask.query, headers: &signed };
                Some(key.authorization(&to_sign))
            }
            Shown::Token(token) => Some(format!("Bearer {}", token.reveal())),
            Shown::Sas(token) => {
                sas = Some(*token);
                None
            }
        };
        let secret = |name: &str, text: &str| {
            secret_header(text).ok_or_else(|| HeaderError(name.to_owned()))
        };
        if let Some(login) = &login {
            headers.insert(AUTHORIZATION, secret("authorization", login)?);
        }
        if let Some(login) = &account.proxy_login {
            headers.insert(PROXY_AUTHORIZATION, secret("proxy-authorization", login)?);
        }
        let host = HeaderValue::from_str(&account.authority);
        headers.insert(HOST, host.map_err(|_| HeaderError("host".to_owned()))?);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let uri = account.uri(&path, &query(&ask.query), sas);
        let uri = uri.ok_or_else(|| HeaderError("the shared access signature".to_owned()))?;
        Ok((uri, headers))
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

fn body_bytes(ask: &Ask<'_>) -> u64 {
    ask.body.iter().map(|piece| piece.len() as u64).sum()
}

/// An answer without the signature of a shared access signature, as a URL has it and as it is.
fn without(answer: &[u8], sas: &Secret) -> Vec<u8> {
    let mut text = String::from_utf8_lossy(answer).into_owned();
    let signatures = sas.reveal().split('&').filter_map(|part| part.strip_prefix("sig="));
    for signature in signatures.filter(|signature| !signature.is_empty()) {
        let plain = crate::listing::decoded(signature);
        for form in std::iter::once(signature).chain(plain.as_deref()) {
            text = redact(&text, form);
        }
    }
    text.into_bytes()
}

/// The escaped parameters.
fn query(parameters: &[(&str, &str)]) -> String {
    let pairs = parameters
        .iter()
        .map(|(name, value)| format!("{}={}", percent_encoded(name), percent_encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_shows_no_signature() {
        let sas = Secret::new("sv=1&sig=abc%2Bdef%3D&se=2");
        let answer = without(b"GET /in?sv=1&amp;sig=abc%2Bdef%3D: abc+def= is wrong", &sas);
        let expected = "GET /in?sv=1&amp;sig=xxxxxxxxxxxx: xxxxxxxx is wrong";
        assert_eq!(String::from_utf8(answer).unwrap(), expected);
        assert_eq!(without(b"no", &Secret::new("sv=1&sig=")), b"no");
    }

    #[test]
    fn parameters_are_escaped() {
        assert_eq!(query(&[]), "");
        let parameters = [("comp", "list"), ("prefix", "a/ä +~"), ("marker", "2!x==")];
        assert_eq!(query(&parameters), "comp=list&prefix=a%2F%C3%A4%20%2B~&marker=2%21x%3D%3D");
    }
}
