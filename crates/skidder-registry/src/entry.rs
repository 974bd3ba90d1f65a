//! What is kept of a source.

use skidder_os::Timestamp;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Keys are at most this long; a commit with a longer one is refused as a whole.
pub const KEY_BYTES_MAX: usize = 4096;

/// All that is known of a source between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it continues.
    pub cursor: Cursor,
    /// What it was when last seen.
    pub meta: Meta,
    /// Time of the last change of this entry.
    pub updated: Timestamp,
    /// How long after `updated` the entry may be forgotten; `None` is never.
    pub ttl: Option<Duration>,
}

/// Where a source continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Byte just past the last settled line, counted in decompressed bytes.
    pub offset: u64,
    /// How often the source was truncated or replaced so far.
    pub generation: u32,
    /// The source was read to its end and will not grow (a compressed file).
    pub eof: bool,
    /// The bytes before `offset`, to recognise a source that was overwritten with other content.
    pub tail: Option<Tail>,
}

/// A checksum of the last bytes before a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Number of bytes, at most the cursor's offset.
    pub len: u32,
    /// Their CRC-32 (IEEE).
    pub crc: u32,
}

/// What a source was when last seen. Hints only, never an identity.
///
/// Its texts are shared with whoever else knows the source: there may be very many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The path; may not be UTF-8.
    pub source: Arc<Path>,
    /// Name of the identity: `fingerprint`, `native`, `path`, …
    pub identifier_name: Arc<str>,
    /// Number of bytes the fingerprint covers, while it is not complete.
    pub fingerprint_len: Option<u32>,
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

impl Default for Meta {
    fn default() -> Self {
        Self {
            source: Arc::from(Path::new("")),
            identifier_name: Arc::default(),
            fingerprint_len: None,
            device: 0,
            inode: 0,
        }
    }
}

/// One part of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets the entry of a key.
    Put {
        /// The key, at most [`KEY_BYTES_MAX`] bytes, not empty.
        key: Arc<str>,
        /// Its new entry.
        entry: Entry,
        /// What becomes of its decoder checkpoint.
        checkpoint: Checkpoint,
    },
    /// Removes a key with its checkpoint; nothing happens if it is not there.
    Remove {
        /// The key.
        key: Arc<str>,
    },
}

impl Change {
    /// The key it is about.
    pub fn key(&self) -> &str {
        match self {
            Self::Put { key, .. } | Self::Remove { key } => key,
        }
    }
}

/// What becomes of a decoder checkpoint in [`Change::Put`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// It stays as it is.
    Keep,
    /// It is replaced.
    Set(Vec<u8>),
    /// It is removed.
    Clear,
}
