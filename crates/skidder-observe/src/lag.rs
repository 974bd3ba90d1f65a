//! How far every file is behind: all files of all inputs, from one round of requests to the scanner.
//!
//! There is no history: rates and ages count from the first request on, so they cost nothing before. A round is
//! made on request if the last one is old enough; it is forgotten after a while without requests.

mod numbers;
mod view;

pub use numbers::LagNumbers;
pub(crate) use view::totals_json;

use crate::page::Query;
use crate::snapshot::{OutputSource, Sources};
use crate::states::OutputState;
use numbers::{Found, catch_up, is_to_be_read};
use serde_json::Value as Json;
use skidder_input_file::AskError;
use skidder_os::{Monotonic, Timestamp};
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
/// A round is at least so old when another is made, if no newer one is requested.
const AGE_MIN: Duration = Duration::from_secs(1);
/// Rounds take at most this part of the scanner's time.
const PART_OF_TIME: u32 = 20;
/// How long one answer of the scanner is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the sums are waited for; what comes later is for the next question.
const PATIENCE_FOR_SUMS: Duration = Duration::from_secs(2);
/// A round is forgotten after so long without requests: longer than the periods of collectors.
const KEPT: Duration = Duration::from_mins(3);

/// The last round, and its data for comparing the next one with it.
#[derive(Default)]
pub struct Lag {
    state: Mutex<Option<Round>>,
    /// The sums of the last round, also while the next one is made.
    sums: Mutex<Option<(Monotonic, Arc<Sums>)>>,
    /// A task frees it after a time without requests.
    is_watched: AtomicBool,
}

/// One look at all files.
struct Round {
    made: Monotonic,
    took: Duration,
    requested: Monotonic,
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
    /// By the place of the output in the sources.
    pub(crate) outputs: BTreeMap<usize, LagNumbers>,
}

/// The input of the files in an answer.
struct InputContext {
    /// Place of the output in the sources.
    output: usize,
    input: Arc<str>,
    /// Requests of the output are so far apart.
    interval: Duration,
    /// The output delivers nothing.
    is_stuck: bool,
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
    /// Its output delivers nothing.
    pub(crate) is_stuck: bool,
}

impl BoardFile {
    /// How long the rest takes at its rate; nothing if nothing is behind, or nothing moves.
    pub(crate) fn catch_up(&self) -> Option<Duration> {
        let behind = self.look.behind.filter(|_| !self.is_stuck)?;
        catch_up(behind, self.rate?)
    }
}

/// Where a file stood.
#[derive(Clone, Copy)]
struct Mark {
    generation: u32,
    /// Where its cursor was at `since`, from which its rate counts; and the rate until then.
    cursor: u64,
    since: Monotonic,
    rate: Option<f64>,
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
        round.requested = now;
        *self.lock_sums() = Some((round.made, Arc::clone(&round.sums)));
        let used = use_it(&round, now);
        *state = Some(round);
        Ok(used)
    }

    /// The sums, and how old they are; those of the round before if this one takes too long. Nothing if there are none, or
    /// no scanner.
    pub(crate) async fn sums(sources: &Arc<Sources>) -> Option<(Arc<Sums>, Duration)> {
        if sources.outputs.iter().all(|output| output.looks.is_none()) {
            return None;
        }
        let shared = Arc::clone(sources);
        let asking = tokio::task::spawn_blocking(move || {
            let made = shared.lag.with_round(&shared, AGE_MIN, |_, _| ());
            if let Err(error) = made {
                tracing::debug!(?error, "how far files are behind is not known");
            }
        });
        // In every case, what there is then is shown.
        drop(tokio::time::timeout(PATIENCE_FOR_SUMS, asking).await);
        Self::watch(sources);
        Self::known(sources)
    }

    /// The sums of the last round, if there is one.
    pub(crate) fn known(sources: &Sources) -> Option<(Arc<Sums>, Duration)> {
        let (made, sums) = sources.lag.lock_sums().clone()?;
        Some((sums, sources.clock.monotonic().since(made)))
    }

    /// Frees the last round after a time without requests. To be called after a request.
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

    /// Frees the last round after a time without requests; returns whether there is none any more.
    fn forget_old(&self, now: Monotonic) -> bool {
        // A locked state means that a round is being made, which may take long: this is no place to wait.
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        if state.as_ref().is_some_and(|round| now.since(round.requested) < KEPT) {
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

/// Requests all files.
fn make_round(sources: &Sources, last: Option<&Round>, now: Monotonic) -> Result<Round, AskError> {
    let mut round = Round {
        made: now,
        took: Duration::ZERO,
        requested: now,
        files: Vec::new(),
        marks: HashMap::new(),
        sums: Arc::default(),
    };
    let mut sums = Sums::default();
    let wall = sources.clock.wall();
    for (output, of) in sources.outputs.iter().enumerate() {
        let Some(looks) = &of.looks else { continue };
        let interval = of.flush_timeout();
        let stuck = stuck(of, now);
        let mut of_output = LagNumbers::default();
        for input in of.inputs.list().iter() {
            let input_id = input.id.as_str().into();
            let at = InputContext { output, input: input_id, interval, is_stuck: stuck.is_some() };
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
                    round.take(look, &at, last, wall, of_input);
                }
                if !more {
                    break;
                }
            }
            if of_input.behind_bytes > 0 {
                of_input.stuck.clone_from(&stuck);
            }
            of_output.add_all(of_input);
        }
        if let Some(rates) = of.rates(now) {
            of_output.rate = rates.settled_bytes;
        }
        sums.total.add_output(&of_output);
        sums.outputs.insert(output, of_output);
    }
    round.sums = Arc::new(sums);
    round.took = sources.clock.monotonic().since(now);
    Ok(round)
}

/// Why an output delivers nothing as long as it is in its state: `main is blocked`.
fn stuck(output: &OutputSource, now: Monotonic) -> Option<String> {
    let (state, _) = OutputState::of(output, &output.settle.total(), now);
    let is_stuck =
        matches!(state, OutputState::Blocked | OutputState::Failing | OutputState::Ended);
    let name = output.id.as_ref().unwrap_or(&output.kind);
    is_stuck.then(|| format!("{name} is {}", state.name()))
}

impl Mark {
    /// The place from which the next rate counts, and the rate until now: over at least `interval`, or sooner if
    /// something has moved. Nothing if it is too early to measure it.
    fn pace(
        &self,
        cursor: u64,
        now: Monotonic,
        interval: Duration,
    ) -> (u64, Monotonic, Option<f64>) {
        let (span, moved) = (now.since(self.since), cursor.saturating_sub(self.cursor));
        let rate =
            Some(span).filter(|span| !span.is_zero()).map(|span| moved as f64 / span.as_secs_f64());
        match rate {
            Some(rate) if span >= interval => (cursor, now, Some(rate)),
            Some(rate) if self.rate.is_none() && moved > 0 => (self.cursor, self.since, Some(rate)),
            _ => (self.cursor, self.since, self.rate),
        }
    }
}

impl Round {
    fn take(
        &mut self,
        look: FileLook,
        at: &InputContext,
        last: Option<&Self>,
        wall: Timestamp,
        sums: &mut LagNumbers,
    ) {
        let now = self.made;
        let mut rate = None;
        let mut behind_for = Duration::ZERO;
        if let Some(key) = &look.key {
            let place = (at.output, key.clone());
            let before = last.and_then(|last| last.marks.get(&place).copied());
            let before = before.filter(|mark| mark.generation == look.generation);
            let kept = before.filter(|mark| look.cursor < mark.size);
            let (size, seen) = kept.map_or((look.size, now), |mark| (mark.size, mark.seen));
            let is_behind = look.behind.is_some_and(|bytes| bytes > 0);
            if is_behind && is_to_be_read(&look) {
                // Its newest line is as old as the file's last change. Of a file that is gone that is not known.
                let is_known = look.modified != Timestamp::default();
                let unchanged = if is_known { wall.since(look.modified) } else { Duration::ZERO };
                behind_for = now.since(seen).max(unchanged);
            }
            let fresh = Mark {
                generation: look.generation,
                cursor: look.cursor,
                since: now,
                rate: None,
                size,
                seen,
            };
            let paced = before.map(|mark| mark.pace(look.cursor, now, at.interval));
            let (cursor, since, known) = paced.unwrap_or((fresh.cursor, fresh.since, None));
            rate = known;
            if self.marks.len() < FILES_MAX {
                self.marks.insert(place, Mark { cursor, since, rate, ..fresh });
            }
        }
        sums.add(&Found { look: &look, rate, behind_for });
        if self.files.len() < FILES_MAX {
            self.files.push(BoardFile {
                look,
                output: at.output,
                input: Arc::clone(&at.input),
                rate,
                behind_for,
                is_stuck: at.is_stuck,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_read::{FileState, Reason};
    use std::path::Path;

    fn look(cursor: u64, modified: Timestamp) -> FileLook {
        FileLook {
            path: Arc::from(Path::new("/a")),
            key: Some("k".to_owned()),
            identity: None,
            fingerprint_len: None,
            generation: 0,
            size: 1000,
            modified,
            compressed: false,
            cursor,
            read: cursor,
            behind: Some(1000 - cursor),
            state: FileState::Gone,
            reason: Some(Reason::Gone),
            at_rest: None,
            source: None,
            id: skidder_os::FileId { device: 1, inode: 2 },
            deleted_in: None,
            error: None,
        }
    }

    fn round(second: u64, look: FileLook, last: Option<&Round>) -> Round {
        let mut round = Round {
            made: Monotonic(Duration::from_secs(second)),
            took: Duration::ZERO,
            requested: Monotonic::default(),
            files: Vec::new(),
            marks: HashMap::new(),
            sums: Arc::default(),
        };
        let interval = Duration::from_secs(10);
        let at = InputContext { output: 0, input: Arc::from("i"), interval, is_stuck: false };
        let wall = Timestamp(1_800_000_000_000_000_000 + second as i64 * 1_000_000_000);
        round.take(look, &at, last, wall, &mut LagNumbers::default());
        round
    }

    #[test]
    fn a_file_that_is_gone_is_as_old_as_it_was_seen_behind() {
        let first = round(100, look(0, Timestamp::default()), None);
        assert_eq!(first.files[0].behind_for, Duration::ZERO, "not since 1970");
        let second = round(130, look(0, Timestamp::default()), Some(&first));
        assert_eq!(second.files[0].behind_for, Duration::from_secs(30));
        let known = round(100, look(0, Timestamp(1_800_000_000_000_000_000)), None);
        assert_eq!(known.files[0].behind_for, Duration::from_secs(100));
    }

    #[test]
    fn a_cursor_that_moves_every_ten_seconds_has_a_steady_rate() {
        let mut last = None;
        let mut rates = Vec::new();
        for second in 0..40 {
            let round = round(second, look(second / 10 * 100, Timestamp(1)), last.as_ref());
            rates.push(round.files[0].rate);
            last = Some(round);
        }
        assert!(rates[..10].iter().all(Option::is_none), "it is too early to tell: {rates:?}");
        assert!(rates[10..].iter().all(|rate| *rate == Some(10.0)), "{rates:?}");
    }
}
