//! One worker's way to the bucket: connects, signs, sends.

use super::answer::Refused;
use super::config::Config;
use super::credentials::Provider;
use super::object::Object;
use super::target::Target;
use bytes::Bytes;
use http::header::{AUTHORIZATION, ETAG, PROXY_AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use skidder_aws::{EMPTY_DIGEST, Request, Scope, authorization, time_text};
use skidder_net::{AGENT, ANSWER_KEPT_BYTES_MAX, Connection, ConnectionError, Pieces, Route};
use skidder_os::{Clock, Monotonic};
use skidder_pipeline::OutputMetrics;
use std::sync::Arc;
use std::time::Duration;

/// A connection that was idle for longer is not used again: servers close it about then.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// The checksum of an object, which older servers do not repeat.
const CHECKSUM: &str = "x-amz-checksum-crc32";
/// The service that requests are signed for.
const SERVICE: &str = "s3";

/// Why a request was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Credentials(#[from] super::credentials::CredentialsError),
    #[error("{0}")]
    Refused(Box<Refused>),
    #[error("a header of the request cannot be sent: `{0}`")]
    Header(&'static str),
    #[error(
        "the server answered {status}, but not as S3 does: {what}; is there a proxy or a portal before the bucket that \
         answers for it?"
    )]
    NotS3 { status: u16, what: &'static str },
}

/// A request to the bucket.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    /// Of an object; nothing for the bucket itself.
    pub(crate) key: Option<&'a str>,
    /// Names in lower case.
    pub(crate) headers: Vec<(&'static str, &'a str)>,
    pub(crate) body: &'a [Bytes],
    /// SHA-256 of the body.
    pub(crate) digest: &'a str,
}

impl<'a> Ask<'a> {
    /// Without a body.
    pub(crate) fn empty(method: Method, key: Option<&'a str>) -> Self {
        Self { method, key, headers: Vec::new(), body: &[], digest: EMPTY_DIGEST }
    }
}

/// See the module's text.
pub(crate) struct Client {
    pub(crate) config: Arc<Config>,
    pub(crate) target: Arc<Target>,
    pub(crate) route: Route,
    pub(crate) provider: Arc<Provider>,
    pub(crate) metrics: Arc<OutputMetrics>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) connection: Option<Connection>,
    pub(crate) last_used: Monotonic,
    pub(crate) answer: Vec<u8>,
}

impl Client {
    /// Puts an object. That is done when the server has checked its digest and said so.
    pub(crate) async fn put(&mut self, object: &Object) -> Result<(), Failure> {
        let config = Arc::clone(&self.config);
        let mut headers: Vec<(&'static str, &str)> =
            config.headers.iter().map(|(name, value)| (*name, &**value)).collect();
        headers.push(("content-type", config.content_type()));
        headers.push((CHECKSUM, &object.checksum));
        let ask = Ask {
            method: Method::PUT,
            key: Some(&object.key),
            headers,
            body: &object.body,
            digest: &object.digest,
        };
        let (status, headers) = self.ask(ask).await?;
        match flaw(status, &headers, &self.answer, &object.checksum) {
            None => Ok(()),
            Some(what) => Err(Failure::NotS3 { status, what }),
        }
    }

    /// Sends a request; returns status and headers of a good answer. Its body is in `answer`.
    pub(crate) async fn ask(&mut self, ask: Ask<'_>) -> Result<(u16, HeaderMap), Failure> {
        let started = self.clock.monotonic();
        if self
            .connection
            .as_ref()
            .is_some_and(|open| !open.is_open() || started.since(self.last_used) > IDLE_MAX)
        {
            self.connection = None;
        }
        let bytes: u64 = ask.body.iter().map(|piece| piece.len() as u64).sum();
        loop {
            let path = self.target.path(ask.key);
            let headers = self.sign(&ask, &path).await?;
            let timeout = self.config.timeout;
            let mut connection = match self.connection.take() {
                Some(connection) => connection,
                None => Connection::open(&self.route, None, timeout).await?,
            };
            let was_used = connection.is_used();
            let uri = self.target.uri(&path);
            let body = Pieces::new(ask.body);
            let result = connection
                .send(ask.method.clone(), uri, headers, body, &mut self.answer, timeout)
                .await;
            match result {
                Ok((status, headers)) => {
                    let now = self.clock.monotonic();
                    self.last_used = now;
                    self.connection = Some(connection);
                    self.metrics.write_bytes.add(bytes);
                    self.metrics.read_bytes.add(self.answer.len() as u64);
                    self.metrics.latency_ns.add(now.since(started).as_nanos() as u64);
                    self.answer.shrink_to(ANSWER_KEPT_BYTES_MAX);
                    if (200..300).contains(&status) {
                        return Ok((status, headers));
                    }
                    let bucket = &self.config.bucket;
                    let refused = Refused::read(status, &headers, &self.answer, bucket);
                    if refused.is_about_credentials() {
                        self.provider.forget().await;
                    }
                    return Err(Failure::Refused(Box::new(refused)));
                }
                // The server closed the connection while it was idle: no failure, but a new one. What it may have taken
                // is replaced by the same.
                Err(ConnectionError::Broken(_)) if was_used => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// All headers of a request.
    async fn sign(&self, ask: &Ask<'_>, path: &str) -> Result<HeaderMap, Failure> {
        let credentials = self.provider.get(&*self.clock).await?;
        let time = time_text(self.clock.wall());
        let mut signed: Vec<(&'static str, &str)> = ask.headers.clone();
        signed.push(("host", &self.target.authority));
        signed.push(("x-amz-content-sha256", ask.digest));
        signed.push(("x-amz-date", &time));
        if let Some(session) = &credentials.session {
            signed.push(("x-amz-security-token", session.reveal()));
        }
        signed.sort_unstable();
        let scope = Scope { time: &time, region: &self.config.region, service: SERVICE };
        let request = Request {
            method: ask.method.as_str(),
            path,
            query: "",
            headers: &signed,
            body: ask.digest,
        };
        let authorization = authorization(&credentials, scope, &request);
        let mut headers = HeaderMap::new();
        for (name, value) in signed {
            let value = HeaderValue::from_str(value).map_err(|_| Failure::Header(name))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        let secret = |name: &HeaderName, text: &str| {
            let value = HeaderValue::from_str(text);
            let mut value = value.map_err(|_| {
                Failure::Header(if *name == AUTHORIZATION {
                    "authorization"
                } else {
                    "proxy-authorization"
                })
            })?;
            value.set_sensitive(true);
            Ok::<_, Failure>(value)
        };
        headers.insert(AUTHORIZATION, secret(&AUTHORIZATION, &authorization)?);
        if let Some(login) = &self.target.proxy_login {
            headers.insert(PROXY_AUTHORIZATION, secret(&PROXY_AUTHORIZATION, login)?);
        }
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        Ok(headers)
    }
}

/// Why a good answer to an object does not prove that it is there. A captive portal answers 200 to everything.
fn flaw(status: u16, headers: &HeaderMap, body: &[u8], checksum: &str) -> Option<&'static str> {
    if status != 200 {
        return Some("it answers 200 to an object that it has");
    }
    if !headers.contains_key(ETAG) {
        return Some("there is no `etag`");
    }
    if !body.trim_ascii().is_empty() {
        return Some("there is a page behind the headers");
    }
    let theirs = headers.get(CHECKSUM).map(HeaderValue::as_bytes);
    if theirs.is_some_and(|theirs| theirs != checksum.as_bytes()) {
        return Some("`x-amz-checksum-crc32` is of another object");
    }
    None
}
