//! Objects of stores as sources: each is read as a file is, and gone on with where it was settled.
//!
//! A [`Store`] gives bytes; [`read`] makes events of them ([`skidder_read::Object`]). Which objects there are, and what
//! follows when one is settled, is the business of an input: it polls a bucket, or is told by a queue.

mod read;
mod store;

pub use read::{Contexts, Outcome, ReadError, Reading, read};
pub use store::{Body, Range, Store, StoreError, StoreFuture};

#[cfg(test)]
mod tests;
