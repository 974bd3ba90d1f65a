//! Indices of sources.

use super::Source;
use super::prefixes::Prefixes;
use foldhash::HashMap;
use skidder_event::SourceId;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

/// Sources in the order in which they were added. Nearly always it is one, which takes no memory of its own.
#[derive(Clone)]
pub(super) enum Ids {
    One(SourceId),
    /// Any number but one.
    #[expect(clippy::box_collection, reason = "half the size of a list, and rare")]
    Others(Box<Vec<SourceId>>),
}

impl Ids {
    pub(super) fn as_slice(&self) -> &[SourceId] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
            Self::Others(ids) => ids,
        }
    }

    fn push(&mut self, id: SourceId) {
        match self {
            Self::One(first) => *self = Self::Others(Box::new(vec![*first, id])),
            Self::Others(ids) => ids.push(id),
        }
    }

    /// Removes one. Returns whether any is left.
    fn take_out(&mut self, id: SourceId) -> bool {
        match self {
            Self::One(first) => *first != id,
            Self::Others(ids) => {
                ids.retain(|have| *have != id);
                match ids.as_slice() {
                    [] => return false,
                    [one] => *self = Self::One(*one),
                    _ => {}
                }
                true
            }
        }
    }
}

/// The first bytes of a hash: enough for an index, because the whole hash is compared afterwards.
type HashStart = [u8; 8];

fn start_of(hash: &[u8; 32]) -> HashStart {
    *hash.first_chunk().expect("a hash has 32 bytes")
}

/// Indices of sources.
#[derive(Default)]
pub(super) struct Index {
    /// By the start of the hashes of their fingerprints.
    by_print: HashMap<HashStart, Ids>,
    by_inode: HashMap<(u64, u64), Ids>,
    /// Lengths of fingerprints in use that are not longer than usual, with the number of sources.
    lengths: BTreeMap<u32, usize>,
    /// The same for fingerprints that begin with the first byte of the file, although usual ones do not.
    whole: BTreeMap<u32, usize>,
    /// The beginnings of sources with these lengths.
    prefixes: Prefixes,
    /// Number of sources whose beginning is not known.
    untraced: usize,
}

impl Index {
    /// Sources that may have this hash: theirs has the same first bytes.
    pub(super) fn with_hash(&self, hash: &[u8; 32]) -> &[SourceId] {
        self.by_print.get(&start_of(hash)).map_or(&[], Ids::as_slice)
    }

    /// Sources with this inode, by their device and its number.
    pub(super) fn with_inode(&self, inode: (u64, u64)) -> &[SourceId] {
        self.by_inode.get(&inode).map_or(&[], Ids::as_slice)
    }

    /// Lengths of fingerprints in use, in order, without those that begin with the first byte of the file.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u32> {
        self.lengths.keys().copied()
    }

    /// Lengths of fingerprints in use that begin with the first byte of the file although others do not, in order.
    pub(super) fn whole_lengths(&self) -> impl Iterator<Item = u32> {
        self.whole.keys().copied()
    }

    /// Whether the cheap hash of every short fingerprint is known.
    pub(super) fn is_fully_traced(&self) -> bool {
        self.untraced == 0
    }

    /// Whether a source may begin with bytes that have this cheap hash.
    pub(super) fn has_prefix(&self, trace: u64) -> bool {
        self.prefixes.has(trace)
    }

    /// Reserves room for this many more sources.
    pub(super) fn reserve(&mut self, sources: usize) {
        self.by_print.reserve(sources);
        self.by_inode.reserve(sources);
    }

    pub(super) fn insert(&mut self, id: SourceId, source: &Source) {
        // A source that is identified by name may have none.
        if source.fingerprint.len > 0 {
            add(&mut self.by_print, start_of(&source.fingerprint.hash), id);
        }
        if let Some(shared) = &source.shared {
            add(&mut self.by_print, start_of(shared), id);
        }
        add(&mut self.by_inode, (source.device, source.inode), id);
        let print = &source.fingerprint;
        let lengths = if print.whole { &mut self.whole } else { &mut self.lengths };
        *lengths.entry(print.len).or_default() += 1;
        match source.trace {
            Some(trace) => self.prefixes.insert(trace),
            None => self.untraced += 1,
        }
    }

    pub(super) fn remove(&mut self, id: SourceId, source: &Source) {
        forget(&mut self.by_print, &start_of(&source.fingerprint.hash), id);
        if let Some(shared) = &source.shared {
            forget(&mut self.by_print, &start_of(shared), id);
        }
        forget(&mut self.by_inode, &(source.device, source.inode), id);
        let print = &source.fingerprint;
        let lengths = if print.whole { &mut self.whole } else { &mut self.lengths };
        if let Some(count) = lengths.get_mut(&print.len) {
            *count -= 1;
            if *count == 0 {
                lengths.remove(&print.len);
            }
        }
        match source.trace {
            Some(trace) => self.prefixes.remove(trace),
            None => self.untraced -= 1,
        }
    }
}

fn forget<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Ids>, key: &K, id: SourceId) {
    if let Some(ids) = map.get_mut(key)
        && !ids.take_out(id)
    {
        map.remove(key);
    }
}

fn add<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Ids>, key: K, id: SourceId) {
    match map.entry(key) {
        Entry::Occupied(mut ids) => ids.get_mut().push(id),
        Entry::Vacant(none) => {
            none.insert(Ids::One(id));
        }
    }
}
