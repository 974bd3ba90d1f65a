//! Logging in to servers of HTTP with Kerberos: the header `Authorization: Negotiate …` of RFC 4559.
//!
//! The settings are read by every build, so that a mistake in them is always reported. Logging in
//! is a feature of the build (`gssapi`): it takes the GSSAPI of MIT Kerberos, which is not
//! everywhere.

#[cfg(feature = "gssapi")]
mod acceptor;
#[cfg(feature = "gssapi")]
mod gssapi;
#[cfg(not(feature = "gssapi"))]
mod missing;
mod settings;

#[cfg(feature = "gssapi")]
pub use acceptor::Acceptor;
#[cfg(feature = "gssapi")]
pub use gssapi::Login;
#[cfg(not(feature = "gssapi"))]
pub use missing::Login;
pub use settings::{Auth, KERBEROS, Settings, WITH_KERBEROS};

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The program was built without it.
    #[error("this program was built without Kerberos (the feature `kerberos`)")]
    NotBuilt,
    /// Another `config_path` is in use: Kerberos takes one for the whole process.
    #[error(
        "`kerberos.config_path` is `{wanted}` here and `{used}` elsewhere; there can be one in a process"
    )]
    OtherConfig {
        /// The path in these settings.
        wanted: String,
        /// The path in use.
        used: String,
    },
    /// A path or a name has a zero byte.
    #[error("`kerberos.{0}` has a zero byte")]
    ZeroByte(&'static str),
    /// Kerberos did not let the user in: a wrong password or keytab, or the realm does not answer.
    #[error("Kerberos does not let `{principal}` in with {by}: {why}")]
    User {
        /// The user with the realm.
        principal: String,
        /// The proof of identity.
        by: String,
        /// The library's reason.
        why: String,
    },
    /// There is no ticket for the server.
    #[error("Kerberos gives no ticket for `{service}`: {why}")]
    Service {
        /// The principal of the server.
        service: String,
        /// The library's reason.
        why: String,
    },
}
