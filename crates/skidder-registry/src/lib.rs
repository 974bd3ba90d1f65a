//! Cursors and checkpoints on disk: where every source continues, whatever happens to the machine.
//!
//! - A commit is one atomic durable transaction: it is there as a whole or not at all.
//! - After a power cut, a full disk or an I/O error everything that was committed is there, and the
//!   registry goes on by itself as soon as the disk does.
//! - A damaged file never keeps the program from starting: it is set aside, and the state continues from
//!   the entries that can still be read and from a snapshot. A cursor from there may be older than the
//!   last commit, which repeats lines and never loses one, provided that the reader checks [`Tail`].
//! - Memory does not grow with the number of entries.
//!
//! [`inspect()`] looks into a registry that may be in use; [`filebeat`] reads and writes that of Filebeat.
//!
//! The format and the steps of recovery are in `FORMAT.md`. Left to others: what a key means, when an entry
//! has expired ([`FileEntry::ttl`]), when to commit.

mod backend;
mod codec;
mod distrust;
mod entry;
pub mod filebeat;
mod files;
mod inspect;
mod registry;
mod snapshot;
mod store;

pub use entry::{
    CURSOR_BYTES_MAX, Change, Checkpoint, Cursor, Entry, FileEntry, KEY_BYTES_MAX, Meta,
    SourceAbout, SourceCursor, SourceEntry, Tail,
};
pub use inspect::{Inspected, Origin, inspect, is_there};
pub use registry::{CommitError, OpenError, Opened, Options, ReadError, Registry};
