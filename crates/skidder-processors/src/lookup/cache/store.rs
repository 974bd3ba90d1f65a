//! What caches remember: values under keys, each until it expires, shared by id.

use super::file;
use crate::kinds::Context;
use skidder_event::Value;
use skidder_os::{Clock, Fs, Monotonic, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Most entries of a store whose `capacity` is 0, and the largest `capacity`. As at any
/// capacity, a put evicts the entry that expires first.
pub(super) const ENTRIES_MAX: usize = 1 << 20;

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Backend {
    /// With this id, gone with the program.
    Memory(String),
    /// In this file.
    File(PathBuf),
}

impl Backend {
    /// The file of an id: `cache_processor/ID` under `path.data`, as in Filebeat. Characters that
    /// cannot stand in the names of files everywhere become `_`.
    pub(super) fn file(id: String, data: &Path) -> Self {
        let name: String = id
            .chars()
            .map(|letter| if "/<>:\"\\|?*. ".contains(letter) { '_' } else { letter })
            .collect();
        Self::File(data.join("cache_processor").join(name))
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(id) => write!(out, "the memory cache `{id}`"),
            Self::File(path) => write!(out, "the cache `{}`", path.display()),
        }
    }
}

/// The stores that are in use.
#[derive(Debug, Default)]
pub struct Caches {
    stores: Mutex<HashMap<Backend, Weak<Store>>>,
}

impl Caches {
    /// The store at a backend. The first use reads its file; a missing file is an empty store.
    pub(super) fn open(
        &self,
        backend: &Backend,
        write_interval: Duration,
        context: &Context,
    ) -> io::Result<Arc<Store>> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.get(backend).and_then(Weak::upgrade) {
            if !write_interval.is_zero() {
                store.lock().write_interval.get_or_insert(write_interval);
            }
            return Ok(store);
        }
        let store = Arc::new(Store::open(backend, write_interval, context)?);
        stores.retain(|_, store| store.strong_count() > 0);
        stores.insert(backend.clone(), Arc::downgrade(&store));
        Ok(store)
    }
}

/// The settings of the first `put` of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// How long a value lives.
    pub(super) ttl: Duration,
    /// How many there are at most; 0 is [`ENTRIES_MAX`].
    pub(super) capacity: usize,
}

/// Values under keys. A store in a file is written every `write_interval`, if it is not zero, by the next
/// operation, and after its last use.
pub(super) struct Store {
    file: Option<PathBuf>,
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    entries: HashMap<Arc<str>, Entry>,
    /// The keys in the order in which they expire; the number keeps equal times apart.
    order: BTreeMap<(Timestamp, u64), Arc<str>>,
    next: u64,
    rules: Option<Rules>,
    /// The file differs from `entries`.
    changed: bool,
    written: Monotonic,
    write_interval: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Entry {
    value: Value,
    place: (Timestamp, u64),
}

impl Store {
    fn open(backend: &Backend, write_interval: Duration, context: &Context) -> io::Result<Self> {
        let clock = Arc::clone(&context.clock);
        let mut state = State {
            entries: HashMap::new(),
            order: BTreeMap::new(),
            next: 0,
            rules: None,
            changed: false,
            written: clock.monotonic(),
            write_interval: (!write_interval.is_zero()).then_some(write_interval),
        };
        let file = match backend {
            Backend::Memory(_) => None,
            Backend::File(path) => Some(path.clone()),
        };
        if let Some(path) = &file {
            let now = clock.wall();
            for (key, value, expires) in file::read(&*context.fs, path)? {
                if expires >= now {
                    state.insert(&key, value, expires, ENTRIES_MAX);
                }
            }
            state.changed = false;
        }
        // A trial begins with the existing entries, and does not change them.
        let file = file.filter(|_| !context.trial);
        Ok(Self { file, fs: Arc::clone(&context.fs), clock, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the rules of the first `put`; returns earlier rules that differ, which stay.
    pub(super) fn set_rules(&self, rules: Rules) -> Option<Rules> {
        let mut state = self.lock();
        let first = *state.rules.get_or_insert(rules);
        (first != rules).then_some(first)
    }

    /// Remembers a value.
    pub(super) fn put(&self, key: &str, value: Value) {
        let mut state = self.lock();
        let Some((rules, expires)) = self.expiry(&mut state) else { return };
        let capacity = if rules.capacity == 0 { ENTRIES_MAX } else { rules.capacity };
        state.insert(key, value, expires, capacity.min(ENTRIES_MAX));
        self.write_if_due(&mut state);
    }

    /// The same without a copy for a value that is remembered already; `false`, and no
    /// change, if the value there is another one.
    pub(super) fn put_again(&self, key: &str, is_same: impl FnOnce(&Value) -> bool) -> bool {
        let mut state = self.lock();
        let Some((_, expires)) = self.expiry(&mut state) else { return false };
        let is_there = state.keep(key, expires, is_same);
        if is_there {
            self.write_if_due(&mut state);
        }
        is_there
    }

    /// The rules, and when a value put now expires; `None` before there are rules. Forgets expired
    /// values.
    fn expiry(&self, state: &mut State) -> Option<(Rules, Timestamp)> {
        let now = self.clock.wall();
        state.forget_expired(now);
        let rules = state.rules?;
        let ttl = i64::try_from(rules.ttl.as_nanos()).unwrap_or(i64::MAX);
        Some((rules, Timestamp(now.0.saturating_add(ttl))))
    }

    /// The result of `take` on the stored value, if it has not expired.
    pub(super) fn get<T>(&self, key: &str, take: impl FnOnce(&Value) -> T) -> Option<T> {
        let mut state = self.lock();
        let now = self.clock.wall();
        let value = match state.entries.get(key) {
            Some(entry) if entry.place.0 >= now => Some(take(&entry.value)),
            Some(_) => {
                state.remove(key);
                None
            }
            None => None,
        };
        self.write_if_due(&mut state);
        value
    }

    /// Forgets a value, if there is one.
    pub(super) fn delete(&self, key: &str) {
        let mut state = self.lock();
        state.remove(key);
        self.write_if_due(&mut state);
    }

    fn write_if_due(&self, state: &mut State) {
        let now = self.clock.monotonic();
        let due = state.write_interval.is_some_and(|every| now.since(state.written) >= every);
        if due {
            state.written = now;
            self.write(state);
        }
    }

    /// Writes the file if it is not up to date. Reports an error; the next write tries again.
    fn write(&self, state: &mut State) {
        let Some(path) = &self.file else { return };
        if !state.changed {
            return;
        }
        state.forget_expired(self.clock.wall());
        let entries = state.order.iter().filter_map(|((expires, _), key)| {
            state.entries.get(key).map(|entry| (&**key, &entry.value, *expires))
        });
        match file::write(&*self.fs, path, entries) {
            Ok(()) => state.changed = false,
            Err(error) => {
                let path = path.display();
                tracing::error!(%path, %error, "cannot write a cache; it is kept in memory");
            }
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let mut state = std::mem::replace(
            &mut *self.state.get_mut().unwrap_or_else(PoisonError::into_inner),
            State {
                entries: HashMap::new(),
                order: BTreeMap::new(),
                next: 0,
                rules: None,
                changed: false,
                written: Monotonic::default(),
                write_interval: None,
            },
        );
        self.write(&mut state);
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Store").field("file", &self.file).finish_non_exhaustive()
    }
}

impl State {
    fn insert(&mut self, key: &str, value: Value, expires: Timestamp, capacity: usize) {
        self.remove(key);
        while self.entries.len() >= capacity
            && let Some((_, first)) = self.order.pop_first()
        {
            self.entries.remove(&first);
        }
        let (key, place): (Arc<str>, _) = (key.into(), (expires, self.next));
        self.next += 1;
        self.order.insert(place, Arc::clone(&key));
        self.entries.insert(key, Entry { value, place });
        self.changed = true;
    }

    /// Lets a value that is the same expire later; `false` if there is none.
    fn keep(
        &mut self,
        key: &str,
        expires: Timestamp,
        is_same: impl FnOnce(&Value) -> bool,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| is_same(&entry.value)) else {
            return false;
        };
        let place = (expires, self.next);
        if let Some(key) = self.order.get(&entry.place).map(Arc::clone) {
            self.order.insert(place, key);
            self.order.remove(&entry.place);
        }
        entry.place = place;
        self.next += 1;
        self.changed = true;
        true
    }

    fn remove(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.place);
            self.changed = true;
        }
    }

    fn forget_expired(&mut self, now: Timestamp) {
        while let Some(first) = self.order.first_entry()
            && first.key().0 < now
        {
            self.entries.remove(&first.remove());
            self.changed = true;
        }
    }
}
