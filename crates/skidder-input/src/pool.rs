//! The large parts of batches, for the next batches of an input.
//!
//! Memory of this size comes from the system and goes back to it with each batch otherwise, and is zeroed by it.

use skidder_event::{Batch, Parts, Recycle};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Parts that are kept.
const KEPT_MAX: usize = 8;

/// Bytes of the largest buffer that is kept.
const KEPT_BYTES_MAX: usize = 2 << 20;

/// Rows that a kept buffer has room for.
const KEPT_ROWS_MAX: usize = 4 << 10;

/// Fields and values of events that kept parts have room for.
const KEPT_FIELDS_MAX: usize = 32 << 10;

/// Keeps parts while the input is busy.
#[derive(Debug, Default)]
pub struct PartsPool(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    parts: Vec<Parts>,
    is_busy: bool,
}

impl PartsPool {
    /// Empty parts, with the room of earlier ones if there are any. Parts come back until [`PartsPool::release`].
    pub fn take(&self) -> Parts {
        let mut kept = self.lock();
        kept.is_busy = true;
        kept.parts.pop().unwrap_or_default()
    }

    /// Lets a batch return its parts when it has its verdicts.
    pub fn lend(self: &Arc<Self>, batch: &mut Batch) {
        batch.set_recycle(Arc::clone(self) as Arc<dyn Recycle>);
    }

    /// Frees what is kept, and what comes back before parts are taken again: the input has nothing to read.
    pub fn release(&self) {
        *self.lock() = Kept::default();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recycle for PartsPool {
    fn recycle(&self, mut parts: Parts) {
        if parts.bytes.capacity() > KEPT_BYTES_MAX {
            parts.bytes = Vec::new();
        }
        if parts.rows.capacity() > KEPT_ROWS_MAX {
            parts.rows = Vec::new();
        }
        if parts.nodes.capacity() > KEPT_FIELDS_MAX || parts.cells.capacity() > KEPT_FIELDS_MAX {
            (parts.nodes, parts.cells) = (Vec::new(), Vec::new());
        }
        parts.bytes.clear();
        parts.rows.clear();
        parts.nodes.clear();
        parts.cells.clear();
        let mut kept = self.lock();
        if kept.is_busy && kept.parts.len() < KEPT_MAX {
            kept.parts.push(parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: usize) -> Parts {
        Parts { bytes: vec![b'x'; bytes], ..Parts::default() }
    }

    #[test]
    fn parts_are_used_again_while_the_input_is_busy() {
        let pool = PartsPool::default();
        pool.recycle(of(10));
        assert_eq!(pool.take().bytes.capacity(), 0, "nothing was taken yet");
        pool.recycle(of(1000));
        let again = pool.take();
        assert!(again.bytes.is_empty() && again.bytes.capacity() >= 1000);
        pool.release();
        pool.recycle(again);
        assert_eq!(pool.take().bytes.capacity(), 0, "it was released");
    }

    #[test]
    fn few_parts_of_usual_size_are_kept() {
        let pool = PartsPool::default();
        pool.take();
        (0..2 * KEPT_MAX).for_each(|_| pool.recycle(of(10)));
        assert_eq!(pool.lock().parts.len(), KEPT_MAX);
        pool.take();
        pool.recycle(of(KEPT_BYTES_MAX + 1));
        assert_eq!(pool.take().bytes.capacity(), 0);
    }
}
