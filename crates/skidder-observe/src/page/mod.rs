//! The live page: everything below `/ui/`.
//!
//! Its files are compiled in; what it shows comes as JSON from the same place. Nothing here runs without requests. Access
//! is defined in `access.rs`; every answer forbids to be stored or put into a frame.

mod access;
mod assets;
mod containers;
mod filter;
mod history;
mod letters;
mod live;
mod query;
mod records;
mod search;
mod session;
mod tail;

use crate::lag::{Lag, LagError};
use crate::problems::Problems;
use crate::snapshot::{Explain, Sources, Step};
use crate::sources::sources;
pub(crate) use access::{Access, Wanted};
use access::{Client, Refusal};
use assets::{Asset, POLICY};
use bytes::Bytes;
pub(crate) use history::History;
use http_body_util::{Either, Full};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue,
    IF_NONE_MATCH, LOCATION, REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
pub(crate) use query::Query;
use records::Records;
use search::{SearchError, Searches};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use tail::Tail;

/// Where the page is.
pub(crate) const ROOT: &str = "/ui/";

/// The answer to a request for what autodiscover has seen.
const NO_AUTODISCOVER: &str = "there is no `filebeat.autodiscover` in the configuration";

/// The documents below [`ROOT`].
pub(crate) struct Page {
    sources: Arc<Sources>,
    access: Access,
    tail: Arc<Tail>,
    searches: Searches,
    history: Arc<History>,
}

/// An answer at once, or one that comes bit by bit.
pub(crate) type Body = Either<Full<Bytes>, Records>;

pub(crate) type Answer = Response<Body>;

impl Page {
    pub(crate) fn new(sources: Arc<Sources>, access: Access) -> Self {
        let history = Arc::default();
        Self { sources, access, tail: Arc::default(), searches: Searches::default(), history }
    }

    /// Its history of the last day; the caller has to keep it going.
    pub(crate) fn history(&self) -> Arc<History> {
        Arc::clone(&self.history)
    }

    /// Whether a path is the page's.
    pub(crate) fn has(path: &str) -> bool {
        path == "/ui" || path.starts_with(ROOT)
    }

    /// Answers a request for one of its paths.
    pub(crate) async fn respond<B>(&self, request: &Request<B>, is_here: bool) -> Answer {
        let mut answer = self.answer(request, is_here).await;
        let headers = answer.headers_mut();
        let fixed: [(HeaderName, &'static str); 5] = [
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
            (REFERRER_POLICY, "no-referrer"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        ];
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
        answer
    }

    async fn answer<B>(&self, request: &Request<B>, is_here: bool) -> Answer {
        let path = request.uri().path();
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = failed(
                StatusCode::METHOD_NOT_ALLOWED,
                "use `GET` or `HEAD`; nothing is changed here",
            );
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let name = path.strip_prefix(ROOT).unwrap_or_default();
        let asset = Asset::find(name);
        let wanted = match name {
            _ if asset.is_some() => Wanted::Page,
            // Configurations are for the owner, too, although their secrets are masked.
            "tail" | "search" | "letters" | "reasons" | "session" | "autodiscover" => {
                Wanted::Events
            }
            _ => Wanted::Numbers,
        };
        if let Some(refused) = self.refused(request, is_here, wanted) {
            return refused;
        }
        match asset {
            _ if path == "/ui" => to_page(),
            Some(asset) => file(asset, request),
            // The watched events would be gone, and a search would run in vain.
            None if request.method() == Method::HEAD && matches!(name, "tail" | "search") => {
                json_text(StatusCode::OK, String::new())
            }
            None => {
                let query = Query::parse(request.uri().query().unwrap_or_default());
                let sees_events = self.sees_events(request, is_here);
                self.data(name, query, sees_events).await
            }
        }
    }

    /// The answer to a client that may not see it.
    pub(crate) fn refused<B>(
        &self,
        request: &Request<B>,
        is_here: bool,
        wanted: Wanted,
    ) -> Option<Answer> {
        let client = Client { headers: request.headers(), is_here, now: self.sources.clock.wall() };
        let Refusal { status, message } = self.access.check(client, wanted).err()?;
        let mut answer = failed(status, &message);
        if status == StatusCode::UNAUTHORIZED {
            // Without `http.auth` the page itself explains what to do: a browser is not to prompt for a password.
            let ask = if self.access.requires_login() {
                "Basic realm=\"skidder\", charset=\"UTF-8\""
            } else {
                "Bearer realm=\"skidder\""
            };
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(ask));
        }
        Some(answer)
    }

    /// Answers with a document of the page.
    async fn data(&self, name: &str, query: Query, sees_events: bool) -> Answer {
        match name {
            "live" => document_answer(Ok(live::live(&self.sources))),
            "sources" => self.open_sources(&query),
            "autodiscover" => self.containers(query).await,
            "plan" => document_answer(Ok(plan(&self.sources))),
            "files" => self.files(query).await,
            "session" => self.session(),
            "problems" => self.problems(query, sees_events).await,
            "letters" => {
                let sources = Arc::clone(&self.sources);
                let read = move || letters::letters(&sources, &query);
                document_answer(blocking(read).await.map_err(|why| (StatusCode::BAD_REQUEST, why)))
            }
            "reasons" => {
                let sources = Arc::clone(&self.sources);
                let read = move || letters::reasons(&sources, &query);
                document_answer(blocking(read).await.map_err(|why| (StatusCode::BAD_REQUEST, why)))
            }
            "history" => document_answer(
                self.history
                    .answer(self.sources.clock.wall(), &query)
                    .map_err(|why| (StatusCode::BAD_REQUEST, why)),
            ),
            "tail" => {
                let (sources, tail) = (Arc::clone(&self.sources), Arc::clone(&self.tail));
                match blocking(move || tail.answer(&sources, &query)).await {
                    Ok(text) => json_text(StatusCode::OK, text),
                    Err(why) => failed(StatusCode::BAD_REQUEST, &why),
                }
            }
            "search" => match self.searches.start(&self.sources, &query) {
                Ok(body) => streamed(body),
                Err(SearchError::Question(why)) => failed(StatusCode::BAD_REQUEST, &why),
                Err(SearchError::Later(why)) => failed(StatusCode::SERVICE_UNAVAILABLE, &why),
            },
            _ => failed(StatusCode::NOT_FOUND, "the page has no such part"),
        }
    }

    /// The session of a browser that was opened with the token; `key` is null where it needs none.
    fn session(&self) -> Answer {
        let session = self.access.session(self.sources.clock.wall());
        let key = session.as_ref().map(|session| &session.key);
        let mut answer = json_answer(StatusCode::OK, &json!({ "key": key }));
        if let Some(cookie) = session.and_then(|session| session.cookie.parse().ok()) {
            answer.headers_mut().insert(SET_COOKIE, cookie);
        }
        answer
    }

    /// How long a connection may go on whose time is over.
    pub(crate) fn grace(&self) -> Option<Duration> {
        self.searches.is_any().then_some(search::TIME_MAX)
    }

    /// Also for `/lag`.
    pub(crate) async fn lag(&self, query: &str) -> Answer {
        self.files(Query::parse(query)).await
    }

    /// Whether the client may see events, and so the reasons of an output about them.
    pub(crate) fn sees_events<B>(&self, request: &Request<B>, is_here: bool) -> bool {
        self.refused(request, is_here, Wanted::Events).is_none()
    }

    /// Also for `/sources`.
    pub(crate) fn open_sources(&self, query: &Query) -> Answer {
        document_answer(sources(&self.sources, query).map_err(|why| (StatusCode::BAD_REQUEST, why)))
    }

    /// Also for `/problems`.
    pub(crate) async fn problems(&self, query: Query, sees_events: bool) -> Answer {
        let sources = Arc::clone(&self.sources);
        let answer = blocking(move || Problems::answer(&sources, &query, sees_events)).await;
        Lag::watch(&self.sources);
        document_answer(answer.map_err(|why| (StatusCode::BAD_REQUEST, why)))
    }

    /// For `/autodiscover`.
    pub(crate) async fn autodiscover(&self) -> Answer {
        let Some(Explain { explain, .. }) = self.sources.explain.clone() else {
            return failed(StatusCode::NOT_FOUND, NO_AUTODISCOVER);
        };
        let explained = blocking(move || Ok(explain())).await;
        document_answer(explained.map_err(|why| (StatusCode::INTERNAL_SERVER_ERROR, why)))
    }

    /// A part of the same, for the view.
    async fn containers(&self, query: Query) -> Answer {
        let Some(Explain { explain, .. }) = self.sources.explain.clone() else {
            return failed(StatusCode::NOT_FOUND, NO_AUTODISCOVER);
        };
        let found = blocking(move || containers::containers(&explain(), &query)).await;
        document_answer(found.map_err(|why| (StatusCode::BAD_REQUEST, why)))
    }

    async fn files(&self, query: Query) -> Answer {
        let sources = Arc::clone(&self.sources);
        let answer = blocking(move || Ok(sources.lag.answer(&sources, &query))).await;
        Lag::watch(&self.sources);
        let answer = answer.unwrap_or_else(|why: String| Err(LagError::Later(why)));
        document_answer(answer.map_err(|error| match error {
            LagError::Question(why) => (StatusCode::BAD_REQUEST, why),
            LagError::Later(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
        }))
    }
}

/// The compiled plan of every input of every output.
fn plan(sources: &Sources) -> Json {
    let mut plans = Vec::new();
    for output in &sources.outputs {
        for input in output.inputs.list().iter() {
            let steps = input.plan.as_ref().map(|plan| {
                plan.measure();
                plan.steps()
            });
            let steps: Option<Vec<Json>> = steps.map(|steps| {
                steps
                    .into_iter()
                    .map(|Step { when, step, cost }| {
                        let ns = cost.map(|cost| cost.nanoseconds / cost.events.max(1));
                        let (events, dropped) = cost.map(|cost| (cost.events, cost.dropped)).unzip();
                        json!({ "when": when, "step": step, "ns": ns, "events": events, "dropped": dropped })
                    })
                    .collect()
            });
            plans.push(json!({
                "input": input.id,
                "name": input.title,
                "type": input.kind,
                "output": output.id,
                "kind": output.kind,
                "steps": steps,
            }));
        }
    }
    json!({ "plans": plans })
}

/// Leads a browser to the page.
pub(crate) fn to_page() -> Answer {
    let mut answer = Response::new(Either::Left(Full::default()));
    *answer.status_mut() = StatusCode::FOUND;
    answer.headers_mut().insert(LOCATION, HeaderValue::from_static(ROOT));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn file<B>(asset: &'static Asset, request: &Request<B>) -> Answer {
    let tag = asset.tag();
    let known = request.headers().get(IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let is_known = known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag));
    let body = if is_known { "" } else { asset.text };
    let mut answer = Response::new(Either::Left(Full::from(body)));
    if is_known {
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ETAG, HeaderValue::from_str(&tag).expect("digits between quotes"));
    answer
}

/// Does work that may wait for a disk or for others on a thread for blocking work.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(format!("a bug: {error}")))
}

/// One JSON object a line, as they come.
fn streamed(body: Records) -> Answer {
    let mut answer = Response::new(Either::Right(body));
    let kind = HeaderValue::from_static("application/x-ndjson; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn document_answer(document: Result<Json, (StatusCode, String)>) -> Answer {
    match document {
        Ok(document) => json_answer(StatusCode::OK, &document),
        Err((status, why)) => failed(status, &why),
    }
}

pub(crate) fn failed(status: StatusCode, why: &str) -> Answer {
    json_answer(status, &json!({ "status": status.as_u16(), "error": why }))
}

fn json_answer(status: StatusCode, document: &Json) -> Answer {
    json_text(status, format!("{document}\n"))
}

fn json_text(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Either::Left(Full::from(text)));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("application/json; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
