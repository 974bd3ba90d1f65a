//! Bounded stores of idle decoders and their memory.

use crate::framed::bzip2::Tables;
use crate::gzip::InflatePool;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use zstd_safe::DCtx;

/// Idle zstd decoders with more memory than this are freed: the window of `zstd -19`, and its tables.
const ZSTD_IDLE_BYTES_MAX: usize = 10 << 20;

/// Idle memory of bzip2 (3.6 MiB each) and of lz4 (up to 8 MiB) that is kept; more is freed.
const LARGE_IDLE_MAX: usize = 2;

/// The memory that the decoders of a process share. Clones share the same stores.
///
/// Holds at most the number of idle decoders given to [`DecoderPool::new`] for gzip and zstd, and
/// two for bzip2 and lz4. Decoders in use are not limited here. The dictionary of xz is not kept.
#[derive(Clone, Debug)]
pub struct DecoderPool {
    pub(crate) inflates: InflatePool,
    pub(crate) zstd: Pool<Context>,
    pub(crate) bzip2: Pool<Tables>,
    pub(crate) lz4: Pool<Blocks>,
}

impl DecoderPool {
    /// A pool that keeps at most `idle_max` unused decoders of each kind. A few per worker thread are enough.
    pub fn new(idle_max: usize) -> Self {
        let large_max = idle_max.min(LARGE_IDLE_MAX);
        Self {
            inflates: InflatePool::new(idle_max),
            zstd: Pool::new(idle_max),
            bzip2: Pool::new(large_max),
            lz4: Pool::new(large_max),
        }
    }

    /// The decoders of gzip.
    pub fn inflates(&self) -> &InflatePool {
        &self.inflates
    }
}

/// A zstd decoder.
pub(crate) struct Context(pub(crate) DCtx<'static>);

/// Memory of an lz4 decoder: a block as stored and as decoded, and what precedes it.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) stored: Vec<u8>,
    pub(crate) decoded: Vec<u8>,
    pub(crate) window: Vec<u8>,
}

/// What can be kept for the next user.
pub(crate) trait Reusable: Sized + Send {
    /// A new one; `None` if there is no memory.
    fn create() -> Option<Self>;
    /// Makes it as good as new, or says that it should be freed.
    fn reset(&mut self) -> bool;
}

impl Reusable for Context {
    fn create() -> Option<Self> {
        DCtx::try_create().map(Self)
    }

    fn reset(&mut self) -> bool {
        self.0.sizeof() <= ZSTD_IDLE_BYTES_MAX
            && self.0.reset(zstd_safe::ResetDirective::SessionOnly).is_ok()
    }
}

impl Reusable for Blocks {
    fn create() -> Option<Self> {
        Some(Self::default())
    }

    fn reset(&mut self) -> bool {
        self.stored.clear();
        self.decoded.clear();
        self.window.clear();
        true
    }
}

/// Idle ones of a kind.
pub(crate) struct Pool<T> {
    idle: Arc<Mutex<Vec<T>>>,
    idle_max: usize,
}

impl<T: Reusable> Pool<T> {
    fn new(idle_max: usize) -> Self {
        Self { idle: Arc::default(), idle_max }
    }

    /// One that returns to the pool when dropped; `None` if there is no memory.
    pub(crate) fn take(&self) -> Option<Loan<T>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let item = idle.or_else(T::create)?;
        Some(Loan { item: Some(item), pool: self.clone() })
    }
}

impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self { idle: Arc::clone(&self.idle), idle_max: self.idle_max }
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).len();
        formatter.debug_struct("Pool").field("idle", &idle).finish()
    }
}

/// Something on loan from a pool.
pub(crate) struct Loan<T: Reusable> {
    /// `Some` until dropped.
    item: Option<T>,
    pool: Pool<T>,
}

const ON_LOAN: &str = "a loan ends only in `drop`";

impl<T: Reusable> Deref for Loan<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item.as_ref().expect(ON_LOAN)
    }
}

impl<T: Reusable> DerefMut for Loan<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item.as_mut().expect(ON_LOAN)
    }
}

impl<T: Reusable> Drop for Loan<T> {
    fn drop(&mut self) {
        let Some(mut item) = self.item.take() else { return };
        if !item.reset() {
            return;
        }
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.pool.idle_max {
            idle.push(item);
        }
    }
}

impl<T: Reusable> fmt::Debug for Loan<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Loan").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pool_frees_what_comes_back() {
        let pool: Pool<Blocks> = Pool::new(1);
        let (one, two) = (pool.take(), pool.clone().take());
        drop(one);
        drop(two);
        assert_eq!(pool.idle.lock().unwrap().len(), 1);
        let again = pool.take();
        assert!(again.is_some() && pool.idle.lock().unwrap().is_empty());
    }
}
