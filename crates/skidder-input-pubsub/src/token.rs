//! Where the access token of a call comes from.

use http::HeaderValue;
use std::fmt;
use std::pin::Pin;

/// The value of `authorization` of a call; the error is for people, and says what to do.
pub type TokenFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Option<HeaderValue>, String>> + Send + 'a>>;

/// Hands out access tokens.
pub trait Token: Send + Sync + fmt::Debug {
    /// The value of `authorization` now; nothing if the server wants none. It is asked for before each call, so that it
    /// must be kept as long as it is good.
    fn header(&self) -> TokenFuture<'_>;

    /// The server did not take the last one: the next one must be new.
    fn refused(&self);
}

/// None, as for emulators.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoToken;

impl Token for NoToken {
    fn header(&self) -> TokenFuture<'_> {
        Box::pin(async { Ok(None) })
    }

    fn refused(&self) {}
}
