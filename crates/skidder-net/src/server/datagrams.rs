//! Sockets that receive datagrams, many with one call; and the seam behind which they can be simulated.
//!
//! A call through the seam takes hundreds of datagrams, so that it costs nothing that can be measured.

use super::bind::{IpPlace, UnixName, UnixPlace};
use super::listen::{BoundAddress, ListenError};
use super::network::RealNetwork;

use nix::sys::socket::{
    GetSockOpt, MsgFlags, MultiHeaders, SetSockOpt, SockaddrLike, SockaddrStorage, recvmmsg,
    sockopt,
};
use rustix::net::SocketType;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

mod meminfo {
    //! `SO_MEMINFO`, which no crate has: numbers of 32 bits, see `linux/sock_diag.h`.
    #![allow(missing_docs, unreachable_pub, reason = "made by a macro of nix")]

    use nix::{getsockopt_impl, sockopt_impl};

    sockopt_impl!(MemInfo, GetOnly, libc::SOL_SOCKET, libc::SO_MEMINFO, [u32; 9]);
}

/// Most datagrams that one call receives.
const DATAGRAMS_MAX: usize = 512;

/// Most bytes of address space for the datagrams of one call; only what arrives takes memory.
const ARENA_BYTES_MAX: usize = 64 << 20;

/// Receives datagrams: a socket, or a simulated one. Its descriptor can be read while there are some.
pub trait Datagrams: AsFd + Send + fmt::Debug {
    /// Where it is bound, with the real port; `None` for a unix socket, whose senders wait while it is full.
    fn address(&self) -> Option<SocketAddr>;

    /// The size of the receive buffer in bytes.
    ///
    /// # Errors
    /// Those of the system.
    fn read_buffer(&self) -> io::Result<usize>;

    /// Sets the size of the receive buffer, beyond the system's bound if that is allowed. Returns the bytes granted.
    ///
    /// # Errors
    /// Those of the system.
    fn set_read_buffer(&self, bytes: usize) -> io::Result<usize>;

    /// The kernel's counts for it.
    ///
    /// # Errors
    /// Those of the system.
    fn state(&self) -> io::Result<DatagramState>;

    /// Receives what is there, at most [`Arena::slots`], and calls `each` with it in its order; returns how many there
    /// were. Waits for nothing.
    ///
    /// # Errors
    /// Those of the system; `WouldBlock` if there is nothing.
    fn receive(&self, arena: &mut Arena, each: &mut dyn FnMut(Datagram<'_>)) -> io::Result<usize>;
}

/// Where datagrams arrive, looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramPlace {
    /// UDP.
    Udp(IpPlace),
    /// A unix socket.
    Unix(UnixPlace),
}

impl DatagramPlace {
    /// The configured address; its port may be 0.
    pub fn address(&self) -> BoundAddress {
        match self {
            Self::Udp(place) => BoundAddress::Tcp(place.address),
            Self::Unix(place) => BoundAddress::Unix(place.path.clone()),
        }
    }
}

/// A socket that was bound.
#[derive(Debug)]
pub struct BoundDatagrams {
    /// The socket.
    pub socket: Box<dyn Datagrams>,
    /// The name of a unix socket; goes with it.
    pub name: Option<UnixName>,
    /// What the kernel had thrown away of it before; see [`DatagramState::drops`].
    pub drops: u32,
}

/// Binds addresses for datagrams.
pub trait DatagramNetwork: Send + Sync + fmt::Debug {
    /// Binds an address.
    ///
    /// # Errors
    /// The address cannot be used.
    fn bind(&self, place: &DatagramPlace) -> Result<BoundDatagrams, ListenError>;
}

impl DatagramNetwork for RealNetwork {
    fn bind(&self, place: &DatagramPlace) -> Result<BoundDatagrams, ListenError> {
        let (socket, name): (DatagramSocket, _) = match place {
            DatagramPlace::Udp(place) => {
                (std::net::UdpSocket::from(place.bind(SocketType::DGRAM)?).into(), None)
            }
            DatagramPlace::Unix(place) => {
                let (socket, name) = place.bind(SocketType::DGRAM)?;
                (std::os::unix::net::UnixDatagram::from(socket).into(), Some(name))
            }
        };
        Ok(BoundDatagrams { socket: Box::new(socket), name, drops: 0 })
    }
}

/// A bound socket.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: OwnedFd,
    /// Nothing for a unix socket.
    address: Option<SocketAddr>,
}

/// The kernel's counts for the socket.
#[derive(Clone, Copy, Debug)]
pub struct DatagramState {
    /// Bytes in the receive buffer.
    pub queued: u32,
    /// Datagrams thrown away since the socket was made; wraps around.
    pub drops: u32,
}

impl Datagrams for DatagramSocket {
    fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    fn set_read_buffer(&self, bytes: usize) -> io::Result<usize> {
        if sockopt::RcvBufForce.set(&self.socket, &bytes).is_err() {
            sockopt::RcvBuf.set(&self.socket, &bytes)?;
        }
        self.read_buffer()
    }

    fn read_buffer(&self) -> io::Result<usize> {
        // The kernel doubles the requested size, to have room for its own part, and reports that.
        Ok(sockopt::RcvBuf.get(&self.socket)? / 2)
    }

    fn state(&self) -> io::Result<DatagramState> {
        let numbers = meminfo::MemInfo.get(&self.socket)?;
        Ok(DatagramState { queued: numbers[0], drops: numbers[8] })
    }

    fn receive(&self, arena: &mut Arena, each: &mut dyn FnMut(Datagram<'_>)) -> io::Result<usize> {
        let headers = arena.headers.get_or_insert_with(|| Headers::new(self, arena.slots));
        let places = arena.bytes.chunks_exact_mut(arena.slot);
        let mut places: Vec<[IoSliceMut<'_>; 1]> =
            places.map(|place| [IoSliceMut::new(place)]).collect();
        match headers {
            Headers::Ip(headers) => receive(self, headers, &mut places, to_address, each),
            Headers::Unix(headers) => receive(self, headers, &mut places, |()| None, each),
        }
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl From<std::net::UdpSocket> for DatagramSocket {
    fn from(socket: std::net::UdpSocket) -> Self {
        let address = socket.local_addr().ok();
        Self { socket: socket.into(), address }
    }
}

impl From<std::os::unix::net::UnixDatagram> for DatagramSocket {
    fn from(socket: std::os::unix::net::UnixDatagram) -> Self {
        Self { socket: socket.into(), address: None }
    }
}

/// A datagram that was received.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its sender; `None` for a unix socket.
    pub peer: Option<SocketAddr>,
    /// It was longer than its place.
    pub truncated: bool,
}

/// Room for the datagrams of one call, of one socket. Stays in its thread.
pub struct Arena {
    headers: Option<Headers>,
    bytes: Vec<u8>,
    slot: usize,
    slots: usize,
}

enum Headers {
    Ip(MultiHeaders<SockaddrStorage>),
    Unix(MultiHeaders<()>),
}

impl Headers {
    fn new(of: &DatagramSocket, slots: usize) -> Self {
        match of.address {
            Some(_) => Self::Ip(MultiHeaders::preallocate(slots, None)),
            None => Self::Unix(MultiHeaders::preallocate(slots, None)),
        }
    }
}

impl Arena {
    /// For datagrams of at most so many bytes.
    pub fn new(message_bytes_max: usize) -> Self {
        let slots = (ARENA_BYTES_MAX / message_bytes_max).clamp(1, DATAGRAMS_MAX);
        let bytes = vec![0; slots * message_bytes_max];
        Self { headers: None, bytes, slot: message_bytes_max, slots }
    }

    /// Most datagrams that one call receives.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes of the longest datagram; a longer one is cut.
    pub fn message_bytes_max(&self) -> usize {
        self.slot
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Arena").field("slot", &self.slot).finish_non_exhaustive()
    }
}

fn receive<'a, S: SockaddrLike + Copy>(
    socket: &DatagramSocket,
    headers: &'a mut MultiHeaders<S>,
    places: &'a mut [[IoSliceMut<'a>; 1]],
    to_address: impl Fn(&S) -> Option<SocketAddr>,
    each: &mut dyn FnMut(Datagram<'_>),
) -> io::Result<usize> {
    let (fd, flags) = (socket.socket.as_raw_fd(), MsgFlags::MSG_DONTWAIT);
    let mut count = 0;
    for message in recvmmsg(fd, headers, places.iter_mut(), flags, None)? {
        count += 1;
        let truncated = message.flags.contains(MsgFlags::MSG_TRUNC);
        let peer = message.address.as_ref().and_then(&to_address);
        each(Datagram { bytes: message.iovs().next().unwrap_or_default(), peer, truncated });
    }
    Ok(count)
}

fn to_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddr::from((v4.ip(), v4.port())));
    }
    let v6 = address.as_sockaddr_in6()?;
    Some(match v6.ip().to_ipv4_mapped() {
        Some(v4) => SocketAddr::from((IpAddr::V4(v4), v6.port())),
        None => SocketAddr::V6((*v6).into()),
    })
}
