//! What gives the bytes of objects.

use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

/// What a store answers later.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Where the bytes of an answer begin and end in the object, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first byte.
    pub from: u64,
    /// The byte behind the last; nothing for the end of the object.
    pub to: Option<u64>,
}

/// Why there are no bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It may pass: the connection broke, the store is busy.
    #[error("{0}")]
    Passing(String),
    /// There is other content under the name now.
    #[error("the object was replaced by another one")]
    Changed,
    /// There is nothing under the name any more.
    #[error("the object is gone")]
    Gone,
    /// It does not pass by itself: no permission, a wrong request. The text says what to do.
    #[error("{0}")]
    Refused(String),
}

/// One object of a store: the name and the version that are meant.
pub trait Store: Send + Sync {
    /// The bytes of a range of the object. An answer has them from the first one on; other content than what is meant is
    /// [`StoreError::Changed`].
    fn get(&self, range: Range) -> StoreFuture<'_, Box<dyn Body>>;

    /// Bytes of the object, as it is stored; nothing if it is not known. An object that ends elsewhere is not read to its end.
    fn size(&self) -> Option<u64> {
        None
    }
}

/// The bytes of an answer, one piece after the other.
pub trait Body: Send {
    /// The next piece; nothing at the end of the range. An answer that ends before is [`StoreError::Passing`].
    fn next(&mut self) -> StoreFuture<'_, Option<Bytes>>;
}

/// An object whose first answer is there already: `rest` is asked for what that does not have.
pub struct AfterFirst<S> {
    size: u64,
    first: Mutex<Option<Box<dyn Body>>>,
    rest: S,
}

impl<S> AfterFirst<S> {
    /// `first` has all bytes of an object of `size` bytes.
    pub fn new(size: u64, first: Box<dyn Body>, rest: S) -> Self {
        Self { size, first: Mutex::new(Some(first)), rest }
    }
}

impl<S: Store> Store for AfterFirst<S> {
    fn get(&self, range: Range) -> StoreFuture<'_, Box<dyn Body>> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A part that begins at the end is refused by most services.
        if range.from >= self.size {
            return Box::pin(async { Ok(Box::new(Nothing) as Box<dyn Body>) });
        }
        match first.filter(|_| range == Range { from: 0, to: None }) {
            Some(first) => Box::pin(async { Ok(first) }),
            None => self.rest.get(range),
        }
    }

    fn size(&self) -> Option<u64> {
        Some(self.size)
    }
}

/// The end of an object.
struct Nothing;

impl Body for Nothing {
    fn next(&mut self) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async { Ok(None) })
    }
}
