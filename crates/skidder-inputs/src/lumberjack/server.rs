//! The server: it binds or takes over its socket, and accepts connections.

use super::connection::Connection;
use super::{KIND, Settings};
use crate::listen::{Bound, HANDSHAKE_TIMEOUT, ListenPlace, Tls, open};
use skidder_event::Map;
use skidder_input::{InputError, Intake, Source};
use skidder_net::{Accepted, Peer, Server, ServerSettings, TlsSession};
use skidder_os::Fs;
use std::pin::pin;
use std::sync::Arc;
use tokio::task::{JoinError, JoinSet};
use tracing::Instrument as _;

/// A server of Lumberjack, before it runs.
pub(super) struct Lumberjack {
    pub(super) place: ListenPlace,
    pub(super) settings: Settings,
    /// TLS, unless connections are plain.
    pub(super) tls: Option<Tls>,
    /// 0 = no limit.
    pub(super) connections_max: usize,
    pub(super) fs: Arc<dyn Fs>,
    /// Where it listens, as the metrics show it.
    pub(super) device: String,
}

/// The state that the connections of a server share.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) intake: Intake,
}

impl Lumberjack {
    /// Runs until the input must stop. Connections are closed then, as soon as what they have sent has its answer or
    /// after a second: clients connect again, to the next input over this socket if there is one.
    pub(super) async fn serve(self, intake: Intake) -> Result<(), InputError> {
        let Self { place, settings, tls, connections_max, fs, device } = self;
        let Some(bound) = place.bind::<()>(&intake).await? else { return Ok(()) };
        bound.announce(device, intake.metrics(), fs);
        let scheme = if tls.is_some() { "tls" } else { "tcp" };
        let address = format!("{scheme}://{}", bound.listener.address());
        intake.metrics().listening().batches.address.get_or_init(|| address);
        let Bound { listener, is_inherited, .. } = bound;
        let address = listener.address().clone();
        let handshake_timeout = settings.timeout.min(HANDSHAKE_TIMEOUT);
        let tls = tls.map(|(_, server)| server);
        let server =
            Server::over(listener, ServerSettings { tls, connections_max, handshake_timeout });
        let shared = Arc::new(Shared { settings, intake: intake.clone() });
        let mut tasks = JoinSet::new();
        let mut stopped = pin!(intake.stopped());
        loop {
            tokio::select! {
                biased;
                () = &mut stopped => break,
                Some(ended) = tasks.join_next() => look(ended),
                accepted = server.accept() => {
                    tasks.spawn(run(accepted, Arc::clone(&shared)).in_current_span());
                }
            }
        }
        if place.claim.has_successor() {
            tracing::info!(%address, "handing over the socket");
            let bound = Bound { listener: server.into_listener(), is_inherited, left: None::<()> };
            // If the successor was stopped meanwhile, it is closed here.
            drop(place.leave(bound));
        } else {
            drop(server);
        }
        intake.set_finishing();
        while let Some(ended) = tasks.join_next().await {
            look(ended);
        }
        Ok(())
    }
}

fn look(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection has ended by a bug");
    }
}

/// Serves a connection.
async fn run(accepted: Accepted, shared: Arc<Shared>) {
    let (metrics, stopped) = (shared.intake.metrics(), shared.intake.stopped());
    let Some(connection) = open(accepted, metrics, stopped).await else { return };
    let source = shared.source(&connection.peer, connection.tls.as_ref());
    Connection::new(connection, source, shared).run().await;
}

impl Shared {
    /// Opens the source of a connection.
    fn source(&self, peer: &Peer, tls: Option<&TlsSession>) -> Source {
        let mut fields = Map::new();
        let name = match peer {
            Peer::Tcp(address) => address.to_string(),
            Peer::Unix => KIND.to_owned(),
        };
        fields.insert_path("source.address", name.as_str());
        let client = tls.and_then(|tls| tls.client.as_ref());
        if let Some(client) = client {
            let name = client.common_name.as_deref().unwrap_or_default();
            fields.insert_path("tls.client.subject", name);
        }
        self.intake.open(&name, fields)
    }
}
