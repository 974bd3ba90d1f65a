//! Connections with encryption or a login. librdkafka is built without OpenSSL; it gets one end of a pair of sockets,
//! and a task at the other end connects, encrypts with rustls as all outputs do, logs in, and then passes bytes on.
//!
//! A connection that fails is closed, and librdkafka makes another after its pause. Why it failed is told here,
//! because librdkafka only sees that it ended.

use crate::config::{Config, Credentials};
use crate::native::Connect;
use crate::sasl::{self, SaslError};
use rustls::pki_types::ServerName;
use skidder_outputs::Failures;
use skidder_tls::TlsClient;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// No answer in time.
    #[error("no answer within {0:?} (`timeout`)")]
    Time(Duration),
    /// TCP.
    #[error("cannot connect: {0}")]
    Tcp(io::Error),
    /// The name has no form that a certificate could have.
    #[error("`{0}` is no name that a certificate could be for")]
    Name(String),
    /// TLS.
    #[error("cannot encrypt: {0}{1}")]
    Tls(io::Error, &'static str),
    /// SASL.
    #[error(transparent)]
    Sasl(#[from] SaslError),
}

/// A connection, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// How to connect.
pub(crate) struct Dialer {
    tls: Option<Arc<TlsClient>>,
    credentials: Option<Credentials>,
    client_id: String,
    timeout: Duration,
}

impl Dialer {
    pub(crate) fn new(config: &Config, tls: Option<Arc<TlsClient>>) -> Self {
        let (credentials, client_id) = (config.credentials.clone(), config.client_id.clone());
        Self { tls, credentials, client_id, timeout: config.timeout }
    }

    /// Whether there is more to do than to connect.
    pub(crate) fn is_needed(&self) -> bool {
        self.tls.is_some() || self.credentials.is_some()
    }

    pub(crate) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, ConnectError> {
        let limit = self.timeout;
        tokio::time::timeout(limit, work).await.unwrap_or(Err(ConnectError::Time(limit)))
    }

    pub(crate) async fn tcp(&self, address: SocketAddr) -> Result<TcpStream, ConnectError> {
        let stream = TcpStream::connect(address).await.map_err(ConnectError::Tcp)?;
        stream.set_nodelay(true).map_err(ConnectError::Tcp)?;
        Ok(stream)
    }

    /// Encrypts, if that is wanted. `node` is `host:port`; its host must be in the certificate.
    pub(crate) async fn encrypt(
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
        let stream = connector.connect(name, stream).await.map_err(|error| {
            let is_end = error.kind() == io::ErrorKind::UnexpectedEof
                || error.to_string().contains("InvalidContentType");
            ConnectError::Tls(
                error,
                if is_end { "; is this the broker's port with TLS?" } else { "" },
            )
        })?;
        Ok(Box::new(stream))
    }

    /// Logs in, if that is wanted.
    pub(crate) async fn log_in(&self, stream: &mut dyn Stream) -> Result<(), ConnectError> {
        let Some(credentials) = &self.credentials else { return Ok(()) };
        let nonce = nonce().map_err(|error| ConnectError::Sasl(error.into()))?;
        let mut stream = stream;
        Ok(sasl::log_in(&mut stream, credentials, &self.client_id, &nonce).await?)
    }

    async fn all(&self, address: SocketAddr, node: &str) -> Result<Box<dyn Stream>, ConnectError> {
        self.within(async {
            let mut stream = self.encrypt(self.tcp(address).await?, node).await?;
            self.log_in(&mut *stream).await?;
            Ok(stream)
        })
        .await
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

/// Makes connections for librdkafka.
pub(crate) struct Relay {
    dialer: Arc<Dialer>,
    runtime: Handle,
    /// Our ends of sockets that librdkafka has, by the number of its end.
    ends: Mutex<HashMap<RawFd, StdUnixStream>>,
    failures: Arc<Mutex<Failures>>,
}

impl Relay {
    /// Tasks run in `runtime`.
    pub(crate) fn new(dialer: Arc<Dialer>, runtime: Handle) -> Self {
        Self { dialer, runtime, ends: Mutex::default(), failures: Arc::default() }
    }
}

impl Connect for Relay {
    fn socket(&self) -> io::Result<OwnedFd> {
        let (theirs, ours) = StdUnixStream::pair()?;
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        ends.insert(theirs.as_raw_fd(), ours);
        Ok(theirs.into())
    }

    fn connect(&self, socket: RawFd, address: SocketAddr, node: &str) -> io::Result<()> {
        let ours = self.ends.lock().unwrap_or_else(PoisonError::into_inner).remove(&socket);
        let ours = ours.ok_or(io::ErrorKind::NotConnected)?;
        ours.set_nonblocking(true)?;
        let (dialer, node) = (Arc::clone(&self.dialer), node.to_owned());
        let failures = Arc::clone(&self.failures);
        self.runtime.spawn(async move {
            match dialer.all(address, &node).await {
                Ok(stream) => {
                    failures.lock().unwrap_or_else(PoisonError::into_inner).clear();
                    // How it ends librdkafka sees by itself.
                    drop(pass_on(stream, ours).await);
                }
                Err(error) => {
                    let times = failures.lock().unwrap_or_else(PoisonError::into_inner).add();
                    if let Some(times) = times {
                        tracing::error!(broker = node, %error, times, "cannot connect to Kafka; trying again");
                    }
                }
            }
        });
        Ok(())
    }
}

/// Passes bytes on in both directions until one of the ends is closed.
async fn pass_on(mut stream: Box<dyn Stream>, ours: StdUnixStream) -> io::Result<()> {
    let mut ours = UnixStream::from_std(ours)?;
    tokio::io::copy_bidirectional_with_sizes(&mut ours, &mut stream, 64 << 10, 16 << 10).await?;
    Ok(())
}
