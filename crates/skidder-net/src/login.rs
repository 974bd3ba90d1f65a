//! Logging in with Kerberos: each request has a header of its own.

use crate::connection::ConnectionError;
use http::HeaderValue;
use std::sync::Arc;

/// Makes the value of `Authorization` for each request to one host.
#[derive(Clone, Debug)]
pub struct Login {
    kerberos: Arc<skidder_kerberos::Login>,
    host: Arc<str>,
}

impl Login {
    /// For requests to `host`, a name without a port.
    pub fn new(kerberos: Arc<skidder_kerberos::Login>, host: &str) -> Self {
        Self { kerberos, host: Arc::from(host) }
    }

    /// The value for one request. May contact the servers of the realm, on a thread for blocking
    /// work.
    pub async fn header(&self) -> Result<HeaderValue, ConnectionError> {
        let Self { kerberos, host } = self.clone();
        let made = tokio::task::spawn_blocking(move || kerberos.header(&host)).await;
        let text = made.map_err(|error| ConnectionError::LoginEnded(error.to_string()))??;
        let mut value = HeaderValue::try_from(text).expect("base64 fits in a header");
        value.set_sensitive(true);
        Ok(value)
    }
}
