//! A server of streams: it binds or takes over its socket, accepts connections, and ends them or hands them over.

use super::StreamSettings;
use super::buffers::Buffers;
use super::connection::{Connection, Running};
use crate::common::known_utf8;
use crate::listen::{self, Bound, HANDSHAKE_TIMEOUT, ListenPlace};
use skidder_event::{Map, Parts, Progress};
use skidder_input::{InputError, InputMetrics, Intake, OnBatch, Sending, Source};
use skidder_net::{Accepted, Peer, Server, ServerSettings, TlsSession};
use skidder_os::Fs;
use skidder_tls::{TlsServer, TlsServerSettings};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::coop::unconstrained;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;

/// Connections of the kernel's queue that are accepted at a stop.
const LAST_ACCEPTED_MAX: usize = 4096;

/// How long a stop waits for descriptors to accept them.
const LAST_ACCEPTED_LIMIT: Duration = Duration::from_secs(2);

/// A server of streams, before it runs.
pub struct StreamServer {
    /// Where it listens.
    pub place: ListenPlace,
    /// How it reads.
    pub settings: StreamSettings,
    /// TLS, unless connections are plain: the settings, to compare them, and what they make.
    pub tls: Option<(TlsServerSettings, Arc<TlsServer>)>,
    /// Whether events have `tls.*`.
    pub tls_fields: bool,
    /// Files of the system.
    pub fs: Arc<dyn Fs>,
    /// Where it listens, as the metrics show it.
    pub device: String,
    /// Applied to each batch.
    pub on_batch: Option<OnBatch>,
}

/// The state that the connections of a server share.
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

/// What connections should do.
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

/// The state that a server leaves for the next one, beside its socket.
struct Left {
    connections: Vec<Connection>,
    tls: Option<TlsServerSettings>,
}

/// Runs a server of streams until the input must stop: [`StreamServer`] says how, `intake` gets the events.
///
/// # Errors
///
/// The address is wrong. One that is in use is tried again without end.
pub async fn serve(server: StreamServer, intake: Intake) -> Result<(), InputError> {
    let metrics = Arc::clone(intake.metrics());
    let Some(bound) = server.place.bind::<Left>(&intake).await? else { return Ok(()) };
    let StreamServer { place, settings, tls, tls_fields, on_batch, fs, device } = server;
    bound.announce(device, &metrics, fs);
    let address = bound.listener.address().clone();
    let (tls_settings, tls) = tls.unzip();
    let server_settings = ServerSettings {
        tls,
        connections_max: settings.connections_max,
        handshake_timeout: settings.timeout.min(HANDSHAKE_TIMEOUT),
    };
    let Bound { listener, is_inherited, left } = bound;
    let (connections, tls_before) =
        left.map(|left| (left.connections, left.tls)).unwrap_or_default();
    // Connections of another TLS have to go.
    let are_old = tls_before != tls_settings;
    let mut server = Server::over(listener, server_settings.clone());
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
        connection.must_end |= are_old;
        resume(connection, &server, &shared, &mut tasks);
    }
    let mut stopped = pin!(intake.stopped());
    loop {
        tokio::select! {
            biased;
            () = &mut stopped => break,
            Some(ended) = tasks.join_next() => drop(look(ended)),
            accepted = server.accept() => {
                tasks.spawn(open(accepted, Arc::clone(&shared)).in_current_span());
            }
        }
    }
    if place.claim.has_successor() {
        shared.phase.send_replace(Phase::HandOver);
        let connections = ends(std::mem::take(&mut tasks)).await;
        tracing::info!(%address, connections = connections.len(), "handing over the socket");
        let listener = server.into_listener();
        let left = Left { connections, tls: tls_settings };
        let Err(bound) = place.leave(Bound { listener, is_inherited, left: Some(left) }) else {
            return Ok(());
        };
        // The successor was stopped meanwhile.
        shared.phase.send_replace(Phase::Drain);
        server = Server::over(bound.listener, server_settings);
        for connection in bound.left.into_iter().flat_map(|left| left.connections) {
            resume(connection, &server, &shared, &mut tasks);
        }
    }
    end(server, is_inherited, &shared, tasks).await;
    Ok(())
}

/// Reads what was received, and closes.
async fn end(
    server: Server,
    is_inherited: bool,
    shared: &Arc<Shared>,
    mut tasks: JoinSet<Option<Connection>>,
) {
    // Connections that are read to their end make room for those that are still to be accepted.
    shared.phase.send_replace(Phase::Drain);
    if !is_inherited {
        accept_the_last(&server, shared, &mut tasks).await;
    }
    drop(server);
    // The address is free for another input; what is left comes from connections.
    shared.intake.set_finishing();
    ends(tasks).await;
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

/// Accepts those that wait in the kernel, also beyond `max_connections`: what they have sent was received.
async fn accept_the_last(
    server: &Server,
    shared: &Arc<Shared>,
    tasks: &mut JoinSet<Option<Connection>>,
) {
    let deadline = Instant::now() + LAST_ACCEPTED_LIMIT;
    let (mut accepted_count, mut is_sure) = (0, false);
    while accepted_count < LAST_ACCEPTED_MAX {
        // A task that has used its share of the runtime would take it for the end.
        let mut accepting = pin!(unconstrained(server.accept_beyond()));
        let accepted = poll_fn(|context| Poll::Ready(accepting.as_mut().poll(context))).await;
        match accepted {
            Poll::Pending if is_sure => return,
            // The runtime may not have polled the listener since the last client. It has once a timer fires.
            Poll::Pending => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                is_sure = true;
            }
            Poll::Ready(Ok(accepted)) => {
                (accepted_count, is_sure) = (accepted_count + 1, false);
                tasks.spawn(open(accepted, Arc::clone(shared)).in_current_span());
            }
            // No descriptors are left, until a connection ends.
            Poll::Ready(Err(_)) if !tasks.is_empty() && Instant::now() < deadline => {
                if let Ok(Some(ended)) = timeout_at(deadline, tasks.join_next()).await {
                    look(ended);
                }
            }
            Poll::Ready(Err(error)) => {
                shared.metrics.failed("", &error.to_string());
                tracing::warn!(%error, "what clients have sent that wait to be accepted is lost");
                return;
            }
        }
    }
    tracing::warn!(
        accepted = LAST_ACCEPTED_MAX,
        "more clients may wait to be accepted; what they have sent is lost"
    );
}

/// A new connection.
fn open(accepted: Accepted, shared: Arc<Shared>) -> Running {
    Box::pin(async move {
        debug_assert!(shared.settings.timeout > Duration::ZERO, "checked by the settings");
        let mut phase = shared.phase.subscribe();
        // The client has sent no event before the handshake is over.
        let ends = async {
            drop(phase.wait_for(|phase| *phase != Phase::Run).await);
        };
        let connection = listen::open(accepted, &shared.metrics, ends).await?;
        let connection = Connection::new(connection);
        let source = shared.source(&connection.peer, connection.tls.as_ref());
        connection.run(shared, source).await
    })
}

/// A connection from before a reload.
fn resume(
    mut connection: Connection,
    server: &Server,
    shared: &Arc<Shared>,
    tasks: &mut JoinSet<Option<Connection>>,
) {
    connection.place = server.try_place();
    // The delimiter may be another one.
    connection.searched = 0;
    let shared = Arc::clone(shared);
    let running: Running = Box::pin(async move {
        let source = shared.source(&connection.peer, connection.tls.as_ref());
        connection.run(shared, source).await
    });
    tasks.spawn(running.in_current_span());
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
    pub(super) fn send(
        &self,
        source: &mut Source,
        parts: Parts,
        bytes: usize,
        now: Now,
    ) -> Sending {
        let events = parts.rows.len() as u64;
        let messages: u64 = parts.rows.iter().map(|row| u64::from(row.message.len)).sum();
        let listening = self.metrics.listening();
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
        source.send(batch, Progress::Nothing(bytes as u64))
    }

    /// So many events that were received at a moment are in the queue.
    pub(super) fn sent(&self, events: u64, now: Now) {
        let took = self.monotonic().saturating_sub(now.monotonic);
        self.metrics.listening().processing_time.add(took, events);
    }

    /// How many bytes from the start are known to be UTF-8, at the ends of each message, too.
    fn utf8_bytes(&self, parts: &Parts, bytes: usize) -> usize {
        let rows = if self.settings.framing.keeps_utf8() { &[] } else { &parts.rows[..] };
        known_utf8(&parts.bytes[..bytes], rows)
    }
}
