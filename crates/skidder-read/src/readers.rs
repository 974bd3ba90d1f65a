//! The scheduler: which source gets the next turn of a worker, and which waits for what.
//!
//! A file is not a thread. Sources with something to read stand in one queue and get a turn of one chunk
//! each; those at the end of their file sleep until their back-off is over or a scan wakes them; those
//! over a limit wait for a place. Every state has a way out and a reason that can be shown.

mod beginning;
mod draining;
mod holding;
mod renewal;
mod schedule;
mod slot;
mod turn;

use crate::reader::{InputContext, Reader, Target, TurnEnd};
use schedule::{State, Waiting};
use skidder_event::{SourceId, Tail};
use skidder_os::{File, Monotonic};
use slot::{Phase, Slot, SlotBoxes};
use std::collections::{BTreeSet, BinaryHeap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use turn::Turn;

/// Turns in a row with its file open after which a source makes way for others that wait for a place:
/// about 16 MiB.
const TURNS_MAX: u32 = 64;

/// Sources that are looked at under one lock.
const LOOKS_AT_ONCE: usize = 256;

/// Bounds over all inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadersLimits {
    /// Files open at once. Beyond three quarters of it, a file is closed as soon as its end is reached.
    pub open_files: usize,
    /// Compressed files in progress at once, in decoders of gzip, of about 50 KiB; those of the other codecs have megabytes
    /// and take eight places, as soon as their first turn is over.
    pub decoders: usize,
}

impl ReadersLimits {
    /// Compressed files in progress at once.
    pub const DECODERS: usize = 64;
}

/// The state of a source, for people and for the scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReaderState {
    /// Not open; a scan starts it when there is something to read.
    #[default]
    Closed,
    /// In line for a turn, or having one.
    Reading,
    /// Open at the end of its file.
    Idle,
    /// A processor has to know something about its source first.
    Held,
    /// There is something to read, and a limit on open files is reached.
    WaitingForSlot,
}

/// The limit that keeps a source waiting for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderLimit {
    /// [`ReadersLimits::open_files`].
    OpenFile,
    /// `harvester_limit` of its input.
    OfInput,
    /// [`ReadersLimits::decoders`].
    Decoder,
}

/// Where a source stands.
#[derive(Clone, Debug, Default)]
pub struct ReaderLook {
    /// Its state.
    pub state: ReaderState,
    /// Its generation.
    pub generation: u32,
    /// End of the last line that was given out.
    pub offset: u64,
    /// Check value of the bytes before `offset`.
    pub tail: Option<Tail>,
    /// Whether `offset` is the verified end of a compressed file.
    pub finished: bool,
    /// Whether what was decompressed failed an integrity check.
    pub unverified: bool,
    /// Whether its file is open.
    pub open: bool,
    /// Whether it has a turn just now: what that has read is not in this look.
    pub in_turn: bool,
    /// Whether lines of its file wait for others that belong to them.
    pub group_waits: bool,
    /// Bytes of its file, as stored, that were looked at.
    pub stored_seen: u64,
    /// What it waits for, if it waits for a place.
    pub waits: Option<ReaderLimit>,
    /// Why its last turn could not go on: the scan decides what to do.
    pub trouble: Option<Trouble>,
}

/// A problem of a turn that only the scan can resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Another file is at the path, or none.
    Displaced,
    /// The file is shorter than what was read, or holds something else before the cursor.
    Rewritten,
    /// The rest cannot be decoded, until the file changes.
    Damaged,
    /// It could not be opened or read.
    Failed,
}

/// The readers of all inputs.
pub struct Readers {
    state: Mutex<State>,
    work: Condvar,
    /// Notified when no turn is running any more.
    quiet: Condvar,
    /// Whether files are closed at their end, to make room, as far as is known without the lock.
    crowded: AtomicBool,
    /// See [`Readers::renewals`].
    renewals: AtomicU64,
}

/// The next task of a worker.
pub enum Next {
    /// Run this turn.
    Turn(Turn),
    /// Nothing to do before this time, unless woken.
    Wait(Option<Monotonic>),
    /// No more turns.
    Stopped,
}

impl Readers {
    /// No readers yet.
    pub fn new(limits: ReadersLimits) -> Self {
        let state = State {
            limits,
            lowered: None,
            slots: foldhash::HashMap::default(),
            boxes: SlotBoxes::default(),
            ready: VecDeque::new(),
            unopened: VecDeque::new(),
            waiting: Waiting::default(),
            idle: BTreeSet::new(),
            held: BTreeSet::new(),
            troubled: Vec::new(),
            timers: BinaryHeap::new(),
            open: 0,
            decoders: 0,
            open_of: foldhash::HashMap::default(),
            running: 0,
            idle_workers: 0,
            closing: Vec::new(),
            draining: None,
            stopped: false,
        };
        let state = Mutex::new(state);
        let crowded = AtomicBool::new(false);
        let renewals = AtomicU64::new(0);
        Self { state, work: Condvar::new(), quiet: Condvar::new(), crowded, renewals }
    }

    /// Adds a source, closed.
    pub fn add(&self, input: &Arc<InputContext>, reader: Reader) {
        self.begin(input, reader, None, false);
    }

    /// Where a source stands.
    pub fn look(&self, id: SourceId) -> Option<ReaderLook> {
        self.lock().slots.get(&id).map(|slot| slot.seen())
    }

    /// The states of many sources, a few at a time, so that no thread waits long for the lock.
    pub fn look_each(
        &self,
        ids: impl IntoIterator<Item = SourceId>,
        mut each: impl FnMut(SourceId, ReaderLook),
    ) {
        let mut ids = ids.into_iter().peekable();
        while ids.peek().is_some() {
            let state = self.lock();
            for id in ids.by_ref().take(LOOKS_AT_ONCE) {
                if let Some(slot) = state.slots.get(&id) {
                    each(id, slot.seen());
                }
            }
        }
    }

    /// Sources that should be in a line and are in none: they would never get a turn.
    pub fn lost(&self) -> Vec<SourceId> {
        let state = self.lock();
        let waits = |slot: &Slot| matches!(slot.phase, Phase::Ready | Phase::Waiting);
        let lines = state.ready.iter().chain(state.waiting.all());
        let listed: HashSet<SourceId> = lines.copied().collect();
        let slots = state.slots.iter();
        slots.filter(|(id, slot)| waits(slot) && !listed.contains(id)).map(|(id, _)| *id).collect()
    }

    /// Puts a source that was lost, or sleeps although there is something to read, in the line.
    pub fn rescue(&self, id: SourceId) {
        let mut state = self.lock();
        let is_running = state.slots.get(&id).is_none_or(|slot| slot.phase == Phase::Running);
        if !is_running && !state.ready.contains(&id) {
            state.line_up(id);
        }
        self.call_one(state);
    }

    /// Whether a source sleeps with lines that wait for others. It gives them out at their time; now, if they have none.
    pub(crate) fn give_out(&self, id: SourceId) -> bool {
        let mut state = self.lock();
        let Some(slot) = state.slots.get_mut(&id) else { return false };
        let has_time = slot.reader.as_ref().is_some_and(|reader| reader.flush_at().is_some());
        let sleeps = matches!(slot.phase, Phase::Idle(_));
        let flushes = sleeps && !has_time && slot.flush_first();
        if flushes {
            state.line_up(id);
        }
        self.call_one(state);
        flushes || (sleeps && has_time)
    }

    /// The group of lines that a source sleeps with is complete: its file gets no more. Returns whether there is one.
    pub(crate) fn complete_group(&self, id: SourceId) -> bool {
        let mut state = self.lock();
        let Some(slot) = state.slots.get_mut(&id) else { return false };
        let completes = matches!(slot.phase, Phase::Idle(_)) && slot.flush_first();
        if completes {
            state.line_up(id);
        }
        self.call_one(state);
        completes
    }

    /// Whether the path of a source leads to the file that it is; `None` if it has a turn, or there is none.
    pub(crate) fn can_open_again(&self, id: SourceId) -> Option<bool> {
        let state = self.lock();
        let slot = state.slots.get(&id)?;
        (slot.phase != Phase::Running).then(|| slot.can_open_again())
    }

    /// All sources.
    #[cfg(test)]
    pub(crate) fn ids(&self) -> Vec<SourceId> {
        self.lock().slots.keys().copied().collect()
    }

    /// Loses a source, as a bug would.
    #[cfg(test)]
    pub(crate) fn lose(&self, id: SourceId) {
        let mut state = self.lock();
        state.close(id);
        state.ready.retain(|other| *other != id);
        close_unlocked(state);
    }

    /// Loses a source that is in the line for a turn, as a bug would.
    #[cfg(test)]
    pub(crate) fn lose_in_line(&self, id: SourceId) {
        let mut state = self.lock();
        state.line_up(id);
        state.ready.retain(|other| *other != id);
    }

    /// There is, or may be, something to read.
    pub fn wake(&self, id: SourceId) {
        let mut state = self.lock();
        let Some(slot) = state.slots.get_mut(&id) else { return };
        slot.trouble = None;
        match slot.phase {
            Phase::Running => slot.request().wake = true,
            Phase::Ready | Phase::Waiting | Phase::Held(_) => {}
            Phase::Closed => {
                state.line_up(id);
                state.prepare();
            }
            Phase::Idle(_) => state.line_up(id),
        }
        self.call_one(state);
    }

    /// Wakes a reader that sleeps with its file open: it may be the last chance to read the rest.
    pub fn wake_if_open(&self, id: SourceId) {
        let idle =
            self.lock().slots.get(&id).is_some_and(|slot| matches!(slot.phase, Phase::Idle(_)));
        if idle {
            self.wake(id);
        }
    }

    /// Sets the flag that is true while every write to this source is notified, so that its reader need not
    /// poll; `None` if it must.
    pub(crate) fn set_watched(&self, id: SourceId, watched: Option<Arc<AtomicBool>>) {
        if let Some(slot) = self.lock().slots.get_mut(&id) {
            slot.watched = watched;
        }
    }

    /// The source is at another path, has another key, or is another file with the same content
    /// (`reopen`).
    pub fn place(&self, id: SourceId, target: Target, key: Arc<str>, reopen: bool) {
        self.ask(id, |slot| {
            slot.request().target = Some((target, key));
            slot.request().reopen |= reopen;
        });
    }

    /// The source begins again at zero under a new generation, at once.
    pub fn restart(&self, id: SourceId, generation: u32) {
        self.ask(id, |slot| {
            slot.request().restart = Some(generation);
            slot.trouble = None;
        });
    }

    /// Closes the file of a source: its content is not the source any more.
    pub fn close(&self, id: SourceId) {
        self.ask(id, |slot| slot.request().close = true);
    }

    /// Forgets a source.
    pub fn remove(&self, id: SourceId) {
        self.ask(id, |slot| slot.request().remove = true);
    }

    /// Records a request, and applies it at once unless the source has a turn.
    fn ask(&self, id: SourceId, what: impl FnOnce(&mut Slot)) {
        let mut state = self.lock();
        if let Some(slot) = state.slots.get_mut(&id) {
            what(slot);
            state.apply(id);
        }
        close_unlocked(state);
    }

    /// The next turn for a worker.
    pub fn next(&self, now: Monotonic) -> Next {
        let mut state = self.lock();
        let next = state.next(now);
        close_unlocked(state);
        next
    }

    /// Waits until there may be a turn, at most `limit`.
    pub fn wait(&self, limit: Duration) {
        let mut state = self.lock();
        if state.ready.is_empty() && !state.stopped {
            state.idle_workers += 1;
            let waited = self.work.wait_timeout(state, limit);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            state.idle_workers -= 1;
        }
    }

    /// Whether a turn may go on with another chunk: no other source waits for anything, and this one has no
    /// request.
    pub fn may_go_on(&self, turn: &Turn) -> bool {
        let state = self.lock();
        let has_request = |slot: &Slot| slot.awake().request.is_some();
        !state.stopped
            && state.draining.is_none()
            && state.ready.is_empty()
            && state.waiting.is_empty()
            && state.slots.get(&turn.reader.id).is_some_and(|slot| !has_request(slot))
    }

    /// Puts a source back after its turn.
    pub fn finish(&self, turn: Turn, end: &TurnEnd, had_data: bool, now: Monotonic) {
        let state = self.give_back(turn, end, had_data, now);
        if state.idle_workers > 0 && !state.ready.is_empty() {
            self.work.notify_one();
        }
        close_unlocked(state);
    }

    /// Puts a source back after its turn, and takes the next one.
    pub fn finish_and_next(
        &self,
        turn: Turn,
        end: &TurnEnd,
        had_data: bool,
        now: Monotonic,
    ) -> Next {
        let mut state = self.give_back(turn, end, had_data, now);
        let next = state.next(now);
        if state.idle_workers > 0 && !state.ready.is_empty() {
            self.work.notify_one();
        }
        close_unlocked(state);
        next
    }

    fn give_back(
        &self,
        turn: Turn,
        end: &TurnEnd,
        had_data: bool,
        now: Monotonic,
    ) -> MutexGuard<'_, State> {
        // Checks the file system without the lock, if the result will probably be needed.
        let checks = matches!(end, TurnEnd::Waiting) && self.crowded.load(Ordering::Relaxed);
        let can_open_again = checks.then(|| turn.can_open_again());
        let mut state = self.lock();
        state.running -= 1;
        state.end(turn, end, had_data, can_open_again, now);
        self.crowded.store(state.is_crowded(), Ordering::Relaxed);
        if state.is_quiet() {
            self.quiet.notify_all();
        }
        state
    }

    /// Releases the lock and wakes a worker, if one waits.
    fn call_one(&self, state: MutexGuard<'_, State>) {
        let is_waited_for = state.idle_workers > 0;
        close_unlocked(state);
        if is_waited_for {
            self.work.notify_one();
        }
    }

    /// The file of a closed source has lost its name and is longer than what was read: its reader keeps it
    /// open to read the rest.
    pub(crate) fn keep_open(&self, id: SourceId, file: Box<dyn File>, now: Monotonic) {
        self.lock().keep_open(id, file, now);
    }

    /// No file is opened any more. Those that are open, of inputs with `read_until_eof`, are read on to
    /// their end, each for at most its input's time; all others are closed. Returns how long that may take.
    pub fn drain(&self, now: Monotonic) -> Duration {
        let mut state = self.lock();
        state.drain(now);
        let limits = state.slots.values().filter(|slot| slot.is_read_to_end());
        let limit = limits.filter_map(|slot| slot.input.settings.read_until_eof).max();
        close_unlocked(state);
        self.work.notify_all();
        limit.unwrap_or_default()
    }

    /// No more turns; open files are closed. What was given out stays on its way.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        for slot in state.slots.values_mut() {
            if let Some(reader) = &mut slot.reader {
                reader.close(&slot.input);
            }
        }
        drop(state);
        self.work.notify_all();
    }

    /// Whether nothing is being read, in line or waiting for a place.
    pub fn is_quiet(&self) -> bool {
        self.lock().is_quiet()
    }

    /// Waits until nothing is being read, at most `limit`; returns whether it is so.
    pub fn wait_quiet(&self, limit: Duration) -> bool {
        let waited = self.quiet.wait_timeout_while(self.lock(), limit, |state| !state.is_quiet());
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_quiet()
    }

    /// Those of `mine` that the scan must look at since the last call: their last turn met trouble, or was
    /// cut short.
    pub fn take_troubled(&self, mine: impl Fn(SourceId) -> bool) -> Vec<SourceId> {
        self.lock().troubled.extract_if(.., |id| mine(*id)).collect()
    }

    /// Files open now.
    pub fn open_files(&self) -> usize {
        self.lock().open
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Releases the lock, then drops the files that were closed under it.
fn close_unlocked(mut state: MutexGuard<'_, State>) {
    let closing = std::mem::take(&mut state.closing);
    drop(state);
    drop(closing);
}

#[cfg(test)]
mod tests;
