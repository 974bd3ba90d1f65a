//! A bounded store of idle decoders, so that opening a file does not allocate 46 KiB each time.

use crate::deflate::Inflate;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Idle decoders, shared by all readers of a process. Clones share the store.
///
/// Holds at most the number of decoders given to [`InflatePool::new`], about 46 KiB each; a decoder
/// that comes back to a full pool is freed. Decoders in use are not limited here.
#[derive(Clone)]
pub struct InflatePool {
    shared: Arc<Shared>,
}

struct Shared {
    idle: Mutex<Vec<Inflate>>,
    idle_max: usize,
}

impl InflatePool {
    /// A pool that keeps at most `idle_max` unused decoders. A few per worker thread are enough.
    pub fn new(idle_max: usize) -> Self {
        let idle = Mutex::new(Vec::with_capacity(idle_max));
        Self { shared: Arc::new(Shared { idle, idle_max }) }
    }

    /// Decoders that wait for use.
    pub fn idle(&self) -> usize {
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// A decoder at the start of a stream. It returns to the pool when dropped.
    pub(crate) fn take(&self) -> Pooled {
        let idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Pooled { inflate: Some(idle.unwrap_or_default()), pool: self.clone() }
    }
}

impl fmt::Debug for InflatePool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("InflatePool").field("idle", &self.idle()).finish()
    }
}

/// A decoder on loan from an [`InflatePool`].
#[derive(Debug)]
pub(crate) struct Pooled {
    /// `Some` until dropped.
    inflate: Option<Inflate>,
    pool: InflatePool,
}

const ON_LOAN: &str = "the decoder leaves only in `drop`";

impl Deref for Pooled {
    type Target = Inflate;

    fn deref(&self) -> &Inflate {
        self.inflate.as_ref().expect(ON_LOAN)
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut Inflate {
        self.inflate.as_mut().expect(ON_LOAN)
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let Some(mut inflate) = self.inflate.take() else { return };
        inflate.reset();
        let mut idle = self.pool.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.pool.shared.idle_max {
            idle.push(inflate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pool_frees_what_comes_back() {
        let pool = InflatePool::new(1);
        let first = pool.take();
        let second = pool.clone().take();
        drop(first);
        assert_eq!(pool.idle(), 1);
        drop(second);
        assert_eq!(pool.idle(), 1);
        let _third = pool.take();
        assert_eq!(pool.idle(), 0);
    }
}
