//! Searching the files themselves, also those that were rotated and compressed.
//!
//! Only files that the catalogs know are opened: those that match a configured input, and only as long as the file at the path
//! is the one that the scanner saw, since its owner may put a link to any other there. A search has a thread of its own, of low
//! priority, and ends at [`TIME_MAX`], [`BYTES_MAX`], [`FOUND_MAX`], or when its client is gone. Its records are
//! sent as they come, one JSON object a line: `match`, `progress`, `problem`, and at last `end`. The client puts the lines into
//! the order of their `rank`: those of a file come together.

mod run;
mod text;
mod time;

use super::filter::{Filter, has};
use super::query::Query;
use super::records::Records;
use crate::snapshot::Sources;
use bytes::Bytes;
use jiff::tz::TimeZone;
use run::Search;
use serde_json::{Value as Json, json};
use skidder_input_file::AskError;
use skidder_os::FileId;
use skidder_read::{FileQuery, FileState, Reason};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use time::parse_time;
use tokio::sync::mpsc::Sender;

/// Searches at once; more are refused.
const SEARCHES_MAX: usize = 2;
/// How long one may take.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(30);
/// Decompressed bytes that one reads.
const BYTES_MAX: u64 = 4 << 30;
/// Lines that one finds by default, and at most.
const FOUND: usize = 500;
const FOUND_MAX: usize = 2000;
/// Files that one may look at.
const FILES_MAX: usize = 50_000;
/// Problems that are reported one by one.
const PROBLEMS_MAX: usize = 20;
/// Shown bytes of a line.
const SHOWN_BYTES: usize = 4 << 10;
/// Searched bytes of a line.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 256 << 10;
/// How often progress is reported, which also finds out whether the client is gone.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// How long an answer of the scanner is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// How nice the thread is to the others.
const NICE: i32 = 15;

/// Counts the searches under way.
#[derive(Debug, Default)]
pub(crate) struct Searches(Arc<AtomicUsize>);

/// One of them.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a search does not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SearchError {
    /// Ask otherwise.
    Question(String),
    /// Ask again later.
    Later(String),
}

/// The query.
struct Question {
    filter: Filter,
    file: Option<String>,
    from: Option<i64>,
    to: Option<i64>,
    limit: usize,
    zone: TimeZone,
}

/// A file to look through.
struct Target {
    path: PathBuf,
    /// The file that the scanner saw there: nothing else is opened.
    id: FileId,
    modified: i64,
}

impl Searches {
    /// Whether one is under way.
    pub(crate) fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Answers `?q=TERMS&file=PART&from=TIME&to=TIME&limit=N`.
    pub(crate) fn start(
        &self,
        sources: &Arc<Sources>,
        query: &Query,
    ) -> Result<Records, SearchError> {
        let question = Question::parse(query).map_err(SearchError::Question)?;
        let place = Place(Arc::clone(&self.0));
        if self.0.fetch_add(1, Ordering::Relaxed) >= SEARCHES_MAX {
            let message = format!("{SEARCHES_MAX} searches are under way already; wait for one");
            return Err(SearchError::Later(message));
        }
        let (sender, body) = Records::new(16);
        let sources = Arc::clone(sources);
        let thread = std::thread::Builder::new().name("page-search".to_owned());
        let work = move || {
            let _place = place;
            let this = rustix::thread::gettid();
            if let Err(error) = rustix::process::setpriority_process(Some(this), NICE) {
                tracing::debug!(%error, "a search has the priority of the others");
            }
            work(&question, &sources, &sender);
        };
        let started = thread.spawn(work);
        started.map_err(|error| SearchError::Later(format!("cannot start a thread: {error}")))?;
        Ok(body)
    }
}

impl Question {
    fn parse(query: &Query) -> Result<Self, String> {
        let zone = TimeZone::system();
        let time = |name: &str| {
            let Some(text) = query.get(name) else { return Ok(None) };
            let message = || {
                format!(
                    "`{name}` is `{text}`; expected a time as `2026-11-22T21:20:47Z`, or without a zone"
                )
            };
            parse_time(text, &zone).map(Some).ok_or_else(message)
        };
        let (from, to) = (time("from")?, time("to")?);
        if query.get("q").is_none() && from.is_none() && to.is_none() {
            return Err(
                "what is looked for? `q` has the words, `from` and `to` the time".to_owned()
            );
        }
        Ok(Self {
            filter: Filter::parse_terms(query),
            file: query.get("file").map(str::to_owned),
            limit: query.number("limit")?.unwrap_or(FOUND).clamp(1, FOUND_MAX),
            from,
            to,
            zone,
        })
    }
}

fn work(question: &Question, sources: &Sources, sender: &Sender<Bytes>) {
    let mut send = |record: Json| {
        let line = Bytes::from(format!("{record}\n"));
        sender.blocking_send(line).is_ok()
    };
    let targets = match targets(question, sources) {
        Ok(targets) => targets,
        Err(error) => {
            send(json!({ "end": { "reason": "scanner", "message": error.to_string() } }));
            return;
        }
    };
    let mut search = Search::new(question, &*sources.fs, &*sources.clock, targets.skipped);
    let reason = search.all(&targets.files, &mut send);
    if let Some(reason) = reason {
        send(json!({ "end": search.summary(reason, targets.files.len()) }));
    }
}

struct Targets {
    /// The newest first.
    files: Vec<Target>,
    /// Those whose last change was before the requested time.
    skipped: usize,
}

/// The files that match an input, each once.
fn targets(question: &Question, sources: &Sources) -> Result<Targets, AskError> {
    let mut found: BTreeMap<PathBuf, (FileId, i64)> = BTreeMap::new();
    for output in &sources.outputs {
        let Some(looks) = &output.looks else { continue };
        for input in output.inputs.list().iter() {
            let mut query = FileQuery { limit: 2000, ..FileQuery::default() };
            loop {
                let page = match looks.page(input.slot, query.clone(), PATIENCE) {
                    // It has ended meanwhile.
                    Err(AskError::NoInput(_)) => break,
                    page => page?,
                };
                query.after = page.files.last().map(|file| file.path.to_path_buf());
                let more = page.more && query.after.is_some() && found.len() < FILES_MAX;
                for file in page.files {
                    // A file that is gone cannot be opened, and one that is the same as another is in that one.
                    let is_twin =
                        matches!(file.reason, Some(Reason::SameAs(_) | Reason::Comparing(_)));
                    if file.state != FileState::Gone && !is_twin {
                        found.insert(file.path.to_path_buf(), (file.id, file.modified.0));
                    }
                }
                if !more {
                    break;
                }
            }
        }
    }
    let named = |path: &Path| {
        let part = question.file.as_deref().unwrap_or_default();
        has(path.as_os_str().as_encoded_bytes(), part.as_bytes())
    };
    let mut files: Vec<Target> = found
        .into_iter()
        .filter(|(path, _)| named(path))
        .map(|(path, (id, modified))| Target { path, id, modified })
        .collect();
    let all = files.len();
    files.retain(|file| question.from.is_none_or(|from| file.modified >= from));
    files.sort_by_key(|file| std::cmp::Reverse(file.modified));
    files.truncate(FILES_MAX);
    Ok(Targets { skipped: all - files.len(), files })
}

#[cfg(test)]
mod tests;
