//! Shutdown: open files are read to their end, where `read_until_eof` is set.

use super::schedule::State;
use super::slot::{Phase, Slot};
use crate::reader::TurnEnd;
use skidder_event::SourceId;
use skidder_os::Monotonic;

impl State {
    /// Only open files of inputs with `read_until_eof` get turns any more.
    pub(super) fn drain(&mut self, now: Monotonic) {
        self.draining = Some(now);
        let ids: Vec<SourceId> = self.slots.keys().copied().collect();
        for id in ids {
            let Some(slot) = self.slots.get(&id) else { continue };
            match slot.phase {
                // It may have been at the end already; what came since is looked for once more.
                Phase::Running => {
                    if let Some(slot) = self.slots.get_mut(&id) {
                        slot.request().wake = true;
                    }
                }
                Phase::Idle(_) if slot.is_read_to_end() => self.line_up(id),
                Phase::Ready if slot.is_read_to_end() => {}
                Phase::Closed if slot.rest.is_some() => {}
                Phase::Closed | Phase::Ready | Phase::Idle(_) | Phase::Held(_) | Phase::Waiting => {
                    self.close(id);
                }
            }
        }
        let slots = &self.slots;
        self.ready.retain(|id| slots.get(id).is_some_and(|slot| slot.phase == Phase::Ready));
    }

    /// Whether a source gets no turn any more because the program is stopping.
    pub(super) fn is_over(&self, slot: &Slot, now: Monotonic) -> bool {
        let Some(since) = self.draining else { return false };
        !slot.is_read_to_end()
            || slot.input.settings.read_until_eof.is_none_or(|limit| now.since(since) >= limit)
    }

    pub(super) fn end_while_draining(&mut self, id: SourceId, end: &TurnEnd, now: Monotonic) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let request = slot.awake_mut().request.as_mut();
        let wake = request.is_some_and(|request| std::mem::take(&mut request.wake));
        let again = wake || matches!(end, TurnEnd::More);
        let Some(slot) = self.slots.get(&id) else { return };
        if again && !self.is_over(slot, now) {
            self.line_up(id);
        } else {
            self.close(id);
        }
    }
}
