//! Fields of things that come and go: containers, pods, allocations.
//!
//! The fields of a thing stand under its keys. A thing that is gone stays for as long as it is looked up
//! within the time of the clean-up, since its last lines are read later. Sources look up when they are bound and
//! not for each event. So before anything is forgotten the epoch grows once, and sources with unread lines bind
//! again, which looks up; a thing that is not looked up until that time has passed once more is forgotten.

use skidder_event::Map;
use skidder_os::{Clock, Monotonic};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often to look for what can be forgotten.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Keys at once. A node has some hundred pods; more than this is no node, and what comes is left out.
const KEYS_MAX: usize = 200_000;

/// Fields by key, shared by a watcher and a processor.
pub(crate) struct Store {
    state: Mutex<State>,
    changed: Condvar,
    clock: Arc<dyn Clock>,
    /// How long a thing that is gone is kept.
    cleanup: Duration,
}

struct State {
    known: HashMap<Box<str>, Arc<Map>>,
    gone: HashMap<Box<str>, Gone>,
    epoch: u64,
    contact: Contact,
}

/// Something that is gone.
#[derive(Clone, Copy)]
struct Gone {
    looked_up: Monotonic,
    /// Whether the epoch grew for it since.
    announced: bool,
}

/// Whether the watcher has reached its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    /// There is no answer yet.
    None,
    /// The first attempt was in vain.
    Failed,
    /// There was a list.
    Listed,
}

impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Store").field("cleanup", &self.cleanup).finish_non_exhaustive()
    }
}

impl Store {
    pub(crate) fn new(clock: Arc<dyn Clock>, cleanup: Duration) -> Self {
        let state =
            State { known: HashMap::new(), gone: HashMap::new(), epoch: 0, contact: Contact::None };
        Self { state: Mutex::new(state), changed: Condvar::new(), clock, cleanup }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that there is now: what was known and is not in it is gone.
    pub(crate) fn replace(&self, things: Vec<(String, Map)>) {
        let mut state = self.state();
        let now = self.clock.monotonic();
        let there: HashSet<&str> = things.iter().map(|(key, _)| key.as_str()).collect();
        let lost: Vec<Box<str>> =
            state.known.keys().filter(|key| !there.contains(&***key)).cloned().collect();
        for key in lost {
            state.gone.entry(key).or_insert(Gone { looked_up: now, announced: false });
        }
        for (key, fields) in things {
            state.put(&key, fields);
        }
        if state.contact != Contact::Listed {
            state.contact = Contact::Listed;
            state.epoch += 1;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A thing that came or changed.
    pub(crate) fn put(&self, key: &str, fields: Map) {
        self.state().put(key, fields);
    }

    /// A thing that went.
    pub(crate) fn forget(&self, key: &str) {
        let looked_up = self.clock.monotonic();
        let mut state = self.state();
        if state.known.contains_key(key) {
            state.gone.entry(key.into()).or_insert(Gone { looked_up, announced: false });
        }
    }

    /// The first attempt has failed.
    pub(crate) fn failed(&self) {
        let mut state = self.state();
        if state.contact == Contact::None {
            state.contact = Contact::Failed;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The fields of a thing.
    pub(crate) fn get(&self, key: &str) -> Option<Arc<Map>> {
        let mut state = self.state();
        let fields = state.known.get(key).cloned()?;
        let looked_up = self.clock.monotonic();
        if let Some(gone) = state.gone.get_mut(key) {
            *gone = Gone { looked_up, announced: false };
        }
        Some(fields)
    }

    /// Grows with every change.
    pub(crate) fn epoch(&self) -> u64 {
        self.state().epoch
    }

    /// Whether there was a list.
    pub(crate) fn is_listed(&self) -> bool {
        self.state().contact == Contact::Listed
    }

    /// Waits for the end of the first attempt, at most for `limit`.
    pub(crate) fn wait(&self, limit: Duration) {
        let waits = |state: &mut State| state.contact == Contact::None;
        let waited = self.changed.wait_timeout_while(self.state(), limit, waits);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Announces what will be forgotten, and forgets what was announced and not looked up.
    pub(crate) fn sweep(&self) {
        let mut state = self.state();
        let State { known, gone, epoch, .. } = &mut *state;
        let now = self.clock.monotonic();
        let mut announced = false;
        gone.retain(|key, thing| {
            let age = now.since(thing.looked_up);
            if thing.announced && age >= self.cleanup * 2 {
                known.remove(key);
                return false;
            }
            announced |= !thing.announced && age >= self.cleanup;
            thing.announced |= age >= self.cleanup;
            true
        });
        *epoch += u64::from(announced);
    }

    /// Sweeps for ever.
    pub(crate) async fn keep_clean(&self) {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            self.sweep();
        }
    }
}

impl State {
    fn put(&mut self, key: &str, fields: Map) {
        self.gone.remove(key);
        let full = self.known.len() >= KEYS_MAX;
        match self.known.get_mut(key) {
            Some(old) if **old == fields => return,
            Some(old) => *old = Arc::new(fields),
            None if full => {
                tracing::debug!(key, most = KEYS_MAX, "too many things are known; one is left out");
                return;
            }
            None => drop(self.known.insert(key.into(), Arc::new(fields))),
        }
        self.epoch += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_testkit::SimClock;

    fn fields(text: &str) -> Map {
        let mut map = Map::new();
        map.insert("name", text);
        map
    }

    #[test]
    fn the_epoch_grows_with_changes_alone() {
        let store = Store::new(Arc::new(SimClock::new()), Duration::from_mins(1));
        store.replace(vec![("a".to_owned(), fields("1"))]);
        let epoch = store.epoch();
        store.replace(vec![("a".to_owned(), fields("1"))]);
        store.put("a", fields("1"));
        assert_eq!(store.epoch(), epoch);
        store.put("a", fields("2"));
        assert_eq!(store.epoch(), epoch + 1);
        assert_eq!(store.get("a").as_deref(), Some(&fields("2")));
        assert_eq!(store.get("b"), None);
    }

    #[test]
    fn what_is_gone_stays_while_somebody_asks_for_it_and_is_announced_before_it_is_forgotten() {
        let clock = SimClock::new();
        let store = Store::new(Arc::new(clock.clone()), Duration::from_mins(1));
        let things = ["used", "unused", "back"].map(|key| (key.to_owned(), fields(key)));
        store.replace(things.to_vec());
        store.forget("used");
        store.replace(vec![("used".to_owned(), fields("used"))]);
        store.forget("used");
        let epoch = store.epoch();
        for _ in 0..5 {
            clock.advance(Duration::from_secs(59));
            store.sweep();
            assert!(store.get("used").is_some());
        }
        assert_eq!(store.epoch(), epoch + 1, "`unused` and `back` are announced once");
        assert_eq!((store.get("unused"), store.get("back")), (None, None));
        clock.advance(Duration::from_mins(1));
        store.sweep();
        assert_eq!(store.epoch(), epoch + 2, "now `used` is announced");
        store.put("used", fields("used"));
        clock.advance(Duration::from_hours(1));
        store.sweep();
        assert!(store.get("used").is_some(), "it came back");
    }
}
