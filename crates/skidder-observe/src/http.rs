//! The HTTP endpoint: a small HTTP/1 server on a TCP port or a Unix socket.
//!
//! Filebeat's routes have no authentication, as there, and it listens on the loopback by default. Every client there can
//! read them, and nothing else: every route only looks. The page, `/files`, `/sources`, `/lag` and `/problems` show more,
//! and check the client (`page/access.rs`). Bounds: [`CONNECTIONS_MAX`], [`LONG_MAX`], [`CONNECTION_TIME_MAX`], [`REQUEST_BYTES_MAX`] and
//! `http.timeout` for the head of a request.

mod auth;
mod config;
mod routes;

pub use auth::HttpAuth;
pub use config::{Endpoint, HTTP, HttpConfig};

use crate::page::{Access, Body, Page, Query, Wanted, failed};
use crate::profiles::Profiles;
use crate::snapshot::Sources;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use routes::Waits;
use skidder_net::{
    Accepted, BoundAddress, HttpEnd, HttpLimits, ListenAddress, ListenError, Listener, Peer, Place,
    Places, Stream, serve_http,
};
use skidder_tls::{TlsError, TlsServer};
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, JoinSet};

/// Connections served at once.
const CONNECTIONS_MAX: usize = 64;
/// Requests at once that wait for the scanner or a disk; further ones are refused, so that places for short ones are left.
const LONG_MAX: usize = CONNECTIONS_MAX / 2;
/// Mode of a unix socket, as Filebeat sets it. Connecting needs the right to write: the owner only.
const SOCKET_MODE: u32 = 0o740;
/// Life of a connection, so that a client that does not read gives its place back. A client that lives
/// longer connects again.
const CONNECTION_TIME_MAX: Duration = Duration::from_mins(1);
/// Request line and headers; more is answered with 431 or 414.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// Time for an answer under way when the program stops or its connection's time is over. Short: the
/// end of the program waits for it.
const GRACE: Duration = Duration::from_secs(1);
/// How often to look for a free place while all connections are busy.
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
    /// The address is in use: change the port, or stop the other process.
    #[error(
        "the HTTP endpoint cannot listen on {}: another process does already; set `{setting}` to another one or stop that process",
        shown(.address)
    )]
    InUse {
        /// The address.
        address: BoundAddress,
        /// The setting to change.
        setting: &'static str,
    },
    /// The address cannot be used: change the setting or the permissions.
    #[error(
        "the HTTP endpoint cannot listen on {} ({source}); check `{setting}`, or set `http.enabled: false`",
        shown(.address)
    )]
    Bind {
        /// The address.
        address: BoundAddress,
        /// The setting to change.
        setting: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A file of `http.ssl` is missing or wrong.
    #[error("the HTTP endpoint cannot use TLS: {0}; the setting is in `http`")]
    Tls(#[from] TlsError),
    /// There is a file at the path of the socket, and it is not a socket.
    #[error("the HTTP endpoint cannot listen on {}: it exists and is not a socket; set `http.host` to another path or remove it", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
}

impl ServeError {
    /// The error for a listener that could not be bound: the setting is that of the part that is wrong.
    fn of(error: ListenError) -> Self {
        match error {
            ListenError::Resolve { host, source } => Self::Resolve { host, source },
            ListenError::NotASocket { path } => Self::NotASocket { path },
            ListenError::InUse { address } => {
                let setting = setting(&address, io::ErrorKind::AddrInUse);
                Self::InUse { address, setting }
            }
            ListenError::Bind { address, source } => {
                let setting = setting(&address, source.kind());
                Self::Bind { address, setting, source }
            }
        }
    }
}

/// The setting to change when an address cannot be bound.
fn setting(address: &BoundAddress, why: io::ErrorKind) -> &'static str {
    match (address, why) {
        (BoundAddress::Unix(_), _) | (_, io::ErrorKind::AddrNotAvailable) => "http.host",
        (BoundAddress::Tcp(_), _) => "http.port",
    }
}

/// A URL of the address.
fn shown(address: &BoundAddress) -> String {
    url(address, false)
}

fn url(address: &BoundAddress, has_tls: bool) -> String {
    match address {
        BoundAddress::Tcp(address) if has_tls => format!("https://{address}"),
        BoundAddress::Tcp(address) => format!("http://{address}"),
        BoundAddress::Unix(_) => address.to_string(),
    }
}

/// An endpoint that is served.
#[derive(Debug)]
pub struct Serving {
    /// Where it listens; with the real port if `http.port` is 0.
    pub address: BoundAddress,
    /// Ends when `shutdown` has come and the last connection is closed.
    pub task: JoinHandle<()>,
}

/// The served sources.
struct Served {
    sources: Arc<Sources>,
    page: Page,
    profiles: Option<Profiles>,
    tls: Option<Arc<TlsServer>>,
}

/// Binds the address and starts to serve in a task of its own, until `shutdown` ends. Does not look at
/// `config.enabled`.
pub async fn serve(
    config: &HttpConfig,
    sources: Arc<Sources>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<Serving, ServeError> {
    let place = match &config.endpoint {
        Endpoint::Tcp { host, port } => ListenAddress::Tcp { host: host.clone(), port: *port },
        Endpoint::Unix(path) => ListenAddress::Unix { path: path.clone(), mode: SOCKET_MODE },
    };
    let tls = config.tls_server(&sources.fs)?;
    let listener = Listener::bind(&place).await.map_err(ServeError::of)?;
    let address = listener.address().clone();
    tracing::info!(address = url(&address, tls.is_some()), "serving metrics over HTTP");
    let host = match &config.endpoint {
        Endpoint::Tcp { host, .. } => Some(&**host),
        Endpoint::Unix(_) => None,
    };
    let access = Access::new(&address, host, config.auth.clone());
    let access = if tls.is_some() { access.over_tls() } else { access };
    let page = Page::new(Arc::clone(&sources), access);
    let profiles = config.pprof.map(|pprof| Profiles::new(Arc::clone(&sources), pprof));
    let served = Arc::new(Served { sources, page, profiles, tls });
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
    let places = Arc::new(Places::new(CONNECTIONS_MAX, LONG_MAX));
    let mut shutdown = pin!(shutdown);
    loop {
        let has_place = places.has_one();
        tokio::select! {
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => report_panic(ended),
            () = tokio::time::sleep(PLACE_PAUSE), if !has_place => {}
            accepted = listener.accept(), if has_place => {
                let served = Arc::clone(&served);
                let place = Arc::new(places.take());
                let client = Client { place, places: Arc::clone(&places), peer: accepted.1 };
                let accepted = Accepted::new(accepted, served.tls.clone(), timeout);
                connections.spawn(converse(accepted, client, served, timeout, stopped.clone()));
            }
        }
    }
    drop(listener);
    drop(stop);
    history.abort();
    // Each of them ends by itself within `GRACE`.
    while let Some(ended) = connections.join_next().await {
        report_panic(ended);
    }
}

/// A panic in a connection is a bug, but no reason to stop shipping.
fn report_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an HTTP connection ended with a panic");
    }
}

/// The other side of a connection.
#[derive(Clone)]
struct Client {
    place: Arc<Place>,
    places: Arc<Places>,
    peer: Peer,
}

/// Answers one request, while its place is not given to others.
async fn respond(request: &Request<Incoming>, client: &Client, served: &Served) -> Response<Body> {
    client.place.works();
    let answer = answer(request, client, served).await;
    // Streams have bounds of their own.
    if matches!(answer.body(), Either::Left(_)) {
        client.place.waits();
    }
    answer
}

async fn answer(request: &Request<Incoming>, client: &Client, served: &Served) -> Response<Body> {
    let (path, page, is_here) = (request.uri().path(), &served.page, client.peer.is_local());
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
    // Configurations are for the owner, too, although their secrets are masked.
    let is_for_owner = profiles.is_some() || waits == Some(Waits::Autodiscover);
    let wanted = if is_for_owner { Wanted::Events } else { Wanted::Numbers };
    if let Some(refused) = page.refused(request, is_here, wanted) {
        return refused;
    }
    if let Some(profiles) = profiles {
        return profiles.respond(request.method(), path, query).await;
    }
    match waits {
        Some(Waits::Sources) => page.open_sources(&Query::parse(query)),
        Some(Waits::Lag) => page.lag(query).await,
        Some(Waits::Autodiscover) => page.autodiscover().await,
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

/// The handshake of TLS, if there is TLS. `None` if it failed, the place is needed or the program stops.
async fn open(
    accepted: Accepted,
    place: &Place,
    stopped: &mut watch::Receiver<()>,
) -> Option<Box<dyn Stream>> {
    tokio::select! {
        opened = accepted.open() => match opened {
            Ok(connection) => Some(connection.stream),
            Err(error) => {
                tracing::warn!("HTTP endpoint: {error}");
                None
            }
        },
        () = place.given_up() => None,
        _ = stopped.changed() => None,
    }
}

/// Serves one connection until the client has enough, its time is over or the program stops.
async fn converse(
    accepted: Accepted,
    client: Client,
    served: Arc<Served>,
    timeout: Duration,
    mut stopped: watch::Receiver<()>,
) {
    let (of, place) = (Arc::clone(&served), Arc::clone(&client.place));
    let Some(stream) = open(accepted, &place, &mut stopped).await else { return };
    let service = service_fn(move |request| {
        let (served, client) = (Arc::clone(&served), client.clone());
        async move { Ok::<_, Infallible>(respond(&request, &client, &served).await) }
    });
    let limits = HttpLimits {
        head_timeout: timeout,
        head_bytes_max: REQUEST_BYTES_MAX,
        connection_time_max: Some(CONNECTION_TIME_MAX),
    };
    let mut stopping = stopped.clone();
    let stop = async {
        // An error means that the sender is gone, which is the sign.
        let _gone = stopping.changed().await;
    };
    let grace = async || {
        // A search or a profile in progress may be in this connection; the end of the program does not wait for it.
        let of_profiles = of.profiles.as_ref().and_then(Profiles::grace);
        let more = of_profiles.or_else(|| of.page.grace()).unwrap_or(GRACE);
        tokio::select! {
            () = tokio::time::sleep(more) => {}
            _ = stopped.changed() => tokio::time::sleep(GRACE).await,
        }
    };
    match serve_http(stream, service, limits, stop, place.given_up(), grace).await {
        HttpEnd::Closed | HttpEnd::Abandoned | HttpEnd::Tls => {}
        HttpEnd::Broken(error) => tracing::debug!(%error, "an HTTP connection ended early"),
        HttpEnd::Late | HttpEnd::Silent => {
            tracing::debug!("an HTTP client did not read its answer in time");
        }
    }
}
