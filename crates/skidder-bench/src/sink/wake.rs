//! Waking up less often: a thread that sleeps on a socket is woken for every segment, and over loopback the
//! sender pays for that. The sink wakes once a quarter of a megabyte, so that the measurement
//! is of the sender's own work.

use rustix::event::Timespec;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Longest wait for so many bytes: when memory is short, the kernel may take less from the sender than the limit to
/// wait for, and neither side would go on (seen once: a request came to an end by its timeout of 90 s).
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Waits until `bytes` can be read, the stream has ended, or the kernel has no room for more.
pub(super) fn wait_for(stream: &TcpStream, bytes: usize) -> io::Result<()> {
    set_low_water(stream, bytes)?;
    let mut polled = [rustix::event::PollFd::new(stream, rustix::event::PollFlags::IN)];
    loop {
        match rustix::event::poll(&mut polled, Some(&PATIENCE)) {
            // A read would wait for as many.
            Ok(0) => return as_usual(stream),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads as usual again: a single byte wakes.
pub(super) fn as_usual(stream: &TcpStream) -> io::Result<()> {
    set_low_water(stream, 1)
}

/// `SO_RCVLOWAT`, see socket(7).
#[expect(unsafe_code, reason = "no safe crate in the tree sets this option")]
fn set_low_water(stream: &TcpStream, bytes: usize) -> io::Result<()> {
    let value = libc::c_int::try_from(bytes.max(1)).unwrap_or(libc::c_int::MAX);
    let size = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or_default();
    // SAFETY: the descriptor is open for as long as the stream is borrowed, and the option's value is
    // a c_int of the given size that lives over the call.
    let failed = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const value).cast(),
            size,
        )
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
