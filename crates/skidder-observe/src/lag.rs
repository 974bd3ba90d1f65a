//! How far every file is behind: all files of all inputs, from one round of questions to the scanner.
//!
//! Nothing is known of yesterday: rates and ages are of the time since somebody looks, so they cost nothing before. A round is
//! made when it is asked for and the last one is old enough; it is forgotten when nobody has asked for a while.

mod numbers;
mod view;

pub use numbers::LagNumbers;
pub(crate) use numbers::catch_up;
pub(crate) use view::totals_json;

use crate::page::Query;
use crate::snapshot::Sources;
use numbers::{Found, is_to_be_read};
use serde_json::Value as Json;
use skidder_os::{Monotonic, Timestamp};
use skidder_pipeline::AskError;
use skidder_read::{FileLook, FileQuery};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use view::View;

/// Files that are kept of a round, those that are most behind of each question first come. The totals are of all.
const FILES_MAX: usize = 20_000;
/// Files of one question to the scanner.
const PAGE: usize = 2_000;
/// A round is at least so old when another is made, if nobody asks for a newer one.
const AGE_MIN: Duration = Duration::from_secs(1);
/// Rounds take at most this part of the scanner's time.
const PART_OF_TIME: u32 = 20;
/// How long one answer of the scanner is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the sums are waited for; what comes later is for the next question.
const PATIENCE_FOR_SUMS: Duration = Duration::from_secs(2);
/// A round is forgotten when nobody has asked for so long: longer than the periods of collectors.
const KEPT: Duration = Duration::from_mins(3);

/// The last round, and what is needed to compare the next one with it.
#[derive(Default)]
pub struct Lag {
    state: Mutex<Option<Round>>,
    /// The sums of the last round, also while the next one is made.
    sums: Mutex<Option<(Monotonic, Arc<Sums>)>>,
    /// Somebody lets go of it when nobody has asked for long.
    is_watched: AtomicBool,
}

/// One look at all files.
struct Round {
    made: Monotonic,
    took: Duration,
    asked: Monotonic,
    files: Vec<BoardFile>,
    marks: HashMap<(usize, String), Mark>,
    sums: Arc<Sums>,
}

/// The sums of a round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    /// Over all files.
    pub(crate) total: LagNumbers,
    /// By the place of the output in the sources, and the slot of the input.
    pub(crate) inputs: BTreeMap<(usize, usize), LagNumbers>,
}

/// One file of one output.
pub(crate) struct BoardFile {
    pub(crate) look: FileLook,
    /// Place of the output in the sources.
    pub(crate) output: usize,
    /// The id of its input.
    pub(crate) input: Arc<str>,
    /// Bytes a second that were settled since the round before.
    pub(crate) rate: Option<f64>,
    /// The oldest unsettled line is at least so old.
    pub(crate) behind_for: Duration,
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

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LagError {
    /// Ask otherwise.
    Question(String),
    /// Ask again later.
    Later(String),
}

impl std::fmt::Debug for Lag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lag").finish_non_exhaustive()
    }
}

impl Lag {
    /// Answers `?q=TEXT&state=STATE&sort=COLUMN&order=desc&offset=N&limit=N&age_ms=N`; blocks until the scanner has answered.
    pub(crate) fn answer(&self, sources: &Sources, query: &Query) -> Result<Json, LagError> {
        let view = View::parse(query).map_err(LagError::Question)?;
        let age = view.age.unwrap_or(AGE_MIN);
        self.with_round(sources, age, |round, now| view.show(sources, round, now))
    }

    /// Gives the files of a recent round to `use_them`; nothing if the scanner does not answer.
    pub(crate) fn with_files<T>(
        &self,
        sources: &Sources,
        use_them: impl FnOnce(&[BoardFile]) -> T,
    ) -> Option<T> {
        if sources.outputs.iter().all(|output| output.looks.is_none()) {
            return None;
        }
        let used = self.with_round(sources, AGE_MIN, |round, _| use_them(&round.files));
        used.inspect_err(|error| tracing::debug!(?error, "how far files are behind is not known"))
            .ok()
    }

    /// Gives a round to `use_it` that is no older than `age`, unless looking takes so long that it has to be.
    fn with_round<T>(
        &self,
        sources: &Sources,
        age: Duration,
        use_it: impl FnOnce(&Round, Monotonic) -> T,
    ) -> Result<T, LagError> {
        let mut state = self.lock();
        let now = sources.clock.monotonic();
        let last = state.take();
        let is_fresh = |round: &Round| {
            now.since(round.made) < age.max(round.took.saturating_mul(PART_OF_TIME))
        };
        let mut round = match last {
            Some(round) if is_fresh(&round) => round,
            last => match make_round(sources, last.as_ref(), now) {
                Ok(round) => round,
                Err(error) => {
                    *state = last;
                    return Err(LagError::Later(error.to_string()));
                }
            },
        };
        round.asked = now;
        *self.lock_sums() = Some((round.made, Arc::clone(&round.sums)));
        let used = use_it(&round, now);
        *state = Some(round);
        Ok(used)
    }

    /// The sums, and how old they are; those of the round before if this one takes too long. Nothing if there are none, or
    /// there is nobody to ask.
    pub(crate) async fn sums(sources: &Arc<Sources>) -> Option<(Arc<Sums>, Duration)> {
        if sources.outputs.iter().all(|output| output.looks.is_none()) {
            return None;
        }
        let asked = Arc::clone(sources);
        let asking = tokio::task::spawn_blocking(move || {
            let made = asked.lag.with_round(&asked, AGE_MIN, |_, _| ());
            if let Err(error) = made {
                tracing::debug!(?error, "how far files are behind is not known");
            }
        });
        // Whatever became of it: what there is then is told.
        drop(tokio::time::timeout(PATIENCE_FOR_SUMS, asking).await);
        Self::watch(sources);
        Self::known(sources)
    }

    /// The sums of the last round, if there is one.
    pub(crate) fn known(sources: &Sources) -> Option<(Arc<Sums>, Duration)> {
        let (made, sums) = sources.lag.lock_sums().clone()?;
        Some((sums, sources.clock.monotonic().since(made)))
    }

    /// Lets go of the last round when nobody has asked for long. To be called behind a question.
    pub(crate) fn watch(sources: &Arc<Sources>) {
        if sources.lag.is_watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let sources = Arc::clone(sources);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(KEPT).await;
                if sources.lag.forget_old(sources.clock.monotonic()) {
                    return;
                }
            }
        });
    }

    /// Lets go of the last round if nobody has asked for long; says whether there is none any more.
    fn forget_old(&self, now: Monotonic) -> bool {
        // Whoever holds it makes a round, which may take long: this is no place to wait.
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        if state.as_ref().is_some_and(|round| now.since(round.asked) < KEPT) {
            return false;
        }
        *state = None;
        *self.lock_sums() = None;
        self.is_watched.store(false, Ordering::Release);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Option<Round>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_sums(&self) -> MutexGuard<'_, Option<(Monotonic, Arc<Sums>)>> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
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
        sums: Arc::default(),
    };
    let mut sums = Sums::default();
    let wall = sources.clock.wall();
    for (output, of) in sources.outputs.iter().enumerate() {
        let Some(looks) = &of.looks else { continue };
        for input in of.inputs.list().iter() {
            let id: Arc<str> = input.id.as_str().into();
            let of_input = sums.inputs.entry((output, input.slot)).or_default();
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
                    round.take(look, (output, &id), last, wall, of_input);
                }
                if !more {
                    break;
                }
            }
        }
    }
    for of_input in sums.inputs.values() {
        sums.total.add_all(of_input);
    }
    round.sums = Arc::new(sums);
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
        sums: &mut LagNumbers,
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
        sums.add(&Found { look: &look, rate, behind_for });
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
