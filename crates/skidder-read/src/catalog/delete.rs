//! `delete`: files that are read, settled and closed are deleted after a while.
//!
//! A file is deleted only if a reader of this run has brought all of it to the outputs, nothing of it is
//! under way, and its size and content have not changed for the whole grace period. What a writer adds
//! at the last moment is found behind the deletion and read from the open file. If the input feeds several
//! outputs, all of this must hold for each of them (`peers.rs`).

use super::Catalog;
use super::peers::ReadWhole;
use crate::Now;
use skidder_event::SourceId;
use skidder_os::sabotage::{self, Sabotage};
use skidder_os::{File, Monotonic};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Tries to delete a file, one a scan, before it is given up until it changes.
const TRIES_MAX: u32 = 5;

/// A file that waits to be deleted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deletion {
    /// When it was found to be done.
    since: Monotonic,
    /// Its size then.
    size: u64,
    tries: u32,
}

/// Why a file was not deleted.
enum NotDeleted {
    /// It is another file, or longer, or not what was read: the scan finds out.
    Changed,
    /// The system refused.
    RejectedFiles(io::Error),
}

impl Catalog {
    /// Deletes what has been done for long enough.
    pub(super) fn delete_done(&mut self, now: Now) {
        let Some(grace) = self.files.input.settings.delete else { return };
        let mut done: Vec<SourceId> = self
            .files
            .sources
            .iter()
            .filter(|(id, source)| {
                // No pattern matches what was rotated away from a link.
                !source.skipped
                    && !self.files.followed.is_rotated(&source.path)
                    && self.files.is_done(*id)
                    && self.is_verified(*id)
            })
            .map(|(id, _)| id)
            .collect();
        done.sort_unstable();
        let before = std::mem::take(&mut self.deletions);
        let mut waiting = HashMap::with_capacity(done.len());
        for id in done {
            let Some(size) = self.files.sources.get(id).map(|source| source.size) else { continue };
            let deletion = before.get(&id).copied().filter(|deletion| deletion.size == size);
            let deletion = deletion.unwrap_or(Deletion { since: now.monotonic, size, tries: 0 });
            waiting.insert(id, deletion);
        }
        self.agree(&waiting, grace, now.monotonic);
        let mut order: Vec<SourceId> = waiting.keys().copied().collect();
        order.sort_unstable();
        for id in order {
            if let Some(deletion) = waiting.get_mut(&id)
                && !self.try_delete(id, deletion, grace, now.monotonic)
            {
                waiting.remove(&id);
            }
        }
        self.deletions = waiting;
        self.sync_deleted();
    }

    /// Makes durable that files are gone, before anything is forgotten of them: one that a power cut brings back would be
    /// read again.
    fn sync_deleted(&mut self) {
        let fs = &self.files.input.fs;
        self.deleted_in.retain(|directory| match fs.sync_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                // Tried again with the next scan.
                tracing::warn!(directory = %directory.display(), %error,
                    "it cannot be made durable that files were deleted: a power cut could bring them back");
                true
            }
            _ => false,
        });
    }

    /// Says to the catalogs of other outputs which files may go as far as this one is concerned.
    fn agree(&self, waiting: &HashMap<SourceId, Deletion>, grace: Duration, now: Monotonic) {
        let Some(peer) = &self.peer else { return };
        let due = waiting.iter().filter(|(_, deletion)| now.since(deletion.since) >= grace);
        let files = due.filter_map(|(id, _)| {
            let source = self.files.sources.get(*id)?;
            Some(((source.device, source.inode), (*id, self.read_whole(*id)?)))
        });
        peer.agree(files.collect());
    }

    fn read_whole(&self, id: SourceId) -> Option<ReadWhole> {
        let (source, look) = (self.files.sources.get(id)?, self.files.readers.look(id)?);
        Some(ReadWhole { size: source.size, offset: look.offset, tail: look.tail })
    }

    /// Files that another catalog has deleted: what follows is read here too.
    pub(super) fn keep_what_others_deleted(&mut self, now: Monotonic) {
        let Some(peer) = &self.peer else { return };
        for (id, file) in peer.take_deleted() {
            self.keep_what_follows(id, file, now);
        }
    }

    /// Whether what was read of a file is known to be what was written.
    fn is_verified(&self, id: SourceId) -> bool {
        self.files.readers.look(id).is_some_and(|look| !look.unverified)
    }

    /// Deletes a file if its time has come; says whether it still has to wait.
    fn try_delete(
        &mut self,
        id: SourceId,
        deletion: &mut Deletion,
        grace: Duration,
        now: Monotonic,
    ) -> bool {
        if now.since(deletion.since) < grace || deletion.tries >= TRIES_MAX {
            return true;
        }
        let Some(source) = self.files.sources.get(id) else { return false };
        match self.delete_agreed(id) {
            // Another output does not have all of it yet.
            None => true,
            Some(Ok(file)) => {
                self.files.input.metrics.files_deleted.add(1);
                tracing::info!(path = %source.path.display(), size = source.size,
                    "a file was read and delivered, and is deleted");
                let directory = source.path.parent().map(Path::to_path_buf);
                self.keep_what_follows(id, file, now);
                self.deleted_in.extend(directory);
                false
            }
            Some(Err(NotDeleted::Changed)) => false,
            Some(Err(NotDeleted::RejectedFiles(error))) => {
                deletion.tries += 1;
                let given_up = deletion.tries >= TRIES_MAX;
                tracing::error!(path = %source.path.display(), %error, tries = deletion.tries, given_up,
                    "a file that is done cannot be deleted");
                true
            }
        }
    }

    /// Deletes a file if the catalogs of other outputs agree; nothing if one does not.
    fn delete_agreed(&self, id: SourceId) -> Option<Result<Box<dyn File>, NotDeleted>> {
        let peer = self.peer.as_ref().filter(|_| !sabotage::is_on(Sabotage::PeersUnasked));
        let Some(peer) = peer else { return Some(self.delete(id)) };
        let (Some(source), Some(read)) = (self.files.sources.get(id), self.read_whole(id)) else {
            return Some(Err(NotDeleted::Changed));
        };
        let mut own = None;
        let deleted = peer.delete((source.device, source.inode), read, |others| {
            let mut for_others = Vec::new();
            for theirs in others {
                for_others.push(self.open_as_read(id, theirs)?);
            }
            own = Some(self.delete(id)?);
            Ok(for_others)
        })?;
        Some(deleted.and_then(|()| own.ok_or(NotDeleted::Changed)))
    }

    /// Opens the file of a source, if it is still what another catalog has read of it.
    fn open_as_read(&self, id: SourceId, theirs: &ReadWhole) -> Result<Box<dyn File>, NotDeleted> {
        let source = self.files.sources.get(id).ok_or(NotDeleted::Changed)?;
        let file = self.files.input.fs.open(&source.path).map_err(NotDeleted::RejectedFiles)?;
        let meta = file.metadata().map_err(NotDeleted::RejectedFiles)?;
        let same = (meta.device, meta.inode) == (source.device, source.inode);
        if !same
            || (!source.compressed
                && !self.files.probe.tail_fits(&source.path, &meta, theirs.offset, theirs.tail))
        {
            return Err(NotDeleted::Changed);
        }
        Ok(file)
    }

    /// Deletes a file that is still what was read of it; gives what can be read of it now.
    fn delete(&self, id: SourceId) -> Result<Box<dyn File>, NotDeleted> {
        let source = self.files.sources.get(id).ok_or(NotDeleted::Changed)?;
        let look = self.files.readers.look(id).ok_or(NotDeleted::Changed)?;
        let fs = &self.files.input.fs;
        let file = fs.open(&source.path).map_err(NotDeleted::RejectedFiles)?;
        let meta = file.metadata().map_err(NotDeleted::RejectedFiles)?;
        let same =
            (meta.device, meta.inode, meta.size) == (source.device, source.inode, source.size);
        if !same
            || (!source.compressed
                && !self.files.probe.tail_fits(&source.path, &meta, look.offset, look.tail))
        {
            return Err(NotDeleted::Changed);
        }
        match fs.remove_file(&source.path) {
            Ok(()) => Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(NotDeleted::Changed),
            Err(error) => Err(NotDeleted::RejectedFiles(error)),
        }
    }

    /// Somebody may have written to a file between the last look and its deletion.
    fn keep_what_follows(&self, id: SourceId, file: Box<dyn File>, now: Monotonic) {
        let grown = match (file.metadata(), self.files.sources.get(id)) {
            (Ok(meta), Some(source)) => meta.size > source.size,
            // Rather kept open for a while than lost.
            _ => true,
        };
        if grown {
            self.files.readers.keep_open(id, file, now);
        }
    }
}
