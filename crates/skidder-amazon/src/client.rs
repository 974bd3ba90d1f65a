//! A service of Amazon's: how its requests are signed and sent, and what a refusal means.

use crate::credentials::{CredentialsError, Provider};
use crate::refused::Refused;
use crate::sign::signed;
use http::{HeaderMap, Uri};
use skidder_net::cloud::{self, Ask, Meter, RefusedAnswer, Sender, Signer, SignerFuture, Target};
use skidder_os::Clock;
use skidder_tls::TlsClient;
use std::sync::Arc;
use std::time::Duration;

/// Why a request was not taken.
pub type Failure = cloud::Failure<CredentialsError, Refused>;
/// One worker's way to a service.
pub type Client = cloud::Client<Service>;
/// The content of an object, in pieces.
pub type Content<'a> = cloud::Content<&'a Sender<Service>>;

/// A service and how to get there. Each worker has a [`Client`] of it.
#[derive(Clone, Debug)]
pub struct Service {
    /// The name that requests are signed for, as `s3`.
    pub name: &'static str,
    /// The region that they are signed for, as `eu-central-1`.
    pub region: String,
    /// Where it is.
    pub target: Arc<Target>,
    /// For a target with TLS, whose absence there is a mistake of the configuration.
    pub tls: Option<Arc<TlsClient>>,
    /// Gives the credentials.
    pub provider: Arc<Provider>,
    /// Of connecting, and of a request with its answer, or of each piece of that.
    pub timeout: Duration,
}

impl Service {
    /// A client without a connection yet.
    pub fn client(&self, meter: Arc<dyn Meter>, clock: Arc<dyn Clock>) -> Client {
        Client::new(self.clone(), self.target.route(self.tls.clone()), meter, clock)
    }
}

impl Signer for Service {
    type Credentials = CredentialsError;
    type Refused = Refused;

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn sign<'a>(
        &'a self,
        ask: &'a Ask<'a>,
        clock: &'a Arc<dyn Clock>,
    ) -> SignerFuture<'a, Result<(Uri, HeaderMap), Failure>> {
        Box::pin(async move {
            let credentials = self.provider.get(clock).await.map_err(Failure::Credentials)?;
            Ok(signed(self, ask, &credentials, clock.wall())?)
        })
    }

    fn refused<'a>(&'a self, answer: RefusedAnswer<'a>) -> SignerFuture<'a, Refused> {
        Box::pin(async move {
            let refused = Refused::read(answer.status, answer.headers, answer.body);
            if refused.is_about_credentials() {
                self.provider.forget().await;
            }
            refused
        })
    }
}
