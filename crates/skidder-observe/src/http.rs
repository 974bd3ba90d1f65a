//! The HTTP endpoint: a small HTTP/1 server on a TCP port or a Unix socket.
//!
//! Filebeat's routes have no authentication, as there, and it listens on the loopback by default. Whoever can reach it can
//! read them, and nothing else: every route only looks. The page, `/files`, `/lag` and `/problems` show more, and ask who it is
//! (`page/access.rs`). Bounds: those of `http/places.rs`, [`CONNECTION_TIME_MAX`], [`REQUEST_BYTES_MAX`] and `http.timeout` for
//! the head of a request.

mod auth;
mod bind;
mod config;
mod places;
mod routes;

pub use auth::HttpAuth;
pub use bind::BoundAddress;
pub use config::{Endpoint, HttpConfig};

use crate::page::{Body, Page, Query, Wanted, failed};
use crate::profiles::Profiles;
use crate::snapshot::Sources;
use bind::Listener;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use places::{Places, Taken};
use routes::Waits;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, JoinSet};

/// Life of a connection, so that a client that does not read gives its place back. A client that lives
/// longer connects again.
const CONNECTION_TIME_MAX: Duration = Duration::from_mins(1);
/// Request line and headers; more is answered with 431 or 414.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// What an answer under way gets when the program stops or its connection's time is over. Short: the
/// end of the program waits for it.
const GRACE: Duration = Duration::from_secs(1);
/// Wait after a connection could not be accepted (no descriptors left, say).
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// How often it is looked for a place while the program works for all who have one.
const PLACE_PAUSE: Duration = Duration::from_millis(50);

/// Why the endpoint could not be started. All of these stop the program's start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The name of the host has no address: change `http.host`.
    #[error(
        "`http.host` is `{host}`, which has no address ({source}); use `localhost` or an address of this machine"
    )]
    Resolve {
        /// The setting.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// Somebody listens there already: change the port, or stop the other.
    #[error(
        "the HTTP endpoint cannot listen on {address}: another process does already; set `{setting}` to another one or stop that process"
    )]
    InUse {
        /// The address.
        address: BoundAddress,
        /// The setting to change.
        setting: &'static str,
    },
    /// The address cannot be used: change the setting or the permissions.
    #[error(
        "the HTTP endpoint cannot listen on {address} ({source}); check `{setting}`, or set `http.enabled: false`"
    )]
    Bind {
        /// The address.
        address: BoundAddress,
        /// The setting to change.
        setting: &'static str,
        /// Why.
        source: io::Error,
    },
    /// There is a file at the path of the socket, and it is not a socket.
    #[error("the HTTP endpoint cannot listen on {}: it exists and is not a socket; set `http.host` to another path or remove it", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
}

/// An endpoint that is served.
#[derive(Debug)]
pub struct Serving {
    /// Where it listens; with the real port if `http.port` is 0.
    pub address: BoundAddress,
    /// Ends when `shutdown` has come and the last connection is closed.
    pub task: JoinHandle<()>,
}

/// What is served.
struct Served {
    sources: Arc<Sources>,
    page: Page,
    profiles: Option<Profiles>,
}

/// Binds the address and starts to serve in a task of its own, until `shutdown` ends. Does not look at
/// `config.enabled`.
pub async fn serve(
    config: &HttpConfig,
    sources: Arc<Sources>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<Serving, ServeError> {
    let (listener, address) = Listener::bind(&config.endpoint).await?;
    tracing::info!(address = %address, "serving metrics over HTTP");
    let host = match &config.endpoint {
        Endpoint::Tcp { host, .. } => Some(&**host),
        Endpoint::Unix(_) => None,
    };
    let page = Page::new(Arc::clone(&sources), &address, host, config.auth.clone());
    let profiles = config.pprof.map(|pprof| Profiles::new(Arc::clone(&sources), pprof));
    let served = Arc::new(Served { sources, page, profiles });
    let task = tokio::spawn(accept(listener, served, config.timeout, shutdown));
    Ok(Serving { address, task })
}

async fn accept(
    listener: Listener,
    served: Arc<Served>,
    timeout: Duration,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let (stop, stopped) = watch::channel(());
    let history = tokio::spawn(served.page.history().keep(Arc::clone(&served.sources)));
    let mut connections = JoinSet::new();
    let places = Arc::new(Places::default());
    let mut shutdown = pin!(shutdown);
    loop {
        let has_place = places.has_one();
        tokio::select! {
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => tell_panic(ended),
            () = tokio::time::sleep(PLACE_PAUSE), if !has_place => {}
            accepted = listener.accept(), if has_place => match accepted {
                Ok((stream, is_here)) => {
                    let served = Arc::clone(&served);
                    let client = Client { taken: Arc::new(places.take()), places: Arc::clone(&places), is_here };
                    connections.spawn(converse(stream, client, served, timeout, stopped.clone()));
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                    tracing::debug!(%error, "an HTTP client left before it was accepted");
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection to the HTTP endpoint was not accepted");
                    tokio::select! {
                        () = &mut shutdown => break,
                        () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                    }
                }
            },
        }
    }
    drop(listener);
    drop(stop);
    history.abort();
    // Each of them ends by itself within `GRACE`.
    while let Some(ended) = connections.join_next().await {
        tell_panic(ended);
    }
}

/// A panic in a connection is a bug, but no reason to stop shipping.
fn tell_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an HTTP connection ended with a panic");
    }
}

/// Who asks, and from where.
#[derive(Clone)]
struct Client {
    taken: Arc<Taken>,
    places: Arc<Places>,
    /// It is on this machine.
    is_here: bool,
}

/// Answers one request, while its place is not given to others.
async fn respond(request: &Request<Incoming>, client: &Client, served: &Served) -> Response<Body> {
    client.taken.works();
    let answer = answer(request, client, served).await;
    // What streams has bounds of its own.
    if matches!(answer.body(), Either::Left(_)) {
        client.taken.waits();
    }
    answer
}

async fn answer(request: &Request<Incoming>, client: &Client, served: &Served) -> Response<Body> {
    let (path, page, is_here) = (request.uri().path(), &served.page, client.is_here);
    let query = request.uri().query().unwrap_or_default();
    let profiles = served.profiles.as_ref().filter(|_| Profiles::has(path));
    let waits = routes::waits(request);
    if !Page::has(path) && profiles.is_none() && waits.is_none() {
        if routes::is_for_page(request) {
            return crate::page::to_page();
        }
        return routes::respond(request, &served.sources).await.map(Either::Left);
    }
    let Some(_room) = client.places.long() else {
        let message = "too many such requests are under way; ask again in a second";
        let mut answer = failed(StatusCode::SERVICE_UNAVAILABLE, message);
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        return answer;
    };
    if Page::has(path) {
        return page.respond(request, is_here).await;
    }
    let wanted = if profiles.is_some() { Wanted::Events } else { Wanted::Numbers };
    if let Some(refused) = page.refused(request, is_here, wanted) {
        return refused;
    }
    if let Some(profiles) = profiles {
        return profiles.respond(request.method(), path, query).await;
    }
    match waits {
        Some(Waits::Lag) => page.lag(query).await,
        Some(Waits::Problems) => {
            page.problems(Query::parse(query), page.sees_events(request, is_here)).await
        }
        _ => files(query.to_owned(), Arc::clone(&served.sources)).await,
    }
}

/// Answers `/files`.
async fn files(query: String, sources: Arc<Sources>) -> Response<Body> {
    let answered = tokio::task::spawn_blocking(move || routes::respond_files(&query, &sources));
    let answered = answered.await.unwrap_or_else(|_| {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
    });
    answered.map(Either::Left)
}

/// Serves one connection until the client has enough, its time is over or the program stops.
async fn converse(
    stream: Box<dyn Stream>,
    client: Client,
    served: Arc<Served>,
    timeout: Duration,
    mut stopped: watch::Receiver<()>,
) {
    let grace_of = Arc::clone(&served);
    let taken = Arc::clone(&client.taken);
    let service = service_fn(move |request| {
        let (served, client) = (Arc::clone(&served), client.clone());
        async move { Ok::<_, Infallible>(respond(&request, &client, &served).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeout)
        .max_buf_size(REQUEST_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = taken.given_up() => return,
        () = tokio::time::sleep(CONNECTION_TIME_MAX) => None,
        // An error means that the sender is gone, which is the sign.
        _ = stopped.changed() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            // A search or a profile under way may be in this connection; the end of the program does not wait for it.
            let of_profiles = grace_of.profiles.as_ref().and_then(Profiles::grace);
            let more = of_profiles.or_else(|| grace_of.page.grace()).unwrap_or(GRACE);
            let over = async {
                tokio::select! {
                    () = tokio::time::sleep(more) => {}
                    _ = stopped.changed() => tokio::time::sleep(GRACE).await,
                }
            };
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = taken.given_up() => return,
                () = over => {
                    return tracing::debug!("an HTTP client did not read its answer in time");
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection ended early");
    }
}

/// A connection of either kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
