//! New sources, perhaps very many at once.

use super::Readers;
use super::slot::{Phase, Slot, Span};
use crate::reader::{InputContext, Reader};
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
        let mut slot = Slot {
            input: Arc::clone(input),
            before_turn: None,
            waits: None,
            trouble: None,
            phase: Phase::Closed,
            is_counted: false,
            decoders: 0,
            asked: None,
            last_data: Span::default(),
            opened: Span::default(),
            last_look: false,
            turns: 0,
            backoff: Span::default(),
            rested: false,
            teller,
            next_target: None,
            reader: Some(Box::new(reader)),
            rest: None,
        };
        slot.rest();
        let slot = Box::new(slot);
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
