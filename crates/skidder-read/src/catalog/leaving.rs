//! An input ends while the program continues: its readers are released. The next reader of the same files
//! finds their cursors in the registry, as after a start.
//!
//! Until then no scan looks for files. Open files stay open, without turns. A file that loses its name
//! meanwhile is read to its end by the reader that has it open.

use super::{Catalog, GoneFiles, SourceIds};
use crate::readers::{ReaderState, Readers};
use skidder_event::SourceId;
use std::sync::Arc;

/// The readers of an input that has ended.
pub struct Leaving {
    readers: Arc<Readers>,
    ids: Arc<SourceIds>,
    /// All its sources, with their keys.
    sources: Vec<(SourceId, Arc<str>)>,
    /// Sources with a turn; with `true`, those whose file can only be read by this reader, and which get more
    /// turns.
    reading: Vec<(SourceId, bool)>,
    /// Sources with an open file and no turns.
    parked: Vec<SourceId>,
    /// Files that are to be forgotten.
    gone: GoneFiles,
}

impl Catalog {
    /// Ends the turns of all readers. Open files without a name are read to their end first: they could not
    /// be opened again.
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
        let gone = GoneFiles::of(&self.files);
        let (mut reading, mut parked) = (Vec::new(), Vec::new());
        // Not in the order of a hash map: the simulated world replays the operations on the disk.
        for id in self.files.sources.ids_in_order() {
            let is_gone = self.files.sources.is_displaced(id)
                || self.files.readers.can_open_again(id) == Some(false);
            let is_last_way = is_gone && self.files.readers.look(id).is_some_and(|look| look.open);
            if is_last_way {
                self.files.readers.wake_if_open(id);
                reading.push((id, true));
            } else {
                self.files.readers.set_watched(id, None);
                self.files.readers.park(id);
                match self.files.readers.look(id) {
                    Some(look) if look.state == ReaderState::Reading => reading.push((id, false)),
                    Some(look) if look.open => parked.push(id),
                    _ => self.files.readers.remove(id),
                }
            }
        }
        let (ids, sources) = self.files.sources.into_keys();
        Leaving { readers: self.files.readers, ids, sources, reading, parked, gone }
    }
}

impl Catalog {
    /// The container whose log it is has ended: counts and logs it if no file of it was ever found, neither now nor in an
    /// earlier run.
    pub fn report_unseen(&self) {
        let input = &self.files.input;
        if input.metrics.has_matched() || self.saved.may_have_had_any() {
            return;
        }
        input.metrics.logs_unseen.add(1);
        let path = input.settings.scan.patterns.first().map(|pattern| pattern.as_str());
        tracing::warn!(
            path = path.unwrap_or_default(),
            "the log of a container was gone before it was read: no file of it was ever found"
        );
    }

    /// Groups of lines that wait for more are complete in all files that were read to their end, which are not written
    /// any more. Returns whether there were any.
    pub fn complete_groups(&self) -> bool {
        let ids = self.files.sources.ids_in_order().into_iter();
        ids.filter(|id| self.files.readers.complete_group(*id)).count() > 0
    }
}

impl Leaving {
    /// Checks again whether any reader has a turn. If none has, all of their batches have been admitted.
    pub fn is_at_rest(&mut self) -> bool {
        let (readers, parked) = (&self.readers, &mut self.parked);
        self.reading.retain(|&(id, is_last_way)| {
            let Some(look) = readers.look(id) else { return false };
            let at_rest = matches!(look.state, ReaderState::Idle | ReaderState::Closed);
            if is_last_way && look.open && !at_rest {
                return true;
            }
            // A group of lines waits for its timeout, because more lines may come.
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

    /// Wakes the readers of files that have lost their names since, to read them to their end. Returns
    /// whether there are any.
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

    /// Releases all readers: others may read the same files. Returns the files to be forgotten.
    pub fn end(self) -> GoneFiles {
        for id in self.parked {
            self.readers.remove(id);
        }
        for (id, key) in self.sources {
            self.ids.release(&key, id);
        }
        self.gone
    }

    /// Its sources.
    pub fn sources(&self) -> impl Iterator<Item = SourceId> {
        self.sources.iter().map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests;
