//! `/debug/pprof/`: profiles of this program under the paths of Go's, if `http.pprof.enabled`.
//!
//! A CPU profile has a thread of its own while it is recorded, and ends with its request: when the client goes, or the program stops.
//! They show names of functions, no events; access is the same as for the page (`page/access.rs`).

use crate::page::{Answer, Query, failed};
use crate::snapshot::Sources;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Response, StatusCode};
use skidder_config::{Group, Key, Section, settings};
use skidder_profile::cpu::{CpuError, DRAIN_EVERY, Recorder};
use skidder_profile::heap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// Where they are.
const ROOT: &str = "/debug/pprof";
/// Seconds of a CPU profile by default, and at most.
const SECONDS: u64 = 30;
const SECONDS_MAX: u64 = 300;

settings! {
    /// `http.pprof`.
    pub(crate) static PPROF = Group::new("http.pprof", "Profiles of CPU and heap.").inline();

    ENABLED: bool = Key::new("enabled").default(false).about(
        "[profiles](operations.md#profiles) of CPU and heap at `/debug/pprof/`, with the access rules of \
         [the page](page.md#who-may-see-it)",
    );
    MEM_PROFILE_RATE: u64 = Key::new("mem_profile_rate")
        .default(Profiling::HEAP_EVERY)
        .range(0, 1 << 30)
        .noun("a number of bytes")
        .about(
            "bytes between two allocations that are sampled, on average; `0`: no heap profile. Less is more exact, \
             and slower",
        );
    BLOCK_PROFILE_RATE: u64 =
        Key::new("block_profile_rate").default(0).about("only 0 is possible: waits are not profiled");
    MUTEX_PROFILE_RATE: u64 =
        Key::new("mutex_profile_rate").default(0).about("only 0 is possible: waits are not profiled");
}

/// `http.pprof`, when it is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profiling {
    /// `mem_profile_rate`: bytes between two allocations that are sampled, on average; 0: none are.
    pub heap_every: u64,
}

impl Profiling {
    /// Default of `http.pprof.mem_profile_rate`.
    pub const HEAP_EVERY: u64 = 512 << 10;

    /// Reads the section; mistakes go to its problems. Nothing if it is off.
    pub(crate) fn from_section(section: Section<'_>) -> Option<Self> {
        if !section.get(&ENABLED).value() {
            section.off();
            return None;
        }
        let heap_every = section.get(&MEM_PROFILE_RATE).value();
        for rate in [&BLOCK_PROFILE_RATE, &MUTEX_PROFILE_RATE] {
            if section.get(rate).value() > 0 {
                let rate = rate.name();
                let message =
                    format!("`{}` can only be 0: waits are not profiled", section.path_of(rate));
                let hint = "`perf trace -s` and `offcputime` show where threads wait";
                section.problem(rate, message, hint);
            }
        }
        section.finish();
        Some(Self { heap_every })
    }
}

/// The documents below [`ROOT`].
pub(crate) struct Profiles {
    sources: Arc<Sources>,
    profiling: Profiling,
    /// CPU profiles that are recorded.
    under_way: Arc<AtomicUsize>,
}

/// One of them.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Profiles {
    /// From now on allocations are sampled.
    pub(crate) fn new(sources: Arc<Sources>, profiling: Profiling) -> Self {
        heap::start(profiling.heap_every);
        Self { sources, profiling, under_way: Arc::default() }
    }

    /// Whether a path is one of these.
    pub(crate) fn has(path: &str) -> bool {
        path.strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// How long a connection may go on whose time is over.
    pub(crate) fn grace(&self) -> Option<Duration> {
        let is_any = self.under_way.load(Ordering::Relaxed) > 0;
        is_any.then_some(Duration::from_secs(SECONDS_MAX))
    }

    /// Answers a request that may be answered.
    pub(crate) async fn respond(&self, method: &Method, path: &str, query: &str) -> Answer {
        if *method != Method::GET {
            let mut answer = failed(StatusCode::METHOD_NOT_ALLOWED, "use `GET`");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return answer;
        }
        let query = Query::parse(query);
        match path.strip_prefix(ROOT).unwrap_or_default().trim_start_matches('/') {
            "" => index(),
            "profile" => self.cpu(&query).await,
            "heap" => self.heap(&query, "inuse_space").await,
            "allocs" => self.heap(&query, "alloc_space").await,
            name => {
                let message = format!(
                    "there is no profile `{name}` here; there are `profile` (CPU), `heap` and `allocs`"
                );
                failed(StatusCode::NOT_FOUND, &message)
            }
        }
    }

    async fn cpu(&self, query: &Query) -> Answer {
        let seconds = match query.number("seconds") {
            Ok(seconds) => seconds.unwrap_or(SECONDS),
            Err(why) => return failed(StatusCode::BAD_REQUEST, &why),
        };
        if !(1..=SECONDS_MAX).contains(&seconds) {
            let message = format!("`seconds` is `{seconds}`; expected 1 to {SECONDS_MAX}");
            return failed(StatusCode::BAD_REQUEST, &message);
        }
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(&self.under_way));
        let (send, receive) = oneshot::channel();
        let sources = Arc::clone(&self.sources);
        let work = move || {
            let profile = record(&sources, Duration::from_secs(seconds), &send);
            drop(place);
            // The client may be gone.
            drop(send.send(profile));
        };
        if let Err(error) = std::thread::Builder::new().name("profile".to_owned()).spawn(work) {
            let message = format!("cannot start a thread: {error}");
            return failed(StatusCode::SERVICE_UNAVAILABLE, &message);
        }
        match receive.await {
            Ok(Ok(profile)) => file("profile.pb.gz", profile),
            Ok(Err(error @ CpuError::Busy)) => failed(StatusCode::CONFLICT, &error.to_string()),
            Ok(Err(error)) => failed(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
            Err(_) => failed(StatusCode::INTERNAL_SERVER_ERROR, "a bug: the thread has panicked"),
        }
    }

    async fn heap(&self, query: &Query, shown: &'static str) -> Answer {
        for refused in ["seconds", "debug"] {
            if query.get(refused).is_some_and(|value| value != "0") {
                let message = format!(
                    "`{refused}` is not known here; fetch two profiles and compare them with \
                     `pprof -diff_base`, or let `pprof -text` write one as text"
                );
                return failed(StatusCode::BAD_REQUEST, &message);
            }
        }
        if self.profiling.heap_every == 0 {
            let message = "`http.pprof.mem_profile_rate` is 0: no allocation is sampled";
            return failed(StatusCode::NOT_FOUND, message);
        }
        let clock = Arc::clone(&self.sources.clock);
        let since = self.sources.program.start.monotonic;
        let made = tokio::task::spawn_blocking(move || {
            heap::profile(clock.wall().0, clock.monotonic().since(since), shown)
        });
        match made.await {
            Ok(Ok(profile)) => file("heap.pb.gz", profile),
            Ok(Err(error)) => {
                let message = format!("the program's own files cannot be read ({error})");
                failed(StatusCode::INTERNAL_SERVER_ERROR, &message)
            }
            Err(_) => failed(StatusCode::INTERNAL_SERVER_ERROR, "a bug: the work has panicked"),
        }
    }
}

/// Records for the requested time, or until the client is gone.
fn record<T>(
    sources: &Sources,
    span: Duration,
    reply: &oneshot::Sender<T>,
) -> Result<Vec<u8>, CpuError> {
    let clock = &sources.clock;
    let mut recorder = Recorder::start()?;
    let begin = clock.monotonic();
    loop {
        std::thread::park_timeout(DRAIN_EVERY);
        recorder.drain();
        let took = clock.monotonic().since(begin);
        if took >= span || reply.is_closed() {
            return Ok(recorder.finish(clock.wall().0, took));
        }
    }
}

fn index() -> Answer {
    let text = "<!doctype html><title>skidder: profiles</title><h1>Profiles</h1><ul>\
                <li><a href=\"profile?seconds=30\">profile</a>: CPU, of <code>seconds</code> (30)\
                <li><a href=\"heap\">heap</a>: memory in use, from samples of allocations\
                <li><a href=\"allocs\">allocs</a>: the same, shown by all that was allocated</ul>\
                <p>For <code>pprof</code>, <code>go tool pprof</code>, speedscope and others.\n";
    let mut answer = Response::new(Either::Left(Full::from(text)));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn file(name: &str, bytes: Vec<u8>) -> Answer {
    let mut answer = Response::new(Either::Left(Full::from(Bytes::from(bytes))));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let name = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    headers.insert(CONTENT_DISPOSITION, name.expect("letters between quotes"));
    answer
}
