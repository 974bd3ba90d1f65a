//! A bad network that is the same every time: a TCP proxy that breaks each connection at a set place.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// What the proxy does to one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing: everything passes.
    Clean,
    /// Reset before a byte passed.
    Refuse,
    /// Reset when so many bytes have passed to the server; the last of them do not arrive.
    ResetAfterSent(usize),
    /// Reset when so many bytes of answers have passed back.
    ResetAfterAnswered(usize),
    /// Everything that is sent arrives; then, instead of the first answer, a reset.
    ResetInsteadOfAnswer,
    /// Bytes pass in pieces of this size with a pause after each, both ways.
    Slow(usize, Duration),
}

/// See the module's text. It ends with the runtime, or is stopped.
#[derive(Clone, Debug)]
pub struct Proxy {
    address: String,
    state: Arc<Mutex<State>>,
    /// Grows to reset all connections.
    cut: Arc<watch::Sender<u64>>,
    accepting: AbortHandle,
}

#[derive(Debug, Default)]
struct State {
    ways: VecDeque<Way>,
    /// Connections accepted so far.
    connections: usize,
    /// The server is down: connections are reset at once.
    down: bool,
}

impl Proxy {
    /// A proxy before `server`; the first connections go these ways, all others are clean.
    pub async fn start(server: &str, ways: impl IntoIterator<Item = Way>) -> Self {
        Self::start_at(0, server, ways).await
    }

    /// The same at a port, for servers that redirect their clients.
    pub async fn start_at(port: u16, server: &str, ways: impl IntoIterator<Item = Way>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = State { ways: ways.into_iter().collect(), ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let cut = Arc::new(watch::channel(0).0);
        let (states, cuts, server) = (Arc::clone(&state), Arc::clone(&cut), server.to_owned());
        let accepting = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let way = states.lock().unwrap().next_way();
                let (cut, server) = (cuts.subscribe(), server.clone());
                tokio::spawn(async move { pass(client, &server, way, cut).await });
            }
        });
        Self { address, state, cut, accepting: accepting.abort_handle() }
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }

    /// Resets all connections, and new ones too, as a server that is down does.
    pub fn take_down(&self) {
        self.state.lock().unwrap().down = true;
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    /// Lets connections through again.
    pub fn bring_up(&self) {
        self.state.lock().unwrap().down = false;
    }

    /// Resets all connections and gives its port back.
    pub async fn stop(&self) {
        self.take_down();
        self.accepting.abort();
        while !self.accepting.is_finished() {
            tokio::task::yield_now().await;
        }
    }
}

impl State {
    fn next_way(&mut self) -> Way {
        self.connections += 1;
        if self.down {
            return Way::Refuse;
        }
        self.ways.pop_front().unwrap_or(Way::Clean)
    }
}

/// Carries one connection to its end.
async fn pass(mut client: TcpStream, server: &str, way: Way, mut cut: watch::Receiver<u64>) {
    // Dropping a socket that does not linger sends a reset.
    client.set_zero_linger().unwrap();
    if way == Way::Refuse {
        return;
    }
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    server.set_zero_linger().unwrap();
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (sent_max, answered_max) = match way {
        Way::ResetAfterSent(bytes) => (bytes, usize::MAX),
        Way::ResetAfterAnswered(bytes) => (usize::MAX, bytes),
        Way::ResetInsteadOfAnswer => (usize::MAX, 0),
        Way::Clean | Way::Refuse | Way::Slow(..) => (usize::MAX, usize::MAX),
    };
    let pace = match way {
        Way::Slow(bytes, pause) => Some((bytes, pause)),
        _ => None,
    };
    let (mut client_reads, mut client_writes) = client.split();
    let (mut server_reads, mut server_writes) = server.split();
    tokio::select! {
        () = carry(&mut client_reads, &mut server_writes, sent_max, pace) => {}
        () = carry(&mut server_reads, &mut client_writes, answered_max, pace) => {}
        _ = cut.changed() => {}
    }
}

/// Carries bytes one way until the end, or until so many have passed.
async fn carry(
    from: &mut ReadHalf<'_>,
    to: &mut WriteHalf<'_>,
    mut left: usize,
    pace: Option<(usize, Duration)>,
) {
    let mut buffer = vec![0; 64 << 10];
    let piece = pace.map_or(buffer.len(), |(bytes, _)| bytes.min(buffer.len()));
    loop {
        let count = match from.read(&mut buffer[..piece]).await {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        if count > left {
            return;
        }
        left -= count;
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
        if let Some((_, pause)) = pace {
            tokio::time::sleep(pause).await;
        }
    }
}
