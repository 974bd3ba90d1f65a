//! Servers that several inputs share: one socket, and for each input its path.
//!
//! The input that has the listener accepts connections for all of them; when it ends, the next one goes on with it. A
//! connection is closed after its request when an input ends: it may have a source of that input.

use super::HttpEndpoint;
use super::accept::serve;
use super::answer::Route;
use super::routes::Routes;
use crate::listen::{Bound, HANDSHAKE_TIMEOUT, ListenPlace, Tls};
use crate::receive_queue::receive_queue;
use skidder_input::{InputError, Intake};
use skidder_net::{Listener, Server as Socket, ServerSettings};
use skidder_os::Fs;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::task::{JoinError, JoinSet};
use tracing::Instrument as _;

/// The servers of the program, by host and port as in the settings.
#[derive(Clone, Debug, Default)]
pub struct Servers(Arc<Mutex<Known>>);

type Known = HashMap<(String, u16), Weak<Server>>;

/// A server; it closes its socket when the last input that knows it is gone.
pub(super) struct Server {
    /// All that its connections know, so that they do not keep the socket open.
    routes: Arc<Routes>,
    /// The socket, while no input accepts connections. The input that does has the lock.
    listener: tokio::sync::Mutex<Option<Listener>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server").field("routes", &self.routes.len()).finish_non_exhaustive()
    }
}

impl Servers {
    /// The server with this address. Each of port 0 is another one.
    pub(super) fn of(&self, host: &str, port: u16) -> Arc<Server> {
        if port == 0 {
            return Arc::new(Server::new());
        }
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|_, server| server.strong_count() > 0);
        let key = (host.to_owned(), port);
        if let Some(server) = servers.get(&key).and_then(Weak::upgrade) {
            return server;
        }
        let server = Arc::new(Server::new());
        servers.insert(key, Arc::downgrade(&server));
        server
    }
}

impl HttpEndpoint {
    /// Runs until the input must stop.
    pub(super) async fn serve(self: Box<Self>, intake: Intake) -> Result<(), InputError> {
        let Self { settings, server, place, tls, fs, device } = *self;
        if intake.metrics().listening().device.set(device).is_err() {
            debug_assert!(false, "an input runs once");
        }
        let route = Arc::new(Route::new(settings, intake.clone()));
        if !server.routes.add(&route).await {
            return Ok(());
        }
        let accepted = server.accept_until_stopped(&place, tls, &fs, &intake).await;
        server.routes.remove(&route);
        intake.set_finishing();
        route.idle().await;
        accepted
    }
}

impl Server {
    fn new() -> Self {
        Self { routes: Arc::new(Routes::new()), listener: tokio::sync::Mutex::new(None) }
    }

    /// Waits for the listener, or binds it, and accepts connections until the input must stop.
    async fn accept_until_stopped(
        &self,
        place: &ListenPlace,
        tls: Option<Tls>,
        fs: &Arc<dyn Fs>,
        intake: &Intake,
    ) -> Result<(), InputError> {
        let mut stopped = pin!(intake.stopped());
        let mut held = tokio::select! {
            biased;
            () = &mut stopped => return Ok(()),
            held = self.listener.lock() => held,
        };
        let listener = match held.take() {
            Some(listener) => listener,
            None => match place.bind::<()>(intake).await? {
                Some(Bound { listener, .. }) => listener,
                None => return Ok(()),
            },
        };
        let address = listener.address().clone();
        tracing::info!(%address, "listening");
        intake.metrics().listening().set_receive_queue(receive_queue(&address, Arc::clone(fs)));
        let tls = tls.map(|(_, server)| server);
        let settings =
            ServerSettings { tls, connections_max: 0, handshake_timeout: HANDSHAKE_TIMEOUT };
        let socket = Socket::over(listener, settings);
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = &mut stopped => break,
                Some(ended) = tasks.join_next() => look(ended),
                accepted = socket.accept() => {
                    // It may stay for a while behind the end of the input.
                    let (routes, metrics) = (Arc::clone(&self.routes), Arc::clone(intake.metrics()));
                    let ended = routes.ended();
                    tasks.spawn(serve(accepted, routes, metrics, ended).in_current_span());
                }
            }
        }
        // They end by themselves, as soon as their requests are over.
        tasks.detach_all();
        *held = Some(socket.into_listener());
        Ok(())
    }
}

fn look(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection has ended by a bug");
    }
}
