//! A simulated network: connections are pipes in memory that break where the test says.

use skidder_net::{
    Accept, AcceptFuture, BoundAddress, ListenFuture, Listener, Network, Peer, Stream, StreamPlace,
};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::sync::mpsc;

/// Bytes that a connection holds: all that a test sends, so that writing never waits.
const CAPACITY: usize = 8 << 20;

type Arrival = (Box<dyn Stream>, Peer);

/// One address at which one server can listen.
#[derive(Clone)]
pub(super) struct SimNetwork {
    connect: mpsc::UnboundedSender<Arrival>,
    arrivals: Arc<Mutex<Option<mpsc::UnboundedReceiver<Arrival>>>>,
    /// How often binding fails before it works.
    pub(super) failures: Arc<Mutex<u32>>,
}

impl SimNetwork {
    pub(super) fn new() -> Self {
        let (connect, arrivals) = mpsc::unbounded_channel();
        Self { connect, arrivals: Arc::new(Mutex::new(Some(arrivals))), failures: Arc::default() }
    }

    /// Connects from a port. The connection is reset when the server has read `breaks_after` bytes.
    pub(super) fn connect(&self, port: u16, breaks_after: Option<usize>) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(CAPACITY);
        let stream = Breaking { inner: theirs, left: breaks_after.unwrap_or(usize::MAX) };
        let peer = Peer::Tcp(SocketAddr::from(([192, 0, 2, 1], port)));
        self.connect.send((Box::new(stream), peer)).unwrap();
        ours
    }
}

impl std::fmt::Debug for SimNetwork {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("SimNetwork")
    }
}

impl Network for SimNetwork {
    fn listen<'a>(&'a self, place: &'a StreamPlace) -> ListenFuture<'a> {
        Box::pin(async move {
            let mut failures = self.failures.lock().unwrap();
            let arrivals = if *failures > 0 {
                *failures -= 1;
                None
            } else {
                self.arrivals.lock().unwrap().take()
            };
            let in_use = skidder_net::ListenError::InUse { address: place.address() };
            let arrivals = tokio::sync::Mutex::new(arrivals.ok_or(in_use)?);
            let accept = SimListener { arrivals };
            let address = BoundAddress::Tcp(SocketAddr::from(([192, 0, 2, 2], 9000)));
            Ok(Listener::over(Box::new(accept), address))
        })
    }
}

#[derive(Debug)]
struct SimListener {
    arrivals: tokio::sync::Mutex<mpsc::UnboundedReceiver<Arrival>>,
}

impl Accept for SimListener {
    fn accept(&self) -> AcceptFuture<'_> {
        Box::pin(async {
            let arrived = self.arrivals.lock().await.recv().await;
            arrived.ok_or_else(|| io::ErrorKind::NotConnected.into())
        })
    }
}

/// A connection that is reset after so many bytes.
struct Breaking {
    inner: DuplexStream,
    left: usize,
}

impl AsyncRead for Breaking {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let mut bytes = vec![0; self.left.min(buffer.remaining()).min(1 << 16)];
        let mut some = ReadBuf::new(&mut bytes);
        let read = Pin::new(&mut self.inner).poll_read(context, &mut some);
        let count = some.filled().len();
        buffer.put_slice(some.filled());
        self.left -= count;
        read
    }
}

impl AsyncWrite for Breaking {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
