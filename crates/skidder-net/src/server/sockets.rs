//! The keeper of sockets: what outlives the input that has it.
//!
//! A reload ends an input and begins another one. Both hold a [`Claim`] on the same socket for a moment: the new one since
//! its settings were read, the old one until it ends. So the old one can see that it has a successor
//! ([`Claim::has_successor`]) and leaves its sockets here, with everything that belongs to them, such as open connections;
//! the successor waits for them and takes them ([`Claim::take_in_turn`]). One without a successor closes its own, also if the
//! successor was stopped meanwhile: then [`Claim::leave`] gives the sockets back.
//!
//! Sockets of systemd (`LISTEN_FDS`, sd_listen_fds(3)) are here from the start of the program; an input takes the one that
//! has its address.

use super::bind::Family;
use super::listen::BoundAddress;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{SocketType, getsockname, sockopt};
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Which socket an input has: two inputs with the same one have the same socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SocketKey {
    /// TCP.
    Tcp {
        /// As in the settings.
        host: String,
        /// The port.
        port: u16,
        /// The IP versions.
        family: Family,
    },
    /// UDP.
    Udp {
        /// As in the settings.
        host: String,
        /// The port.
        port: u16,
        /// The IP versions.
        family: Family,
    },
    /// A unix socket with connections.
    UnixStream(PathBuf),
    /// A unix socket of datagrams.
    UnixDatagram(PathBuf),
    /// The standard input, whatever it is. It stays open; what was read of it goes to the successor.
    Stdin,
}

impl fmt::Display for SocketKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bracketed = |host: &str| {
            if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
        };
        match self {
            Self::Tcp { host, port, .. } => write!(out, "tcp {}:{port}", bracketed(host)),
            Self::Udp { host, port, .. } => write!(out, "udp {}:{port}", bracketed(host)),
            Self::UnixStream(path) | Self::UnixDatagram(path) => {
                write!(out, "unix {}", path.display())
            }
            Self::Stdin => out.write_str("standard input"),
        }
    }
}

/// Keeps sockets. Cloning gives another handle to the same.
#[derive(Clone, Debug, Default)]
pub struct Sockets(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when sockets were left, or a claim is gone.
    changed: Notify,
}

/// How long a successor waits for the sockets of an input that does not leave them: two inputs with one socket are a
/// mistake in the settings.
const TURN_MAX: Duration = Duration::from_secs(5);

#[derive(Default)]
struct State {
    /// The claims that there are on a socket.
    claims: HashMap<SocketKey, Claims>,
    /// Sockets left for a successor.
    left: HashMap<SocketKey, Box<dyn Any + Send>>,
    inherited: Vec<Inherited>,
}

/// How many claims there are on a socket.
#[derive(Debug, Default)]
struct Claims {
    all: usize,
    /// Those of inputs that have not started.
    waiting: usize,
}

/// A socket of systemd that no input has taken.
struct Inherited {
    socket: OwnedFd,
    kind: SocketType,
    address: BoundAddress,
    /// Its name in `LISTEN_FDNAMES`.
    name: String,
}

impl fmt::Debug for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inherited: Vec<_> = self.inherited.iter().map(|of| &of.address).collect();
        let left: Vec<_> = self.left.keys().collect();
        let mut out = out.debug_struct("Sockets");
        out.field("claims", &self.claims).field("left", &left).field("inherited", &inherited);
        out.finish()
    }
}

/// The right of an input to a socket, from its settings on until it is dropped.
#[derive(Debug)]
pub struct Claim {
    sockets: Sockets,
    key: SocketKey,
    /// Its input has started: it has looked for its socket.
    has_started: AtomicBool,
}

/// Another input has the socket, and has not left it.
struct NotItsTurn;

/// Why the sockets of systemd were not taken.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    /// The environment is not as described in sd_listen_fds(3). No socket was taken.
    #[error("`LISTEN_PID` or `LISTEN_FDS` in the environment is not a number")]
    Environment,
}

impl Sockets {
    /// Takes over the sockets that systemd has passed to this process; returns how many. To be called once, at the start of
    /// the program: the descriptors must not be in use yet.
    ///
    /// # Errors
    ///
    /// The environment is malformed.
    pub fn inherit(&self) -> Result<usize, InheritError> {
        let passed = sd_listen_fds::get().map_err(|_| InheritError::Environment)?;
        let mut count = 0;
        for (name, socket) in passed {
            let name = name.unwrap_or_default();
            let socket = socket.into_std();
            // Programs that we start must not have it.
            if let Err(error) = fcntl_setfd(&socket, FdFlags::CLOEXEC) {
                tracing::warn!(name, %error, "a descriptor of systemd is not open");
                // Closing one that is not open would be a mistake.
                std::mem::forget(socket);
                continue;
            }
            match self.adopt(socket, &name) {
                Ok(address) => {
                    tracing::info!(name, %address, "a socket was passed by systemd");
                    count += 1;
                }
                Err(error) => {
                    tracing::warn!(name, %error, "a descriptor of systemd is no socket of use");
                }
            }
        }
        Ok(count)
    }

    /// Adds a socket that is bound already, for the input with its address.
    ///
    /// # Errors
    ///
    /// It is not a socket with an address that an input can have.
    pub fn adopt(&self, socket: OwnedFd, name: &str) -> std::io::Result<BoundAddress> {
        let kind = sockopt::socket_type(&socket)?;
        let address = getsockname(&socket)?;
        let address = if let Ok(ip) = SocketAddr::try_from(address.clone()) {
            BoundAddress::Tcp(ip)
        } else {
            let unix = rustix::net::SocketAddrUnix::try_from(address)?;
            let path = unix.path_bytes().unwrap_or_default();
            BoundAddress::Unix(Path::new(std::ffi::OsStr::from_bytes(path)).to_owned())
        };
        let inherited = Inherited { socket, kind, address: address.clone(), name: name.to_owned() };
        self.lock().inherited.push(inherited);
        Ok(address)
    }

    /// Claims a socket. To be called when the settings are read, before the predecessor must end.
    pub fn claim(&self, key: SocketKey) -> Claim {
        let mut state = self.lock();
        let claims = state.claims.entry(key.clone()).or_default();
        claims.all += 1;
        claims.waiting += 1;
        drop(state);
        Claim { sockets: self.clone(), key, has_started: AtomicBool::new(false) }
    }

    /// Closes what was left for successors that never came. To be called when a reload is over. Returns how many there
    /// were.
    ///
    /// Sockets of systemd stay: the tasks of the inputs may not have looked for them yet, a later reload may want them, and
    /// systemd has them open anyway.
    pub fn close_unclaimed(&self) -> usize {
        let mut state = self.lock();
        let State { claims, left, .. } = &mut *state;
        let mut closed = Vec::new();
        left.retain(|key, _| {
            let stays = claims.contains_key(key);
            if !stays {
                closed.push(key.to_string());
            }
            stays
        });
        drop(state);
        for socket in &closed {
            tracing::warn!(socket, "no input has this socket; it is closed");
        }
        closed.len()
    }

    /// Sockets of systemd that no input has taken: address and name.
    pub fn untaken(&self) -> Vec<String> {
        let state = self.lock();
        state.inherited.iter().map(|of| format!("{} ({})", of.address, of.name)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    /// The socket.
    pub fn key(&self) -> &SocketKey {
        &self.key
    }

    /// Whether an input that has not started has claimed the same: it takes over. One that has started, and waits for the
    /// address because of a mistake in the settings, does not.
    pub fn has_successor(&self) -> bool {
        let own = usize::from(!self.has_started.load(Ordering::Relaxed));
        self.sockets.lock().claims.get(&self.key).is_some_and(|claims| claims.waiting > own)
    }

    /// Waits until an input before has left its sockets or has none, and takes what it left: until then no other can have
    /// them. Looking and taking are one step: of two inputs that wait, one takes, and the other one goes on waiting, so that
    /// it is the successor of the first. An input that does not leave them in time, because it does not end, is not waited
    /// for. Ends early without harm.
    pub async fn take_in_turn<T: Any + Send>(&self) -> Option<T> {
        let turn = async {
            loop {
                let changed = self.sockets.0.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Ok(left) = self.start_in_turn() {
                    return left;
                }
                changed.await;
            }
        };
        if let Ok(left) = tokio::time::timeout(TURN_MAX, turn).await {
            return left;
        }
        tracing::debug!(socket = %self.key, "another input has this socket");
        self.take()
    }

    /// What was left for it, if it is its turn.
    fn start_in_turn<T: Any + Send>(&self) -> Result<Option<T>, NotItsTurn> {
        let state = self.sockets.lock();
        let started = state.claims.get(&self.key).map_or(0, |claims| claims.all - claims.waiting);
        let own = usize::from(self.has_started.load(Ordering::Relaxed));
        let is_its_turn = started <= own || state.left.contains_key(&self.key);
        if is_its_turn { Ok(self.start(state)) } else { Err(NotItsTurn) }
    }

    /// Leaves sockets for the successor, with whatever belongs to them. Sockets of tokio stay with their runtime: the
    /// successor must run in the same one. Gives them back if there is no successor any more.
    ///
    /// # Errors
    /// The sockets.
    pub fn leave<T: Any + Send>(&self, sockets: T) -> Result<(), T> {
        let mut state = self.sockets.lock();
        let own = usize::from(!self.has_started.load(Ordering::Relaxed));
        if state.claims.get(&self.key).is_none_or(|claims| claims.waiting <= own) {
            return Err(sockets);
        }
        let before = state.left.insert(self.key.clone(), Box::new(sockets));
        drop(state);
        // Closes it without the lock.
        drop(before);
        self.sockets.0.changed.notify_waiters();
        Ok(())
    }

    /// Takes what the predecessor has left: the first thing that an input does when it starts, also if it is stopped already.
    /// From then on nothing is left to it any more. What was left by an input of another type is closed, which frees the
    /// address.
    pub fn take<T: Any + Send>(&self) -> Option<T> {
        self.start(self.sockets.lock())
    }

    fn start<T: Any + Send>(&self, mut state: MutexGuard<'_, State>) -> Option<T> {
        if !self.has_started.swap(true, Ordering::Relaxed)
            && let Some(claims) = state.claims.get_mut(&self.key)
        {
            claims.waiting -= 1;
        }
        let left = state.left.remove(&self.key)?;
        drop(state);
        match left.downcast() {
            Ok(left) => Some(*left),
            Err(other) => {
                tracing::info!(socket = %self.key, "another type of input had this socket; it is closed");
                drop(other);
                None
            }
        }
    }

    /// Takes the socket of systemd with this address.
    pub fn inherited(&self, address: &BoundAddress) -> Option<OwnedFd> {
        let wanted = match self.key {
            SocketKey::Tcp { .. } | SocketKey::UnixStream(_) => SocketType::STREAM,
            SocketKey::Udp { .. } | SocketKey::UnixDatagram(_) => SocketType::DGRAM,
            SocketKey::Stdin => return None,
        };
        let mut state = self.sockets.lock();
        let found = |of: &Inherited| of.kind == wanted && of.address == *address;
        let at = state.inherited.iter().position(found)?;
        Some(state.inherited.swap_remove(at).socket)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = self.sockets.lock();
        let mut orphan = None;
        if let Some(claims) = state.claims.get_mut(&self.key) {
            claims.all -= 1;
            if !self.has_started.load(Ordering::Relaxed) {
                claims.waiting -= 1;
            }
            if claims.all == 0 {
                state.claims.remove(&self.key);
                orphan = state.left.remove(&self.key);
            }
        }
        drop(state);
        self.sockets.0.changed.notify_waiters();
        if orphan.is_some() {
            tracing::warn!(socket = %self.key, "the input that was to take this socket never did; it is closed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    fn key() -> SocketKey {
        SocketKey::Tcp { host: String::new(), port: 9000, family: Family::Any }
    }

    #[test]
    fn a_socket_goes_from_an_input_to_its_successor() {
        let sockets = Sockets::default();
        let first = sockets.claim(key());
        assert!(!first.has_successor(), "it is alone");
        assert_eq!(first.take::<u8>(), None, "it starts");
        let other = sockets.claim(SocketKey::UnixStream("/run/s".into()));
        assert!(!first.has_successor(), "another socket");
        let twin = sockets.claim(key());
        assert_eq!(twin.take::<u8>(), None, "it starts, and cannot bind the address");
        assert!(!first.has_successor() && !twin.has_successor(), "both have to end");
        drop(twin);
        let second = sockets.claim(key());
        assert!(first.has_successor());
        first.leave(7_u8).unwrap();
        drop(first);
        assert!(!second.has_successor());
        assert_eq!(sockets.close_unclaimed(), 0, "the successor has not started yet");
        assert_eq!(second.take::<u8>(), Some(7));
        assert_eq!(second.take::<u8>(), None, "once");
        drop((second, other));
        assert!(sockets.lock().claims.is_empty());
    }

    #[test]
    fn a_successor_that_was_stopped_is_left_nothing() {
        let sockets = Sockets::default();
        let (first, second) = (sockets.claim(key()), sockets.claim(key()));
        assert_eq!(first.take::<u8>(), None);
        assert!(first.has_successor());
        assert_eq!(second.take::<u8>(), None, "it is stopped before it has the socket");
        assert_eq!(first.leave(7_u8), Err(7), "the first one has to end with it itself");
        assert!(sockets.lock().left.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_that_wait_one_takes_and_the_other_one_is_its_successor() {
        let sockets = Sockets::default();
        let (first, second, third) =
            (sockets.claim(key()), sockets.claim(key()), sockets.claim(key()));
        assert_eq!(first.take::<u8>(), None);
        let (of_second, of_third, ()) = tokio::join!(
            async {
                let taken = second.take_in_turn::<u8>().await;
                assert!(
                    second.has_successor(),
                    "the third one has not begun to wait for the address"
                );
                second.leave(8_u8).unwrap();
                taken
            },
            third.take_in_turn::<u8>(),
            async {
                tokio::task::yield_now().await;
                first.leave(7_u8).unwrap();
            }
        );
        assert_eq!((of_second, of_third), (Some(7), Some(8)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_successor_waits_until_the_socket_is_left_or_nobody_has_it() {
        let sockets = Sockets::default();
        let first = sockets.claim(key());
        assert_eq!(first.take_in_turn::<u8>().await, None);
        let second = sockets.claim(key());
        let (taken, ()) = tokio::join!(second.take_in_turn::<u8>(), async {
            tokio::task::yield_now().await;
            first.leave(7_u8).unwrap();
        });
        assert_eq!(taken, Some(7), "while the first one has not ended yet");
        drop(first);
        let third = sockets.claim(key());
        let (taken, ()) = tokio::join!(third.take_in_turn::<u8>(), async {
            tokio::task::yield_now().await;
            drop(second);
        });
        let began = tokio::time::Instant::now();
        assert_eq!(taken, None);
        // One that does not end: a mistake in the settings, which the address in use will show.
        assert_eq!(sockets.claim(key()).take_in_turn::<u8>().await, None);
        assert_eq!(began.elapsed(), TURN_MAX);
    }

    #[test]
    fn what_no_successor_takes_is_closed() {
        let sockets = Sockets::default();
        let content = Arc::new(());
        let (first, second) = (sockets.claim(key()), sockets.claim(key()));
        first.leave(Arc::clone(&content)).unwrap();
        drop(first);
        drop(second);
        assert_eq!(Arc::strong_count(&content), 1, "the successor was never started");
        let (first, second) = (sockets.claim(key()), sockets.claim(key()));
        first.leave(Arc::clone(&content)).unwrap();
        assert_eq!(second.take::<u8>(), None, "another type of input");
        assert_eq!(Arc::strong_count(&content), 1);
    }

    #[test]
    fn an_adopted_socket_is_found_by_its_type_and_address() {
        let sockets = Sockets::default();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind(tcp.local_addr().unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let unix = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let address = sockets.adopt(udp.into(), "udp").unwrap();
        assert_eq!(sockets.adopt(tcp.into(), "tcp").unwrap(), address);
        assert_eq!(sockets.adopt(unix.into(), "").unwrap(), BoundAddress::Unix(path.clone()));
        let claim = sockets.claim(key());
        let socket = claim.inherited(&address).unwrap();
        assert_eq!(sockopt::socket_type(&socket).unwrap(), SocketType::STREAM);
        assert!(claim.inherited(&address).is_none(), "the other one is for datagrams");
        let unix = sockets.claim(SocketKey::UnixStream(path.clone()));
        assert!(unix.inherited(&BoundAddress::Unix("/other".into())).is_none());
        assert!(unix.inherited(&BoundAddress::Unix(path)).is_some());
        assert_eq!(sockets.close_unclaimed(), 0, "systemd has it open anyway");
        assert_eq!(sockets.untaken(), [format!("{address} (udp)")], "the one for datagrams");
    }

    /// Runs as a child of the next test, with a socket as systemd passes it.
    #[test]
    #[ignore = "a part of another test"]
    fn child_with_a_socket_of_systemd() {
        use std::io::Write as _;
        if std::env::var_os("LISTEN_FDS").is_none() {
            return;
        }
        let sockets = Sockets::default();
        assert_eq!(sockets.inherit().unwrap(), 1);
        let address = sockets.lock().inherited[0].address.clone();
        assert_eq!(sockets.lock().inherited[0].name, "syslog");
        let claim = sockets.claim(key());
        let listener = TcpListener::from(claim.inherited(&address).unwrap());
        let flags = rustix::io::fcntl_getfd(&listener).unwrap();
        assert!(flags.contains(FdFlags::CLOEXEC));
        listener.accept().unwrap().0.write_all(b"from the child").unwrap();
    }

    #[test]
    fn sockets_of_systemd_are_found_in_the_environment() {
        use std::io::Read as _;
        use std::process::{Command, Stdio};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut command = Command::new("sh");
        let script = "exec 3<&0 0</dev/null; \
             LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES=syslog exec \"$0\" \"$@\"";
        command.args(["-c", script]).arg(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact"]);
        command.arg("server::sockets::tests::child_with_a_socket_of_systemd");
        command.stdin(Stdio::from(OwnedFd::from(listener))).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        // `Command` keeps its copy of the socket.
        drop(command);
        let mut text = String::new();
        let mut client = std::net::TcpStream::connect(address).unwrap();
        client.read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(text, "from the child");
    }
}
