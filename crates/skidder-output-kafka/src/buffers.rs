//! Memory that records are written into, used again from batch to batch: that of a batch is large enough for the
//! system to take it back and give it anew, page by page, each time.

use std::sync::{Arc, Mutex, PoisonError};

/// Bytes kept in unused buffers.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// Most room that is made before it is needed: more than this a batch has only for the sake of one large record.
pub(crate) const ROOM_BYTES_MAX: usize = 512 << 10;

/// Shared by all clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers(Arc<Mutex<Free>>);

#[derive(Debug, Default)]
struct Free {
    list: Vec<Vec<u8>>,
    /// Room of all of them.
    bytes: usize,
}

impl Buffers {
    /// Some memory, empty, with room for so many bytes, but not for more than [`ROOM_BYTES_MAX`]: what grows is copied
    /// each time. That which came back last is the most likely to be in the processor's cache.
    pub(crate) fn take(&self, bytes: usize) -> Vec<u8> {
        // Of few sizes, so that what comes back is of use.
        let bytes = bytes.min(ROOM_BYTES_MAX);
        let bytes = if bytes == 0 { 0 } else { bytes.next_power_of_two() };
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = free.list.iter().rposition(|buffer| buffer.capacity() >= bytes) else {
            return Vec::with_capacity(bytes);
        };
        let buffer = free.list.remove(place);
        free.bytes -= buffer.capacity();
        buffer
    }

    /// Gives memory back.
    pub(crate) fn put(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.capacity() == 0 || buffer.capacity() > KEPT_BYTES_MAX {
            return;
        }
        free.bytes += buffer.capacity();
        free.list.push(buffer);
        // The buffer unused for the longest time is too small for the current records.
        while free.bytes > KEPT_BYTES_MAX {
            free.bytes -= free.list.remove(0).capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_up_to_a_bound() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take(2000);
        assert!(buffer.capacity() >= 2000);
        buffer.extend_from_slice(&[1; 1000]);
        let place = buffer.as_ptr();
        buffers.put(buffer);
        assert!(buffers.take(3000).capacity() >= 3000);
        let again = buffers.take(2000);
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
        for _ in 0..100 {
            buffers.put(Vec::with_capacity(1 << 20));
        }
        let free = buffers.0.lock().expect("nobody failed");
        assert!(free.bytes <= KEPT_BYTES_MAX && free.list.len() == KEPT_BYTES_MAX >> 20);
    }
}
