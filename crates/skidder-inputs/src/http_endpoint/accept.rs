//! One connection: requests in, answers out, over HTTP/1.1 or HTTP/2.

use super::routes::Routes;
use super::sessions::Sessions;
use crate::listen::open;
use hyper::Request;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::service::service_fn;
use skidder_input::InputMetrics;
use skidder_net::{
    Accepted, HttpEnd, HttpLimits, Peer, ServerConnection, is_wrong_http, serve_http_any,
};
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// For the head of a request, and between two requests: longer than load balancers keep connections.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// Request line and headers; more is answered with 431 or 414.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;

/// So long after the end of an input a connection may wait for the end of its handshake and for its first request,
/// which may be on its way: its client does not know that it is to send it again. As in Go's `http.Server.Shutdown`.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves a connection until the client closes it, or an input ends, which `ended` tells.
pub(super) async fn serve(
    accepted: Accepted,
    routes: Arc<Routes>,
    metrics: Arc<InputMetrics>,
    ended: watch::Receiver<()>,
) {
    let mut end = ended.clone();
    let late = async {
        // The routes, which tell it, live as long.
        let _is_told = end.changed().await;
        tokio::time::sleep(FIRST_REQUEST_TIMEOUT).await;
    };
    if let Some(connection) = open(accepted, &metrics, late).await {
        converse(routes, connection, metrics, ended).await;
    }
}

/// Answers the requests of a connection.
async fn converse(
    routes: Arc<Routes>,
    connection: ServerConnection,
    metrics: Arc<InputMetrics>,
    mut ended: watch::Receiver<()>,
) {
    let ServerConnection { stream, peer, place: _place, .. } = connection;
    let name = match &peer {
        Peer::Tcp(address) => address.to_string(),
        Peer::Unix => "unix".to_owned(),
    };
    let sessions = Arc::new(Sessions::new(name, metrics));
    let (begin, mut begun) = watch::channel(false);
    let of_requests = Arc::clone(&sessions);
    let service = service_fn(move |request: Request<Incoming>| {
        begin.send_if_modified(|begun| !std::mem::replace(begun, true));
        let (routes, sessions) = (Arc::clone(&routes), Arc::clone(&of_requests));
        async move { Ok::<_, Infallible>(routes.answer(request, &sessions).await) }
    });
    let stop = async {
        let _is_told = ended.changed().await;
        sessions.close_stopped();
        let first = begun.wait_for(|begun| *begun);
        drop(tokio::time::timeout(FIRST_REQUEST_TIMEOUT, first).await);
    };
    let limits = HttpLimits {
        head_timeout: HEAD_TIMEOUT,
        head_bytes_max: HEAD_BYTES_MAX,
        connection_time_max: None,
    };
    // An answer under way ends with its input, or with its own limits.
    match serve_http_any(stream, service, limits, stop, pending()).await {
        HttpEnd::Closed | HttpEnd::Abandoned | HttpEnd::Late | HttpEnd::Silent => {}
        HttpEnd::Tls => sessions.broken(
            "the client speaks TLS, and this input does not: `ssl.enabled: true` with a certificate and a key, or the \
             client without TLS",
        ),
        // Answered by the library.
        HttpEnd::Broken(error) if error.is_parse_too_large() => {
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            sessions.refused(status, &format!("its head is longer than {HEAD_BYTES_MAX} bytes"));
        }
        HttpEnd::Broken(error) if is_wrong_http(&error) => {
            sessions.refused(StatusCode::BAD_REQUEST, &error.to_string());
        }
        HttpEnd::Broken(error) => {
            tracing::debug!(%peer, %error, "a connection is broken; the client sends again what has no answer");
        }
    }
}
