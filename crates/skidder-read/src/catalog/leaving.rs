//! An input ends while the program goes on: its readers are let go of. Who reads the same files next finds in the
//! registry how far they were, as after a start.

use super::{Catalog, SourceIds};
use crate::readers::{ReaderState, Readers};
use skidder_event::SourceId;
use std::sync::Arc;

/// The readers of an input that has ended.
pub struct Leaving {
    readers: Arc<Readers>,
    ids: Arc<SourceIds>,
    /// All its sources, with their keys.
    sources: Vec<(SourceId, Arc<str>)>,
    /// Those that still have a reader, and whether what its file has can be read in no other way.
    reading: Vec<(SourceId, bool)>,
}

impl Catalog {
    /// Lets go of all readers. Those of files that have lost their names, and are open, read to the end first: nobody
    /// could open them again.
    pub fn leave(self) -> Leaving {
        let metrics = &self.input.metrics;
        for gauge in [
            &metrics.files_matched,
            &metrics.files_held,
            &metrics.pinned_files,
            &metrics.pinned_bytes,
        ] {
            gauge.set(0);
        }
        if let Some(peer) = &self.peer {
            peer.agree(std::collections::HashMap::new());
            peer.pins(std::collections::HashSet::new());
        }
        let mut reading = Vec::new();
        // Not in the order of a hash map: the simulated world replays what is asked of the disk.
        let mut in_order: Vec<_> = self.sources.iter().collect();
        in_order.sort_unstable_by_key(|(id, _)| **id);
        for (id, known) in in_order {
            let is_gone = !known.placed || self.readers.can_open_again(*id) == Some(false);
            let is_last_way = is_gone && self.readers.look(*id).is_some_and(|look| look.open);
            if is_last_way {
                self.readers.wake_if_open(*id);
            } else {
                self.readers.remove(*id);
            }
            if is_last_way || self.readers.look(*id).is_some() {
                reading.push((*id, is_last_way));
            }
        }
        let sources = self.sources.iter().map(|(id, known)| (*id, Arc::clone(&known.key)));
        Leaving {
            readers: Arc::clone(&self.readers),
            ids: Arc::clone(&self.ids),
            sources: sources.collect(),
            reading,
        }
    }
}

impl Leaving {
    /// Looks again; says whether no reader is left. What they gave out has been admitted then.
    pub fn is_over(&mut self) -> bool {
        let readers = &self.readers;
        self.reading.retain(|&(id, is_last_way)| {
            let Some(look) = readers.look(id) else { return false };
            let at_rest = matches!(look.state, ReaderState::Idle | ReaderState::Closed);
            if is_last_way && look.open && !at_rest {
                return true;
            }
            // A group of lines has its time, in which more may come.
            if is_last_way && readers.give_out(id) {
                return true;
            }
            readers.remove(id);
            readers.look(id).is_some()
        });
        if !self.reading.is_empty() {
            return false;
        }
        for (id, key) in &self.sources {
            self.ids.release(key, *id);
        }
        true
    }

    /// Its sources.
    pub fn sources(&self) -> impl Iterator<Item = SourceId> {
        self.sources.iter().map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests;
