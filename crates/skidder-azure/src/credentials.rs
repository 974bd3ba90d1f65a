//! What requests show: a signature with the account's key, the token of a shared access signature, or an access token.

use crate::sign::AccountKey;
use crate::tokens::{TokenClient, TokenError, TokenSource};
use skidder_config::Secret;
use skidder_net::ProxyChoice;
use skidder_net::cloud::Temporary;
use skidder_os::{Clock, Fs};
use skidder_tls::{TlsClient, TlsError, TlsSettings};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A token is renewed this long before it expires.
const MARGIN: Duration = Duration::from_mins(5);
/// What requests show.
#[derive(Clone, Debug)]
pub enum Credential {
    /// The key of the account signs each request.
    Key(AccountKey),
    /// The query of a shared access signature, as it stands in a URL behind `?`.
    Sas(Secret),
    /// A token, renewed before it expires.
    Token(Box<TokenSource>),
}

impl Credential {
    /// How messages call it.
    pub fn name(&self) -> String {
        match self {
            Self::Key(key) => format!("the key of `{}`", key.account()),
            Self::Sas(_) => "a shared access signature".to_owned(),
            Self::Token(source) => format!("a token, by {} `{}`", source.issuer(), source.url()),
        }
    }
}

/// Why a request cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The issuer gives no token.
    #[error("no access token: {0}")]
    Token(#[from] TokenError),
}

/// Gives the credentials of now. Shared by the workers of an input.
pub struct Provider {
    credential: Credential,
    client: TokenClient,
    given: Temporary<Secret>,
}

/// What one request shows.
pub(crate) enum Shown<'a> {
    Key(&'a AccountKey),
    Sas(&'a Secret),
    Token(Secret),
}

impl fmt::Debug for Provider {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Provider").field(&self.credential).finish()
    }
}

impl Provider {
    /// Reads certificates; connects to nothing. `proxy` is for Entra ID.
    ///
    /// # Errors
    ///
    /// The certificates of the system cannot be read.
    pub fn new(
        credential: Credential,
        proxy: ProxyChoice,
        fs: Arc<dyn Fs>,
    ) -> Result<Self, TlsError> {
        let is_https = matches!(&credential, Credential::Token(source) if source.url().https);
        // `ssl` of the settings is about the server of the blobs.
        let tls = is_https.then(|| TlsClient::new(&TlsSettings::default(), fs)).transpose()?;
        let client = TokenClient { tls, proxy };
        Ok(Self { credential, client, given: Temporary::default() })
    }

    /// Where the credentials come from.
    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// What a request of now shows. A token is requested shortly before the one before expires.
    pub(crate) async fn get(&self, clock: &Arc<dyn Clock>) -> Result<Shown<'_>, CredentialsError> {
        let source = match &self.credential {
            Credential::Key(key) => return Ok(Shown::Key(key)),
            Credential::Sas(sas) => return Ok(Shown::Sas(sas)),
            Credential::Token(source) => source,
        };
        let request = |now| self.client.ask(source, now);
        let warn = |error| tracing::warn!(%error, "cannot replace a token that expires soon");
        Ok(Shown::Token(self.given.get(clock, MARGIN, request, warn).await?))
    }

    /// The server does not accept the token any more: another one is requested.
    pub(crate) async fn forget(&self) {
        self.given.forget().await;
    }
}
