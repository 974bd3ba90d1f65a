//! The entry of a source: of a file its cursor and hints to find it again, of any other its input's own cursor.

use skidder_os::Timestamp;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Keys are at most this long; a commit with a longer one is refused as a whole.
pub const KEY_BYTES_MAX: usize = 4096;

/// The text of a [`SourceCursor`] is at most this long; a commit with a longer one is refused as a whole.
pub const CURSOR_BYTES_MAX: usize = 64 * 1024;

/// All that is known of a source between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Of a file.
    File(FileEntry),
    /// Of a source that is no file.
    Source(SourceEntry),
}

impl Entry {
    /// The entry of a file; `None` for another source.
    pub fn as_file(&self) -> Option<&FileEntry> {
        match self {
            Self::File(file) => Some(file),
            Self::Source(_) => None,
        }
    }

    /// The entry of a file; `None` for another source.
    pub fn into_file(self) -> Option<FileEntry> {
        match self {
            Self::File(file) => Some(file),
            Self::Source(_) => None,
        }
    }

    /// The entry of a source that is no file.
    pub fn into_source(self) -> Option<SourceEntry> {
        match self {
            Self::File(_) => None,
            Self::Source(source) => Some(source),
        }
    }

    /// Time of the last change of this entry.
    pub fn updated(&self) -> Timestamp {
        match self {
            Self::File(file) => file.updated,
            Self::Source(source) => source.updated,
        }
    }
}

impl From<FileEntry> for Entry {
    fn from(file: FileEntry) -> Self {
        Self::File(file)
    }
}

impl From<SourceEntry> for Entry {
    fn from(source: SourceEntry) -> Self {
        Self::Source(source)
    }
}

/// The entry of a source that is no file: a journal, a partition, a bucket, an API that is polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceEntry {
    /// Where it continues.
    pub cursor: SourceCursor,
    /// What it is.
    pub about: SourceAbout,
    /// Time of the last change of this entry.
    pub updated: Timestamp,
}

/// Where a source that is no file continues. Only its input can read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceCursor {
    /// Version of the form of `text`, the input's own. An input refuses a version that it does not know.
    pub version: u32,
    /// The position; at most [`CURSOR_BYTES_MAX`] bytes. Empty for a source of which nothing was settled yet.
    pub text: Arc<str>,
}

/// What a source that is no file is, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceAbout {
    /// Type of its input, as in `type: journald`.
    pub input: Arc<str>,
    /// Its name: the host and port of a peer, the name of a partition, a bucket.
    pub name: Arc<str>,
}

/// All that is known of a file between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Where it continues.
    pub cursor: Cursor,
    /// What it was when last seen.
    pub meta: Meta,
    /// Time of the last change of this entry.
    pub updated: Timestamp,
    /// How long after `updated` the entry may be forgotten; `None` is never.
    pub ttl: Option<Duration>,
}

/// Where a file continues.
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

/// What a file was when last seen. Hints only, never an identity.
///
/// Its texts are shared with everything else that knows the source: there may be very many of them.
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
        /// What happens to its decoder checkpoint.
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

/// What happens to a decoder checkpoint in [`Change::Put`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// It stays as it is.
    Keep,
    /// It is replaced.
    Set(Vec<u8>),
    /// It is removed.
    Clear,
}
