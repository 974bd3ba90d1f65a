//! From stored bytes to lines: compressed streams with checkpoints, and line splitting.
//!
//! Everything here is synchronous and deterministic. A decoder is handed the open file
//! (`skidder_os::File`) and two buffers at each call, and keeps neither; a worker thread lends the
//! same buffers to all of its files. Errors and notes name offsets; they log nothing.
//!
//! - [`Decoder`] is what a reader holds for each file: plain or compressed, one `read`, one offset, and
//!   [`Checkpoint`]s on the way at which it can be resumed. [`Codec`] detects the kind of a file.
//! - [`gzip`] decodes gzip files and makes checkpoints inside of them.
//! - [`framed`] decodes zstd, bzip2, xz and lz4, whose parts are independent of each other.
//! - [`encoding`] turns lines of other encodings into UTF-8; [`lines`] splits what was decompressed.
//!
//! # Memory of a decoder
//!
//! | codec | memory while inside a file | bound |
//! |---|---|---|
//! | gzip | 51 KiB | by the format |
//! | zstd | the window of the frame (2 MiB at `zstd -3`, 8 MiB at `-19`) and 0.3 MiB | [`WINDOW_BYTES_MAX`] |
//! | bzip2 | 3.6 MiB | by the format |
//! | xz | the dictionary of the block (8 MiB at `xz -6`, 64 MiB at `-9`) and 0.1 MiB | [`WINDOW_BYTES_MAX`] |
//! | lz4 | a block as stored and as decoded (8 MiB at the default size), 64 KiB | by the format |
//!
//! A file that needs a larger window is reported as [`Damage::Window`]. Idle decoders are kept in a
//! [`DecoderPool`], which has bounds of its own.

mod codec;
mod decoder;
mod deflate;
pub mod encoding;
pub mod framed;
pub mod gzip;
pub mod lines;
mod pool;
mod progress;
mod source;
mod tail;

pub use codec::Codec;
pub use decoder::{Checkpoint, Decoder, head};
pub use gzip::{CheckpointError, ResumeError};
pub use pool::DecoderPool;
pub use progress::{
    Damage, DecodeError, MismatchKind, Note, Progress, ReadState, WINDOW_BYTES_MAX,
};
