//! Sources by what they can be found with.

use super::Known;
use super::prefixes::Prefixes;
use skidder_event::SourceId;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};

/// Nearly always one, which then takes no memory of its own.
pub(super) type Ids = SmallVec<[SourceId; 2]>;

/// Sources by what they can be found with.
#[derive(Default)]
pub(super) struct Index {
    pub(super) by_print: HashMap<[u8; 32], Ids>,
    pub(super) by_inode: HashMap<(u64, u64), Ids>,
    /// Lengths of fingerprints in use that are not longer than usual, with the number of sources.
    pub(super) lengths: BTreeMap<u32, usize>,
    /// The same for fingerprints that begin with the first byte of the file.
    pub(super) whole: BTreeMap<u32, usize>,
    /// What sources with these lengths begin with.
    pub(super) prefixes: Prefixes,
    /// Sources of which that is not known.
    pub(super) untraced: usize,
}

impl Index {
    pub(super) fn insert(&mut self, id: SourceId, known: &Known) {
        // One that is known by a name may have none.
        if known.fingerprint.len > 0 {
            self.by_print.entry(known.fingerprint.hash).or_default().push(id);
        }
        if let Some(shared) = &known.shared {
            self.by_print.entry(**shared).or_default().push(id);
        }
        self.by_inode.entry((known.device, known.inode)).or_default().push(id);
        let print = &known.fingerprint;
        let lengths = if print.whole { &mut self.whole } else { &mut self.lengths };
        *lengths.entry(print.len).or_default() += 1;
        match known.trace {
            Some(trace) => self.prefixes.insert(trace),
            None => self.untraced += 1,
        }
    }

    pub(super) fn remove(&mut self, id: SourceId, known: &Known) {
        forget(&mut self.by_print, &known.fingerprint.hash, id);
        if let Some(shared) = &known.shared {
            forget(&mut self.by_print, shared, id);
        }
        forget(&mut self.by_inode, &(known.device, known.inode), id);
        let print = &known.fingerprint;
        let lengths = if print.whole { &mut self.whole } else { &mut self.lengths };
        if let Some(count) = lengths.get_mut(&print.len) {
            *count -= 1;
            if *count == 0 {
                lengths.remove(&print.len);
            }
        }
        match known.trace {
            Some(trace) => self.prefixes.remove(trace),
            None => self.untraced -= 1,
        }
    }
}

fn forget<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Ids>, key: &K, id: SourceId) {
    if let Some(ids) = map.get_mut(key) {
        ids.retain(|have| *have != id);
        if ids.is_empty() {
            map.remove(key);
        }
    }
}
