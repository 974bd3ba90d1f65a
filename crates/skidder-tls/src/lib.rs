//! TLS of clients and of servers: a section `ssl` of the configuration, and what rustls needs of it.

mod error;
mod keys;
mod names;
mod own;
mod read;
mod reload;
mod server;
mod settings;
mod verify;

pub use error::{TlsError, handshake_words};
pub use read::SSL;
pub use reload::{TlsClient, TlsServer};
pub use server::{ClientAuthentication, SSL_SERVER, TlsServerSettings};
pub use settings::{Pem, TlsSettings, VerificationMode};
pub use verify::is_authority_as_server;
