//! Sockets that listen: binding an address, and accepting connections.

use super::ACCEPT_PAUSE;
use super::bind::{Family, IpPlace, UnixName, UnixPlace, refused};
use crate::route::Stream;
use rustix::net::{SocketType, listen, sockopt};
use std::fmt;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};

/// Connections that the kernel keeps until they are accepted; it takes `net.core.somaxconn` instead if that is less, as
/// it does for Go.
const BACKLOG: i32 = 4096;

/// Time without bytes after which the kernel asks a client of TCP whether it is still there, and time between two such
/// probes. Together with [`PROBES`] as in Go: a client that vanished without a word is gone two and a half minutes later.
const PROBE_INTERVAL: Duration = Duration::from_secs(15);

/// Probes without an answer after which a connection is broken.
const PROBES: u32 = 9;

/// An address to listen on, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A name or address and a port.
    Tcp {
        /// A name, or an address without brackets; empty for all addresses of this machine. See [`IpPlace`].
        host: String,
        /// The port; 0 lets the kernel choose one.
        port: u16,
    },
    /// A unix socket.
    Unix {
        /// Its path.
        path: PathBuf,
        /// The permissions of its name, as `0o740`. Connecting needs the right to write.
        mode: u32,
    },
}

impl ListenAddress {
    /// Reads `host:port`, with IPv6 addresses in brackets; `:port` is that port of all addresses.
    ///
    /// # Errors
    ///
    /// The mistake: the end of the sentence "`host` is …; ".
    pub fn parse_tcp(text: &str) -> Result<Self, String> {
        let expected = "expected `host:port`, as in `localhost:9000`";
        let (host, port) = text.rsplit_once(':').ok_or(expected)?;
        let Ok(port) = port.parse() else {
            let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            let more = if is_number { "; ports go up to 65535" } else { "" };
            return Err(format!("{expected}{more}"));
        };
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let host = match bare {
            Some(address) => address,
            None if host.parse::<Ipv6Addr>().is_ok() => {
                return Err(format!(
                    "expected `host:port` with brackets around an IPv6 address: `[{host}]:{port}`"
                ));
            }
            None if host == "*" => {
                return Err(format!("`*` is no address: write `0.0.0.0:{port}` or `:{port}`"));
            }
            None if host.contains([':', '/', ' ']) => return Err(expected.to_owned()),
            None => host,
        };
        Ok(Self::Tcp { host: host.to_owned(), port })
    }
}

/// The address of a socket that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundAddress {
    /// Address and port.
    Tcp(SocketAddr),
    /// Path of a unix socket.
    Unix(PathBuf),
}

impl fmt::Display for BoundAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(out),
            Self::Unix(path) => write!(out, "unix://{}", path.display()),
        }
    }
}

/// The address of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Address and port.
    Tcp(SocketAddr),
    /// A process of this machine, over a unix socket.
    Unix,
}

impl Peer {
    /// Whether the client is on this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix => true,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(out),
            Self::Unix => out.write_str("a client of the unix socket"),
        }
    }
}

/// Why an address cannot be listened on. All are mistakes of the configuration or of the machine.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The name of the host has no address.
    #[error("`{host}` has no address ({source})")]
    Resolve {
        /// The name.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// Another process listens there.
    #[error("cannot listen on {address}: another input or another process does already")]
    InUse {
        /// The address.
        address: BoundAddress,
    },
    /// The address cannot be used: it is none of this machine's, or there is no permission.
    #[error("cannot listen on {address} ({source})")]
    Bind {
        /// The address.
        address: BoundAddress,
        /// Why.
        source: io::Error,
    },
    /// A file is where the socket should be.
    #[error("cannot listen on {}: it exists and is not a socket", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
}

/// A connection that was accepted, and the client's address.
pub type AcceptFuture<'a> =
    Pin<Box<dyn Future<Output = io::Result<(Box<dyn Stream>, Peer)>> + Send + 'a>>;

/// Accepts connections: a socket, or a simulated one.
pub trait Accept: Send + Sync + fmt::Debug {
    /// Waits for the next connection. May be dropped while it waits.
    fn accept(&self) -> AcceptFuture<'_>;
}

/// A socket that listens. Dropping it closes it, and removes the name of a unix socket that it has bound itself.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: BoundAddress,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        /// For its end only.
        _name: Option<UnixName>,
    },
    Other(Box<dyn Accept>),
}

impl Listener {
    /// Binds an address. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// The address cannot be used.
    pub async fn bind(address: &ListenAddress) -> Result<Self, ListenError> {
        match address {
            ListenAddress::Tcp { host, port } => {
                let place = IpPlace::resolve(host, *port, Family::Any).await?;
                Self::bind_tcp(&place)
            }
            ListenAddress::Unix { path, mode } => {
                let place = UnixPlace { path: path.clone(), mode: Some(*mode), group: None };
                Self::bind_unix(&place)
            }
        }
    }

    /// Binds an address that was looked up. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// The address cannot be used.
    pub fn bind_tcp(place: &IpPlace) -> Result<Self, ListenError> {
        let fails = |source| refused(BoundAddress::Tcp(place.address), source);
        let socket = place.bind(SocketType::STREAM)?;
        listen(&socket, BACKLOG).map_err(|error| fails(error.into()))?;
        Self::from_tcp(socket.into()).map_err(fails)
    }

    /// Binds a unix socket. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// The path cannot be used.
    pub fn bind_unix(place: &UnixPlace) -> Result<Self, ListenError> {
        let fails = |source| refused(BoundAddress::Unix(place.path.clone()), source);
        let (socket, name) = place.bind(SocketType::STREAM)?;
        listen(&socket, BACKLOG).map_err(|error| fails(error.into()))?;
        let listener = UnixListener::from_std(socket.into()).map_err(fails)?;
        let socket = Socket::Unix { listener, _name: Some(name) };
        Ok(Self { socket, address: BoundAddress::Unix(place.path.clone()) })
    }

    /// A TCP socket that listens already, from systemd. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// It is not a TCP socket that listens.
    pub fn from_tcp(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = BoundAddress::Tcp(listener.local_addr()?);
        if let Err(error) = probe_clients(&listener) {
            tracing::debug!(%address, %error, "a client that vanishes without a word stays connected");
        }
        Ok(Self { socket: Socket::Tcp(TcpListener::from_std(listener)?), address })
    }

    /// A unix socket that listens already, from systemd, which keeps its name. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// It is not a unix socket that listens.
    pub fn from_unix(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let path = address.as_pathname().map(PathBuf::from).unwrap_or_default();
        let socket = Socket::Unix { listener: UnixListener::from_std(listener)?, _name: None };
        Ok(Self { socket, address: BoundAddress::Unix(path) })
    }

    /// Something else that accepts connections.
    pub fn over(accept: Box<dyn Accept>, address: BoundAddress) -> Self {
        Self { socket: Socket::Other(accept), address }
    }

    /// Where it listens; with the real port if that of the settings is 0.
    pub fn address(&self) -> &BoundAddress {
        &self.address
    }

    /// Waits for the next connection. Failures are logged, and tried again after a pause. May be dropped while it waits.
    pub async fn accept(&self) -> (Box<dyn Stream>, Peer) {
        loop {
            match self.try_accept().await {
                Ok(accepted) => return accepted,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                    tracing::debug!(address = %self.address, %error, "a client left before it was accepted");
                }
                Err(error) => {
                    tracing::warn!(address = %self.address, %error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    pub(super) async fn try_accept(&self) -> io::Result<(Box<dyn Stream>, Peer)> {
        match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Answers are written at once; waiting for more gains nothing.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "answers may be a little late");
                }
                // A socket of both versions shows clients of IPv4 as `::ffff:192.0.2.1`; Go does not.
                let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                Ok((Box::new(stream), Peer::Tcp(peer)))
            }
            Socket::Unix { listener, .. } => Ok((Box::new(listener.accept().await?.0), Peer::Unix)),
            Socket::Other(accept) => accept.accept().await,
        }
    }
}

/// Makes the kernel find out about clients that are gone without a word. Connections inherit it from their listener.
fn probe_clients(listener: &std::net::TcpListener) -> io::Result<()> {
    sockopt::set_socket_keepalive(listener, true)?;
    sockopt::set_tcp_keepidle(listener, PROBE_INTERVAL)?;
    sockopt::set_tcp_keepintvl(listener, PROBE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(listener, PROBES)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_vanishes_without_a_word_is_noticed_as_in_go() {
        let address = ListenAddress::parse_tcp("127.0.0.1:0").unwrap();
        let listener = Listener::bind(&address).await.unwrap();
        let (Socket::Tcp(socket), BoundAddress::Tcp(address)) =
            (&listener.socket, &listener.address)
        else {
            unreachable!("it is TCP")
        };
        let (_client, accepted) =
            tokio::join!(tokio::net::TcpStream::connect(address), socket.accept());
        let (connection, _) = accepted.unwrap();
        assert!(sockopt::socket_keepalive(&connection).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&connection).unwrap(), Duration::from_secs(15));
        assert_eq!(sockopt::tcp_keepintvl(&connection).unwrap(), Duration::from_secs(15));
        assert_eq!(sockopt::tcp_keepcnt(&connection).unwrap(), 9);
    }

    #[test]
    fn hosts_with_ports_are_read() {
        let tcp = |host: &str, port| Ok(ListenAddress::Tcp { host: host.to_owned(), port });
        assert_eq!(ListenAddress::parse_tcp("localhost:9000"), tcp("localhost", 9000));
        assert_eq!(ListenAddress::parse_tcp(":9000"), tcp("", 9000));
        assert_eq!(ListenAddress::parse_tcp("[::]:0"), tcp("::", 0));
        for wrong in ["", "9000", "localhost", "::1:9000", "a b:1", "http://a:1", "a:70000"] {
            let error = ListenAddress::parse_tcp(wrong).unwrap_err();
            assert!(error.starts_with("expected `host:port`"), "{wrong}");
        }
        for (wrong, end) in [
            ("a:70000", "; ports go up to 65535"),
            ("a:http-alt", "as in `localhost:9000`"),
            ("::1:9100", "around an IPv6 address: `[::1]:9100`"),
            ("*:514", "`*` is no address: write `0.0.0.0:514` or `:514`"),
        ] {
            let error = ListenAddress::parse_tcp(wrong).unwrap_err();
            assert!(error.ends_with(end), "{error}");
        }
    }

    #[tokio::test]
    async fn a_socket_that_listens_already_is_taken_over() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let listener = Listener::from_tcp(socket).unwrap();
        assert_eq!(*listener.address(), BoundAddress::Tcp(address));
        let (client, (_, peer)) =
            tokio::join!(tokio::net::TcpStream::connect(address), listener.accept());
        assert_eq!(peer, Peer::Tcp(client.unwrap().local_addr().unwrap()));
        assert!(peer.is_local());
    }
}
