//! Directory watches, so that a scan need not look at every file.
//!
//! A notice is a hint that saves work. A directory is *quiet* for a scan if it is watched and has no notice:
//! the scan takes its files as unchanged. All others are listed. A full scan from time to time lists every one;
//! a directory in which two in a row find a change without a notice is not trusted any more.

use crate::glob::Part;
use crate::watcher::Watcher;
use skidder_os::{Fs, Notice, Timestamp, WatchId};
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Full scans in a row that find a change without a notice, after which a directory is not trusted.
const STRIKES_MAX: u8 = 2;

/// The paths that the notices of a watch concern.
#[derive(Default)]
struct Subscribers {
    /// The directories that it is of: several paths may lead to one.
    directories: Vec<Arc<Path>>,
    /// Links to files in it, by the names of these files.
    links: HashMap<OsString, Vec<PathBuf>>,
}

/// One directory of an input.
#[derive(Default)]
struct Directory {
    watch: Option<WatchId>,
    /// Whether changes of the files in it are notified: shared with their readers.
    watched: Arc<AtomicBool>,
    /// Device, inode and time of change when it was last looked at.
    stamp: Option<(u64, u64, Timestamp)>,
    /// How its files are found.
    parts: Vec<Part>,
    /// What may be directories in it, if a scan needed that.
    children: Option<HashSet<OsString>>,
    /// Names with a notice since the last scan.
    changed: HashSet<OsString>,
    /// Names with a notice since the last reaction, and whether the name itself changed.
    fresh: HashMap<OsString, bool>,
    /// Whether any name came or went since the last scan.
    named: bool,
    /// Names that every scan looks at, because they may change unseen: links, and files that have other
    /// names or are mounted there.
    doubtful: HashSet<OsString>,
    /// Changed without a notice, as far as is known by now.
    suspects: HashSet<OsString>,
    strikes: u8,
    /// One was counted since the last full walk.
    struck: bool,
    /// Every name must be looked at by the next scan.
    stale: bool,
    /// The last walk that came by, and whether every name is looked at in it.
    walk: u64,
    listing: bool,
    /// Whether this walk would have found it quiet, were it not a full one.
    would_be_quiet: bool,
}

/// The directories of one input.
#[derive(Default)]
pub(crate) struct Directories {
    /// The number of the input.
    input: usize,
    /// Boxed, as is the rest: the map of an input with one directory has room for four.
    known: foldhash::HashMap<Arc<Path>, Box<Directory>>,
    subscribers: foldhash::HashMap<WatchId, Box<Subscribers>>,
    walk: u64,
    full: bool,
    /// Directories with a notice since the last reaction.
    fresh: Vec<Arc<Path>>,
    /// The same of links.
    fresh_links: HashMap<PathBuf, bool>,
    /// Targets of links seen in this walk.
    links: Vec<(PathBuf, PathBuf)>,
    /// A directory came or went.
    restless: bool,
    /// Whether this walk has listed any directory, or misses one.
    listed: bool,
}

impl Directories {
    pub(crate) fn set_input(&mut self, input: usize) {
        self.input = input;
    }

    /// A walk begins.
    pub(crate) fn begin(&mut self, full: bool) {
        self.walk += 1;
        self.full = full;
        self.listed = false;
        self.restless = false;
        self.links.clear();
    }

    /// The walk reaches a directory; returns whether it must look at every name in it.
    pub(crate) fn visit(&mut self, fs: &dyn Fs, watcher: &mut Watcher, path: &Path) -> bool {
        let (walk, full, input) = (self.walk, self.full, self.input);
        let path = match self.known.get_key_value(path) {
            Some((path, _)) => Arc::clone(path),
            None => Arc::from(path),
        };
        let directory = self.known.entry(Arc::clone(&path)).or_default();
        if directory.walk == walk {
            return directory.listing;
        }
        directory.walk = walk;
        directory.judge(&path, full);
        // Looked at before it is listed: what changes in between is found by the next scan.
        let stamp = fs.metadata(&path).ok().map(|meta| (meta.device, meta.inode, meta.modified));
        let identity =
            |stamp: Option<(u64, u64, Timestamp)>| stamp.map(|(device, inode, _)| (device, inode));
        let replaced = identity(stamp) != identity(directory.stamp);
        let unannounced = stamp != directory.stamp && !directory.named;
        directory.stamp = stamp;
        directory.strikes = if replaced { 0 } else { directory.strikes };
        directory.stale |= replaced || unannounced;
        let before = directory.watch;
        if directory.strikes >= STRIKES_MAX || stamp.is_none() {
            directory.watch = None;
        } else if full || replaced || before.is_none() {
            directory.watch = watcher.watch(input, &path);
        }
        let now = directory.watch;
        directory.stale |= before != now;
        directory.would_be_quiet = now.is_some() && !directory.stale;
        directory.listing = full || !directory.would_be_quiet;
        directory.watched.store(now.is_some(), Ordering::Relaxed);
        if directory.listing {
            self.listed = true;
            directory.stale = false;
            directory.doubtful.clear();
        }
        let listing = directory.listing;
        if before != now {
            self.move_watch(watcher, &path, before, now);
        }
        listing
    }

    fn move_watch(
        &mut self,
        watcher: &mut Watcher,
        path: &Arc<Path>,
        before: Option<WatchId>,
        now: Option<WatchId>,
    ) {
        if let Some(before) = before {
            self.leave(watcher, before, path);
        }
        if let Some(now) = now {
            self.subscribers.entry(now).or_default().directories.push(Arc::clone(path));
        }
    }

    /// A path does not lead to the directory of a watch any more.
    fn leave(&mut self, watcher: &mut Watcher, watch: WatchId, path: &Path) {
        let Some(subscribers) = self.subscribers.get_mut(&watch) else { return };
        subscribers.directories.retain(|of| **of != *path);
        if subscribers.directories.is_empty() && subscribers.links.is_empty() {
            self.subscribers.remove(&watch);
            watcher.unwatch(self.input, watch);
        }
    }

    /// Files in a directory are found by this part of a pattern.
    pub(crate) fn finds(&mut self, path: &Path, part: &Part) {
        if let Some(directory) = self.known.get_mut(path)
            && !directory.parts.contains(part)
        {
            directory.parts.push(part.clone());
        }
    }

    /// Names in a quiet directory that must be looked at.
    pub(crate) fn restless_names(&self, path: &Path) -> Vec<OsString> {
        let Some(directory) = self.known.get(path) else { return Vec::new() };
        let mut names: Vec<OsString> =
            directory.changed.union(&directory.doubtful).cloned().collect();
        // In an order that does not depend on a hash.
        names.sort_unstable();
        names
    }

    /// A name may change without a notice.
    pub(crate) fn doubt(&mut self, path: &Path, name: &OsStr) {
        if let Some(directory) = self.known.get_mut(path) {
            directory.doubtful.insert(name.to_owned());
        }
    }

    /// Whether a file is on another device than its directory: mounted there.
    pub(crate) fn is_mounted(&self, path: &Path, device: u64) -> bool {
        let stamp = self.known.get(path).and_then(|directory| directory.stamp);
        stamp.is_some_and(|(of_directory, _, _)| of_directory != device)
    }

    /// What may be directories in a quiet directory, if it is known.
    pub(crate) fn children(&mut self, path: &Path) -> Option<&mut HashSet<OsString>> {
        self.known.get_mut(path).and_then(|directory| directory.children.as_mut())
    }

    /// What may be directories in a directory that was listed.
    pub(crate) fn set_children(&mut self, path: &Path, names: HashSet<OsString>) {
        if let Some(directory) = self.known.get_mut(path) {
            directory.children = Some(names);
        }
    }

    /// A directory could not be listed: the next scan tries again.
    pub(crate) fn set_stale(&mut self, path: &Path) {
        if let Some(directory) = self.known.get_mut(path) {
            directory.stale = true;
            directory.children = None;
        }
    }

    /// A link leads to a file: notices of the file concern the link.
    pub(crate) fn link(&mut self, link: &Path, target: PathBuf) {
        self.links.push((link.to_owned(), target));
    }

    /// A full walk has found a file changed: counts as suspect if its watched directory gave no notice.
    pub(crate) fn suspect(&mut self, path: &Path) {
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && let Some(directory) = self.known.get_mut(parent)
            && directory.would_be_quiet
            && !directory.changed.contains(name)
            && !directory.doubtful.contains(name)
        {
            directory.suspects.insert(name.to_owned());
        }
    }

    /// The walk is over: directories that it did not come by are left, targets of links are watched.
    pub(crate) fn end(&mut self, watcher: &mut Watcher) {
        let mut left = Vec::new();
        for (path, directory) in &mut self.known {
            if directory.walk == self.walk {
                // Not cleared: thousands of inputs would keep the room of their last change.
                directory.changed = HashSet::new();
                directory.named = false;
            } else {
                left.push((Arc::clone(path), directory.watch));
            }
        }
        // Not in the order of a hash map, in which room for other watches would come.
        left.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (path, watch) in left {
            self.listed = true;
            if let Some(directory) = self.known.remove(&path) {
                directory.watched.store(false, Ordering::Relaxed);
            }
            if let Some(watch) = watch {
                self.leave(watcher, watch, &path);
            }
        }
        self.watch_targets(watcher);
    }

    fn watch_targets(&mut self, watcher: &mut Watcher) {
        let mut before: HashMap<WatchId, HashMap<OsString, Vec<PathBuf>>> = HashMap::new();
        for (&watch, subscribers) in &mut self.subscribers {
            if !subscribers.links.is_empty() {
                before.insert(watch, std::mem::take(&mut subscribers.links));
            }
        }
        self.add_targets(watcher);
        for watch in before.into_keys() {
            if self.subscribers.get(&watch).is_some_and(|subscribers| subscribers.links.is_empty())
            {
                self.leave(watcher, watch, Path::new(""));
            }
        }
    }

    /// Watches the directories of the targets of links that were seen.
    pub(crate) fn add_targets(&mut self, watcher: &mut Watcher) {
        let mut watches: HashMap<PathBuf, Option<WatchId>> = HashMap::new();
        for (link, target) in std::mem::take(&mut self.links) {
            let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
                continue;
            };
            let watch = *watches
                .entry(parent.to_owned())
                .or_insert_with_key(|parent| watcher.watch(self.input, parent));
            if let Some(watch) = watch {
                let links = &mut self.subscribers.entry(watch).or_default().links;
                let links = links.entry(name.to_owned()).or_default();
                if !links.contains(&link) {
                    links.reserve_exact(1);
                    links.push(link);
                }
            }
        }
    }

    /// Takes in a notice.
    pub(crate) fn notice(&mut self, notice: &Notice<'_>) {
        let (watch, name, named) = match *notice {
            Notice::Content { watch, name } => (watch, name, None),
            Notice::Name { watch, name, directory } => (watch, name, Some(directory)),
            Notice::Gone { watch } => return self.gone(watch),
            Notice::Lost => return,
        };
        let Some(subscribers) = self.subscribers.get(&watch) else { return };
        for path in &subscribers.directories {
            if let Some(directory) = self.known.get_mut(path) {
                let was_calm = directory.fresh.is_empty();
                self.restless |= directory.notice(name, named);
                if was_calm && !directory.fresh.is_empty() {
                    self.fresh.push(Arc::clone(path));
                }
            }
        }
        for link in subscribers.links.get(name).into_iter().flatten() {
            *self.fresh_links.entry(link.clone()).or_default() |= named.is_some();
        }
    }

    /// The directory of a watch is gone, or elsewhere.
    fn gone(&mut self, watch: WatchId) {
        let Some(subscribers) = self.subscribers.remove(&watch) else { return };
        self.restless = true;
        for path in subscribers.directories {
            if let Some(directory) = self.known.get_mut(&path) {
                directory.watch = None;
                directory.stale = true;
                directory.watched.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Paths with a notice since the last call, and whether the name itself changed.
    pub(crate) fn take_fresh(&mut self) -> Vec<(PathBuf, bool)> {
        let mut paths: Vec<(PathBuf, bool)> =
            std::mem::take(&mut self.fresh_links).into_iter().collect();
        for path in std::mem::take(&mut self.fresh) {
            if let Some(directory) = self.known.get_mut(&path) {
                let fresh = std::mem::take(&mut directory.fresh);
                paths.extend(fresh.into_iter().map(|(name, named)| (path.join(name), named)));
            }
        }
        // In an order that does not depend on a hash.
        paths.sort_unstable();
        paths
    }

    /// Whether there is anything for [`Directories::take_fresh`].
    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty() || !self.fresh_links.is_empty()
    }

    /// Whether a directory came or went since the last walk.
    pub(crate) fn is_restless(&self) -> bool {
        self.restless
    }

    /// Whether the last walk may have missed a name that was there before.
    pub(crate) fn has_listed(&self) -> bool {
        self.listed
    }

    /// Whether the last walk took the files of this directory to be as they were.
    pub(crate) fn is_quiet(&self, path: &Path) -> bool {
        self.known.get(path).is_some_and(|directory| !directory.listing)
    }

    /// A name to be looked at by the next walk.
    pub(crate) fn recheck(&mut self, path: &Path) {
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && let Some(directory) = self.known.get_mut(parent)
            && !directory.changed.contains(name)
        {
            directory.changed.insert(name.to_owned());
        }
    }

    /// A flag that says whether every change of a file is notified; `None` if some may not be.
    pub(crate) fn watched_flag(&self, path: &Path) -> Option<Arc<AtomicBool>> {
        let directory = self.known.get(path.parent()?)?;
        let watched = directory.watch.is_some() && !directory.doubtful.contains(path.file_name()?);
        watched.then(|| Arc::clone(&directory.watched))
    }
}

impl Directory {
    /// Changes that the last full walk found, still without a notice, count against the directory.
    fn judge(&mut self, path: &Path, full: bool) {
        if !self.suspects.is_empty() {
            self.suspects.clear();
            self.strikes += 1;
            self.struck = true;
            if self.strikes == STRIKES_MAX {
                tracing::info!(path = %path.display(),
                    "files change in a directory without notification; it is looked into by every scan");
            }
        }
        if full && !std::mem::take(&mut self.struck) && self.strikes < STRIKES_MAX {
            self.strikes = 0;
        }
    }

    /// Takes in a notice of a name; returns whether a directory came or went.
    fn notice(&mut self, name: &OsStr, named: Option<bool>) -> bool {
        if !self.suspects.is_empty() {
            self.suspects.remove(name);
        }
        let restless = self.children.is_some() && named == Some(true);
        let matters = self.children.is_some() && named.is_some();
        self.named |= named.is_some();
        let found = self.parts.iter().any(|part| part.matches(name));
        if (matters || found) && !self.changed.contains(name) {
            self.changed.insert(name.to_owned());
        }
        if found {
            match self.fresh.get_mut(name) {
                Some(before) => *before |= named.is_some(),
                None => {
                    self.fresh.insert(name.to_owned(), named.is_some());
                }
            }
        }
        restless
    }
}
