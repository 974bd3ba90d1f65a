//! From stored bytes to lines: compressed streams with checkpoints, and line splitting.
//!
//! Everything here is synchronous and deterministic. A decoder is handed the open file
//! (`skidder_os::File`) and two buffers at each call, and keeps neither; a worker thread lends the
//! same buffers to all of its files. Errors and notes name offsets; they log nothing.
//!
//! - [`Decoder`] is what a reader holds for each file: plain or gzip, one `read`, one offset.
//! - [`gzip`] decodes gzip files, takes [`gzip::Checkpoint`]s on the way and resumes at them.
//! - [`encoding`] turns lines of other encodings into UTF-8; [`lines`] splits what was decompressed.
//!
//! # How further codecs join
//!
//! zstd, bzip2, xz and lz4 each get a module of their own and a variant of [`Decoder`], with the
//! answers of [`Progress`], [`Note`] and [`DecodeError`]. What such a module has to provide:
//!
//! - a `read` that is given the file and the buffers, consumes from its own offset, and hands out
//!   what it decoded before it reports damage;
//! - a `Waiting` that can be continued when the file has grown, and an `End` only where the format
//!   says that the stream is complete;
//! - checkpoints where the format has independent parts (zstd frames, bzip2 blocks, xz blocks, lz4
//!   frames): these are free. Only deflate needs a window;
//! - a test of its magic bytes, and `head` for fingerprints.

mod decoder;
mod deflate;
pub mod encoding;
pub mod gzip;
pub mod lines;
mod progress;
mod source;

pub use decoder::Decoder;
pub use progress::{Damage, DecodeError, MismatchKind, Note, Progress, ReadState};
