//! What a connection keeps between its requests: a source for each path, and over HTTP/2 one for each request that is
//! open at once.

use super::answer::{Route, Session};
use hyper::StatusCode;
use skidder_input::InputMetrics;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sessions of a connection that no request uses.
pub(super) struct Sessions {
    /// The client.
    peer: Box<str>,
    /// Of the input that has accepted the connection.
    metrics: Arc<InputMetrics>,
    idle: Mutex<Vec<(Arc<Route>, Session)>>,
}

impl Sessions {
    pub(super) fn new(peer: String, metrics: Arc<InputMetrics>) -> Self {
        Self { peer: peer.into(), metrics, idle: Mutex::default() }
    }

    /// A request that belongs to no input, or what is none.
    pub(super) fn refused(&self, status: StatusCode, why: &str) {
        self.metrics.failed(&self.peer, why);
        tracing::warn!(source = %self.peer, status = status.as_u16(), "a request is refused: {why}");
    }

    /// Something else than requests.
    pub(super) fn broken(&self, what: &str) {
        self.metrics.failed(&self.peer, what);
        tracing::warn!(source = %self.peer, "a connection is closed: {what}");
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Arc<Route>, Session)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session for a request, an idle one if there is one.
    pub(super) fn take(&self, route: &Arc<Route>) -> Session {
        let mut idle = self.idle();
        match idle.iter().position(|(other, _)| Arc::ptr_eq(other, route)) {
            Some(at) => idle.swap_remove(at).1,
            None => {
                drop(idle);
                route.open(&self.peer)
            }
        }
    }

    /// Keeps a session for the next request, unless its input must stop: the client may not read its answer, and the
    /// input waits for its sources.
    pub(super) fn put(&self, route: &Arc<Route>, session: Session) {
        let mut idle = self.idle();
        if !route.intake.is_stopped() {
            idle.push((Arc::clone(route), session));
        }
    }

    /// Closes the sessions of inputs that must stop.
    pub(super) fn close_stopped(&self) {
        self.idle().retain(|(route, _)| !route.intake.is_stopped());
    }
}
