//! A limit on connections under which idle clients make room for new ones.
//!
//! A client that sends half a request, or does not read its answer, costs nothing but its place. When all places are taken,
//! the connection that has waited longest for its client is closed for a new one; a connection whose request is being
//! answered keeps its place.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Of a place whose client is not waited for.
const WORKS: u64 = u64::MAX;

/// The connections of a server.
#[derive(Debug)]
pub struct Places {
    most: usize,
    taken: Mutex<Vec<Arc<Entry>>>,
    /// Counts the moments at which a connection began to wait: an order without a clock.
    moments: AtomicU64,
    long: Arc<Semaphore>,
}

#[derive(Debug)]
struct Entry {
    /// The moment since which its client is waited for, or [`WORKS`].
    waits_since: AtomicU64,
    given_up: Notify,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    entry: Arc<Entry>,
}

impl Places {
    /// For `most` connections at once, of which `long_max` may have a request that takes long.
    pub fn new(most: usize, long_max: usize) -> Self {
        let long = Arc::new(Semaphore::new(long_max));
        Self { most, taken: Mutex::default(), moments: AtomicU64::new(0), long }
    }

    /// Whether a new connection would get a place.
    pub fn has_one(&self) -> bool {
        let taken = self.lock();
        taken.len() < self.most || oldest(&taken).is_some()
    }

    /// Takes a place; if there is none, that of the connection whose client is waited for longest.
    pub fn take(self: &Arc<Self>) -> Place {
        let waits_since = AtomicU64::new(self.moment());
        let entry = Arc::new(Entry { waits_since, given_up: Notify::new() });
        let mut taken = self.lock();
        if taken.len() >= self.most
            && let Some(at) = oldest(&taken)
        {
            tracing::debug!(
                "all places are taken; the client that is waited for longest gives its own up"
            );
            taken.swap_remove(at).given_up.notify_one();
        }
        taken.push(Arc::clone(&entry));
        Place { places: Arc::clone(self), entry }
    }

    /// Room for a request that may take long; `None` if there are too many of them.
    pub fn long(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.long).try_acquire_owned().ok()
    }

    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Entry>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place whose client is waited for longest.
fn oldest(taken: &[Arc<Entry>]) -> Option<usize> {
    let since = |entry: &Arc<Entry>| entry.waits_since.load(Ordering::Relaxed);
    let places = taken.iter().map(since).enumerate().filter(|(_, since)| *since != WORKS);
    places.min_by_key(|(_, since)| *since).map(|(at, _)| at)
}

impl Place {
    /// From here on the program works on an answer.
    pub fn works(&self) {
        self.entry.waits_since.store(WORKS, Ordering::Relaxed);
    }

    /// From here on the client is waited for: it reads an answer, and may send the next request behind it.
    pub fn waits(&self) {
        self.entry.waits_since.store(self.places.moment(), Ordering::Relaxed);
    }

    /// Ends when another connection needs the place.
    pub async fn given_up(&self) {
        self.entry.given_up.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().retain(|entry| !Arc::ptr_eq(entry, &self.entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTIONS_MAX: usize = 64;
    const LONG_MAX: usize = 32;

    fn is_given_up(place: &Place) -> bool {
        !place.places.lock().iter().any(|entry| Arc::ptr_eq(entry, &place.entry))
    }

    #[test]
    fn the_one_that_is_waited_for_longest_gives_up_and_who_works_does_not() {
        let places = Arc::new(Places::new(CONNECTIONS_MAX, LONG_MAX));
        let mut all: Vec<Place> = (0..CONNECTIONS_MAX).map(|_| places.take()).collect();
        all[0].works();
        all[1].works();
        all[1].waits();
        all.push(places.take());
        let given_up: Vec<usize> = (0..all.len()).filter(|at| is_given_up(&all[*at])).collect();
        assert_eq!(given_up, [2]);
        all.iter().for_each(Place::works);
        assert!(!places.has_one(), "all work");
        all.remove(0);
        assert!(places.has_one(), "one has ended");
    }

    #[test]
    fn half_of_the_places_are_kept_for_short_requests() {
        let places = Places::new(CONNECTIONS_MAX, LONG_MAX);
        let long: Vec<_> = std::iter::from_fn(|| places.long()).collect();
        assert_eq!(long.len(), LONG_MAX);
        drop(long);
        assert!(places.long().is_some());
    }
}
