//! The results of the last texts, bounded in number and bytes.
//!
//! Two halves: what is used goes into the young one; when that is full, it becomes the old one, and what was
//! in the old one and not used since is forgotten.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Texts that are remembered; beyond it the oldest are forgotten.
const ENTRIES_MAX: usize = 2000;

/// Bytes of texts and results that are remembered; beyond it the oldest are forgotten.
const BYTES_MAX: usize = 1 << 20;

/// What a table needs for an entry beside its text and its result.
const ENTRY_BYTES: usize = 64;

/// A result that takes memory.
pub(super) trait HeapSize {
    /// How many bytes, about.
    fn bytes(&self) -> usize;
}

/// Results by text.
#[derive(Debug)]
pub(super) struct Recent<T>(Mutex<Halves<T>>);

type Half<T> = HashMap<Box<[u8]>, Arc<T>, foldhash::fast::RandomState>;

#[derive(Debug)]
struct Halves<T> {
    young: Half<T>,
    old: Half<T>,
    /// Of the young half.
    bytes: usize,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::new(Halves { young: Half::default(), old: Half::default(), bytes: 0 }))
    }
}

impl<T: HeapSize> Recent<T> {
    /// The result of a text: the one that is remembered, or that of `make`. Two threads may both make it.
    pub(super) fn get(&self, text: &[u8], make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(known) = self.known(text) {
            return known;
        }
        let new = Arc::new(make());
        self.halves().add(text.into(), Arc::clone(&new));
        new
    }

    fn known(&self, text: &[u8]) -> Option<Arc<T>> {
        let mut halves = self.halves();
        if let Some(known) = halves.young.get(text) {
            return Some(Arc::clone(known));
        }
        let (text, known) = halves.old.remove_entry(text)?;
        halves.add(text, Arc::clone(&known));
        Some(known)
    }

    fn halves(&self) -> std::sync::MutexGuard<'_, Halves<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: HeapSize> Halves<T> {
    fn add(&mut self, text: Box<[u8]>, result: Arc<T>) {
        let bytes = text.len() + result.bytes() + ENTRY_BYTES;
        if self.young.len() >= ENTRIES_MAX / 2 || self.bytes + bytes > BYTES_MAX / 2 {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
            self.bytes = 0;
        }
        if self.young.insert(text, result).is_none() {
            self.bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    impl HeapSize for usize {
        fn bytes(&self) -> usize {
            *self
        }
    }

    /// Whether a text had to be made.
    fn is_new(recent: &Recent<usize>, text: &str, bytes: usize) -> bool {
        let made = Cell::new(false);
        recent.get(text.as_bytes(), || {
            made.set(true);
            bytes
        });
        made.get()
    }

    #[test]
    fn what_is_used_again_and_again_is_remembered() {
        let recent = Recent::default();
        assert!(is_new(&recent, "often", 1));
        for number in 0..3 * ENTRIES_MAX {
            assert!(is_new(&recent, &format!("once {number}"), 1));
            assert!(!is_new(&recent, "often", 1), "after {number} others");
        }
        assert!(is_new(&recent, "once 0", 1), "it is long ago");
    }

    #[test]
    fn neither_many_entries_nor_large_ones_take_more_than_the_bounds() {
        for (count, bytes) in [(5 * ENTRIES_MAX, 1), (100, BYTES_MAX / 5), (5, 2 * BYTES_MAX)] {
            let recent = Recent::default();
            for number in 0..count {
                is_new(&recent, &number.to_string(), bytes);
                let halves = recent.halves();
                let entries = halves.young.len() + halves.old.len();
                assert!(entries <= ENTRIES_MAX, "{entries} entries of {bytes} bytes");
                let all = halves.young.values().chain(halves.old.values());
                let kept: usize = all.map(|result| result.bytes()).sum();
                let largest = bytes + ENTRY_BYTES;
                assert!(kept <= BYTES_MAX.max(2 * largest), "{kept} bytes by {bytes}");
            }
        }
    }
}
