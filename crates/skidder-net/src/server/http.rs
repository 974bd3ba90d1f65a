//! HTTP of a server over one connection, with limits: HTTP/1.1, or HTTP/2 for clients that begin with it.

use super::http2;
use super::preface::{Version, version};
use crate::connection::{ConnectionError, read_piece};
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{HttpService, Service};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::error::Error;
use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

/// Limits of a connection.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// For the request line and the headers, and for the wait between two requests.
    pub head_timeout: Duration,
    /// Length of the request line and the headers; more is answered with 431 or 414. At least 8192.
    pub head_bytes_max: usize,
    /// Life of a connection, so that a client that does not read gives its place back; a client that wants more connects
    /// again. Answers in progress get the rest of `grace`.
    pub connection_time_max: Option<Duration>,
}

/// How a connection ended.
#[derive(Debug)]
pub enum HttpEnd {
    /// After a complete answer.
    Closed,
    /// The client left, or did not speak HTTP.
    Broken(hyper::Error),
    /// `abandon` came.
    Abandoned,
    /// An answer was not read within the grace.
    Late,
    /// The client sent nothing in time.
    Silent,
    /// The client began a handshake of TLS, which is not spoken here.
    Tls,
}

/// Whether a connection broke because of what the client sent: no HTTP, or none that follows its rules.
pub fn is_wrong_http(error: &hyper::Error) -> bool {
    let in_http2 = error.source().and_then(|source| source.downcast_ref::<h2::Error>());
    error.is_parse() || in_http2.is_some_and(|error| error.is_library() && !error.is_io())
}

/// Answers the requests of one connection with `service`, until the client closes it, its time is over, or `stop` ends.
/// Then an answer in progress is completed, for as long as the future that `grace` returns. The connection is closed at
/// once when `abandon` ends.
pub async fn serve_http<S, G>(
    stream: impl crate::Stream + 'static,
    service: S,
    limits: HttpLimits,
    stop: impl Future<Output = ()>,
    abandon: impl Future<Output = ()>,
    grace: impl FnOnce() -> G,
) -> HttpEnd
where
    S: HttpService<Incoming>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::ResBody: Body + 'static,
    <S::ResBody as Body>::Error: Into<Box<dyn Error + Send + Sync>>,
    G: Future<Output = ()>,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(limits.head_bytes_max)
        .serve_connection(TokioIo::new(stream), service);
    let over = async {
        let time_is_over = async {
            match limits.connection_time_max {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time_is_over => {}
            () = stop => {}
        }
    };
    drive(connection, http1::Connection::graceful_shutdown, over, abandon, grace).await
}

/// Drives a connection until the client closes it, or `over` ends: then it is shut down, for as long as the future that `grace`
/// returns. It is closed at once when `abandon` ends.
pub(super) async fn drive<C, G>(
    connection: C,
    shut_down: impl FnOnce(Pin<&mut C>),
    over: impl Future<Output = ()>,
    abandon: impl Future<Output = ()>,
    grace: impl FnOnce() -> G,
) -> HttpEnd
where
    C: Future<Output = Result<(), hyper::Error>>,
    G: Future<Output = ()>,
{
    let mut connection = pin!(connection);
    let mut abandon = pin!(abandon);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = abandon.as_mut() => return HttpEnd::Abandoned,
        () = over => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            shut_down(connection.as_mut());
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = abandon => return HttpEnd::Abandoned,
                () = grace() => return HttpEnd::Late,
            }
        }
    };
    match ended {
        Ok(()) => HttpEnd::Closed,
        Err(error) => HttpEnd::Broken(error),
    }
}

/// As [`serve_http`] without a grace, also for clients that speak HTTP/2, whose requests are answered at the same time.
/// Over HTTP/2, `head_timeout` is the time without any request after which the connection is closed, and
/// `connection_time_max` has no effect.
pub async fn serve_http_any<S, B>(
    stream: impl crate::Stream + 'static,
    service: S,
    limits: HttpLimits,
    stop: impl Future<Output = ()>,
    abandon: impl Future<Output = ()>,
) -> HttpEnd
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>> + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (mut stop, mut abandon) = (pin!(stop), pin!(abandon));
    let version = tokio::select! {
        version = version(stream, limits.head_timeout) => version,
        () = abandon.as_mut() => return HttpEnd::Abandoned,
        () = stop.as_mut() => return HttpEnd::Closed,
    };
    match version {
        None => HttpEnd::Silent,
        Some((Version::Tls, _)) => HttpEnd::Tls,
        Some((Version::Http1, stream)) => {
            serve_http(stream, service, limits, stop, abandon, std::future::pending::<()>).await
        }
        Some((Version::Http2, stream)) => {
            let bounds = (limits.head_timeout, limits.head_bytes_max);
            http2::serve(stream, service, bounds, stop, abandon).await
        }
    }
}

/// Why a request's body was not read.
#[derive(Debug, thiserror::Error)]
pub enum RequestBodyError {
    /// It is longer than is allowed: answer 413.
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    /// It did not arrive in time: answer 408.
    #[error("the body did not arrive within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// The connection ended.
    #[error("{0}")]
    Broken(ConnectionError),
}

/// Reads the whole body of a request, at most `bytes_max` bytes, within `timeout`. A longer declared length is
/// refused before the body is read.
///
/// # Errors
///
/// The body is too long, late, or incomplete.
pub async fn read_request_body(
    request: Request<Incoming>,
    bytes_max: usize,
    timeout: Duration,
) -> Result<Vec<u8>, RequestBodyError> {
    let mut body = request.into_body();
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(RequestBodyError::TooLong(bytes_max));
    }
    let reading = async {
        let mut bytes = Vec::new();
        while read_piece(&mut body, &mut bytes, bytes_max).await? {}
        Ok(bytes)
    };
    match tokio::time::timeout(timeout, reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(ConnectionError::TooLong(most))) => Err(RequestBodyError::TooLong(most)),
        Ok(Err(error)) => Err(RequestBodyError::Broken(error)),
        Err(_) => Err(RequestBodyError::Late(timeout)),
    }
}
