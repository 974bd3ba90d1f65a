//! A cache of answers, each for its own time, at most a number of things.

use skidder_os::Monotonic;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// A bounded cache from texts. Full, it forgets any one entry for a new one, as Filebeat's does.
#[derive(Debug)]
pub(crate) struct Cache<T> {
    entries: RwLock<HashMap<Box<str>, (T, Monotonic)>>,
    max: usize,
}

impl<T: Clone> Cache<T> {
    /// With room for `initial` entries at once, and never more than `max`.
    pub(crate) fn new(initial: usize, max: usize) -> Self {
        Self { entries: RwLock::new(HashMap::with_capacity(initial)), max }
    }

    /// The answer, if it is cached and not too old.
    pub(crate) fn get(&self, key: &str, now: Monotonic) -> Option<T> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(key).filter(|(_, until)| now < *until).map(|(value, _)| value.clone())
    }

    /// Remembers `value` until then.
    pub(crate) fn put(&self, key: &str, value: T, until: Monotonic) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.max && !entries.contains_key(key) {
            let victim = entries.keys().next().cloned();
            victim.map(|victim| entries.remove(&victim));
        }
        entries.insert(key.into(), (value, until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn entries_end_with_their_time_and_never_are_too_many() {
        let cache = Cache::new(0, 2);
        let at = |seconds| Monotonic(Duration::from_secs(seconds));
        cache.put("a", 1, at(10));
        assert_eq!(cache.get("a", at(9)), Some(1));
        assert_eq!(cache.get("a", at(10)), None);
        cache.put("a", 2, at(20));
        cache.put("b", 3, at(20));
        cache.put("b", 4, at(20));
        assert_eq!((cache.get("a", at(0)), cache.get("b", at(0))), (Some(2), Some(4)));
        cache.put("c", 5, at(20));
        let left = ["a", "b", "c"].iter().filter(|key| cache.get(key, at(0)).is_some()).count();
        assert_eq!((left, cache.get("c", at(0))), (2, Some(5)));
    }
}
