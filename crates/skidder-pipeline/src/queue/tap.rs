//! A look at the events that pass: an open tap gets the admitted batches.
//!
//! While it is closed it costs a relaxed load for each batch. While it is open it costs an `Arc` more for each, and never a
//! wait: what does not fit, or comes while the other end is being emptied, is counted and not handed out.

use skidder_event::Batch;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// Batches that wait to be looked at.
const BATCHES_MAX: usize = 64;
/// Bytes of memory that they keep from being used again.
const BYTES_MAX: usize = 8 << 20;

/// The tap of a queue.
#[derive(Debug, Default)]
pub struct Tap {
    open: AtomicBool,
    held: Mutex<Held>,
    missed: AtomicU64,
}

#[derive(Debug, Default)]
struct Held {
    batches: VecDeque<Arc<Batch>>,
    bytes: usize,
}

impl Tap {
    /// Opens the tap: from now on it hands out batches.
    pub fn open(&self) {
        self.open.store(true, Ordering::Relaxed);
    }

    /// Whether a viewer is connected.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// How many batches wait to be looked at.
    pub fn waiting(&self) -> usize {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).batches.len()
    }

    /// Closes the tap; drops what was not taken.
    pub fn close(&self) {
        self.open.store(false, Ordering::Relaxed);
        self.take(&mut Vec::new());
    }

    /// Moves what has come to `out`; returns how many events came besides and were not kept.
    pub fn take(&self, out: &mut Vec<Arc<Batch>>) -> u64 {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        out.extend(held.batches.drain(..));
        held.bytes = 0;
        drop(held);
        self.missed.swap(0, Ordering::Relaxed)
    }

    /// Hands out a batch if a viewer is connected and there is room.
    #[inline]
    pub(super) fn offer(&self, batch: &Arc<Batch>) {
        if self.is_open() {
            self.keep(batch);
        }
    }

    #[cold]
    fn keep(&self, batch: &Arc<Batch>) {
        let bytes = batch.memory_bytes();
        let held = match self.held.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut held) = held
            && held.batches.len() < BATCHES_MAX
            && held.bytes + bytes <= BYTES_MAX
        {
            held.bytes += bytes;
            held.batches.push_back(Arc::clone(batch));
            return;
        }
        self.missed.fetch_add(batch.len() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::batch;

    fn taken(tap: &Tap) -> (usize, u64) {
        let mut out = Vec::new();
        let missed = tap.take(&mut out);
        (out.iter().map(|batch| batch.len()).sum(), missed)
    }

    #[test]
    fn a_closed_tap_hands_nothing_out_and_counts_nothing() {
        let tap = Tap::default();
        tap.offer(&Arc::new(batch(1, 0, 0, 3)));
        assert_eq!(taken(&tap), (0, 0));
        tap.open();
        tap.offer(&Arc::new(batch(1, 0, 0, 3)));
        tap.close();
        tap.offer(&Arc::new(batch(1, 0, 30, 3)));
        assert_eq!(taken(&tap), (0, 0));
    }

    #[test]
    fn what_does_not_fit_is_counted_and_nobody_waits() {
        let tap = Tap::default();
        tap.open();
        for at in 0..BATCHES_MAX as u64 + 2 {
            tap.offer(&Arc::new(batch(1, 0, at * 30, 3)));
        }
        assert_eq!(taken(&tap), (BATCHES_MAX * 3, 6));
        tap.offer(&Arc::new(batch(1, 0, 0, 1)));
        assert_eq!(taken(&tap), (1, 0), "there is room again");
        let held = tap.held.lock().expect("not poisoned");
        tap.offer(&Arc::new(batch(1, 0, 0, 2)));
        drop(held);
        assert_eq!(taken(&tap), (0, 2));
    }
}
