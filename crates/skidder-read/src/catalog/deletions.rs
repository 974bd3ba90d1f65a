//! `delete`: files that are read, settled and closed are deleted after a grace period.
//!
//! A file is deleted only if a reader of this run has brought all of it to the outputs, nothing of it is in flight, and
//! its size and content did not change during the whole grace period. Bytes that a writer adds at the last moment are
//! found after the deletion, and read from the open file. If the input feeds several outputs, all of this must hold for
//! each of them (`peers.rs`).

use super::inventory::Inventory;
use super::peers::{Peer, ReadWhole};
use skidder_event::SourceId;
use skidder_os::sabotage::{self, Sabotage};
use skidder_os::{File, Monotonic};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Attempts to delete a file, one a scan. After that the catalog gives up until the file changes.
const TRIES_MAX: u32 = 5;

/// The files that wait to be deleted.
#[derive(Default)]
pub(super) struct Deletions {
    waiting: BTreeMap<SourceId, Deletion>,
    /// Directories in which files were deleted, until that is durable.
    unsynced: BTreeSet<PathBuf>,
}

/// A file that waits to be deleted.
#[derive(Clone, Copy, Debug)]
struct Deletion {
    /// When the file was found to be done.
    since: Monotonic,
    /// Its size then.
    size: u64,
    tries: u32,
}

/// Why a file was not deleted.
enum NotDeleted {
    /// It is another file, or longer, or has other content: the next scan finds out.
    Changed,
    /// The system refused.
    Refused(io::Error),
    /// Another output does not have all of it yet.
    NotAgreed,
}

impl Deletions {
    /// Looks for files that are done, and publishes to other outputs those that have been done for `grace`.
    pub(super) fn find(
        &mut self,
        files: &Inventory,
        peer: Option<&Peer>,
        grace: Duration,
        now: Monotonic,
    ) {
        self.update(done_files(files), now);
        let Some(peer) = peer else { return };
        let due = self.waiting.iter().filter(|(_, deletion)| deletion.is_due(grace, now));
        let agreed = due.filter_map(|(id, _)| {
            let source = files.sources.get(*id)?;
            Some(((source.device, source.inode), (*id, read_whole(files, *id)?)))
        });
        peer.agree(agreed.collect());
    }

    /// The files to delete now, in order.
    pub(super) fn due(&self, grace: Duration, now: Monotonic) -> Vec<SourceId> {
        let due = self.waiting.iter();
        let due = due.filter(|(_, it)| it.is_due(grace, now) && it.tries < TRIES_MAX);
        due.map(|(id, _)| *id).collect()
    }

    /// Deletes a file, if the catalogs of other outputs agree. Returns it, still open.
    pub(super) fn delete(
        &mut self,
        files: &Inventory,
        peer: Option<&Peer>,
        id: SourceId,
    ) -> Option<Box<dyn File>> {
        let outcome = delete_agreed(files, peer, id);
        self.note(files, id, &outcome);
        outcome.ok()
    }

    /// Takes the files that are done, with their sizes. A file that was not done in between, or has another size, waits
    /// for the whole grace period again.
    fn update(&mut self, done: BTreeMap<SourceId, u64>, now: Monotonic) {
        let before = std::mem::take(&mut self.waiting);
        let waits = |(id, size)| {
            let deletion = before.get(&id).copied().filter(|deletion| deletion.size == size);
            (id, deletion.unwrap_or(Deletion { since: now, size, tries: 0 }))
        };
        self.waiting = done.into_iter().map(waits).collect();
    }

    /// Notes how an attempt to delete a file ended, and reports it.
    fn note(
        &mut self,
        files: &Inventory,
        id: SourceId,
        outcome: &Result<Box<dyn File>, NotDeleted>,
    ) {
        let (Some(source), Some(deletion)) = (files.sources.get(id), self.waiting.get_mut(&id))
        else {
            return;
        };
        match outcome {
            Ok(_) => {
                files.input.metrics.files_deleted.add(1);
                tracing::info!(path = %source.path.display(), size = source.size,
                    "a file was read and delivered, and is deleted");
                self.unsynced.extend(source.path.parent().map(Path::to_path_buf));
                self.waiting.remove(&id);
            }
            Err(NotDeleted::NotAgreed) => {}
            Err(NotDeleted::Changed) => {
                self.waiting.remove(&id);
            }
            Err(NotDeleted::Refused(error)) => {
                deletion.tries += 1;
                let given_up = deletion.tries >= TRIES_MAX;
                tracing::error!(path = %source.path.display(), %error, tries = deletion.tries, given_up,
                    "a file that is done cannot be deleted");
            }
        }
    }

    /// Makes deletions durable before anything is forgotten of the files: a file that a power cut brings back would be
    /// read again.
    pub(super) fn sync(&mut self, files: &Inventory) {
        let fs = &files.input.fs;
        self.unsynced.retain(|directory| match fs.sync_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                // Tried again with the next scan.
                tracing::warn!(directory = %directory.display(), %error,
                    "it cannot be made durable that files were deleted: a power cut could bring them back");
                true
            }
            _ => false,
        });
    }
}

impl Deletion {
    fn is_due(&self, grace: Duration, now: Monotonic) -> bool {
        now.since(self.since) >= grace
    }
}

/// The files that are done, with their sizes.
fn done_files(files: &Inventory) -> BTreeMap<SourceId, u64> {
    let done = files.sources.iter().filter(|(id, source)| {
        // No pattern matches a file that was rotated away from a link.
        !source.skipped
            && !files.followed.is_rotated(&source.path)
            && files.is_done(*id)
            && is_verified(files, *id)
    });
    done.map(|(id, source)| (id, source.size)).collect()
}

/// Whether no integrity check of a file has failed.
fn is_verified(files: &Inventory, id: SourceId) -> bool {
    files.readers.look(id).is_some_and(|look| !look.unverified)
}

fn read_whole(files: &Inventory, id: SourceId) -> Option<ReadWhole> {
    let (source, look) = (files.sources.get(id)?, files.readers.look(id)?);
    Some(ReadWhole { size: source.size, offset: look.offset, tail: look.tail })
}

/// Deletes a file if the catalogs of the other outputs agree.
fn delete_agreed(
    files: &Inventory,
    peer: Option<&Peer>,
    id: SourceId,
) -> Result<Box<dyn File>, NotDeleted> {
    let Some(peer) = peer.filter(|_| !sabotage::is_on(Sabotage::PeersUnasked)) else {
        return delete(files, id);
    };
    let (Some(source), Some(read)) = (files.sources.get(id), read_whole(files, id)) else {
        return Err(NotDeleted::Changed);
    };
    let mut own = None;
    let deleted = peer.delete((source.device, source.inode), read, |others| {
        let mut for_others = Vec::new();
        for theirs in others {
            for_others.push(open_as_read(files, id, theirs)?);
        }
        own = Some(delete(files, id)?);
        Ok(for_others)
    });
    deleted.unwrap_or(Err(NotDeleted::NotAgreed)).and_then(|()| own.ok_or(NotDeleted::Changed))
}

/// Opens the file of a source, if it still has what another catalog has read.
fn open_as_read(
    files: &Inventory,
    id: SourceId,
    theirs: &ReadWhole,
) -> Result<Box<dyn File>, NotDeleted> {
    let source = files.sources.get(id).ok_or(NotDeleted::Changed)?;
    let file = files.input.fs.open(&source.path).map_err(NotDeleted::Refused)?;
    let meta = file.metadata().map_err(NotDeleted::Refused)?;
    let same = meta.id() == source.file_id();
    let fits = || files.probe.tail_fits(&source.path, &meta, theirs.offset, theirs.tail);
    if !same || (!source.compressed && !fits()) {
        return Err(NotDeleted::Changed);
    }
    Ok(file)
}

/// Deletes the file of a source if it still has what was read. Returns it, open.
fn delete(files: &Inventory, id: SourceId) -> Result<Box<dyn File>, NotDeleted> {
    let source = files.sources.get(id).ok_or(NotDeleted::Changed)?;
    let look = files.readers.look(id).ok_or(NotDeleted::Changed)?;
    let fs = &files.input.fs;
    let file = fs.open(&source.path).map_err(NotDeleted::Refused)?;
    let meta = file.metadata().map_err(NotDeleted::Refused)?;
    let same = meta.id() == source.file_id() && meta.size == source.size;
    let fits = || files.probe.tail_fits(&source.path, &meta, look.offset, look.tail);
    if !same || (!source.compressed && !fits()) {
        return Err(NotDeleted::Changed);
    }
    match fs.remove_file(&source.path) {
        Ok(()) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(NotDeleted::Changed),
        Err(error) => Err(NotDeleted::Refused(error)),
    }
}

#[cfg(test)]
mod tests {
    //! Whose time has come. That the right files are deleted is tested with the whole catalog (`keeping_tests.rs`).

    use super::*;

    const GRACE: Duration = Duration::from_secs(10);
    const A: SourceId = SourceId(1);
    const B: SourceId = SourceId(2);

    fn at(seconds: u64) -> Monotonic {
        Monotonic::default() + Duration::from_secs(seconds)
    }

    #[test]
    fn a_file_waits_until_it_was_done_for_the_whole_grace_period() {
        let mut deletions = Deletions::default();
        deletions.update([(A, 5), (B, 5)].into(), at(0));
        assert!(deletions.due(GRACE, at(9)).is_empty());
        // It was not done, or has grown in between.
        deletions.update([(B, 6)].into(), at(9));
        deletions.update([(A, 5), (B, 6)].into(), at(10));
        assert!(deletions.due(GRACE, at(18)).is_empty());
        assert_eq!(deletions.due(GRACE, at(19)), [B]);
        assert_eq!(deletions.due(GRACE, at(20)), [A, B]);
    }

    #[test]
    fn a_file_that_cannot_be_deleted_is_given_up_until_its_size_changes() {
        let mut deletions = Deletions::default();
        deletions.update([(A, 5)].into(), at(0));
        deletions.waiting.get_mut(&A).unwrap().tries = TRIES_MAX;
        deletions.update([(A, 5)].into(), at(30));
        assert!(deletions.due(GRACE, at(30)).is_empty());
        deletions.update([(A, 6)].into(), at(30));
        assert_eq!(deletions.due(GRACE, at(40)), [A]);
    }
}
