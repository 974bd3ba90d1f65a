//! Sockets that listen: binding an address, and accepting connections.

use super::ACCEPT_PAUSE;
use crate::route::Stream;
use rustix::fs::{FileType, Mode, chmod, lstat, unlink};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, UnixListener, lookup_host};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 128;

/// An address to listen on, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A name or address and a port.
    Tcp {
        /// A name, or an address without brackets. Of several addresses of a name the first one of IPv4 is bound.
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
    /// Reads `host:port`, with IPv6 addresses in brackets; `:port` is that port of all addresses of IPv4.
    ///
    /// # Errors
    ///
    /// What is wrong: the end of the sentence "`host` is …; ".
    pub fn parse_tcp(text: &str) -> Result<Self, String> {
        let expected = "expected `host:port`, as in `localhost:9000`";
        let (host, port) = text.rsplit_once(':').ok_or(expected)?;
        let port = port.parse().map_err(|_| expected)?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let host = match bare {
            Some(address) => address,
            None if host.is_empty() => "0.0.0.0",
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
    #[error("cannot listen on {address}: another process does already")]
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

/// A socket that listens. Dropping it closes it, and removes the name of a unix socket.
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
        _name: SocketName,
    },
}

impl Listener {
    /// Binds an address. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// The address cannot be used.
    pub async fn bind(address: &ListenAddress) -> Result<Self, ListenError> {
        match address {
            ListenAddress::Tcp { host, port } => bind_tcp(host, *port).await,
            ListenAddress::Unix { path, mode } => bind_unix(path, *mode),
        }
    }

    /// A TCP socket that listens already, from systemd or from before a reload. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// It is not a TCP socket that listens.
    pub fn from_tcp(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = BoundAddress::Tcp(listener.local_addr()?);
        Ok(Self { socket: Socket::Tcp(TcpListener::from_std(listener)?), address })
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

    async fn try_accept(&self) -> io::Result<(Box<dyn Stream>, Peer)> {
        match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Answers are written at once; waiting for more gains nothing.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "answers may be a little late");
                }
                Ok((Box::new(stream), Peer::Tcp(peer)))
            }
            Socket::Unix { listener, .. } => Ok((Box::new(listener.accept().await?.0), Peer::Unix)),
        }
    }
}

async fn bind_tcp(host: &str, port: u16) -> Result<Listener, ListenError> {
    let resolve = |source| ListenError::Resolve { host: host.to_owned(), source };
    let mut addresses: Vec<SocketAddr> =
        lookup_host((host, port)).await.map_err(resolve)?.collect();
    // Filebeat listens on one address and prefers version 4; `localhost` has both.
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let Some(&address) = addresses.first() else {
        return Err(resolve(io::ErrorKind::NotFound.into()));
    };
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|source| refused(BoundAddress::Tcp(address), source))?;
    let real = listener.local_addr().unwrap_or(address);
    Ok(Listener { socket: Socket::Tcp(listener), address: BoundAddress::Tcp(real) })
}

fn bind_unix(path: &Path, mode: u32) -> Result<Listener, ListenError> {
    let refused = |error: Errno| refused(BoundAddress::Unix(path.into()), error.into());
    let address = SocketAddrUnix::new(path).map_err(refused)?;
    remove_stale(path, &address)?;
    let socket = unix_socket().map_err(refused)?;
    bind(&socket, &address).map_err(refused)?;
    let name = SocketName(path.to_owned());
    // Nobody can connect before `listen`, so the mode is right from the first connection on.
    chmod(path, Mode::from_raw_mode(mode)).map_err(refused)?;
    listen(&socket, BACKLOG).map_err(refused)?;
    let address = BoundAddress::Unix(path.into());
    let listener = UnixListener::from_std(socket.into())
        .map_err(|source| ListenError::Bind { address: address.clone(), source })?;
    Ok(Listener { socket: Socket::Unix { listener, _name: name }, address })
}

/// Removes the socket of a process that is gone. A socket that answers stays, and so does anything
/// that is not a socket.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> Result<(), ListenError> {
    let refused = |error: Errno| refused(BoundAddress::Unix(path.into()), error.into());
    match lstat(path) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Socket => {}
        Ok(_) => return Err(ListenError::NotASocket { path: path.to_owned() }),
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(refused(error)),
    }
    let probe = unix_socket().map_err(refused)?;
    match connect(&probe, address) {
        Err(Errno::CONNREFUSED) => unlink(path).map_err(refused),
        // Gone meanwhile.
        Err(Errno::NOENT) => Ok(()),
        Ok(()) | Err(Errno::AGAIN) => Err(refused(Errno::ADDRINUSE)),
        Err(error) => Err(refused(error)),
    }
}

fn unix_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

fn refused(address: BoundAddress, source: io::Error) -> ListenError {
    if source.kind() == io::ErrorKind::AddrInUse {
        ListenError::InUse { address }
    } else {
        ListenError::Bind { address, source }
    }
}

/// The name of a unix socket in the file system; goes with the listener.
#[derive(Debug)]
struct SocketName(PathBuf);

impl Drop for SocketName {
    fn drop(&mut self) {
        if let Err(error) = unlink(&self.0) {
            tracing::debug!(path = %self.0.display(), %error, "the socket was gone already");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_ports_are_read() {
        let tcp = |host: &str, port| Ok(ListenAddress::Tcp { host: host.to_owned(), port });
        assert_eq!(ListenAddress::parse_tcp("localhost:9000"), tcp("localhost", 9000));
        assert_eq!(ListenAddress::parse_tcp(":9000"), tcp("0.0.0.0", 9000));
        assert_eq!(ListenAddress::parse_tcp("[::]:0"), tcp("::", 0));
        for wrong in ["", "9000", "localhost", "::1:9000", "a b:1", "http://a:1", "a:70000"] {
            let error = ListenAddress::parse_tcp(wrong).unwrap_err();
            assert!(error.starts_with("expected `host:port`"), "{wrong}");
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
