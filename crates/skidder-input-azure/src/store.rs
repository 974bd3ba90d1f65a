//! The bytes of blobs: clients of a container, each used by one answer at a time.
//!
//! An answer is taken by a task of its own, which is a few pieces ahead of the reader. So an answer needs no borrow of its
//! client, and dropping it closes the connection.

use bytes::Bytes;
use skidder_azure::{
    BlobHead, Container, Content, Failure, GotBlob, Meter, Part, Refused, Service,
};
use skidder_input::InputMetrics;
use skidder_input_objects::{Body, Range, Store, StoreError, StoreFuture};
use skidder_os::Clock;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

/// Bytes of a piece at most.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that have come and are not read yet.
const PIECES_MAX: usize = 2;

/// Clients of a container.
pub(crate) struct Clients {
    service: Service,
    meter: Arc<dyn Meter>,
    clock: Arc<dyn Clock>,
    /// Those that no answer uses; the last one was used last.
    idle: Mutex<Vec<Container>>,
    idle_max: usize,
}

/// Adds the bytes of blobs to the numbers of the input.
#[derive(Debug)]
struct Metered(Arc<InputMetrics>);

impl Meter for Metered {
    fn answered(&self, _: u64, _: Duration) {}

    fn received(&self, bytes: u64) {
        self.0.bytes.add(bytes);
    }
}

/// The beginning of an answer.
#[derive(Debug)]
pub(crate) struct Began {
    pub(crate) head: BlobHead,
    pub(crate) pieces: Pieces,
}

/// The content of an answer.
#[derive(Debug)]
pub(crate) struct Pieces {
    received: mpsc::Receiver<Result<Bytes, StoreError>>,
    /// Bytes to come.
    left: u64,
}

/// One blob, in the version that the first answer had.
pub(crate) struct BlobStore {
    pub(crate) clients: Arc<Clients>,
    pub(crate) blob: String,
    pub(crate) etag: String,
}

impl Clients {
    /// At most so many are kept while they are not used.
    pub(crate) fn new(
        service: Service,
        metrics: Arc<InputMetrics>,
        clock: Arc<dyn Clock>,
        idle_max: usize,
    ) -> Arc<Self> {
        let meter = Arc::new(Metered(metrics));
        Arc::new(Self { service, meter, clock, idle: Mutex::default(), idle_max })
    }

    /// The name of the container.
    pub(crate) fn container(&self) -> &str {
        &self.service.container
    }

    /// A client.
    pub(crate) fn take(&self) -> Container {
        if let Some(client) = self.lock().pop() {
            return client;
        }
        let client = self.service.client(Arc::clone(&self.meter), Arc::clone(&self.clock));
        Container::new(client)
    }

    /// A client that is not used any more.
    pub(crate) fn give_back(&self, client: Container) {
        let mut idle = self.lock();
        if idle.len() < self.idle_max {
            idle.push(client);
        }
    }

    /// Begins to read a blob.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        blob: &str,
        range: Range,
        etag: Option<&str>,
    ) -> Result<Began, StoreError> {
        let (send_head, head) = oneshot::channel();
        let (send, received) = mpsc::channel(PIECES_MAX);
        let taking = Taking {
            clients: Arc::clone(self),
            blob: blob.to_owned(),
            range,
            etag: etag.map(str::to_owned),
        };
        tokio::spawn(taking.run(send_head, send).in_current_span());
        let lost = |_| StoreError::Passing("the task that takes the blob has ended".to_owned());
        let (head, left) = head.await.map_err(lost)??;
        Ok(Began { head, pieces: Pieces { received, left } })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Container>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The beginning of an answer, and how many bytes come.
type Head = Result<(BlobHead, u64), StoreError>;

/// The task that takes an answer.
struct Taking {
    clients: Arc<Clients>,
    blob: String,
    range: Range,
    etag: Option<String>,
}

impl Taking {
    async fn run(
        self,
        mut send_head: oneshot::Sender<Head>,
        send: mpsc::Sender<Result<Bytes, StoreError>>,
    ) {
        let Self { clients, blob, range, etag } = self;
        let mut client = clients.take();
        let part = Part { from: range.from, until: range.to, if_match: etag.as_deref() };
        let got = tokio::select! {
            got = client.get(&blob, part) => got,
            // The reader has given up.
            () = send_head.closed() => return,
        };
        match got {
            Ok(GotBlob { head, content }) => {
                let left = content.left();
                if send_head.send(Ok((head, left))).is_ok() {
                    pump(content, &send).await;
                }
            }
            Err(failure) => {
                drop(send_head.send(Err(store_error(&failure, clients.container()))));
            }
        }
        clients.give_back(client);
    }
}

/// Sends the pieces of an answer on, until the reader has gone.
async fn pump(mut content: Content<'_>, send: &mpsc::Sender<Result<Bytes, StoreError>>) {
    loop {
        let piece = tokio::select! {
            piece = content.piece(PIECE_BYTES) => piece,
            () = send.closed() => return,
        };
        let sent = match piece {
            Ok(Some(piece)) => send.send(Ok(piece)).await,
            Ok(None) => return,
            Err(failure) => {
                drop(send.send(Err(StoreError::Passing(failure.to_string()))).await);
                return;
            }
        };
        if sent.is_err() {
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
                None if self.left > 0 => {
                    let message = "the task that takes the blob has ended";
                    Err(StoreError::Passing(message.to_owned()))
                }
                None => Ok(None),
            }
        })
    }
}

impl Store for BlobStore {
    fn get(&self, range: Range) -> StoreFuture<'_, Box<dyn Body>> {
        Box::pin(async move {
            let began = self.clients.begin(&self.blob, range, Some(&self.etag)).await?;
            Ok(Box::new(began.pieces) as Box<dyn Body>)
        })
    }
}

/// What a failure means for the blob.
pub(crate) fn store_error(failure: &Failure, container: &str) -> StoreError {
    match failure {
        Failure::Refused(refused) if refused.is_missing() => StoreError::Gone,
        Failure::Refused(refused) if refused.is_changed() => StoreError::Changed,
        Failure::Refused(refused) => {
            let text = (**refused).clone().advised(advice(refused, container)).to_string();
            let may_pass = refused.status >= 500
                || refused.status == 408
                || refused.is_throttled()
                || refused.is_about_credentials();
            if may_pass { StoreError::Passing(text) } else { StoreError::Refused(text) }
        }
        Failure::Header(error) => StoreError::Refused(error.to_string()),
        Failure::Connection(_) | Failure::Credentials(_) | Failure::Unexpected { .. } => {
            StoreError::Passing(failure.to_string())
        }
    }
}

/// The remedy; empty for the usual one.
pub(crate) fn advice(refused: &Refused, container: &str) -> String {
    match &*refused.code {
        "ContainerNotFound" => {
            format!("there is no container `{container}`: see `containers` and `account_name`")
        }
        "ContainerBeingDeleted" | "ContainerDisabled" => {
            format!("the container `{container}` cannot be used now")
        }
        "AuthenticationFailed" => {
            "see `account_name` and `auth`, whether a signature has expired, and the clock of this \
                                   machine"
                .to_owned()
        }
        "InvalidAuthenticationInfo" => {
            "see `auth.oauth2`, and the clock of this machine".to_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    #[test]
    fn a_refusal_passes_or_stays() {
        let error = |status, code: &str| {
            let body = format!("<Error><Code>{code}</Code><Message>no</Message></Error>");
            let refused = Refused::read(status, &HeaderMap::new(), body.as_bytes());
            store_error(&Failure::Refused(Box::new(refused)), "logs")
        };
        assert_eq!(error(404, "BlobNotFound"), StoreError::Gone);
        assert_eq!(error(412, "ConditionNotMet"), StoreError::Changed);
        for (status, code) in
            [(503, "ServerBusy"), (500, "InternalError"), (401, "InvalidAuthenticationInfo")]
        {
            assert!(matches!(error(status, code), StoreError::Passing(_)), "{code}");
        }
        for (status, code, advice) in [
            (403, "AuthorizationPermissionMismatch", "`Storage Blob Data Reader`"),
            (404, "ContainerNotFound", "no container `logs`"),
            (409, "BlobArchived", "rehydrate"),
            (403, "AuthenticationFailed", "see `account_name` and `auth`"),
            (400, "InvalidHeaderValue", "`InvalidHeaderValue`: no"),
        ] {
            let StoreError::Refused(text) = error(status, code) else { panic!("{code}") };
            assert!(text.contains(advice), "{text}");
        }
    }
}
