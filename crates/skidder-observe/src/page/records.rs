//! The body of an answer whose records come one by one.
//!
//! `http_body_util::channel::Channel` is not used: it takes a sender that is gone for the end although records may
//! still be in its queue (it looks at the queue, then at the sender, and a last record between the two is lost).

use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Records in the order in which they were sent; it ends when the sender is dropped and all of them are out.
#[derive(Debug)]
pub(crate) struct Records(Receiver<Bytes>);

impl Records {
    /// A body, and where its records are sent. At most `waiting` of them wait for the client.
    pub(crate) fn new(waiting: usize) -> (Sender<Bytes>, Self) {
        let (sender, receiver) = mpsc::channel(waiting);
        (sender, Self(receiver))
    }
}

impl Body for Records {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|record| record.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    #[tokio::test]
    async fn the_last_record_comes_also_if_the_sender_is_dropped_at_once() {
        let (give, taken) = std::sync::mpsc::channel::<Sender<Bytes>>();
        let thread = std::thread::spawn(move || {
            for sender in taken {
                sender.blocking_send(Bytes::from_static(b"the last")).expect("the body is there");
            }
        });
        for round in 0..50_000 {
            let (sender, body) = Records::new(16);
            give.send(sender).expect("the thread runs");
            let all = body.collect().await.expect("no error").to_bytes();
            assert_eq!(&all[..], b"the last", "round {round}");
        }
        drop(give);
        thread.join().expect("no panic");
    }
}
