//! Memory that records are written into, used again from batch to batch: that of a batch is large enough for the
//! system to take it back and give it anew, page by page, each time.

use std::sync::{Arc, Mutex, PoisonError};

/// What is kept while nobody uses it.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// Shared by all who clone it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers(Arc<Mutex<Free>>);

#[derive(Debug, Default)]
struct Free {
    list: Vec<Vec<u8>>,
    /// Room of all of them.
    bytes: usize,
}

impl Buffers {
    /// Some memory, empty.
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let buffer = free.list.pop().unwrap_or_default();
        free.bytes -= buffer.capacity();
        buffer
    }

    /// Gives memory back.
    pub(crate) fn put(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.capacity() > 0 && free.bytes + buffer.capacity() <= KEPT_BYTES_MAX {
            free.bytes += buffer.capacity();
            free.list.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_up_to_a_bound() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take();
        buffer.extend_from_slice(&[1; 1000]);
        let place = buffer.as_ptr();
        buffers.put(buffer);
        let again = buffers.take();
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
        for _ in 0..100 {
            buffers.put(Vec::with_capacity(1 << 20));
        }
        let free = buffers.0.lock().expect("nobody failed");
        assert!(free.bytes <= KEPT_BYTES_MAX && free.list.len() == KEPT_BYTES_MAX >> 20);
    }
}
