//! Objects of stores as sources: each is read as a file is, and gone on with where it was settled.
//!
//! ```text
//! Bucket ─▶ poll: page by page, filter, workers ─┐
//!                                                ├─▶ Objects::read ─▶ Cloud::begin ─▶ read ─▶ events
//! a queue of the input's own ────────────────────┘    claims, tries again   first answer    turns
//! ```
//!
//! A [`Store`] gives bytes; [`read()`] makes events of them ([`skidder_read::Object`]). [`Objects`] reads each object once,
//! whatever named it, and tries again what may pass. [`poll`] lists buckets again and again. What is different with each
//! service is behind [`Cloud`] (the first answer about an object, with the fields of its events) and [`Bucket`] (the pages of
//! a listing): this crate knows no cloud. Where a client has one answer at a time, [`take`] receives it ([`Request`]).

mod clients;
mod cloud;
mod copies;
mod decoding;
mod failed;
mod hand;
mod ids;
mod names;
mod objects;
mod polling;
mod read;
mod seen;
mod store;
mod taking;
mod turns;

pub use clients::{Idle, Metered};
pub use cloud::{Cloud, First, Selector, Sent, Wanted};
pub use decoding::{DECODING, DECODING_NAME, Decoding};
pub use ids::begin_ids;
pub use names::{digest, registry_name, registry_prefix};
pub use objects::{ObjectError, Objects};
pub use polling::{Bucket, Listed, Page, PageError, PageFuture, PollSettings, Poller, poll};
pub use read::{Contexts, Outcome, ReadError, Reading, read};
pub use store::{AfterFirst, Body, Range, Store, StoreError, StoreFuture};
pub use taking::{Content, Got, Pieces, Request, take};
pub use turns::Turns;

#[cfg(test)]
mod tests;
