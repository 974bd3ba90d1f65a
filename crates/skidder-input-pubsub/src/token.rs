//! Where the access token of a call comes from.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use skidder_google::Tokens;
use skidder_os::Clock;
use std::sync::Arc;

/// How calls log in.
#[derive(Clone, Debug)]
pub(crate) enum Login {
    /// Not at all, as at emulators.
    None,
    /// With tokens, which are kept and replaced before they end.
    Google(Arc<Tokens>),
}

impl Login {
    /// The value of `authorization` now; nothing if the server wants none.
    ///
    /// # Errors
    ///
    /// There is none; the text is for people.
    pub(crate) async fn header(
        &self,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<HeaderValue>, String> {
        match self {
            Self::None => Ok(None),
            Self::Google(tokens) => tokens.get(clock).await.map_err(|error| error.to_string()),
        }
    }

    /// The server did not take what a call with these headers had: the next token is a new one.
    pub(crate) async fn refused(&self, headers: &HeaderMap) {
        let Some(header) = headers.get(AUTHORIZATION) else { return };
        match self {
            Self::None => {}
            Self::Google(tokens) => tokens.forget(header).await,
        }
    }
}
