//! Drives the file inputs of an output: a scanner, and threads that take turns with their files.

use crate::change::{Changing, InputChange};
use crate::crew::Crew;
use crate::looks::{AskError, Looks};
use crate::scanner::{FileInput, Scanner};
use skidder_os::{Bell, Clock, Monotonic};
use skidder_pipeline::{Driver, ReadOnce, Stage, join};
use skidder_read::{Now, Readers};
use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How files are read.
#[derive(Clone, Copy, Debug)]
pub struct FileDriverSettings {
    /// Threads that read, decode, split and process.
    pub workers: usize,
    /// Read what is there once, instead of for ever.
    pub once: bool,
}

/// With `once`, so many more scans look for files that could not be opened or read, and directories that could not be
/// listed; anew after each that finds fewer of them.
const TRIES_ONCE: u32 = 3;

/// Time between these.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// The threads from files to the queue.
pub struct FileDriver {
    settings: FileDriverSettings,
    shared: Arc<Shared>,
    readers: Arc<Readers>,
    /// Until it starts.
    waiting: Option<Scanner>,
    scanner: Option<JoinHandle<Vec<FileInput>>>,
    /// What was scanned, once that is over: freeing it takes a while, with very many files.
    scanned: Vec<FileInput>,
    /// Once it has started.
    crew: Option<Arc<Crew>>,
    looks: Arc<Looks>,
    clock: Option<Arc<dyn Clock>>,
}

/// Changes the inputs of a driver while it runs.
#[derive(Clone)]
pub struct FileInputs(Arc<Shared>);

impl FileInputs {
    /// Changes the inputs: see [`InputChange`]. One change after the other, but for those that are [`InputChange::beside`]
    /// others; not with `once`, and one that is not over when the driver is stopped is left.
    pub fn change(&self, change: InputChange) {
        self.0.set(|state| state.changes.push_back(change));
        self.0.ring();
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Wakes the scanner, if it waits for notification.
    bell: OnceLock<Arc<dyn Bell>>,
}

#[derive(Default)]
struct State {
    stopped: bool,
    /// Pending changes to the inputs, one after the other.
    changes: VecDeque<InputChange>,
    /// With `once`: everything that was there is read.
    read_once: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until `wanted`, at most `limit`; returns whether it is so.
    fn wait(&self, limit: Duration, wanted: impl Fn(&State) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |state| !wanted(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        wanted(&state)
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Takes the next change that need not wait for those under way.
    fn next_change(&self, under_way: &[Changing]) -> Option<InputChange> {
        let may_begin = |next: &InputChange| {
            // What only waits to be read, perhaps behind an output that hangs, holds nothing up.
            let waits =
                |change: &Changing| if next.beside { !change.beside } else { !change.only_reads() };
            !under_way.iter().any(waits)
        };
        // An input that has not begun yet cannot end.
        let mut unbegun: HashSet<usize> = under_way.iter().flat_map(Changing::unbegun).collect();
        let changes = &mut self.lock().changes;
        for at in 0..changes.len() {
            let next = &changes[at];
            if !may_begin(next) {
                return None;
            }
            if !next.remove.iter().any(|number| unbegun.contains(number)) {
                return changes.remove(at);
            }
            // Only changes that are beside others may be put before it.
            if !next.beside || changes.get(at + 1).is_some_and(|after| !after.beside) {
                return None;
            }
            unbegun.extend(next.add.iter().map(|(number, _)| *number));
        }
        None
    }

    /// Wakes the scanner.
    fn ring(&self) {
        if let Some(bell) = self.bell.get() {
            bell.ring();
        }
    }
}

impl FileDriver {
    /// Over the inputs of `scanner`, whose files `readers` read.
    pub fn new(settings: FileDriverSettings, scanner: Scanner, readers: Arc<Readers>) -> Self {
        Self {
            settings,
            shared: Arc::default(),
            readers,
            waiting: Some(scanner),
            scanner: None,
            scanned: Vec::new(),
            crew: None,
            looks: Arc::default(),
            clock: None,
        }
    }

    /// Where to ask what the files are doing.
    pub fn looks(&self) -> Arc<Looks> {
        Arc::clone(&self.looks)
    }

    /// The handle that changes its inputs.
    pub fn inputs(&self) -> FileInputs {
        FileInputs(Arc::clone(&self.shared))
    }
}

impl Driver for FileDriver {
    fn start(&mut self, stage: &Stage) -> io::Result<()> {
        let crew = self.crew.insert(Crew::new(Arc::clone(&self.readers), stage.clone()));
        for number in 0..self.settings.workers.max(1) {
            crew.add(number)?;
        }
        let shared = Arc::clone(&self.shared);
        self.looks.set_wake(move || {
            shared.set(|_| {});
            shared.ring();
        });
        let Some(mut scanner) = self.waiting.take() else { return Ok(()) };
        let (shared, readers) = (Arc::clone(&self.shared), Arc::clone(&self.readers));
        let (once, looks) = (self.settings.once, Arc::clone(&self.looks));
        let (span, stage) = (tracing::Span::current(), stage.clone());
        self.clock = Some(Arc::clone(&stage.clock));
        let work = move || {
            let _in = span.entered();
            if once {
                scan_once(&mut scanner, &shared, &readers, &looks, &*stage.clock);
            } else {
                scan_for_ever(&mut scanner, &shared, &looks, &stage);
            }
            looks.end();
            scanner.into_inputs()
        };
        self.scanner = Some(std::thread::Builder::new().name("scanner".to_owned()).spawn(work)?);
        Ok(())
    }

    fn read_once(&self) -> ReadOnce {
        let shared = Arc::clone(&self.shared);
        Box::new(move || {
            while !shared.wait(Duration::from_hours(1), |state| state.read_once || state.stopped) {}
            shared.lock().read_once
        })
    }

    /// The open files of inputs with `read_until_eof` are read to their end, or as long as that allows.
    fn stop(&mut self) {
        self.shared.set(|state| state.stopped = true);
        self.shared.ring();
        if let (Some(scanner), Some(clock)) = (self.scanner.take(), &self.clock) {
            self.scanned = join(scanner).unwrap_or_default();
            let limit = self.readers.drain(clock.monotonic());
            if !limit.is_zero() && !self.readers.wait_quiet(limit) {
                tracing::warn!(
                    ?limit,
                    "`read_until_eof.timeout` is over before all open files were read"
                );
            }
        }
        self.readers.stop();
    }

    fn join(&mut self) {
        if let Some(crew) = self.crew.take() {
            crew.join();
        }
    }
}

fn now(clock: &dyn Clock) -> Now {
    Now { wall: clock.wall(), monotonic: clock.monotonic() }
}

/// Answers the pending questions.
fn answer(scanner: &mut Scanner, looks: &Looks, clock: &dyn Clock) {
    for question in looks.take() {
        let page = match scanner.input(question.input) {
            Some(input) => Ok(input.page(&question.query, now(clock))),
            None => Err(AskError::NoInput(question.input)),
        };
        question.answer(page);
    }
}

fn scan_for_ever(scanner: &mut Scanner, shared: &Shared, looks: &Looks, stage: &Stage) {
    let clock = &*stage.clock;
    let mut changing: Vec<Changing> = Vec::new();
    loop {
        while let Some(change) = shared.next_change(&changing) {
            changing.push(Changing::begin(change, scanner, now(clock)));
        }
        changing.retain_mut(|change| {
            !change.step(scanner, stage.queue.settle(), &stage.commits, now(clock))
        });
        let mut next = scanner.step(&|| now(clock));
        // The first input that is watched brings it. A change that came before it rang nothing.
        if let Some(bell) = scanner.bell() {
            shared.bell.get_or_init(|| bell);
        }
        // Behind the first scan: before it there is no file.
        answer(scanner, looks, clock);
        if let Some(again) = changing.iter().map(Changing::look_again).min() {
            next.until = next.until.min(clock.monotonic() + again);
        }
        let left = |until: Monotonic| until.since(clock.monotonic()).min(Duration::from_hours(1));
        // Notifications that arrive during the pause wait for its end.
        if shared.wait(next.pause, |state| state.stopped) {
            return;
        }
        // Those that wait for changes under way are looked at again after these.
        let pending = shared.lock().changes.len();
        let may_begin = changing.is_empty() && pending > 0;
        if !may_begin && !looks.is_pending() && !scanner.wait(left(next.until)) {
            let woken = |state: &State| {
                state.stopped || looks.is_pending() || state.changes.len() != pending
            };
            shared.wait(left(next.until), woken);
        }
        if shared.lock().stopped {
            return;
        }
    }
}

/// Scans until everything is read: at least twice, because files move while they are read, and as long as
/// files are being compared.
fn scan_once(
    scanner: &mut Scanner,
    shared: &Shared,
    readers: &Readers,
    looks: &Looks,
    clock: &dyn Clock,
) {
    let mut scans = 0;
    let (mut tries, mut refused) = (0, usize::MAX);
    loop {
        let undecided = scanner.scan_all(scans == 0, &|| now(clock));
        scans += 1;
        while !readers.wait_quiet(Duration::from_millis(200)) {
            answer(scanner, looks, clock);
            if shared.lock().stopped {
                return;
            }
        }
        if shared.lock().stopped {
            return;
        }
        if scans < 2 || undecided > 0 {
            continue;
        }
        // What the system refused for a moment is tried again, as long as that helps.
        let still = scanner.refused(now(clock));
        tries = if still < refused { 0 } else { tries + 1 };
        refused = still;
        if still == 0 || tries == TRIES_ONCE {
            break;
        }
        shared.wait(TRY_AGAIN_AFTER, |state| state.stopped);
    }
    shared.set(|state| state.read_once = true);
    // The threads go on until they are stopped: what is read late still counts.
    while !shared.lock().stopped {
        answer(scanner, looks, clock);
        shared.wait(Duration::from_hours(1), |state| state.stopped || looks.is_pending());
    }
}

#[cfg(test)]
mod tests;
