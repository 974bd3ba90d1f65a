//! The least that a program can do with datagrams: `recvmmsg` into a buffer, and nothing more.

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SetSockOpt, SockaddrStorage, recvmmsg, sockopt};
use std::io::{IoSliceMut, Write as _};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Most datagrams of one call, as the `udp` input has it.
const DATAGRAMS_MAX: usize = 512;

/// Most bytes of a datagram, the default of the `udp` input.
const DATAGRAM_BYTES_MAX: usize = 10 << 10;

/// The receive buffer in bytes, the default of the `udp` input.
const READ_BUFFER_BYTES: usize = 8 << 20;

/// Its output once it receives.
pub const READY: &str = "receives datagrams";

/// Receives datagrams at `port` of 127.0.0.1 until it is killed.
///
/// # Errors
/// If the port is taken, or the system does not let it receive.
pub fn drain(port: u16) -> Result<()> {
    let socket = UdpSocket::bind(("127.0.0.1", port)).context("cannot bind the socket")?;
    if sockopt::RcvBufForce.set(&socket, &READ_BUFFER_BYTES).is_err() {
        sockopt::RcvBuf.set(&socket, &READ_BUFFER_BYTES).context("cannot set the buffer")?;
    }
    let mut bytes = vec![0; DATAGRAMS_MAX * DATAGRAM_BYTES_MAX];
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(DATAGRAMS_MAX, None);
    writeln!(std::io::stderr(), "{READY}").context("cannot write to the terminal")?;
    loop {
        match receive(&socket, &mut headers, &mut bytes) {
            Ok(()) | Err(Errno::EINTR) => {}
            Err(error) => bail!("cannot receive: {error}"),
        }
    }
}

/// Waits for datagrams and takes all that are there.
fn receive(
    socket: &UdpSocket,
    headers: &mut MultiHeaders<SockaddrStorage>,
    bytes: &mut [u8],
) -> Result<(), Errno> {
    let places = bytes.chunks_exact_mut(DATAGRAM_BYTES_MAX);
    let mut places: Vec<[IoSliceMut<'_>; 1]> =
        places.map(|place| [IoSliceMut::new(place)]).collect();
    let flags = MsgFlags::MSG_WAITFORONE;
    recvmmsg(socket.as_raw_fd(), headers, places.iter_mut(), flags, None).map(drop)
}
