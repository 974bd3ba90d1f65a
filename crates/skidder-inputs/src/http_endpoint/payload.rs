//! The body of an answer, with the trailers that gRPC has behind it.

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Bytes, and trailers if there are any.
#[derive(Debug, Default)]
pub(super) struct Payload {
    bytes: Bytes,
    trailers: Option<Box<HeaderMap>>,
}

impl Payload {
    pub(super) fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), trailers: None }
    }

    pub(super) fn with_trailers(bytes: impl Into<Bytes>, trailers: HeaderMap) -> Self {
        Self { bytes: bytes.into(), trailers: Some(Box::new(trailers)) }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.bytes.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.bytes)))));
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(*trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
