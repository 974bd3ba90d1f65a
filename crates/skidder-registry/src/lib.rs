//! Cursors and checkpoints on disk.

mod entry;

pub use entry::{Change, CheckpointChange, Cursor, Entry, Meta, Tail};
