//! Buffers that connections read into, shared by all connections of an input.
//!
//! A connection has none while it is idle: it takes one when it looks for bytes, and gives it back if there are none. A
//! buffer that is full goes into the queue as the bytes of a batch and comes back when the batch has its verdicts; few
//! bytes are copied out, so that the memory of the queue is what it counts.

use skidder_event::{Batch, Parts, Recycle};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are read at once, at most.
pub(super) const BUFFER_BYTES: usize = 256 << 10;

/// Room behind them for what processors add.
const SPARE_BYTES: usize = 32 << 10;

/// Buffers that are kept for reuse.
const KEPT_MAX: usize = 8;

/// Events of a batch, at most.
pub(super) const BATCH_EVENTS: usize = 2048;

/// Fields and values of events whose room is kept.
const KEPT_FIELDS_MAX: usize = 32 << 10;

/// Keeps buffers.
#[derive(Debug)]
pub(crate) struct Buffers {
    kept: Mutex<Vec<Parts>>,
    /// Bytes of each.
    bytes: usize,
}

impl Default for Buffers {
    fn default() -> Self {
        Self::new(BUFFER_BYTES)
    }
}

impl Buffers {
    /// Buffers of so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { kept: Mutex::default(), bytes }
    }

    /// An empty buffer.
    pub(crate) fn take(&self) -> Parts {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| {
            // Pages that are never filled take no memory.
            Parts { bytes: Vec::with_capacity(self.bytes + SPARE_BYTES), ..Parts::default() }
        })
    }

    /// Whether so many bytes are enough for a buffer instead of a copy.
    pub(crate) fn suit(&self, bytes: usize) -> bool {
        (self.bytes / 4..=self.bytes).contains(&bytes)
    }

    /// Takes a buffer back.
    pub(crate) fn put(&self, mut parts: Parts) {
        if !self.is_ours(&parts) {
            return;
        }
        parts.bytes.clear();
        parts.rows.clear();
        parts.nodes.clear();
        parts.cells.clear();
        if parts.nodes.capacity() > KEPT_FIELDS_MAX || parts.cells.capacity() > KEPT_FIELDS_MAX {
            (parts.nodes, parts.cells) = (Vec::new(), Vec::new());
        }
        if parts.rows.capacity() > 2 * BATCH_EVENTS {
            parts.rows = Vec::new();
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX {
            kept.push(parts);
        }
    }

    /// The filled part of a buffer as parts of a batch: the buffer itself if it is full enough, else a copy.
    pub(crate) fn filled(&self, mut parts: Parts, bytes: usize) -> (Parts, bool) {
        if self.is_ours(&parts) && bytes >= self.bytes / 4 {
            parts.bytes.truncate(bytes);
            return (parts, true);
        }
        let small = Parts {
            bytes: parts.bytes[..bytes].to_vec(),
            rows: parts.rows.clone(),
            ..Parts::default()
        };
        self.put(parts);
        (small, false)
    }

    /// Lets a batch return its buffer.
    pub(crate) fn lend(self: &Arc<Self>, batch: &mut Batch) {
        batch.set_recycle(Arc::clone(self) as Arc<dyn Recycle>);
    }

    /// Whether it has the size of our buffers; processors, and long messages, make it grow.
    fn is_ours(&self, parts: &Parts) -> bool {
        (self.bytes..=2 * self.bytes).contains(&parts.bytes.capacity())
    }
}

impl Recycle for Buffers {
    fn recycle(&self, parts: Parts) {
        self.put(parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_bytes_are_copied_and_a_full_buffer_goes_as_it_is() {
        let buffers = Arc::new(Buffers::default());
        for (bytes, is_lent) in [(10, false), (BUFFER_BYTES / 2, true)] {
            let mut parts = buffers.take();
            parts.bytes.resize(bytes + 3, b'x');
            let place = parts.bytes.as_ptr();
            let (filled, lent) = buffers.filled(parts, bytes);
            assert_eq!((filled.bytes.len(), lent), (bytes, is_lent));
            assert_eq!(filled.bytes.as_ptr() == place, is_lent);
            buffers.put(filled);
        }
        assert_eq!(buffers.kept.lock().unwrap().len(), 1, "the small one is not kept");
        for _ in 0..2 * KEPT_MAX {
            buffers.put(Parts { bytes: Vec::with_capacity(BUFFER_BYTES), ..Parts::default() });
        }
        assert_eq!(buffers.kept.lock().unwrap().len(), KEPT_MAX);
    }
}
