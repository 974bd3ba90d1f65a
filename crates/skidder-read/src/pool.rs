//! Buffers for batches, used again and again.

use skidder_event::{Parts, Recycle};
use std::sync::{Mutex, PoisonError};

/// Bytes that a reader fills at most in one turn, but for longer lines. Fits the second-level cache.
pub const CHUNK_BYTES: usize = 256 << 10;

/// Room behind the lines for what processors add, before a batch has to grow.
const SPARE_BYTES: usize = 32 << 10;

/// Buffers kept for reuse: bounds what the pool holds to about 5 MiB, to 13 MiB where parsers make fields, and to 21 MiB
/// where processors do.
const KEPT_MAX: usize = 16;

/// Fields of the events of a batch whose room is kept: 32 bytes each.
const KEPT_NODES_MAX: usize = 16 << 10;

/// Values of fields that processors made whose room is kept, 16 bytes each: 20 in each event of a turn of short lines.
const KEPT_CELLS_MAX: usize = 64 << 10;

/// A pool of buffers, each [`CHUNK_BYTES`] long. Bytes are not cleared between uses.
#[derive(Debug, Default)]
pub struct BufferPool {
    kept: Mutex<Vec<Parts>>,
}

impl BufferPool {
    /// A buffer of [`CHUNK_BYTES`] with whatever was in it before, and an empty vector of rows.
    pub fn take(&self) -> Parts {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| {
            // Zeros of the system: pages that are never filled take no memory.
            let mut bytes = vec![0; CHUNK_BYTES + SPARE_BYTES];
            bytes.truncate(CHUNK_BYTES);
            Parts { bytes, ..Parts::default() }
        })
    }

    /// Frees the buffers that are not in use: for a program at rest.
    pub fn give_back(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new();
    }
}

impl Recycle for BufferPool {
    fn recycle(&self, mut parts: Parts) {
        // What grew for a long line, or is a small copy, is not worth keeping.
        if parts.bytes.len() < CHUNK_BYTES || parts.bytes.capacity() > 2 * CHUNK_BYTES {
            return;
        }
        parts.bytes.truncate(CHUNK_BYTES);
        parts.rows.clear();
        if parts.nodes.capacity() > KEPT_NODES_MAX {
            parts.nodes = Vec::new();
        }
        parts.nodes.clear();
        if parts.cells.capacity() > KEPT_CELLS_MAX {
            parts.cells = Vec::new();
        }
        parts.cells.clear();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX {
            kept.push(parts);
        }
    }
}
