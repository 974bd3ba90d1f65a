//! New sources, perhaps very many at once, and files that are open already.

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
    /// Adds a source, and wakes it if `wake`; see [`Readers::call`]. `watched` is as for
    /// [`Readers::set_watched`].
    pub(crate) fn begin(
        &self,
        input: &Arc<InputContext>,
        reader: Reader,
        watched: Option<Arc<AtomicBool>>,
        wake: bool,
    ) {
        let id = reader.id;
        let slot = Box::new(Slot::new(Arc::clone(input), reader, watched));
        let mut state = self.lock();
        state.slots.insert(id, slot);
        if wake {
            state.line_up(id);
            state.prepare();
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
    /// Allocates what stays of the sources in the line whose files are not open yet.
    pub(super) fn prepare(&mut self) {
        let waiting = self.unopened.len();
        self.boxes.prepare(waiting);
    }

    /// Takes the open file of a closed source, which sleeps at its end from now on.
    pub(super) fn keep_open(&mut self, id: SourceId, file: Box<dyn File>, now: Monotonic) {
        let Some(slot) = self.slots.get(&id) else { return };
        let is_open = slot.reader.as_ref().is_some_and(|reader| reader.is_open());
        if slot.phase != Phase::Closed || is_open {
            return;
        }
        self.take_open(id, file, now);
        self.idle(id, now);
    }
}
