//! gzip files with checkpoints.
//!
//! `header` and `reader` know the container (RFC 1952), `inflate` the deflate stream inside
//! (RFC 1951), `checkpoint` how a position is kept on disk.

mod checkpoint;
mod header;
mod pool;
mod reader;

pub use crate::deflate::{Inflate, Inside, Refused, Step, Stop, WINDOW_BYTES};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use pool::InflatePool;
pub use reader::{CHECKPOINT_INTERVAL, GzipReader, ResumeError};

/// Whether a file that begins with `head` is a gzip file: by its first two bytes, as Filebeat does.
pub fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&header::MAGIC)
}
