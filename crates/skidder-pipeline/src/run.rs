//! The running pipeline: the threads that scan, read and save. Outputs run where sockets live, in the
//! caller's runtime; the queue is what both sides share.

use crate::change::{Changing, InputChange};
use crate::disk::DiskQueue;
use crate::looks::{AskError, Looks};
use crate::queue::Queue;
use crate::registrar::Registrar;
use crate::saving::save;
use crate::scanner::{FileInput, Scanner};
use crate::settle::Settle;
use crate::worker::Worker;
use skidder_os::{Bell, Clock, Monotonic};
use skidder_read::{Now, Readers};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How the pipeline runs.
#[derive(Clone, Copy, Debug)]
pub struct PipelineSettings {
    /// Threads that read, decode, split and process.
    pub workers: usize,
    /// `filebeat.registry.flush`: how long after it moved a cursor is saved.
    pub flush: Duration,
    /// Read what is there once, instead of for ever.
    pub once: bool,
}

/// The queue between the readers and an output.
#[derive(Clone)]
pub struct Queues {
    /// Where readers put batches in.
    pub readers: Queue,
    /// The queue on the disk, of which that is one end.
    pub disk: Option<Arc<DiskQueue>>,
}

/// With `once`, so many more scans look for files that could not be opened or read, and directories that could not be
/// listed; anew after each that finds fewer of them.
const TRIES_ONCE: u32 = 3;

/// Time between these.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

impl Queues {
    /// How long an event waits there for others, as long as nobody else comes. On the disk it waits for nothing.
    pub fn waits_for_more(&self) -> Duration {
        let limits = self.readers.limits();
        if self.disk.is_some() || limits.flush_min_events == 0 {
            return Duration::ZERO;
        }
        limits.flush_timeout
    }
}

/// How long processors may go on with what they are at when reading stops.
#[derive(Clone, Copy, Debug)]
pub struct Patience<'a> {
    /// Behind this they are interrupted.
    pub limit: Duration,
    /// What interrupts them.
    pub interrupt: &'a AtomicBool,
}

/// Threads from files to the queue, and from the settle to the registry.
pub struct Pipeline {
    shared: Arc<Shared>,
    readers: Arc<Readers>,
    queue: Queue,
    disk: Option<Arc<DiskQueue>>,
    /// Those of the disk queue.
    movers: Vec<JoinHandle<()>>,
    settle: Arc<Settle>,
    workers: Vec<JoinHandle<()>>,
    scanner: Option<JoinHandle<Vec<FileInput>>>,
    /// What was scanned, once that is over: freeing it takes a while, with very many files.
    scanned: Vec<FileInput>,
    registrar: Option<JoinHandle<Registrar>>,
    looks: Arc<Looks>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Wakes the scanner, if it waits for notification.
    bell: OnceLock<Arc<dyn Bell>>,
}

#[derive(Default)]
struct State {
    stopped: bool,
    /// What is to change about the inputs, one after the other.
    changes: VecDeque<InputChange>,
    /// How often a commit was asked for before its time, and up to which of these all was saved.
    commits_asked: u64,
    commits_done: u64,
    /// So much has its verdict that cursors are to be saved before their time.
    commit_due: bool,
    /// Stopped, and everything is settled that will be.
    finished: bool,
    /// With `once`: everything that was there is read.
    read_once: bool,
}

impl State {
    /// Whether a commit after number `tried` was asked for, or the pipeline ends.
    fn is_commit_wanted(&self, tried: u64) -> bool {
        self.finished || self.commits_asked > tried
    }
}

/// Waits for the end of reading; see [`Pipeline::read_once`].
pub struct ReadOnce(Arc<Shared>);

impl ReadOnce {
    /// Waits until everything that was there is read, or the pipeline was stopped; says which.
    pub fn wait(&self) -> bool {
        while !self.0.wait(Duration::from_hours(1), |state| state.read_once || state.stopped) {}
        self.0.lock().read_once
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until `wanted`, at most `limit`; says whether it is so.
    fn wait(&self, limit: Duration, wanted: impl Fn(&State) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |state| !wanted(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        wanted(&state)
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Wakes the scanner.
    fn ring(&self) {
        if let Some(bell) = self.bell.get() {
            bell.ring();
        }
    }

    /// Asks for a commit of all cursors now; gives its number.
    pub(crate) fn ask_commit(&self) -> u64 {
        let mut number = 0;
        self.set(|state| {
            state.commits_asked += 1;
            number = state.commits_asked;
        });
        number
    }

    /// Sleeps until a commit is due before its time, or one after number `tried` was asked for, or the pipeline ends, at
    /// most `limit`; returns whether it is one of the latter two.
    pub(crate) fn wait_for_commit(&self, limit: Duration, tried: u64) -> bool {
        self.wait(limit, |state| state.commit_due || state.is_commit_wanted(tried));
        let mut state = self.lock();
        state.commit_due = false;
        state.is_commit_wanted(tried)
    }

    /// The same, whatever is due.
    pub(crate) fn wait_for_commit_only(&self, limit: Duration, tried: u64) {
        self.wait(limit, |state| state.is_commit_wanted(tried));
    }

    /// Whether everything is settled that will be.
    pub(crate) fn is_finished(&self) -> bool {
        self.lock().finished
    }

    /// The number of the last commit that was asked for.
    pub(crate) fn commits_asked(&self) -> u64 {
        self.lock().commits_asked
    }

    /// All cursors of the time when this commit was asked for are durable.
    pub(crate) fn committed(&self, number: u64) {
        self.lock().commits_done = number;
    }

    /// Whether all cursors of the time when this commit was asked for are durable.
    pub(crate) fn is_committed(&self, number: u64) -> bool {
        self.lock().commits_done >= number
    }
}

impl Pipeline {
    /// Starts the threads.
    pub fn start(
        settings: PipelineSettings,
        scanner: Scanner,
        readers: Arc<Readers>,
        Queues { readers: queue, disk }: Queues,
        registrar: Registrar,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let movers = disk.as_ref().map(DiskQueue::start).transpose()?.unwrap_or_default();
        let shared = Arc::new(Shared::default());
        // What the caller says of whom this is holds for the threads, too.
        let span = tracing::Span::current();
        let mut workers = Vec::new();
        for number in 0..settings.workers.max(1) {
            let (readers, queue, clock) = (Arc::clone(&readers), queue.clone(), Arc::clone(&clock));
            let name = format!("reader-{number}");
            let span = span.clone();
            let work = move || span.in_scope(|| Worker::new(&readers, &queue, &*clock).run());
            workers.push(std::thread::Builder::new().name(name).spawn(work)?);
        }
        let looks = Arc::new(Looks::default());
        {
            let shared = Arc::clone(&shared);
            looks.set_wake(move || {
                shared.set(|_| {});
                shared.ring();
            });
        }
        let scanner = {
            let (shared, readers) = (Arc::clone(&shared), Arc::clone(&readers));
            let settle = Arc::clone(queue.settle());
            let (clock, looks) = (Arc::clone(&clock), Arc::clone(&looks));
            let span = span.clone();
            let work = move || {
                let _in = span.entered();
                let mut scanner = scanner;
                if settings.once {
                    scan_once(&mut scanner, &shared, &readers, &looks, &*clock);
                } else {
                    scan_for_ever(&mut scanner, &shared, &looks, &settle, &*clock);
                }
                looks.end();
                scanner.into_inputs()
            };
            std::thread::Builder::new().name("scanner".to_owned()).spawn(work)?
        };
        let saver = {
            let (shared, clock, disk) = (Arc::clone(&shared), Arc::clone(&clock), disk.clone());
            let settle = Arc::clone(queue.settle());
            let due = Arc::downgrade(&shared);
            settle.set_on_commit_due(move || {
                if let Some(shared) = due.upgrade() {
                    shared.set(|state| state.commit_due = true);
                }
            });
            let every = settings.flush;
            let save = move || save(registrar, disk.as_deref(), every, &shared, &settle, &*clock);
            let work = move || span.in_scope(save);
            std::thread::Builder::new().name("registrar".to_owned()).spawn(work)?
        };
        Ok(Self {
            shared,
            readers,
            settle: Arc::clone(queue.settle()),
            queue,
            disk,
            movers,
            workers,
            scanner: Some(scanner),
            scanned: Vec::new(),
            registrar: Some(saver),
            looks,
            clock,
        })
    }

    /// Something that waits until everything that was there is read. Only with `once`.
    pub fn read_once(&self) -> ReadOnce {
        ReadOnce(Arc::clone(&self.shared))
    }

    /// Changes the inputs while everything runs: see [`InputChange`]. One change after the other; not with `once`, and
    /// one that is not over when the pipeline is stopped is left.
    pub fn change(&self, change: InputChange) {
        self.shared.set(|state| state.changes.push_back(change));
        self.shared.ring();
    }

    /// Where to ask what the files are doing.
    pub fn looks(&self) -> Arc<Looks> {
        Arc::clone(&self.looks)
    }

    /// No more reading, but of the open files of inputs with `read_until_eof`: to their end, or as long as
    /// that allows. What is queued goes on.
    pub fn stop_reading(&mut self, patience: Patience<'_>) {
        self.shared.set(|state| state.stopped = true);
        self.shared.ring();
        if let Some(scanner) = self.scanner.take() {
            self.scanned = join(scanner).unwrap_or_default();
            let limit = self.readers.drain(self.clock.monotonic());
            if !limit.is_zero() && !self.readers.wait_quiet(limit) {
                tracing::warn!(
                    ?limit,
                    "`read_until_eof.timeout` is over before all open files were read"
                );
            }
        }
        self.readers.stop();
        self.queue.close();
        // What is still being read is not taken any more: it may be left in the middle.
        let (done, ended) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if ended.recv_timeout(patience.limit) == Err(RecvTimeoutError::Timeout) {
                    tracing::warn!(
                        "a processor does not end; it is interrupted, and its lines are read again by the next start"
                    );
                    patience.interrupt.store(true, Ordering::Relaxed);
                }
            });
            for worker in self.workers.drain(..) {
                join(worker);
            }
            drop(done);
        });
    }

    /// Waits until all that was read is settled, at most `limit`; says whether it is. With a queue on the disk: until
    /// all is there, and what the output took from it is settled; it gets no more.
    pub fn drain(&self, limit: Duration) -> bool {
        if let Some(disk) = &self.disk {
            disk.stop_feeding();
        }
        self.settle.wait_until_settled(limit)
    }

    /// Lets go of what is not settled, saves all cursors and ends. Says whether they are durable.
    pub fn finish(&mut self) -> bool {
        debug_assert!(self.workers.is_empty(), "reading is stopped before");
        self.queue.abort();
        if let Some(disk) = &self.disk {
            disk.stop();
        }
        // What they made durable is behind the cursors that are saved now.
        for mover in self.movers.drain(..) {
            join(mover);
        }
        self.shared.set(|state| state.finished = true);
        let saved = match self.registrar.take().map(JoinHandle::join) {
            Some(Ok(mut registrar)) => registrar.flush_last(&*self.clock),
            _ => false,
        };
        if let Some(disk) = &self.disk {
            disk.maintain();
        }
        saved
    }
}

/// A panic of a thread is a bug; its message was printed, and the rest still wants to end in order.
fn join<T>(thread: JoinHandle<T>) -> Option<T> {
    let joined = thread.join().ok();
    if joined.is_none() {
        tracing::error!("a thread of the pipeline ended by a bug");
    }
    joined
}

fn now(clock: &dyn Clock) -> Now {
    Now { wall: clock.wall(), monotonic: clock.monotonic() }
}

/// Answers what was asked.
fn answer(scanner: &mut Scanner, looks: &Looks, clock: &dyn Clock) {
    for question in looks.take() {
        let page = match scanner.input(question.input) {
            Some(input) => Ok(input.page(&question.query, now(clock))),
            None => Err(AskError::NoInput(question.input)),
        };
        question.answer(page);
    }
}

fn scan_for_ever(
    scanner: &mut Scanner,
    shared: &Shared,
    looks: &Looks,
    settle: &Settle,
    clock: &dyn Clock,
) {
    let mut changing: Option<Changing> = None;
    loop {
        if let Some(bell) = scanner.bell() {
            shared.bell.get_or_init(|| bell);
        }
        if changing.is_none() {
            let change = shared.lock().changes.pop_front();
            changing = change.map(|change| Changing::begin(change, scanner, now(clock)));
        }
        if let Some(change) = &mut changing
            && change.step(scanner, settle, shared, clock.monotonic())
        {
            changing = None;
        }
        let mut nap = scanner.step(&|| now(clock));
        // Behind the first scan: before it there is no file.
        answer(scanner, looks, clock);
        if changing.is_some() {
            nap.until = nap.until.min(clock.monotonic() + Changing::LOOK_AGAIN);
        }
        let left = |until: Monotonic| until.since(clock.monotonic()).min(Duration::from_hours(1));
        // What is told in a pause waits for its end.
        if shared.wait(nap.pause, |state| state.stopped) {
            return;
        }
        if !looks.is_pending() && !scanner.wait(left(nap.until)) {
            let woken =
                |state: &State| state.stopped || looks.is_pending() || !state.changes.is_empty();
            shared.wait(left(nap.until), woken);
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
