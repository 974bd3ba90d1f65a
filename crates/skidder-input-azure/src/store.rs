//! The bytes of blobs: clients of a container, each used by one answer at a time ([`skidder_input_objects::take`]).

use skidder_azure::{BlobHead, Container, Failure, GotBlob, Meter, Part, Refused, Service};
use skidder_input::InputMetrics;
use skidder_input_objects::{
    Body, Got, Idle, Metered, Pieces, Range, Request, Store, StoreError, StoreFuture, take,
};
use skidder_os::Clock;
use std::sync::Arc;

/// Clients of a container.
pub(crate) struct Clients {
    service: Service,
    meter: Arc<dyn Meter>,
    clock: Arc<dyn Clock>,
    idle: Idle<(), Container>,
}

/// The beginning of an answer.
#[derive(Debug)]
pub(crate) struct Began {
    pub(crate) head: BlobHead,
    pub(crate) pieces: Pieces,
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
        Arc::new(Self { service, meter, clock, idle: Idle::new(idle_max) })
    }

    /// The name of the container.
    pub(crate) fn container(&self) -> &str {
        &self.service.container
    }

    /// A client.
    pub(crate) fn take(&self) -> Container {
        self.idle.take(|()| true).unwrap_or_else(|| {
            Container::new(self.service.client(Arc::clone(&self.meter), Arc::clone(&self.clock)))
        })
    }

    /// A client that is not used any more.
    pub(crate) fn give_back(&self, client: Container) {
        self.idle.give_back((), client);
    }

    /// Begins to read a blob.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        blob: &str,
        range: Range,
        etag: Option<&str>,
    ) -> Result<Began, StoreError> {
        let asking = Asking {
            clients: Arc::clone(self),
            client: self.take(),
            blob: blob.to_owned(),
            range,
            etag: etag.map(str::to_owned),
        };
        let (head, pieces) = take(asking).await?;
        Ok(Began { head, pieces })
    }
}

/// A request for a blob, or a part of it.
struct Asking {
    clients: Arc<Clients>,
    client: Container,
    blob: String,
    range: Range,
    etag: Option<String>,
}

impl Request for Asking {
    type Head = BlobHead;

    fn get(&mut self) -> StoreFuture<'_, Got<'_, BlobHead>> {
        let Self { clients, client, blob, range, etag } = self;
        Box::pin(async move {
            let part = Part { from: range.from, until: range.to, if_match: etag.as_deref() };
            let got = client.get(blob, part).await;
            let GotBlob { head, content } =
                got.map_err(|failure| store_error(&failure, clients.container()))?;
            let left = content.left();
            Ok(Got { head, left, content: Box::new(content) })
        })
    }

    fn end(self) {
        self.clients.give_back(self.client);
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
        failure => {
            let text = match failure {
                Failure::Refused(refused) => {
                    (**refused).clone().advised(advice(refused, container)).to_string()
                }
                failure => failure.to_string(),
            };
            if failure.may_pass() { StoreError::Passing(text) } else { StoreError::Refused(text) }
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
