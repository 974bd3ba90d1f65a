//! What connections know of the inputs of their server: the path of each, and when one ends.

use super::answer::{Answer, Route};
use super::paths;
use super::payload::Payload;
use super::sessions::Sessions;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, COOKIE, HeaderValue, LOCATION, X_CONTENT_TYPE_OPTIONS};
use hyper::{HeaderMap, Request, Response, StatusCode, Version};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// So long after its end the path of an input is not missing, but may come back: a reload, or a restart of the input.
const COMES_BACK: Duration = Duration::from_secs(10);

/// The paths of a server.
pub(super) struct Routes {
    list: Mutex<Vec<Arc<Route>>>,
    left: Left,
    /// Notified when a path is free.
    free: Notify,
    /// Notified when an input has ended.
    ended: watch::Sender<()>,
}

impl Routes {
    pub(super) fn new() -> Self {
        Self {
            list: Mutex::default(),
            left: Left::default(),
            free: Notify::new(),
            ended: watch::channel(()).0,
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Route>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.list().len()
    }

    /// Adds a path as soon as the input before has left it; `false` if the input must stop before.
    pub(super) async fn add(&self, route: &Arc<Route>) -> bool {
        loop {
            let free = self.free.notified();
            tokio::pin!(free);
            free.as_mut().enable();
            {
                let mut routes = self.list();
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

    pub(super) fn remove(&self, route: &Arc<Route>) {
        {
            // Both at once: a request that misses the path knows why.
            let mut routes = self.list();
            self.left.add(&route.settings.path);
            routes.retain(|other| !Arc::ptr_eq(other, route));
        }
        self.ended.send_replace(());
        self.free.notify_waiters();
    }

    /// The path that fits best.
    fn find(&self, path: &str) -> Option<Arc<Route>> {
        let routes = self.list();
        let fit =
            |route: &Arc<Route>| Some((paths::fit(&route.settings.path, path)?, Arc::clone(route)));
        routes.iter().filter_map(fit).max_by_key(|(fit, _)| *fit).map(|(_, route)| route)
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
            if self.left.has(&clean) {
                return ends();
            }
            sessions.refused(
                StatusCode::NOT_FOUND,
                &format!("no input has its path, {:?}", shown(&clean)),
            );
            return not_found();
        };
        // Before the source goes, which an input that ends waits for.
        let _busy = route.begin();
        let mut session = sessions.take(&route);
        let answer = route.answer(request, &clean, &mut session).await;
        sessions.put(&route, session);
        answer
    }

    /// Changes from now on when an input ends.
    pub(super) fn ended(&self) -> watch::Receiver<()> {
        self.ended.subscribe()
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

/// So much of a path is in messages.
const SHOWN_CHARS_MAX: usize = 200;

/// A path for messages: its beginning, if it is long.
pub(super) fn shown(path: &str) -> String {
    match path.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path.to_owned(),
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

    #[test]
    fn of_a_long_path_the_beginning_is_shown() {
        assert_eq!(shown("/é"), "/é");
        assert_eq!(shown(&"é".repeat(60_000)), format!("{}…", "é".repeat(200)));
    }

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
