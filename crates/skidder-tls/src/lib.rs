//! TLS of clients: a section `ssl` of the configuration, and what rustls needs of it.

mod read;
mod settings;

pub use settings::{Pem, TlsError, TlsSettings, VerificationMode};
