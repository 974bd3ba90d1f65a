//! Inputs that end and begin while the pipeline runs.
//!
//! An input ends in three steps, during which all others go on: its readers get no more turns; the events in flight
//! get their verdicts; the cursors are saved. Files that lose their names in between are read to their end, and the
//! steps begin again. Then it is as though the program had been stopped and started for this input: the next input
//! that reads its files continues at their cursors.
//!
//! An input whose files get no more lines, such as those of a container that has ended, can be read to its end before
//! that ([`Ending::WhenRead`]).

use crate::scanner::{FileInput, Scanner};
use skidder_event::SourceId;
use skidder_os::Monotonic;
use skidder_pipeline::{Commits, Settle};
use skidder_read::{FileLook, FileQuery, FileState, GoneFiles, Leaving, Now, Reason};
use std::time::Duration;

/// A change that takes longer is logged.
const SLOW_AFTER: Duration = Duration::from_secs(10);

/// How long until the next step.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How often is looked whether an input was read to its end.
const LOOK_FOR_END: Duration = Duration::from_millis(250);

/// When inputs end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// At once.
    #[default]
    Now,
    /// When all lines of their files have a verdict, however long that takes.
    WhenRead,
}

/// Changes to the inputs of a running pipeline.
pub struct InputChange {
    /// The numbers of those that end. The inputs of the start have the first numbers.
    pub remove: Vec<usize>,
    /// When they end.
    pub ending: Ending,
    /// Whether other changes may be under way meanwhile: none of these has to do with the files of this one.
    pub beside: bool,
    /// Those that begin when these have ended, with numbers that no input had before.
    pub add: Vec<(usize, FileInput)>,
    /// Called when it is done.
    pub done: Box<dyn FnOnce() + Send>,
}

/// Inputs that end, and how far that is.
pub struct Handover {
    leaving: Vec<Leaving>,
    /// The sources that they read.
    sources: Vec<SourceId>,
    /// Those of it that may have no verdict yet.
    unsettled: Vec<SourceId>,
    /// Files of inputs that have ended.
    gone: GoneFiles,
    phase: Phase,
}

/// What the handover waits for.
#[derive(Clone, Copy)]
enum Phase {
    /// Turns to end.
    Readers,
    Verdicts,
    Commit(Commit),
    Nothing,
}

/// A question or request about a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Begin a new one now.
    Begin,
    /// Is the one that began durable?
    Await,
}

impl Handover {
    /// Of inputs whose readers were given up.
    pub fn begin(leaving: Vec<Leaving>) -> Self {
        let sources: Vec<SourceId> = leaving.iter().flat_map(Leaving::sources).collect();
        let phase = if leaving.is_empty() { Phase::Nothing } else { Phase::Readers };
        Self { leaving, unsettled: sources.clone(), sources, gone: GoneFiles::default(), phase }
    }

    /// Goes on as far as possible; says whether others may read the same files now. `commit` is called, again and again,
    /// when all has its verdict: it says whether a commit is durable that began after the last call with
    /// [`Commit::Begin`].
    pub fn step(&mut self, settle: &Settle, commit: &mut dyn FnMut(Commit) -> bool) -> bool {
        if let Phase::Readers = self.phase {
            let mut is_at_rest = true;
            for leaving in &mut self.leaving {
                is_at_rest &= leaving.is_at_rest();
            }
            if is_at_rest {
                self.phase = Phase::Verdicts;
            }
        }
        if let Phase::Verdicts = self.phase {
            self.unsettled.retain(|source| !settle.is_settled(*source));
            if self.unsettled.is_empty() && !self.goes_back() {
                self.phase = Phase::Commit(Commit::Begin);
            }
        }
        if let Phase::Commit(wanted) = self.phase {
            self.phase = Phase::Commit(Commit::Await);
            if commit(wanted) && !self.goes_back() {
                for leaving in self.leaving.drain(..) {
                    self.gone.append(leaving.end());
                }
                settle.retire(&self.sources);
                self.phase = Phase::Nothing;
            }
        }
        matches!(self.phase, Phase::Nothing)
    }

    /// The files that were gone when the inputs ended, for [`Scanner::forget_later`].
    pub fn take_gone(&mut self) -> GoneFiles {
        std::mem::take(&mut self.gone)
    }

    /// Begins anew if files have lost their names, which are read to their end first; returns whether there are any.
    fn goes_back(&mut self) -> bool {
        let mut is_any = false;
        for leaving in &mut self.leaving {
            is_any |= leaving.wake_lost();
        }
        if is_any {
            self.phase = Phase::Readers;
            self.unsettled.clone_from(&self.sources);
        }
        is_any
    }

    /// The current wait, for the log.
    fn waits_for(&self) -> &'static str {
        match self.phase {
            Phase::Readers => "files that have lost their names to be read to the end",
            Phase::Verdicts => "verdicts of the output for what was read",
            Phase::Commit(_) | Phase::Nothing => "the registry to take the cursors",
        }
    }
}

/// A change under way.
pub(crate) struct Changing {
    /// Inputs that are read to their end first.
    unread: Option<Unread>,
    /// See [`InputChange::beside`].
    pub(crate) beside: bool,
    handover: Handover,
    /// The requested commit.
    commit: Option<u64>,
    add: Vec<(usize, FileInput)>,
    done: Option<Box<dyn FnOnce() + Send>>,
    began: Monotonic,
    logged: bool,
}

impl Changing {
    /// Ends the inputs that are to end now.
    pub(crate) fn begin(change: InputChange, scanner: &mut Scanner, now: Now) -> Self {
        let InputChange { remove, ending, beside, add, done } = change;
        let mut unread = None;
        let mut leaving = Vec::new();
        match ending {
            Ending::Now => leaving = end(&remove, scanner, now),
            Ending::WhenRead => unread = Some(Unread::new(remove, scanner, now)),
        }
        let handover = Handover::begin(leaving);
        let (began, done, logged) = (now.monotonic, Some(done), false);
        Self { unread, beside, handover, commit: None, add, done, began, logged }
    }

    /// Whether its inputs still read their files to the end.
    pub(crate) fn only_reads(&self) -> bool {
        self.unread.is_some()
    }

    /// The inputs that are to begin.
    pub(crate) fn unbegun(&self) -> impl Iterator<Item = usize> {
        self.add.iter().map(|(number, _)| *number)
    }

    /// How long until the next step.
    pub(crate) fn look_again(&self) -> Duration {
        if self.unread.is_some() { LOOK_FOR_END } else { LOOK_AGAIN }
    }

    /// Goes on as far as possible; returns whether the change is done.
    pub(crate) fn step(
        &mut self,
        scanner: &mut Scanner,
        settle: &Settle,
        commits: &Commits,
        now: Now,
    ) -> bool {
        if let Some(unread) = &mut self.unread {
            if !unread.is_over(scanner, now) {
                return false;
            }
            for number in &unread.inputs {
                if let Some(input) = scanner.input(*number) {
                    input.report_unseen();
                }
            }
            self.handover = Handover::begin(end(&unread.inputs, scanner, now));
            self.unread = None;
            self.began = now.monotonic;
        }
        let commit = &mut self.commit;
        let mut is_committed = |wanted| {
            if wanted == Commit::Begin {
                *commit = None;
            }
            let number = *commit.get_or_insert_with(|| commits.request());
            commits.is_done(number)
        };
        if !self.handover.step(settle, &mut is_committed) {
            self.log_if_slow(now.monotonic);
            return false;
        }
        scanner.forget_later(self.handover.take_gone());
        for (number, input) in self.add.drain(..) {
            scanner.add(number, input);
        }
        if let Some(done) = self.done.take() {
            done();
        }
        true
    }

    /// Logs why it takes so long, once.
    fn log_if_slow(&mut self, now: Monotonic) {
        if self.logged || now.since(self.began) < SLOW_AFTER {
            return;
        }
        self.logged = true;
        let waits_for = self.handover.waits_for();
        tracing::warn!(waits_for, "inputs that were changed have not begun yet");
    }
}

/// Ends these inputs.
fn end(inputs: &[usize], scanner: &mut Scanner, now: Now) -> Vec<Leaving> {
    inputs.iter().filter_map(|number| scanner.end(*number, now)).collect()
}

/// How long inputs that should end wait for files and directories that the system refuses, and for files of which it is not
/// known yet what they are: another input may read them.
const REFUSED_MAX: Duration = Duration::from_mins(1);

/// Inputs that are read to their end before they end.
struct Unread {
    inputs: Vec<usize>,
    /// When to look.
    due: Monotonic,
    /// What the system still refuses then is left, as it is in the log.
    patience: Monotonic,
    /// They were read to their end once before: what was written meanwhile was seen.
    was_seen: bool,
}

impl Unread {
    fn new(inputs: Vec<usize>, scanner: &mut Scanner, now: Now) -> Self {
        let due = now.monotonic;
        let this = Self { inputs, due, patience: due + REFUSED_MAX, was_seen: false };
        this.scan(scanner, now);
        this
    }

    /// What was written last is seen.
    fn scan(&self, scanner: &mut Scanner, now: Now) {
        for number in &self.inputs {
            if let Some(input) = scanner.input(*number) {
                input.scan(now);
            }
        }
    }

    /// Looks, if that is due, whether all were read to their end.
    fn is_over(&mut self, scanner: &mut Scanner, now: Now) -> bool {
        if now.monotonic < self.due {
            return false;
        }
        self.due = now.monotonic + LOOK_FOR_END;
        if self.without_more(scanner, now).is_none() {
            return false;
        }
        // The last line may have come since the scan.
        self.scan(scanner, now);
        let without_end = self.without_more(scanner, now);
        without_end.is_some_and(|inputs| !self.completes_groups(&inputs, scanner))
    }

    /// If all have been read to their end: those of them with a line that has no end. Looks at each once.
    fn without_more(&self, scanner: &mut Scanner, now: Now) -> Option<Vec<usize>> {
        let is_patient = now.monotonic < self.patience;
        let mut without_end = Vec::new();
        for number in &self.inputs {
            let Some(input) = scanner.input(*number) else { continue };
            let page = input.page(&all_files(), now);
            let is_refused = |file: &FileLook| {
                matches!(file.reason, Some(Reason::Unopened(_) | Reason::NextScan))
            };
            if is_patient && (!page.unlisted.is_empty() || page.files.iter().any(is_refused)) {
                input.scan(now);
                return None;
            }
            if !page.files.iter().all(has_nothing_more) {
                return None;
            }
            let has_no_end = |file: &FileLook| matches!(file.reason, Some(Reason::LineWithoutEnd));
            without_end.extend(page.files.iter().any(has_no_end).then_some(*number));
        }
        Some(without_end)
    }

    /// Ends the last groups of lines, say of `multiline`, which get no more of them and do not wait for their timeout;
    /// returns whether there are any. A line without an end may still get it until the next look.
    fn completes_groups(&mut self, without_end: &[usize], scanner: &mut Scanner) -> bool {
        let was_seen = std::mem::replace(&mut self.was_seen, true);
        let mut is_any = false;
        for number in without_end {
            let Some(input) = scanner.input(*number) else { continue };
            is_any |= !was_seen || input.complete_groups();
        }
        is_any
    }
}

/// The states of all files.
fn all_files() -> FileQuery {
    FileQuery { after: None, limit: usize::MAX, paths: Vec::new() }
}

/// Whether all that can be read of a file has a verdict.
fn has_nothing_more(file: &FileLook) -> bool {
    match file.reason {
        // It is not known yet what it is.
        Some(Reason::Comparing(_)) => return false,
        Some(
            Reason::LineWithoutEnd
            | Reason::TooShort
            | Reason::Damaged(_)
            | Reason::Unopened(_)
            | Reason::NextScan,
        ) if !matches!(file.state, FileState::Reading | FileState::Waiting) => return true,
        _ => {}
    }
    match file.state {
        FileState::Reading | FileState::Waiting => false,
        FileState::Idle | FileState::Closed | FileState::Finished | FileState::Gone => {
            file.behind == Some(0)
        }
        FileState::Ignored | FileState::Empty | FileState::Unreadable | FileState::Held => true,
    }
}

#[cfg(test)]
mod tests;
