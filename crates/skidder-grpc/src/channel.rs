//! One connection of HTTP/2, and single calls over it.

use crate::body::RequestBody;
use crate::frames::{FrameError, framed};
use crate::status::{Code, Status};
use crate::stream::{Answers, Requests};
use http::header::{CONTENT_TYPE, TE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use skidder_net::{AGENT, ConnectionError, Redactor, Route, Stream, within};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Largest message of a server that is read. One of Pub/Sub has up to 10 MiB, and Google's clients read 20.
pub(crate) const MESSAGE_BYTES_MAX: usize = 20 << 20;
/// Messages of a stream that wait for the connection.
const WAITING_MAX: usize = 16;
/// How long nothing may come before the server is asked for a sign of life. Servers may close a connection over which that
/// comes more often than every five minutes
/// (<https://github.com/grpc/proposal/blob/master/A8-client-side-keepalive.md>).
const ALIVE_EVERY: Duration = Duration::from_secs(5 * 60 + 5);
/// How long that may take.
const ALIVE_WITHIN: Duration = Duration::from_secs(20);
/// The number in `grpc-timeout` has at most eight digits.
const TIMEOUT_MAX: u128 = 99_999_999;
/// Bytes of a server's text that a message shows.
pub(crate) const SHOWN_BYTES_MAX: usize = 512;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The connection is gone, or was none: open another one.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The server refused the call, or ended it; the connection can be used again.
    #[error("the server answered {0}")]
    Status(Status),
    /// What answered speaks no gRPC: a proxy, or another server.
    #[error("{}", foreign_text(*.status, .said))]
    Foreign {
        /// The status of HTTP.
        status: u16,
        /// The beginning of its text.
        said: String,
    },
    /// The answer makes no sense.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
    /// The request cannot be written: it is too long, or has characters that HTTP does not allow.
    #[error("the request cannot be written: {0}")]
    Request(String),
}

fn foreign_text(status: u16, said: &str) -> String {
    let between = if said.is_empty() { "" } else { ": " };
    format!(
        "the server answered {status} without a status of gRPC{between}{said}; is this a port for gRPC?"
    )
}

impl CallError {
    /// The code of a refusal.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Status(status) => Some(status.code),
            _ => None,
        }
    }

    /// Whether the connection can be used for other calls.
    pub fn keeps_connection(&self) -> bool {
        matches!(self, Self::Status(_) | Self::Request(_))
    }
}

impl From<FrameError> for CallError {
    fn from(error: FrameError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// The server, as requests name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Whether the connection is encrypted.
    pub https: bool,
    /// `name:port`.
    pub authority: String,
}

/// An open connection. Cloning returns another handle to the same, and dropping the last one closes it. Calls run beside
/// each other.
#[derive(Clone, Debug)]
pub struct Channel {
    sender: http2::SendRequest<RequestBody>,
    origin: Arc<Origin>,
    _driver: Arc<Driver>,
}

/// Moves bytes.
#[derive(Debug)]
struct Driver(tokio::task::JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Channel {
    /// Opens a connection within `timeout`. `route` must be one for HTTP/2.
    ///
    /// # Errors
    ///
    /// There is no connection.
    pub async fn open(
        route: &Route,
        origin: &Arc<Origin>,
        timeout: Duration,
    ) -> Result<Self, ConnectionError> {
        let stream = route.open(timeout).await?;
        within(timeout, Self::over(stream, origin)).await
    }

    /// gRPC over an open connection.
    ///
    /// # Errors
    ///
    /// The other side does not speak HTTP/2.
    pub async fn over(
        stream: Box<dyn Stream>,
        origin: &Arc<Origin>,
    ) -> Result<Self, ConnectionError> {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(ALIVE_EVERY)
            .keep_alive_timeout(ALIVE_WITHIN)
            .handshake::<_, RequestBody>(TokioIo::new(stream))
            .await
            .map_err(ConnectionError::Broken)?;
        let driver = tokio::spawn(async move {
            // The waiting calls fail with the same error.
            if let Err(error) = connection.await {
                tracing::trace!(%error, "a connection ended");
            }
        });
        Ok(Self { sender, origin: Arc::clone(origin), _driver: Arc::new(Driver(driver)) })
    }

    /// Whether a call can be sent over it.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    fn request(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: RequestBody,
    ) -> Result<Request<RequestBody>, CallError> {
        let Origin { https, authority } = &*self.origin;
        let scheme = if *https { "https" } else { "http" };
        let uri = format!("{scheme}://{authority}{path}").parse::<Uri>();
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.map_err(|error| CallError::Request(error.to_string()))?;
        let all = request.headers_mut();
        all.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        all.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        all.insert(TE, HeaderValue::from_static("trailers"));
        all.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        Ok(request)
    }

    /// Sends one message to a method (`/package.Service/Method`), and returns the one that it answers within `timeout`.
    ///
    /// # Errors
    ///
    /// There is no answer. Whether the server did what was asked is not known then, but for a status that says so.
    pub async fn call<A: Message + Default>(
        &self,
        path: &str,
        headers: &HeaderMap,
        message: &impl Message,
        timeout: Duration,
    ) -> Result<A, CallError> {
        let mut headers = headers.clone();
        let milliseconds = timeout.as_millis().min(TIMEOUT_MAX);
        let text = HeaderValue::try_from(format!("{milliseconds}m"));
        headers.insert(
            HeaderName::from_static("grpc-timeout"),
            text.map_err(|error| CallError::Request(error.to_string()))?,
        );
        let message = framed(message)
            .ok_or_else(|| CallError::Request("the message has more than 4 GiB".to_owned()))?;
        let request = self.request(path, &headers, RequestBody::One(Some(message)))?;
        let asking = async {
            let mut answers = self.start::<A>(request).await?;
            let first = answers.next().await?;
            let first = first.ok_or_else(|| CallError::Unreadable("it is empty".to_owned()))?;
            match answers.next().await? {
                None => Ok(first),
                Some(_) => Err(CallError::Unreadable("it has two messages".to_owned())),
            }
        };
        let late = || Err(CallError::Connection(ConnectionError::Timeout(timeout)));
        tokio::time::timeout(timeout, asking).await.unwrap_or_else(|_| late())
    }

    /// Begins a stream: messages go into the first half and come out of the second one, independently of each other.
    /// Dropping the first half says that no more will come, dropping the second one ends the call. There is no time limit.
    ///
    /// # Errors
    ///
    /// The connection is gone, or the request cannot be written. What the server says comes out of the second half.
    pub async fn stream<Q: Message, A: Message + Default>(
        &self,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<(Requests<Q>, Answers<A>), CallError> {
        let (sender, messages) = mpsc::channel(WAITING_MAX);
        let request = self.request(path, headers, RequestBody::Many(messages))?;
        let answers = self.start(request).await?;
        Ok((Requests::new(sender), answers))
    }

    /// Sends the head of a request.
    async fn start<A: Message + Default>(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Answers<A>, CallError> {
        let mut sender = self.sender.clone();
        let redactor = Redactor::of(request.headers());
        sender.ready().await.map_err(ConnectionError::Broken)?;
        let answer = sender.send_request(request);
        Ok(Answers::new(Box::pin(answer), redactor, self.clone()))
    }
}
