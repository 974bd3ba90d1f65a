//! Servers that several inputs share: one socket, and for each input its path.
//!
//! The input that has the listener accepts connections for all of them; when it ends, the next one goes on with it. A
//! connection is closed after its request when an input ends: it may have a source of that input.

use super::answer::{Answer, Route};
use super::payload::Payload;
use super::sessions::Sessions;
use super::{HttpEndpoint, paths};
use crate::listen::{Bound, HANDSHAKE_TIMEOUT, ListenPlace, Tls, open};
use crate::receive_queue::receive_queue;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, COOKIE, HeaderValue, LOCATION, X_CONTENT_TYPE_OPTIONS};
use hyper::{HeaderMap, Request, Response, StatusCode, Version};
use skidder_input::{InputError, Intake};
use skidder_net::{Listener, Server as Socket, ServerSettings};
use skidder_os::Fs;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

/// The servers of the program, by host and port as in the settings.
#[derive(Clone, Debug, Default)]
pub struct Servers(Arc<Mutex<Known>>);

type Known = HashMap<(String, u16), Weak<Server>>;

/// So long after its end the path of an input is not missing, but may come back: a reload, or a restart of the input.
const COMES_BACK: Duration = Duration::from_secs(10);

/// A server; it closes its socket when the last input that knows it is gone.
pub(super) struct Server {
    routes: Mutex<Vec<Arc<Route>>>,
    left: Left,
    /// Notified when a path is free.
    free: Notify,
    /// Notified when an input has ended.
    ended: watch::Sender<()>,
    /// The socket, while no input accepts connections. The input that does has the lock.
    listener: tokio::sync::Mutex<Option<Listener>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server").field("routes", &self.routes().len()).finish_non_exhaustive()
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
        if !server.add(&route).await {
            return Ok(());
        }
        let accepted = server.accept_until_stopped(&place, tls, &fs, &intake).await;
        server.remove(&route);
        intake.set_finishing();
        route.idle().await;
        accepted
    }
}

impl Server {
    fn new() -> Self {
        Self {
            routes: Mutex::default(),
            left: Left::default(),
            free: Notify::new(),
            ended: watch::channel(()).0,
            listener: tokio::sync::Mutex::new(None),
        }
    }

    fn routes(&self) -> MutexGuard<'_, Vec<Arc<Route>>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a path as soon as the input before has left it; `false` if the input must stop before.
    async fn add(&self, route: &Arc<Route>) -> bool {
        loop {
            let free = self.free.notified();
            tokio::pin!(free);
            free.as_mut().enable();
            {
                let mut routes = self.routes();
                let path = &route.settings.path;
                if !routes.iter().any(|other| other.settings.path == *path) {
                    routes.push(Arc::clone(route));
                    return true;
                }
            }
            tokio::select! {
                () = free => {}
                () = route.intake.stopped() => return false,
            }
        }
    }

    fn remove(&self, route: &Arc<Route>) {
        {
            // Both at once: a request that misses the path knows why.
            let mut routes = self.routes();
            self.left.add(&route.settings.path);
            routes.retain(|other| !Arc::ptr_eq(other, route));
        }
        self.ended.send_replace(());
        self.free.notify_waiters();
    }

    /// The path that fits best.
    fn find(&self, path: &str) -> Option<Arc<Route>> {
        let routes = self.routes();
        let fit =
            |route: &Arc<Route>| Some((paths::fit(&route.settings.path, path)?, Arc::clone(route)));
        routes.iter().filter_map(fit).max_by_key(|(fit, _)| *fit).map(|(_, route)| route)
    }

    /// Waits for the listener, or binds it, and accepts connections until the input must stop.
    async fn accept_until_stopped(
        self: &Arc<Self>,
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
                    let (server, intake) = (Arc::clone(self), intake.clone());
                    tasks.spawn(async move {
                        let (metrics, stopped) = (intake.metrics(), intake.stopped());
                        let connection = open(accepted, metrics, stopped).await;
                        // The connection may stay for a while behind the end of the input.
                        drop(intake);
                        let Some(connection) = connection else { return };
                        server.converse(connection).await;
                    });
                }
            }
        }
        // They end by themselves, as soon as their requests are over.
        tasks.detach_all();
        *held = Some(socket.into_listener());
        Ok(())
    }

    /// Answers one request.
    pub(super) async fn answer(
        &self,
        mut request: Request<Incoming>,
        sessions: &Sessions,
    ) -> Answer {
        if request.version() == Version::HTTP_2 {
            join_cookies(request.headers_mut());
        }
        let path = paths::decoded(request.uri().path());
        let clean = paths::cleaned(&path);
        if clean != path {
            return redirect(&clean, request.uri().query());
        }
        let Some(route) = self.find(&clean) else {
            return if self.left.has(&clean) { ends() } else { not_found() };
        };
        // Before the source goes, which an input that ends waits for.
        let _busy = route.begin();
        let mut session = sessions.take(&route);
        let answer = route.answer(request, &clean, &mut session).await;
        sessions.put(&route, session);
        answer
    }

    /// Resolves when an input ends.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut ended = self.ended.subscribe();
        async move {
            // The server is gone: that means the same.
            drop(ended.changed().await);
        }
    }
}

/// Paths of inputs that have ended a moment ago. A client may give up its events after a 404.
#[derive(Default)]
struct Left(Mutex<HashMap<String, Instant>>);

impl Left {
    fn add(&self, path: &str) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|_, since| since.elapsed() < COMES_BACK);
        left.insert(path.to_owned(), Instant::now());
    }

    /// Whether one of them fits.
    fn has(&self, path: &str) -> bool {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |pattern: &str| paths::fit(pattern, path).is_some();
        left.iter().any(|(pattern, since)| since.elapsed() < COMES_BACK && fits(pattern))
    }
}

fn look(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection has ended by a bug");
    }
}

/// Cookies, which HTTP/2 may send one by one, as the one header that they are with HTTP/1.1 (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let parts: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if parts.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&parts.join(&b"; "[..]))
    {
        headers.insert(COOKIE, joined);
    }
}

fn redirect(path: &str, query: Option<&str>) -> Answer {
    let mut answer = Response::new(Payload::default());
    *answer.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let mut target: String = String::new();
    for byte in path.bytes() {
        match byte {
            b'!'..=b'~'
                if !matches!(
                    byte,
                    b'%' | b'?'
                        | b'#'
                        | b'"'
                        | b'<'
                        | b'>'
                        | b'^'
                        | b'`'
                        | b'{'
                        | b'|'
                        | b'}'
                        | b'\\'
                ) =>
            {
                target.push(char::from(byte));
            }
            _ => target.push_str(&format!("%{byte:02X}")),
        }
    }
    if let Some(query) = query {
        target.push('?');
        target.push_str(query);
    }
    if let Ok(target) = HeaderValue::try_from(target) {
        answer.headers_mut().insert(LOCATION, target);
    }
    answer
}

fn not_found() -> Answer {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// The answer to a request that may come again, over another connection.
fn ends() -> Answer {
    text(StatusCode::SERVICE_UNAVAILABLE, "the input ends\n")
}

fn text(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Payload::new(text));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_path_that_has_gone_a_moment_ago_is_not_missing() {
        let left = Left::default();
        left.add("/one/");
        assert_eq!(["/one/a", "/two"].map(|path| left.has(path)), [true, false]);
        tokio::time::advance(COMES_BACK / 2).await;
        left.add("/two");
        assert_eq!(["/one/a", "/two"].map(|path| left.has(path)), [true, true]);
        tokio::time::advance(COMES_BACK / 2).await;
        assert_eq!(["/one/a", "/two"].map(|path| left.has(path)), [false, true]);
    }
}
