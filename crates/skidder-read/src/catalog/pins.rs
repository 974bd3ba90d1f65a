//! `pin`: a file that is not fully delivered gets a second name in the data directory, so that other programs can delete it
//! and it is still read to its end, also after a restart.
//!
//! A link is made at the end of a scan for each file that is behind, and removed when all of the file has its verdict. It
//! takes room on the disk only when the other names are gone, and only then counts against `pin.max_bytes`; beyond that
//! the oldest pin is given up. A file that is truncated is truncated under all its names.
//!
//! `Pins` makes and removes the links. What follows from that for the rest of the catalog it returns as [`PinChange`]s.

mod name;
mod sidecar;

use super::inventory::Inventory;
use super::peers::Peer;
use super::places::Content;
use super::{MISSING_GRACE, Source};
use crate::readers::{ReaderLook, ReaderState};
use skidder_event::SourceId;
use skidder_os::sabotage::{self, Sabotage};
use skidder_os::{FileId, FileKind, Fs, Monotonic};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Permissions of the directory of the links: the files keep their own.
const DIRECTORY_MODE: u32 = 0o700;

/// The pins of one input.
#[derive(Default)]
pub(super) struct Pins {
    /// Ordered, because the operations on the disk must come in a fixed order.
    held: BTreeMap<SourceId, Pin>,
    /// The name of the next link.
    next: u64,
    /// It was logged that the system refuses links.
    logged: bool,
    /// Links came or went that a power cut could take back.
    unsynced: bool,
}

#[derive(Clone, Debug)]
struct Pin {
    path: Arc<Path>,
    /// The path of its file when a scan saw it for the last time.
    of: Arc<Path>,
    file: FileId,
    since: Monotonic,
    /// Where its reader was at the last look.
    offset: u64,
}

/// What a change of the pins means for the rest of the catalog.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PinChange {
    /// The file of a pin has no other name: it is read by the name of the pin, as `of`.
    Follow { pin: Arc<Path>, of: Arc<Path> },
    /// A pin is removed.
    Removed(Arc<Path>),
    /// A source that was read by its pin is known by the name that its file had.
    Rename { id: SourceId, path: Arc<Path> },
    /// A source is given up: its reader closes the file.
    Close(SourceId),
}

/// Whether a reader has given out all of a file.
fn is_read(source: &Source, look: &ReaderLook) -> bool {
    if source.compressed { look.finished } else { look.offset >= source.size }
}

/// Stored bytes of a file that were not read, as far as that is known: all bytes of a compressed file.
pub(super) fn unread_bytes(source: &Source, look: &ReaderLook) -> u64 {
    match source.compressed {
        true if look.finished => 0,
        true => source.size,
        false => source.size.saturating_sub(look.offset),
    }
}

/// The path of the file that a pin keeps, from the name of the pin or the file beside it.
pub(super) fn original_path(fs: &dyn Fs, pin: &Path) -> Option<Arc<Path>> {
    let name = pin.file_name()?;
    name::path(name).or_else(|| sidecar::read(fs, pin)).map(Arc::from)
}

impl Pins {
    /// Finds the pins that an earlier run left, in order.
    pub(super) fn load(&mut self, files: &Inventory) -> Vec<PathBuf> {
        let Some(directory) = files.followed.pin_directory() else { return Vec::new() };
        let mut names = Vec::new();
        let listed = files.input.fs.read_dir(directory, &mut |entry| {
            if entry.kind == FileKind::Regular {
                names.push(directory.join(entry.name));
            }
        });
        match listed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::error!(path = %directory.display(), %error,
                    "what is pinned there cannot be read to its end");
            }
            _ => {}
        }
        names.sort_unstable();
        let pins = without_sidecars(&*files.input.fs, names);
        let numbers = pins.iter().filter_map(|pin| pin.file_name().and_then(name::number));
        self.next = numbers.map(|number| number + 1).fold(self.next, u64::max);
        pins
    }

    /// The file of a source has this name.
    pub(super) fn rename(&mut self, id: SourceId, name: &Arc<Path>) {
        if let Some(pin) = self.held.get_mut(&id) {
            pin.of = Arc::clone(name);
        }
    }

    /// Whether there is nothing to do at the end of a scan.
    pub(super) fn is_idle(&self, files: &Inventory) -> bool {
        files.input.settings.pin.max_bytes.is_none()
            && self.held.is_empty()
            && files.followed.pins().is_empty()
    }

    /// Removes the followed pins whose files have another name, or are empty.
    pub(super) fn remove_spare(&mut self, files: &Inventory, now: Monotonic) -> Vec<PinChange> {
        let mut changes = Vec::new();
        for (path, since) in files.followed.pins() {
            let Some(place) = files.places.get(&path) else { continue };
            let is_spare = match &place.content {
                // Its file is in another place, unless the next scan checks that.
                Content::Duplicate(duplicate) => duplicate.comparison.is_none() && !place.recheck,
                // Emptied before it was deleted.
                Content::Nothing => place.size == 0 && now.since(since) >= MISSING_GRACE,
                Content::Source(_) => false,
            };
            if is_spare {
                let of = self.held.iter().find(|(_, pin)| pin.path == path).map(|(id, _)| *id);
                match of {
                    // The source is known by the name of its file from now on.
                    Some(id) => self.release(files, id, &mut changes),
                    None => self.unlink(files, &path, &mut changes),
                }
            }
        }
        changes
    }

    /// Pins the file of a source if it is behind, and removes its pin if it is not any more.
    pub(super) fn update(
        &mut self,
        files: &Inventory,
        id: SourceId,
        now: Monotonic,
    ) -> Vec<PinChange> {
        let mut changes = Vec::new();
        let (Some(source), Some(look)) = (files.sources.get(id), files.readers.look(id)) else {
            return changes;
        };
        let is_settled =
            files.input.cursors.is_settled(id) || sabotage::is_on(Sabotage::PinReleasedEarly);
        let pinned = files.followed.pinned(&source.path);
        let at_pin = pinned.is_some();
        if self.held.get(&id).is_some_and(|pin| pin.file != source.file_id()) {
            self.leave_file(files, id, &look, &mut changes);
            if self.held.contains_key(&id) {
                return changes;
            }
        } else if let Some(of) = pinned
            && !self.held.contains_key(&id)
        {
            let (path, of, offset) = (Arc::clone(&source.path), Arc::clone(of), look.offset);
            let pin = Pin { path, of, file: source.file_id(), since: now, offset };
            self.held.insert(id, pin);
        }
        let is_read = is_read(source, &look);
        let Some(pin) = self.held.get_mut(&id) else {
            let is_behind = !is_read || !is_settled;
            let may_pin = files.input.settings.pin.max_bytes.is_some() && !source.skipped;
            if may_pin && is_behind && source.placed && !at_pin {
                self.pin(files, id, source, now, &mut changes);
            }
            return changes;
        };
        // The beginning of a line is never read if its writer is gone.
        let rests = pin.offset == look.offset
            && look.trouble.is_none()
            && !look.group_waits
            && matches!(look.state, ReaderState::Idle | ReaderState::Closed)
            && now.since(pin.since) >= MISSING_GRACE;
        pin.offset = look.offset;
        if source.placed && !at_pin {
            pin.of = files.followed.shown_or_own(&source.path);
        }
        let is_done = is_settled && (is_read || (at_pin && rests));
        if is_done && is_spare(files, pin, source, &look) {
            self.release(files, id, &mut changes);
        } else if !source.placed && !at_pin {
            pin.since = now;
            let (pin, of) = (Arc::clone(&pin.path), Arc::clone(&pin.of));
            changes.push(PinChange::Follow { pin, of });
        }
        changes
    }

    /// The files that have pins.
    pub(super) fn files(&self) -> HashSet<(u64, u64)> {
        self.held.values().map(|pin| (pin.file.device, pin.file.inode)).collect()
    }

    /// How many files have pins.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Makes the links durable before anything is forgotten of their files: a link that a power cut brings back would be
    /// read again, and a link that it takes away would be lost with its file.
    pub(super) fn sync(&mut self, files: &Inventory) {
        let directory = files.followed.pin_directory();
        let Some(directory) = directory.filter(|_| self.unsynced) else { return };
        // It may be new, and the one around it.
        let mut directories = directory.ancestors().take(3);
        match directories.try_for_each(|directory| files.input.fs.sync_dir(directory)) {
            Ok(()) => self.unsynced = false,
            // Tried again with the next scan.
            Err(error) => tracing::warn!(
                directory = %directory.display(), %error,
                "pins cannot be made durable: a power cut could bring files back or lose them"
            ),
        }
    }

    /// A source continues in another file than the pinned one. If the pinned file has no other name, and more or other
    /// bytes than were read, it is read by its pin: it may have been rewritten before it was deleted. Otherwise the pin
    /// stays until all that was read has its verdict: only then it is certain that the other file has the same bytes.
    fn leave_file(
        &mut self,
        files: &Inventory,
        id: SourceId,
        look: &ReaderLook,
        changes: &mut Vec<PinChange>,
    ) {
        let Some(pin) = self.held.get(&id) else { return };
        let is_settled = files.input.cursors.is_settled(id);
        let is_spare = match files.input.fs.symlink_metadata(&pin.path) {
            Ok(meta) if meta.links > 1 => return self.release(files, id, changes),
            Ok(meta) if meta.size != look.offset => Ok(false),
            Ok(meta) => files.probe.is_as_read(&pin.path, &meta, look.offset, look.tail),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        };
        match is_spare {
            Ok(true) if is_settled => self.release(files, id, changes),
            Ok(false) => {
                if let Some(Pin { path: pin, of, .. }) = self.held.remove(&id) {
                    changes.push(PinChange::Follow { pin, of });
                }
            }
            // The next scan tries again.
            Ok(true) | Err(_) => {}
        }
    }

    /// Gives the file of a source a name in the data directory.
    fn pin(
        &mut self,
        files: &Inventory,
        id: SourceId,
        source: &Source,
        now: Monotonic,
        changes: &mut Vec<PinChange>,
    ) {
        let Some(directory) = files.followed.pin_directory() else { return };
        let (fs, of) = (&files.input.fs, files.followed.shown_or_own(&source.path));
        let (path, linked) = link_pin(&**fs, directory, self.next, &source.path, &of);
        let linked = linked.and_then(|()| fs.symlink_metadata(&path));
        let file = source.file_id();
        match linked {
            Ok(meta) if meta.id() == file => {
                let pin = Pin { path: Arc::from(path), of, file, since: now, offset: 0 };
                self.next += 1;
                self.unsynced = true;
                tracing::debug!(source = id.0, pin = %pin.path.display(), "a file is pinned");
                self.held.insert(id, pin);
            }
            // Another file has the name by now; the next scan knows it.
            Ok(_) => self.unlink(files, &Arc::from(path), changes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                if error.kind() == io::ErrorKind::AlreadyExists {
                    self.next += 1;
                }
                if !std::mem::replace(&mut self.logged, true) {
                    tracing::warn!(path = %source.path.display(), %error,
                        directory = %directory.display(),
                        "a file cannot be pinned: if it is deleted before it is read, only a reader that has it \
                         open can read the rest; pins need the data directory on the file system of the logs, \
                         and the right to link them (`fs.protected_hardlinks`)");
                }
            }
        }
    }

    /// Gives up the oldest pins of files without another name until the others fit into `limit` bytes. Returns how many
    /// bytes they take.
    pub(super) fn enforce_limit(
        &mut self,
        files: &Inventory,
        peer: Option<&Peer>,
        limit: u64,
    ) -> (u64, Vec<PinChange>) {
        let mut only: Vec<(Monotonic, SourceId, u64)> = Vec::new();
        for (&id, pin) in &self.held {
            let is_gone = files.sources.get(id).is_some_and(|source| {
                !source.placed || files.followed.pinned(&source.path).is_some()
            });
            // Pins for other outputs are names of the file too.
            let pins_of_others =
                || peer.map_or(0, |peer| peer.pins_of_others((pin.file.device, pin.file.inode)));
            if is_gone
                && let Ok(meta) = files.input.fs.symlink_metadata(&pin.path)
                && meta.links <= 1 + pins_of_others()
            {
                only.push((pin.since, id, meta.size));
            }
        }
        only.sort_unstable();
        let mut kept = only.iter().map(|(_, _, size)| size).sum::<u64>();
        let mut changes = Vec::new();
        for (_, id, size) in only {
            if kept <= limit {
                break;
            }
            kept -= size;
            let (Some(source), Some(look)) = (files.sources.get(id), files.readers.look(id)) else {
                continue;
            };
            files.input.metrics.pins_given_up.add(1);
            tracing::error!(
                path = %files.followed.saved_path(&source.path).display(),
                read = look.offset, size, bytes_lost = unread_bytes(source, &look), limit,
                "a deleted file is given up before it was read: the files that are pinned take more than \
                 `pin.max_bytes`"
            );
            changes.push(PinChange::Close(id));
            self.release(files, id, &mut changes);
        }
        (kept, changes)
    }

    /// Removes the pin of a source.
    fn release(&mut self, files: &Inventory, id: SourceId, changes: &mut Vec<PinChange>) {
        let Some(pin) = self.held.remove(&id) else { return };
        // What the file was compressed to is found by the name that the file had.
        if let Some(of) = files.followed.pinned(&pin.path)
            && files.sources.get(id).is_some_and(|source| source.path == pin.path)
        {
            changes.push(PinChange::Rename { id, path: Arc::clone(of) });
        }
        self.unlink(files, &pin.path, changes);
    }

    fn unlink(&mut self, files: &Inventory, path: &Arc<Path>, changes: &mut Vec<PinChange>) {
        tracing::debug!(path = %path.display(), "a pin is removed");
        changes.push(PinChange::Removed(Arc::clone(path)));
        self.unsynced = true;
        let fs = &*files.input.fs;
        match fs.remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "a pin cannot be removed");
            }
            _ => remove_sidecar(fs, path),
        }
    }
}

/// The pins among these paths, which are in order. Removes the sidecars of pins that are gone.
fn without_sidecars(fs: &dyn Fs, names: Vec<PathBuf>) -> Vec<PathBuf> {
    let (sidecars, pins): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|path| sidecar::pin_of(path).is_some());
    for pin in sidecars.iter().filter_map(|path| sidecar::pin_of(path)) {
        if pins.binary_search(&pin).is_err() {
            remove_sidecar(fs, &pin);
        }
    }
    pins
}

/// Whether the pin of a source keeps nothing that has no other name, if all of it was read as far as the last scan knows:
/// the file has another name, or exactly what was read. A pin that cannot be looked at is kept.
fn is_spare(files: &Inventory, pin: &Pin, source: &Source, look: &ReaderLook) -> bool {
    let meta = match files.input.fs.symlink_metadata(&pin.path) {
        Ok(meta) => meta,
        Err(error) => return error.kind() == io::ErrorKind::NotFound,
    };
    if source.placed && meta.links > 1 {
        return true;
    }
    let is_as_read = || files.probe.is_as_read(&pin.path, &meta, look.offset, look.tail);
    meta.size == source.size && (source.compressed || is_as_read().unwrap_or(false))
}

/// Links `file` under the next `number`, with `of` in the name if the file system takes that. Returns the name of the link.
fn link_pin(
    fs: &dyn Fs,
    directory: &Path,
    number: u64,
    file: &Path,
    of: &Path,
) -> (PathBuf, io::Result<()>) {
    let link = |name| {
        let path = directory.join(name);
        let mut linked = fs.hard_link(file, &path);
        if linked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            linked = fs
                .create_dir_all(directory, DIRECTORY_MODE)
                .and_then(|()| fs.hard_link(file, &path));
        }
        (path, linked)
    };
    let is_too_long = |(_, linked): &(PathBuf, io::Result<()>)| {
        linked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidFilename)
    };
    let named = name::long(number, of).map(link).filter(|tried| !is_too_long(tried));
    named.unwrap_or_else(|| {
        let pin = directory.join(name::short(number));
        let kept = fs
            .create_dir_all(directory, DIRECTORY_MODE)
            .and_then(|()| sidecar::write(fs, &pin, of));
        if let Err(error) = kept {
            tracing::warn!(path = %of.display(), pin = %pin.display(), %error,
                "the path of a pinned file cannot be kept: its events may have the path of the pin after a crash");
        }
        link(name::short(number))
    })
}

/// Removes the path that is kept for a pin that is gone. The next start tries again if that fails.
fn remove_sidecar(fs: &dyn Fs, pin: &Path) {
    if pin.file_name().is_none_or(|name| name::path(name).is_some()) {
        return;
    }
    if let Err(error) = sidecar::remove(fs, pin) {
        tracing::warn!(pin = %pin.display(), %error, "the path of a pin cannot be removed");
    }
}

#[cfg(test)]
mod tests;
