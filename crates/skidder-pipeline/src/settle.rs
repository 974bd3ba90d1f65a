//! The settle: which batches of each source are settled, and where its cursor stands.
//!
//! A verdict means one of three things to a source. Batches of a source with a cursor are admitted in the order of
//! the source and may be settled in any order; the cursor moves over the settled ones at the front. A source that
//! waits for an acknowledgement gets it with the last verdict of the batch. For any other one verdicts are only
//! counted. There is no bookkeeping per event: a ticket counts the rows of its batch down.

mod changes;
mod newcomers;
mod source;
mod ticket;

use crate::ledger::{Ledger, Verdict};
use crate::pace::{Pace, Rates};
use crate::queue::Permit;
use crate::saving::COMMIT_ROWS;
pub(crate) use changes::CHANGES_MAX;
use changes::Resume;
use foldhash::HashMap;
use newcomers::Newcomers;
use skidder_event::{Batch, DropReason, Progress, SourceId};
use skidder_os::Monotonic;
use skidder_os::sabotage::{self, Sabotage};
use skidder_registry::{Cursor, Meta, SourceAbout, SourceCursor};
use source::{Pending, Place, Source, Target};
pub use source::{SourceName, SourcePlace, SourceStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
pub use ticket::Ticket;
pub(crate) use ticket::TicketOf;

/// With more sources than this, those with nothing pending keep no room for it.
const SPARE_SOURCES: usize = 256;

/// Keeps the cursors of all sources for one output.
#[derive(Debug, Default)]
pub struct Settle {
    state: Mutex<State>,
    /// Notified when nothing is in flight any more.
    quiet: Condvar,
    /// Called when cursors should be saved before their time.
    on_commit_due: CommitDue,
    pace: Mutex<Pace>,
}

/// The callback for cursors that should be saved before their time.
#[derive(Default)]
struct CommitDue(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl std::fmt::Debug for CommitDue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("CommitDue")
    }
}

#[derive(Debug, Default)]
struct State {
    /// Boxed, so that the room the map keeps for more costs little.
    sources: HashMap<SourceId, Box<Source>>,
    /// Keys to remove from the registry with the next commit.
    removed: Vec<Arc<str>>,
    /// Sources that changed since the last commit.
    dirty: Vec<SourceId>,
    /// New sources that need not be saved at once.
    newcomers: Newcomers,
    total: Ledger,
    /// The counts of each input, by its number. What was stored in a disk queue is counted as that: its verdict is in the total
    /// only.
    inputs: HashMap<usize, Ledger>,
    /// Rows in flight that cannot be sent again, by the number of their input.
    unrepeatable: HashMap<usize, u64>,
    /// These were given up at the end; later verdicts on them do not count.
    gave_up: bool,
    /// Rows of a disk queue that are with an output.
    sending: u64,
    /// Rows that have got their verdict since changes were taken.
    unsaved_rows: u64,
}

impl Settle {
    /// An empty settle.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// A file is read from `cursor` on. Saved with the next commit when `save` says so; otherwise when it has
    /// changed, or a few seconds later.
    pub fn begin(
        &self,
        source: SourceId,
        key: impl Into<Arc<str>>,
        meta: Meta,
        cursor: Cursor,
        save: bool,
    ) {
        let mut state = self.lock();
        let place = Place::File { meta, generation: cursor.generation, cursor };
        state.add(source, Source::new(key.into(), place));
        if save {
            state.mark_dirty(source);
        } else {
            state.newcomers.add(source);
        }
    }

    /// A source that is no file is read from `cursor` on. It is saved when its cursor has moved.
    pub fn begin_source(
        &self,
        source: SourceId,
        key: Arc<str>,
        about: SourceAbout,
        cursor: SourceCursor,
    ) {
        let entry = Source::new(key, Place::Cursor(about, cursor));
        self.lock().add(source, entry);
    }

    /// Begins a source that is not saved. `key` is a name that no other source of this run has, and none of
    /// another run.
    pub fn begin_unsaved(&self, source: SourceId, key: Arc<str>, about: SourceAbout) {
        let entry = Source::new(key, Place::Unsaved(about));
        self.lock().add(source, entry);
    }

    /// A file was seen elsewhere, or more is known of its identity. `key` may differ from before:
    /// a short file that has grown has a new one.
    pub fn update(&self, source: SourceId, key: &Arc<str>, seen: Meta) {
        let mut state = self.lock();
        let Some(entry) = state.sources.get_mut(&source) else { return };
        let Place::File { meta, .. } = &mut entry.place else { return };
        *meta = seen;
        let mut old_key = None;
        if entry.key != *key {
            old_key = Some(std::mem::replace(&mut entry.key, Arc::clone(key)));
        }
        // A new key has no checkpoint yet: small files that get one have none worth keeping.
        if old_key.is_some() {
            state.removed.extend(old_key);
        }
        state.mark_dirty(source);
    }

    /// The file of a source has changed, or is another with the same content: a verified end of a compressed
    /// file, in its cursor or one in flight, was that of the old content.
    pub fn doubt_end(&self, source: SourceId) {
        let mut state = self.lock();
        let Some(entry) = state.sources.get_mut(&source) else { return };
        for pending in entry.pending.as_deref_mut().into_iter().flatten() {
            if let Target::File { cursor, .. } = &mut pending.target {
                cursor.eof = false;
            }
        }
        if let Place::File { cursor, .. } = &mut entry.place
            && std::mem::take(&mut cursor.eof)
        {
            state.mark_dirty(source);
        }
    }

    /// The source starts again from zero under a new generation: it was truncated, or its content is
    /// not what was read. What is in flight from before still counts, but moves no cursor.
    pub fn restart(&self, source: SourceId, generation: u32) {
        let mut state = self.lock();
        let Some(entry) = state.sources.get_mut(&source) else { return };
        let Place::File { cursor, generation: of, .. } = &mut entry.place else { return };
        *of = generation;
        *cursor = Cursor { offset: 0, generation, eof: false, tail: None };
        entry.resume = Resume::Clear;
        state.mark_dirty(source);
    }

    /// Moves the cursor without reading, for files that are ignored; only while nothing is in flight.
    pub fn skip_to(&self, source: SourceId, offset: u64) {
        let mut state = self.lock();
        let Some(entry) = state.sources.get_mut(&source) else { return };
        if !entry.has_pending()
            && let Place::File { cursor, .. } = &mut entry.place
        {
            cursor.offset = offset;
            cursor.tail = None;
            state.mark_dirty(source);
        }
    }

    /// Forgets a source that is gone; its counts stay in the total. Rows still in flight are settled
    /// without effect on a cursor.
    pub fn remove(&self, source: SourceId) {
        let mut state = self.lock();
        if let Some(entry) = state.sources.remove(&source)
            && entry.is_saved()
        {
            state.removed.push(entry.key);
        }
    }

    /// Drops sources that are no longer read and are settled; their registry entries stay. Their counts
    /// stay in the total.
    pub fn retire(&self, sources: &[SourceId]) {
        let mut state = self.lock();
        for source in sources {
            state.sources.remove(source);
        }
    }

    /// A source that is no file has ended, and every batch of it was admitted or given up. It is forgotten when all
    /// its events have their verdict and it is saved: until then messages about its events can name it. Its registry
    /// entry stays, and so do its counts in the total.
    pub fn end_source(&self, source: SourceId) {
        let mut state = self.lock();
        let Some(entry) = state.sources.get_mut(&source) else { return };
        entry.ended = true;
        if entry.is_over() {
            state.sources.remove(&source);
        }
    }

    /// Puts a batch on the ledger, and its range in line if its source has a cursor. A batch without rows is settled at
    /// once.
    pub fn admit(self: &Arc<Self>, batch: &mut Batch, permit: Option<Permit>) -> Arc<Ticket> {
        let owed = batch.take_acknowledgement();
        let provenance = batch.provenance();
        let source = provenance.source;
        let rows = batch.len() as u64;
        let bytes = provenance.bytes();
        let target = match &provenance.progress {
            Progress::File(part) => Some(Target::from(part)),
            Progress::Cursor(part) => Some(Target::from(part)),
            Progress::Nothing(_) | Progress::Acknowledge(..) => None,
        };
        let is_ordered = target.is_some();
        let mut state = self.lock();
        let mut sequence = 0;
        if let Some(entry) = state.sources.get_mut(&source) {
            if let Some(target) = target {
                let pending = entry.pending.get_or_insert_default();
                sequence = entry.first_sequence + pending.len() as u64;
                pending.push_back(Pending { target, settled: false });
            }
            entry.ledger.admit(batch.lines(), bytes, batch.drops(), rows);
        }
        state.total.admit(batch.lines(), bytes, batch.drops(), rows);
        let of_input = state.inputs.entry(source.input()).or_default();
        of_input.admit(batch.lines(), bytes, batch.drops(), rows);
        if owed.is_none() && !is_ordered && rows > 0 {
            *state.unrepeatable.entry(source.input()).or_default() += rows;
        }
        drop(state);
        let of = match owed {
            Some(owed) => TicketOf::owing(source, owed),
            None if is_ordered => TicketOf::Ordered(source, sequence),
            None => TicketOf::Counted(source),
        };
        let ticket = Ticket::new(self, of, rows as u32, permit);
        if batch.is_empty() {
            ticket.finish();
        }
        ticket
    }

    /// The total over all sources, those forgotten included.
    pub fn total(&self) -> Ledger {
        self.lock().total
    }

    /// The total, and the counts of each input by its number, at the same moment.
    pub fn ledgers(&self) -> (Ledger, HashMap<usize, Ledger>) {
        let state = self.lock();
        (state.total, state.inputs.clone())
    }

    /// Notes the current ledger for [`Self::rates`].
    pub(crate) fn note_pace(&self, now: Monotonic) {
        let total = self.total();
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).note(now, &total);
    }

    /// How fast lines come and go, over at least `interval`; `None` before something has happened.
    pub fn rates(&self, now: Monotonic, interval: Duration) -> Option<Rates> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).rates(now, interval)
    }

    /// Forgets the counts of inputs that have ended; they stay in the total.
    pub fn forget_inputs(&self, inputs: &[usize]) {
        let mut state = self.lock();
        for input in inputs {
            state.inputs.remove(input);
        }
    }

    /// The counts and the cursor of one source.
    pub fn status(&self, source: SourceId) -> Option<SourceStatus> {
        let state = self.lock();
        state.sources.get(&source).map(|entry| entry.status(source))
    }

    /// Calls `each` for every source.
    pub fn for_each(&self, mut each: impl FnMut(SourceStatus)) {
        let state = self.lock();
        for (&source, entry) in &state.sources {
            each(entry.status(source));
        }
    }

    /// Calls `call` each time that [`COMMIT_ROWS`] rows have their verdict and no changes were taken since. Only the
    /// first such function is called.
    pub(crate) fn set_on_commit_due(&self, call: impl Fn() + Send + Sync + 'static) {
        // A pipeline sets it once.
        drop(self.on_commit_due.0.set(Box::new(call)));
    }

    /// Whether cursors should be saved before their time.
    pub(crate) fn is_commit_due(&self) -> bool {
        self.lock().unsaved_rows >= COMMIT_ROWS
    }

    /// Releases the state after rows got their verdict, and does what follows from that.
    fn release(&self, state: MutexGuard<'_, State>, before: u64) {
        let is_quiet = state.is_quiet();
        let is_due = before < COMMIT_ROWS && state.unsaved_rows >= COMMIT_ROWS;
        drop(state);
        if is_quiet {
            self.notify_quiet();
        }
        if is_due && let Some(call) = self.on_commit_due.0.get() {
            call();
        }
    }

    /// Wakes the threads that wait until nothing is in flight.
    fn notify_quiet(&self) {
        self.quiet.notify_all();
    }

    /// Rows between a reader and their verdict, or the disk queue.
    pub fn in_flight(&self) -> u64 {
        self.lock().total.in_flight()
    }

    /// Waits until every row has its verdict or is durable in a disk queue, and none from there is with an output, at
    /// most `limit`; returns whether it is so.
    pub fn wait_until_settled(&self, limit: Duration) -> bool {
        let state = self.lock();
        let waited = self.quiet.wait_timeout_while(state, limit, |state| !state.is_quiet());
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_quiet()
    }

    /// Where the next start would continue a file.
    pub fn cursor(&self, source: SourceId) -> Option<Cursor> {
        match self.lock().sources.get(&source)?.place {
            Place::File { cursor, .. } => Some(cursor),
            Place::Cursor(..) | Place::Unsaved(_) => None,
        }
    }

    /// Whether nothing of this source is between its reader and the cursor.
    pub fn is_settled(&self, source: SourceId) -> bool {
        self.lock().sources.get(&source).is_none_or(|entry| !entry.has_pending())
    }

    /// At the end: what is in flight and cannot be sent again is counted as dropped (`stopped`), in the total and for
    /// its input. Returns how many rows these are. A verdict that comes after all does not count.
    pub fn give_up_unrepeatable(&self) -> u64 {
        let mut state = self.lock();
        state.gave_up = true;
        let before = state.unsaved_rows;
        let left = std::mem::take(&mut state.unrepeatable);
        let verdict = Verdict::Dropped(DropReason::Stopped);
        for (input, rows) in &left {
            state.total.settle(verdict, *rows);
            if let Some(of_input) = state.inputs.get_mut(input) {
                of_input.settle(verdict, *rows);
            }
        }
        self.release(state, before);
        left.into_values().sum()
    }

    /// Rows were found in the disk queue that another life of the program has read.
    pub(crate) fn recovered(&self, rows: u64) {
        self.lock().total.recover(rows);
    }

    /// Rows of the disk queue cannot be read any more.
    pub(crate) fn lost(&self, rows: u64) {
        self.lock().total.settle_stored(Verdict::Dropped(DropReason::QueueDamaged), rows);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The counts are plain numbers changed without a panic in between.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count(&mut self, source: SourceId, verdict: Verdict, rows: u32) {
        self.unsaved_rows += u64::from(rows);
        self.total.settle(verdict, u64::from(rows));
        if let Some(of_input) = self.inputs.get_mut(&source.input()) {
            of_input.settle(verdict, u64::from(rows));
        }
        let Some(entry) = self.sources.get_mut(&source) else { return };
        entry.ledger.settle(verdict, u64::from(rows));
        if entry.is_over() && !entry.is_saved() {
            self.sources.remove(&source);
        }
    }

    /// The same for rows that cannot be sent again.
    fn count_unrepeatable(&mut self, source: SourceId, verdict: Verdict, rows: u32) {
        if self.gave_up {
            return;
        }
        if let Some(left) = self.unrepeatable.get_mut(&source.input()) {
            *left -= u64::from(rows);
        }
        self.count(source, verdict, rows);
    }

    /// Rows of the disk queue are with an output.
    fn begin_sending(&mut self, rows: u32) {
        self.sending += u64::from(rows);
    }

    /// An output released rows of the disk queue: with a verdict, or to be sent again by the next life.
    fn end_sending(&mut self, verdict: Option<Verdict>, rows: u32) {
        self.sending -= u64::from(rows);
        if let Some(verdict) = verdict {
            self.unsaved_rows += u64::from(rows);
            self.total.settle_stored(verdict, u64::from(rows));
        }
    }

    /// Whether no row is between a reader and its verdict or the disk queue, or between that and its verdict.
    fn is_quiet(&self) -> bool {
        self.total.in_flight() == 0 && self.sending == 0
    }

    fn add(&mut self, source: SourceId, entry: Source) {
        self.sources.insert(source, Box::new(entry));
        if self.sources.len() == SPARE_SOURCES + 1 {
            for entry in self.sources.values_mut().filter(|entry| !entry.has_pending()) {
                entry.pending = None;
            }
        }
    }

    /// Marks one range as settled and moves the cursor over all settled ones at the front.
    fn settle(&mut self, source: SourceId, sequence: u64) {
        let many = self.sources.len() > SPARE_SOURCES;
        let Some(entry) = self.sources.get_mut(&source) else { return };
        let Some(at) = sequence.checked_sub(entry.first_sequence) else { return };
        let Some(all) = entry.pending.as_deref_mut() else { return };
        if let Some(pending) = all.get_mut(at as usize) {
            pending.settled = true;
        }
        let mut moved = false;
        let mut passes = sabotage::is_on(Sabotage::CursorPassesUnsettled);
        while let Some(pending) =
            all.pop_front_if(|pending| pending.settled || std::mem::take(&mut passes))
        {
            entry.first_sequence += 1;
            match (&mut entry.place, pending.target) {
                (Place::File { cursor, generation, .. }, Target::File { cursor: to, resume })
                    if to.generation == *generation =>
                {
                    *cursor = to;
                    if let Some(point) = resume {
                        entry.resume = Resume::Set(point);
                    }
                    moved = true;
                }
                (Place::Cursor(_, cursor), Target::Cursor(to)) => {
                    *cursor = to;
                    moved = true;
                }
                // Of a generation that is over.
                _ => {}
            }
        }
        if all.is_empty() && many {
            entry.pending = None;
        }
        if moved {
            self.mark_dirty(source);
        }
    }
}

#[cfg(test)]
mod tests;
