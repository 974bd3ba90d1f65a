//! Sources by what they can be found with.

use super::Known;
use skidder_event::SourceId;
use std::collections::HashMap;

/// Sources by what they can be found with.
#[derive(Default)]
pub(super) struct Index {
    pub(super) by_print: HashMap<[u8; 32], Vec<SourceId>>,
    pub(super) by_inode: HashMap<(u64, u64), Vec<SourceId>>,
    /// Lengths of fingerprints in use that are not longer than usual, with the number of sources.
    pub(super) lengths: HashMap<u32, usize>,
    /// The same for fingerprints that begin with the first byte of the file.
    pub(super) whole: HashMap<u32, usize>,
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
    }
}

fn forget<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Vec<SourceId>>, key: &K, id: SourceId) {
    if let Some(ids) = map.get_mut(key) {
        ids.retain(|have| *have != id);
        if ids.is_empty() {
            map.remove(key);
        }
    }
}
