//! The scheduler: which source gets the next turn of a worker, and which waits for what.
//!
//! A file is not a thread. Sources with something to read stand in one queue and get a turn of one chunk
//! each; those at the end of their file sleep until their back-off is over or a scan wakes them; those
//! over a limit wait for a place. Every state has a way out and a reason that can be shown.

use crate::reader::{InputContext, Reader, Scratch, Target, TurnEnd};
use skidder_event::{Batch, SourceId, Tail};
use skidder_os::{Monotonic, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Turns in a row with its file open after which a source makes way for others that wait for a place:
/// about 16 MiB.
const TURNS_MAX: u32 = 64;

/// Bounds over all inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadersLimits {
    /// Files open at once. Beyond three quarters of it, a file is closed as soon as its end is reached.
    pub open_files: usize,
    /// Compressed files in progress at once: each has a decoder of about 50 KiB.
    pub decoders: usize,
}

impl ReadersLimits {
    /// Compressed files in progress at once.
    pub const DECODERS: usize = 64;
}

/// What a source is doing, for people and for the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderState {
    /// Not open; a scan starts it when there is something to read.
    Closed,
    /// In line for a turn, or having one.
    Reading,
    /// Open at the end of its file.
    Idle,
    /// There is something to read, and a limit on open files is reached.
    WaitingForSlot,
}

/// Where a source stands.
#[derive(Clone, Debug)]
pub struct ReaderLook {
    /// What it is doing.
    pub state: ReaderState,
    /// Its generation.
    pub generation: u32,
    /// End of the last line that was given out.
    pub offset: u64,
    /// Check value of the bytes before `offset`.
    pub tail: Option<Tail>,
    /// Whether `offset` is the verified end of a compressed file.
    pub finished: bool,
    /// Whether its file is open.
    pub open: bool,
    /// Why its last turn could not go on: the scan decides what to do.
    pub trouble: Option<Trouble>,
}

/// What a turn found that only the scan can resolve.
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
    /// Told when nothing is being read any more.
    quiet: Condvar,
}

struct State {
    limits: ReadersLimits,
    slots: HashMap<SourceId, Slot>,
    ready: VecDeque<SourceId>,
    waiting: Waiting,
    /// Sources that sleep with their file open. The oldest one is closed first when a place is needed.
    idle: BTreeSet<SourceId>,
    /// Sources whose last turn met trouble, for the scan.
    troubled: Vec<SourceId>,
    timers: BinaryHeap<Reverse<(Monotonic, SourceId)>>,
    open: usize,
    decoders: usize,
    /// Open files by input, for `harvester_limit`.
    open_of: HashMap<usize, usize>,
    running: usize,
    stopped: bool,
}

/// Sources that wait for a place, by what there is none of.
#[derive(Default)]
struct Waiting {
    open: VecDeque<SourceId>,
    of_input: HashMap<usize, VecDeque<SourceId>>,
    decoder: VecDeque<SourceId>,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    fn all(&self) -> impl Iterator<Item = &SourceId> {
        self.open.iter().chain(&self.decoder).chain(self.of_input.values().flatten())
    }
}

struct Slot {
    input: Arc<InputContext>,
    /// Taken out while it has a turn.
    reader: Option<Box<Reader>>,
    look: ReaderLook,
    phase: Phase,
    /// Counts against the limit on open files.
    is_counted: bool,
    has_decoder: bool,
    /// Something was asked for while it had a turn.
    asked: Asked,
    last_data: Monotonic,
    opened: Monotonic,
    /// Turns since its file was opened.
    turns: u32,
    backoff: Duration,
    /// Where to open the file the next time; an open one keeps the path it was opened with.
    next_target: Option<Target>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    Ready,
    Running,
    Idle(Monotonic),
    Waiting,
}

#[derive(Default)]
struct Asked {
    wake: bool,
    target: Option<(Target, String)>,
    restart: Option<u32>,
    reopen: bool,
    remove: bool,
}

/// A source that a worker has for one turn. Give it back with [`Readers::finish`].
pub struct Turn {
    reader: Box<Reader>,
    input: Arc<InputContext>,
}

/// What a worker should do.
pub enum Next {
    /// Run this turn.
    Turn(Turn),
    /// Nothing to do before this time, unless woken.
    Wait(Option<Monotonic>),
    /// No more turns.
    Stopped,
}

impl Turn {
    /// Reads one chunk.
    pub fn run(&mut self, scratch: &mut Scratch, now: Timestamp) -> (Option<Batch>, TurnEnd) {
        self.reader.turn(&self.input, scratch, now)
    }
}

impl Readers {
    /// No readers yet.
    pub fn new(limits: ReadersLimits) -> Self {
        let state = State {
            limits,
            slots: HashMap::new(),
            ready: VecDeque::new(),
            waiting: Waiting::default(),
            idle: BTreeSet::new(),
            troubled: Vec::new(),
            timers: BinaryHeap::new(),
            open: 0,
            decoders: 0,
            open_of: HashMap::new(),
            running: 0,
            stopped: false,
        };
        Self { state: Mutex::new(state), work: Condvar::new(), quiet: Condvar::new() }
    }

    /// Adds a source, closed.
    pub fn add(&self, input: &Arc<InputContext>, reader: Reader) {
        let id = reader.id;
        let look = ReaderLook {
            state: ReaderState::Closed,
            generation: reader.generation,
            offset: reader.offset,
            tail: reader.tail,
            finished: reader.finished,
            open: false,
            trouble: None,
        };
        let slot = Slot {
            input: Arc::clone(input),
            look,
            phase: Phase::Closed,
            is_counted: false,
            has_decoder: false,
            asked: Asked::default(),
            last_data: Monotonic::default(),
            opened: Monotonic::default(),
            turns: 0,
            backoff: Duration::ZERO,
            next_target: None,
            reader: Some(Box::new(reader)),
        };
        self.lock().slots.insert(id, slot);
    }

    /// Where a source stands.
    pub fn look(&self, id: SourceId) -> Option<ReaderLook> {
        self.lock().slots.get(&id).map(Slot::seen)
    }

    /// There is, or may be, something to read.
    pub fn wake(&self, id: SourceId) {
        let mut state = self.lock();
        let Some(slot) = state.slots.get_mut(&id) else { return };
        slot.look.trouble = None;
        match slot.phase {
            Phase::Running => slot.asked.wake = true,
            Phase::Ready | Phase::Waiting => {}
            Phase::Closed | Phase::Idle(_) => state.line_up(id),
        }
        drop(state);
        self.work.notify_one();
    }

    /// Wakes a reader that sleeps with its file open: it may be the last chance to read the rest.
    pub fn wake_if_open(&self, id: SourceId) {
        let idle =
            self.lock().slots.get(&id).is_some_and(|slot| matches!(slot.phase, Phase::Idle(_)));
        if idle {
            self.wake(id);
        }
    }

    /// The source is at another path, has another key, or is another file with the same content
    /// (`reopen`).
    pub fn place(&self, id: SourceId, target: Target, key: String, reopen: bool) {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(slot) = state.slots.get_mut(&id) else { return };
        slot.asked.target = Some((target, key));
        slot.asked.reopen |= reopen;
        state.apply(id);
    }

    /// The source begins again at zero under a new generation, at once.
    pub fn restart(&self, id: SourceId, generation: u32) {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(slot) = state.slots.get_mut(&id) else { return };
        slot.asked.restart = Some(generation);
        slot.look.trouble = None;
        state.apply(id);
    }

    /// Forgets a source.
    pub fn remove(&self, id: SourceId) {
        let mut state = self.lock();
        let state = &mut *state;
        if let Some(slot) = state.slots.get_mut(&id) {
            slot.asked.remove = true;
            state.apply(id);
        }
    }

    /// The next turn for a worker.
    pub fn next(&self, now: Monotonic) -> Next {
        let mut state = self.lock();
        let state = &mut *state;
        if state.stopped {
            return Next::Stopped;
        }
        state.ring(now);
        while let Some(id) = state.ready.pop_front() {
            if let Some(turn) = state.begin(id, now) {
                return Next::Turn(turn);
            }
        }
        Next::Wait(state.timers.peek().map(|Reverse((at, _))| *at))
    }

    /// Waits until there may be a turn, at most `limit`.
    pub fn wait(&self, limit: Duration) {
        let state = self.lock();
        if state.ready.is_empty() && !state.stopped {
            drop(self.work.wait_timeout(state, limit));
        }
    }

    /// Gives a source back after its turn.
    pub fn finish(&self, turn: Turn, end: &TurnEnd, had_data: bool, now: Monotonic) {
        let mut state = self.lock();
        let state = &mut *state;
        state.running -= 1;
        state.end(turn, end, had_data, now);
        if state.is_quiet() {
            self.quiet.notify_all();
        }
        // The worker that gives this one back takes the first; only what is left needs another.
        if state.ready.len() > 1 {
            self.work.notify_one();
        }
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

    /// Waits until nothing is being read, at most `limit`; says whether it is so.
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

impl Slot {
    fn seen(&self) -> ReaderLook {
        let mut look = self.look.clone();
        look.state = match self.phase {
            Phase::Closed => ReaderState::Closed,
            Phase::Ready | Phase::Running => ReaderState::Reading,
            Phase::Idle(_) => ReaderState::Idle,
            Phase::Waiting => ReaderState::WaitingForSlot,
        };
        if let Some(reader) = &self.reader {
            look.generation = reader.generation;
            look.offset = reader.offset;
            look.tail = reader.tail;
            look.finished = reader.finished;
            look.open = reader.is_open();
        } else {
            look.open = true;
        }
        look
    }

    fn input_key(&self) -> usize {
        Arc::as_ptr(&self.input) as usize
    }

    /// When an idle reader looks again.
    fn due(&self, now: Monotonic) -> Monotonic {
        let close = &self.input.settings.close;
        let mut at = now + self.backoff;
        if let Some(inactive) = close.inactive {
            at = at.min(self.last_data + inactive);
        }
        if close.removed || close.renamed {
            at = at.min(now + close.check_interval);
        }
        at.max(now)
    }

    /// Whether a plain file is as long as what was read of it: the usual case, at the price of one
    /// question instead of a turn. A file rewritten to the same length is found by the scan.
    fn has_nothing_new(&self) -> bool {
        let Some(reader) = &self.reader else { return false };
        !reader.target.compressed
            && reader
                .file()
                .is_some_and(|file| file.metadata().is_ok_and(|meta| meta.size == reader.offset))
    }

    /// Why an idle reader should be closed now, if it should.
    fn should_close(&self, now: Monotonic) -> bool {
        let close = &self.input.settings.close;
        if close.inactive.is_some_and(|inactive| now.since(self.last_data) >= inactive) {
            return true;
        }
        let Some(reader) = &self.reader else { return false };
        if (close.removed || close.renamed)
            && let Some(file) = reader.file()
        {
            let Ok(open) = file.metadata() else { return true };
            return match self.input.fs.metadata(&reader.target.path) {
                Err(_) => close.removed && open.links == 0 || close.renamed && open.links > 0,
                Ok(at_path) => {
                    (at_path.device, at_path.inode) != (open.device, open.inode)
                        && (close.renamed || close.removed && open.links == 0)
                }
            };
        }
        false
    }
}

impl State {
    fn is_quiet(&self) -> bool {
        self.running == 0
            && self.ready.is_empty()
            && !self
                .waiting
                .all()
                .any(|id| self.slots.get(id).is_some_and(|slot| slot.phase == Phase::Waiting))
    }

    /// Idle readers whose time has come are closed or get in line.
    fn ring(&mut self, now: Monotonic) {
        while let Some(Reverse((at, id))) = self.timers.peek().copied() {
            if at > now {
                return;
            }
            self.timers.pop();
            let Some(slot) = self.slots.get_mut(&id) else { continue };
            if slot.phase != Phase::Idle(at) {
                continue;
            }
            if slot.should_close(now) {
                self.close(id);
            } else if slot.has_nothing_new() {
                self.idle(id, now);
            } else {
                self.line_up(id);
            }
        }
    }

    /// Gives a source a place in the line for turns.
    fn line_up(&mut self, id: SourceId) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.phase = Phase::Ready;
            self.idle.remove(&id);
            self.ready.push_back(id);
        }
    }

    /// Takes a source out for a turn, or lets it wait for a place.
    fn begin(&mut self, id: SourceId, now: Monotonic) -> Option<Turn> {
        let slot = self.slots.get(&id)?;
        if slot.phase != Phase::Ready {
            return None;
        }
        let compressed = slot.reader.as_ref().is_some_and(|reader| reader.target.compressed);
        let input = slot.input_key();
        let of_input = self.open_of.get(&input).copied().unwrap_or(0);
        let limit_of_input = slot.input.settings.harvester_limit.unwrap_or(usize::MAX);
        let (list, sleeper) = if !slot.is_counted && self.open >= self.limits.open_files {
            (Some(&mut self.waiting.open), self.idle.first().copied())
        } else if !slot.is_counted && of_input >= limit_of_input {
            let of_input =
                |id: &&SourceId| self.slots.get(id).is_some_and(|slot| slot.input_key() == input);
            let list = self.waiting.of_input.entry(input).or_default();
            (Some(list), self.idle.iter().find(of_input).copied())
        } else if compressed && !slot.has_decoder && self.decoders >= self.limits.decoders {
            (Some(&mut self.waiting.decoder), None)
        } else {
            (None, None)
        };
        if let Some(list) = list {
            list.push_back(id);
            self.slots.get_mut(&id)?.phase = Phase::Waiting;
            match sleeper {
                // It has nothing to read and makes way.
                Some(sleeper) => self.close(sleeper),
                // The place it was woken for may serve another.
                None => self.admit(input),
            }
            return None;
        }
        let slot = self.slots.get_mut(&id)?;
        if !slot.is_counted {
            slot.is_counted = true;
            slot.turns = 0;
            slot.opened = now;
            slot.last_data = now;
            self.open += 1;
            *self.open_of.entry(input).or_default() += 1;
        }
        if compressed && !slot.has_decoder {
            slot.has_decoder = true;
            self.decoders += 1;
        }
        slot.turns += 1;
        slot.look = slot.seen();
        let reader = slot.reader.take()?;
        slot.phase = Phase::Running;
        self.running += 1;
        Some(Turn { reader, input: Arc::clone(&slot.input) })
    }

    fn end(&mut self, mut turn: Turn, end: &TurnEnd, had_data: bool, now: Monotonic) {
        let id = turn.reader.id;
        let stopped = self.stopped;
        let Some(slot) = self.slots.get_mut(&id) else {
            turn.reader.close(&turn.input);
            return;
        };
        if had_data {
            slot.last_data = now;
            slot.backoff = Duration::ZERO;
        }
        slot.look.trouble = match end {
            TurnEnd::Displaced => Some(Trouble::Displaced),
            TurnEnd::Rewritten => Some(Trouble::Rewritten),
            TurnEnd::Damaged => Some(Trouble::Damaged),
            TurnEnd::Failed(error) => {
                turn.input.metrics.errors.add(1);
                tracing::error!(path = %turn.reader.target.path.display(),
                    offset = turn.reader.offset, %error,
                    "cannot read a file; it is tried again with the next scan");
                Some(Trouble::Failed)
            }
            TurnEnd::More | TurnEnd::Waiting | TurnEnd::Finished => None,
        };
        if slot.look.trouble.is_some() {
            self.troubled.push(id);
        }
        slot.reader = Some(turn.reader);
        slot.phase = Phase::Closed;
        if stopped {
            self.close(id);
            return;
        }
        let close = &slot.input.settings.close;
        let lifetime_over =
            close.after_interval.is_some_and(|interval| now.since(slot.opened) >= interval);
        let crowded = self.open > self.limits.open_files / 4 * 3 || !self.waiting.is_empty();
        let is_open = slot.reader.as_ref().is_some_and(|reader| reader.is_open());
        match end {
            TurnEnd::More if lifetime_over => {
                // The next scan opens it again.
                self.troubled.push(id);
                self.close(id);
            }
            TurnEnd::More => {
                if self.should_make_way(id) {
                    self.close(id);
                }
                self.line_up(id);
            }
            TurnEnd::Waiting if close.on_eof || crowded || lifetime_over => self.close(id),
            TurnEnd::Waiting => self.idle(id, now),
            // The open file may be the last way to its content.
            TurnEnd::Failed(_) if is_open => self.idle(id, now),
            TurnEnd::Finished
            | TurnEnd::Displaced
            | TurnEnd::Rewritten
            | TurnEnd::Damaged
            | TurnEnd::Failed(_) => self.close(id),
        }
        self.apply(id);
    }

    /// Whether a source has had its file open for long while others wait for a place, and can have it
    /// again later.
    fn should_make_way(&self, id: SourceId) -> bool {
        let Some(slot) = self.slots.get(&id) else { return false };
        let of_input = self.waiting.of_input.get(&slot.input_key());
        let wanted = !self.waiting.open.is_empty() || of_input.is_some_and(|list| !list.is_empty());
        if !wanted || slot.turns < TURNS_MAX || slot.next_target.is_some() {
            return false;
        }
        let target = slot.reader.as_ref().map(|reader| &reader.target);
        target.is_some_and(|target| {
            slot.input
                .fs
                .metadata(&target.path)
                .is_ok_and(|meta| (meta.device, meta.inode) == (target.device, target.inode))
        })
    }

    /// Lets a reader sleep at the end of its file.
    fn idle(&mut self, id: SourceId, now: Monotonic) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let close = &slot.input.settings.close;
        slot.backoff = match slot.backoff {
            Duration::ZERO => close.backoff_init,
            before => (before * 2).min(close.backoff_max.max(close.backoff_init)),
        };
        if let Some(reader) = &mut slot.reader
            && reader.target.compressed
        {
            reader.release_decoder();
        }
        let at = slot.due(now);
        slot.phase = Phase::Idle(at);
        self.idle.insert(id);
        self.timers.push(Reverse((at, id)));
        let input = slot.input_key();
        if std::mem::take(&mut slot.has_decoder) {
            self.decoders -= 1;
            self.admit(input);
        }
    }

    fn close(&mut self, id: SourceId) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.phase = Phase::Closed;
        slot.backoff = Duration::ZERO;
        self.idle.remove(&id);
        if let Some(reader) = &mut slot.reader {
            reader.close(&slot.input);
            if let Some(target) = slot.next_target.take() {
                reader.target = target;
            }
        }
        let input = slot.input_key();
        if std::mem::take(&mut slot.is_counted) {
            self.open -= 1;
            if let Some(count) = self.open_of.get_mut(&input) {
                *count -= 1;
            }
        }
        if std::mem::take(&mut slot.has_decoder) {
            self.decoders -= 1;
        }
        self.admit(input);
    }

    /// For each kind of place that is free, the first who waits for it gets in line.
    fn admit(&mut self, input: usize) {
        let slots = &self.slots;
        // Some of those in the lists do not wait any more.
        let first = |list: &mut VecDeque<SourceId>| {
            while let Some(id) = list.pop_front() {
                if slots.get(&id).is_some_and(|slot| slot.phase == Phase::Waiting) {
                    return Some(id);
                }
            }
            None
        };
        let mut next = Vec::new();
        if self.open < self.limits.open_files {
            next.extend(first(&mut self.waiting.open));
        }
        if let Some(list) = self.waiting.of_input.get_mut(&input)
            && let Some(id) = first(list)
        {
            let limit = slots.get(&id).and_then(|slot| slot.input.settings.harvester_limit);
            let open = self.open_of.get(&input).copied().unwrap_or(0);
            if limit.is_none_or(|limit| open < limit) {
                next.push(id);
            } else {
                list.push_front(id);
            }
        }
        if self.decoders < self.limits.decoders {
            next.extend(first(&mut self.waiting.decoder));
        }
        for id in next {
            self.line_up(id);
        }
    }

    /// Does what was asked for, unless the source has a turn just now.
    fn apply(&mut self, id: SourceId) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        if slot.phase == Phase::Running {
            return;
        }
        let asked = std::mem::take(&mut slot.asked);
        let Some(reader) = &mut slot.reader else { return };
        let mut close = asked.reopen || asked.remove;
        if let Some((target, key)) = asked.target {
            close |= target.compressed != reader.target.compressed;
            reader.key = key;
            if reader.is_open() {
                reader.target.fingerprint.clone_from(&target.fingerprint);
                reader.rebind();
                slot.next_target = Some(target);
            } else {
                reader.target = target;
            }
        }
        if let Some(generation) = asked.restart {
            reader.restart(generation);
            close = true;
        }
        let wake = asked.wake || asked.reopen || asked.restart.is_some();
        if close {
            self.close(id);
        }
        if asked.remove {
            self.slots.remove(&id);
            self.troubled.retain(|other| *other != id);
            return;
        }
        if wake
            && let Some(slot) = self.slots.get_mut(&id)
            && matches!(slot.phase, Phase::Closed | Phase::Idle(_))
        {
            self.line_up(id);
        }
    }
}

#[cfg(test)]
mod tests;
