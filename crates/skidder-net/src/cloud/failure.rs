//! Why a request was not taken.

use crate::ConnectionError;
use std::error::Error;
use std::fmt;

/// An answer that is no success, as a cloud understands it.
pub trait Refusal: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// Whether the same request may succeed later.
    fn may_pass(&self) -> bool;
}

/// Writes a refusal as messages show it. `code` is the server's name of the error, `advice` the remedy; all but the status may
/// be empty.
///
/// # Errors
///
/// That of `out`.
pub fn show_refusal(
    out: &mut fmt::Formatter<'_>,
    status: u16,
    code: &str,
    message: &str,
    advice: &str,
) -> fmt::Result {
    write!(out, "the server answered {status}")?;
    if !code.is_empty() {
        write!(out, " `{code}`")?;
    }
    if !message.is_empty() {
        write!(out, ": {message}")?;
    }
    if !advice.is_empty() {
        write!(out, "; {advice}")?;
    }
    Ok(())
}

/// A part of the request has characters that cannot be sent; this is its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a part of the request cannot be sent: `{0}`")]
pub struct HeaderError(pub String);

/// See the module's text. `C` is why there are no credentials, `R` a refusal.
#[derive(Debug, thiserror::Error)]
pub enum Failure<C: Error + 'static, R: Refusal> {
    /// There is no answer. The next try uses a new connection.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The request cannot be signed.
    #[error(transparent)]
    Credentials(C),
    /// The server answered with an error.
    #[error("{0}")]
    Refused(Box<R>),
    /// A setting, or the name of an object, has characters that no request has.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The answer says success, and is not what the service answers. It counts as none.
    #[error(
        "the server answered {status}, but not as {service} does: {what}; is there a proxy or a portal before the server \
         that answers for it?"
    )]
    Unexpected {
        /// The name of the service, as `S3`.
        service: &'static str,
        /// The HTTP status.
        status: u16,
        /// The difference.
        what: String,
    },
}

impl<C: Error + 'static, R: Refusal> Failure<C, R> {
    /// Whether the same request may succeed later.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Credentials(_) | Self::Unexpected { .. } => true,
            Self::Refused(refused) => refused.may_pass(),
            Self::Header(_) => false,
        }
    }
}
