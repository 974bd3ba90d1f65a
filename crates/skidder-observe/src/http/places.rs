//! Who keeps a place among the connections.
//!
//! A client that sends half a request, or does not read its answer, costs nothing but its place. When all are taken the one
//! that has waited longest for its client gives its place up to whoever comes; what the program itself is still working on,
//! and what streams within bounds of its own, keeps it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Connections served at once.
pub(super) const CONNECTIONS_MAX: usize = 64;
/// Requests at once that wait for the scanner or a disk; further ones are refused, so that places for short ones are left.
const LONG_MAX: usize = CONNECTIONS_MAX / 2;
/// Of a place whose client is not waited for.
const WORKS: u64 = u64::MAX;

/// The places that are taken.
pub(super) struct Places {
    taken: Mutex<Vec<Arc<Place>>>,
    /// Counts the moments at which somebody began to wait: an order without a clock.
    moments: AtomicU64,
    long: Arc<Semaphore>,
}

/// One of them.
struct Place {
    /// The moment since which its client is waited for, or [`WORKS`].
    waits_since: AtomicU64,
    given_up: Notify,
}

/// A place that is taken, until it is dropped.
pub(super) struct Taken {
    places: Arc<Places>,
    place: Arc<Place>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            taken: Mutex::default(),
            moments: AtomicU64::new(0),
            long: Arc::new(Semaphore::new(LONG_MAX)),
        }
    }
}

impl Places {
    /// Whether a connection would get a place.
    pub(super) fn has_one(&self) -> bool {
        let taken = self.lock();
        taken.len() < CONNECTIONS_MAX || oldest(&taken).is_some()
    }

    /// Takes a place; if there is none, that of whoever is waited for longest.
    pub(super) fn take(self: &Arc<Self>) -> Taken {
        let waits_since = AtomicU64::new(self.moment());
        let place = Arc::new(Place { waits_since, given_up: Notify::new() });
        let mut taken = self.lock();
        if taken.len() >= CONNECTIONS_MAX
            && let Some(at) = oldest(&taken)
        {
            tracing::debug!(
                "all places are taken; the HTTP client that is waited for longest gives its own up"
            );
            taken.swap_remove(at).given_up.notify_one();
        }
        taken.push(Arc::clone(&place));
        Taken { places: Arc::clone(self), place }
    }

    /// Room for a request that may wait long; nothing if there are too many of them.
    pub(super) fn long(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.long).try_acquire_owned().ok()
    }

    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Place>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place whose client is waited for longest.
fn oldest(taken: &[Arc<Place>]) -> Option<usize> {
    let since = |place: &Arc<Place>| place.waits_since.load(Ordering::Relaxed);
    let places = taken.iter().map(since).enumerate().filter(|(_, since)| *since != WORKS);
    places.min_by_key(|(_, since)| *since).map(|(at, _)| at)
}

impl Taken {
    /// From here on the program works on an answer.
    pub(super) fn works(&self) {
        self.place.waits_since.store(WORKS, Ordering::Relaxed);
    }

    /// From here on the client is waited for: it reads an answer, and may send the next request behind it.
    pub(super) fn waits(&self) {
        self.place.waits_since.store(self.places.moment(), Ordering::Relaxed);
    }

    /// Ends when the place is needed for somebody else.
    pub(super) async fn given_up(&self) {
        self.place.given_up.notified().await;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.places.lock().retain(|place| !Arc::ptr_eq(place, &self.place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_given_up(taken: &Taken) -> bool {
        !taken.places.lock().iter().any(|place| Arc::ptr_eq(place, &taken.place))
    }

    #[test]
    fn the_one_that_is_waited_for_longest_gives_up_and_who_works_does_not() {
        let places = Arc::new(Places::default());
        let mut all: Vec<Taken> = (0..CONNECTIONS_MAX).map(|_| places.take()).collect();
        all[0].works();
        all[1].works();
        all[1].waits();
        all.push(places.take());
        let given_up: Vec<usize> = (0..all.len()).filter(|at| is_given_up(&all[*at])).collect();
        assert_eq!(given_up, [2]);
        all.iter().for_each(Taken::works);
        assert!(!places.has_one(), "all work");
        all.remove(0);
        assert!(places.has_one(), "one has ended");
    }

    #[test]
    fn half_of_the_places_are_kept_for_short_requests() {
        let places = Places::default();
        let long: Vec<_> = std::iter::from_fn(|| places.long()).collect();
        assert_eq!(long.len(), LONG_MAX);
        drop(long);
        assert!(places.long().is_some());
    }
}
