//! `pin`: a file that is not yet brought to the outputs keeps a second name in the data directory, so that it can
//! be deleted by others and still be read to its end, also after a restart.
//!
//! A link is made at the end of a scan for each file that is behind, and removed when all of it has its verdict. Only
//! when the other names are gone does it cost room on the disk, and only that counts against `pin.max_bytes`;
//! beyond it the oldest is given up. What is truncated is truncated under all its names.

mod name;
mod sidecar;

use super::{Candidate, Catalog, Content, MISSING_GRACE, Source};
use crate::fingerprint::Fingerprint;
use crate::readers::{ReaderLook, ReaderState};
use crate::scan::Found;
use skidder_event::SourceId;
use skidder_os::sabotage::{self, Sabotage};
use skidder_os::{FileKind, Monotonic};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Permissions of the directory of the links: the files keep their own.
const DIRECTORY_MODE: u32 = 0o700;

/// Links of one input.
#[derive(Default)]
pub(super) struct Pins {
    /// In an order, because the file system is asked for them in turn.
    held: BTreeMap<SourceId, Pin>,
    /// The name of the next link.
    next: u64,
    /// That the system refuses links was told.
    logged: bool,
    /// Links came or went that a power cut could take back.
    unsynced: bool,
}

#[derive(Clone, Debug)]
struct Pin {
    path: Arc<Path>,
    /// What its file was called when a scan saw it for the last time.
    of: Arc<Path>,
    device: u64,
    inode: u64,
    since: Monotonic,
    /// Where its reader was at the last look.
    offset: u64,
}

/// Whether a reader has given out all of a file.
fn is_read(source: &Source, look: &ReaderLook) -> bool {
    if source.compressed { look.finished } else { look.offset >= source.size }
}

/// Stored bytes of a file that were not read, as far as that can be told: all of a compressed one.
pub(super) fn unread_bytes(source: &Source, look: &ReaderLook) -> u64 {
    match source.compressed {
        true if look.finished => 0,
        true => source.size,
        false => source.size.saturating_sub(look.offset),
    }
}

impl Catalog {
    /// Finds the links that an earlier run left.
    pub(super) fn load_pins(&mut self, now: Monotonic) {
        let Some(directory) = self.files.followed.pin_directory().map(Path::to_path_buf) else {
            return;
        };
        let mut names = Vec::new();
        let listed = self.files.input.fs.read_dir(&directory, &mut |entry| {
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
        let names = self.without_sidecars(names);
        for path in &names {
            let number = path.file_name().and_then(name::number);
            self.pins.next = self.pins.next.max(number.map_or(0, |number| number + 1));
            let pin: Arc<Path> = Arc::from(path.as_path());
            let of = self.pinned_path(path).or_else(|| self.named_path(path));
            if of.is_none() {
                tracing::warn!(pin = %pin.display(),
                    "nothing says what this pinned file was called: its events have the path of the pin");
            }
            let of = of.unwrap_or_else(|| Arc::clone(&pin));
            self.files.followed.add_pin(pin, of, now);
        }
        if !names.is_empty() {
            tracing::info!(files = names.len(), "files that were pinned are read to their end");
        }
    }

    /// The names of pins among these; the sidecars of pins that are gone are removed.
    fn without_sidecars(&self, names: Vec<PathBuf>) -> Vec<PathBuf> {
        let (sidecars, pins): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|path| sidecar::pin_of(path).is_some());
        for pin in sidecars.iter().filter_map(|path| sidecar::pin_of(path)) {
            if pins.binary_search(&pin).is_err() {
                self.remove_sidecar(&pin);
            }
        }
        pins
    }

    /// What a pinned file was called when it was pinned.
    fn named_path(&self, pin: &Path) -> Option<Arc<Path>> {
        let name = pin.file_name()?;
        name::path(name).or_else(|| sidecar::read(&*self.files.input.fs, pin)).map(Arc::from)
    }

    /// What a pinned file was called, from the saved entry that it goes on with.
    fn pinned_path(&mut self, path: &Path) -> Option<Arc<Path>> {
        let metadata = self.files.input.fs.symlink_metadata(path).ok()?;
        let found = Found { path: path.to_path_buf(), metadata };
        let head = self.head(&found).ok()??;
        let print = Fingerprint::of(&head.bytes);
        let path = Arc::from(path);
        let candidate = Candidate {
            found,
            path,
            head,
            before: None,
            touched: false,
            claim: None,
            duplicate_of: None,
        };
        self.claimed_path(&candidate, &print).filter(|of| !self.files.followed.is_pin_path(of))
    }

    /// A file has the content of a source. If nothing is known of that but its pin, because the program ended before
    /// more was saved, it is known by the name of this file from now on.
    pub(super) fn name_pin(&mut self, id: SourceId, name: &Arc<Path>) {
        let Some(pin) = self.files.sources.get(id).map(|source| Arc::clone(&source.path)) else {
            return;
        };
        if self.files.followed.pinned(&pin) != Some(&pin) || self.files.followed.is_pin_path(name) {
            return;
        }
        self.files.followed.rename_pin(&pin, name);
        if let Some(pin) = self.pins.held.get_mut(&id) {
            pin.of = Arc::clone(name);
        }
        self.files.publish(id, false);
    }

    /// Pins what is behind, removes the pins of what is not any more, and keeps to the limit.
    pub(super) fn keep_pins(&mut self, now: Monotonic) {
        let limit = self.files.input.settings.pin.max_bytes;
        let leftovers = self.files.followed.pins();
        if limit.is_none() && self.pins.held.is_empty() && leftovers.is_empty() {
            return;
        }
        for (path, since) in leftovers {
            let Some(place) = self.files.places.get(&path) else { continue };
            let is_spare = match &place.content {
                // Its file is in a place of its own, unless that is to be looked at again.
                Content::Duplicate(duplicate) => duplicate.comparison.is_none() && !place.recheck,
                // Emptied before it was removed.
                Content::Nothing => place.size == 0 && now.since(since) >= MISSING_GRACE,
                Content::Source(_) => false,
            };
            if is_spare {
                let of = self.pins.held.iter().find(|(_, pin)| pin.path == path).map(|(id, _)| *id);
                match of {
                    // What it was is known by its name from now on.
                    Some(id) => self.release(id),
                    None => self.unlink(&path),
                }
            }
        }
        for id in self.files.sources.ids_in_order() {
            self.keep_pin(id, limit.is_some(), now);
        }
        if let Some(peer) = &self.peer {
            peer.pins(self.pins.held.values().map(|pin| (pin.device, pin.inode)).collect());
        }
        let kept = self.enforce_limit(limit.unwrap_or(u64::MAX));
        self.sync_pins();
        self.files.input.metrics.pinned_files.set(self.pins.held.len() as u64);
        self.files.input.metrics.pinned_bytes.set(kept);
    }

    /// Makes durable what was done to links, before anything is forgotten of their files: a link that a power cut
    /// brings back would be read again, and one that it takes away be lost with its file.
    fn sync_pins(&mut self) {
        let directory = self.files.followed.pin_directory();
        let Some(directory) = directory.filter(|_| self.pins.unsynced) else {
            return;
        };
        // It may have been made just now, and the one around it.
        let mut directories = directory.ancestors().take(3);
        match directories.try_for_each(|directory| self.files.input.fs.sync_dir(directory)) {
            Ok(()) => self.pins.unsynced = false,
            // Tried again with the next scan.
            Err(error) => tracing::warn!(
                directory = %directory.display(), %error,
                "pins cannot be made durable: a power cut could bring files back or lose them"
            ),
        }
    }

    fn keep_pin(&mut self, id: SourceId, pinning: bool, now: Monotonic) {
        let (Some(source), Some(look)) = (self.files.sources.get(id), self.files.readers.look(id))
        else {
            return;
        };
        let file = (source.device, source.inode);
        let is_settled =
            self.files.input.cursors.is_settled(id) || sabotage::is_on(Sabotage::PinReleasedEarly);
        let at_pin = self.files.followed.pinned(&source.path).is_some();
        if self.pins.held.get(&id).is_some_and(|pin| (pin.device, pin.inode) != file) {
            self.leave_pinned_file(id, &look, now);
            if self.pins.held.contains_key(&id) {
                return;
            }
        } else if let Some(of) = self.files.followed.pinned(&source.path)
            && !self.pins.held.contains_key(&id)
        {
            let (path, of, offset) = (Arc::clone(&source.path), Arc::clone(of), look.offset);
            let pin = Pin { path, of, device: file.0, inode: file.1, since: now, offset };
            self.pins.held.insert(id, pin);
        }
        let Some(source) = self.files.sources.get(id) else { return };
        let is_read = is_read(source, &look);
        let Some(pin) = self.pins.held.get_mut(&id) else {
            let is_behind = !is_read || !is_settled;
            if pinning && is_behind && source.placed && !source.skipped && !at_pin {
                self.pin(id, now);
            }
            return;
        };
        // The beginning of a line whose writer is gone is never read.
        let rests = pin.offset == look.offset
            && look.trouble.is_none()
            && !look.group_waits
            && matches!(look.state, ReaderState::Idle | ReaderState::Closed)
            && now.since(pin.since) >= MISSING_GRACE;
        pin.offset = look.offset;
        if source.placed && !at_pin {
            pin.of = self.files.followed.shown_or_own(&source.path);
        }
        let pin = pin.clone();
        let is_done = is_settled && (is_read || (at_pin && rests));
        if is_done && self.is_spare(&pin, source, &look) {
            self.release(id);
        } else if !source.placed && !at_pin {
            self.files.followed.add_pin(pin.path, pin.of, now);
            if let Some(pin) = self.pins.held.get_mut(&id) {
                pin.since = now;
            }
        }
    }

    /// Whether the pin of a source of which all was read, as far as the last scan knows, keeps nothing else: its file
    /// has its own name, or holds what was read and no more. What cannot be looked at is kept.
    fn is_spare(&self, pin: &Pin, source: &Source, look: &ReaderLook) -> bool {
        let meta = match self.files.input.fs.symlink_metadata(&pin.path) {
            Ok(meta) => meta,
            Err(error) => return error.kind() == io::ErrorKind::NotFound,
        };
        if source.placed && meta.links > 1 {
            return true;
        }
        meta.size == source.size
            && (source.compressed
                || self
                    .files
                    .probe
                    .is_as_read(&pin.path, &meta, look.offset, look.tail)
                    .unwrap_or(false))
    }

    /// A source goes on in another file than the pinned one. If that one has no other name and holds more or something
    /// else than what was read, it is looked at by its pin: it may have been written anew before it was removed. What was
    /// read is kept until it has its verdict: that the other file is the same is not certain before it is read.
    fn leave_pinned_file(&mut self, id: SourceId, look: &ReaderLook, now: Monotonic) {
        let Some(pin) = self.pins.held.get(&id) else { return };
        let is_settled = self.files.input.cursors.is_settled(id);
        let is_spare = match self.files.input.fs.symlink_metadata(&pin.path) {
            Ok(meta) if meta.links > 1 => {
                self.release(id);
                return;
            }
            Ok(meta) if meta.size != look.offset => Ok(false),
            Ok(meta) => self.files.probe.is_as_read(&pin.path, &meta, look.offset, look.tail),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        };
        match is_spare {
            Ok(true) if is_settled => self.release(id),
            // Looked at again by the next scan.
            Ok(true) => {}
            Ok(false) => {
                if let Some(pin) = self.pins.held.remove(&id) {
                    self.files.followed.add_pin(pin.path, pin.of, now);
                }
            }
            // Looked at again by the next scan.
            Err(_) => {}
        }
    }

    /// Gives the file of a source a name in the data directory.
    fn pin(&mut self, id: SourceId, now: Monotonic) {
        let (Some(directory), Some(source)) =
            (self.files.followed.pin_directory(), self.files.sources.get(id))
        else {
            return;
        };
        let of = self.files.followed.shown_or_own(&source.path);
        let (path, linked) = self.link_pin(directory, &source.path, &of);
        let linked = linked.and_then(|()| self.files.input.fs.symlink_metadata(&path));
        let (device, inode) = (source.device, source.inode);
        match linked {
            Ok(meta) if (meta.device, meta.inode) == (device, inode) => {
                let pin = Pin { path: Arc::from(path), of, device, inode, since: now, offset: 0 };
                self.pins.next += 1;
                self.pins.unsynced = true;
                tracing::debug!(source = id.0, pin = %pin.path.display(), "a file is pinned");
                self.pins.held.insert(id, pin);
            }
            // Another file has the name by now; the next scan knows it.
            Ok(_) => self.unlink(&path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                if error.kind() == io::ErrorKind::AlreadyExists {
                    self.pins.next += 1;
                }
                if !std::mem::replace(&mut self.pins.logged, true) {
                    tracing::warn!(path = %source.path.display(), %error,
                        directory = %directory.display(),
                        "a file cannot be pinned: if it is deleted before it is read, only a reader that has it \
                         open can read the rest; pins need the data directory on the file system of the logs, \
                         and the right to link them (`fs.protected_hardlinks`)");
                }
            }
        }
    }

    /// Links a file under the next name, with `of` in it if the file system takes that.
    fn link_pin(&self, directory: &Path, file: &Path, of: &Path) -> (PathBuf, io::Result<()>) {
        let fs = &self.files.input.fs;
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
        let named = name::long(self.pins.next, of).map(link).filter(|tried| !is_too_long(tried));
        named.unwrap_or_else(|| {
            let pin = directory.join(name::short(self.pins.next));
            let kept = fs
                .create_dir_all(directory, DIRECTORY_MODE)
                .and_then(|()| sidecar::write(&**fs, &pin, of));
            if let Err(error) = kept {
                tracing::warn!(path = %of.display(), pin = %pin.display(), %error,
                    "the path of a pinned file cannot be kept: its events may have the path of the pin after a crash");
            }
            link(name::short(self.pins.next))
        })
    }

    /// Gives up the oldest of the pins that nobody else has a name for, until the others fit; says how many bytes
    /// are left.
    fn enforce_limit(&mut self, limit: u64) -> u64 {
        let mut only: Vec<(Monotonic, SourceId, u64)> = Vec::new();
        for (&id, pin) in &self.pins.held {
            let is_gone = self.files.sources.get(id).is_some_and(|source| {
                !source.placed || self.files.followed.pinned(&source.path).is_some()
            });
            if is_gone
                && let Ok(meta) = self.files.input.fs.symlink_metadata(&pin.path)
                && meta.links <= 1 + self.pins_of_others(pin)
            {
                only.push((pin.since, id, meta.size));
            }
        }
        only.sort_unstable();
        let mut kept = only.iter().map(|(_, _, size)| size).sum::<u64>();
        for (_, id, size) in only {
            if kept <= limit {
                break;
            }
            kept -= size;
            let (Some(source), Some(look)) =
                (self.files.sources.get(id), self.files.readers.look(id))
            else {
                continue;
            };
            self.files.input.metrics.pins_given_up.add(1);
            tracing::error!(
                path = %self.files.followed.pinned(&source.path).unwrap_or(&source.path).display(),
                read = look.offset, size, bytes_lost = unread_bytes(source, &look), limit,
                "a deleted file is given up before it was read: the files that are pinned take more than \
                 `pin.max_bytes`"
            );
            self.files.readers.close(id);
            self.release(id);
        }
        kept
    }

    /// Names of a pinned file that are pins for other outputs.
    fn pins_of_others(&self, pin: &Pin) -> u64 {
        self.peer.as_ref().map_or(0, |peer| peer.pins_of_others((pin.device, pin.inode)))
    }

    /// Removes the pin of a source.
    fn release(&mut self, id: SourceId) {
        let Some(pin) = self.pins.held.remove(&id) else { return };
        // What the file was compressed to is known by the name that it had.
        if let Some(of) = self.files.followed.pinned(&pin.path).cloned()
            && self.files.sources.get(id).is_some_and(|source| source.path == pin.path)
        {
            self.files.sources.rename(id, of);
        }
        self.unlink(&pin.path);
    }

    fn unlink(&mut self, path: &Path) {
        tracing::debug!(path = %path.display(), "a pin is removed");
        self.files.followed.remove(path);
        self.files.lose_place(path, self.now);
        self.pins.unsynced = true;
        match self.files.input.fs.remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "a pin cannot be removed");
            }
            _ => self.remove_sidecar(path),
        }
    }

    /// Removes what is kept of the path of a pin that is gone. What stays is tried again by the next start.
    fn remove_sidecar(&self, pin: &Path) {
        if pin.file_name().is_none_or(|name| name::path(name).is_some()) {
            return;
        }
        if let Err(error) = sidecar::remove(&*self.files.input.fs, pin) {
            tracing::warn!(pin = %pin.display(), %error, "the path of a pin cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests;
