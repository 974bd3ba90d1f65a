//! An input ends while the program goes on: its readers are let go of. Who reads the same files next finds in the
//! registry how far they were, as after a start.
//!
//! Until then nobody looks for files. Those that are open stay open, without turns: what loses its name meanwhile is
//! read to its end by the reader that it has.

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
    /// Those that have a turn or, where what its file has can be read in no other way, will have some.
    reading: Vec<(SourceId, bool)>,
    /// Those that have their file open and no turns.
    parked: Vec<SourceId>,
}

impl Catalog {
    /// Ends the turns of all readers. Those of files that have lost their names, and are open, read to the end first: nobody
    /// could open them again.
    pub fn leave(self) -> Leaving {
        let metrics = &self.files.input.metrics;
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
        let (mut reading, mut parked) = (Vec::new(), Vec::new());
        // Not in the order of a hash map: the simulated world replays what is asked of the disk.
        for id in self.files.sources.ids_in_order() {
            let is_gone = self.files.sources.is_displaced(id)
                || self.files.readers.can_open_again(id) == Some(false);
            let is_last_way = is_gone && self.files.readers.look(id).is_some_and(|look| look.open);
            if is_last_way {
                self.files.readers.wake_if_open(id);
                reading.push((id, true));
            } else {
                self.files.readers.set_teller(id, None);
                self.files.readers.park(id);
                match self.files.readers.look(id) {
                    Some(look) if look.state == ReaderState::Reading => reading.push((id, false)),
                    Some(look) if look.open => parked.push(id),
                    _ => self.files.readers.remove(id),
                }
            }
        }
        let (ids, sources) = self.files.sources.into_keys();
        Leaving { readers: self.files.readers, ids, sources, reading, parked }
    }
}

impl Leaving {
    /// Looks again; says whether no reader has a turn. What they gave out has been admitted then.
    pub fn is_at_rest(&mut self) -> bool {
        let (readers, parked) = (&self.readers, &mut self.parked);
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
            if !is_last_way && !at_rest {
                return true;
            }
            if !is_last_way && look.open {
                parked.push(id);
                return false;
            }
            readers.remove(id);
            readers.look(id).is_some()
        });
        self.reading.is_empty()
    }

    /// Wakes the readers of files that have lost their names since; says whether there are any, which are read to the end
    /// then.
    pub fn wake_lost(&mut self) -> bool {
        let readers = &self.readers;
        let lost = self.parked.extract_if(.., |id| readers.can_open_again(*id) == Some(false));
        let before = self.reading.len();
        self.reading.extend(lost.map(|id| (id, true)));
        for (id, _) in &self.reading[before..] {
            readers.wake_if_open(*id);
        }
        self.reading.len() > before
    }

    /// Lets go of all readers: others may read the same files.
    pub fn end(self) {
        for id in self.parked {
            self.readers.remove(id);
        }
        for (id, key) in self.sources {
            self.ids.release(&key, id);
        }
    }

    /// Its sources.
    pub fn sources(&self) -> impl Iterator<Item = SourceId> {
        self.sources.iter().map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests;
