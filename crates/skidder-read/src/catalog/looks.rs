//! The state of every file, and the reason for it: for people.
//!
//! Nothing of this is stored. A reason is derived from what is known at the time of a query, and from the
//! beginning of a file without readable content.

mod reason;

use super::forecast::DeletionForecast;
use super::inventory::Inventory;
use super::pins::unread_bytes;
use super::places::Content;
use super::watchdog::is_behind;
use crate::Now;
use crate::errors::FileError;
use crate::fingerprint::HeadError;
use crate::readers::{ReaderLook, ReaderState, Trouble};
use crate::scan::Found;
pub use reason::Reason;
use skidder_event::SourceId;
use skidder_os::{FileId, Metadata, Timestamp};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Which files to report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileQuery {
    /// Only those behind this path, in the order of the paths.
    pub after: Option<PathBuf>,
    /// So many at most, and those with the path of the last one.
    pub limit: usize,
    /// Only these paths and what is below them; none = all.
    pub paths: Vec<PathBuf>,
}

/// Some of the files of an input, in the order of their paths.
#[derive(Clone, Debug, Default)]
pub struct FilePage {
    /// The files.
    pub files: Vec<FileLook>,
    /// There are more behind the last one.
    pub more: bool,
    /// Directories that the last scan could not list, and why; in the order of their paths, the same on each page.
    pub unlisted: Vec<(PathBuf, String)>,
}

/// The state of a file that matches.
#[derive(Clone, Debug)]
pub struct FileLook {
    /// Its path.
    pub path: Arc<Path>,
    /// Its key in the registry; `None` while it has none.
    pub key: Option<String>,
    /// What stands in the key for the file.
    pub identity: Option<String>,
    /// Number of bytes that its fingerprint covers, if it is known by one.
    pub fingerprint_len: Option<u32>,
    /// How often it was rewritten.
    pub generation: u32,
    /// Its size in bytes as stored, when it was seen or read last.
    pub size: u64,
    /// When it was changed last.
    pub modified: Timestamp,
    /// Whether it is stored compressed.
    pub compressed: bool,
    /// Everything before this byte is delivered or has another verdict; decompressed bytes.
    pub cursor: u64,
    /// Everything before this byte was read; decompressed bytes.
    pub read: u64,
    /// Bytes behind the cursor; `None` if unknown: of a compressed file that is not read to its end.
    pub behind: Option<u64>,
    /// Its state.
    pub state: FileState,
    /// Why.
    pub reason: Option<Reason>,
    /// While it is read: what keeps it from its end when its turn is over, which may be just a look for more.
    pub at_rest: Option<Reason>,
    /// Its name inside this run; `None` while it has none.
    pub source: Option<SourceId>,
    /// Which file it is, as the last scan saw it.
    pub id: FileId,
    /// How long it takes until rotation deletes it; `None` if that is not known.
    pub deleted_in: Option<Duration>,
    /// The last error that was met with it.
    pub error: Option<FileError>,
}

/// The state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// In line for a turn, or having one.
    Reading,
    /// There is something to read, and a limit is reached.
    Waiting,
    /// Open at its end.
    Idle,
    /// Not open; a change wakes it.
    Closed,
    /// A compressed file that was read to its verified end.
    Finished,
    /// Not read because of its age.
    Ignored,
    /// Not read because another file has its content.
    Held,
    /// Nothing is in it.
    Empty,
    /// Nothing that can be read.
    Unreadable,
    /// No longer at its path.
    Gone,
}

impl FileLook {
    /// Why the file was not read completely, once nothing is being read any more; `None` if it was, or is
    /// skipped on purpose. A line without an end is not read yet.
    pub fn why_unread(&self) -> Option<&Reason> {
        self.reason.as_ref().or(self.at_rest.as_ref()).filter(|reason| match reason {
            Reason::Waiting(_)
            | Reason::Metadata
            | Reason::Comparing(_)
            | Reason::TooShort
            | Reason::Damaged(_)
            | Reason::Unopened(_)
            | Reason::BeingWritten
            | Reason::GoneUnread
            | Reason::RewrittenUnread
            | Reason::Unknown => true,
            Reason::Older(_)
            | Reason::NotModified
            | Reason::RotatedBefore
            | Reason::SameAs(_)
            | Reason::NextScan
            | Reason::Empty
            | Reason::LineWithoutEnd
            | Reason::InFlight
            | Reason::AtEnd
            | Reason::Inactive
            | Reason::Finished
            | Reason::Gone
            | Reason::Rewritten => false,
        })
    }
}

impl FileState {
    /// The state as one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
            Self::Closed => "closed",
            Self::Finished => "finished",
            Self::Ignored => "ignored",
            Self::Held => "held",
            Self::Empty => "empty",
            Self::Unreadable => "unreadable",
            Self::Gone => "gone",
        }
    }
}

/// A row of the report, before the file is looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    /// The file at a path.
    Place,
    /// A source without a place.
    Displaced(SourceId),
}

/// Sorted by path; the file at a path comes before sources that were there.
fn owned(rows: Vec<(&Arc<Path>, Row)>) -> Vec<(Arc<Path>, Row)> {
    let mut rows: Vec<_> = rows.into_iter().map(|(path, row)| (Arc::clone(path), row)).collect();
    rows.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.cmp(&other.1)));
    rows
}

/// What can be reported about the files of an input.
pub(super) struct FileReport<'a> {
    pub(super) files: &'a Inventory,
    pub(super) forecast: &'a DeletionForecast,
    pub(super) now: Now,
}

impl FileReport<'_> {
    /// Some of the files, in the order of their paths. Costs a walk over all names.
    pub(super) fn page(&self, query: &FileQuery) -> FilePage {
        let wanted = |path: &Path| {
            query.after.as_ref().is_none_or(|after| path > after)
                && (query.paths.is_empty()
                    || query.paths.iter().any(|wanted| path.starts_with(wanted)))
        };
        let places = self.files.places.iter().map(|(path, _)| (path, Row::Place));
        let lost = self.files.sources.iter().filter(|(_, source)| !source.placed);
        let lost = lost.map(|(id, source)| (&source.path, Row::Displaced(id)));
        let mut rows: Vec<(&Arc<Path>, Row)> =
            places.chain(lost).filter(|(path, _)| wanted(path)).collect();
        let whole = rows.len();
        if let Some(last) = query.limit.checked_sub(1).filter(|last| *last < whole) {
            let (_, end, _) = rows.select_nth_unstable_by(last, |one, other| one.0.cmp(other.0));
            let end = Arc::clone(end.0);
            rows.retain(|(path, _)| **path <= end);
        }
        let more = rows.len() < whole;
        let rows = owned(rows);
        FilePage { more, files: self.looks(rows), unlisted: Vec::new() }
    }

    fn looks(&self, rows: Vec<(Arc<Path>, Row)>) -> Vec<FileLook> {
        rows.into_iter()
            .filter_map(|(path, row)| match row {
                Row::Place => self.look_at_place(path),
                Row::Displaced(id) => self.look_at_source(id, None),
            })
            .collect()
    }

    fn look_at_place(&self, path: Arc<Path>) -> Option<FileLook> {
        let place = self.files.places.get(&path)?;
        let metadata = place.metadata();
        let (state, reason) = match &place.content {
            Content::Source(id) => {
                let id = *id;
                return self.look_at_source(id, Some(metadata));
            }
            Content::Duplicate(duplicate) => {
                let original =
                    self.files.sources.get(duplicate.of).map(|source| source.path.to_path_buf());
                let original = original.unwrap_or_default();
                let compared = duplicate.comparison.is_some();
                let reason =
                    if compared { Reason::Comparing(original) } else { Reason::SameAs(original) };
                (FileState::Held, reason)
            }
            Content::Nothing if metadata.size == 0 => (FileState::Empty, Reason::Empty),
            Content::Nothing => match self.why_nothing(&path, metadata) {
                // This is no error, and the length of its text is unknown.
                reason @ (Reason::BeingWritten | Reason::NextScan) => (FileState::Held, reason),
                reason => (FileState::Unreadable, reason),
            },
        };
        let deleted_in = self.forecast.deleted_in(&path, self.now.wall);
        Some(FileLook {
            path,
            key: None,
            identity: None,
            fingerprint_len: None,
            generation: 0,
            size: metadata.size,
            modified: metadata.modified,
            compressed: false,
            cursor: 0,
            read: 0,
            behind: (state != FileState::Held).then_some(metadata.size),
            state,
            reason: Some(reason),
            at_rest: None,
            source: None,
            id: metadata.id(),
            deleted_in,
            error: None,
        })
    }

    /// Why a file has no readable content, judging by its beginning.
    fn why_nothing(&self, path: &Path, metadata: Metadata) -> Reason {
        if metadata.size == 0 {
            return Reason::Empty;
        }
        let found = Found { path: path.to_owned(), metadata };
        match self.files.head(&found) {
            Ok(Some(head)) if head.growing => Reason::BeingWritten,
            Ok(Some(_)) => Reason::NextScan,
            Ok(None) => {
                match self.files.probe.any_head(&found, self.files.input.settings.compression) {
                    Ok(head) if head.compressed && head.growing => Reason::BeingWritten,
                    Ok(head) if head.compressed && head.bytes.is_empty() => Reason::Empty,
                    _ => Reason::TooShort,
                }
            }
            Err(HeadError::Io(error)) if error.kind() == std::io::ErrorKind::Interrupted => {
                Reason::NextScan
            }
            Err(HeadError::Io(error)) => Reason::Unopened(error.to_string()),
            Err(error) => Reason::Damaged(error.to_string()),
        }
    }

    fn look_at_source(&self, id: SourceId, place: Option<Metadata>) -> Option<FileLook> {
        let source = self.files.sources.get(id)?;
        let look = self.files.readers.look(id)?;
        let cursor =
            self.files.input.cursors.cursor(id).map_or(look.offset, |cursor| cursor.offset);
        let modified = place.map_or(Timestamp::default(), |place| place.modified);
        // The reader may have read more since the last scan: a write wakes it.
        let (size, behind) = if source.compressed {
            // The length of its text is unknown until its end is read.
            (source.size, look.finished.then(|| look.offset.saturating_sub(cursor)))
        } else {
            let size = source.size.max(look.offset);
            (size, Some(size.saturating_sub(cursor)))
        };
        let ignored = place.is_some() && self.files.is_ignored(modified, self.now.wall);
        let (state, reason) = self.explain(id, &look, cursor, ignored);
        let at_rest = (state == FileState::Reading).then(|| self.at_rest(id, &look)).flatten();
        let settings = &self.files.input.settings;
        let by_content = settings.identity.is_content();
        Some(FileLook {
            path: Arc::clone(&source.path),
            key: Some(source.key.to_string()),
            identity: settings.value_in(&source.key).map(str::to_owned),
            fingerprint_len: by_content.then_some(source.fingerprint.len),
            generation: look.generation,
            size,
            modified,
            compressed: source.compressed,
            cursor,
            read: look.offset,
            behind,
            state,
            reason,
            at_rest,
            source: Some(id),
            id: FileId { device: source.device, inode: source.inode },
            deleted_in: place.and_then(|_| self.forecast.deleted_in(&source.path, self.now.wall)),
            error: self.files.input.metrics.last_errors.of(id),
        })
    }

    /// The state of a source, and the reason for it.
    fn explain(
        &self,
        id: SourceId,
        look: &ReaderLook,
        cursor: u64,
        ignored: bool,
    ) -> (FileState, Option<Reason>) {
        let Some(source) = self.files.sources.get(id) else { return (FileState::Gone, None) };
        let state = match look.state {
            ReaderState::Reading => return (FileState::Reading, None),
            ReaderState::WaitingForSlot => {
                return (FileState::Waiting, look.waits.map(Reason::Waiting));
            }
            ReaderState::Held => return (FileState::Waiting, Some(Reason::Metadata)),
            ReaderState::Idle => FileState::Idle,
            ReaderState::Closed => FileState::Closed,
        };
        if !source.placed {
            // It ended where its reader found something else behind it.
            let is_read = source.former && source.ended_at == Some(look.offset);
            let is_unread = !is_read && unread_bytes(source, look) > 0;
            let reason = match (source.former, is_unread) {
                (true, false) => Reason::Rewritten,
                (true, true) => Reason::RewrittenUnread,
                (false, false) => Reason::Gone,
                (false, true) => Reason::GoneUnread,
            };
            return (FileState::Gone, Some(reason));
        }
        let behind = is_behind(source, look);
        if source.rotated_before && !behind && look.trouble.is_none() {
            return (FileState::Ignored, Some(Reason::RotatedBefore));
        }
        let reason = match look.trouble {
            Some(trouble) => self.trouble(id, look, trouble),
            None if look.finished => {
                let is_settled = cursor >= look.offset;
                let reason = if is_settled { Reason::Finished } else { Reason::InFlight };
                return (FileState::Finished, Some(reason));
            }
            None if ignored && (behind || look.state == ReaderState::Closed) => {
                let older = self.files.input.settings.ignore_older.map(Reason::Older);
                return (FileState::Ignored, Some(older.unwrap_or(Reason::NotModified)));
            }
            None if behind => Reason::Unknown,
            None if source.compressed => Reason::BeingWritten,
            None if look.offset < source.size => Reason::LineWithoutEnd,
            None if cursor < look.offset => Reason::InFlight,
            None if state == FileState::Closed => Reason::Inactive,
            None => Reason::AtEnd,
        };
        (state, Some(reason))
    }

    /// The reason to report for a source whose last turn met trouble.
    fn trouble(&self, id: SourceId, look: &ReaderLook, trouble: Trouble) -> Reason {
        match trouble {
            Trouble::Damaged => {
                Reason::Damaged(format!("everything before byte {} was read", look.offset))
            }
            Trouble::Failed => {
                let error = self.files.input.metrics.last_errors.of(id);
                let logged =
                    error.map_or_else(|| "the last attempt failed".to_owned(), |it| it.text);
                Reason::Unopened(logged)
            }
            Trouble::Displaced | Trouble::Rewritten => Reason::NextScan,
        }
    }

    /// Why a source with a turn will not be at its end afterwards.
    fn at_rest(&self, id: SourceId, look: &ReaderLook) -> Option<Reason> {
        let has_no_end = self.files.sources.get(id)?.compressed && !look.finished;
        let trouble = look.trouble.map(|trouble| self.trouble(id, look, trouble));
        trouble.or(has_no_end.then_some(Reason::BeingWritten))
    }
}
