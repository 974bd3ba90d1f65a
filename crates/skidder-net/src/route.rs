//! The way to a server: names to addresses, a proxy if there is one, TLS.

use crate::first::first_of;
use crate::{HttpProxy, SocksProxy, Steps};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use skidder_config::Section;
use skidder_tls::{TlsClient, VerificationMode, handshake_words};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Head start of an address before the next one is tried in parallel, as in Go.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(300);

/// Why a server cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The name cannot be looked up.
    #[error("cannot resolve `{name}`: {source}")]
    Resolve {
        /// The name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The name has no address.
    #[error("`{0}` has no address")]
    NoAddress(String),
    /// No address takes a connection; this is the last one tried.
    #[error("cannot connect to {address}: {source}{}", connect_remedy(.source))]
    Connect {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The proxy does not connect us.
    #[error("the proxy `{proxy}` {what}")]
    Proxy {
        /// Its URL, without credentials.
        proxy: String,
        /// What it did: ends the sentence.
        what: String,
    },
    /// The handshake failed.
    #[error("no TLS connection with `{name}`: {}{}", handshake_words(.source), tls_remedy(.source, *.without_tls))]
    Tls {
        /// The server's name.
        name: String,
        /// Why.
        source: io::Error,
        /// What to write if the server has none.
        without_tls: WithoutTls,
    },
    /// The name cannot be checked against a certificate.
    #[error("`{0}` is no name that a certificate can have")]
    Name(String),
    /// No connection in time.
    #[error("no connection within `timeout` ({} s)", .0.as_secs_f64())]
    Timeout(Duration),
    /// No answer to the handshake in time.
    #[error(
        "no answer to the TLS handshake within `timeout` ({} s); does this port speak TLS? If not, {}",
        .0.as_secs_f64(), .1
    )]
    NoHandshake(Duration, WithoutTls),
}

/// What the settings of a server say for a connection without TLS: a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutTls {
    /// Another scheme in a URL, or no `ssl`.
    Http,
    /// The same for Redis.
    Redis,
    /// Another scheme in a URL.
    Mqtt,
    /// No `ssl`: there are no URLs.
    NoSsl,
}

impl fmt::Display for WithoutTls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Http => "use `http://` in place of `https://`, or leave `ssl` out",
            Self::Redis => "use `redis://` in place of `rediss://`, or leave `ssl` out",
            Self::Mqtt => "use `tcp://` in place of `ssl://`",
            Self::NoSsl => "leave `ssl` out, or set `ssl.enabled: false`",
        })
    }
}

impl WithoutTls {
    /// The opposite: what to write for a connection with TLS.
    pub fn with_tls(self) -> &'static str {
        match self {
            Self::Http => "use `https://` in place of `http://`",
            Self::Redis => {
                "use `rediss://` in `hosts`, or leave the scheme out and set `ssl.enabled: true`"
            }
            Self::Mqtt => "use `ssl://` in `hosts`",
            Self::NoSsl => {
                "set `ssl.enabled: true`, and `ssl.certificate_authorities` for its certificate"
            }
        }
    }

    /// Warns that `ssl`, which is set, does nothing: no entry of `hosts` has a scheme with TLS, which decides, as in Filebeat.
    pub fn warn_of_plain(self, section: &Section<'_>) {
        let scheme = match self {
            Self::Http => "https://",
            Self::Redis => "rediss://",
            Self::Mqtt => "ssl://",
            // There are no schemes.
            Self::NoSsl => return,
        };
        let message =
            format!("`ssl` does nothing: no host begins with `{scheme}`, and nothing is encrypted");
        section.warning("ssl", message, format!("use `{scheme}` in `hosts`, or remove `ssl`"));
    }
}

/// What a server without an answer to a connection without TLS may want: an alert of TLS makes it certain, and is the whole
/// error; of a server that only hung up it is a remedy, for use after the error.
pub fn plain_remedy(settings: WithoutTls, is_certain: bool) -> String {
    let remedy = settings.with_tls();
    if is_certain {
        format!("this port speaks TLS: {remedy}")
    } else {
        format!("; if this port speaks TLS, {remedy}")
    }
}

/// Whether the other side closed the connection, with or without having read what it was sent.
pub fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    )
}

/// How to fix a failed connection, for use after the error; empty if unknown.
pub fn connect_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "; is the server running, and is this its port?",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "; is the address right, and is there a way to it?"
        }
        _ => "",
    }
}

/// The same for TLS; `without_tls` is what to write if the server has none.
pub fn tls_remedy(error: &io::Error, without_tls: WithoutTls) -> String {
    use rustls::CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext,
        UnknownIssuer,
    };
    if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) {
        return "; does this port speak TLS, and does the server want `ssl.certificate` and `ssl.key`?"
            .to_owned();
    }
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    if let Some(rustls::Error::InvalidMessage(_)) = error {
        return format!("; this port does not speak TLS: {without_tls}");
    }
    let remedy = match error {
        Some(rustls::Error::InvalidCertificate(error)) => match error {
            BadSignature => {
                "; another authority of the same name signed it: put the one that did into `ssl.certificate_authorities`"
            }
            UnknownIssuer => {
                "; put the authority's certificate into `ssl.certificate_authorities` (the server's own, if it signed \
                 itself), or its SHA-256 into `ssl.ca_trusted_fingerprint`"
            }
            NotValidForName | NotValidForNameContext { .. } => {
                "; use a name in `hosts` that the certificate has, or `ssl.verification_mode: certificate`"
            }
            Expired | ExpiredContext { .. } => {
                "; the server needs a new certificate, or one of the clocks is wrong"
            }
            error if skidder_tls::is_authority_as_server(error) => {
                "; the certificate calls itself an authority's, as self-signed ones do: put it into \
                 `ssl.certificate_authorities`"
            }
            _ => "",
        },
        Some(rustls::Error::AlertReceived(_)) => {
            "; see the server's log; it may want `ssl.certificate` and `ssl.key`, or other `ssl.supported_protocols`"
        }
        _ => "",
    };
    remedy.to_owned()
}

/// Whether bytes that a server sent first are an alert of TLS (RFC 8446, 5.1): it was spoken to without TLS.
pub fn is_tls_alert(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x15, 0x03])
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

/// A proxy on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// SOCKS5.
    Socks(SocksProxy),
    /// HTTP: a tunnel for encrypted connections; other requests go to it as they are.
    Http(HttpProxy),
}

impl fmt::Display for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socks(proxy) => proxy.fmt(out),
            Self::Http(proxy) => proxy.fmt(out),
        }
    }
}

/// A server with the way to it.
#[derive(Clone, Debug)]
pub struct Route {
    /// The server.
    pub host: Host,
    /// A proxy before it.
    pub proxy: Option<Arc<Proxy>>,
    /// TLS, unless the connection is plain.
    pub tls: Option<Arc<TlsClient>>,
    /// The connection is for HTTP/2: TLS offers `h2` (ALPN, RFC 9113, 3.2), and a proxy of HTTP opens a tunnel for plain
    /// connections, too.
    pub http2: bool,
    /// What the settings say for a connection without TLS.
    pub without_tls: WithoutTls,
}

/// An open connection, whatever it is made of.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Route {
    /// Opens a connection within `timeout`.
    pub async fn open(&self, timeout: Duration) -> Result<Box<dyn Stream>, NetError> {
        let started = Instant::now();
        let dialling = async {
            Ok(match &self.proxy {
                Some(proxy) => self.dial_by(proxy).await?,
                None => Box::new(dial(&resolve(&self.host.name, self.host.port).await?).await?),
            })
        };
        let stream = within(timeout, dialling).await?;
        let Some(tls) = &self.tls else { return Ok(stream) };
        let left = timeout.saturating_sub(started.elapsed());
        match self.encrypt(stream, tls, left).await {
            Err(NetError::NoHandshake(_, remedy)) => Err(NetError::NoHandshake(timeout, remedy)),
            encrypted => Ok(Box::new(encrypted?)),
        }
    }

    /// TLS over a connection to the server, within `timeout`.
    async fn encrypt<S: Stream>(
        &self,
        stream: S,
        tls: &TlsClient,
        timeout: Duration,
    ) -> Result<TlsStream<S>, NetError> {
        let session = self.session(tls);
        let encrypting = encrypt(stream, &self.host.name, &session, self.without_tls);
        let late = Err(NetError::NoHandshake(timeout, self.without_tls));
        tokio::time::timeout(timeout, encrypting).await.unwrap_or(late)
    }

    /// The TLS settings for the next connection.
    fn session(&self, tls: &TlsClient) -> Arc<ClientConfig> {
        let mut config = tls.config();
        if self.http2 {
            Arc::make_mut(&mut config).alpn_protocols = vec![b"h2".to_vec()];
        }
        config
    }

    /// A connection by a proxy, not yet encrypted.
    async fn dial_by(&self, proxy: &Proxy) -> Result<Box<dyn Stream>, NetError> {
        Ok(match proxy {
            Proxy::Socks(proxy) => Box::new(proxy.dial(&self.host).await?),
            Proxy::Http(proxy) if self.tls.is_some() || self.http2 => {
                proxy.tunnel(&self.host).await?
            }
            Proxy::Http(proxy) => proxy.open().await?,
        })
    }

    /// Opens a connection and reports each step of it; `None` if one failed.
    pub async fn check(&self, steps: &mut Steps<'_>, timeout: Duration) -> Option<Box<dyn Stream>> {
        steps.line(1, "connection...");
        steps.ok(2, "parse host", "");
        let stream: Box<dyn Stream> = match &self.proxy {
            Some(proxy) => {
                let dialled = within(timeout, self.dial_by(proxy)).await;
                steps.step(2, &format!("dial up by the proxy {proxy}"), dialled)?
            }
            None => {
                let resolved = within(timeout, resolve(&self.host.name, self.host.port)).await;
                let addresses = steps.step(2, "dns lookup", resolved)?;
                let shown: Vec<String> =
                    addresses.iter().map(|address| address.ip().to_string()).collect();
                steps.line(2, &format!("addresses: {}", shown.join(", ")));
                Box::new(steps.step(2, "dial up", within(timeout, dial(&addresses)).await)?)
            }
        };
        let Some(tls) = &self.tls else {
            steps.warn(1, "TLS", "secure connection disabled");
            return Some(stream);
        };
        steps.line(1, "TLS...");
        match tls.settings().verification_mode {
            VerificationMode::None => {
                steps.warn(2, "security", "the server's certificate is not checked");
            }
            VerificationMode::Certificate => {
                steps.warn(2, "security", "the name in the certificate is not checked");
            }
            VerificationMode::Full => {
                steps.ok(2, "security", "server's certificate chain verification is enabled");
            }
        }
        let encrypted = self.encrypt(stream, tls, timeout).await;
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
pub async fn resolve(name: &str, port: u16) -> Result<Vec<SocketAddr>, NetError> {
    let found = tokio::net::lookup_host((name, port)).await;
    let addresses: Vec<SocketAddr> =
        found.map_err(|source| NetError::Resolve { name: name.to_owned(), source })?.collect();
    if addresses.is_empty() {
        return Err(NetError::NoAddress(name.to_owned()));
    }
    Ok(addresses)
}

/// A TCP connection to the address that takes one first.
pub async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, NetError> {
    let none = NetError::NoAddress(String::new());
    first_of(addresses.iter().copied(), NEXT_ADDRESS_AFTER, none, dial_one).await
}

async fn dial_one(address: SocketAddr) -> Result<TcpStream, NetError> {
    crate::tcp::connect(address).await.map_err(|source| NetError::Connect { address, source })
}

/// TLS over a connection, to the server of this name.
pub async fn encrypt<S: Stream>(
    stream: S,
    name: &str,
    tls: &Arc<ClientConfig>,
    without_tls: WithoutTls,
) -> Result<TlsStream<S>, NetError> {
    let server =
        ServerName::try_from(name.to_owned()).map_err(|_| NetError::Name(name.to_owned()))?;
    TlsConnector::from(Arc::clone(tls))
        .connect(server, stream)
        .await
        .map_err(|source| NetError::Tls { name: name.to_owned(), source, without_tls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_of_another_authority_has_a_remedy() {
        for wrong in
            [rustls::CertificateError::BadSignature, rustls::CertificateError::UnknownIssuer]
        {
            let error = rustls::Error::InvalidCertificate(wrong);
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            let remedy = tls_remedy(&error, WithoutTls::Http);
            assert!(remedy.contains("`ssl.certificate_authorities`"), "{remedy}");
        }
    }

    #[test]
    fn a_port_with_tls_has_the_remedy_of_its_settings() {
        for (settings, expected) in [
            (WithoutTls::Http, "use `https://`"),
            (WithoutTls::Redis, "use `rediss://`"),
            (WithoutTls::Mqtt, "use `ssl://`"),
            (WithoutTls::NoSsl, "set `ssl.enabled: true`"),
        ] {
            let certain = plain_remedy(settings, true);
            assert!(certain.starts_with(&format!("this port speaks TLS: {expected}")), "{certain}");
            let perhaps = plain_remedy(settings, false);
            let expected = format!("; if this port speaks TLS, {expected}");
            assert!(perhaps.starts_with(&expected), "{perhaps}");
        }
    }

    #[test]
    fn ssl_that_does_nothing_is_a_warning_where_schemes_decide() {
        let settings = skidder_config::Settings::parse("x", "ssl: {enabled: true}").expect("YAML");
        for (without_tls, expected) in [
            (WithoutTls::Redis, "no host begins with `rediss://`"),
            (WithoutTls::Mqtt, "no host begins with `ssl://`"),
            (WithoutTls::NoSsl, ""),
        ] {
            let problems = skidder_config::Problems::new();
            let root = settings.root(&problems);
            without_tls.warn_of_plain(&root);
            root.skip();
            let said = problems.to_string();
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{said}");
        }
    }

    #[test]
    fn a_port_without_tls_has_the_remedy_of_its_settings() {
        use rustls::InvalidMessage;
        let source = || {
            let error = rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType);
            io::Error::new(io::ErrorKind::InvalidData, error)
        };
        for (without_tls, expected) in [
            (WithoutTls::Http, "use `http://` in place of `https://`, or leave `ssl` out"),
            (WithoutTls::Redis, "use `redis://` in place of `rediss://`, or leave `ssl` out"),
            (WithoutTls::Mqtt, "use `tcp://` in place of `ssl://`"),
            (WithoutTls::NoSsl, "leave `ssl` out, or set `ssl.enabled: false`"),
        ] {
            let name = "a".to_owned();
            let errors = [
                NetError::Tls { name, source: source(), without_tls },
                NetError::NoHandshake(Duration::from_secs(1), without_tls),
            ];
            for error in errors.map(|error| error.to_string()) {
                assert!(error.ends_with(expected), "{error}");
            }
        }
    }
}
