//! What the registry keeps of a source.

use skidder_os::Timestamp;
use std::path::PathBuf;
use std::time::Duration;

/// Where a source continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Byte offset just past the last settled line, in decompressed bytes.
    pub offset: u64,
    /// Generation of the source that the offset belongs to.
    pub generation: u32,
    /// Whether the offset is the verified end of a finished compressed file.
    pub eof: bool,
    /// Proof that the file still holds what was read before the offset.
    pub tail: Option<Tail>,
}

/// Check value over the last bytes before a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Number of decompressed bytes before the cursor that are covered.
    pub len: u32,
    /// CRC-32 of them.
    pub crc: u32,
}

/// How a source was recognised and where it was seen last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The path it was seen at last; may not be UTF-8.
    pub source: PathBuf,
    /// Name of the identity, as in Filebeat: `fingerprint`, `native`, `path`, …
    pub identifier_name: String,
    /// Number of bytes that a growing fingerprint covers; nothing when it is complete.
    pub fingerprint_len: Option<u32>,
    /// Device number when it was seen last; a hint.
    pub device: u64,
    /// Inode number when it was seen last; a hint.
    pub inode: u64,
}

/// Everything kept under one key, but for the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it continues.
    pub cursor: Cursor,
    /// What is known of it.
    pub meta: Meta,
    /// When it was written.
    pub updated: Timestamp,
    /// How long it is kept without being updated; nothing means for ever.
    pub ttl: Option<Duration>,
}

/// One change of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Writes an entry.
    Put {
        /// Its key, at most 4 KiB.
        key: String,
        /// The entry.
        entry: Entry,
        /// What becomes of its decoder checkpoint.
        checkpoint: CheckpointChange,
    },
    /// Removes an entry and its checkpoint.
    Remove {
        /// Its key.
        key: String,
    },
}

impl Change {
    /// The key it changes.
    pub fn key(&self) -> &str {
        match self {
            Self::Put { key, .. } | Self::Remove { key } => key,
        }
    }
}

/// What becomes of the checkpoint of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointChange {
    /// Stays as it is.
    Keep,
    /// Is replaced.
    Set(Vec<u8>),
    /// Is removed.
    Clear,
}
