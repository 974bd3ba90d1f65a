//! A server of streams: it binds or takes over its socket, accepts connections, and ends them or hands them over.

use super::buffers::Buffers;
use super::connection::{Connection, Running};
use super::{OnBatch, StreamSettings};
use crate::bind::Attempts;
use crate::stream::receive_queue::receive_queue;
use skidder_event::{Map, Parts, Progress};
use skidder_input::{InputError, InputMetrics, Intake, Source, Stopped};
use skidder_net::{
    Accepted, Claim, Family, IpPlace, ListenError, Listener, Network, Peer, Server, ServerSettings,
    StreamPlace, TlsSession, UnixPlace,
};
use skidder_os::Fs;
use skidder_tls::{TlsServer, TlsServerSettings};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

/// How long a TLS handshake may take; never longer than `timeout`.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Connections of the kernel's queue that are accepted at a stop.
const LAST_ACCEPTED_MAX: usize = 4096;

/// Where a server listens, as in the settings.
#[derive(Clone, Debug)]
pub enum StreamAddress {
    /// TCP.
    Tcp {
        /// A name or an address; empty for all addresses of this machine.
        host: String,
        /// The port.
        port: u16,
        /// The IP versions.
        family: Family,
    },
    /// A unix socket.
    Unix(UnixPlace),
}

/// A server of streams, before it runs.
pub struct StreamServer {
    /// Where it listens.
    pub address: StreamAddress,
    /// Its socket.
    pub claim: Claim,
    /// How it reads.
    pub settings: StreamSettings,
    /// TLS, unless connections are plain: the settings, to compare them, and what they make.
    pub tls: Option<(TlsServerSettings, Arc<TlsServer>)>,
    /// Whether events have `tls.*`.
    pub tls_fields: bool,
    /// Where it is bound.
    pub network: Arc<dyn Network>,
    /// Files of the system.
    pub fs: Arc<dyn Fs>,
    /// Where it listens, as the metrics show it.
    pub device: String,
    /// What is done to each batch.
    pub on_batch: Option<OnBatch>,
}

/// What the connections of a server share.
pub(super) struct Shared {
    pub(super) settings: StreamSettings,
    pub(super) phase: watch::Sender<Phase>,
    pub(super) buffers: Arc<Buffers>,
    intake: Intake,
    metrics: Arc<InputMetrics>,
    tls_fields: bool,
    on_batch: Option<OnBatch>,
    /// When events came last, by the monotonic clock in nanoseconds; 0 if never.
    last_arrival: AtomicU64,
}

/// What connections are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Read.
    Run,
    /// Read what was received, and close.
    Drain,
    /// Stay open for the next input.
    HandOver,
}

/// The moment of a receipt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// `@timestamp`, in nanoseconds since 1970-01-01 UTC.
    pub(super) wall: i64,
    /// Nanoseconds by the monotonic clock.
    monotonic: u64,
}

/// What a server leaves for the next one.
struct Left {
    listener: Listener,
    is_inherited: bool,
    connections: Vec<Connection>,
    tls: Option<TlsServerSettings>,
}

/// A socket that listens.
struct Bound {
    listener: Listener,
    /// It is systemd's, which keeps it open and knows the next process.
    is_inherited: bool,
    connections: Vec<Connection>,
    /// The connections are of another TLS, and have to go.
    are_old: bool,
}

/// Runs a server of streams until the input must stop: [`StreamServer`] says how, `intake` gets the events.
///
/// # Errors
///
/// The address is wrong. One that is in use is tried again without end.
pub async fn serve(server: StreamServer, intake: Intake) -> Result<(), InputError> {
    let metrics = Arc::clone(intake.metrics());
    let Some(bound) = server.bind(&intake).await? else { return Ok(()) };
    let StreamServer { claim, settings, tls, tls_fields, on_batch, fs, device, .. } = server;
    let address = bound.listener.address().clone();
    tracing::info!(%address, "listening");
    if metrics.listening.device.set(device).is_err() {
        debug_assert!(false, "an input runs once");
    }
    metrics.listening.set_receive_queue(receive_queue(&address, fs));
    let (tls_settings, tls) = tls.unzip();
    let server_settings = ServerSettings {
        tls,
        connections_max: settings.connections_max,
        handshake_timeout: settings.timeout.min(HANDSHAKE_TIMEOUT),
    };
    let Bound { listener, is_inherited, connections, are_old } = bound;
    let server = Server::over(listener, server_settings);
    let (phase, _) = watch::channel(Phase::Run);
    let shared = Arc::new(Shared {
        settings,
        phase,
        buffers: Arc::default(),
        intake: intake.clone(),
        metrics,
        tls_fields,
        on_batch,
        last_arrival: AtomicU64::new(0),
    });
    let mut tasks = JoinSet::new();
    for mut connection in connections {
        connection.place = server.try_place();
        // The delimiter may be another one.
        connection.searched = 0;
        tasks.spawn(resume(connection, Arc::clone(&shared), are_old));
    }
    let mut stopped = pin!(intake.stopped());
    loop {
        tokio::select! {
            biased;
            () = &mut stopped => break,
            Some(ended) = tasks.join_next() => drop(look(ended)),
            accepted = server.accept() => {
                tasks.spawn(open(accepted, Arc::clone(&shared)));
            }
        }
    }
    if claim.has_successor() {
        shared.phase.send_replace(Phase::HandOver);
        let connections = ends(tasks).await;
        tracing::info!(%address, connections = connections.len(), "handing over the socket");
        let listener = server.into_listener();
        claim.leave(Left { listener, is_inherited, connections, tls: tls_settings });
        return Ok(());
    }
    if !is_inherited {
        accept_the_last(&server, &shared, &mut tasks).await;
    }
    drop(server);
    shared.phase.send_replace(Phase::Drain);
    ends(tasks).await;
    Ok(())
}

/// Waits for the ends of all connections; returns those that stay open.
async fn ends(mut tasks: JoinSet<Option<Connection>>) -> Vec<Connection> {
    let mut open = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        open.extend(look(ended));
    }
    open
}

fn look(ended: Result<Option<Connection>, JoinError>) -> Option<Connection> {
    ended.unwrap_or_else(|error| {
        tracing::error!(%error, "a connection has ended by a bug");
        None
    })
}

/// Accepts those that wait in the kernel: what they have sent was received.
async fn accept_the_last(
    server: &Server,
    shared: &Arc<Shared>,
    tasks: &mut JoinSet<Option<Connection>>,
) {
    for _ in 0..LAST_ACCEPTED_MAX {
        let mut accepting = pin!(server.accept());
        let accepted = poll_fn(|context| Poll::Ready(accepting.as_mut().poll(context))).await;
        let Poll::Ready(accepted) = accepted else { return };
        tasks.spawn(open(accepted, Arc::clone(shared)));
    }
}

/// A new connection.
fn open(accepted: Accepted, shared: Arc<Shared>) -> Running {
    Box::pin(async move {
        let peer = *accepted.peer();
        match handshake(accepted, &shared).await {
            Ok(connection) => {
                let source = shared.source(&connection.peer, connection.tls.as_ref());
                connection.run(shared, source).await
            }
            Err(error) => {
                shared.metrics.errors.add(1);
                tracing::warn!(%peer, %error, "a connection was not accepted");
                None
            }
        }
    })
}

async fn handshake(
    accepted: Accepted,
    shared: &Shared,
) -> Result<Connection, skidder_net::HandshakeError> {
    // Large, and gone when the connection waits for its first byte.
    let opening = Box::pin(accepted.open());
    let opened = opening.await?;
    let skidder_net::ServerConnection { stream, peer, tls, place } = opened;
    debug_assert!(shared.settings.timeout > Duration::ZERO, "checked by the settings");
    Ok(Connection { stream, peer, tls, rest: Vec::new(), searched: 0, place: Some(place) })
}

/// A connection from before a reload.
fn resume(connection: Connection, shared: Arc<Shared>, is_old: bool) -> Running {
    Box::pin(async move {
        let source = shared.source(&connection.peer, connection.tls.as_ref());
        if is_old {
            connection.end(shared, source).await;
            return None;
        }
        connection.run(shared, source).await
    })
}

impl Shared {
    /// Opens the source of a connection.
    fn source(&self, peer: &Peer, tls: Option<&TlsSession>) -> Source {
        let mut fields = Map::new();
        let name = match peer {
            Peer::Tcp(address) => {
                let name = address.to_string();
                fields.insert_path("log.source.address", name.as_str());
                name
            }
            Peer::Unix => "unix".to_owned(),
        };
        if let Some(tls) = tls.filter(|_| self.tls_fields) {
            super::tls_fields::add(tls, &mut fields);
        }
        self.intake.open(&name, fields)
    }

    pub(super) fn now(&self) -> Now {
        let clock = self.intake.clock();
        Now { wall: clock.wall().0, monotonic: self.monotonic() }
    }

    fn monotonic(&self) -> u64 {
        let since = self.intake.clock().monotonic().since(skidder_os::Monotonic::default());
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Counts bytes that came in.
    pub(super) fn received(&self, bytes: u64) {
        self.metrics.bytes.add(bytes);
    }

    /// Sends events that stand in the first `bytes` of a buffer.
    pub(super) async fn send(
        &self,
        source: &mut Source,
        parts: Parts,
        bytes: usize,
        now: Now,
    ) -> Result<(), Stopped> {
        let events = parts.rows.len() as u64;
        let messages: u64 = parts.rows.iter().map(|row| u64::from(row.message.len)).sum();
        let listening = &self.metrics.listening;
        listening.message_bytes.add(messages);
        let last = self.last_arrival.swap(now.monotonic, Ordering::Relaxed);
        if last != 0 {
            let period = now.monotonic.saturating_sub(last) / events.max(1);
            listening.arrival_period.add(period, events);
        }
        let utf8 = self.utf8_bytes(&parts, bytes);
        let (parts, is_lent) = self.buffers.filled(parts, bytes);
        let mut batch = source.batch_of(parts, utf8);
        if is_lent {
            self.buffers.lend(&mut batch);
        }
        if let Some(on_batch) = &self.on_batch {
            on_batch.run(&mut batch);
        }
        source.send(batch, Progress::Nothing(bytes as u64)).await?;
        let took = self.monotonic().saturating_sub(now.monotonic);
        listening.processing_time.add(took, events);
        Ok(())
    }

    /// How many bytes from the start are known to be UTF-8, at the ends of each message, too.
    fn utf8_bytes(&self, parts: &Parts, bytes: usize) -> usize {
        let Ok(text) = simdutf8::basic::from_utf8(&parts.bytes[..bytes]) else { return 0 };
        let is_boundary = |row: &skidder_event::Row| {
            let (start, len) = (row.message.start as usize, row.message.len as usize);
            text.is_char_boundary(start) && text.is_char_boundary(start + len)
        };
        let is_whole = self.settings.framing.keeps_utf8() || parts.rows.iter().all(is_boundary);
        if is_whole { bytes } else { 0 }
    }
}

impl StreamServer {
    /// Binds as soon as the address is free. Nothing if the input must stop before that.
    async fn bind(&self, intake: &Intake) -> Result<Option<Bound>, InputError> {
        let mut attempts = Attempts::new(intake);
        loop {
            let bound = attempts.made(self.try_bind().await).await?;
            if bound.is_some() || intake.is_stopped() {
                return Ok(bound);
            }
        }
    }

    /// Takes over the socket of the input before, or of systemd, or binds it.
    async fn try_bind(&self) -> Result<Bound, ListenError> {
        if let Some(left) = self.claim.take::<Left>() {
            let Left { listener, is_inherited, connections, tls } = left;
            let are_old = tls != self.tls.as_ref().map(|(settings, _)| settings.clone());
            if let (StreamAddress::Unix(place), false) = (&self.address, is_inherited) {
                place.apply()?;
            }
            return Ok(Bound { listener, is_inherited, connections, are_old });
        }
        let place = match &self.address {
            StreamAddress::Tcp { host, port, family } => {
                StreamPlace::Tcp(IpPlace::resolve(host, *port, *family).await?)
            }
            StreamAddress::Unix(place) => StreamPlace::Unix(place.clone()),
        };
        let inherited = self.inherited(&place)?;
        let is_inherited = inherited.is_some();
        let listener = match inherited {
            Some(listener) => listener,
            None => self.network.listen(&place).await?,
        };
        Ok(Bound { listener, is_inherited, connections: Vec::new(), are_old: false })
    }

    /// The socket of systemd with this address.
    fn inherited(&self, place: &StreamPlace) -> Result<Option<Listener>, ListenError> {
        let addresses = match place {
            StreamPlace::Tcp(place) => place.passed_as(),
            StreamPlace::Unix(_) => vec![place.address()],
        };
        for address in addresses {
            let Some(socket) = self.claim.inherited(&address) else { continue };
            let listener = match place {
                StreamPlace::Tcp(_) => Listener::from_tcp(socket.into()),
                StreamPlace::Unix(_) => Listener::from_unix(socket.into()),
            };
            return match listener {
                Ok(listener) => Ok(Some(listener)),
                Err(source) => Err(ListenError::Bind { address, source }),
            };
        }
        Ok(None)
    }
}
