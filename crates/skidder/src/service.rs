//! Notifications to the service manager: `sd_notify(3)`, a datagram to the socket that it names.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The service manager that started the program, if it wants notifications.
#[derive(Debug)]
pub(crate) struct Service(Option<(UnixDatagram, SocketAddr)>);

impl Service {
    /// The one of `NOTIFY_SOCKET`.
    pub(crate) fn of_environment() -> Self {
        match std::env::var_os("NOTIFY_SOCKET") {
            Some(name) if !name.is_empty() => Self::at(&name),
            _ => Self(None),
        }
    }

    fn at(name: &OsStr) -> Self {
        let opened = address(name).and_then(|to| Ok((UnixDatagram::unbound()?, to)));
        match opened {
            Ok(opened) => Self(Some(opened)),
            Err(error) => {
                tracing::warn!(%error, path = %name.display(), "`NOTIFY_SOCKET` cannot be used");
                Self(None)
            }
        }
    }

    /// Everything runs, or runs again with the configuration that was read.
    pub(crate) fn ready(&self) {
        self.notify("READY=1\nSTATUS=running");
    }

    /// The configuration is read again, until [`Service::ready`].
    pub(crate) fn reloading(&self) {
        self.notify("RELOADING=1\nSTATUS=reading the configuration again");
    }

    /// Nothing is read any more.
    pub(crate) fn stopping(&self) {
        self.notify("STOPPING=1\nSTATUS=waiting for the verdicts of what was read");
    }

    fn notify(&self, state: &str) {
        let Some((socket, to)) = &self.0 else { return };
        // The work goes on with or without notifications.
        if let Err(error) = socket.send_to_addr(state.as_bytes(), to) {
            tracing::warn!(%error, "the service manager cannot be told how it goes");
        }
    }
}

/// A path, or behind an `@` a name without a file.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_is_told_at_a_path_and_at_a_name_without_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let name = format!("@skidder-test-{}", std::process::id());
        for name in [path.as_os_str(), OsStr::new(&name)] {
            let manager = UnixDatagram::bind_addr(&address(name).unwrap()).unwrap();
            let service = Service::at(name);
            service.ready();
            service.reloading();
            service.stopping();
            let mut buffer = [0; 256];
            for expected in ["READY=1\n", "RELOADING=1\n", "STOPPING=1\n"] {
                let length = manager.recv(&mut buffer).unwrap();
                assert!(buffer[..length].starts_with(expected.as_bytes()), "{expected}");
            }
        }
        // Without a manager nothing fails.
        Service::at(OsStr::new("/nowhere/at/all")).ready();
        Service(None).ready();
    }
}
