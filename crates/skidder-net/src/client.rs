//! Single requests of HTTP/1.1 over TCP, TLS and unix sockets, one connection for each.
//!
//! Everything has an end: the connection, the head and the body of an answer within a time, the body within a number of
//! bytes. Redirects are not followed.

use crate::address::read_address;
use crate::connection::{Connection, ConnectionError, Pieces, read_body, read_piece};
use crate::headers::excerpt;
use crate::redact::Redactor;
use crate::route::{Host, Route, Stream, WithoutTls};
use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode, response};
use hyper::body::Incoming;
use skidder_tls::TlsClient;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;

/// Largest answer that is read, unless a client has a bound of its own. The documents of clouds have some KiB.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Bytes of an answer that a message shows.
const SHOWN_BYTES_MAX: usize = 512;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// There is no listener at the unix socket.
    #[error("cannot connect to `{path}`: {source}")]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no connection, or it broke.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The request has characters that HTTP does not allow.
    #[error("the request cannot be written: {0}")]
    Request(#[from] http::Error),
    /// No answer in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The status is none of 2xx.
    #[error("answered {status}: {body}")]
    Status {
        /// The status.
        status: StatusCode,
        /// The beginning of the body, printable, without secrets of the request.
        body: String,
    },
    /// The answer ended although more was expected.
    #[error("the answer ended before anything came")]
    Ended,
    /// The answer is not the JSON that was expected.
    #[error("the answer is no JSON that was expected: {0}")]
    Json(#[from] serde_json::Error),
}

/// Where a server listens.
#[derive(Clone, Debug)]
enum Target {
    Tcp(Route),
    Unix(PathBuf),
}

/// Sends requests to one server.
#[derive(Clone)]
pub struct HttpClient {
    target: Target,
    /// For the header `host`.
    host: String,
    /// The prefix of every path; no slash at its end.
    base: String,
    timeout: Duration,
    answer_bytes_max: usize,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("HttpClient").field("host", &self.host).finish_non_exhaustive()
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct HttpRequest<'a> {
    /// `GET`, `POST`, ….
    pub method: Method,
    /// Path and query.
    pub path: &'a str,
    /// Headers besides `host` and `user-agent`.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body; empty for none.
    pub body: &'a str,
}

impl<'a> HttpRequest<'a> {
    /// A `GET` of a path and query.
    pub fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, headers: &[], body: "" }
    }

    /// A `POST` of a body.
    pub fn post(path: &'a str, body: &'a str) -> Self {
        Self { method: Method::POST, path, headers: &[], body }
    }

    /// A `PUT` of a body.
    pub fn put(path: &'a str, body: &'a str) -> Self {
        Self { method: Method::PUT, path, headers: &[], body }
    }

    /// The same request with these headers.
    #[must_use]
    pub fn headers(self, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { headers, ..self }
    }
}

/// An answer whose body arrives bit by bit. Dropping it closes the connection.
#[derive(Debug)]
pub struct AnswerStream {
    body: Incoming,
    /// Bytes received after the last returned line.
    rest: Vec<u8>,
    bytes_max: usize,
    _connection: Connection,
}

impl HttpClient {
    /// A client of `http://host:port/base`, `https://…`, `tcp://host:port` (HTTP, over TLS if `tls` is given) or
    /// `unix:///path/of/a.sock`. `timeout` is that of each request.
    ///
    /// # Errors
    ///
    /// The error of the URL.
    pub fn parse(
        url: &str,
        tls: Option<Arc<TlsClient>>,
        timeout: Duration,
    ) -> Result<Self, String> {
        if let Some(path) = url.strip_prefix("unix://") {
            if !path.starts_with('/') {
                return Err("expected `unix:///path`".to_owned());
            }
            return Ok(Self::unix(Path::new(path), timeout));
        }
        let (scheme, rest) = url.split_once("://").ok_or("expected `http://host:port`")?;
        let (tls, usual) = match scheme {
            "http" => (None, 80),
            "tcp" => (tls, 2375),
            "https" => (Some(tls.ok_or("TLS is turned off (`ssl.enabled`)")?), 443),
            _ => return Err(format!("`{scheme}` is none of `http`, `https`, `tcp` and `unix`")),
        };
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let (name, port) = read_address(authority, usual)?;
        let route = Route {
            host: Host { name, port },
            proxy: None,
            tls,
            http2: false,
            without_tls: WithoutTls::Http,
        };
        let base = path.trim_end_matches('/').to_owned();
        Ok(Self::new(Target::Tcp(route), authority.to_owned(), base, timeout))
    }

    /// A client of a host, over TLS if `tls` is given.
    pub fn tcp(host: Host, tls: Option<Arc<TlsClient>>, timeout: Duration) -> Self {
        let authority = host.to_string();
        let route = Route { host, proxy: None, tls, http2: false, without_tls: WithoutTls::Http };
        Self::new(Target::Tcp(route), authority, String::new(), timeout)
    }

    /// A client of a unix socket.
    pub fn unix(path: &Path, timeout: Duration) -> Self {
        Self::new(Target::Unix(path.to_owned()), "localhost".to_owned(), String::new(), timeout)
    }

    fn new(target: Target, host: String, base: String, timeout: Duration) -> Self {
        Self { target, host, base, timeout, answer_bytes_max: ANSWER_BYTES_MAX }
    }

    /// The same client, which reads answers up to this length.
    #[must_use]
    pub fn answer_bytes_max(self, answer_bytes_max: usize) -> Self {
        Self { answer_bytes_max, ..self }
    }

    /// Sends a request and reads the whole answer within the time-out, whatever its status.
    ///
    /// # Errors
    ///
    /// There is no complete answer.
    pub async fn answer(
        &self,
        request: HttpRequest<'_>,
    ) -> Result<(StatusCode, Vec<u8>), HttpError> {
        let (head, body) = self.whole(request).await?;
        Ok((head.status, body))
    }

    async fn whole(
        &self,
        request: HttpRequest<'_>,
    ) -> Result<(response::Parts, Vec<u8>), HttpError> {
        self.within(async {
            let request = self.request(request)?;
            let mut body = Vec::new();
            let mut connection = self.connect().await?;
            let head = connection.exchange(request, &mut body, self.answer_bytes_max).await?;
            Ok((head, body))
        })
        .await
    }

    /// Sends a request and reads the whole answer within the time-out.
    ///
    /// # Errors
    ///
    /// There is no complete answer, or its status is none of 2xx.
    pub async fn ask(&self, request: HttpRequest<'_>) -> Result<Vec<u8>, HttpError> {
        let (status, body) = self.answer(request).await?;
        if status.is_success() { Ok(body) } else { Err(refused(status, &body)) }
    }

    /// Requests JSON.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::ask`], or the answer is not in JSON.
    pub async fn json(&self, request: HttpRequest<'_>) -> Result<serde_json::Value, HttpError> {
        Ok(serde_json::from_slice(&self.ask(request).await?)?)
    }

    /// Requests JSON, and returns the value of a header of the answer with it, if there is one.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::json`].
    pub async fn json_with_header(
        &self,
        request: HttpRequest<'_>,
        name: &str,
    ) -> Result<(serde_json::Value, Option<String>), HttpError> {
        let (head, body) = self.whole(request).await?;
        if !head.status.is_success() {
            return Err(refused(head.status, &body));
        }
        let value = head.headers.get(name).and_then(|value| value.to_str().ok());
        Ok((serde_json::from_slice(&body)?, value.map(str::to_owned)))
    }

    /// Sends a request and reads the head of the answer within the time-out; the body is read from the result.
    ///
    /// # Errors
    ///
    /// There is no answer, or its status is none of 2xx.
    pub async fn open(&self, request: HttpRequest<'_>) -> Result<AnswerStream, HttpError> {
        self.within(async {
            let request = self.request(request)?;
            let redactor = Redactor::of(request.headers());
            let mut connection = self.connect().await?;
            let (head, body) = connection.start(request).await?.into_parts();
            let bytes_max = self.answer_bytes_max;
            if head.status.is_success() {
                let rest = Vec::new();
                return Ok(AnswerStream { body, rest, bytes_max, _connection: connection });
            }
            let mut answer = Vec::new();
            read_body(body, &mut answer, bytes_max).await?;
            redactor.hide(&mut answer);
            Err(refused(head.status, &answer))
        })
        .await
    }

    fn request(&self, request: HttpRequest<'_>) -> Result<Request<Pieces>, HttpError> {
        let body = Bytes::copy_from_slice(request.body.as_bytes());
        let mut built = Request::builder()
            .method(request.method)
            .uri(format!("{}{}", self.base, request.path))
            .header(HOST, &self.host)
            .header(USER_AGENT, "skidder");
        for (name, value) in request.headers {
            let mut value = HeaderValue::try_from(*value).map_err(http::Error::from)?;
            value.set_sensitive(is_secret(name));
            built = built.header(*name, value);
        }
        Ok(built.body(Pieces::new(&[body]))?)
    }

    async fn connect(&self) -> Result<Connection, HttpError> {
        let stream: Box<dyn Stream> = match &self.target {
            Target::Tcp(route) => route.open(self.timeout).await.map_err(ConnectionError::from)?,
            Target::Unix(path) => {
                let failed = |source| HttpError::Socket { path: path.clone(), source };
                Box::new(UnixStream::connect(path).await.map_err(failed)?)
            }
        };
        Ok(Connection::over(stream, None).await?)
    }

    /// Runs `work` for at most the time-out.
    async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, HttpError>>,
    ) -> Result<T, HttpError> {
        let late = || Err(HttpError::Timeout(self.timeout));
        tokio::time::timeout(self.timeout, work).await.unwrap_or_else(|_| late())
    }

    /// The value of `host`: the name, with the port if the URL has one.
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// Whether a header of a request is a credential: `authorization`, and tokens such as `x-nomad-token`.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == AUTHORIZATION.as_str() || name.ends_with("-token")
}

fn refused(status: StatusCode, body: &[u8]) -> HttpError {
    HttpError::Status { status, body: excerpt(body, SHOWN_BYTES_MAX) }
}

impl AnswerStream {
    /// Appends the next bytes of the body; returns `false` at its end. Loses nothing if it is cancelled.
    ///
    /// # Errors
    ///
    /// The connection broke, or there would be more bytes than the client reads.
    pub async fn piece(&mut self, into: &mut Vec<u8>) -> Result<bool, HttpError> {
        if self.rest.is_empty() {
            return Ok(read_piece(&mut self.body, into, self.bytes_max).await?);
        }
        into.append(&mut self.rest);
        Ok(true)
    }

    /// The next line, without its end; `None` at the end of the body.
    ///
    /// # Errors
    ///
    /// The connection broke, or the line is too long.
    pub async fn line(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        let mut looked = 0;
        loop {
            if let Some(end) = self.rest[looked..].iter().position(|byte| *byte == b'\n') {
                let behind = self.rest.split_off(looked + end + 1);
                let mut line = std::mem::replace(&mut self.rest, behind);
                line.pop();
                return Ok(Some(line));
            }
            looked = self.rest.len();
            if !read_piece(&mut self.body, &mut self.rest, self.bytes_max).await? {
                let last = std::mem::take(&mut self.rest);
                return Ok((!last.is_empty()).then_some(last));
            }
        }
    }
}

#[cfg(test)]
mod tests;
