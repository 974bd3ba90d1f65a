//! The answer of each path.

use crate::files::{FilesError, FilesQuestion, files};
use crate::prometheus::{CONTENT_TYPE, prometheus};
use crate::snapshot::Sources;
use crate::stats::{info, inputs, state, stats};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE as CONTENT_TYPE_NAME, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value as Json, json};
use std::sync::Arc;

const JSON_TYPE: &str = "application/json; charset=utf-8";
/// Listed in a 404.
const ROUTES: [&str; 11] = [
    "/",
    "/stats",
    "/state",
    "/inputs/",
    "/files",
    "/sources",
    "/lag",
    "/problems",
    "/autodiscover",
    "/metrics",
    "/ui/",
];

/// Answers a request. Its body, if any, is not looked at.
pub(super) async fn respond<B>(
    request: &Request<B>,
    sources: &Arc<Sources>,
) -> Response<Full<Bytes>> {
    let query = Query(request.uri().query().unwrap_or_default());
    let pretty = query.get("pretty").is_some();
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let method = request.method();
        let message = format!("`{method}` is not allowed here; use `GET` or `HEAD`");
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let mut response = json_response(status, pretty, &error(status, &message));
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let document = match request.uri().path() {
        "/" => info(&sources.program, &*sources.fs),
        "/stats" => stats(&sources.look().await),
        "/state" => state(&sources.snapshot()),
        "/inputs" | "/inputs/" => inputs(&sources.look().await, query.get("type")),
        "/metrics" => {
            return response(StatusCode::OK, CONTENT_TYPE, prometheus(&sources.look().await));
        }
        path => {
            let message = format!("there is nothing at `{path}`");
            let mut document = error(StatusCode::NOT_FOUND, &message);
            document["routes"] = json!(ROUTES);
            return json_response(StatusCode::NOT_FOUND, pretty, &document);
        }
    };
    json_response(StatusCode::OK, pretty, &document)
}

/// Answers `/files`; blocks until the scanner has answered.
pub(super) fn respond_files(query: &str, sources: &Sources) -> Response<Full<Bytes>> {
    let pretty = Query(query).get("pretty").is_some();
    let answer = FilesQuestion::parse(query).and_then(|question| files(sources, question));
    let (status, message) = match answer {
        Ok(document) => return json_response(StatusCode::OK, pretty, &document),
        Err(FilesError::Question(message)) => (StatusCode::BAD_REQUEST, message),
        Err(FilesError::Later(message)) => (StatusCode::SERVICE_UNAVAILABLE, message),
    };
    json_response(status, pretty, &error(status, &message))
}

/// Routes that show more than numbers, and wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    Files,
    Sources,
    Lag,
    Problems,
    Autodiscover,
}

/// Whether a request is for one of these.
pub(super) fn waits<B>(request: &Request<B>) -> Option<Waits> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    match request.uri().path() {
        "/files" => Some(Waits::Files),
        "/sources" => Some(Waits::Sources),
        "/lag" => Some(Waits::Lag),
        "/problems" => Some(Waits::Problems),
        "/autodiscover" => Some(Waits::Autodiscover),
        _ => None,
    }
}

/// Whether a browser requests `/`: it accepts HTML, which no collector does.
pub(super) fn is_for_page<B>(request: &Request<B>) -> bool {
    let wanted = request.headers().get(ACCEPT).and_then(|wanted| wanted.to_str().ok());
    matches!(*request.method(), Method::GET | Method::HEAD)
        && request.uri().path() == "/"
        && wanted.is_some_and(|wanted| wanted.contains("text/html"))
}

fn error(status: StatusCode, message: &str) -> Json {
    json!({ "status": status.as_u16(), "error": message })
}

fn json_response(status: StatusCode, pretty: bool, document: &Json) -> Response<Full<Bytes>> {
    let mut text = if pretty { format!("{document:#}") } else { document.to_string() };
    text.push('\n');
    response(status, JSON_TYPE, text)
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE_NAME, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The query of a URL. Nothing is decoded: no name or type of an input needs it.
struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    /// The value of a parameter; empty if it has none.
    fn get(&self, name: &str) -> Option<&'a str> {
        let mut pairs = self.0.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}
