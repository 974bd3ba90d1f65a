//! Checkpoints of a [`GzipReader`]: where they are taken, and how a reader starts at one.

use super::{GzipReader, NEVER, Phase};
use crate::deflate::{Inside, Refused};
use crate::gzip::checkpoint::Checkpoint;
use crate::gzip::pool::InflatePool;
use crate::tail::Tail;
use crc32fast::Hasher;
use skidder_os::File;
use std::io;

/// Decompressed bytes between two checkpoints unless set otherwise.
///
/// A resumed reader decodes at most this much and one deflate block (see
/// [`GzipReader::take_checkpoint`]) for nothing: about 2 ms. Taking a checkpoint costs 10 µs, so
/// that an interval much smaller would begin to show in the speed.
pub const CHECKPOINT_INTERVAL: u64 = 1024 * 1024;

/// Output of a block up to which its end is waited for: more than common compressors put into one.
const BLOCK_BYTES_USUAL: u64 = 1024 * 1024;

/// Why a reader cannot start at a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The file is not the one the checkpoint was taken from: start from zero and skip.
    #[error("the checkpoint belongs to another file")]
    Stale,
    /// The file cannot be read now: try again.
    #[error("cannot read at byte {offset}: {source}")]
    Read {
        /// Where, in compressed bytes.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
}

impl GzipReader {
    /// A reader at `checkpoint`, after making sure that `file` still has the same 64 bytes before
    /// it. Continue with [`GzipReader::skip_to`] to the exact byte.
    pub fn resume(
        checkpoint: &Checkpoint,
        file: &dyn File,
        pool: &InflatePool,
    ) -> Result<Self, ResumeError> {
        let offset = checkpoint.compressed_offset;
        let tail = Tail::check(file, offset, checkpoint.tail_crc)?;
        let mut reader = Self::new(pool);
        if !checkpoint.is_free() {
            let mut inflate = pool.take();
            let window = &checkpoint.window;
            match &checkpoint.inside {
                None => inflate.restore(checkpoint.bits, tail.last(), window),
                Some(inside) => inflate.restore_inside(inside, window),
            }
            .map_err(|Refused| ResumeError::Stale)?;
            reader.inflate = Some(inflate);
            reader.phase = Phase::Body;
        }
        reader.compressed = offset;
        reader.decompressed = checkpoint.decompressed_offset;
        reader.member_start = checkpoint.member_start;
        reader.member_out = checkpoint.member_out;
        reader.crc = Hasher::new_with_initial_len(checkpoint.crc, checkpoint.member_out);
        reader.tail = tail;
        reader.checkpoint_last = checkpoint.decompressed_offset;
        Ok(reader)
    }

    /// The newest checkpoint since the last call, if any; never behind `decompressed_offset`.
    ///
    /// Inside a member there is one at the first block boundary after each interval, so that two
    /// are at most the interval, one output buffer and one deflate block apart. Blocks of common
    /// compressors end after 16 to 530 KiB of output; where none ends within two intervals and 1
    /// MiB (`igzip -0` writes a whole file as one block), there is one inside it. After each member
    /// there is a free one.
    pub fn take_checkpoint(&mut self) -> Option<Checkpoint> {
        self.checkpoint.take()
    }

    /// Takes back the memory of a checkpoint, for the next one.
    pub fn recycle(&mut self, checkpoint: Checkpoint) {
        if self.spare.capacity() == 0 {
            self.spare = checkpoint.window;
        }
    }

    /// Takes a checkpoint inside the block where the decoder stands, if no end of one came for long.
    pub(super) fn mark_in_block(&mut self) {
        let patience = self.interval.saturating_mul(2).max(BLOCK_BYTES_USUAL);
        if self.interval == NEVER || self.decompressed - self.checkpoint_last < patience {
            return;
        }
        let inside = self.inflate.as_ref().and_then(|inflate| inflate.inside());
        if inside.is_some() {
            self.mark_in_body(0, inside);
        }
    }

    /// Takes a checkpoint where the decoder stands: at a boundary, or inside a block.
    pub(super) fn mark_in_body(&mut self, bits: u8, inside: Option<Inside>) {
        let Some(inflate) = &self.inflate else { return };
        let mut window = match self.checkpoint.take() {
            Some(older) if older.window.capacity() > 0 => older.window,
            _ => std::mem::take(&mut self.spare),
        };
        inflate.copy_window(&mut window);
        self.checkpoint_last = self.decompressed;
        self.checkpoint = Some(Checkpoint {
            compressed_offset: self.compressed,
            bits,
            member_start: self.member_start,
            decompressed_offset: self.decompressed,
            member_out: self.member_out,
            crc: self.crc.clone().finalize(),
            tail_crc: self.tail.crc(),
            window,
            inside,
        });
    }

    /// Takes a checkpoint behind a member.
    pub(super) fn mark_free(&mut self) {
        if self.interval == NEVER {
            return;
        }
        if let Some(older) = self.checkpoint.take() {
            self.recycle(older);
        }
        self.checkpoint_last = self.decompressed;
        self.checkpoint = Some(Checkpoint {
            compressed_offset: self.compressed,
            bits: 0,
            member_start: self.compressed,
            decompressed_offset: self.decompressed,
            member_out: 0,
            crc: 0,
            tail_crc: self.tail.crc(),
            window: Vec::new(),
            inside: None,
        });
    }
}
