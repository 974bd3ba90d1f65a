//! The facts about the files of an input: what the last scan saw at each path, which sources there are, and
//! where their readers are.
//!
//! The parts of the catalog read these facts to decide, and the catalog applies what they decided.

use super::followed::FollowedFiles;
use super::former::{MARK, of_former};
use super::pins::PinChange;
use super::places::{Content, Duplicate, Place, Places};
use super::probe::Probe;
use super::sources::Sources;
use super::{Candidate, SourceIds};
use crate::Now;
use crate::fingerprint::{Head, HeadError};
use crate::reader::InputContext;
use crate::readers::{ReaderState, Readers, Trouble};
use crate::scan::Found;
use crate::settings::Compression;
use skidder_event::SourceId;
use skidder_os::{File, FileId, Monotonic, Timestamp};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of one input.
pub(super) struct Inventory {
    pub(super) input: Arc<InputContext>,
    pub(super) readers: Arc<Readers>,
    pub(super) probe: Probe,
    pub(super) places: Places,
    pub(super) sources: Sources,
    pub(super) followed: FollowedFiles,
}

impl Inventory {
    pub(super) fn new(
        input: Arc<InputContext>,
        readers: Arc<Readers>,
        ids: Arc<SourceIds>,
    ) -> Self {
        Self {
            probe: Probe::new(Arc::clone(&input), Arc::clone(&readers)),
            places: Places::default(),
            sources: Sources::new(ids, &input.settings),
            followed: FollowedFiles::new(&input.settings),
            input,
            readers,
        }
    }

    /// Whether a source is read to its end and closed, and has nothing in flight.
    pub(super) fn is_done(&self, id: SourceId) -> bool {
        let (Some(source), Some(look)) = (self.sources.get(id), self.readers.look(id)) else {
            return false;
        };
        let read = if source.compressed { look.finished } else { look.offset == source.size };
        source.placed
            && read
            && look.trouble.is_none()
            && look.state == ReaderState::Closed
            && self.input.cursors.is_settled(id)
    }

    /// Whether a file is too old to be read, by `ignore_older` or `ignore_inactive`.
    pub(super) fn is_ignored(&self, modified: Timestamp, now: Timestamp) -> bool {
        let settings = &self.input.settings;
        settings.ignore_older.is_some_and(|limit| now.since(modified) > limit)
            || settings.ignore_before.is_some_and(|before| modified <= before)
    }

    /// Whether a source is not read because its file is too old.
    pub(super) fn is_ignored_source(&self, id: SourceId, now: Now) -> bool {
        let Some(source) = self.sources.get(id) else { return false };
        let place = self.places.get(&source.path);
        place.is_some_and(|place| self.is_ignored(place.modified, now.wall))
    }

    /// A new file gets its inode for itself: displaced sources that had this inode do not continue in it.
    /// Returns false while one of them has a turn: it is not known what that turn has read, and the new file
    /// must wait. A file that was rotated away from a link does not wait, because it would be unknown if the
    /// program ended meanwhile; some of its lines may be sent twice then.
    pub(super) fn has_inode_for_itself(&mut self, candidate: &Candidate) -> bool {
        let meta = &candidate.found.metadata;
        let mut ids = self.sources.index().with_inode((meta.device, meta.inode)).to_vec();
        ids.retain(|&id| self.is_displaced(id));
        let may_wait = !self.followed.is_rotated(&candidate.path);
        let reads = |id: &SourceId| self.readers.look(*id).is_some_and(|look| look.in_turn);
        if may_wait && ids.iter().any(reads) {
            return false;
        }
        for id in ids {
            self.lose_inode(id);
        }
        true
    }

    /// The inode of a source belongs to other content now.
    pub(super) fn lose_inode(&mut self, id: SourceId) {
        self.sources.clear_inode(id);
        self.publish(id, false);
        self.readers.close(id);
    }

    /// Sends the state of a source to the registry and to its reader, which opens the file again if `reopen`.
    pub(super) fn publish(&self, id: SourceId, reopen: bool) {
        let Some(source) = self.sources.get(id) else { return };
        let meta = self.sources.meta(source, self.followed.saved_path(&source.path));
        self.input.cursors.update(id, &source.key, meta);
        let usual = self.input.settings.fingerprint.length;
        let target = source.target(usual, self.followed.shown(&source.path));
        self.readers.place(id, target, Arc::clone(&source.key), reopen);
    }

    /// A source becomes a former one: its key and its place belong to the new content of its file.
    pub(super) fn make_former(&mut self, id: SourceId, candidate: &Candidate) {
        let key = self.former_key(id);
        let Some(source) = self.sources.get(id) else { return };
        let in_place = source.file_id() == candidate.found.metadata.id();
        tracing::debug!(source = id.0, key, "what a source was has lost its place");
        self.sources.make_former(id, key.into());
        if in_place {
            self.lose_inode(id);
        } else {
            self.publish(id, false);
        }
    }

    /// A key for a former source that is not in use.
    pub(super) fn former_key(&self, id: SourceId) -> String {
        let Some(source) = self.sources.get(id) else { return String::new() };
        let key = of_former(&source.key).unwrap_or(&source.key);
        let mut number = self.readers.look(id).map_or(0, |look| look.generation);
        loop {
            let former = format!("{key}{MARK}{number}");
            let taken = self.sources.is_former_key(&former)
                || !matches!(self.input.cursors.saved(&former), Ok(None) | Err(_));
            if !taken {
                return former;
            }
            number += 1;
        }
    }

    /// The next scan processes the file of a source, even if it does not change.
    pub(super) fn recheck_source(&mut self, id: SourceId) {
        if let Some(source) = self.sources.get(id) {
            self.places.recheck(&source.path);
        }
    }

    /// The file of a source has changed. A duplicate may be all that is left of what it was, and is compared
    /// again unless its last bytes are those of the file at the same offset.
    pub(super) fn recheck_duplicates_of(&mut self, id: SourceId) {
        if !self.places.may_have_duplicates() {
            return;
        }
        let Some(source) = self.sources.get(id) else { return };
        let here = source.file_id();
        let of_source = |place: &Place, duplicate: &Duplicate| {
            duplicate.of == id && duplicate.comparison.is_none() && place.id() != here
        };
        let mut copies: Vec<(Arc<Path>, FileId, u64)> = self
            .places
            .duplicates()
            .filter(|(_, place, duplicate)| of_source(place, duplicate))
            .map(|(path, place, _)| (Arc::clone(path), place.id(), place.size))
            .collect();
        // Not in the order of a hash map: the simulated world replays the operations on the disk.
        copies.sort_unstable();
        copies.retain(|(path, id, size)| {
            source.compressed || !self.probe.ends_alike((path, *id), (&source.path, here), *size)
        });
        for (path, ..) in copies {
            self.places.recheck(&path);
        }
    }

    /// A duplicate is gone, or has changed. If its source was displaced, and lived on only in this duplicate,
    /// the source is missing from now on.
    pub(super) fn forget_duplicate(&mut self, content: &Content, now: Monotonic) {
        if let Content::Duplicate(duplicate) = content {
            self.sources.extend_missing(duplicate.of, now);
        }
    }

    pub(super) fn lose_place(&mut self, path: &Path, now: Monotonic) {
        match self.places.remove(path).map(|(_, place)| place.content) {
            Some(Content::Source(id)) => self.sources.displace(id),
            Some(content) => self.forget_duplicate(&content, now),
            None => {}
        }
    }

    pub(super) fn is_displaced(&self, id: SourceId) -> bool {
        self.sources.is_displaced(id)
    }

    /// A source has lost its place. Its reader reads the rest of the file if the file is open. Writes to the
    /// file under another name are not reported any more.
    pub(super) fn note_missing(&mut self, id: SourceId, now: Monotonic) {
        if self.sources.set_missing(id, now) {
            self.readers.set_watched(id, None);
            self.readers.wake_if_open(id);
        }
    }

    /// The file of a source was deleted. If it has grown since the last scan, or that cannot be found out, its reader gets
    /// the open file.
    pub(super) fn keep_if_grown(&self, id: SourceId, file: Box<dyn File>, now: Monotonic) {
        let grown = match (file.metadata(), self.sources.get(id)) {
            (Ok(meta), Some(source)) => meta.size > source.size,
            // Better open for a while than lost.
            _ => true,
        };
        if grown {
            self.readers.keep_open(id, file, now);
        }
    }

    /// The next scan looks at the files of all readers that met something unexpected. Returns the paths to look at now: those
    /// of readers that found their file rewritten or replaced. For the others it would not help to try again at once.
    pub(super) fn take_troubled(&mut self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for id in self.readers.take_troubled(|id| self.sources.contains(id)) {
            let Some(source) = self.sources.get(id) else { continue };
            let (path, compressed) = (Arc::clone(&source.path), source.compressed);
            let trouble = self.readers.look(id).and_then(|look| look.trouble);
            if compressed && trouble == Some(Trouble::Rewritten) {
                self.sources.reject_file(id);
            }
            if trouble != Some(Trouble::Damaged)
                && self.places.recheck(&path)
                && matches!(trouble, Some(Trouble::Rewritten | Trouble::Displaced))
            {
                paths.push(path.to_path_buf());
            }
        }
        paths
    }

    /// Applies what the pins have changed.
    pub(super) fn apply_pin_changes(&mut self, changes: Vec<PinChange>, now: Monotonic) {
        for change in changes {
            match change {
                PinChange::Follow { pin, of } => self.followed.add_pin(pin, of, now),
                PinChange::Removed(pin) => {
                    self.followed.remove(&pin);
                    self.lose_place(&pin, now);
                }
                PinChange::Rename { id, path } => self.sources.rename(id, path),
                PinChange::Close(id) => self.readers.close(id),
            }
        }
    }

    /// The beginning of a file, or `None` while it is too short to distinguish it from others.
    pub(super) fn head(&self, found: &Found) -> Result<Option<Head>, HeadError> {
        // Rotated files of a link may be compressed even if the files that match are not.
        let is_rotated = self.followed.is_rotated(&found.path);
        let settings = self.input.settings.compression;
        self.probe.head(found, if is_rotated { Compression::Auto } else { settings })
    }

    /// Whether to search for files that were rotated away from the targets of links and the logs of containers.
    pub(super) fn follows_rotated(&self) -> bool {
        self.input.settings.follows_rotated()
    }

    /// Whether a file was rotated away from its log before the time from which such files are read.
    pub(super) fn is_rotated_before(&self, path: &Path, modified: Timestamp) -> bool {
        let since = self.input.settings.rotated_since;
        since.is_some_and(|since| modified < since) && self.followed.is_rotated(path)
    }
}
