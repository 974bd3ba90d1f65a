//! Names of sources, and the keys that several inputs compete for.

use skidder_event::SourceId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Names sources over all inputs of a process.
#[derive(Debug, Default)]
pub struct SourceIds {
    next: AtomicU64,
    /// Keys of inputs that may have the same ones, with the source that has each.
    claimed: Mutex<HashMap<Box<str>, SourceId>>,
}

impl SourceIds {
    /// A name that no source had before, for one of this input.
    pub fn next(&self, input: usize) -> SourceId {
        SourceId::of_input(input, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Takes a key for a source; says whether it has it now.
    pub(crate) fn claim(&self, key: &str, id: SourceId) -> bool {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        *claimed.entry(key.into()).or_insert(id) == id
    }

    /// Gives a key back.
    pub(crate) fn release(&self, key: &str, id: SourceId) {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        if claimed.get(key) == Some(&id) {
            claimed.remove(key);
        }
    }
}
