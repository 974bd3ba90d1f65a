//! One keep-alive connection to a server: hyper over a TCP or TLS stream that we own.

use crate::login::Login;
use crate::redact::Redactor;
use crate::{NetError, Route, Stream};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, Request, Response, Uri, response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

/// Largest answer that is read. A bulk answer to 1600 refused events has about 1 MiB.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Largest buffer for answers that is kept for the next one.
pub const ANSWER_KEPT_BYTES_MAX: usize = 1 << 20;

/// Why there is no answer. After all of them the connection is gone.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// There is no connection.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The connection ended early.
    #[error("the connection broke: {}", chain(.0))]
    Broken(#[source] hyper::Error),
    /// No answer in time.
    #[error("nothing came within `timeout` ({} s)", .0.as_secs_f64())]
    Timeout(Duration),
    /// No login could be made for the request.
    #[error(transparent)]
    Login(#[from] skidder_kerberos::LoginError),
    /// The thread that makes logins ended.
    #[error("logging in ended early: {0}")]
    LoginEnded(String),
    /// The answer failed before, and so does everything behind that.
    #[error("the rest of the answer is lost")]
    Lost,
    /// The answer is longer than is read.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

/// An error of hyper with its cause.
fn chain(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

/// A request's body: complete, in pieces.
#[derive(Debug)]
pub struct Pieces {
    pieces: VecDeque<Bytes>,
    bytes_left: u64,
}

impl Pieces {
    /// A body of these pieces.
    pub fn new(pieces: &[Bytes]) -> Self {
        let pieces: VecDeque<Bytes> =
            pieces.iter().filter(|piece| !piece.is_empty()).cloned().collect();
        let bytes_left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { pieces, bytes_left }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.pieces.pop_front();
        if let Some(piece) = &next {
            self.bytes_left -= piece.len() as u64;
        }
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes_left)
    }
}

/// Bytes that a connection reads at once, and of the head of an answer, at most. An answer that is taken in pieces has two
/// or three such buffers in memory (by itself, hyper comes to 408 KiB each).
const READ_BYTES_MAX: usize = 64 << 10;

/// An open connection. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    sender: http1::SendRequest<Pieces>,
    driver: tokio::task::JoinHandle<()>,
    /// Makes a header for each request, if it needs one.
    login: Option<Login>,
    /// Whether it has answered before: then the server may have closed it while it was idle.
    used: bool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Opens a connection within `timeout`.
    pub async fn open(
        route: &Route,
        login: Option<Login>,
        timeout: Duration,
    ) -> Result<Self, ConnectionError> {
        let stream = route.open(timeout).await?;
        within(timeout, Self::over(stream, login)).await
    }

    /// HTTP over an open connection.
    pub async fn over(
        stream: Box<dyn Stream>,
        login: Option<Login>,
    ) -> Result<Self, ConnectionError> {
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(READ_BYTES_MAX)
            .handshake::<_, Pieces>(TokioIo::new(stream))
            .await
            .map_err(ConnectionError::Broken)?;
        let driver = tokio::spawn(async move {
            // The waiting request fails with the same error.
            if let Err(error) = connection.await {
                tracing::trace!(%error, "a connection ended");
            }
        });
        Ok(Self { sender, driver, login, used: false })
    }

    /// Whether it has answered before.
    pub fn is_used(&self) -> bool {
        self.used
    }

    /// Whether a request can be sent over it.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends a request and reads the whole answer into `answer` within `timeout`; returns its status and headers.
    /// Secrets of the request are masked in an answer that is no success, as only those are shown.
    /// After an error the connection must not be used again.
    pub async fn send(
        &mut self,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Pieces,
        answer: &mut Vec<u8>,
        timeout: Duration,
    ) -> Result<(u16, HeaderMap), ConnectionError> {
        let request = request_of(method, uri, headers, body);
        within(timeout, async {
            let head = self.exchange(request, answer, ANSWER_BYTES_MAX).await?;
            Ok((head.status.as_u16(), head.headers))
        })
        .await
    }

    /// As [`Connection::send`], without a time limit, and with a bound of its own for the answer.
    pub(crate) async fn exchange(
        &mut self,
        mut request: Request<Pieces>,
        answer: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<response::Parts, ConnectionError> {
        answer.clear();
        self.log_in(&mut request).await?;
        let redactor = Redactor::of(request.headers());
        let (head, body) = self.start(request).await?.into_parts();
        read_body(body, answer, bytes_max).await?;
        self.used = true;
        // Only the answer of a refusal is shown.
        if !head.status.is_success() {
            redactor.hide(answer);
        }
        Ok(head)
    }

    /// Sends a request and returns the head of the answer, with the body still to come. There is no time limit.
    pub(crate) async fn start(
        &mut self,
        request: Request<Pieces>,
    ) -> Result<Response<Incoming>, ConnectionError> {
        self.sender.ready().await.map_err(ConnectionError::Broken)?;
        self.sender.send_request(request).await.map_err(ConnectionError::Broken)
    }

    /// The same connection, which has answered.
    pub(crate) fn into_used(mut self) -> Self {
        self.used = true;
        self
    }

    pub(crate) async fn log_in(
        &self,
        request: &mut Request<Pieces>,
    ) -> Result<(), ConnectionError> {
        if let Some(login) = &self.login {
            request.headers_mut().insert(AUTHORIZATION, login.header().await?);
        }
        Ok(())
    }
}

pub(crate) fn request_of(
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Pieces,
) -> Request<Pieces> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request
}

/// Appends the next piece of a body; `false` at its end.
pub(crate) async fn read_piece(
    body: &mut Incoming,
    into: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<bool, ConnectionError> {
    let next = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
    let Some(frame) = next else { return Ok(false) };
    if let Ok(data) = frame.map_err(ConnectionError::Broken)?.into_data() {
        if into.len() + data.len() > bytes_max {
            return Err(ConnectionError::TooLong(bytes_max));
        }
        into.extend_from_slice(&data);
    }
    Ok(true)
}

pub(crate) async fn read_body(
    mut body: Incoming,
    into: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<(), ConnectionError> {
    while read_piece(&mut body, into, bytes_max).await? {}
    Ok(())
}

/// Runs `work` for at most `timeout`.
pub async fn within<T>(
    timeout: Duration,
    work: impl Future<Output = Result<T, ConnectionError>>,
) -> Result<T, ConnectionError> {
    tokio::time::timeout(timeout, work).await.unwrap_or(Err(ConnectionError::Timeout(timeout)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn credentials_that_a_server_repeats_in_a_refusal_do_not_come_back() {
        let (ours, mut theirs) = tokio::io::duplex(4096);
        let serving = async move {
            let mut request = vec![0; 4096];
            let length = theirs.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            assert!(request.contains("authorization: Basic dTpnZWhlaW0="), "{request}");
            let answer =
                format!("HTTP/1.1 401 Unauthorized\r\ncontent-length: {length}\r\n\r\n{request}");
            theirs.write_all(answer.as_bytes()).await.unwrap();
        };
        let asking = async {
            let mut connection = Connection::over(Box::new(ours), None).await.unwrap();
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static("Basic dTpnZWhlaW0="));
            let uri = Uri::from_static("/");
            let (body, mut answer) = (Pieces::new(&[]), Vec::new());
            let timeout = Duration::from_mins(1);
            let sent = connection.send(Method::GET, uri, headers, body, &mut answer, timeout).await;
            assert_eq!(sent.unwrap().0, 401);
            String::from_utf8(answer).unwrap()
        };
        let ((), answer) = tokio::join!(serving, asking);
        assert!(answer.contains("authorization: xxxx"), "{answer}");
        assert!(!answer.contains("dTpnZWhlaW0"), "{answer}");
    }
}
