//! The body of a request: one message, or messages as they come.

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// See the module's text. Messages have their frames.
#[derive(Debug)]
pub(crate) enum RequestBody {
    /// One message; nothing when it was taken.
    One(Option<Bytes>),
    /// Until the sender is dropped.
    Many(mpsc::Receiver<Bytes>),
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::One(message) => Poll::Ready(message.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Many(messages) => {
                messages.poll_recv(context).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::One(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::One(message) => {
                SizeHint::with_exact(message.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Many(_) => SizeHint::default(),
        }
    }
}
