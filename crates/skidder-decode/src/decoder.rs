//! One face for plain and compressed files.

use crate::codec::Codec;
use crate::framed::{FramePoint, FramedReader};
use crate::gzip::{self, CheckpointError, GzipReader, ResumeError};
use crate::pool::DecoderPool;
use crate::progress::{DecodeError, Progress, ReadState};
use crate::source::read_some;
use skidder_os::File;

/// The decoder of one open file.
#[derive(Debug)]
pub enum Decoder {
    /// The bytes as they are stored.
    Plain {
        /// Bytes handed out so far.
        offset: u64,
    },
    /// A gzip file.
    Gzip(Box<GzipReader>),
    /// A file of zstd, bzip2, xz or lz4.
    Framed(Box<FramedReader>),
}

/// A position in a compressed file from which decoding can go on, whatever the codec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// In a gzip file.
    Gzip(gzip::Checkpoint),
    /// In a file of zstd, bzip2, xz or lz4.
    Framed(FramePoint),
}

impl Checkpoint {
    /// The codec of the file.
    pub fn codec(&self) -> Codec {
        match self {
            Self::Gzip(_) => Codec::Gzip,
            Self::Framed(point) => point.codec(),
        }
    }

    /// Bytes of the decompressed stream before this point.
    pub fn decompressed_offset(&self) -> u64 {
        match self {
            Self::Gzip(point) => point.decompressed_offset(),
            Self::Framed(point) => point.decompressed_offset(),
        }
    }

    /// Bytes of the file before this point.
    pub fn compressed_offset(&self) -> u64 {
        match self {
            Self::Gzip(point) => point.compressed_offset(),
            Self::Framed(point) => point.compressed_offset(),
        }
    }

    /// The stored form; its first bytes identify the codec.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Gzip(point) => point.to_bytes(),
            Self::Framed(point) => point.to_bytes(),
        }
    }

    /// Loads what [`Checkpoint::to_bytes`] wrote. Any other bytes are refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        if bytes.starts_with(&crate::framed::POINT_MAGIC) {
            return FramePoint::from_bytes(bytes).map(Self::Framed);
        }
        gzip::Checkpoint::from_bytes(bytes).map(Self::Gzip)
    }
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

    /// A file from its start: compressed with `codec`, or plain.
    pub fn start(codec: Option<Codec>, pool: &DecoderPool) -> Self {
        let Some(codec) = codec else { return Self::plain(0) };
        match FramedReader::new(codec, pool) {
            Some(reader) => Self::Framed(Box::new(reader)),
            None => Self::gzip(GzipReader::new(pool.inflates())),
        }
    }

    /// A compressed file at `checkpoint`, after making sure that `file` still has the same 64 bytes
    /// before it. Continue with [`Decoder::skip_to`] to the exact byte.
    pub fn resume(
        checkpoint: &Checkpoint,
        file: &dyn File,
        pool: &DecoderPool,
    ) -> Result<Self, ResumeError> {
        match checkpoint {
            Checkpoint::Gzip(point) => {
                GzipReader::resume(point, file, pool.inflates()).map(Self::gzip)
            }
            Checkpoint::Framed(point) => {
                FramedReader::resume(point, file, pool).map(|reader| Self::Framed(Box::new(reader)))
            }
        }
    }

    /// Sets the decompressed bytes between two checkpoints; with 0 each place where one can be makes one.
    pub fn with_checkpoint_interval(self, interval: u64) -> Self {
        match self {
            Self::Plain { .. } => self,
            Self::Gzip(reader) => Self::gzip(reader.with_checkpoint_interval(interval)),
            Self::Framed(reader) => {
                Self::Framed(Box::new(reader.with_checkpoint_interval(interval)))
            }
        }
    }

    /// Takes no checkpoints, for readers that will not be resumed.
    pub fn without_checkpoints(self) -> Self {
        self.with_checkpoint_interval(u64::MAX)
    }

    /// The codec of the file; `None` if it is plain.
    pub fn codec(&self) -> Option<Codec> {
        match self {
            Self::Plain { .. } => None,
            Self::Gzip(_) => Some(Codec::Gzip),
            Self::Framed(reader) => Some(reader.codec()),
        }
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
            Self::Framed(reader) => reader.read(file, scratch, out),
        }
    }

    /// Moves on to `target`, a decompressed offset, without handing out what lies before it. Done
    /// when [`Decoder::offset`] has reached it; until then it must be called again while the state is
    /// `More`. `produced` of the answer is what was discarded, in pieces of at most `out_scratch`. A
    /// plain file only changes its offset. Never goes back.
    pub fn skip_to(
        &mut self,
        file: &dyn File,
        scratch: &mut [u8],
        out_scratch: &mut [u8],
        target: u64,
    ) -> Result<Progress, DecodeError> {
        if let Self::Plain { offset } = self {
            *offset = target.max(*offset);
            return Ok(Progress::new(0, ReadState::More));
        }
        let mut skipped = 0;
        while self.offset() < target {
            let left = usize::try_from(target - self.offset()).unwrap_or(usize::MAX);
            let piece = left.min(out_scratch.len());
            let progress = match self.read(file, scratch, &mut out_scratch[..piece]) {
                Ok(progress) => progress,
                // The cause is still there at the next call.
                Err(_) if skipped > 0 => break,
                Err(error) => return Err(error),
            };
            skipped += progress.produced;
            if progress.note.is_some() || progress.state != ReadState::More {
                return Ok(Progress { produced: skipped, ..progress });
            }
        }
        Ok(Progress::new(skipped, ReadState::More))
    }

    /// Bytes handed out so far, counted as a cursor counts: decompressed.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Plain { offset } => *offset,
            Self::Gzip(reader) => reader.decompressed_offset(),
            Self::Framed(reader) => reader.decompressed_offset(),
        }
    }

    /// Bytes of the file used up so far: to compare with its size.
    pub fn stored_offset(&self) -> u64 {
        match self {
            Self::Plain { offset } => *offset,
            Self::Gzip(reader) => reader.compressed_offset(),
            Self::Framed(reader) => reader.compressed_offset(),
        }
    }

    /// The same, and what was looked at and could not be decoded before there is more of it: a
    /// bzip2 block is handed out when it is whole.
    pub fn seen_offset(&self) -> u64 {
        match self {
            Self::Framed(reader) => reader.seen_offset(),
            _ => self.stored_offset(),
        }
    }

    /// Whether the stored bytes are other than the ones handed out.
    pub fn is_compressed(&self) -> bool {
        self.codec().is_some()
    }

    /// The newest checkpoint not yet taken; a plain file needs none.
    pub fn take_checkpoint(&mut self) -> Option<Checkpoint> {
        match self {
            Self::Plain { .. } => None,
            Self::Gzip(reader) => reader.take_checkpoint().map(Checkpoint::Gzip),
            Self::Framed(reader) => reader.take_checkpoint().map(Checkpoint::Framed),
        }
    }

    /// Takes back the memory of a checkpoint, for the next one.
    pub fn recycle(&mut self, checkpoint: Checkpoint) {
        if let (Self::Gzip(reader), Checkpoint::Gzip(point)) = (self, checkpoint) {
            reader.recycle(point);
        }
    }
}

/// Compressed bytes that [`head`] reads at a time: one page, usually all it needs.
const HEAD_READ_BYTES: usize = 4096;

/// Decodes the first bytes of a compressed file into `out`; returns how many there are, and whether
/// the file ends in the middle of something and so may get more.
///
/// Fewer than `out` holds means that the file ends, or is damaged, before. Reads 4 KiB at a time
/// and takes its decoder from `pool`, so that a scan over many files stays cheap; only bzip2 has to
/// decode a whole block, 30 to 60 ms. An error is returned only if it left no byte before it.
pub fn head(
    file: &dyn File,
    codec: Codec,
    scratch: &mut [u8],
    out: &mut [u8],
    pool: &DecoderPool,
) -> Result<(usize, bool), DecodeError> {
    let mut decoder = Decoder::start(Some(codec), pool).without_checkpoints();
    let read_bytes = scratch.len().min(HEAD_READ_BYTES);
    let mut have = 0;
    while have < out.len() {
        match decoder.read(file, &mut scratch[..read_bytes], &mut out[have..]) {
            Ok(progress) => {
                have += progress.produced;
                if progress.state != ReadState::More {
                    return Ok((have, progress.state == ReadState::Waiting));
                }
            }
            // Reading the whole file reaches the same error, and reports it.
            Err(DecodeError::Damaged(_)) if have > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok((have, false))
}
