//! Scans that look only where something has changed, and reactions between them.

use super::{Catalog, Content, ScanSummary};
use crate::Now;
use crate::scan::{Found, ScanProblem, Scanned, Watching, look_at, scan_changes, scan_watched};
use crate::watcher::Watcher;
use skidder_os::{Metadata, Monotonic, Notice};
use std::path::{Path, PathBuf};

/// What a scan has looked at, where it was not everything.
#[derive(Clone, Copy)]
enum Extent<'a> {
    /// All that was listed. Quiet directories have what they had, but for these paths.
    Walk(&'a [PathBuf]),
    /// Only what was found, and these paths, at which nothing is.
    Names(&'a [PathBuf]),
}

/// What a catalog did about notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reacted {
    /// How many paths there were.
    pub paths: usize,
    /// Whether names had to be looked at; otherwise only readers of known files were woken.
    pub looked: bool,
}

/// What to do about a path of which something was told.
enum Reaction {
    /// Its reader was woken.
    Woken,
    /// It must be looked at at once.
    Look,
    /// The next scan is early enough.
    Later,
}

impl Catalog {
    /// Which of the inputs of a watcher this is; the first by default.
    pub fn set_input(&mut self, number: usize) {
        self.files.sources.set_input(number);
        self.directories.set_input(number);
    }

    /// Looks for files and acts on what has changed. With a `watcher`, and not `full`, directories of which
    /// nothing was told are taken to be as they were.
    pub fn scan(
        &mut self,
        watcher: Option<&mut Watcher>,
        full: bool,
        now: Now,
    ) -> (ScanSummary, Vec<ScanProblem>) {
        self.begin_scan(now.monotonic);
        let input = std::sync::Arc::clone(&self.files.input);
        let (fs, settings) = (&*input.fs, &input.settings.scan);
        let Some(watcher) = watcher else {
            let mut is_known = |path: &Path, meta: &Metadata| self.is_unchanged(path, meta);
            let (found, problems) = scan_changes(fs, settings, &mut is_known);
            let summary = self.apply(found, &problems, now);
            return (summary, problems);
        };
        let mut directories = std::mem::take(&mut self.directories);
        if !full {
            for path in
                self.files.places.iter().filter(|(_, place)| place.recheck).map(|(path, _)| path)
            {
                directories.recheck(path);
            }
        }
        let watching = Watching { directories: &mut directories, watcher };
        let mut is_known = |path: &Path, meta: &Metadata| self.is_unchanged(path, meta);
        let Scanned { found, problems, gone } =
            scan_watched(fs, settings, watching, full, &mut is_known);
        if full {
            for file in &found {
                if self.files.places.has_changed(&file.path, &file.metadata) {
                    directories.suspect(&file.path);
                }
            }
        }
        directories.end(watcher);
        self.directories = directories;
        let summary = self.apply_seen(found, &problems, Extent::Walk(&gone), now);
        (summary, problems)
    }

    /// Takes in what a watcher tells of this input.
    pub fn notice(&mut self, notice: &Notice<'_>) {
        self.directories.notice(notice);
    }

    /// Whether a directory came or went, so that the next scan should not wait.
    pub fn is_restless(&self) -> bool {
        self.directories.is_restless()
    }

    /// Wakes the readers of files that were written to, and looks at names that are new.
    pub fn react(&mut self, watcher: &mut Watcher, now: Now) -> Reacted {
        let mut look = self.take_troubled();
        let fresh =
            if self.directories.has_fresh() { self.directories.take_fresh() } else { Vec::new() };
        let reactions = fresh.len();
        for (path, named) in fresh {
            if matches!(self.reaction(&path, named), Reaction::Look) {
                look.push(path);
            }
        }
        if look.is_empty() {
            return Reacted { paths: reactions, looked: false };
        }
        // A file found twice would be taken for another name of itself.
        look.sort_unstable();
        look.dedup();
        self.begin_names();
        let input = std::sync::Arc::clone(&self.files.input);
        let (fs, settings) = (&*input.fs, &input.settings.scan);
        let mut directories = std::mem::take(&mut self.directories);
        let watching = Watching { directories: &mut directories, watcher };
        let mut is_known = |path: &Path, meta: &Metadata| self.is_unchanged(path, meta);
        // What cannot be looked at now is met by the next scan, which tells.
        let Scanned { found, gone, .. } = look_at(fs, settings, watching, &look, &mut is_known);
        self.directories = directories;
        if !found.is_empty() || !gone.is_empty() {
            self.apply_seen(found, &[], Extent::Names(&gone), now);
        }
        Reacted { paths: reactions, looked: true }
    }

    fn reaction(&mut self, path: &Path, named: bool) -> Reaction {
        let Some(place) = self.files.places.get(path).filter(|_| !named) else {
            return Reaction::Look;
        };
        match &place.content {
            Content::Source(id) => {
                self.files.readers.wake(*id);
                Reaction::Woken
            }
            Content::Duplicate(duplicate) => {
                // Another name of the same file is written through this one.
                if let Some(source) = self.files.sources.get(duplicate.of)
                    && source.file_id() == place.id()
                {
                    self.files.readers.wake(duplicate.of);
                    return Reaction::Woken;
                }
                Reaction::Later
            }
            Content::Nothing if place.size == 0 => Reaction::Look,
            Content::Nothing => Reaction::Later,
        }
    }

    /// Names are going to be looked at.
    pub(super) fn begin_names(&mut self) {
        self.files.places.begin_scan();
        self.files.sources.begin_scan();
        // Only the first scan may go by what was saved when it began.
        self.has_saved |= self.started.is_some();
        self.postponed = 0;
        self.brief = true;
    }

    /// Like [`Catalog::apply`], after a scan that has not looked at everything.
    fn apply_seen(
        &mut self,
        fresh: Vec<Found>,
        problems: &[ScanProblem],
        seen: Extent<'_>,
        now: Now,
    ) -> ScanSummary {
        let all = if self.brief { fresh } else { self.add_rotated_changes(fresh, now.monotonic) };
        if !problems.is_empty() {
            self.files.places.keep_unseen(problems);
        }
        self.drop_unseen(seen, now.monotonic);
        self.process(all, now)
    }

    /// Paths lose what was at them, as far as the scan has seen that.
    fn drop_unseen(&mut self, seen: Extent<'_>, now: Monotonic) {
        let (Extent::Walk(gone) | Extent::Names(gone)) = seen;
        for path in gone {
            if let Some(lost) = self.files.places.remove(path) {
                self.lose_places(vec![lost], now);
            }
        }
        if matches!(seen, Extent::Names(_)) || !self.directories.has_listed() {
            return;
        }
        let is_quiet =
            |path: &Path| path.parent().is_some_and(|parent| self.directories.is_quiet(parent));
        let vanished = self.files.places.remove_unless(is_quiet);
        self.lose_places(vanished, now);
    }
}
