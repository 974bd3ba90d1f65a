//! The other side: what a server does with a token. Tests of clients need one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use libgssapi::context::{SecurityContext as _, ServerCtx};
use libgssapi::credential::{Cred, CredUsage};

/// Takes headers as a server does, with the keys that its `krb5.conf` names (`default_keytab_name`).
#[derive(Debug)]
pub struct Acceptor(Cred);

impl Acceptor {
    /// Reads the keys.
    ///
    /// # Errors
    /// If there are none, with the library's reason.
    pub fn new() -> Result<Self, String> {
        let credentials = Cred::acquire(None, None, CredUsage::Accept, None);
        credentials.map(Self).map_err(|error| error.to_string())
    }

    /// The principal that sent a request with this value of `Authorization`.
    ///
    /// # Errors
    /// If it is no token, not for this server, or a replay; with the library's reason.
    pub fn accept(&self, header: &str) -> Result<String, String> {
        let token = header.strip_prefix("Negotiate ").ok_or("it does not negotiate")?;
        let token = BASE64.decode(token).map_err(|error| error.to_string())?;
        let mut context = ServerCtx::new(Some(self.0.clone()));
        context.step(&token, None).map_err(|error| error.to_string())?;
        let name = context.source_name().map_err(|error| error.to_string())?;
        Ok(name.to_string())
    }
}
