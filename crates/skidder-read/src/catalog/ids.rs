//! Ids of sources, and the keys that several inputs compete for.

use skidder_event::SourceId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Assigns the ids of sources of all inputs of a process.
#[derive(Debug, Default)]
pub struct SourceIds {
    next: AtomicU64,
    /// Claimed keys of inputs that may have the same keys, with the source that has each.
    claimed: Mutex<HashMap<Box<str>, SourceId>>,
}

impl SourceIds {
    /// An id that no source had before, for a source of this input.
    pub fn next(&self, input: usize) -> SourceId {
        SourceId::of_input(input, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Claims a key for a source. Returns whether the source has it now.
    pub(crate) fn claim(&self, key: &str, id: SourceId) -> bool {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        *claimed.entry(key.into()).or_insert(id) == id
    }

    /// Releases a key.
    pub(crate) fn release(&self, key: &str, id: SourceId) {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        if claimed.get(key) == Some(&id) {
            claimed.remove(key);
        }
    }
}
