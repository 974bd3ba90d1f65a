//! The scanner: when it scans each input, and how it reacts to notices between scans.
//!
//! The scan is the truth, notification makes it early and cheap. Between two scans files that were written
//! to have their readers woken and new names are looked at. A scan looks where there was a notice, or where
//! there is no watch; now and then it looks at everything.

use skidder_os::sabotage::{self, Sabotage};
use skidder_os::{Bell, Fs, Monotonic};
use skidder_read::scan::ScanProblem;
use skidder_read::{
    Catalog, FileLook, FilePage, FileQuery, GoneFiles, InputContext, Leaving, NoticeSummary, Now,
    Peer, Reacted, Readers, Reason, ScanSummary, SourceIds, Watcher,
};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The least time between two scans that look at everything, unless the input is scanned less often.
const FULL_SCAN_EVERY: Duration = Duration::from_mins(1);

/// Part of the time that such scans take at most: 1/400 is a quarter of a percent of a core. With very many
/// files they are rarer for that.
const FULL_SCAN_SHARE: u32 = 400;

/// The most time between two of them, however long they take, unless the input is scanned less often.
const FULL_SCAN_EVERY_MAX: Duration = Duration::from_mins(10);

/// After notices were lost everything is looked at, at once, but not more often than this and not more than a
/// tenth of the time.
const LOST_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Time between two reactions: the most that a line waits for its reader to be woken while the scanner is not
/// busier than that. Notices that arrive during the pause are merged.
const REACTION_PAUSE: Duration = Duration::from_millis(20);

/// Further time for each path of the last reaction, and the bound of it: at most 10,000 readers are woken a
/// second, which costs about as much as reading 10,000 single lines.
const REACTION_PAUSE_EACH: Duration = Duration::from_micros(100);
const REACTION_PAUSE_MAX: Duration = Duration::from_secs(1);

/// While known files are written to all the time, in so many reactions one after the other and with nothing else to do, the
/// pause is a part of the time for which the queue waits for more events anyway (`queue.mem.flush.timeout`): waking is
/// what a trickle costs.
const STEADY_AFTER: u32 = 5;
const STEADY_PAUSE_SHARE: u32 = 100;
const STEADY_PAUSE_MAX: Duration = Duration::from_millis(100);

/// A directory that came or went makes a scan due after this, and after ten times what the last one took.
const RESTLESS_PAUSE: Duration = Duration::from_millis(20);

/// How long a scanner without inputs waits for one.
const NOTHING_DUE: Duration = Duration::from_hours(1);

/// One file input: its context and the catalog of its files.
pub struct FileInput {
    context: Arc<InputContext>,
    catalog: Catalog,
    due: Monotonic,
    full_due: Monotonic,
    /// When the last scan ended, and how long it took.
    scanned: Option<(Monotonic, Duration)>,
    /// How long the last one that looked at everything took.
    full_took: Duration,
    /// Directories that the last scan could not list, with the error. They are in the log.
    unlisted: HashMap<PathBuf, String>,
}

impl FileInput {
    /// An input that was not scanned yet.
    pub fn new(context: Arc<InputContext>, readers: Arc<Readers>, ids: Arc<SourceIds>) -> Self {
        let catalog = Catalog::new(Arc::clone(&context), readers, ids);
        Self {
            context,
            catalog,
            due: Monotonic::default(),
            full_due: Monotonic::default(),
            scanned: None,
            full_took: Duration::ZERO,
            unlisted: HashMap::new(),
        }
    }

    /// The same for one of several outputs that the input feeds.
    #[must_use]
    pub fn with_peer(mut self, peer: Peer) -> Self {
        self.catalog.set_peer(peer);
        self
    }

    /// Looks at all files and acts on what has changed.
    pub fn scan(&mut self, now: Now) -> ScanSummary {
        self.due = now.monotonic + self.context.settings.check_interval;
        let (summary, problems) = self.catalog.scan(None, true, now);
        self.log_unlisted(problems);
        summary
    }

    /// Looks at all files once more, so that those that have just lost their names are known, and gives them up.
    pub fn leave(mut self, now: Now) -> Leaving {
        self.scan(now);
        self.catalog.leave()
    }

    /// The states of some of the files.
    pub fn page(&mut self, query: &FileQuery, now: Now) -> FilePage {
        let mut page = self.catalog.page(query, now);
        page.unlisted = self.unlisted.clone().into_iter().collect();
        page.unlisted.sort_unstable();
        page
    }

    /// See [`Catalog::report_unseen`].
    pub(crate) fn report_unseen(&self) {
        self.catalog.report_unseen();
    }

    /// See [`Catalog::complete_groups`].
    pub(crate) fn complete_groups(&self) -> bool {
        self.catalog.complete_groups()
    }

    /// Looks where something may have changed, or everywhere if that is due. `end` says when it is over.
    fn scan_watched(&mut self, watcher: &mut Watcher, now: Now, end: impl Fn() -> Monotonic) {
        let every = self.context.settings.check_interval;
        let full = self.full_due <= now.monotonic && !sabotage::is_on(Sabotage::QuietForEver);
        let (_, problems) = self.catalog.scan(Some(watcher), full, now);
        self.log_unlisted(problems);
        let end = end();
        let took = end.since(now.monotonic);
        self.due = now.monotonic + every;
        self.scanned = Some((end, took));
        if full {
            self.full_took = took;
            let span = (took * FULL_SCAN_SHARE).clamp(FULL_SCAN_EVERY, FULL_SCAN_EVERY_MAX);
            // Those between two full scans would find nothing to do less.
            self.full_due = now.monotonic + span.max(every);
        }
    }

    fn log_unlisted(&mut self, problems: Vec<ScanProblem>) {
        // What works again is logged again when it fails again.
        self.unlisted.retain(|path, _| problems.iter().any(|problem| problem.path == *path));
        for ScanProblem { path, error } in problems {
            if !self.unlisted.contains_key(&path) {
                tracing::error!(path = %path.display(), %error, "cannot list a directory");
            }
            self.unlisted.insert(path, error.to_string());
        }
    }

    /// Notices were lost: everything must be looked at soon.
    fn distrust(&mut self) {
        let soon = self
            .scanned
            .map_or(Monotonic::default(), |(end, _)| end + LOST_PAUSE_MIN.max(self.full_took * 10));
        self.full_due = self.full_due.min(soon);
        self.due = self.due.min(soon);
    }

    /// A directory came or went: what is in it should not wait for long.
    fn hurry(&mut self) {
        if let Some((end, took)) = self.scanned {
            self.due = self.due.min(end + RESTLESS_PAUSE.max(took * 10));
        }
    }
}

/// Scans all inputs.
pub struct Scanner {
    /// By their numbers.
    inputs: BTreeMap<usize, Box<FileInput>>,
    watcher: Option<Watcher>,
    /// Files of inputs that have ended, which are to be forgotten.
    gone: GoneFiles,
    /// The pause while known files are written to all the time.
    steady_pause: Duration,
    /// Reactions one after the other that only woke readers.
    steady: u32,
}

/// When a scanner wants to be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// Not before this has passed, whatever notices come.
    pub pause: Duration,
    /// At the latest, even without a notice.
    pub until: Monotonic,
}

impl Scanner {
    /// Over these inputs. Where `prospector.scanner.notify` allows it and `fs` has a notifier, directories
    /// are watched.
    pub fn new(mut inputs: Vec<FileInput>, fs: &dyn Fs) -> Self {
        for (number, input) in inputs.iter_mut().enumerate() {
            input.catalog.set_input(number);
        }
        let wanted = inputs.iter().any(|input| input.context.settings.notify);
        let watcher = if wanted { watcher(fs) } else { None };
        let inputs = inputs.into_iter().map(Box::new).enumerate().collect();
        let gone = GoneFiles::default();
        Self { inputs, watcher, gone, steady_pause: REACTION_PAUSE, steady: 0 }
    }

    /// The queue holds an event for so long, waiting for more of them, so that a small part of it is no
    /// noticeable delay.
    #[must_use]
    pub fn with_queue_waiting(mut self, flush_timeout: Duration) -> Self {
        self.steady_pause =
            (flush_timeout / STEADY_PAUSE_SHARE).clamp(REACTION_PAUSE, STEADY_PAUSE_MAX);
        self
    }

    /// Takes in another input, which is scanned with the next step. No input has or had its number.
    pub fn add(&mut self, number: usize, mut input: FileInput) {
        input.catalog.set_input(number);
        if input.context.settings.notify && self.watcher.is_none() {
            self.watcher = watcher(&*input.context.fs);
        }
        self.inputs.insert(number, Box::new(input));
    }

    /// Ends an input; `None` if it has ended before.
    pub fn end(&mut self, number: usize, now: Now) -> Option<Leaving> {
        let input = self.inputs.remove(&number)?;
        if let Some(watcher) = &mut self.watcher {
            watcher.forget(number);
        }
        Some(input.leave(now))
    }

    /// Forgets files of inputs that have ended, with the step in which their time has come.
    pub fn forget_later(&mut self, gone: GoneFiles) {
        self.gone.append(gone);
    }

    /// Reacts to notices, and scans the inputs that are due. `time` returns the current time.
    pub fn step(&mut self, time: &dyn Fn() -> Now) -> NextStep {
        let (any_notice, Reacted { paths: reactions, looked }) = self.react(time());
        self.steady = if reactions > 0 && !looked { self.steady.saturating_add(1) } else { 0 };
        for input in self.inputs.values_mut() {
            let now = time();
            if input.due > now.monotonic {
                continue;
            }
            match &mut self.watcher {
                Some(watcher) if input.context.settings.notify => {
                    input.scan_watched(watcher, now, || time().monotonic);
                }
                _ => {
                    input.scan(now);
                }
            }
        }
        self.gone.forget(time().monotonic);
        let scans = self.inputs.values().map(|input| input.due);
        let due = scans.chain(self.gone.due()).min();
        let mut until = due.unwrap_or_else(|| time().monotonic + NOTHING_DUE);
        // Notices that concern no input are merged, too.
        let mut pause = if any_notice { REACTION_PAUSE } else { Duration::ZERO };
        if reactions > 0 {
            let count = u32::try_from(reactions).unwrap_or(u32::MAX);
            let more = REACTION_PAUSE_EACH.saturating_mul(count);
            let least =
                if self.steady >= STEADY_AFTER { self.steady_pause } else { REACTION_PAUSE };
            pause = more.clamp(least, REACTION_PAUSE_MAX);
            // Readers that were woken may find what must be looked at.
            until = until.min(time().monotonic + pause);
        }
        NextStep { pause, until }
    }

    /// Reacts to notices; returns whether there were any, and what it did.
    fn react(&mut self, now: Now) -> (bool, Reacted) {
        let notices = self.take_notices();
        let mut all = Reacted::default();
        let Some(watcher) = &mut self.watcher else { return (false, all) };
        for input in self.inputs.values_mut() {
            if notices.lost {
                input.distrust();
            }
            if input.catalog.is_restless() {
                input.hurry();
            }
            let reacted = input.catalog.react(watcher, now);
            all.paths += reacted.paths;
            all.looked |= reacted.looked;
        }
        (notices.notices > 0, all)
    }

    /// Scans all inputs, due or not: everything if it is the `first` time or notices were lost, else where something may
    /// have changed. Returns how many comparisons of files go on with the next time.
    pub fn scan_all(&mut self, first: bool, time: &dyn Fn() -> Now) -> usize {
        let lost = self.take_notices().lost;
        let mut undecided = 0;
        for input in self.inputs.values_mut() {
            let now = time();
            let watcher = self.watcher.as_mut().filter(|_| input.context.settings.notify);
            let full = first || lost || watcher.is_none();
            let (summary, problems) = input.catalog.scan(watcher, full, now);
            input.log_unlisted(problems);
            undecided += summary.undecided;
        }
        undecided
    }

    /// Passes all pending notices to their inputs.
    fn take_notices(&mut self) -> NoticeSummary {
        let Some(watcher) = &mut self.watcher else { return NoticeSummary::default() };
        let inputs = &mut self.inputs;
        watcher.take(&mut |input, notice| {
            if let Some(input) = inputs.get_mut(&input) {
                input.catalog.notice(notice);
            }
        })
    }

    /// Waits for a notice, the bell, or `limit`; may return early. Without a notifier it returns `false` at
    /// once.
    pub fn wait(&mut self, limit: Duration) -> bool {
        match &mut self.watcher {
            Some(watcher) => {
                watcher.wait(limit);
                true
            }
            None => false,
        }
    }

    /// Ends a wait from another thread.
    pub fn bell(&self) -> Option<Arc<dyn Bell>> {
        self.watcher.as_ref().map(Watcher::bell)
    }

    /// An input, for questions about it.
    pub(crate) fn input(&mut self, number: usize) -> Option<&mut FileInput> {
        self.inputs.get_mut(&number).map(|input| &mut **input)
    }

    /// How many files and directories of all inputs the system refuses.
    pub(crate) fn refused(&mut self, now: Now) -> usize {
        let all = FileQuery { after: None, limit: usize::MAX, paths: Vec::new() };
        let is_refused = |file: &&FileLook| matches!(file.reason, Some(Reason::Unopened(_)));
        let inputs = self.inputs.values_mut();
        inputs
            .map(|input| {
                let page = input.page(&all, now);
                page.files.iter().filter(is_refused).count() + page.unlisted.len()
            })
            .sum()
    }

    /// The inputs, when scanning is over.
    pub fn into_inputs(self) -> Vec<FileInput> {
        self.inputs.into_values().map(|input| *input).collect()
    }
}

/// The change notification of the system, if it has any.
fn watcher(fs: &dyn Fs) -> Option<Watcher> {
    match fs.notifier() {
        Ok(notifier) => Some(Watcher::new(notifier)),
        Err(error) => {
            tracing::warn!(%error, "no change notification; every scan looks at all files");
            None
        }
    }
}

#[cfg(test)]
mod tests;
