//! A simulated network of datagrams: they are lost, doubled and reordered on their way, and thrown away by a full buffer.

use rustix::event::{EventfdFlags, eventfd};
use skidder_net::{
    Arena, BoundDatagrams, Datagram, DatagramNetwork, DatagramPlace, DatagramState, Datagrams,
    ListenError,
};
use skidder_testkit::Random;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

/// What the kernel counts for a datagram besides its bytes.
const OVERHEAD_BYTES: usize = 64;

/// A bug of what is between the socket and the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    None,
    /// A datagram of a call is not looked at.
    Forgets,
    /// A datagram of a call is looked at twice.
    Repeats,
    /// The count of the kernel is not read.
    Blind,
    /// The count of the kernel begins anew for each input.
    Counts,
    /// A datagram that is too long is not marked.
    Cuts,
    /// In the place of a datagram comes the one before.
    Swaps,
}

/// A datagram as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    pub(super) peer: Option<SocketAddr>,
    pub(super) bytes: Vec<u8>,
}

/// One address at which one input receives. Cloning gives another handle to the same.
#[derive(Clone, Debug)]
pub(super) struct SimDatagrams(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    is_unix: bool,
    bug: Bug,
    /// Can be read while there are datagrams.
    ready: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    random: Random,
    queue: VecDeque<Arrived>,
    /// Bytes in the queue, and the most that may be.
    queued: usize,
    buffer: usize,
    /// As the kernel counts: wraps around.
    drops: u32,
    /// All that got into the queue, in its order.
    arrived: Vec<Arrived>,
    /// On their way, to arrive later.
    late: Vec<Arrived>,
    /// How often binding fails before it works.
    failures: u32,
    /// Sockets that exist now.
    bound: u32,
}

/// What became of all datagrams.
#[derive(Debug)]
pub(super) struct Fate {
    pub(super) arrived: Vec<Arrived>,
    /// Thrown away by the full buffer.
    pub(super) overflowed: u32,
}

impl SimDatagrams {
    pub(super) fn new(random: &mut Random, bug: Bug) -> Self {
        let ready = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let state = State {
            queue: VecDeque::new(),
            queued: 0,
            buffer: 1000 + random.below(20_000) as usize,
            drops: START,
            arrived: Vec::new(),
            late: Vec::new(),
            failures: u32::from(random.one_in(4)),
            bound: 0,
            random: Random::new(random.number()),
        };
        let (is_unix, state) = (random.one_in(4), Mutex::new(state));
        Self(Arc::new(Shared { is_unix, bug, ready, state }))
    }

    pub(super) fn is_unix(&self) -> bool {
        self.0.is_unix
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    /// A peer sends. Over a unix socket nothing happens to it: returns whether there was room, without which its
    /// sender waits.
    pub(super) fn send(&self, peer: SocketAddr, bytes: Vec<u8>) -> bool {
        let mut state = self.lock();
        if state.bound == 0 {
            // No socket: gone, as on a network.
            return true;
        }
        if self.0.is_unix {
            let has_room = state.has_room(bytes.len());
            if has_room {
                state.arrive(Arrived { peer: None, bytes });
            }
            drop(state);
            self.signal();
            return has_room;
        }
        let datagram = Arrived { peer: Some(peer), bytes };
        match state.random.below(20) {
            // Lost on the way: no machine knows.
            0 => {}
            1 => state.late.push(datagram),
            2 => {
                state.arrive(datagram.clone());
                state.arrive(datagram);
            }
            _ => state.arrive(datagram),
        }
        if state.random.one_in(10) {
            for datagram in std::mem::take(&mut state.late) {
                state.arrive(datagram);
            }
        }
        drop(state);
        self.signal();
        true
    }

    fn signal(&self) {
        rustix::io::write(&self.0.ready, &1_u64.to_ne_bytes()).unwrap();
    }

    /// What became of all; to be looked at when nothing is sent any more.
    pub(super) fn fate(&self) -> Fate {
        let state = self.lock();
        let overflowed = state.drops.wrapping_sub(START);
        Fate { arrived: state.arrived.clone(), overflowed }
    }
}

/// The count at the start: it wraps around soon.
const START: u32 = u32::MAX - 20;

impl State {
    fn has_room(&self, bytes: usize) -> bool {
        self.queue.is_empty() || self.queued + bytes + OVERHEAD_BYTES <= self.buffer
    }

    fn arrive(&mut self, datagram: Arrived) {
        if !self.has_room(datagram.bytes.len()) {
            self.drops = self.drops.wrapping_add(1);
            return;
        }
        self.queued += datagram.bytes.len() + OVERHEAD_BYTES;
        self.arrived.push(datagram.clone());
        self.queue.push_back(datagram);
    }
}

impl DatagramNetwork for SimDatagrams {
    fn bind(&self, place: &DatagramPlace) -> Result<BoundDatagrams, ListenError> {
        let mut state = self.lock();
        let address = place.address();
        if state.failures > 0 {
            state.failures -= 1;
            return Err(ListenError::InUse { address });
        }
        // As the kernel: an input that no other one follows keeps its socket for a moment after it has given up its claim.
        if state.bound > 0 {
            return Err(ListenError::InUse { address });
        }
        state.bound += 1;
        let drops = state.drops;
        drop(state);
        let socket = SimSocket { shared: self.clone(), seen: 0.into() };
        Ok(BoundDatagrams { socket: Box::new(socket), name: None, drops })
    }
}

#[derive(Debug)]
struct SimSocket {
    shared: SimDatagrams,
    /// Looks at the count of the kernel.
    seen: std::cell::Cell<u32>,
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        self.shared.lock().bound -= 1;
    }
}

impl AsFd for SimSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.0.ready.as_fd()
    }
}

impl Datagrams for SimSocket {
    fn address(&self) -> Option<SocketAddr> {
        (!self.shared.is_unix()).then(|| SocketAddr::from(([192, 0, 2, 2], 514)))
    }

    fn read_buffer(&self) -> io::Result<usize> {
        Ok(self.shared.lock().buffer)
    }

    fn set_read_buffer(&self, _: usize) -> io::Result<usize> {
        self.read_buffer()
    }

    fn state(&self) -> io::Result<DatagramState> {
        let state = self.shared.lock();
        self.seen.set(self.seen.get() + 1);
        let drops = match self.shared.0.bug {
            Bug::Blind => START,
            // As if an input that takes over began at nothing.
            Bug::Counts if self.seen.get().is_multiple_of(8) => START,
            _ => state.drops,
        };
        Ok(DatagramState { queued: state.queued as u32, drops })
    }

    fn receive(&self, arena: &mut Arena, each: &mut dyn FnMut(Datagram<'_>)) -> io::Result<usize> {
        let mut state = self.shared.lock();
        if state.random.one_in(10) {
            let kinds = [io::ErrorKind::Interrupted, io::ErrorKind::ConnectionRefused];
            return Err(kinds[state.random.below(2) as usize].into());
        }
        let count = state.queue.len().min(arena.slots()).min(1 + state.random.below(40) as usize);
        let mut before: Option<Arrived> = None;
        for number in 0..count {
            let datagram = state.queue.pop_front().unwrap();
            let Arrived { peer, bytes } = match before {
                Some(before) if self.shared.0.bug == Bug::Swaps && !datagram.bytes.is_empty() => {
                    before
                }
                _ => datagram.clone(),
            };
            before = (number % 4 == 2 && !datagram.bytes.is_empty()).then(|| datagram.clone());
            state.queued -= datagram.bytes.len() + OVERHEAD_BYTES;
            let shown = &bytes[..bytes.len().min(arena.message_bytes_max())];
            let bug = if number == 3 { self.shared.0.bug } else { Bug::None };
            let truncated = shown.len() < bytes.len() && self.shared.0.bug != Bug::Cuts;
            let times = match bug {
                Bug::Forgets => 0,
                Bug::Repeats => 2,
                _ => 1,
            };
            for _ in 0..times {
                each(Datagram { bytes: shown, peer, truncated });
            }
        }
        if state.queue.is_empty() {
            let mut signals = [0; 8];
            // It fails if there was no signal.
            let _cleared = rustix::io::read(&self.shared.0.ready, &mut signals);
        }
        if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
    }
}
