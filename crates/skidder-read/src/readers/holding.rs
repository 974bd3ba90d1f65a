//! Files of sources that wait for a turn are opened early, while nothing moves because the output does not take
//! what was read: a file that is rotated away and deleted meanwhile can still be read from its descriptor.
//!
//! Promises: no more files are open than the limits allow, and those that have waited longest come first. A file that
//! cannot be opened is tried again by the next call: the scan may not have seen yet that it was renamed. Its turn reports
//! what is wrong with it.

use super::schedule::State;
use super::slot::{Phase, Slot};
use super::{Readers, close_unlocked};
use crate::reader::{InputContext, Target, open_target};
use foldhash::HashMap;
use skidder_event::SourceId;
use skidder_os::sabotage::{self, Sabotage};
use skidder_os::{File, Monotonic};
use std::sync::Arc;
use std::time::Duration;

/// Files that are opened by one call: the caller has a batch to bring to the queue as well.
const OPENED_AT_ONCE: usize = 256;

/// Sources that were opened or got their turn stay in the list until it has this many more entries than there are sources.
const STALE_MAX: usize = 1024;

/// After this time as many files may be open again as before the system refused one: it may have been short of descriptors for
/// a moment only.
const LOWERED_FOR: Duration = Duration::from_mins(1);

/// Sleepers to check for one that can open its file again, when a place is needed: most can.
const SLEEPERS_CHECKED: usize = 16;

/// When the sleep of a parked source is over.
const PARKED: Monotonic = Monotonic(Duration::MAX);

/// The limit on open files was lowered.
pub(super) struct Lowered {
    /// What it was.
    from: usize,
    /// Since when, as far as the next turn knows.
    since: Option<Monotonic>,
}

impl Readers {
    /// Opens the files of sources that wait for a turn, up to the limits, at most 256 of them; returns whether there are more.
    pub fn open_waiting(&self, now: Monotonic) -> bool {
        if sabotage::is_on(Sabotage::WaitersUnopened) {
            return false;
        }
        let mut again = Vec::new();
        let mut has_more = true;
        for _ in 0..OPENED_AT_ONCE {
            let Some((id, input, target)) = self.lock().next_unopened() else {
                has_more = false;
                break;
            };
            let file = open_target(&*input.fs, &target).ok().flatten();
            let was_taken = file.is_some_and(|file| self.lock().hand_over(id, &target, file, now));
            if !was_taken {
                again.push(id);
            }
        }
        let mut state = self.lock();
        for id in again {
            if state.is_unopened(id) {
                state.note_unopened(id);
            }
        }
        has_more
    }

    /// The system refuses to open one more file: no more than now may be open from here on, and a file that sleeps at its end
    /// is closed. Returns whether there was one.
    pub(crate) fn give_way(&self) -> bool {
        let mut state = self.lock();
        state.lower_limit();
        let sleeper = sleeper(&state.slots, state.idle.iter().copied());
        if let Some(sleeper) = sleeper {
            state.close(sleeper);
        }
        close_unlocked(state);
        sleeper.is_some()
    }

    /// A source has no more turns, and keeps its file open until it is woken.
    pub(crate) fn park(&self, id: SourceId) {
        self.ask(id, |slot| slot.request().park = true);
    }

    /// The sources that wait for a turn, with the device and inode of the file that each expects at its path.
    pub fn in_line(&self) -> Vec<(SourceId, Target)> {
        let state = self.lock();
        let target = |id: &SourceId| Some((*id, state.slots.get(id)?.target()?.clone()));
        state.ready.iter().filter_map(target).collect()
    }
}

impl State {
    /// Remembers that a source is in line with its file closed.
    pub(super) fn note_unopened(&mut self, id: SourceId) {
        if self.unopened.len() > self.slots.len() + STALE_MAX {
            let mut left = std::mem::take(&mut self.unopened);
            left.retain(|id| self.is_unopened(*id));
            self.unopened = left;
        }
        self.unopened.push_back(id);
    }

    /// As many files as now, but one, may be open for a while.
    pub(super) fn lower_limit(&mut self) {
        let limit = self.open.saturating_sub(1).max(1);
        if let Some(lowered) = &mut self.lowered {
            lowered.since = None;
        }
        if limit < self.limits.open_files {
            tracing::warn!(
                from = self.limits.open_files,
                to = limit,
                "no more files can be opened: fewer log files are kept open for a minute; raise the limit \
                 on open files (`ulimit -n`, `LimitNOFILE`)"
            );
            let from = self.limits.open_files;
            self.lowered.get_or_insert(Lowered { from, since: None });
            self.limits.open_files = limit;
        }
    }

    /// As many files may be open as before, if the system has refused none for a while. Waiting sources try again.
    pub(super) fn raise_limit(&mut self, now: Monotonic) {
        let Some(lowered) = &mut self.lowered else { return };
        if now.since(*lowered.since.get_or_insert(now)) < LOWERED_FOR {
            return;
        }
        self.limits.open_files = lowered.from;
        self.lowered = None;
        for id in std::mem::take(&mut self.waiting.open) {
            if self.slots.get(&id).is_some_and(|slot| slot.phase == Phase::Waiting) {
                self.line_up(id);
            }
        }
    }

    /// Only [`Readers::wake`] gives a source a turn, and its file makes way for no other. One without an open file is
    /// closed.
    pub(super) fn park(&mut self, id: SourceId) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        if !slot.reader.as_ref().is_some_and(|reader| reader.is_open()) {
            self.close(id);
            return;
        }
        slot.phase = Phase::Idle(PARKED);
        self.idle.remove(&id);
        self.held.remove(&id);
    }

    fn is_unopened(&self, id: SourceId) -> bool {
        let slot = self.slots.get(&id);
        slot.is_some_and(|slot| slot.phase == Phase::Ready && !slot.awake().is_counted)
    }

    /// The source that has waited longest with its file closed, if one more file may be open.
    fn next_unopened(&mut self) -> Option<(SourceId, Arc<InputContext>, Target)> {
        if self.draining.is_some() || self.stopped {
            return None;
        }
        // Those whose input may open no more keep their places.
        let mut refused = Vec::new();
        let mut found = None;
        while self.open < self.limits.open_files
            && let Some(id) = self.unopened.pop_front()
        {
            if !self.is_unopened(id) {
                continue;
            }
            let Some(slot) = self.slots.get(&id) else { continue };
            let open = self.open_of.get(&slot.input_key()).copied().unwrap_or(0);
            if slot.input.settings.harvester_limit.is_some_and(|limit| open >= limit) {
                refused.push(id);
            } else if let Some(target) = slot.target() {
                found = Some((id, Arc::clone(&slot.input), target.clone()));
                break;
            }
        }
        for id in refused.into_iter().rev() {
            self.unopened.push_front(id);
        }
        found
    }

    /// Hands a source the file that was opened for it, if it still waits for a turn and expects that file; returns
    /// whether it did.
    fn hand_over(
        &mut self,
        id: SourceId,
        opened: &Target,
        file: Box<dyn File>,
        now: Monotonic,
    ) -> bool {
        let is_expected = |target: &Target| {
            (target.device, target.inode, target.compressed)
                == (opened.device, opened.inode, opened.compressed)
        };
        let is_same = self.slots.get(&id).and_then(|slot| slot.target()).is_some_and(is_expected);
        let may_open = self.is_unopened(id) && is_same && self.open < self.limits.open_files;
        if may_open {
            self.take_open(id, file, now);
        }
        may_open
    }

    /// The reader of a closed source gets its open file, which counts against the limits from now on.
    pub(super) fn take_open(&mut self, id: SourceId, file: Box<dyn File>, now: Monotonic) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.rouse(id, &mut self.boxes);
        let Some(reader) = &mut slot.reader else { return };
        reader.take_file(&slot.input, file);
        let awake = slot.keep_awake(&mut self.boxes);
        awake.is_counted = true;
        (awake.turns, awake.opened, awake.last_data) = (0, now.into(), now.into());
        self.open += 1;
        *self.open_of.entry(slot.input_key()).or_default() += 1;
    }
}

/// The sleeping source that closes its file for another: the one that has slept longest, preferably one that
/// can open it again.
pub(super) fn sleeper(
    slots: &HashMap<SourceId, Box<Slot>>,
    mut idle: impl Iterator<Item = SourceId>,
) -> Option<SourceId> {
    let first = idle.next()?;
    let again = |id: &SourceId| slots.get(id).is_some_and(|slot| slot.can_open_again());
    Some(std::iter::once(first).chain(idle).take(SLEEPERS_CHECKED).find(again).unwrap_or(first))
}
