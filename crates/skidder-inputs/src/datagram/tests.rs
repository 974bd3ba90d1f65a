//! Far sides of datagrams.

use super::{DatagramAddress, DatagramServer, Left, Settings, serve, to_ask};
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line};
use skidder_input::{Input, InputFuture, Intake};
use skidder_net::{Arena, DatagramSocket, Datagrams as _, Family, RealNetwork, SocketKey, Sockets};
use std::net::UdpSocket;
use std::ops::Range;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

/// A bound socket that each run of the input gets a handle of, as in a reload.
struct Peer {
    socket: Arc<OwnedFd>,
    senders: Vec<UdpSocket>,
}

struct Receives(DatagramSocket, usize);

fn settings(backlog_bytes_max: usize) -> Settings {
    Settings {
        message_bytes_max: 1024,
        read_buffer: 8 << 20,
        backlog_bytes_max,
        device: "localhost:0".to_owned(),
        on_batch: None,
        sink: None,
    }
}

impl Input for Receives {
    fn kind(&self) -> &'static str {
        "udp"
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        let left = Left {
            socket: Box::new(self.0),
            drops: 0,
            name: None,
            waiting: Vec::new(),
            kept: None,
        };
        Box::pin(serve(left, None, settings(self.1), intake))
    }
}

impl InputTrial for Peer {
    fn input(&self) -> Box<dyn Input> {
        let socket = UdpSocket::from(self.socket.try_clone().unwrap());
        // More than the 5000 lines of one case need, less than the 20,000 of another.
        Box::new(Receives(socket.into(), 1 << 20))
    }

    fn meaning(&self) -> Meaning {
        Meaning::Nothing
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            for number in lines {
                let sender = &self.senders[number % self.senders.len()];
                sender.send(line(number).as_bytes()).unwrap();
                if number % 64 == 0 {
                    // As fast as a network: a burst of everything at once is another test.
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
            }
        })
    }

    fn waits(&self) -> bool {
        false
    }
}

fn peer(senders: usize) -> Peer {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let socket = DatagramSocket::from(socket);
    let to = socket.address().unwrap();
    socket.set_read_buffer(32 << 20).unwrap();
    let sender = |_| {
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(to).unwrap();
        sender
    };
    let socket = Arc::new(socket.as_fd().try_clone_to_owned().unwrap());
    Peer { socket, senders: (0..senders).map(sender).collect() }
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_of_one_peer_and_of_many_keep_the_contract() {
    for senders in [1, 40] {
        let fresh = || peer(senders);
        keep_input(fresh).await;
    }
}

#[test]
fn a_socket_of_systemd_begins_at_the_count_of_its_earlier_runs() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(socket.local_addr().unwrap()).unwrap();
    DatagramSocket::from(socket.try_clone().unwrap()).set_read_buffer(16 << 10).unwrap();
    for number in 0..2000 {
        sender.send(line(number).as_bytes()).unwrap();
    }
    let (host, port, family) = (String::new(), 0, Family::Any);
    let key = SocketKey::Udp { host: host.clone(), port, family };
    let server = DatagramServer {
        address: DatagramAddress::Udp { host, port, family },
        claim: Sockets::default().claim(key),
        settings: settings(1 << 20),
        network: Arc::new(RealNetwork),
    };
    let taken = server.take(socket.into());
    assert!(taken.drops > 0, "the buffer is too small for them");
    assert_eq!(taken.drops, taken.socket.state().unwrap().drops);
}

/// Lines that came, and what the far side lost before.
fn flood(count: usize, read_buffer: usize) -> (u64, u64, u64) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let socket = DatagramSocket::from(socket);
    socket.set_read_buffer(read_buffer).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(socket.address().unwrap()).unwrap();
    for number in 0..count {
        sender.send(line(number).as_bytes()).unwrap();
    }
    let mut arena = Arena::new(1024);
    let mut came = 0;
    while let Ok(received) = socket.receive(&mut arena, &mut |_| {}) {
        came += received as u64;
    }
    let state = socket.state().unwrap();
    (came, u64::from(state.drops), u64::from(state.queued))
}

#[test]
fn what_the_kernel_throws_away_is_known_also_if_nothing_follows() {
    let (came, drops, queued) = flood(2000, 16 << 10);
    assert!(drops > 0, "the buffer is too small for them");
    assert_eq!((came + drops, queued), (2000, 0));
    assert_eq!(flood(100, 1 << 20), (100, 0, 0));
}

#[test]
fn the_largest_buffer_of_the_settings_is_one_that_the_system_gives() {
    let socket = DatagramSocket::from(UdpSocket::bind("127.0.0.1:0").unwrap());
    let granted = socket.set_read_buffer(1 << 30).unwrap();
    if granted != to_ask(1 << 30) {
        let bound = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
        assert_eq!(granted.to_string(), bound.trim(), "without the right to more");
    }
    assert_eq!((to_ask(1 << 30), to_ask(8 << 20), to_ask(0)), ((1 << 30) - 1, 8 << 20, 0));
}
