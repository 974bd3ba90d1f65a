//! Directory watches: scans that look only where something has changed, and what to do about notifications.

use super::inventory::Inventory;
use super::places::{Content, Place, Places};
use super::sources::Sources;
use crate::reader::InputContext;
use crate::scan::{Scanned, Watching, look_at, scan_watched};
use crate::watch::Directories;
use crate::watcher::Watcher;
use skidder_event::SourceId;
use skidder_os::{Metadata, Notice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The reaction of a catalog to notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reacted {
    /// Number of paths.
    pub paths: usize,
    /// Whether names had to be looked at; otherwise only readers of known files were woken.
    pub looked: bool,
}

/// What to do about a path with a notification.
#[derive(Debug, PartialEq, Eq)]
enum Reaction {
    /// Wake the reader of this source.
    Wake(SourceId),
    /// Look at the path at once.
    Look,
    /// The next scan is early enough.
    Wait,
}

/// The work that notifications cause.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Number of paths with notifications.
    pub(super) paths: usize,
    /// Sources to wake, in the order of their paths.
    pub(super) wake: Vec<SourceId>,
    /// Paths to look at.
    pub(super) look: Vec<PathBuf>,
}

/// The watched directories of an input.
#[derive(Default)]
pub(super) struct Watches {
    directories: Directories,
}

impl Watches {
    /// Sets which of the inputs of a watcher this is.
    pub(super) fn set_input(&mut self, number: usize) {
        self.directories.set_input(number);
    }

    /// Takes a notification from the watcher.
    pub(super) fn notice(&mut self, notice: &Notice<'_>) {
        self.directories.notice(notice);
    }

    /// Whether a directory came or went since the last scan.
    pub(super) fn is_restless(&self) -> bool {
        self.directories.is_restless()
    }

    /// A flag that says whether every change of a file is notified; `None` if some may not be.
    pub(super) fn watched_flag(&self, path: &Path) -> Option<Arc<AtomicBool>> {
        self.directories.watched_flag(path)
    }

    /// Lists directories that may have changed, or all of them if `full`.
    pub(super) fn scan(
        &mut self,
        input: &InputContext,
        places: &mut Places,
        watcher: &mut Watcher,
        full: bool,
    ) -> Scanned {
        if !full {
            for (path, _) in places.iter().filter(|(_, place)| place.recheck) {
                self.directories.recheck(path);
            }
        }
        let (fs, settings) = (&*input.fs, &input.settings.scan);
        let mut is_known = |path: &Path, meta: &Metadata| places.is_unchanged(path, meta);
        let watching = Watching { directories: &mut self.directories, watcher };
        let scanned = scan_watched(fs, settings, watching, full, &mut is_known);
        if full {
            for file in &scanned.found {
                if places.has_changed(&file.path, &file.metadata) {
                    self.directories.suspect(&file.path);
                }
            }
        }
        self.directories.end(watcher);
        scanned
    }

    /// Looks at some paths.
    pub(super) fn look_at(
        &mut self,
        input: &InputContext,
        places: &mut Places,
        watcher: &mut Watcher,
        paths: &[PathBuf],
    ) -> Scanned {
        let (fs, settings) = (&*input.fs, &input.settings.scan);
        let mut is_known = |path: &Path, meta: &Metadata| places.is_unchanged(path, meta);
        let watching = Watching { directories: &mut self.directories, watcher };
        look_at(fs, settings, watching, paths, &mut is_known)
    }

    /// The notifications since the last call, as what to do about them.
    pub(super) fn take_changes(&mut self, files: &Inventory) -> Changes {
        let mut changes = Changes::default();
        if !self.directories.has_fresh() {
            return changes;
        }
        for (path, named) in self.directories.take_fresh() {
            changes.paths += 1;
            let place = files.places.get(&path).filter(|_| !named);
            match reaction(place, &files.sources) {
                Reaction::Wake(id) => changes.wake.push(id),
                Reaction::Look => changes.look.push(path),
                Reaction::Wait => {}
            }
        }
        changes
    }

    /// Whether the last scan may have missed a path that was there before.
    pub(super) fn has_listed(&self) -> bool {
        self.directories.has_listed()
    }

    /// Whether the last scan did not look at the files beside a path, because nothing had changed there.
    pub(super) fn is_quiet_beside(&self, path: &Path) -> bool {
        path.parent().is_some_and(|parent| self.directories.is_quiet(parent))
    }
}

/// What to do about a path with a notification; `place` is what is known to be there, unless the name itself changed.
fn reaction(place: Option<&Place>, sources: &Sources) -> Reaction {
    let Some(place) = place else { return Reaction::Look };
    match &place.content {
        Content::Source(id) => Reaction::Wake(*id),
        Content::Duplicate(duplicate) => {
            // A write to another name of the same file.
            let source = sources.get(duplicate.of);
            let is_same = source.is_some_and(|source| source.file_id() == place.id());
            if is_same { Reaction::Wake(duplicate.of) } else { Reaction::Wait }
        }
        Content::Nothing if place.size == 0 => Reaction::Look,
        Content::Nothing => Reaction::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::Duplicate;
    use super::super::sources::{Identity, Source, SourceFile};
    use super::*;
    use crate::fingerprint::Fingerprint;
    use crate::testing::settings;
    use skidder_os::{FileKind, Timestamp};

    fn metadata(inode: u64, size: u64) -> Metadata {
        let (kind, modified) = (FileKind::Regular, Timestamp(0));
        Metadata { kind, size, modified, device: 1, inode, links: 1, mode: 0, uid: 0, gid: 0 }
    }

    #[test]
    fn a_write_wakes_the_reader_of_the_file_that_was_written_to() {
        let mut sources = Sources::new(Arc::default(), &settings());
        let id = sources.next_id();
        let path: Arc<Path> = Arc::from(Path::new("/a"));
        let file = SourceFile { path, metadata: metadata(7, 9), compressed: false };
        let identity = Identity::new(Fingerprint::of(b"head"), b"head", 1024);
        sources.add(id, Source::new(identity, Arc::from("key"), file, false));
        let duplicate = || Content::Duplicate(Box::new(Duplicate::of(id)));
        let cases = [
            (Content::Source(id), metadata(7, 9), Reaction::Wake(id)),
            (duplicate(), metadata(7, 9), Reaction::Wake(id)),
            (duplicate(), metadata(8, 9), Reaction::Wait),
            (Content::Nothing, metadata(8, 0), Reaction::Look),
            (Content::Nothing, metadata(8, 9), Reaction::Wait),
        ];
        for (content, metadata, expected) in cases {
            let mut places = Places::default();
            places.put(Arc::from(Path::new("/b")), &metadata, content, false);
            assert_eq!(reaction(places.get(Path::new("/b")), &sources), expected);
        }
        assert_eq!(reaction(None, &sources), Reaction::Look);
    }
}
