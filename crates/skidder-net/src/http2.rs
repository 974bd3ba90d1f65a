//! One connection of HTTP/2 to a server, for requests of gRPC: one at a time.
//!
//! <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>

use crate::connection::{ConnectionError, Pieces, within};
use crate::route::Stream;
use http::{HeaderMap, Method, Request, Uri};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::pin::Pin;
use std::time::Duration;

/// Largest answer that is read: a usual one has a few bytes.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// A complete answer.
#[derive(Debug, Default)]
pub struct Http2Answer {
    /// The status of HTTP.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Trailers, such as the status of gRPC; empty if there are none.
    pub trailers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

/// An open connection. Dropping it closes it.
#[derive(Debug)]
pub struct Http2 {
    sender: http2::SendRequest<Pieces>,
    driver: tokio::task::JoinHandle<()>,
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Http2 {
    /// HTTP/2 over an open connection.
    pub async fn over(stream: Box<dyn Stream>) -> Result<Self, ConnectionError> {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .handshake::<_, Pieces>(TokioIo::new(stream))
            .await
            .map_err(ConnectionError::Broken)?;
        let driver = tokio::spawn(async move {
            // The waiting request fails with the same error.
            if let Err(error) = connection.await {
                tracing::trace!(%error, "a connection ended");
            }
        });
        Ok(Self { sender, driver })
    }

    /// Whether a request can be sent over it.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends a request and reads the whole answer within `timeout`. After an error the connection must not be used
    /// again.
    pub async fn exchange(
        &mut self,
        uri: Uri,
        headers: HeaderMap,
        body: Pieces,
        timeout: Duration,
    ) -> Result<Http2Answer, ConnectionError> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        within(timeout, async {
            self.sender.ready().await.map_err(ConnectionError::Broken)?;
            let response =
                self.sender.send_request(request).await.map_err(ConnectionError::Broken)?;
            let (head, body) = response.into_parts();
            let mut answer = Http2Answer {
                status: head.status.as_u16(),
                headers: head.headers,
                ..Default::default()
            };
            read(body, &mut answer).await?;
            Ok(answer)
        })
        .await
    }
}

async fn read(mut body: Incoming, answer: &mut Http2Answer) -> Result<(), ConnectionError> {
    while let Some(frame) =
        std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
    {
        match frame.map_err(ConnectionError::Broken)?.into_data() {
            Ok(data) => {
                if answer.body.len() + data.len() > ANSWER_BYTES_MAX {
                    return Err(ConnectionError::TooLong(ANSWER_BYTES_MAX));
                }
                answer.body.extend_from_slice(&data);
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    answer.trailers = trailers;
                }
            }
        }
    }
    Ok(())
}
