//! One source as the settle knows it: what it is, where its next start would continue, and its events without a
//! verdict.

use super::changes::Resume;
use crate::ledger::{Ledger, SourceLedger};
use skidder_event::{FilePart, ResumePoint, SourceId, SourcePart};
use skidder_os::Timestamp;
use skidder_registry::{Cursor, Entry, FileEntry, Meta, SourceAbout, SourceCursor, SourceEntry};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Source {
    pub(super) key: Arc<str>,
    pub(super) place: Place,
    /// Admitted and not yet behind the cursor, in the order of the source; nothing in it, or nothing if there are very
    /// many sources.
    #[expect(clippy::box_collection, reason = "a quarter of the size, and most have none")]
    pub(super) pending: Option<Box<VecDeque<Pending>>>,
    /// Sequence number of the first of `pending`.
    pub(super) first_sequence: u64,
    /// Newest decoder state at or before the cursor that the registry does not have yet.
    pub(super) resume: Resume,
    pub(super) ledger: SourceLedger,
    pub(super) dirty: bool,
    /// Its entry must be removed from the registry, until it changes again.
    pub(super) unsaved: bool,
    /// Nothing of it was ever saved.
    pub(super) new: bool,
    /// It has ended: it is dropped when all its events have their verdict and it is saved.
    pub(super) ended: bool,
}

/// What a source is, and where its next start would continue.
#[derive(Debug)]
pub(super) enum Place {
    /// A file: at its cursor, in this generation.
    File { meta: Meta, generation: u32, cursor: Cursor },
    /// Another source: at the cursor of its input.
    Cursor(SourceAbout, SourceCursor),
    /// A source that is not saved: it cannot send again, or its far side knows what was settled.
    Unsaved(SourceAbout),
}

/// A batch between its admission and the cursor.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) target: Target,
    pub(super) settled: bool,
}

/// Where a cursor stands when a batch and all before it are settled.
#[derive(Debug)]
pub(super) enum Target {
    File { cursor: Cursor, resume: Option<Arc<dyn ResumePoint>> },
    Cursor(SourceCursor),
}

impl From<&FilePart> for Target {
    fn from(part: &FilePart) -> Self {
        let cursor = Cursor {
            offset: part.range.end,
            generation: part.generation,
            eof: part.end_of_file,
            tail: part.tail.map(|tail| skidder_registry::Tail { len: tail.len, crc: tail.crc }),
        };
        Self::File { cursor, resume: part.resume.clone() }
    }
}

impl From<&SourcePart> for Target {
    fn from(part: &SourcePart) -> Self {
        Self::Cursor(SourceCursor { version: part.version, text: Arc::clone(&part.cursor) })
    }
}

impl Source {
    pub(super) fn new(key: Arc<str>, place: Place) -> Self {
        Self {
            key,
            place,
            pending: None,
            first_sequence: 0,
            resume: Resume::Keep,
            ledger: SourceLedger::default(),
            dirty: false,
            unsaved: false,
            new: true,
            ended: false,
        }
    }

    /// Whether a source that has ended is done.
    pub(super) fn is_over(&self) -> bool {
        self.ended && !self.dirty && !self.has_pending() && self.ledger.in_flight() == 0
    }

    /// Whether the registry has an entry of it, or may get one.
    pub(super) fn is_saved(&self) -> bool {
        !matches!(self.place, Place::Unsaved(_))
    }

    /// Its entry for the registry; `None` for a source that is not saved.
    pub(super) fn entry(&self, updated: Timestamp) -> Option<Entry> {
        Some(match &self.place {
            Place::File { meta, cursor, .. } => {
                FileEntry { cursor: *cursor, meta: meta.clone(), updated, ttl: None }.into()
            }
            Place::Cursor(about, cursor) => {
                SourceEntry { cursor: cursor.clone(), about: about.clone(), updated }.into()
            }
            Place::Unsaved(_) => return None,
        })
    }

    pub(super) fn has_pending(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| !pending.is_empty())
    }

    pub(super) fn status(&self, source: SourceId) -> SourceStatus {
        let place = match &self.place {
            Place::File { meta, cursor, .. } => SourcePlace::File(meta.clone(), *cursor),
            Place::Cursor(about, cursor) => {
                SourcePlace::Source(about.clone(), Some(cursor.clone()))
            }
            Place::Unsaved(about) => SourcePlace::Source(about.clone(), None),
        };
        SourceStatus { source, key: self.key.clone(), place, ledger: self.ledger.total() }
    }
}

/// The status of a source, for people.
#[derive(Clone, Debug)]
pub struct SourceStatus {
    /// Its name inside this run.
    pub source: SourceId,
    /// Its key in the registry; of one that is not saved, a name that no other source of this run has.
    pub key: Arc<str>,
    /// What it is, and where the next start would continue.
    pub place: SourcePlace,
    /// Its counts.
    pub ledger: Ledger,
}

/// What a source is, and where the next start would continue.
#[derive(Clone, Debug)]
pub enum SourcePlace {
    /// A file: where it was seen last, how it was recognised, and its cursor.
    File(Meta, Cursor),
    /// Another source; with the cursor of its input, unless nothing is saved of it.
    Source(SourceAbout, Option<SourceCursor>),
}

impl SourceStatus {
    /// The path of a file, or the name of another source.
    pub fn name(&self) -> SourceName {
        match &self.place {
            SourcePlace::File(meta, _) => SourceName::File(Arc::clone(&meta.source)),
            SourcePlace::Source(about, _) => SourceName::Source(about.clone()),
        }
    }

    /// The metadata of a file, and its cursor; `None` for another source.
    pub fn file(&self) -> Option<(&Meta, Cursor)> {
        match &self.place {
            SourcePlace::File(meta, cursor) => Some((meta, *cursor)),
            SourcePlace::Source(..) => None,
        }
    }
}

/// The name of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceName {
    /// A file: its path, which may not be UTF-8.
    File(Arc<Path>),
    /// Another source: the type of its input, and its name there.
    Source(SourceAbout),
}

impl SourceName {
    /// The path or name, any bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::File(path) => path.as_os_str().as_encoded_bytes(),
            Self::Source(about) => about.name.as_bytes(),
        }
    }

    /// The path of a file.
    pub fn path(&self) -> Option<&Arc<Path>> {
        match self {
            Self::File(path) => Some(path),
            Self::Source(_) => None,
        }
    }
}

impl std::fmt::Display for SourceName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(out),
            Self::Source(about) => out.write_str(&about.name),
        }
    }
}
