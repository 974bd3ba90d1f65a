//! From paths to batches: scanner, identity, rotation, readers.
//!
//! The [`Catalog`] of an input takes what a [`scan::scan`] found and decides which file is which source.
//! The [`Readers`] give each source with something to read its turn; a turn makes one batch of whole
//! lines. Nothing here waits, sleeps or reads a clock: a scan and a turn are calls, and a simulated
//! world makes the same calls as the program does.

mod catalog;
mod compare;
mod cursors;
mod errors;
mod fingerprint;
mod given_lines;
pub mod glob;
mod identity;
pub mod import;
mod metrics;
mod object;
mod pool;
mod reader;
mod readers;
pub mod scan;
mod settings;
mod survey;
#[cfg(test)]
mod testing;
mod watch;
mod watcher;

pub use catalog::{
    Catalog, FileLook, FilePage, FileQuery, FileState, GoneFiles, Leaving, MISSING_GRACE, Now,
    Peer, Reacted, Reason, ScanSummary, SourceIds,
};
pub use cursors::{Cursors, CursorsError};
pub use errors::{FileError, LastErrors};
pub use fingerprint::{Fingerprint, Head, HeadError};
pub use given_lines::{GivenLines, Span};
pub use identity::{FileIdentity, LOG_PREFIX, check_marker, filestream_prefix};
pub use metrics::ReadMetrics;
pub use object::{HEAD_BYTES, Object, ObjectContext, ObjectName, Start, Step};
pub use pool::{BufferPool, CHUNK_BYTES};
pub use reader::{InputContext, Reader, Scratch, ShownPrint, Target, TurnEnd};
pub use readers::{
    Next, ReaderLimit, ReaderLook, ReaderState, Readers, ReadersLimits, Trouble, Turn,
};
pub use settings::{
    CloseSettings, Compression, FilestreamSettings, FingerprintSettings, InputKind, PinSettings,
    TakeOver,
};
pub use skidder_decode::encoding::Encoding;
pub use skidder_decode::lines::LineTerminator;
pub use skidder_decode::{Codec, DecoderPool};
pub use skidder_event::{Bind, Bound};
pub use skidder_parse::records::{CsvKeys, CsvRules, Expand, Layout, Lists, Table};
pub use survey::{Finding, survey};
pub use watcher::{NoticeSummary, Watcher};
