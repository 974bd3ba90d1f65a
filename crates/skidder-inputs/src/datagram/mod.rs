//! Datagrams, of UDP or of a unix socket, as events.
//!
//! A thread of its own receives them: it sleeps in between, so that one call takes many, and the socket wakes no
//! thread meanwhile. It offers the events: while a queue is full they wait in memory, and what is beyond that is
//! dropped and counted as `queue_full`. What the kernel threw away before is counted too
//! ([`skidder_input::InputMetrics`] `lost_before`): `SO_MEMINFO` has the number that Filebeat reads in
//! `/proc/net/udp`, of this socket alone and also if no datagram follows.

mod peers;
#[cfg(test)]
mod seeds;
mod server;
#[cfg(test)]
mod simulated;
mod sink;
#[cfg(test)]
mod tests;

pub use server::{DatagramAddress, DatagramServer};
pub use sink::{Kept, MakeSink, Sink};

use peers::Peers;
pub(crate) use peers::Pool;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use skidder_input::{InputError, Intake, OnBatch, Waiting};
use skidder_net::{Arena, Claim, Datagrams, UnixName};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;

/// How long the thread sleeps between two calls while datagrams arrive, in nanoseconds.
const PAUSE_NANOSECONDS: i64 = 2_000_000;

/// In nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// Bytes of batches that wait while the queue is full, for each output.
pub const BACKLOG_BYTES_MAX: usize = 16 << 20;

/// Calls that take what the kernel has already received when the input stops; a sender that goes on does not keep it.
const LAST_CALLS_MAX: usize = 256;

/// Bytes of the largest receive buffer that Linux gives, also to root: it keeps twice as many in 31 bits, and gives
/// that much if more is asked for (`__sock_set_rcvbuf` in `net/core/sock.c`). It is one byte less than 1 GiB.
const SYSTEM_BUFFER_MAX: usize = i32::MAX as usize / 2;

/// A socket as one input leaves it to the next.
pub struct Left {
    /// The socket.
    pub socket: Box<dyn Datagrams>,
    /// What the kernel had thrown away at the last look; 0 of one that is new.
    pub drops: u32,
    /// The name of a unix socket, unless it is systemd's; goes with it.
    pub name: Option<UnixName>,
    /// Received events that wait for room in a queue.
    pub waiting: Vec<Waiting>,
    /// What was learned from the datagrams before, if something was.
    pub kept: Option<Kept>,
}

/// How datagrams are received.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bytes of the longest datagram; a longer one is cut and gets `log.flags: [truncated]`.
    pub message_bytes_max: usize,
    /// Bytes of the socket's receive buffer; 0 leaves the system's default.
    pub read_buffer: usize,
    /// Bytes of batches that wait while a queue is full, for each output.
    pub backlog_bytes_max: usize,
    /// `device`: where it listens, as configured.
    pub device: String,
    /// Applied to each batch.
    pub on_batch: Option<OnBatch>,
    /// Makes what makes events of datagrams; without it each of them is an event.
    pub sink: Option<Arc<dyn MakeSink>>,
}

/// Takes the datagrams of a socket until the input must stop. What the kernel has received by then is read and sent.
///
/// # Errors
/// A thread could not be started, or ended by a bug.
pub async fn serve(
    left: Left,
    claim: Option<Claim>,
    settings: Settings,
    intake: Intake,
) -> Result<(), InputError> {
    let failed = |error: &dyn std::fmt::Display| InputError(error.to_string());
    let granted = grow(&*left.socket, &settings);
    let listening = intake.metrics().listening();
    // One input listens once.
    listening.device.get_or_init(|| settings.device.clone());
    listening.read_buffer.set(granted as u64);
    let queued = Arc::new(AtomicU64::new(0));
    let length = Arc::clone(&queued);
    listening.set_receive_queue(Box::new(move || Some(length.load(Ordering::Relaxed))));
    let absorb = intake.absorb(settings.backlog_bytes_max, &left.waiting);
    tokio::pin!(absorb);
    let wake = Wake::new().map_err(|error| failed(&error))?;
    let (ended, mut end) = oneshot::channel::<()>();
    let (seen, given) = (Arc::clone(&wake.0), intake.clone());
    let work = move || {
        let _ended = ended;
        Receiver::new(left, claim, &settings, queued, given).run(&seen);
    };
    let thread = std::thread::Builder::new().name("datagrams".to_owned()).spawn(work);
    drop(thread.map_err(|error| failed(&error))?);
    tokio::select! {
        () = intake.stopped() => {}
        () = &mut absorb => {}
        _ = &mut end => return Err(InputError("the thread that receives has ended".to_owned())),
    }
    drop(wake);
    let rest = async {
        // It says nothing: its end drops the other side.
        drop(end.await);
        // The socket is closed, or left to the next input.
        intake.set_finishing();
        intake.absorbed().await;
    };
    tokio::select! {
        () = rest => {}
        () = absorb => {}
    }
    Ok(())
}

/// Sets the receive buffer; returns what was granted.
fn grow(socket: &dyn Datagrams, settings: &Settings) -> usize {
    let asked = to_ask(settings.read_buffer);
    let granted = if asked == 0 { socket.read_buffer() } else { socket.set_read_buffer(asked) };
    match granted {
        Ok(granted) if granted < asked => {
            tracing::warn!(
                asked,
                granted,
                "the system gives a smaller receive buffer than `read_buffer`: bursts may be lost; \
                 set `sysctl -w net.core.rmem_max={asked}`, or give skidder CAP_NET_ADMIN"
            );
            granted
        }
        Ok(granted) => granted,
        Err(error) => {
            tracing::warn!(%error, asked, "the receive buffer cannot be set");
            0
        }
    }
}

/// What the system is asked for: it is no reason to warn that it does not give more than it can.
fn to_ask(read_buffer: usize) -> usize {
    read_buffer.min(SYSTEM_BUFFER_MAX)
}

/// Wakes the thread to stop, at the latest when it is dropped.
struct Wake(Arc<OwnedFd>);

impl Wake {
    fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        if let Err(error) = rustix::io::write(&*self.0, &1_u64.to_ne_bytes()) {
            tracing::warn!(%error, "the thread that receives datagrams may not stop");
        }
    }
}

/// The state of the thread.
struct Receiver {
    socket: Box<dyn Datagrams>,
    arena: Arena,
    sink: Box<dyn Sink>,
    intake: Intake,
    /// What the kernel had thrown away at the last look.
    drops: u32,
    /// Its senders wait while it is full.
    is_unix: bool,
    /// The name of a unix socket.
    name: Option<UnixName>,
    /// Where an input that takes over finds the socket.
    claim: Option<Claim>,
    /// What waits of the inputs before.
    waiting: Vec<Waiting>,
    /// Bytes that wait in the socket's receive buffer.
    queued: Arc<AtomicU64>,
    /// When the newest datagrams arrived.
    newest: Option<i64>,
}

impl Receiver {
    fn new(
        left: Left,
        claim: Option<Claim>,
        settings: &Settings,
        queued: Arc<AtomicU64>,
        intake: Intake,
    ) -> Self {
        let Left { socket, drops, name, waiting, kept } = left;
        let arena = Arena::new(settings.message_bytes_max);
        let shown = match socket.address() {
            Some(address) => address.to_string(),
            None => settings.device.clone(),
        };
        let is_unix = socket.address().is_none();
        let sink: Box<dyn Sink> = match &settings.sink {
            Some(make) => make.make(intake.clone(), &shown, kept),
            None => Box::new(Peers::new(intake.clone(), &shown, settings.on_batch.clone())),
        };
        let newest = None;
        Self { socket, arena, sink, intake, drops, is_unix, name, claim, waiting, queued, newest }
    }

    fn run(mut self, wake: &OwnedFd) {
        loop {
            if self.is_unix && self.has_backlog() {
                // The sender waits, as with a connection.
                if wait([wake.as_fd()], Some(PAUSE_NANOSECONDS)) {
                    break;
                }
                continue;
            }
            let received = self.round();
            if received == self.arena.slots() {
                if wait([wake.as_fd()], Some(0)) {
                    break;
                }
                continue;
            }
            let is_stopped = if received > 0 {
                wait([wake.as_fd()], Some(PAUSE_NANOSECONDS))
            } else {
                wait([wake.as_fd(), self.socket.as_fd()], self.sink.rest())
            };
            if is_stopped {
                break;
            }
        }
        if let Some(claim) = self.claim.take() {
            self.waiting.retain(Waiting::is_some);
            self.waiting.extend(self.intake.waiting());
            let kept = self.sink.leave();
            let Self { socket, drops, name, waiting, .. } = self;
            match claim.leave(Left { socket, drops, name, waiting, kept }) {
                Ok(()) => {
                    self.intake.set_finishing();
                    return;
                }
                // No input comes after it.
                Err(left) => {
                    Left { socket: self.socket, name: self.name, waiting: self.waiting, .. } = left;
                }
            }
        }
        for _ in 0..LAST_CALLS_MAX {
            if self.round() == 0 {
                break;
            }
        }
        self.sink.finish();
    }

    /// Whether something waits for room in a queue, also of the inputs before.
    fn has_backlog(&mut self) -> bool {
        self.waiting.retain(Waiting::is_some);
        !self.waiting.is_empty() || self.intake.has_backlog()
    }

    /// Receives once and offers that; returns how many datagrams there were.
    fn round(&mut self) -> usize {
        let Self { socket, arena, sink, .. } = self;
        let received = socket.receive(arena, &mut |datagram| sink.add(&datagram));
        self.count_drops();
        let received = match received {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return 1,
            Err(error) => {
                self.intake.metrics().failed("", &error.to_string());
                tracing::warn!(%error, "datagrams cannot be received");
                // Tried again after the pause.
                return 1;
            }
        };
        let clock = Arc::clone(self.intake.clock());
        let time = clock.wall().0;
        let start = clock.monotonic();
        let (events, bytes) = self.sink.flush(time);
        let metrics = self.intake.metrics();
        metrics.bytes.add(bytes);
        metrics.listening().message_bytes.add(bytes);
        let newest = self.newest;
        let period = newest.map(|newest| u64::try_from(time - newest).unwrap_or(0));
        if let Some(mean) = period.and_then(|period| period.checked_div(events)) {
            metrics.listening().arrival_period.add(mean, events);
        }
        if events > 0 {
            self.newest = Some(time);
            let took = clock.monotonic().since(start).as_nanos();
            let took = u64::try_from(took).unwrap_or(u64::MAX);
            metrics.listening().processing_time.add(took, events);
        }
        received
    }

    /// Counts what the kernel threw away since the last look.
    fn count_drops(&mut self) {
        let Ok(state) = self.socket.state() else { return };
        self.queued.store(u64::from(state.queued), Ordering::Relaxed);
        let before = std::mem::replace(&mut self.drops, state.drops);
        self.intake.metrics().lost_before.add(u64::from(state.drops.wrapping_sub(before)));
    }
}

/// Waits until one of them can be read or the time is over; returns whether the first can.
fn wait<const N: usize>(of: [BorrowedFd<'_>; N], nanoseconds: Option<i64>) -> bool {
    let mut of = of.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let limit = nanoseconds.map(|all| Timespec { tv_sec: all / SECOND, tv_nsec: all % SECOND });
    match poll(&mut of, limit.as_ref()) {
        Ok(_) => !of[0].revents().is_empty(),
        Err(_) => false,
    }
}
