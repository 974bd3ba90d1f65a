//! Requests to a service over kept connections, shared by all workers of an input.
//!
//! A request that a token is refused for is sent once more with another one; what may pass is tried again as [`Retry`] says.

use crate::refused::Refused;
use crate::tokens::{TokenError, Tokens};
use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, PROXY_AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use skidder_net::{
    AGENT, AnswerPieces, Connection, ConnectionError, HostUrl, Pieces, Proxy, ProxyChoice, Route,
    StreamedAnswer, WithoutTls, proxy_login, secret_header,
};
use skidder_os::{Clock, Monotonic};
use skidder_tls::TlsClient;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A connection that was idle for longer is not used again: servers close it about then.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// Longest refusal that is read.
const REFUSAL_BYTES_MAX: usize = 1 << 20;
/// Bytes of a piece of an answer at most.
const PIECE_BYTES: usize = 64 << 10;

/// Why a request was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no answer. The next try uses a new connection.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// There is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The server answered with an error.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// The request cannot be written.
    #[error("the request cannot be written: {0}")]
    Request(String),
    /// The answer says success, and is not what the service answers. It counts as none.
    #[error(
        "the server answered {status}, but not as Google does: {what}; is there a proxy or a portal before the server \
         that answers for it?"
    )]
    Unexpected {
        /// The HTTP status.
        status: u16,
        /// The difference.
        what: String,
    },
}

impl Failure {
    /// Whether the same request may succeed later.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Token(_) | Self::Unexpected { .. } => true,
            Self::Refused(refused) => refused.may_pass() || refused.is_about_credentials(),
            Self::Request(_) => false,
        }
    }
}

/// Counts what comes over the connections of a client.
pub trait Meter: fmt::Debug + Send + Sync {
    /// So many bytes of an answer's body came.
    fn received(&self, bytes: u64);
}

/// Counts nothing.
impl Meter for () {
    fn received(&self, _: u64) {}
}

/// How requests are repeated that may pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// Tries in all, at least 1.
    pub attempts: u32,
    /// The pause behind the first one.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// Each pause is that many times as long as the one before; at least 1.
    pub factor: f64,
}

impl Retry {
    /// The pause behind try number `number`, which begins at 1. A longer one that the server wants wins.
    fn pause(&self, number: u32, wanted: Option<Duration>) -> Duration {
        let factor = self.factor.powi(i32::try_from(number.saturating_sub(1)).unwrap_or(i32::MAX));
        let seconds = (self.first.as_secs_f64() * factor).min(self.longest.as_secs_f64());
        let pause = Duration::try_from_secs_f64(seconds).unwrap_or(self.longest);
        pause.max(wanted.unwrap_or_default().min(self.longest))
    }
}

/// A service and how to get there.
#[derive(Clone, Debug)]
pub struct Service {
    /// Where it is; paths of requests stand behind its path.
    pub url: HostUrl,
    /// The proxy before it.
    pub proxy: ProxyChoice,
    /// For a server with TLS, whose absence there is a mistake of the configuration.
    pub tls: Option<Arc<TlsClient>>,
    /// Gives tokens.
    pub tokens: Arc<Tokens>,
    /// Of connecting, and of a request with its answer, or of each piece of that.
    pub timeout: Duration,
    /// How requests are repeated.
    pub retry: Retry,
}

impl Service {
    /// A client without a connection yet, which keeps `idle_max` connections while they are not used.
    pub fn client(
        self,
        meter: Arc<dyn Meter>,
        clock: Arc<dyn Clock>,
        idle_max: usize,
    ) -> Arc<Client> {
        let host = self.url.address();
        let proxy = self.proxy.of(self.url.https, &host);
        let is_absolute = matches!(proxy.as_deref(), Some(Proxy::Http(_))) && !self.url.https;
        let before =
            if is_absolute { format!("http://{}", self.url.authority()) } else { String::new() };
        let proxy_login = proxy_login(&self.url, proxy.as_deref());
        let tls = self.tls.clone().filter(|_| self.url.https);
        let route = Route { host, proxy, tls, http2: false, without_tls: WithoutTls::Http };
        let idle = Mutex::default();
        Arc::new(Client { service: self, route, before, proxy_login, meter, clock, idle, idle_max })
    }
}

/// A request with `GET`.
#[derive(Clone, Debug, Default)]
pub struct Ask<'a> {
    /// Behind the URL of the service, escaped, with a slash at its beginning.
    pub path: &'a str,
    /// Parameters, not escaped.
    pub query: &'a [(&'a str, &'a str)],
    /// Names in lower case.
    pub headers: &'a [(&'static str, &'a str)],
}

/// A good answer.
#[derive(Debug)]
pub struct Answer {
    /// 200 to 299.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
}

/// The beginning of a good answer that is taken in pieces.
#[derive(Debug)]
pub struct Opened {
    /// 200 to 299.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// The body to come.
    pub body: Body,
}

/// A body on its way. Dropping it before its end closes the connection.
#[derive(Debug)]
pub struct Body {
    client: Arc<Client>,
    /// Nothing behind its end.
    pieces: Option<AnswerPieces>,
}

/// See the module's text.
pub struct Client {
    service: Service,
    route: Route,
    /// What stands before the path in requests through an HTTP proxy.
    before: String,
    /// The login at such a proxy.
    proxy_login: Option<String>,
    meter: Arc<dyn Meter>,
    clock: Arc<dyn Clock>,
    /// Connections that no answer uses; the last one was used last.
    idle: Mutex<VecDeque<(Connection, Monotonic)>>,
    idle_max: usize,
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

    /// Sends a request and reads the whole answer, at most `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no success, also after the tries that are allowed.
    pub async fn ask(self: &Arc<Self>, ask: Ask<'_>, bytes_max: usize) -> Result<Answer, Failure> {
        let mut number = 1;
        loop {
            let answer = async {
                let Opened { status, mut body, .. } = self.open_once(&ask).await?;
                let mut whole = Vec::new();
                while let Some(piece) = body.piece().await? {
                    if whole.len() + piece.len() > bytes_max {
                        return Err(ConnectionError::TooLong(bytes_max).into());
                    }
                    whole.extend_from_slice(&piece);
                }
                Ok(Answer { status, body: whole })
            };
            match answer.await {
                Ok(answer) => return Ok(answer),
                Err(failure) => self.wait(failure, &mut number).await?,
            }
        }
    }

    /// Sends a request and reads the beginning of the answer, whose body is taken in pieces.
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no success, also after the tries that are allowed.
    pub async fn open(self: &Arc<Self>, ask: Ask<'_>) -> Result<Opened, Failure> {
        let mut number = 1;
        loop {
            match self.open_once(&ask).await {
                Ok(opened) => return Ok(opened),
                Err(failure) => self.wait(failure, &mut number).await?,
            }
        }
    }

    /// Waits for the next try, and counts it; the failure if there is none.
    async fn wait(&self, failure: Failure, number: &mut u32) -> Result<(), Failure> {
        let retry = &self.service.retry;
        let wanted = match &failure {
            Failure::Refused(refused) => refused.pause,
            _ => None,
        };
        if *number >= retry.attempts || !failure.may_pass() {
            return Err(failure);
        }
        tracing::debug!(error = %failure, tries = *number, "a request failed; trying again");
        tokio::time::sleep(retry.pause(*number, wanted)).await;
        *number += 1;
        Ok(())
    }

    /// One try; two if the first one's token is refused.
    async fn open_once(self: &Arc<Self>, ask: &Ask<'_>) -> Result<Opened, Failure> {
        let mut is_second = false;
        loop {
            let token = self.service.tokens.get(&self.clock).await?;
            let StreamedAnswer { status, headers, body } = self.send(ask, token.as_ref()).await?;
            if (200..300).contains(&status) {
                let body = Body { client: Arc::clone(self), pieces: Some(body) };
                return Ok(Opened { status, headers, body });
            }
            let mut answer = Vec::new();
            let timeout = self.service.timeout;
            if let Some(connection) = body.refusal(&mut answer, REFUSAL_BYTES_MAX, timeout).await? {
                self.keep(connection);
            }
            self.meter.received(answer.len() as u64);
            let refused = Refused::read(status, &headers, &answer);
            let Some(token) = token.filter(|_| refused.is_about_credentials()) else {
                return Err(Failure::Refused(Box::new(refused)));
            };
            self.service.tokens.forget(&token).await;
            if is_second {
                return Err(Failure::Refused(Box::new(refused)));
            }
            is_second = true;
        }
    }

    /// Sends a request. One over a connection that the server closed while it was idle is sent again.
    async fn send(
        &self,
        ask: &Ask<'_>,
        token: Option<&HeaderValue>,
    ) -> Result<StreamedAnswer, Failure> {
        let uri = self.uri(ask)?;
        let headers = self.headers(ask, token)?;
        let timeout = self.service.timeout;
        loop {
            let connection = self.connect().await?;
            let was_used = connection.is_used();
            let body = Pieces::new(&[]);
            let sent =
                connection.send_streamed(Method::GET, uri.clone(), headers.clone(), body, timeout);
            match sent.await {
                Ok(answer) => return Ok(answer),
                Err(ConnectionError::Broken(_)) if was_used => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn uri(&self, ask: &Ask<'_>) -> Result<Uri, Failure> {
        let mut text = format!("{}{}{}", self.before, self.service.url.path, ask.path);
        for (number, (name, value)) in ask.query.iter().enumerate() {
            text.push(if number == 0 { '?' } else { '&' });
            text.push_str(name);
            text.push('=');
            skidder_net::encode_percent(&mut text, value);
        }
        text.parse().map_err(|error| Failure::Request(format!("{error}")))
    }

    fn headers(&self, ask: &Ask<'_>, token: Option<&HeaderValue>) -> Result<HeaderMap, Failure> {
        let wrong = |name: &str| Failure::Request(format!("header `{name}` cannot be sent"));
        let url = &self.service.url;
        let is_usual = url.port == crate::source::usual_port(url.https);
        let authority = url.authority();
        let host = if is_usual {
            authority.rsplit_once(':').map_or(&*authority, |(name, _)| name)
        } else {
            &authority
        };
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).map_err(|_| wrong("host"))?);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        if let Some(login) = &self.proxy_login {
            let login = secret_header(login).ok_or_else(|| wrong("proxy-authorization"))?;
            headers.insert(PROXY_AUTHORIZATION, login);
        }
        for (name, value) in ask.headers {
            let value = HeaderValue::from_str(value).map_err(|_| wrong(name))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(headers)
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
            None => Connection::open(&self.route, None, self.service.timeout).await,
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

impl Body {
    /// The next piece, for which it waits the service's `timeout` at most; `None` at the end. Loses nothing if it is
    /// cancelled.
    ///
    /// # Errors
    ///
    /// The connection broke, or nothing came in time. Everything behind is missing, and further calls fail too.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(pieces) = &mut self.pieces else { return Ok(None) };
        let piece = pieces.piece(PIECE_BYTES, self.client.service.timeout).await?;
        match &piece {
            Some(piece) => self.client.meter.received(piece.len() as u64),
            None => {
                let connection = self.pieces.take().and_then(AnswerPieces::into_connection);
                if let Some(connection) = connection {
                    self.client.keep(connection);
                }
            }
        }
        Ok(piece)
    }
}

#[cfg(test)]
mod tests;
