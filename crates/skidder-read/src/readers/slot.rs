//! One source as the scheduler sees it: its reader, its phase, and its pending request.

use super::{ReaderLimit, ReaderLook, ReaderState, Trouble};
use crate::reader::{InputContext, Reader, Rest, Target};
use skidder_event::SourceId;
use skidder_os::{Boxes, Fs, Monotonic, prepare_files};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a reader sleeps whose file is watched: the scan wakes it too, if a notification was missing.
const WATCHED_SLEEP: Duration = Duration::from_mins(5);

/// Places that a decoder of another codec than gzip takes.
const LARGE_DECODER: usize = 8;

pub(super) struct Slot {
    pub(super) input: Arc<InputContext>,
    /// Taken out while it has a turn, and while it rests.
    pub(super) reader: Option<Box<Reader>>,
    /// The state of a closed reader: there may be very many of them.
    pub(super) rest: Option<Rest>,
    /// What it waits for, while it waits for a place.
    pub(super) waits: Option<ReaderLimit>,
    /// Why its last turn could not go on.
    pub(super) trouble: Option<Trouble>,
    pub(super) phase: Phase,
    /// See [`Readers::set_watched`](super::Readers::set_watched).
    pub(super) watched: Option<Arc<AtomicBool>>,
    /// `None` while it rests without a request.
    awake: Option<Box<Awake>>,
}

/// For what stays of a source while its file is open: it is allocated just before its first lines are read.
#[derive(Default)]
pub(super) struct SlotBoxes {
    readers: Boxes<Reader>,
    awake: Boxes<Awake>,
}

/// Sources for which [`SlotBoxes::prepare`] allocates at most: what it has allocated stays.
const ALLOCATED_MAX: usize = 256;

impl SlotBoxes {
    /// Allocates for so many sources that wait for their first turn. A worker allocates a batch around each turn, which is
    /// gone soon; what stays had better not lie in between.
    pub(super) fn prepare(&mut self, sources: usize) {
        let count = sources.min(ALLOCATED_MAX);
        self.readers.prepare(count);
        self.awake.prepare(count);
        prepare_files(count);
    }
}

/// State of a source that is only needed while it does not rest.
#[derive(Default)]
pub(super) struct Awake {
    /// Where it stood when its turn began, while it has one.
    pub(super) before_turn: Option<Box<ReaderLook>>,
    /// Counts against the limit on open files.
    pub(super) is_counted: bool,
    /// Places of [`super::ReadersLimits::decoders`] that it takes.
    pub(super) decoders: usize,
    /// A request that came while it had a turn.
    pub(super) request: Option<Box<Request>>,
    pub(super) last_data: Span,
    pub(super) opened: Span,
    /// It will be closed after a last check for more to read.
    pub(super) last_look: bool,
    /// Turns since its file was opened.
    pub(super) turns: u32,
    pub(super) backoff: Span,
    /// Idle, and has found nothing new before.
    pub(super) rested: bool,
    /// Where to open the file the next time; an open one keeps the path it was opened with.
    pub(super) next_target: Option<Box<Target>>,
}

/// The value for a source that rests.
static ASLEEP: Awake = Awake {
    before_turn: None,
    is_counted: false,
    decoders: 0,
    request: None,
    last_data: Span(0),
    opened: Span(0),
    last_look: false,
    turns: 0,
    backoff: Span(0),
    rested: false,
    next_target: None,
};

/// A time, or a span of time, in nanoseconds, up to 584 years: half as large as the usual types, where there may be very
/// many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span(u64);

impl Span {
    /// As a span.
    pub(super) fn long(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// As a time.
    pub(super) fn at(self) -> Monotonic {
        Monotonic(self.long())
    }
}

impl From<Duration> for Span {
    fn from(span: Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Monotonic> for Span {
    fn from(time: Monotonic) -> Self {
        time.0.into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Closed,
    Ready,
    Running,
    Idle(Monotonic),
    /// Until then it waits for what a processor must know; see [`TurnEnd::Held`].
    Held(Monotonic),
    Waiting,
}

#[derive(Default)]
pub(super) struct Request {
    pub(super) wake: bool,
    pub(super) target: Option<(Target, Arc<str>)>,
    pub(super) restart: Option<u32>,
    pub(super) reopen: bool,
    pub(super) close: bool,
    pub(super) remove: bool,
    pub(super) park: bool,
}

impl Awake {
    /// Its turn has read something.
    pub(super) fn note_data(&mut self, now: Monotonic) {
        self.last_data = now.into();
        self.backoff = Span::default();
        self.last_look = false;
    }
}

impl Slot {
    /// A closed source.
    pub(super) fn new(
        input: Arc<InputContext>,
        reader: Reader,
        watched: Option<Arc<AtomicBool>>,
    ) -> Self {
        let mut slot = Self {
            input,
            reader: Some(Box::new(reader)),
            rest: None,
            waits: None,
            trouble: None,
            phase: Phase::Closed,
            watched,
            awake: None,
        };
        slot.rest();
        slot
    }

    /// State that is only needed while it does not rest.
    pub(super) fn awake(&self) -> &Awake {
        self.awake.as_deref().unwrap_or(&ASLEEP)
    }

    /// The same, to be changed.
    pub(super) fn awake_mut(&mut self) -> &mut Awake {
        self.awake.get_or_insert_default()
    }

    /// Takes the pending request.
    pub(super) fn take_request(&mut self) -> Option<Request> {
        self.awake.as_mut()?.request.take().map(|request| *request)
    }

    /// The pending request, to add to it.
    pub(super) fn request(&mut self) -> &mut Request {
        self.awake_mut().request.get_or_insert_default()
    }

    /// Puts a reader back after its turn, which is over `now`. It takes the places of its decoder now: what a file has to be decoded with is not
    /// known before. Returns how many more places these are.
    pub(super) fn put_back(&mut self, mut reader: Box<Reader>, now: Monotonic) -> usize {
        reader.end_turn(now);
        let is_large = reader.has_large_decoder();
        self.reader = Some(reader);
        self.phase = Phase::Closed;
        let awake = self.awake_mut();
        awake.before_turn = None;
        let before = awake.decoders;
        if before > 0 && is_large {
            awake.decoders = LARGE_DECODER;
        }
        awake.decoders - before
    }

    /// The file that its reader expects; `None` while it has a turn.
    pub(super) fn target(&self) -> Option<&Target> {
        let of_rest = self.rest.as_ref().map(|rest| &rest.target);
        of_rest.or(self.reader.as_ref().map(|reader| &reader.target))
    }

    /// Keeps only what is needed of a closed reader, if that is less.
    pub(super) fn rest(&mut self) {
        self.rest = self.rest.take().or_else(|| self.reader.as_mut()?.take_rest());
        if self.rest.is_some() {
            self.reader = None;
            let is_free = |awake: &Awake| {
                awake.request.is_none() && awake.next_target.is_none() && !awake.is_counted
            };
            self.awake = self.awake.take().filter(|awake| !is_free(awake));
        }
    }

    /// Makes the reader again that rests.
    pub(super) fn rouse(&mut self, id: SourceId, boxes: &mut SlotBoxes) {
        if let Some(rest) = self.rest.take() {
            self.reader = Some(boxes.readers.put(Reader::from_rest(id, rest)));
        }
    }

    /// [`Slot::awake_mut`] for a source that has its file open from now on.
    pub(super) fn keep_awake(&mut self, boxes: &mut SlotBoxes) -> &mut Awake {
        self.awake.get_or_insert_with(|| boxes.awake.put(Awake::default()))
    }

    pub(super) fn seen(&self) -> ReaderLook {
        let mut look = match (&self.rest, &self.reader) {
            (Some(rest), _) => rest.look(),
            (None, Some(reader)) => reader.look(),
            (None, None) => {
                let before = self.awake().before_turn.as_deref().cloned().unwrap_or_default();
                ReaderLook { open: true, ..before }
            }
        };
        look.state = match self.phase {
            Phase::Closed => ReaderState::Closed,
            Phase::Ready | Phase::Running => ReaderState::Reading,
            Phase::Idle(_) => ReaderState::Idle,
            Phase::Held(_) => ReaderState::Held,
            Phase::Waiting => ReaderState::WaitingForSlot,
        };
        look.in_turn = self.phase == Phase::Running;
        look.waits = self.waits.filter(|_| self.phase == Phase::Waiting);
        look.trouble = self.trouble;
        look
    }

    pub(super) fn input_key(&self) -> usize {
        Arc::as_ptr(&self.input) as usize
    }

    /// When an idle reader looks again.
    pub(super) fn due(&self, now: Monotonic) -> Monotonic {
        let close = &self.input.settings.close;
        let watched = self.watched.as_ref().is_some_and(|watched| watched.load(Ordering::Relaxed));
        // The first sleep is short in any case: a file at rest gives back what its reader needs for turns.
        let watched = watched && self.awake().rested;
        let backoff = self.awake().backoff.long();
        let mut at = now + if watched { backoff.max(WATCHED_SLEEP) } else { backoff };
        if let Some(inactive) = close.inactive {
            at = at.min(self.awake().last_data.at() + inactive);
        }
        if close.removed || close.renamed {
            at = at.min(now + close.check_interval);
        }
        if let Some(flush) = self.reader.as_ref().and_then(|reader| reader.flush_at()) {
            at = at.min(flush);
        }
        at.max(now)
    }

    /// Whether its file is read to the end during shutdown.
    pub(super) fn is_read_to_end(&self) -> bool {
        let is_open =
            self.rest.is_none() && self.reader.as_ref().is_none_or(|reader| reader.is_open());
        self.input.settings.read_until_eof.is_some() && is_open
    }

    /// Whether a group of lines has waited long enough for more of them.
    pub(super) fn is_flush_due(&self, now: Monotonic) -> bool {
        self.reader.as_ref().and_then(|reader| reader.flush_at()).is_some_and(|at| at <= now)
    }

    /// Before a file is closed for good, its waiting group of lines is given out: returns whether that
    /// needs a turn.
    pub(super) fn flush_first(&mut self) -> bool {
        let Some(reader) = &mut self.reader else { return false };
        let waits = reader.is_open() && reader.waits_for_lines();
        if waits {
            reader.ask_flush();
        }
        waits
    }

    /// Whether a plain file is as long as what was looked at: the usual case, at the price of one
    /// question instead of a turn. A file rewritten to the same length is found by the scan.
    pub(super) fn has_nothing_new(&self) -> bool {
        let Some(reader) = &self.reader else { return false };
        !reader.target.compressed
            && reader
                .file()
                .is_some_and(|file| file.metadata().is_ok_and(|meta| meta.size == reader.seen()))
    }

    /// Whether the path leads to the file that is open. If not, the open file may be the last way to what
    /// is still written to it.
    pub(super) fn can_open_again(&self) -> bool {
        let target = self.awake().next_target.as_deref().or(self.target());
        target.is_some_and(|target| leads_to(&*self.input.fs, target))
    }

    /// The same, with the answer for the path that it was opened with: not valid if it has another since.
    pub(super) fn can_open_as_known(&self, known: Option<bool>) -> bool {
        let known = known.filter(|_| self.awake().next_target.is_none());
        known.unwrap_or_else(|| self.can_open_again())
    }

    /// Whether it goes on in another file: errors of the one before do not apply to that.
    pub(super) fn goes_on_elsewhere(&self) -> bool {
        let request = self.awake().request.as_ref();
        request.is_some_and(|request| request.reopen || request.restart.is_some())
    }

    /// Why an idle reader should be closed now, if it should.
    pub(super) fn should_close(&self, now: Monotonic) -> bool {
        let close = &self.input.settings.close;
        if close.inactive.is_some_and(|inactive| now.since(self.awake().last_data.at()) >= inactive)
        {
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

/// Whether the path of a target leads to the file that it names.
pub(super) fn leads_to(fs: &dyn Fs, target: &Target) -> bool {
    let looked = fs.metadata(&target.path);
    looked.is_ok_and(|meta| (meta.device, meta.inode) == (target.device, target.inode))
}
