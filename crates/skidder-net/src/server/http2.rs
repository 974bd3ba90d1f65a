//! HTTP/2 of a server over one connection, with limits: with prior knowledge, or negotiated by TLS.

use super::http::{HttpEnd, drive};
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http2;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::watch;

/// Bytes of a frame.
const FRAME_BYTES_MAX: u32 = 16 << 10;

/// Bytes of a request that may wait to be read.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// Bytes of all requests of a connection that may wait to be read.
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// Requests of a connection at once; a client keeps further ones.
const STREAMS_MAX: u32 = 100;

/// Requests that a client has cancelled and the server has not seen yet: more is an attack.
const CANCELLED_MAX: usize = 20;

/// Errors of a client that the server answers by cancelling a request: more is an attack.
const ERRORS_MAX: usize = 100;

/// Bytes of answers of a connection that wait for a client that does not read.
const SEND_BUFFER_BYTES_MAX: usize = 256 << 10;

/// A client is asked so often whether it is there.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// It answers within this time.
const PING_TIMEOUT: Duration = Duration::from_secs(30);

/// For the last answers on the wire, and the farewell of the client, after an end was announced.
const FAREWELL_MAX: Duration = Duration::from_secs(10);

/// Counts the requests of a connection that have no answer yet.
struct Counting<S> {
    service: S,
    open: watch::Sender<usize>,
}

/// One of them.
struct Open(watch::Sender<usize>);

impl Open {
    fn new(open: &watch::Sender<usize>) -> Self {
        open.send_modify(|count| *count += 1);
        Self(open.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl<S> Service<Request<Incoming>> for Counting<S>
where
    S: Service<Request<Incoming>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let open = Open::new(&self.open);
        let answering = self.service.call(request);
        Box::pin(async move {
            let answer = answering.await;
            drop(open);
            answer
        })
    }
}

/// Resolves when no request was open for this time.
async fn idle(mut open: watch::Receiver<usize>, time: Duration) {
    loop {
        // The sender lives as long as the connection.
        if open.wait_for(|count| *count == 0).await.is_err() {
            return std::future::pending().await;
        }
        if tokio::time::timeout(time, open.changed()).await.is_err() {
            return;
        }
    }
}

/// Answers the requests of one connection, many at once, until the client closes it, no request was open for
/// `idle_timeout`, or `stop` ends. Then the client is asked to send no further ones, and those that are open are
/// answered. The connection is closed at once when `abandon` ends.
pub(super) async fn serve<S, B>(
    stream: impl crate::Stream + 'static,
    service: S,
    (idle_timeout, head_bytes_max): (Duration, usize),
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
    let (open, opened) = watch::channel(0);
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(head_bytes_max).unwrap_or(u32::MAX))
        .max_send_buf_size(SEND_BUFFER_BYTES_MAX)
        .max_pending_accept_reset_streams(CANCELLED_MAX)
        .max_local_error_reset_streams(ERRORS_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .serve_connection(TokioIo::new(stream), Counting { service, open });
    let over = async {
        tokio::select! {
            () = idle(opened.clone(), idle_timeout) => {}
            () = stop => {}
        }
    };
    let farewell = || idle(opened.clone(), FAREWELL_MAX.min(idle_timeout));
    drive(connection, http2::Connection::graceful_shutdown, over, abandon, farewell).await
}
