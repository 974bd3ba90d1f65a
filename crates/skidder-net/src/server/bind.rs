//! Binding sockets, for streams and for datagrams, with the rules of Go for addresses.
//!
//! The rules are those of `net.Listen` with `network` `tcp` or `udp` (golang.org/src/net/ipsock_posix.go,
//! `favoriteAddrFamily`): an address that means "all of this machine" is bound for both IP versions with one socket, also
//! if it is written `0.0.0.0`; of several addresses of a name the first one of IPv4 is bound.

use super::listen::{BoundAddress, ListenError};
use rustix::fs::{FileType, Gid, Mode, chmod, chown, fchmod, lstat, unlink};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with, sockopt,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use tokio::net::lookup_host;

/// IP versions that may be bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Family {
    /// Both: `tcp` and `udp`.
    #[default]
    Any,
    /// IPv4 alone: `tcp4` and `udp4`.
    V4,
    /// IPv6 alone: `tcp6` and `udp6`.
    V6,
}

/// An address to bind, looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPlace {
    /// The address. All addresses of IPv6 stand for those of IPv4 as well, unless `family` is [`Family::V6`].
    pub address: SocketAddr,
    /// What may be bound.
    pub family: Family,
}

impl IpPlace {
    /// The addresses under which an already bound socket, as systemd passes it, is this one: `0.0.0.0`
    /// there and `:9000` here mean the same.
    pub fn passed_as(&self) -> Vec<BoundAddress> {
        let mut all = vec![BoundAddress::Tcp(self.address)];
        if self.family == Family::Any && self.address.ip().is_unspecified() {
            let ip = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            all.push(BoundAddress::Tcp(SocketAddr::new(ip, self.address.port())));
        }
        all
    }

    /// Looks up a host; an empty one stands for all addresses of this machine.
    ///
    /// # Errors
    ///
    /// [`ListenError::Resolve`]: the name has no address, or none of this family.
    pub async fn resolve(host: &str, port: u16, family: Family) -> Result<Self, ListenError> {
        let resolve = |source| ListenError::Resolve { host: host.to_owned(), source };
        if host.is_empty() {
            return Ok(Self::unspecified(port, family));
        }
        let found = lookup_host((host, port)).await.map_err(resolve)?;
        let fits = |address: &SocketAddr| match family {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        };
        let mut found: Vec<SocketAddr> = found.filter(fits).collect();
        found.sort_by_key(SocketAddr::is_ipv6);
        let Some(&address) = found.first() else {
            return Err(resolve(io::ErrorKind::NotFound.into()));
        };
        if address.ip().is_unspecified() {
            return Ok(Self::unspecified(port, family));
        }
        Ok(Self { address, family })
    }

    fn unspecified(port: u16, family: Family) -> Self {
        let ip = match family {
            Family::Any | Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        Self { address: SocketAddr::new(ip, port), family }
    }

    /// Binds a socket that does not block, without listening; a machine without IPv6 gets one of IPv4.
    ///
    /// # Errors
    ///
    /// The address cannot be used.
    pub fn bind(&self, kind: SocketType) -> Result<OwnedFd, ListenError> {
        match self.bind_one(self.address, kind) {
            Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL)
                if self.family == Family::Any && self.address.ip().is_unspecified() =>
            {
                let ip = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
                self.bind_one(SocketAddr::new(ip, self.address.port()), kind)
            }
            bound => bound,
        }
        .map_err(|error| refused(BoundAddress::Tcp(self.address), error.into()))
    }

    fn bind_one(&self, address: SocketAddr, kind: SocketType) -> Result<OwnedFd, Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, kind, flags, None)?;
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, self.family == Family::V6)?;
        }
        if kind == SocketType::STREAM {
            // Connections of an earlier run that are still closing do not hold the port.
            sockopt::set_socket_reuseaddr(&socket, true)?;
        }
        bind(&socket, &address)?;
        Ok(socket)
    }
}

/// A unix socket to bind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnixPlace {
    /// Its path.
    pub path: PathBuf,
    /// The permissions of its name, as `0o740`; those of the umask if unset. Connecting needs the right to write.
    pub mode: Option<u32>,
    /// The number of the group that owns it; the process's own if unset.
    pub group: Option<u32>,
}

impl UnixPlace {
    /// Binds a socket that does not block, without listening. Replaces the socket of a process that is gone.
    ///
    /// # Errors
    ///
    /// The path cannot be used.
    pub fn bind(&self, kind: SocketType) -> Result<(OwnedFd, UnixName), ListenError> {
        let refused = |error: Errno| self.refused(error);
        let address = SocketAddrUnix::new(&self.path).map_err(refused)?;
        self.remove_stale(&address, kind)?;
        let socket = self.create(&address, kind)?;
        let name = UnixName(self.path.clone());
        self.apply()?;
        Ok((socket, name))
    }

    /// A socket with its name. Datagrams could arrive before [`Self::apply`]: until then, the name has no rights for
    /// others, if `mode` is set. Linux gives the name those of the socket.
    fn create(&self, address: &SocketAddrUnix, kind: SocketType) -> Result<OwnedFd, ListenError> {
        let refused = |error: Errno| self.refused(error);
        let socket = unix_socket(kind).map_err(refused)?;
        if let Some(mode) = self.mode {
            fchmod(&socket, Mode::from_raw_mode(mode & 0o700)).map_err(refused)?;
        }
        bind(&socket, address).map_err(refused)?;
        Ok(socket)
    }

    /// Sets permissions and group of the socket's name. No client can connect before `listen`, so both are right
    /// from the first connection on.
    ///
    /// # Errors
    ///
    /// The process is not allowed to.
    pub fn apply(&self) -> Result<(), ListenError> {
        let refused = |error: Errno| self.refused(error);
        if let Some(group) = self.group {
            chown(&self.path, None, Some(Gid::from_raw(group))).map_err(refused)?;
        }
        if let Some(mode) = self.mode {
            chmod(&self.path, Mode::from_raw_mode(mode)).map_err(refused)?;
        }
        Ok(())
    }

    /// Removes the socket of a process that is gone. A socket that answers stays, and so does anything
    /// that is not a socket.
    fn remove_stale(&self, address: &SocketAddrUnix, kind: SocketType) -> Result<(), ListenError> {
        let refused = |error: Errno| self.refused(error);
        match lstat(&self.path) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Socket => {}
            Ok(_) => return Err(ListenError::NotASocket { path: self.path.clone() }),
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(refused(error)),
        }
        let probe = unix_socket(kind).map_err(refused)?;
        match connect(&probe, address) {
            Err(Errno::CONNREFUSED) => unlink(&self.path).map_err(refused),
            // Gone meanwhile.
            Err(Errno::NOENT) => Ok(()),
            // A socket of the other type answers as well.
            Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => Err(refused(Errno::ADDRINUSE)),
            Err(error) => Err(refused(error)),
        }
    }

    fn refused(&self, error: Errno) -> ListenError {
        refused(BoundAddress::Unix(self.path.clone()), error.into())
    }
}

fn unix_socket(kind: SocketType) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, kind, flags, None)
}

pub(super) fn refused(address: BoundAddress, source: io::Error) -> ListenError {
    if source.kind() == io::ErrorKind::AddrInUse {
        ListenError::InUse { address }
    } else {
        ListenError::Bind { address, source }
    }
}

/// The name of a unix socket in the file system; goes when this is dropped.
#[derive(Debug)]
pub struct UnixName(PathBuf);

impl UnixName {
    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for UnixName {
    fn drop(&mut self) {
        if let Err(error) = unlink(&self.0) {
            tracing::debug!(path = %self.0.display(), %error, "the socket was gone already");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    async fn bound(host: &str, family: Family) -> Result<TcpListener, ListenError> {
        let place = IpPlace::resolve(host, 0, family).await?;
        let socket = place.bind(SocketType::STREAM)?;
        rustix::net::listen(&socket, 8).unwrap();
        Ok(TcpListener::from(socket))
    }

    #[tokio::test]
    async fn all_addresses_are_those_of_both_versions_unless_the_network_is_one_of_them() {
        let reaches = |host: &str, listener: &TcpListener| {
            TcpStream::connect((host, listener.local_addr().unwrap().port())).is_ok()
        };
        for (host, family, v4, v6) in [
            ("", Family::Any, true, true),
            ("0.0.0.0", Family::Any, true, true),
            ("::", Family::Any, true, true),
            ("", Family::V4, true, false),
            ("0.0.0.0", Family::V4, true, false),
            ("", Family::V6, false, true),
            ("::", Family::V6, false, true),
            ("localhost", Family::Any, true, false),
            ("::1", Family::Any, false, true),
        ] {
            let listener = bound(host, family).await.unwrap();
            let found = (reaches("127.0.0.1", &listener), reaches("::1", &listener));
            assert_eq!(found, (v4, v6), "{host} {family:?}");
        }
        for (host, family) in [("127.0.0.1", Family::V6), ("::1", Family::V4)] {
            let error = bound(host, family).await.unwrap_err();
            assert!(matches!(error, ListenError::Resolve { .. }), "{error}");
        }
    }

    #[tokio::test]
    async fn an_address_in_use_and_one_that_is_not_ours_are_told_apart() {
        let first = bound("127.0.0.1", Family::Any).await.unwrap();
        let port = first.local_addr().unwrap().port();
        let place = IpPlace::resolve("127.0.0.1", port, Family::Any).await.unwrap();
        let error = place.bind(SocketType::STREAM).map(|_| ()).unwrap_err();
        assert!(matches!(error, ListenError::InUse { .. }), "{error}");
        let place = IpPlace::resolve("192.0.2.1", 0, Family::Any).await.unwrap();
        let error = place.bind(SocketType::DGRAM).map(|_| ()).unwrap_err();
        assert!(matches!(error, ListenError::Bind { .. }), "{error}");
    }

    #[test]
    fn a_unix_socket_gets_its_mode_and_one_that_is_used_stays() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let group = Some(rustix::process::getegid().as_raw());
        let place = UnixPlace { path: path.clone(), mode: Some(0o620), group };
        let (socket, name) = place.bind(SocketType::DGRAM).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o620);
        for kind in [SocketType::DGRAM, SocketType::STREAM] {
            let error = place.bind(kind).map(|_| ()).unwrap_err();
            assert!(matches!(error, ListenError::InUse { .. }), "{error}");
        }
        drop(socket);
        let (_socket, _name) = place.bind(SocketType::STREAM).unwrap();
        drop(name);
    }

    #[test]
    fn what_is_not_a_socket_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "precious").unwrap();
        for path in [file.as_path(), folder.path()] {
            let place = UnixPlace { path: path.to_owned(), mode: None, group: None };
            let error = place.bind(SocketType::STREAM).map(|_| ()).unwrap_err();
            let expected = format!("{}: it exists and is not a socket", path.display());
            assert!(error.to_string().ends_with(&expected), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    }

    #[test]
    fn a_name_is_closed_to_others_until_it_has_its_group() {
        let folder = tempfile::tempdir().unwrap();
        let place = UnixPlace { path: folder.path().join("s"), mode: Some(0o766), group: None };
        let address = SocketAddrUnix::new(&place.path).unwrap();
        let _socket = place.create(&address, SocketType::DGRAM).unwrap();
        let mode = || lstat(&place.path).unwrap().st_mode & 0o777;
        assert_eq!(mode(), 0o700);
        place.apply().unwrap();
        assert_eq!(mode(), 0o766);
    }
}
