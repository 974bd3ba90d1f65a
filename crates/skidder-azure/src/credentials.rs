//! What requests show: a signature with the account's key, the token of a shared access signature, or an access token.

use crate::sign::AccountKey;
use crate::tokens::{STORAGE, TokenClient, TokenError, TokenSource};
use skidder_config::Secret;
use skidder_net::ProxyChoice;
use skidder_net::cloud::Temporary;
use skidder_os::{Clock, Fs, Timestamp};
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
    /// For [`Credential::Token`].
    tokens: Option<Tokens>,
}

/// Access tokens for one resource, each requested shortly before the one before expires.
pub struct Tokens {
    source: TokenSource,
    resource: &'static str,
    client: TokenClient,
    given: Temporary<(Secret, Timestamp)>,
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

impl fmt::Debug for Tokens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Tokens").field(&self.source).field(&self.resource).finish()
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
        let tokens = match &credential {
            Credential::Token(source) => Some(Tokens::new((**source).clone(), STORAGE, proxy, fs)?),
            Credential::Key(_) | Credential::Sas(_) => None,
        };
        Ok(Self { credential, tokens })
    }

    /// Where the credentials come from.
    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// What a request of now shows. A token is requested shortly before the one before expires.
    pub(crate) async fn get(&self, clock: &Arc<dyn Clock>) -> Result<Shown<'_>, CredentialsError> {
        if let Some(tokens) = &self.tokens {
            return Ok(Shown::Token(tokens.get(clock).await?.0));
        }
        Ok(match &self.credential {
            Credential::Key(key) => Shown::Key(key),
            Credential::Sas(sas) => Shown::Sas(sas),
            Credential::Token(_) => unreachable!("`new` makes tokens of it"),
        })
    }

    /// The server does not accept the token any more: another one is requested.
    pub(crate) async fn forget(&self) {
        if let Some(tokens) = &self.tokens {
            tokens.forget().await;
        }
    }
}

impl Tokens {
    /// Reads certificates; connects to nothing. `resource` is what they are for, as [`crate::EVENT_HUBS`]; `proxy` is for
    /// Entra ID.
    ///
    /// # Errors
    ///
    /// The certificates of the system cannot be read.
    pub fn new(
        source: TokenSource,
        resource: &'static str,
        proxy: ProxyChoice,
        fs: Arc<dyn Fs>,
    ) -> Result<Self, TlsError> {
        // `ssl` of the settings is about the server that the tokens are shown to.
        let is_https = source.url().https;
        let tls = is_https.then(|| TlsClient::new(&TlsSettings::default(), fs)).transpose()?;
        let client = TokenClient { tls, proxy };
        Ok(Self { source, resource, client, given: Temporary::default() })
    }

    /// A token, and until when it holds.
    ///
    /// # Errors
    ///
    /// The issuer gives none.
    pub async fn get(
        &self,
        clock: &Arc<dyn Clock>,
    ) -> Result<(Secret, Timestamp), CredentialsError> {
        let request = async |now| {
            let (token, until) = self.client.ask(&self.source, self.resource, now).await?;
            Ok(((token, until), until))
        };
        let warn =
            |error: TokenError| tracing::warn!(%error, "cannot replace a token that expires soon");
        Ok(self.given.get(clock, MARGIN, request, warn).await?)
    }

    /// The token is not accepted any more: the next one is another one.
    pub async fn forget(&self) {
        self.given.forget().await;
    }
}
