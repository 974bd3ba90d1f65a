//! Pooled buffers: pieces of request bodies that come back when the last view of them is gone.

use bytes::Bytes;
use skidder_encode::WINDOW_BYTES;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A piece is closed when it has this many bytes: it fits a core's L2 cache with the bytes written
/// next to it, so that the compressor finds it there.
pub const CHUNK_BYTES: usize = 256 << 10;
/// Room besides for the end of the piece before, and for the item that crosses the line.
const SLACK_BYTES: usize = WINDOW_BYTES + (32 << 10);
/// A buffer that grew beyond this (a very long line) is given back to the system.
const KEPT_BYTES_MAX: usize = 2 * (CHUNK_BYTES + SLACK_BYTES);
/// Most free buffers that are kept, 320 KiB each.
const KEPT_MAX: usize = 64;
/// Free buffers are given back to the system when none was taken for so long, and for twice as long at most.
const UNUSED: Duration = Duration::from_secs(5);

/// Buffers for one output. Cloning gives another handle.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    free: Arc<Mutex<Free>>,
}

#[derive(Debug, Default)]
struct Free {
    buffers: Vec<Vec<u8>>,
    /// One was taken since [`Buffers::give_back`] was called.
    is_used: bool,
}

impl Buffers {
    /// An empty buffer with room for a piece.
    pub fn take(&self) -> Vec<u8> {
        let mut free = self.lock();
        free.is_used = true;
        let buffer = free.buffers.pop();
        drop(free);
        buffer.unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES + SLACK_BYTES))
    }

    /// Gives free buffers back to the system when they are not used: a burst may have needed many. Returns never.
    pub async fn give_back_unused(&self) {
        loop {
            tokio::time::sleep(UNUSED).await;
            self.give_back();
        }
    }

    /// Gives the free buffers back if none was taken since the last call.
    fn give_back(&self) {
        let mut free = self.lock();
        if !std::mem::take(&mut free.is_used) {
            free.buffers = Vec::new();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it immutable and shared; it comes back here by itself.
    pub fn seal(&self, buffer: Vec<u8>) -> Bytes {
        Bytes::from_owner(Sealed { buffer, home: self.clone() })
    }
}

struct Sealed {
    buffer: Vec<u8>,
    home: Buffers,
}

impl AsRef<[u8]> for Sealed {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        if buffer.capacity() > KEPT_BYTES_MAX {
            return;
        }
        buffer.clear();
        let mut free = self.home.lock();
        if free.buffers.len() < KEPT_MAX {
            free.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_with_its_last_view_and_a_grown_one_does_not() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take();
        buffer.extend_from_slice(b"hello");
        let place = buffer.as_ptr();
        let whole = buffers.seal(buffer);
        let part = whole.slice(1..3);
        drop(whole);
        let other = buffers.take();
        assert_ne!(other.as_ptr(), place);
        drop(part);
        let again = buffers.take();
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
        let mut grown = buffers.take();
        grown.resize(KEPT_BYTES_MAX + 1, 0);
        let capacity = grown.capacity();
        drop(buffers.seal(grown));
        assert!(buffers.take().capacity() < capacity);
    }

    #[test]
    fn free_buffers_are_given_back_when_none_was_taken_for_a_while() {
        let buffers = Buffers::default();
        let kept = |buffers: &Buffers| buffers.lock().buffers.len();
        drop(buffers.seal(buffers.take()));
        buffers.give_back();
        assert_eq!(kept(&buffers), 1, "it was just used");
        buffers.give_back();
        assert_eq!(kept(&buffers), 0);
        let taken = buffers.take();
        buffers.give_back();
        drop(buffers.seal(taken));
        assert_eq!(kept(&buffers), 1);
    }
}
