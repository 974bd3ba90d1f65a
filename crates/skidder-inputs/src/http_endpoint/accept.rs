//! One connection: requests in, answers out, over HTTP/1.1 or HTTP/2.

use super::server::Server;
use super::sessions::Sessions;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use skidder_net::{HttpEnd, HttpLimits, Peer, ServerConnection, serve_http_any};
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

/// For the head of a request, and between two requests: longer than load balancers keep connections.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// Request line and headers; more is answered with 431 or 414.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;

impl Server {
    /// Serves a connection until the client closes it, or an input ends.
    pub(super) async fn converse(self: Arc<Self>, connection: ServerConnection) {
        let ServerConnection { stream, peer, place: _place, .. } = connection;
        let name = match &peer {
            Peer::Tcp(address) => address.to_string(),
            Peer::Unix => "unix".to_owned(),
        };
        let changed = self.changed();
        let sessions = Arc::new(Sessions::new(name));
        let of_requests = Arc::clone(&sessions);
        let service = service_fn(move |request: Request<Incoming>| {
            let (server, sessions) = (Arc::clone(&self), Arc::clone(&of_requests));
            async move { Ok::<_, Infallible>(server.answer(request, &sessions).await) }
        });
        let stop = async {
            changed.await;
            sessions.close_stopped();
        };
        let limits = HttpLimits {
            head_timeout: HEAD_TIMEOUT,
            head_bytes_max: HEAD_BYTES_MAX,
            connection_time_max: None,
        };
        // An answer under way ends with its input, or with its own limits.
        match serve_http_any(stream, service, limits, stop, pending()).await {
            HttpEnd::Closed | HttpEnd::Abandoned | HttpEnd::Late | HttpEnd::Silent => {}
            HttpEnd::Broken(error) => {
                tracing::debug!(%peer, %error, "a connection is broken; the client sends again what has no answer");
            }
        }
    }
}
