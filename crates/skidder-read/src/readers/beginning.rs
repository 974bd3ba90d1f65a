//! New sources, perhaps very many at once, and files that somebody else has opened.

use super::Readers;
use super::schedule::State;
use super::slot::{Phase, Slot};
use crate::reader::{InputContext, Reader};
use skidder_event::SourceId;
use skidder_os::{File, Monotonic};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// New sources in line for which a worker is called before the scan that found them has taken in all of them: being
/// called for each one costs more than its turn.
const CALLED_FOR: usize = 32;

impl Readers {
    /// Adds a source, with what says whether somebody tells of every write to it, and wakes it if `wake` says so; see
    /// [`Readers::call`].
    pub(crate) fn begin(
        &self,
        input: &Arc<InputContext>,
        reader: Reader,
        teller: Option<Arc<AtomicBool>>,
        wake: bool,
    ) {
        let id = reader.id;
        let slot = Box::new(Slot::new(Arc::clone(input), reader, teller));
        let mut state = self.lock();
        state.slots.insert(id, slot);
        if wake {
            state.line_up(id);
            if state.ready.len() >= CALLED_FOR {
                self.call_one(state);
            }
        }
    }

    /// Makes room for so many more sources.
    pub(crate) fn reserve(&self, sources: usize) {
        self.lock().slots.reserve(sources);
    }

    /// Calls a worker for those that [`Readers::begin`] has lined up, if one waits. It calls others if it finds more.
    pub(crate) fn call(&self) {
        let state = self.lock();
        if !state.ready.is_empty() {
            self.call_one(state);
        }
    }
}

impl State {
    /// Takes the open file of a closed source, which sleeps at its end from now on.
    pub(super) fn keep_open(&mut self, id: SourceId, file: Box<dyn File>, now: Monotonic) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.rouse(id);
        let Some(reader) = &mut slot.reader else { return };
        if slot.phase != Phase::Closed || reader.is_open() {
            return;
        }
        reader.take_file(&slot.input, file);
        let awake = slot.awake_mut();
        awake.is_counted = true;
        (awake.turns, awake.opened, awake.last_data) = (0, now.into(), now.into());
        self.open += 1;
        *self.open_of.entry(slot.input_key()).or_default() += 1;
        self.idle(id, now);
    }
}
