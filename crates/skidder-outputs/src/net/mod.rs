//! The way to a server: names to addresses, a SOCKS5 proxy if there is one, TLS.

pub(crate) mod address;
mod read;
mod socks;

pub(crate) use read::{read_hosts, read_tls};
pub use socks::Proxy;

use crate::check::Steps;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use skidder_tls::VerificationMode;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long an address has the wire for itself before the next one is tried beside it, as in Go.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(300);

/// Why a server cannot be reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetError {
    #[error("cannot resolve `{name}`: {source}")]
    Resolve { name: String, source: io::Error },
    #[error("`{0}` has no address")]
    NoAddress(String),
    #[error("cannot connect to {address}: {source}")]
    Connect { address: SocketAddr, source: io::Error },
    #[error("the proxy `{proxy}` {what}")]
    Proxy { proxy: String, what: String },
    #[error("no TLS connection with `{name}`: {source}")]
    Tls { name: String, source: io::Error },
    #[error("`{0}` is no name that a certificate can have")]
    Name(String),
    #[error("no connection within `timeout` ({} s)", .0.as_secs_f64())]
    Timeout(Duration),
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name or address, IPv6 without brackets.
    pub name: String,
    /// TCP port.
    pub port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(out, "[{}]:{}", self.name, self.port)
        } else {
            write!(out, "{}:{}", self.name, self.port)
        }
    }
}

/// What TLS needs, and what is checked.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    pub(crate) client: Arc<ClientConfig>,
    pub(crate) mode: VerificationMode,
}

/// A server with the way to it.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) host: Host,
    pub(crate) proxy: Option<Arc<Proxy>>,
    pub(crate) tls: Option<Tls>,
}

/// An open connection, whatever it is made of.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Route {
    /// Opens a connection within `timeout`.
    pub(crate) async fn open(&self, timeout: Duration) -> Result<Box<dyn Stream>, NetError> {
        let opening = async {
            let tcp = match &self.proxy {
                Some(proxy) => proxy.dial(&self.host).await?,
                None => dial(&resolve(&self.host.name, self.host.port).await?).await?,
            };
            Ok(match &self.tls {
                None => Box::new(tcp) as Box<dyn Stream>,
                Some(tls) => Box::new(encrypt(tcp, &self.host.name, &tls.client).await?),
            })
        };
        within(timeout, opening).await
    }

    /// Opens a connection and tells each step of it; `None` if one failed.
    pub(crate) async fn check(
        &self,
        steps: &mut Steps<'_>,
        timeout: Duration,
    ) -> Option<Box<dyn Stream>> {
        steps.line(1, "connection...");
        steps.ok(2, "parse host", "");
        let tcp = match &self.proxy {
            Some(proxy) => {
                let dialled = within(timeout, proxy.dial(&self.host)).await;
                steps.step(2, &format!("dial up by the proxy {proxy}"), dialled)?
            }
            None => {
                let resolved = within(timeout, resolve(&self.host.name, self.host.port)).await;
                let addresses = steps.step(2, "dns lookup", resolved)?;
                let shown: Vec<String> =
                    addresses.iter().map(|address| address.ip().to_string()).collect();
                steps.line(2, &format!("addresses: {}", shown.join(", ")));
                steps.step(2, "dial up", within(timeout, dial(&addresses)).await)?
            }
        };
        let Some(tls) = &self.tls else {
            steps.warn(1, "TLS", "secure connection disabled");
            return Some(Box::new(tcp));
        };
        steps.line(1, "TLS...");
        if tls.mode == VerificationMode::None {
            steps.warn(2, "security", "the server's certificate is not checked");
        } else if tls.mode == VerificationMode::Certificate {
            steps.warn(2, "security", "the name in the certificate is not checked");
        } else {
            steps.ok(2, "security", "server's certificate chain verification is enabled");
        }
        let encrypted = within(timeout, encrypt(tcp, &self.host.name, &tls.client)).await;
        let stream = steps.step(2, "handshake", encrypted)?;
        let session = stream.get_ref().1;
        if let Some(version) = session.protocol_version().and_then(|version| version.as_str()) {
            steps.line(2, &format!("TLS version: {version}"));
        }
        if let Some(suite) = session.negotiated_cipher_suite() {
            steps.line(2, &format!("cipher suite: {:?}", suite.suite()));
        }
        Some(Box::new(stream))
    }
}

/// Runs `work` for at most `timeout`.
async fn within<T>(
    timeout: Duration,
    work: impl Future<Output = Result<T, NetError>>,
) -> Result<T, NetError> {
    tokio::time::timeout(timeout, work).await.unwrap_or(Err(NetError::Timeout(timeout)))
}

/// The addresses of a host.
pub(crate) async fn resolve(name: &str, port: u16) -> Result<Vec<SocketAddr>, NetError> {
    let found = tokio::net::lookup_host((name, port)).await;
    let addresses: Vec<SocketAddr> =
        found.map_err(|source| NetError::Resolve { name: name.to_owned(), source })?.collect();
    if addresses.is_empty() {
        return Err(NetError::NoAddress(name.to_owned()));
    }
    Ok(addresses)
}

/// A TCP connection to the address that takes one first (RFC 8305 in its simplest form): one that
/// swallows packets does not hide those behind it.
pub(crate) async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, NetError> {
    let mut rest = addresses.iter().copied();
    let mut attempts = JoinSet::new();
    let mut last = NetError::NoAddress(String::new());
    loop {
        let next = rest.next();
        if let Some(address) = next {
            attempts.spawn(dial_one(address));
        }
        let pause = async {
            match next {
                Some(_) => tokio::time::sleep(NEXT_ADDRESS_AFTER).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = pause => {}
            ended = attempts.join_next() => match ended {
                Some(Ok(Ok(tcp))) => return Ok(tcp),
                Some(Ok(Err(error))) => last = error,
                Some(Err(error)) if error.is_panic() => {
                    std::panic::resume_unwind(error.into_panic())
                }
                Some(Err(_)) => {}
                None => return Err(last),
            },
        }
    }
}

async fn dial_one(address: SocketAddr) -> Result<TcpStream, NetError> {
    let failed = |source| NetError::Connect { address, source };
    let tcp = TcpStream::connect(address).await.map_err(failed)?;
    // A request ends with a short piece that must not wait for an acknowledgement. The send buffer is
    // left to the kernel: setting its size would end its own tuning.
    tcp.set_nodelay(true).map_err(failed)?;
    Ok(tcp)
}

/// TLS over a TCP connection, to the server of this name.
pub(crate) async fn encrypt(
    tcp: TcpStream,
    name: &str,
    tls: &Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, NetError> {
    let server =
        ServerName::try_from(name.to_owned()).map_err(|_| NetError::Name(name.to_owned()))?;
    TlsConnector::from(Arc::clone(tls))
        .connect(server, tcp)
        .await
        .map_err(|source| NetError::Tls { name: name.to_owned(), source })
}
