//! One connection: requests in, answers out, over HTTP/1.1.

use super::server::Server;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use skidder_net::{HttpEnd, HttpLimits, Peer, ServerConnection, serve_http};
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// For the head of a request, and between two requests: longer than load balancers keep connections.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// Request line and headers; more is answered with 431 or 414.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;

impl Server {
    /// Serves a connection until the client closes it, or an input ends.
    pub(super) async fn converse(self: Arc<Self>, connection: ServerConnection) {
        let ServerConnection { stream, peer, place: _place, .. } = connection;
        let name: Arc<str> = match &peer {
            Peer::Tcp(address) => address.to_string().into(),
            Peer::Unix => "unix".into(),
        };
        let sessions = Arc::new(Mutex::new(Vec::new()));
        let changed = self.changed();
        let service = service_fn(move |request: Request<Incoming>| {
            let (server, name) = (Arc::clone(&self), Arc::clone(&name));
            let sessions = Arc::clone(&sessions);
            async move {
                // One request at a time: this waits for nothing.
                let mut sessions = sessions.lock().await;
                Ok::<_, Infallible>(server.answer(request, &name, &mut sessions).await)
            }
        });
        let limits = HttpLimits {
            head_timeout: HEAD_TIMEOUT,
            head_bytes_max: HEAD_BYTES_MAX,
            connection_time_max: None,
        };
        // An answer under way ends with its input, or with its own limits.
        let grace = pending::<()>;
        match serve_http(stream, service, limits, changed, pending(), grace).await {
            HttpEnd::Closed | HttpEnd::Abandoned | HttpEnd::Late => {}
            HttpEnd::Broken(error) => {
                tracing::debug!(%peer, %error, "a connection is broken; the client sends again what has no answer");
            }
        }
    }
}
