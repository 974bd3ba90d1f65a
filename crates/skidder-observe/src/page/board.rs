//! How far every file is behind: all files of all inputs, from one round of questions to the scanner.
//!
//! Nothing is known of yesterday: rates and ages are of the time since somebody looks, so they cost nothing before. A round is
//! made when it is asked for and the last one is old enough; it is forgotten a minute after nobody has asked.

use super::live::millis;
use super::query::Query;
use crate::files::file_json;
use crate::snapshot::Sources;
use serde_json::{Value as Json, json};
use skidder_os::{Monotonic, Timestamp};
use skidder_pipeline::AskError;
use skidder_read::{FileLook, FileQuery, FileState};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Files that are kept of a round, those that are most behind of each question first come. The totals are of all.
const FILES_MAX: usize = 20_000;
/// Files of one question to the scanner.
const PAGE: usize = 2_000;
/// Files of one answer, if the question does not say.
const LIMIT: usize = 100;
/// Files of one answer, at most.
const LIMIT_MAX: usize = 1_000;
/// A round is at least so old when another is made.
const AGE_MIN: Duration = Duration::from_secs(1);
/// Rounds take at most this part of the scanner's time.
const PART_OF_TIME: u32 = 20;
/// How long one answer of the scanner is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// A round is forgotten when nobody has asked for so long.
pub(crate) const KEPT: Duration = Duration::from_mins(1);

/// The last round, and what is needed to compare the next one with it.
#[derive(Default)]
pub(crate) struct Board {
    state: Mutex<Option<Round>>,
}

/// One look at all files.
struct Round {
    made: Monotonic,
    took: Duration,
    asked: Monotonic,
    files: Vec<BoardFile>,
    marks: HashMap<(usize, String), Mark>,
    totals: Totals,
}

/// One file of one output.
struct BoardFile {
    look: FileLook,
    /// Place of the output in the sources.
    output: usize,
    /// The id of its input.
    input: Arc<str>,
    /// Bytes a second that were settled since the round before.
    rate: Option<f64>,
    /// The oldest unsettled line is at least so old.
    behind_for: Duration,
}

/// Where a file stood.
#[derive(Clone, Copy)]
struct Mark {
    generation: u32,
    cursor: u64,
    /// A size that it had, and when: as long as the cursor is before it, something of then is not settled.
    size: u64,
    seen: Monotonic,
}

#[derive(Clone, Debug, Default)]
struct Totals {
    files: usize,
    behind_files: usize,
    behind_bytes: u64,
    /// Compressed files that are not finished: nobody knows how many bytes they have.
    unknown: usize,
    rate: f64,
    behind_for: Duration,
    states: BTreeMap<&'static str, usize>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BoardError {
    /// Ask otherwise.
    Question(String),
    /// Ask again later.
    Later(String),
}

impl Board {
    /// Answers `?q=TEXT&state=STATE&sort=COLUMN&order=desc&offset=N&limit=N`; blocks until the scanner has answered.
    pub(crate) fn answer(&self, sources: &Sources, query: &Query) -> Result<Json, BoardError> {
        let view = View::parse(query).map_err(BoardError::Question)?;
        let now = sources.clock.monotonic();
        let mut state = self.lock();
        let last = state.take();
        let is_fresh = |round: &Round| {
            now.since(round.made) < AGE_MIN.max(round.took.saturating_mul(PART_OF_TIME))
        };
        let mut round = match last {
            Some(round) if is_fresh(&round) => round,
            last => match make_round(sources, last.as_ref(), now) {
                Ok(round) => round,
                Err(error) => {
                    *state = last;
                    return Err(BoardError::Later(error.to_string()));
                }
            },
        };
        round.asked = now;
        let answer = view.show(sources, &round, now);
        *state = Some(round);
        Ok(answer)
    }

    /// Lets go of the last round if nobody has asked for long; says whether there is none any more.
    pub(crate) fn forget_old(&self, now: Monotonic) -> bool {
        let mut state = self.lock();
        if state.as_ref().is_some_and(|round| now.since(round.asked) >= KEPT) {
            *state = None;
        }
        state.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Round>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks for all files.
fn make_round(sources: &Sources, last: Option<&Round>, now: Monotonic) -> Result<Round, AskError> {
    let mut round = Round {
        made: now,
        took: Duration::ZERO,
        asked: now,
        files: Vec::new(),
        marks: HashMap::new(),
        totals: Totals::default(),
    };
    let wall = sources.clock.wall();
    for (output, of) in sources.outputs.iter().enumerate() {
        let Some(looks) = &of.looks else { continue };
        for input in of.inputs.list().iter() {
            let id: Arc<str> = input.id.as_str().into();
            let mut query = FileQuery { limit: PAGE, ..FileQuery::default() };
            loop {
                let page = match looks.page(input.slot, query.clone(), PATIENCE) {
                    // It has ended meanwhile.
                    Err(AskError::NoInput(_)) => break,
                    page => page?,
                };
                query.after = page.files.last().map(|file| file.path.to_path_buf());
                let more = page.more && query.after.is_some();
                for look in page.files {
                    round.take(look, (output, &id), last, wall);
                }
                if !more {
                    break;
                }
            }
        }
    }
    round.took = sources.clock.monotonic().since(now);
    Ok(round)
}

impl Round {
    fn take(
        &mut self,
        look: FileLook,
        at: (usize, &Arc<str>),
        last: Option<&Self>,
        wall: Timestamp,
    ) {
        let now = self.made;
        let mut rate = None;
        let mut behind_for = Duration::ZERO;
        if let Some(key) = &look.key {
            let place = (at.0, key.clone());
            let before = last.and_then(|last| Some((last.marks.get(&place)?, last.made)));
            let before = before.filter(|(mark, _)| mark.generation == look.generation);
            let span = before.map(|(_, made)| now.since(made).as_secs_f64());
            if let (Some((mark, _)), Some(span)) = (before, span.filter(|span| *span > 0.0)) {
                rate = Some(look.cursor.saturating_sub(mark.cursor) as f64 / span);
            }
            let kept = before.filter(|(mark, _)| look.cursor < mark.size);
            let (size, seen) = kept.map_or((look.size, now), |(mark, _)| (mark.size, mark.seen));
            let is_behind = look.behind.is_some_and(|bytes| bytes > 0);
            if is_behind && is_to_be_read(&look) {
                // Its newest line is as old as the file's last change.
                behind_for = now.since(seen).max(wall.since(look.modified));
            }
            let mark = Mark { generation: look.generation, cursor: look.cursor, size, seen };
            if self.marks.len() < FILES_MAX {
                self.marks.insert(place, mark);
            }
        }
        self.totals.add(&look, rate, behind_for);
        if self.files.len() < FILES_MAX {
            self.files.push(BoardFile {
                look,
                output: at.0,
                input: Arc::clone(at.1),
                rate,
                behind_for,
            });
        }
    }
}

/// Whether the bytes behind its cursor are to be delivered.
fn is_to_be_read(look: &FileLook) -> bool {
    !matches!(look.state, FileState::Ignored | FileState::Held | FileState::Unreadable)
}

impl Totals {
    fn add(&mut self, look: &FileLook, rate: Option<f64>, behind_for: Duration) {
        self.files += 1;
        *self.states.entry(look.state.name()).or_default() += 1;
        self.rate += rate.unwrap_or(0.0);
        if !is_to_be_read(look) {
            return;
        }
        self.behind_for = self.behind_for.max(behind_for);
        match look.behind {
            None => self.unknown += 1,
            Some(0) => {}
            Some(bytes) => {
                self.behind_files += 1;
                self.behind_bytes += bytes;
            }
        }
    }
}

/// What is asked for of a round.
struct View {
    text: Option<String>,
    state: Option<String>,
    sort: Sort,
    descending: bool,
    offset: usize,
    limit: usize,
}

#[derive(Clone, Copy)]
enum Sort {
    Path,
    State,
    Size,
    Cursor,
    Behind,
    BehindFor,
    Rate,
    Modified,
}

impl Sort {
    const NAMES: [(&'static str, Self); 8] = [
        ("path", Self::Path),
        ("state", Self::State),
        ("size", Self::Size),
        ("cursor", Self::Cursor),
        ("behind", Self::Behind),
        ("behind_ms", Self::BehindFor),
        ("rate", Self::Rate),
        ("modified", Self::Modified),
    ];

    fn compare(self, one: &BoardFile, other: &BoardFile) -> Ordering {
        let (a, b) = (&one.look, &other.look);
        match self {
            Self::Path => Ordering::Equal,
            Self::State => a.state.name().cmp(b.state.name()),
            Self::Size => a.size.cmp(&b.size),
            Self::Cursor => a.cursor.cmp(&b.cursor),
            Self::Behind => a.behind.cmp(&b.behind),
            Self::BehindFor => one.behind_for.cmp(&other.behind_for),
            Self::Rate => one.rate.unwrap_or(-1.0).total_cmp(&other.rate.unwrap_or(-1.0)),
            Self::Modified => a.modified.cmp(&b.modified),
        }
    }
}

impl View {
    fn parse(query: &Query) -> Result<Self, String> {
        let sort = match query.get("sort") {
            None => Sort::Behind,
            Some(name) => {
                let found = Sort::NAMES.iter().find(|(known, _)| *known == name);
                let names: Vec<&str> = Sort::NAMES.iter().map(|(name, _)| *name).collect();
                let message =
                    || format!("`sort` is `{name}`; expected one of {}", names.join(", "));
                found.ok_or_else(message)?.1
            }
        };
        let descending = match query.get("order") {
            None => query.get("sort").is_none(),
            Some("asc") => false,
            Some("desc") => true,
            Some(other) => return Err(format!("`order` is `{other}`; expected `asc` or `desc`")),
        };
        Ok(Self {
            text: query.get("q").map(str::to_lowercase),
            state: query.get("state").map(str::to_owned),
            sort,
            descending,
            offset: query.number("offset")?.unwrap_or(0),
            limit: query.number("limit")?.unwrap_or(LIMIT).min(LIMIT_MAX),
        })
    }

    fn show(&self, sources: &Sources, round: &Round, now: Monotonic) -> Json {
        let mut found: Vec<&BoardFile> =
            round.files.iter().filter(|file| self.wants(file)).collect();
        found.sort_by(|one, other| {
            let order = self.sort.compare(one, other);
            let order = if self.descending { order.reverse() } else { order };
            let path = one.look.path.cmp(&other.look.path);
            let is_path_down = matches!(self.sort, Sort::Path) && self.descending;
            order.then(if is_path_down { path.reverse() } else { path })
        });
        let matched = found.len();
        let page = found.into_iter().skip(self.offset).take(self.limit);
        let files: Vec<Json> = page.map(|file| shown(sources, file)).collect();
        let totals = &round.totals;
        json!({
            "age_ms": millis(now.since(round.made)),
            "totals": {
                "files": totals.files,
                "states": totals.states,
                "behind_files": totals.behind_files,
                "behind_bytes": totals.behind_bytes,
                "behind_unknown": totals.unknown,
                "behind_ms": millis(totals.behind_for),
                "rate": totals.rate,
                "catch_up_ms": catch_up(totals.behind_bytes, totals.rate),
            },
            "kept": round.files.len(),
            "matched": matched,
            "offset": self.offset,
            "files": files,
        })
    }

    fn wants(&self, file: &BoardFile) -> bool {
        let state = file.look.state.name();
        let has = |text: &str, wanted: &str| text.to_lowercase().contains(wanted);
        self.state.as_ref().is_none_or(|wanted| wanted == state)
            && self.text.as_ref().is_none_or(|wanted| {
                has(&file.look.path.to_string_lossy(), wanted)
                    || state == wanted
                    || has(&file.input, wanted)
                    || file
                        .look
                        .reason
                        .as_ref()
                        .is_some_and(|reason| has(&reason.to_string(), wanted))
            })
    }
}

fn shown(sources: &Sources, file: &BoardFile) -> Json {
    let of = &sources.outputs[file.output];
    let several = sources.outputs.len() > 1;
    let id = of.id.as_deref().filter(|_| several);
    let mut told = file_json(&file.input, id, &file.look, of.queue.is_blocked());
    told["rate"] = file.rate.into();
    told["behind_ms"] = millis(file.behind_for).into();
    told["catch_up_ms"] = catch_up(file.look.behind.unwrap_or(0), file.rate.unwrap_or(0.0)).into();
    told
}

/// How long it takes at this rate, in milliseconds; nothing if nothing is to be done or nothing moves.
fn catch_up(bytes: u64, rate: f64) -> Option<u64> {
    (bytes > 0 && rate >= 1.0).then(|| (bytes as f64 / rate * 1000.0) as u64)
}
