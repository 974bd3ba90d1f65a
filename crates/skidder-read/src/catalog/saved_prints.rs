//! Saved entries whose fingerprints are shorter or longer than usual, indexed so that no file is compared
//! with all of them.

use super::matching::{is_related, stem};
use crate::fingerprint::Fingerprint;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

/// A saved entry that cannot be found by the usual key.
pub(super) struct SavedPrint {
    pub(super) fingerprint: Fingerprint,
    pub(super) key: String,
    pub(super) path: Arc<Path>,
}

/// Saved entries with unusual fingerprints that no source has yet. Each keeps its number.
#[derive(Default)]
pub(super) struct SavedPrints {
    prints: Vec<Option<SavedPrint>>,
    left: usize,
    usual: u32,
    /// The shorter ones, by a hash of what related paths have in common. They prove little: only a file at
    /// their path, or one that was rotated away from it, may have such an entry.
    short: HashMap<u64, Vec<usize>>,
    /// The shorter ones of which only the pin is known.
    pinned: Vec<usize>,
    /// The others, by their length and hash.
    others: BTreeMap<u32, HashMap<[u8; 32], Vec<usize>>>,
}

impl SavedPrints {
    /// `usual` is the usual length of a fingerprint in bytes, `pins` the directory of the pins.
    pub(super) fn new(prints: Vec<SavedPrint>, usual: u32, pins: Option<&Path>) -> Self {
        let mut saved = Self { left: prints.len(), usual, ..Self::default() };
        for (at, print) in prints.into_iter().enumerate() {
            if print.fingerprint.len < usual
                && pins.is_some_and(|pins| print.path.starts_with(pins))
            {
                saved.pinned.push(at);
            }
            saved.list_of(&print).push(at);
            saved.prints.push(Some(print));
        }
        saved
    }

    /// The shorter ones of which only the pin is known, not the name.
    pub(super) fn pinned(&self) -> &[usize] {
        &self.pinned
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }

    pub(super) fn get(&self, at: usize) -> Option<&SavedPrint> {
        self.prints.get(at)?.as_ref()
    }

    /// Removes an entry that a source has now.
    pub(super) fn take(&mut self, at: usize) -> Option<SavedPrint> {
        let print = self.prints.get_mut(at)?.take()?;
        self.left -= 1;
        self.list_of(&print).retain(|other| *other != at);
        self.pinned.retain(|other| *other != at);
        let len = print.fingerprint.saved_len();
        if let Some(of_len) = self.others.get_mut(&len) {
            of_len.retain(|_, list| !list.is_empty());
            if of_len.is_empty() {
                self.others.remove(&len);
            }
        }
        Some(print)
    }

    /// The shorter ones that may belong to a file at `path`.
    pub(super) fn short_near<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = usize> + 'a {
        let list = self.short.get(&place_of(path)).into_iter().flatten().copied();
        list.filter(move |&at| self.get(at).is_some_and(|print| is_related(&print.path, path)))
    }

    /// All shorter ones: for a file that may have had any name.
    pub(super) fn short(&self) -> impl Iterator<Item = usize> + '_ {
        self.short.values().flatten().copied()
    }

    /// What the longer ones cover: one fingerprint of each length, with any hash.
    pub(super) fn other_lengths(&self) -> Vec<Fingerprint> {
        let one_of = |list: &HashMap<[u8; 32], Vec<usize>>| {
            let at = *list.values().flatten().next()?;
            Some(self.get(at)?.fingerprint)
        };
        self.others.values().filter_map(one_of).collect()
    }

    /// The longer ones with exactly this fingerprint.
    pub(super) fn others_like(&self, print: &Fingerprint) -> &[usize] {
        let of_len = self.others.get(&print.saved_len());
        of_len.and_then(|list| list.get(&print.hash)).map_or(&[], Vec::as_slice)
    }

    fn list_of(&mut self, print: &SavedPrint) -> &mut Vec<usize> {
        let SavedPrint { fingerprint, path, .. } = print;
        if fingerprint.len < self.usual {
            return self.short.entry(place_of(path)).or_default();
        }
        let of_len = self.others.entry(fingerprint.saved_len()).or_default();
        of_len.entry(fingerprint.hash).or_default()
    }
}

/// A hash that is the same for all paths that look like one file before and after a rotation.
fn place_of(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.parent().hash(&mut hasher);
    stem(path).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(bytes: &[u8], path: &str) -> SavedPrint {
        let path = Arc::from(Path::new(path));
        SavedPrint { fingerprint: Fingerprint::of(bytes), key: "key".to_owned(), path }
    }

    #[test]
    fn short_prints_are_found_by_place_and_long_ones_by_what_they_cover() {
        let mut saved = SavedPrints::new(
            vec![
                print(b"ab", "/a/one.log"),
                print(b"abcdef", "/a/one.log"),
                print(b"ab", "/b/one.log"),
                print(b"uvwxyz", "/c/two.log"),
            ],
            4,
            None,
        );
        let near = |saved: &SavedPrints, path: &str| -> Vec<usize> {
            saved.short_near(Path::new(path)).collect()
        };
        assert_eq!(near(&saved, "/a/one.log"), [0]);
        assert_eq!(near(&saved, "/a/one.log.1"), [0]);
        assert_eq!(near(&saved, "/b/one.log.gz"), [2]);
        assert_eq!(near(&saved, "/c/two.log"), [0_usize; 0]);
        let mut short: Vec<usize> = saved.short().collect();
        short.sort_unstable();
        assert_eq!(short, [0, 2]);
        assert_eq!(saved.other_lengths().len(), 1);
        assert_eq!(saved.others_like(&Fingerprint::of(b"uvwxyz")), [3]);
        assert_eq!(saved.take(3).unwrap().path.to_str(), Some("/c/two.log"));
        assert!(saved.take(3).is_none() && saved.get(3).is_none());
        assert!(saved.others_like(&Fingerprint::of(b"uvwxyz")).is_empty());
        saved.take(1).unwrap();
        assert!(saved.other_lengths().is_empty() && !saved.is_empty());
        assert_eq!(near(&saved, "/a/one.log"), [0]);
    }
}
