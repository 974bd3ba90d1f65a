//! Binding the endpoint's address. A mistake here is one of the configuration and stops the start.

use super::config::Endpoint;
use super::{ServeError, Stream};
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

/// Mode of a Unix socket, as Filebeat sets it. Connecting needs the right to write: the owner only.
const SOCKET_MODE: Mode = Mode::from_raw_mode(0o740);
/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 128;

/// Where the endpoint listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundAddress {
    /// Address and port.
    Tcp(SocketAddr),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for BoundAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(formatter, "http://{address}"),
            Self::Unix(path) => write!(formatter, "unix://{}", path.display()),
        }
    }
}

/// A bound socket. Dropping it closes it, and removes the name of a Unix socket.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        /// For its end only.
        _name: SocketName,
    },
}

impl Listener {
    pub(super) async fn bind(endpoint: &Endpoint) -> Result<(Self, BoundAddress), ServeError> {
        match endpoint {
            Endpoint::Tcp { host, port } => bind_tcp(host, *port).await,
            Endpoint::Unix(path) => bind_unix(path),
        }
    }

    /// The next connection, and whether who made it is on this machine.
    pub(super) async fn accept(&self) -> io::Result<(Box<dyn Stream>, bool)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Answers are written at once; waiting for more gains nothing.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "an answer over HTTP may be a little late");
                }
                Ok((Box::new(stream), peer.ip().to_canonical().is_loopback()))
            }
            Self::Unix { listener, .. } => Ok((Box::new(listener.accept().await?.0), true)),
        }
    }
}

async fn bind_tcp(host: &str, port: u16) -> Result<(Listener, BoundAddress), ServeError> {
    let resolve = |source| ServeError::Resolve { host: host.to_owned(), source };
    let mut addresses: Vec<SocketAddr> =
        lookup_host((host, port)).await.map_err(resolve)?.collect();
    // Filebeat listens on one address and prefers version 4; `localhost` has both.
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let Some(&address) = addresses.first() else {
        return Err(resolve(io::ErrorKind::NotFound.into()));
    };
    let listener = TcpListener::bind(address).await.map_err(|source| {
        let setting = match source.kind() {
            io::ErrorKind::AddrNotAvailable => "http.host",
            _ => "http.port",
        };
        refused(BoundAddress::Tcp(address), setting, source)
    })?;
    let real = listener.local_addr().unwrap_or(address);
    Ok((Listener::Tcp(listener), BoundAddress::Tcp(real)))
}

fn bind_unix(path: &Path) -> Result<(Listener, BoundAddress), ServeError> {
    let refused =
        |error: Errno| refused(BoundAddress::Unix(path.into()), "http.host", error.into());
    let address = SocketAddrUnix::new(path).map_err(refused)?;
    remove_stale(path, &address)?;
    let socket = unix_socket().map_err(refused)?;
    bind(&socket, &address).map_err(refused)?;
    let name = SocketName(path.to_owned());
    // Nobody can connect before `listen`, so the mode is right from the first connection on.
    chmod(path, SOCKET_MODE).map_err(refused)?;
    listen(&socket, BACKLOG).map_err(refused)?;
    let listener = UnixListener::from_std(socket.into()).map_err(|source| ServeError::Bind {
        address: BoundAddress::Unix(path.into()),
        setting: "http.host",
        source,
    })?;
    Ok((Listener::Unix { listener, _name: name }, BoundAddress::Unix(path.into())))
}

/// Removes the socket of a process that is gone. A socket that answers stays, and so does anything
/// that is not a socket.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> Result<(), ServeError> {
    let refused =
        |error: Errno| refused(BoundAddress::Unix(path.into()), "http.host", error.into());
    match lstat(path) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Socket => {}
        Ok(_) => return Err(ServeError::NotASocket { path: path.to_owned() }),
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

fn refused(address: BoundAddress, setting: &'static str, source: io::Error) -> ServeError {
    if source.kind() == io::ErrorKind::AddrInUse {
        ServeError::InUse { address, setting }
    } else {
        ServeError::Bind { address, setting, source }
    }
}

/// The name of a Unix socket in the file system; goes with the listener.
pub(super) struct SocketName(PathBuf);

impl Drop for SocketName {
    fn drop(&mut self) {
        if let Err(error) = unlink(&self.0) {
            tracing::debug!(path = %self.0.display(), %error, "the socket was gone already");
        }
    }
}
