//! The results of a decoder, shared by all codecs.

use crate::codec::Codec;
use std::io;

/// The result of one `read`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "`produced` bytes are in the buffer and will not be handed out again"]
pub struct Progress {
    /// Decompressed bytes written to the start of the caller's buffer. They follow without gap on
    /// those of the call before. Bytes of the buffer beyond them may have been overwritten.
    pub produced: usize,
    /// Whether to call again.
    pub state: ReadState,
    /// Something to report that does not end the stream. The note belongs after the `produced`
    /// bytes; each is reported once.
    pub note: Option<Note>,
}

impl Progress {
    pub(crate) fn new(produced: usize, state: ReadState) -> Self {
        Self { produced, state, note: None }
    }
}

/// Whether there is more to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadState {
    /// Call again. `produced` may be less than the buffer and even 0: a call does a bounded amount
    /// of work and returns early with a note or when an error is to follow.
    More,
    /// The file ends here for now. Either it is a plain file, or a compressed one that ends inside
    /// a member: cut short, or still being written. Call again when the file has grown.
    Waiting,
    /// The compressed stream is complete. Call again if the file has grown: another member may
    /// have been appended.
    End,
}

/// Something worth a log line and a metric that does not end the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A stored checksum or size differs from what was decoded. The bytes have been handed out;
    /// decoding goes on.
    Mismatch {
        /// What differs.
        kind: MismatchKind,
        /// Where the member (stream, frame) begins, in compressed bytes.
        member_offset: u64,
        /// Decompressed bytes before this point.
        decompressed_offset: u64,
        /// The value stored in the file.
        expected: u64,
        /// The value of what was decoded.
        found: u64,
    },
    /// After the last member follow bytes that are neither a member (stream, frame) nor padding. It
    /// is ignored, as `gzip` does.
    TrailingGarbage {
        /// Where it begins, in compressed bytes.
        offset: u64,
    },
}

/// What differs from the stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MismatchKind {
    /// Checksum of a content: CRC-32 of a gzip member, of a bzip2 block or stream, XXH32 of an lz4 block
    /// or frame, XXH64 of a zstd frame, CRC-32, CRC-64 or SHA-256 (its first 8 bytes) of an xz block.
    /// When the size differs as well, only this is reported.
    Crc,
    /// Size of a content. In gzip modulo 2^32.
    Size,
    /// The checksum of what describes the content: of a gzip header, or of an index or footer of xz.
    Header,
}

/// Why a read failed. Nothing was produced by the call, and nothing produced before is repeated.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The operating system did not give the bytes; the decoder stands where it was. Try again.
    #[error("cannot read at byte {offset}: {source}")]
    Read {
        /// Where, in bytes of the file as stored.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
    /// No memory for a decoder. Close something, then try again.
    #[error("no memory for a decoder")]
    Memory,
    /// The file cannot be decoded beyond this point, now or later. All before it was handed out.
    #[error(transparent)]
    Damaged(#[from] Damage),
}

/// The largest window (zstd) or dictionary (xz) of a decoder, in bytes: the default limit of the
/// `zstd` tool. Files that need more are not decoded.
pub const WINDOW_BYTES_MAX: u64 = 128 << 20;

/// Why a file cannot be decoded any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The file does not begin as a compressed file should.
    #[error("not a gzip file")]
    NotGzip,
    /// The file does not begin as one of this codec should.
    #[error("not a file of {codec}")]
    NotOf {
        /// What was expected.
        codec: Codec,
    },
    /// It uses what this program does not decode.
    #[error("the {codec} data at byte {compressed_offset} need {what}, which is not supported")]
    Feature {
        /// The codec.
        codec: Codec,
        /// Where, in compressed bytes.
        compressed_offset: u64,
        /// What it is.
        what: &'static str,
    },
    /// It needs more memory than a decoder may have.
    #[error(
        "the {codec} data at byte {compressed_offset} need a window of {bytes} bytes; the bound is \
         {WINDOW_BYTES_MAX} (`WINDOW_BYTES_MAX`)"
    )]
    Window {
        /// The codec.
        codec: Codec,
        /// Where, in compressed bytes.
        compressed_offset: u64,
        /// The size it needs.
        bytes: u64,
    },
    /// A member uses something that no specification defines.
    #[error("the gzip member at byte {member_offset} has {what} 0x{value:02x}, which is unknown")]
    Unsupported {
        /// Where the member begins, in compressed bytes.
        member_offset: u64,
        /// Which part of the header.
        what: &'static str,
        /// Its value.
        value: u8,
    },
    /// The compressed data are invalid.
    #[error(
        "corrupt compressed data near byte {compressed_offset} \
         (decompressed byte {decompressed_offset}): {reason}"
    )]
    Corrupt {
        /// Compressed bytes read up to the damage.
        compressed_offset: u64,
        /// Decompressed bytes handed out before the damage.
        decompressed_offset: u64,
        /// What the decoder objected to.
        reason: &'static str,
    },
}
