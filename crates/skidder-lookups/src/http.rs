//! A small HTTP/1.1 client over TCP, TLS and unix sockets, one connection for each request.
//!
//! Everything has an end: connecting, the head and the body of an answer within a time, the body
//! within a number of bytes. Redirects are not followed.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// Largest answer that is read. The documents of clouds have some KiB.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("cannot connect to {host}: {source}")]
    Connect { host: String, source: io::Error },
    #[error("`{0}` is no name that a certificate can have")]
    Name(String),
    #[error("no TLS connection with {host}: {source}")]
    Tls { host: String, source: io::Error },
    #[error("the request cannot be written: {0}")]
    Request(#[from] http::Error),
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    #[error("the answer is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    #[error("answered {status}: {said}")]
    Status { status: StatusCode, said: String },
    #[error("the answer is no JSON that was expected: {0}")]
    Json(#[from] serde_json::Error),
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Tcp { name: String, port: u16 },
    Unix(PathBuf),
}

/// A server to ask.
#[derive(Clone)]
pub(crate) struct Server {
    address: Address,
    /// For the header `host`.
    host: String,
    /// In front of every path; no slash at its end.
    base: String,
    tls: Option<Arc<ClientConfig>>,
    timeout: Duration,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server").field("host", &self.host).finish_non_exhaustive()
    }
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a str,
}

impl<'a> Ask<'a> {
    pub(crate) fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, headers: &[], body: "" }
    }

    pub(crate) fn headers(self, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { headers, ..self }
    }
}

/// An answer whose body comes bit by bit. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) status: StatusCode,
    body: Incoming,
    /// What came behind the last line that was given out.
    rest: Vec<u8>,
    driver: JoinHandle<()>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl Server {
    /// From `http://host:port/base`, `https://…`, `tcp://host:port` (HTTP, over TLS if `tls` is given)
    /// or `unix:///path/of/a.sock`. The error says what is wrong with it.
    pub(crate) fn parse(
        url: &str,
        tls: Option<Arc<ClientConfig>>,
        timeout: Duration,
    ) -> Result<Self, String> {
        if let Some(path) = url.strip_prefix("unix://") {
            if !path.starts_with('/') {
                return Err("expected `unix:///path`".to_owned());
            }
            let address = Address::Unix(PathBuf::from(path));
            return Ok(Self {
                address,
                host: "localhost".to_owned(),
                base: String::new(),
                tls: None,
                timeout,
            });
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
        let (name, port) = split_port(authority)?;
        if name.is_empty() {
            return Err("it names no host".to_owned());
        }
        let address = Address::Tcp { name: name.to_owned(), port: port.unwrap_or(usual) };
        let base = path.trim_end_matches('/').to_owned();
        Ok(Self { address, host: authority.to_owned(), base, tls, timeout })
    }

    /// Asks and reads the whole answer, all within the time-out. A status other than 2xx is an error.
    pub(crate) async fn ask(&self, ask: Ask<'_>) -> Result<Vec<u8>, HttpError> {
        within(self.timeout, async {
            let mut stream = self.send(ask).await?;
            let body = stream.rest().await?;
            if stream.status.is_success() {
                return Ok(body);
            }
            let said = String::from_utf8_lossy(&body[..body.len().min(512)]).trim().to_owned();
            Err(HttpError::Status { status: stream.status, said })
        })
        .await
    }

    /// Asks for JSON.
    pub(crate) async fn json(&self, ask: Ask<'_>) -> Result<serde_json::Value, HttpError> {
        Ok(serde_json::from_slice(&self.ask(ask).await?)?)
    }

    /// Asks and reads the head of the answer within the time-out; the body comes bit by bit. A status other
    /// than 2xx is an error.
    pub(crate) async fn open(&self, ask: Ask<'_>) -> Result<Stream, HttpError> {
        within(self.timeout, async {
            let mut stream = self.send(ask).await?;
            if stream.status.is_success() {
                return Ok(stream);
            }
            let body = stream.rest().await?;
            let said = String::from_utf8_lossy(&body[..body.len().min(512)]).trim().to_owned();
            Err(HttpError::Status { status: stream.status, said })
        })
        .await
    }

    async fn send(&self, ask: Ask<'_>) -> Result<Stream, HttpError> {
        let io = TokioIo::new(self.connect().await?);
        let (mut sender, connection) = http1::handshake::<_, Full<Bytes>>(io).await?;
        let driver = tokio::spawn(async move {
            // Whoever waits for the answer is told the same error.
            if let Err(error) = connection.await {
                tracing::trace!(%error, "a connection ended");
            }
        });
        let mut request = Request::builder()
            .method(ask.method)
            .uri(format!("{}{}", self.base, ask.path))
            .header("host", &self.host)
            .header("user-agent", "skidder");
        for (name, value) in ask.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(ask.body.as_bytes())))?;
        let (head, body) = sender.send_request(request).await?.into_parts();
        Ok(Stream { status: head.status, body, rest: Vec::new(), driver })
    }

    async fn connect(&self) -> Result<Box<dyn Duplex>, HttpError> {
        let failed = |source| HttpError::Connect { host: self.shown(), source };
        let (name, port) = match &self.address {
            Address::Unix(path) => {
                return Ok(Box::new(UnixStream::connect(path).await.map_err(failed)?));
            }
            Address::Tcp { name, port } => (name.as_str(), *port),
        };
        let tcp = TcpStream::connect((name, port)).await.map_err(failed)?;
        tcp.set_nodelay(true).map_err(failed)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(tcp)) };
        let server = ServerName::try_from(name.to_owned());
        let server = server.map_err(|_| HttpError::Name(name.to_owned()))?;
        let encrypted = TlsConnector::from(Arc::clone(tls)).connect(server, tcp).await;
        let failed = |source| HttpError::Tls { host: self.shown(), source };
        Ok(Box::new(encrypted.map_err(failed)?))
    }

    /// Its name as it is asked for, with the port if that is not the usual one.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    fn shown(&self) -> String {
        match &self.address {
            Address::Unix(path) => format!("`{}`", path.display()),
            Address::Tcp { name, port } => format!("`{name}:{port}`"),
        }
    }
}

impl Stream {
    /// The next line, without its end; nothing at the end of the body.
    pub(crate) async fn line(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        let mut looked = 0;
        loop {
            if let Some(end) = self.rest[looked..].iter().position(|byte| *byte == b'\n') {
                let behind = self.rest.split_off(looked + end + 1);
                let mut line = std::mem::replace(&mut self.rest, behind);
                line.pop();
                return Ok(Some(line));
            }
            looked = self.rest.len();
            let Some(frame) = self.body.frame().await else {
                let last = std::mem::take(&mut self.rest);
                return Ok((!last.is_empty()).then_some(last));
            };
            if let Ok(data) = frame?.into_data() {
                if self.rest.len() + data.len() > ANSWER_BYTES_MAX {
                    return Err(HttpError::TooLong);
                }
                self.rest.extend_from_slice(&data);
            }
        }
    }

    async fn rest(&mut self) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(frame) = self.body.frame().await {
            if let Ok(data) = frame?.into_data() {
                if body.len() + data.len() > ANSWER_BYTES_MAX {
                    return Err(HttpError::TooLong);
                }
                body.extend_from_slice(&data);
            }
        }
        Ok(body)
    }
}

/// The host and the port of `host:port`, `[::1]:port` or `host`.
pub(crate) fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let (name, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or("`]` is missing")?,
        None => match authority.find(':') {
            Some(colon) => authority.split_at(colon),
            None => (authority, ""),
        },
    };
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok((name, None)),
        None => Err(format!("`{port}` is no port")),
        Some(port) => Ok((name, Some(port.parse().map_err(|_| format!("`{port}` is no port"))?))),
    }
}

async fn within<T>(
    timeout: Duration,
    work: impl Future<Output = Result<T, HttpError>>,
) -> Result<T, HttpError> {
    tokio::time::timeout(timeout, work).await.unwrap_or(Err(HttpError::Timeout(timeout)))
}

/// Text for a path or a query: everything but letters, digits and `-._~` as `%XX` (RFC 3986).
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(byte as char);
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_become_servers_or_say_what_is_wrong() {
        let parse = |url| Server::parse(url, None, Duration::from_secs(1));
        let tcp = |name: &str, port| Address::Tcp { name: name.to_owned(), port };
        for (url, address, base) in [
            ("http://a", tcp("a", 80), ""),
            ("http://a:8080/base/", tcp("a", 8080), "/base"),
            ("http://[::1]:4646", tcp("::1", 4646), ""),
            ("tcp://docker", tcp("docker", 2375), ""),
            ("unix:///run/a.sock", Address::Unix(PathBuf::from("/run/a.sock")), ""),
        ] {
            let server = parse(url).unwrap();
            assert_eq!((server.address, server.base.as_str()), (address, base), "{url}");
        }
        for (url, wrong) in [
            ("a:80", "expected `http://host:port`"),
            ("ftp://a", "`ftp` is none of"),
            ("http://a:b", "`b` is no port"),
            ("http://", "it names no host"),
            ("unix://a", "expected `unix:///path`"),
            ("https://a", "TLS is turned off"),
        ] {
            let error = parse(url).unwrap_err();
            assert!(error.contains(wrong), "{url}: {error}");
        }
    }

    #[test]
    fn whatever_has_a_meaning_in_an_address_is_escaped() {
        assert_eq!(escaped("a b/{\"c\":[\"ä\"]}"), "a%20b%2F%7B%22c%22%3A%5B%22%C3%A4%22%5D%7D");
    }
}
