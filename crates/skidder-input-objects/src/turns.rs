//! Turns of the objects of an input: as many at once as there are threads for them, with memory that is lent.
//!
//! An object owns what it cannot do without: the state of its decoder, and what of it has arrived. What only a turn needs
//! (buffers, and a batch on its way to the queue) exists once for each place, however many objects are open.

use skidder_read::{CHUNK_BYTES, Scratch};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes of all open objects that have arrived and are not read yet, as they are stored.
const ARRIVED_BYTES_MAX: usize = 4 << 20;
/// The same of each object, however many are open.
const ARRIVED_BYTES_MIN: usize = 32 << 10;

/// See the module's text.
#[derive(Debug)]
pub struct Turns {
    places: Semaphore,
    /// Memory that no turn uses.
    idle: Mutex<Vec<Scratch>>,
    /// Objects that are being read.
    open: AtomicUsize,
}

/// The right to take a turn, and to send on its batch.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    _permit: SemaphorePermit<'a>,
}

/// An object that is being read, until this is dropped.
#[derive(Debug)]
pub(crate) struct Open<'a>(&'a AtomicUsize);

impl Turns {
    /// As many at once as this runtime has threads: `max_procs`.
    pub fn of_runtime() -> Self {
        let places = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
        Self {
            places: Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)),
            idle: Mutex::default(),
            open: AtomicUsize::new(0),
        }
    }

    /// Waits for a place; who came first has the next one.
    pub(crate) async fn place(&self) -> Option<Place<'_>> {
        let permit = self.places.acquire().await.ok()?;
        Some(Place { _permit: permit })
    }

    /// Memory for a turn.
    pub(crate) fn lend(&self) -> Scratch {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_default()
    }

    /// Memory that a turn had.
    pub(crate) fn give_back(&self, scratch: Scratch) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }

    /// One object more is being read.
    pub(crate) fn open(&self) -> Open<'_> {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(&self.open)
    }

    /// Bytes that an object takes before its next turn: what all may have is shared.
    pub(crate) fn share(&self) -> usize {
        let open = self.open.load(Ordering::Relaxed).max(1);
        (ARRIVED_BYTES_MAX / open).clamp(ARRIVED_BYTES_MIN, CHUNK_BYTES)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn there_are_as_many_places_as_threads_and_memory_goes_from_one_to_the_next() {
        let turns = Turns::of_runtime();
        let mut places = Vec::new();
        for _ in 0..3 {
            places.push(turns.place().await.unwrap());
        }
        let mut waiting = pin!(turns.place());
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        places.pop();
        assert!(waiting.as_mut().poll(&mut context).is_ready());
        for _ in 0..5 {
            turns.give_back(turns.lend());
        }
        assert_eq!(turns.idle.lock().unwrap().len(), 1);
    }

    #[test]
    fn what_has_arrived_is_shared_by_all_open_objects() {
        let turns = Turns::of_runtime();
        assert_eq!(turns.share(), CHUNK_BYTES);
        let open: Vec<Open<'_>> = (0..64).map(|_| turns.open()).collect();
        assert_eq!(turns.share(), 64 << 10);
        let more: Vec<Open<'_>> = (0..1000).map(|_| turns.open()).collect();
        assert_eq!(turns.share(), ARRIVED_BYTES_MIN);
        drop((open, more));
        assert_eq!(turns.share(), CHUNK_BYTES);
    }
}
