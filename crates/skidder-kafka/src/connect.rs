//! Connections: TCP, then encryption by rustls as in all outputs, then a login.

use crate::login::Credentials;
use crate::sasl::{self, SaslError};
use rustls::pki_types::ServerName;
use skidder_net::{WithoutTls, connect_remedy, is_hang_up, plain_remedy, tls_remedy};
use skidder_tls::TlsClient;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No answer in time.
    #[error("no answer within {0:?} (`timeout`)")]
    Time(Duration),
    /// The name has no address.
    #[error("cannot resolve `{0}`: {1}")]
    Resolve(String, io::Error),
    /// TCP.
    #[error("cannot connect: {}{}", .0, connect_remedy(.0))]
    Tcp(io::Error),
    /// The name has no form that a certificate could have.
    #[error("`{0}` is no name that a certificate could be for")]
    Name(String),
    /// TLS.
    #[error("cannot encrypt: {}{}", .0, tls_remedy(.0, WithoutTls::NoSsl))]
    Tls(io::Error),
    /// No answer to the handshake in time.
    #[error(
        "no answer to the TLS handshake within {0:?} (`timeout`); is this the broker's port with TLS? If not, {no_ssl}",
        no_ssl = WithoutTls::NoSsl,
    )]
    NoHandshake(Duration),
    /// SASL.
    #[error(transparent)]
    Sasl(#[from] SaslError),
    /// The broker hung up during the login on a connection without TLS.
    #[error("{}{}", .0, plain_remedy(WithoutTls::NoSsl, false))]
    PlainLogin(SaslError),
}

/// A connection, encrypted or not.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Settings of connections.
#[derive(Clone, Debug)]
pub struct DialSettings {
    /// `client_id`.
    pub client_id: String,
    /// `timeout` of connecting and of an answer.
    pub timeout: Duration,
    /// `keep_alive`: whether the system keeps connections alive.
    pub keep_alive: bool,
}

/// How to connect.
pub struct Dialer {
    tls: Option<Arc<TlsClient>>,
    credentials: Option<Credentials>,
    /// `client_id`.
    pub client_id: String,
    /// `timeout` of connecting and of an answer.
    pub timeout: Duration,
    keep_alive: bool,
}

impl Dialer {
    /// Connects to nothing yet.
    pub fn new(
        tls: Option<Arc<TlsClient>>,
        credentials: Option<Credentials>,
        of: DialSettings,
    ) -> Self {
        let DialSettings { client_id, timeout, keep_alive } = of;
        Self { tls, credentials, client_id, timeout, keep_alive }
    }

    /// Waits for something as long as `timeout` says.
    pub async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, ConnectError> {
        let limit = self.timeout;
        tokio::time::timeout(limit, work).await.unwrap_or(Err(ConnectError::Time(limit)))
    }

    /// TCP to one address.
    pub async fn tcp(&self, address: SocketAddr) -> Result<TcpStream, ConnectError> {
        let stream = skidder_net::connect(address).await.map_err(ConnectError::Tcp)?;
        if self.keep_alive {
            let set = rustix::net::sockopt::set_socket_keepalive(&stream, true);
            set.map_err(|error| ConnectError::Tcp(error.into()))?;
        }
        Ok(stream)
    }

    /// Encrypts, if configured. `node` is `host:port`; its host must be in the certificate.
    pub async fn encrypt(
        &self,
        stream: TcpStream,
        node: &str,
    ) -> Result<Box<dyn Stream>, ConnectError> {
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let host = node.rsplit_once(':').map_or(node, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let wrong = |_| ConnectError::Name(host.clone());
        let name = ServerName::try_from(host.clone()).map_err(wrong)?;
        let connector = TlsConnector::from(tls.config());
        let encrypting = connector.connect(name, stream);
        let late = ConnectError::NoHandshake(self.timeout);
        let encrypted = tokio::time::timeout(self.timeout, encrypting).await.map_err(|_| late)?;
        Ok(Box::new(encrypted.map_err(ConnectError::Tls)?))
    }

    /// Logs in, if configured.
    pub async fn log_in(&self, stream: &mut dyn Stream) -> Result<(), ConnectError> {
        let Some(credentials) = &self.credentials else { return Ok(()) };
        let nonce = nonce().map_err(|error| ConnectError::Sasl(error.into()))?;
        let mut stream = stream;
        let logged_in = sasl::log_in(&mut stream, credentials, &self.client_id, &nonce).await;
        logged_in.map_err(|error| match &error {
            SaslError::Io(broken) if self.is_plain() && is_hang_up(broken) => {
                ConnectError::PlainLogin(error)
            }
            _ => error.into(),
        })
    }

    /// Whether connections begin with a login.
    pub fn logs_in(&self) -> bool {
        self.credentials.is_some()
    }

    /// Whether connections are not encrypted.
    pub fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// The addresses of `node`, a `host:port`.
    pub async fn resolve(&self, node: &str) -> Result<Vec<SocketAddr>, ConnectError> {
        let failed = |error| ConnectError::Resolve(node.to_owned(), error);
        let found: Vec<SocketAddr> = tokio::net::lookup_host(node).await.map_err(failed)?.collect();
        if found.is_empty() {
            return Err(failed(io::ErrorKind::NotFound.into()));
        }
        Ok(found)
    }

    /// The first of the addresses that takes a connection.
    pub async fn dial(&self, addresses: &[SocketAddr]) -> Result<TcpStream, ConnectError> {
        let mut last = ConnectError::Tcp(io::ErrorKind::NotFound.into());
        for address in addresses {
            match self.tcp(*address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// A connection to `node`, ready for requests.
    pub async fn open(&self, node: &str) -> Result<Box<dyn Stream>, ConnectError> {
        let dialling = async { self.dial(&self.resolve(node).await?).await };
        let mut stream = self.encrypt(self.within(dialling).await?, node).await?;
        self.within(self.log_in(&mut *stream)).await?;
        Ok(stream)
    }
}

/// 128 random bits, as hexadecimal digits.
fn nonce() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    let provider = rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut bytes).map_err(|_| io::Error::other("no random bytes"))?;
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Connection;
    use crate::login::Mechanism;
    use skidder_config::Secret;

    #[tokio::test]
    async fn a_broker_that_hangs_up_before_its_first_answer_may_want_tls() {
        let settings = || DialSettings {
            client_id: "a".to_owned(),
            timeout: Duration::from_mins(1),
            keep_alive: false,
        };
        let hint = "if this port speaks TLS, set `ssl.enabled: true`";
        let dialer = Dialer::new(None, None, settings());
        let (ours, theirs) = tokio::io::duplex(1000);
        drop(theirs);
        let error = Connection::greet(&dialer, Box::new(ours)).await.err().expect("no answer");
        assert!(error.to_string().contains(hint), "{error}");
        assert_eq!(error.advice(), "");
        let credentials = Credentials {
            mechanism: Mechanism::Plain,
            username: "a".to_owned(),
            password: Secret::new("b"),
        };
        let dialer = Dialer::new(None, Some(credentials), settings());
        let (mut ours, theirs) = tokio::io::duplex(1000);
        drop(theirs);
        let error = dialer.log_in(&mut ours).await.expect_err("no answer");
        assert!(error.to_string().contains(hint), "{error}");
    }

    #[test]
    fn the_remedy_for_a_port_without_tls_is_one_of_the_settings() {
        let error = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        let error = io::Error::new(io::ErrorKind::InvalidData, error);
        for error in [ConnectError::Tls(error), ConnectError::NoHandshake(Duration::from_secs(1))] {
            let text = error.to_string();
            assert!(text.ends_with("leave `ssl` out, or set `ssl.enabled: false`"), "{text}");
        }
    }
}
