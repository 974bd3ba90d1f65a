//! The bytes of an answer over a client that has one answer at a time.
//!
//! A task for each answer receives it, a piece ahead of the reader. The answer therefore does not borrow its client, and
//! dropping it closes the connection.

use crate::store::{Body, StoreError, StoreFuture};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

/// Bytes of a piece at most.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that have come and are not read yet.
const PIECES_MAX: usize = 1;

/// A request for bytes of an object, with the client that sends it.
pub trait Request: Send + 'static {
    /// What an answer says of the object.
    type Head: Send + 'static;

    /// Sends the request, once, and reads the beginning of the answer.
    fn get(&mut self) -> StoreFuture<'_, Got<'_, Self::Head>>;

    /// The answer was taken, or nobody wants the rest: the client is free for another request.
    fn end(self);
}

/// The beginning of an answer.
pub struct Got<'a, H> {
    /// What it says of the object.
    pub head: H,
    /// Bytes of the content.
    pub left: u64,
    /// The content, or the part of it that was asked for.
    pub content: Box<dyn Content + 'a>,
}

/// The content of an answer, which borrows its client. Dropping it before its end closes the connection.
pub trait Content: Send {
    /// The next piece, of 1 to `bytes_max` bytes; nothing at the end. An answer that ends before is
    /// [`StoreError::Passing`].
    fn piece(&mut self, bytes_max: usize) -> StoreFuture<'_, Option<Bytes>>;
}

/// The content of an answer, as the task gives it.
#[derive(Debug)]
pub struct Pieces {
    received: mpsc::Receiver<Result<Bytes, StoreError>>,
    /// Bytes to come.
    left: u64,
}

/// Sends a request, and returns the beginning of the answer. A task takes the rest.
///
/// # Errors
///
/// Those of [`Request::get`].
pub async fn take<R: Request>(request: R) -> Result<(R::Head, Pieces), StoreError> {
    let (send_head, head) = oneshot::channel();
    let (send, received) = mpsc::channel(PIECES_MAX);
    tokio::spawn(run(request, send_head, send).in_current_span());
    let (head, left) = head.await.map_err(|_| ended())??;
    Ok((head, Pieces { received, left }))
}

fn ended() -> StoreError {
    StoreError::Passing("the task that takes the object has ended".to_owned())
}

/// The beginning of an answer, and how many bytes come.
type Head<H> = Result<(H, u64), StoreError>;

/// What the task does.
async fn run<R: Request>(
    mut request: R,
    send_head: oneshot::Sender<Head<R::Head>>,
    send: mpsc::Sender<Result<Bytes, StoreError>>,
) {
    // The reader sees the end of the answer when the client is free.
    if answer(&mut request, send_head, &send).await {
        request.end();
    }
}

/// Returns whether the client is free for another request.
async fn answer<R: Request>(
    request: &mut R,
    mut send_head: oneshot::Sender<Head<R::Head>>,
    send: &mpsc::Sender<Result<Bytes, StoreError>>,
) -> bool {
    let got = tokio::select! {
        got = request.get() => got,
        // Nobody waits for it any more.
        () = send_head.closed() => return false,
    };
    match got {
        Ok(Got { head, left, content }) => {
            if send_head.send(Ok((head, left))).is_ok() {
                pump(content, send).await;
            }
        }
        Err(error) => drop(send_head.send(Err(error))),
    }
    true
}

/// Sends the pieces of an answer on, until nobody takes them. None is asked for before there is room for it.
async fn pump(mut content: Box<dyn Content + '_>, send: &mpsc::Sender<Result<Bytes, StoreError>>) {
    while let Ok(room) = send.reserve().await {
        let piece = tokio::select! {
            piece = content.piece(PIECE_BYTES) => piece,
            () = send.closed() => return,
        };
        let Some(piece) = piece.transpose() else { return };
        let is_error = piece.is_err();
        room.send(piece);
        if is_error {
            return;
        }
    }
}

impl Body for Pieces {
    fn next(&mut self) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move {
            match self.received.recv().await {
                Some(Ok(piece)) => {
                    self.left = self.left.saturating_sub(piece.len() as u64);
                    Ok(Some(piece))
                }
                Some(Err(error)) => Err(error),
                None if self.left > 0 => Err(ended()),
                None => Ok(None),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A client that answers with so many pieces, of which one is missing if `is_cut`.
    struct Fake {
        pieces: usize,
        is_cut: bool,
        asked: Arc<AtomicUsize>,
        ended: Arc<AtomicUsize>,
    }

    struct FakeContent<'a>(&'a mut Fake);

    impl Request for Fake {
        type Head = &'static str;

        fn get(&mut self) -> StoreFuture<'_, Got<'_, Self::Head>> {
            Box::pin(async move {
                if self.pieces == 0 {
                    return Err(StoreError::Gone);
                }
                let left = 3 * self.pieces as u64;
                Ok(Got { head: "head", left, content: Box::new(FakeContent(self)) })
            })
        }

        fn end(self) {
            self.ended.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Content for FakeContent<'_> {
        fn piece(&mut self, bytes_max: usize) -> StoreFuture<'_, Option<Bytes>> {
            assert_eq!(bytes_max, PIECE_BYTES);
            self.0.asked.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                if self.0.pieces == usize::from(self.0.is_cut) {
                    let is_cut = std::mem::take(&mut self.0.is_cut);
                    let cut = StoreError::Passing("cut".to_owned());
                    return if is_cut { Err(cut) } else { Ok(None) };
                }
                self.0.pieces -= 1;
                Ok(Some(Bytes::from_static(b"abc")))
            })
        }
    }

    fn fake(pieces: usize, is_cut: bool) -> (Fake, Arc<AtomicUsize>, Arc<AtomicUsize>) {
        let (asked, ended) = (Arc::default(), Arc::default());
        let (of_asked, of_ended) = (Arc::clone(&asked), Arc::clone(&ended));
        (Fake { pieces, is_cut, asked, ended }, of_asked, of_ended)
    }

    #[tokio::test]
    async fn an_answer_is_taken_to_its_end_and_its_client_is_free_again() {
        let (fake, _, ended) = fake(9, false);
        let (head, mut pieces) = take(fake).await.unwrap();
        assert_eq!((head, pieces.left), ("head", 27));
        for _ in 0..9 {
            assert_eq!(pieces.next().await.unwrap().unwrap(), "abc");
        }
        assert_eq!(pieces.next().await, Ok(None));
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn an_answer_that_is_cut_is_an_error_and_so_is_a_refusal() {
        let (cut, _, ended) = fake(2, true);
        let (_, mut pieces) = take(cut).await.unwrap();
        assert_eq!(pieces.next().await.unwrap().unwrap(), "abc");
        assert_eq!(pieces.next().await, Err(StoreError::Passing("cut".to_owned())));
        assert!(pieces.next().await.is_err(), "bytes are missing");
        assert_eq!(ended.load(Ordering::SeqCst), 1);
        let (none, _, ended) = fake(0, false);
        assert_eq!(take(none).await.unwrap_err(), StoreError::Gone);
        tokio::task::yield_now().await;
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn what_nobody_reads_is_not_taken() {
        let (fake, asked, ended) = fake(1_000, false);
        let (_, pieces) = take(fake).await.unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(asked.load(Ordering::SeqCst) <= PIECES_MAX);
        drop(pieces);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }
}
