//! Which source gets the next turn, sleeps, or waits for a place: all under the one lock of the readers.

use super::holding::{Lowered, sleeper};
use super::slot::{Phase, Slot, SlotBoxes, Span};
use super::turn::trouble;
use super::{Next, ReaderLimit, ReadersLimits, TURNS_MAX, Turn};
use crate::reader::TurnEnd;
use foldhash::HashMap;
use skidder_event::SourceId;
use skidder_os::sabotage::{self, Sabotage};
use skidder_os::{File, Monotonic, is_out_of_descriptors};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// With more sleepers than this, one whose file was at its end in its first turn keeps nothing for the next one:
/// at the start with very many files it may never come. What it would keep is some kilobytes.
const PREPARED_MAX: usize = 1024;

/// The state of all readers.
pub(super) struct State {
    pub(super) limits: ReadersLimits,
    /// `limits` has less room than it had.
    pub(super) lowered: Option<Lowered>,
    pub(super) slots: HashMap<SourceId, Box<Slot>>,
    pub(super) boxes: SlotBoxes,
    pub(super) ready: VecDeque<SourceId>,
    /// Those of `ready` whose files are closed, in the same order, and some that are not in line any more.
    pub(super) unopened: VecDeque<SourceId>,
    pub(super) waiting: Waiting,
    /// Sources that sleep with their file open. The oldest one is closed first when a place is needed.
    pub(super) idle: BTreeSet<SourceId>,
    /// Sources that wait for what a processor must know.
    pub(super) held: BTreeSet<SourceId>,
    /// Sources whose last turn met trouble, for the scan.
    pub(super) troubled: Vec<SourceId>,
    pub(super) timers: BinaryHeap<Reverse<(Monotonic, SourceId)>>,
    pub(super) open: usize,
    pub(super) decoders: usize,
    /// Open files by input, for `harvester_limit`.
    pub(super) open_of: HashMap<usize, usize>,
    pub(super) running: usize,
    /// Workers that wait for work.
    pub(super) idle_workers: usize,
    /// Files that were closed, until the lock is released.
    pub(super) closing: Vec<Box<dyn File>>,
    /// Since when only open files are read, to their end.
    pub(super) draining: Option<Monotonic>,
    pub(super) stopped: bool,
}

/// Sources that wait for a place, by the limit that they wait for.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) open: VecDeque<SourceId>,
    pub(super) of_input: HashMap<usize, VecDeque<SourceId>>,
    pub(super) decoder: VecDeque<SourceId>,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &SourceId> {
        self.open.iter().chain(&self.decoder).chain(self.of_input.values().flatten())
    }
}

impl State {
    pub(super) fn is_quiet(&self) -> bool {
        self.running == 0
            && self.ready.is_empty()
            && self.held.is_empty()
            && !self
                .waiting
                .all()
                .any(|id| self.slots.get(id).is_some_and(|slot| slot.phase == Phase::Waiting))
    }

    /// Idle readers whose time has come are closed or get in line.
    pub(super) fn ring(&mut self, now: Monotonic) {
        while let Some(Reverse((at, id))) = self.timers.peek().copied() {
            if at > now {
                return;
            }
            self.timers.pop();
            let Some(slot) = self.slots.get_mut(&id) else { continue };
            if slot.phase == Phase::Closed && slot.is_flush_due(now) {
                self.line_up(id);
                continue;
            }
            if slot.phase == Phase::Held(at) {
                self.line_up(id);
                continue;
            }
            if slot.phase != Phase::Idle(at) {
                continue;
            }
            let nothing_new = slot.has_nothing_new();
            if self.draining.is_none() && slot.should_close(now) {
                if slot.flush_first() {
                    self.line_up(id);
                } else if nothing_new || slot.awake().last_look {
                    self.close(id);
                } else {
                    slot.awake_mut().last_look = true;
                    self.line_up(id);
                }
            } else if nothing_new && !slot.is_flush_due(now) {
                self.idle(id, now);
            } else {
                self.line_up(id);
            }
        }
    }

    /// Puts a source in the line for turns.
    pub(super) fn line_up(&mut self, id: SourceId) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.phase = Phase::Ready;
            let is_closed = !slot.awake().is_counted;
            self.idle.remove(&id);
            self.held.remove(&id);
            self.ready.push_back(id);
            if is_closed {
                self.note_unopened(id);
            }
        }
    }

    /// Takes a source out for a turn, or lets it wait for a place.
    pub(super) fn begin(&mut self, id: SourceId, now: Monotonic) -> Option<Turn> {
        let slot = self.slots.get(&id)?;
        if slot.phase != Phase::Ready {
            return None;
        }
        if self.is_over(slot, now) {
            self.close(id);
            return None;
        }
        let compressed = slot.target().is_some_and(|target| target.compressed);
        let input = slot.input_key();
        let of_input = self.open_of.get(&input).copied().unwrap_or(0);
        let limit_of_input = slot.input.settings.harvester_limit.unwrap_or(usize::MAX);
        let is_counted = slot.awake().is_counted;
        let (list, sleeper) = if !is_counted && self.open >= self.limits.open_files {
            let list = (&mut self.waiting.open, ReaderLimit::OpenFile);
            (Some(list), sleeper(&self.slots, self.idle.iter().copied()))
        } else if !is_counted && of_input >= limit_of_input {
            let of_input =
                |id: &SourceId| self.slots.get(id).is_some_and(|slot| slot.input_key() == input);
            let sleeper = sleeper(&self.slots, self.idle.iter().copied().filter(of_input));
            let list = self.waiting.of_input.entry(input).or_default();
            (Some((list, ReaderLimit::OfInput)), sleeper)
        } else if compressed && slot.awake().decoders == 0 && self.decoders >= self.limits.decoders
        {
            (Some((&mut self.waiting.decoder, ReaderLimit::Decoder)), None)
        } else {
            (None, None)
        };
        if let Some((list, place)) = list {
            list.push_back(id);
            let slot = self.slots.get_mut(&id)?;
            slot.phase = Phase::Waiting;
            slot.waits = Some(place);
            match sleeper {
                // It has nothing to read and makes way.
                Some(sleeper) => self.close(sleeper),
                // The place it was woken for may serve another.
                None => self.admit(input),
            }
            return None;
        }
        let slot = self.slots.get_mut(&id)?;
        let seen = Box::new(slot.seen());
        let awake = slot.keep_awake(&mut self.boxes);
        if !awake.is_counted {
            awake.is_counted = true;
            awake.turns = 0;
            awake.opened = now.into();
            awake.last_data = now.into();
            self.open += 1;
            *self.open_of.entry(input).or_default() += 1;
        }
        if compressed && awake.decoders == 0 {
            awake.decoders = 1;
            self.decoders += 1;
        }
        awake.turns += 1;
        awake.before_turn = Some(seen);
        slot.rouse(id, &mut self.boxes);
        let mut reader = slot.reader.take()?;
        reader.begin_turn(now);
        slot.phase = Phase::Running;
        self.running += 1;
        Some(Turn { reader, input: Arc::clone(&slot.input) })
    }

    /// The next turn for a worker.
    pub(super) fn next(&mut self, now: Monotonic) -> Next {
        if self.stopped {
            return Next::Stopped;
        }
        self.raise_limit(now);
        self.ring(now);
        while let Some(id) = self.ready.pop_front() {
            if let Some(turn) = self.begin(id, now) {
                return Next::Turn(turn);
            }
        }
        self.unopened.clear();
        Next::Wait(self.timers.peek().map(|Reverse((at, _))| *at))
    }

    /// Whether a file is closed as soon as its end is reached.
    pub(super) fn is_crowded(&self) -> bool {
        self.open > self.limits.open_files / 4 * 3 || !self.waiting.is_empty()
    }

    /// A turn is over. `can_open_again` says whether the file can be opened again, if that was checked already.
    pub(super) fn end(
        &mut self,
        mut turn: Turn,
        end: &TurnEnd,
        had_data: bool,
        can_open_again: Option<bool>,
        now: Monotonic,
    ) {
        let id = turn.reader.id;
        let stopped = self.stopped;
        let is_crowded = self.is_crowded();
        let Some(slot) = self.slots.get_mut(&id) else {
            turn.reader.close(&turn.input);
            return;
        };
        if had_data || turn.reader.has_seen_more() {
            slot.awake_mut().note_data(now);
        }
        // With one of the others closed there is a place for it.
        let is_short = self.open > 1
            && !turn.reader.is_open()
            && matches!(end, TurnEnd::Failed(error) if is_out_of_descriptors(error));
        slot.trouble =
            if is_short { None } else { trouble(&turn, end) }.filter(|_| !slot.goes_on_elsewhere());
        if slot.trouble.is_some() {
            self.troubled.push(id);
        }
        self.decoders += slot.put_back(turn.reader, now);
        if stopped {
            self.close(id);
            return;
        }
        if self.draining.is_some() {
            self.end_while_draining(id, end, now);
            return;
        }
        if is_short {
            self.lower_limit();
            self.close(id);
            self.line_up(id);
        } else {
            self.go_on(id, end, is_crowded, can_open_again, now);
        }
        self.apply(id);
    }

    /// What a source does after a turn that ended like this.
    fn go_on(
        &mut self,
        id: SourceId,
        end: &TurnEnd,
        is_crowded: bool,
        can_open_again: Option<bool>,
        now: Monotonic,
    ) {
        let Some(slot) = self.slots.get(&id) else { return };
        let close = &slot.input.settings.close;
        let open_for = now.since(slot.awake().opened.at());
        let lifetime_over = close.after_interval.is_some_and(|interval| open_for >= interval);
        let crowded = is_crowded && slot.can_open_as_known(can_open_again);
        let is_open = slot.reader.as_ref().is_some_and(|reader| reader.is_open());
        match end {
            // With `--once` there is no other scan.
            TurnEnd::More if lifetime_over && !slot.input.settings.read_once => {
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
            TurnEnd::Waiting
                if close.on_eof || crowded || lifetime_over || slot.awake().last_look =>
            {
                self.close(id);
            }
            TurnEnd::Waiting => self.idle(id, now),
            TurnEnd::Held(span) => {
                if crowded {
                    self.close(id);
                }
                self.hold(id, now + *span);
            }
            // The open file may be the last way to its content.
            TurnEnd::Failed(_) if is_open => self.idle(id, now),
            TurnEnd::Finished
            | TurnEnd::Displaced
            | TurnEnd::Rewritten
            | TurnEnd::Damaged
            | TurnEnd::Failed(_) => self.close(id),
        }
    }

    /// Whether a source has had its file open for long while others wait for a place, and can have it
    /// again later.
    pub(super) fn should_make_way(&self, id: SourceId) -> bool {
        let Some(slot) = self.slots.get(&id) else { return false };
        let of_input = self.waiting.of_input.get(&slot.input_key());
        let wanted = !self.waiting.open.is_empty() || of_input.is_some_and(|list| !list.is_empty());
        let awake = slot.awake();
        if !wanted || awake.turns < TURNS_MAX || awake.next_target.is_some() {
            return false;
        }
        slot.can_open_again()
    }

    /// Lets a reader wait until its plan knows what it must.
    fn hold(&mut self, id: SourceId, at: Monotonic) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.phase = Phase::Held(at);
        self.held.insert(id);
        self.timers.push(Reverse((at, id)));
    }

    /// Lets a reader sleep at the end of its file.
    pub(super) fn idle(&mut self, id: SourceId, now: Monotonic) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let close = &slot.input.settings.close;
        let backoff = slot.awake().backoff.long();
        let has_rested = !backoff.is_zero();
        let backoff = match backoff {
            Duration::ZERO => close.backoff_init,
            before => before
                .saturating_mul(close.backoff_factor)
                .min(close.backoff_max.max(close.backoff_init)),
        };
        let awake = slot.awake_mut();
        (awake.backoff, awake.rested) = (backoff.into(), has_rested);
        let is_one_of_many = awake.turns <= 1 && self.idle.len() >= PREPARED_MAX;
        if let Some(reader) = &mut slot.reader {
            if reader.target.compressed {
                reader.release_decoder();
            }
            if has_rested || is_one_of_many {
                reader.rebind();
            }
        }
        let at = slot.due(now);
        slot.phase = Phase::Idle(at);
        self.idle.insert(id);
        self.timers.push(Reverse((at, id)));
        let input = slot.input_key();
        let decoders = std::mem::take(&mut slot.awake_mut().decoders);
        if decoders > 0 {
            self.decoders -= decoders;
            self.admit(input);
        }
    }

    pub(super) fn close(&mut self, id: SourceId) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.phase = Phase::Closed;
        let awake = slot.awake_mut();
        awake.backoff = Span::default();
        awake.last_look = false;
        let next_target = awake.next_target.take();
        let was_counted = std::mem::take(&mut awake.is_counted);
        let decoders = std::mem::take(&mut awake.decoders);
        self.idle.remove(&id);
        self.held.remove(&id);
        if let Some(reader) = &mut slot.reader {
            self.closing.extend(reader.close_later(&slot.input));
            if let Some(target) = next_target {
                reader.target = *target;
            }
            if let Some(at) = reader.flush_at() {
                self.timers.push(Reverse((at, id)));
            }
        }
        slot.rest();
        let input = slot.input_key();
        if was_counted {
            self.open -= 1;
            if let Some(count) = self.open_of.get_mut(&input) {
                *count -= 1;
            }
        }
        self.decoders -= decoders;
        self.admit(input);
    }

    /// For each kind of place that is free, the first waiting source gets in line.
    pub(super) fn admit(&mut self, input: usize) {
        if sabotage::is_on(Sabotage::WaitersForgotten) {
            return;
        }
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
        if self.draining.is_some() {
            return;
        }
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

    /// Applies the pending request, unless the source has a turn just now.
    pub(super) fn apply(&mut self, id: SourceId) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        if slot.phase == Phase::Running {
            return;
        }
        let Some(request) = slot.take_request() else { return };
        slot.rouse(id, &mut self.boxes);
        let Some(reader) = &mut slot.reader else { return };
        let mut close = request.reopen || request.close || request.remove;
        let mut next_target = None;
        if let Some((target, key)) = request.target {
            close |= target.compressed != reader.target.compressed;
            reader.key = key;
            if reader.is_open() {
                reader.show_print(&target);
                next_target = Some(Box::new(target));
            } else {
                reader.target = target;
            }
        }
        if let Some(generation) = request.restart {
            reader.restart(generation);
            close = true;
        }
        if next_target.is_some() {
            slot.awake_mut().next_target = next_target;
        }
        let wake = request.wake || request.reopen || request.restart.is_some();
        if close {
            self.close(id);
        }
        if request.remove {
            self.slots.remove(&id);
            self.troubled.retain(|other| *other != id);
            return;
        }
        if request.park {
            self.park(id);
            return;
        }
        if wake
            && let Some(slot) = self.slots.get_mut(&id)
            && matches!(slot.phase, Phase::Closed | Phase::Idle(_))
        {
            self.line_up(id);
        }
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.rest();
        }
    }
}
