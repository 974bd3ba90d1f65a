//! Leases on blobs: while one holds, only requests with its id change the blob
//! (<https://learn.microsoft.com/rest/api/storageservices/lease-blob>).

use crate::client::{Failure, unexpected};
use crate::container::Container;
use http::{HeaderMap, Method};
use skidder_net::cloud::Ask;
use std::time::Duration;

/// Shortest duration of a lease.
pub const LEASE_MIN: Duration = Duration::from_secs(15);
/// Longest duration of a lease; an endless one is none of these.
pub const LEASE_MAX: Duration = Duration::from_mins(1);
const ID: &str = "x-ms-lease-id";

/// A lease that this process has. It ends by itself when its duration is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// A UUID, which requests that change the blob show.
    pub id: String,
}

impl Lease {
    fn read(status: u16, headers: &HeaderMap) -> Result<Self, Failure> {
        let id = headers.get(ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
        if id.is_empty() {
            return Err(unexpected(status, "there is no lease in it"));
        }
        Ok(Self { id: id.to_owned() })
    }
}

impl Container {
    /// Takes the lease of a blob for a duration, which is rounded to seconds and brought between [`LEASE_MIN`] and
    /// [`LEASE_MAX`]. With `id`, a UUID, that is the lease's; else the server makes one.
    ///
    /// # Errors
    ///
    /// As [`crate::Client::ask`]; a lease of another process is [`crate::Refused::is_leased`].
    pub async fn acquire_lease(
        &mut self,
        blob: &str,
        duration: Duration,
        id: Option<&str>,
    ) -> Result<Lease, Failure> {
        let seconds = duration.clamp(LEASE_MIN, LEASE_MAX).as_secs().to_string();
        let mut headers = vec![("x-ms-lease-duration", &*seconds)];
        headers.extend(id.map(|id| ("x-ms-proposed-lease-id", id)));
        self.lease(blob, "acquire", headers).await
    }

    /// Prolongs a lease by its duration from now on. One that has ended is taken again, unless another process has one or has
    /// changed the blob.
    ///
    /// # Errors
    ///
    /// As [`crate::Client::ask`]; a lease that is lost is [`crate::Refused::is_leased`].
    pub async fn renew_lease(&mut self, blob: &str, lease: &Lease) -> Result<Lease, Failure> {
        self.lease(blob, "renew", vec![(ID, &*lease.id)]).await
    }

    /// Gives a lease the id `to`, a UUID, as one process hands a blob over to another.
    ///
    /// # Errors
    ///
    /// As [`Container::renew_lease`].
    pub async fn change_lease(
        &mut self,
        blob: &str,
        lease: &Lease,
        to: &str,
    ) -> Result<Lease, Failure> {
        self.lease(blob, "change", vec![(ID, &*lease.id), ("x-ms-proposed-lease-id", to)]).await
    }

    /// Gives a lease back, so that another process can take one at once.
    ///
    /// # Errors
    ///
    /// As [`Container::renew_lease`].
    pub async fn release_lease(&mut self, blob: &str, lease: &Lease) -> Result<(), Failure> {
        let mut ask = ask(blob, "release");
        ask.headers.push((ID, &lease.id));
        self.client.ask(ask).await?;
        Ok(())
    }

    async fn lease(
        &mut self,
        blob: &str,
        action: &str,
        headers: Vec<(&str, &str)>,
    ) -> Result<Lease, Failure> {
        let mut ask = ask(blob, action);
        ask.headers.extend(headers);
        let answer = self.client.ask(ask).await?;
        Lease::read(answer.status, &answer.headers)
    }
}

fn ask<'a>(blob: &'a str, action: &'a str) -> Ask<'a> {
    let mut ask = Ask::empty(Method::PUT, Some(blob));
    ask.query = vec![("comp", "lease")];
    ask.headers = vec![("x-ms-lease-action", action)];
    ask
}
