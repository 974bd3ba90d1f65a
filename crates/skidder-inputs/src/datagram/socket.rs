//! A socket that receives datagrams, many with one call.

use nix::sys::socket::{
    GetSockOpt, MsgFlags, MultiHeaders, SetSockOpt, SockaddrLike, SockaddrStorage, recvmmsg,
    sockopt,
};
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
pub(super) const DATAGRAMS_MAX: usize = 512;

/// Most bytes of address space for the datagrams of one call; only what arrives takes memory.
const ARENA_BYTES_MAX: usize = 64 << 20;

/// A bound socket.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: OwnedFd,
    /// Nothing for a unix socket.
    address: Option<SocketAddr>,
}

/// The kernel's counts for the socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketState {
    /// Bytes in the receive buffer.
    pub(super) queued: u32,
    /// Datagrams thrown away since the socket was made; wraps around.
    pub(super) drops: u32,
}

impl DatagramSocket {
    /// Where it is bound, with the real port; `None` for a unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Sets the size of the receive buffer, beyond the system's bound if that is allowed. Returns the bytes granted.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_read_buffer(&self, bytes: usize) -> io::Result<usize> {
        if sockopt::RcvBufForce.set(&self.socket, &bytes).is_err() {
            sockopt::RcvBuf.set(&self.socket, &bytes)?;
        }
        self.read_buffer()
    }

    /// The size of the receive buffer.
    ///
    /// # Errors
    /// Those of the system.
    pub fn read_buffer(&self) -> io::Result<usize> {
        // The kernel doubles the requested size, to have room for its own part, and reports that.
        Ok(sockopt::RcvBuf.get(&self.socket)? / 2)
    }

    /// The kernel's counts for it.
    pub(super) fn state(&self) -> io::Result<SocketState> {
        let numbers = meminfo::MemInfo.get(&self.socket)?;
        Ok(SocketState { queued: numbers[0], drops: numbers[8] })
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
pub(super) struct Datagram<'a> {
    pub(super) bytes: &'a [u8],
    /// Its sender; `None` for a unix socket.
    pub(super) peer: Option<SocketAddr>,
    /// It was longer than its place.
    pub(super) truncated: bool,
}

/// Room for the datagrams of one call. Stays in its thread.
pub(super) struct Arena {
    headers: Headers,
    bytes: Vec<u8>,
    slot: usize,
    pub(super) slots: usize,
}

enum Headers {
    Ip(MultiHeaders<SockaddrStorage>),
    Unix(MultiHeaders<()>),
}

impl Arena {
    /// For datagrams of at most so many bytes.
    pub(super) fn new(of: &DatagramSocket, message_bytes_max: usize) -> Self {
        let slots = (ARENA_BYTES_MAX / message_bytes_max).clamp(1, DATAGRAMS_MAX);
        let headers = match of.address {
            Some(_) => Headers::Ip(MultiHeaders::preallocate(slots, None)),
            None => Headers::Unix(MultiHeaders::preallocate(slots, None)),
        };
        Self { headers, bytes: vec![0; slots * message_bytes_max], slot: message_bytes_max, slots }
    }

    /// Receives what is there, and calls `each` with it in its order; returns how many there were. Waits for nothing.
    pub(super) fn receive(
        &mut self,
        socket: &DatagramSocket,
        each: &mut dyn FnMut(Datagram<'_>),
    ) -> io::Result<usize> {
        let places = self.bytes.chunks_exact_mut(self.slot);
        let mut places: Vec<[IoSliceMut<'_>; 1]> =
            places.map(|place| [IoSliceMut::new(place)]).collect();
        match &mut self.headers {
            Headers::Ip(headers) => receive(socket, headers, &mut places, to_address, each),
            Headers::Unix(headers) => receive(socket, headers, &mut places, |()| None, each),
        }
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
