//! One face for plain and compressed files.

use crate::gzip::{Checkpoint, GzipReader};
use crate::progress::{DecodeError, Progress, ReadState};
use crate::source::read_some;
use skidder_os::File;

/// The decoder of one open file. A further codec is a further variant.
#[derive(Debug)]
pub enum Decoder {
    /// The bytes as they are stored.
    Plain {
        /// Bytes handed out so far.
        offset: u64,
    },
    /// A gzip file.
    Gzip(Box<GzipReader>),
}

impl Decoder {
    /// A plain file from `offset` on.
    pub fn plain(offset: u64) -> Self {
        Self::Plain { offset }
    }

    /// A gzip file where `reader` stands.
    pub fn gzip(reader: GzipReader) -> Self {
        Self::Gzip(Box::new(reader))
    }

    /// Reads the next bytes into `out`; `scratch` is for compressed bytes. Neither may be empty.
    ///
    /// A plain file is `Waiting` at its end, never at an `End`. See [`GzipReader::read`].
    pub fn read(
        &mut self,
        file: &dyn File,
        scratch: &mut [u8],
        out: &mut [u8],
    ) -> Result<Progress, DecodeError> {
        match self {
            Self::Plain { offset } => {
                let produced = read_some(file, out, *offset)?;
                *offset += produced as u64;
                let state = if produced > 0 { ReadState::More } else { ReadState::Waiting };
                Ok(Progress::new(produced, state))
            }
            Self::Gzip(reader) => reader.read(file, scratch, out),
        }
    }

    /// Moves on to `target`, a decompressed offset, without handing out what lies before it. Done
    /// when [`Decoder::offset`] has reached it: see [`GzipReader::skip_to`]. A plain file only
    /// changes its offset. Never goes back.
    pub fn skip_to(
        &mut self,
        file: &dyn File,
        scratch: &mut [u8],
        out_scratch: &mut [u8],
        target: u64,
    ) -> Result<Progress, DecodeError> {
        match self {
            Self::Plain { offset } => {
                *offset = target.max(*offset);
                Ok(Progress::new(0, ReadState::More))
            }
            Self::Gzip(reader) => reader.skip_to(file, scratch, out_scratch, target),
        }
    }

    /// Bytes handed out so far, counted as a cursor counts: decompressed.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Plain { offset } => *offset,
            Self::Gzip(reader) => reader.decompressed_offset(),
        }
    }

    /// Bytes of the file used up so far: to compare with its size.
    pub fn stored_offset(&self) -> u64 {
        match self {
            Self::Plain { offset } => *offset,
            Self::Gzip(reader) => reader.compressed_offset(),
        }
    }

    /// Whether the stored bytes are other than the ones handed out.
    pub fn is_compressed(&self) -> bool {
        match self {
            Self::Plain { .. } => false,
            Self::Gzip(_) => true,
        }
    }

    /// The newest checkpoint not yet taken; a plain file needs none.
    pub fn take_checkpoint(&mut self) -> Option<Checkpoint> {
        match self {
            Self::Plain { .. } => None,
            Self::Gzip(reader) => reader.take_checkpoint(),
        }
    }
    /// Gives the memory of a checkpoint back, for the next one.
    pub fn recycle(&mut self, checkpoint: Checkpoint) {
        match self {
            Self::Plain { .. } => {}
            Self::Gzip(reader) => reader.recycle(checkpoint),
        }
    }
}
