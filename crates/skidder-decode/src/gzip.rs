//! gzip files with checkpoints.
//!
//! `header` and `reader` know the container (RFC 1952), `inflate` the deflate stream inside
//! (RFC 1951), `checkpoint` how a position is kept on disk.

mod checkpoint;
mod header;
mod pool;
mod reader;
mod tail;

pub use crate::deflate::{Inflate, Inside, Refused, Step, Stop, WINDOW_BYTES};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use pool::InflatePool;
pub use reader::{CHECKPOINT_INTERVAL, GzipReader, ResumeError};

use crate::progress::{DecodeError, ReadState};
use skidder_os::File;

/// Compressed bytes that [`head`] reads at a time: one page, usually all it needs.
const HEAD_READ_BYTES: usize = 4096;

/// Whether a file that begins with `head` is a gzip file: by its first two bytes, as Filebeat does.
pub fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&header::MAGIC)
}

/// Decodes the first bytes of a file's decompressed stream into `out`; returns how many there are.
///
/// Fewer than asked for means that the file ends, or is damaged, before. Reads 4 KiB at a time and
/// takes its decoder from `pool`, so that a scan over many files stays cheap. An error is returned
/// only if it left no byte before it.
pub fn head(
    file: &dyn File,
    scratch: &mut [u8],
    out: &mut [u8],
    pool: &InflatePool,
) -> Result<usize, DecodeError> {
    let mut reader = GzipReader::new(pool).without_checkpoints();
    let read_bytes = scratch.len().min(HEAD_READ_BYTES);
    let scratch = &mut scratch[..read_bytes];
    let mut have = 0;
    while have < out.len() {
        match reader.read(file, scratch, &mut out[have..]) {
            Ok(progress) => {
                have += progress.produced;
                if progress.state != ReadState::More {
                    break;
                }
            }
            // Whoever reads the file through comes to the same error, and reports it.
            Err(DecodeError::Damaged(_)) if have > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}
