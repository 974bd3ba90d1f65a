//! Rotated files beside the target of a link.
//!
//! `/var/log/containers/*.log` are links to `0.log` of a container; the kubelet renames that to
//! `0.log.20261121-101112`, compresses it later and makes a new `0.log`, and no pattern matches any of these names
//! but the link (kubelet: pkg/kubelet/logs/container_log_manager.go). The link and what it led to before are one log:
//! when it leads to another file, its directory is looked through for the file before and for those in between
//! that no scan has seen. These are taken as though a pattern matched them, oldest first, until they are read.
//! Their events carry the path of the link.

use super::matching::{is_related, rotated_suffix};
use super::{Candidate, Catalog, Holds, MISSING_GRACE};
use crate::Now;
use crate::fingerprint::Fingerprint;
use crate::scan::Found;
use crate::settings::{Compression, FilestreamSettings};
use skidder_os::{FileKind, Monotonic, Timestamp};
use skidder_registry::Entry;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All that is known of files beside the targets of links.
#[derive(Default)]
pub(super) struct Beside {
    /// Rotated files that are looked at as though a pattern matched them.
    files: HashMap<Arc<Path>, Rotated>,
    /// Saved entries of this input, by their paths, until the start is over.
    saved: HashMap<Arc<Path>, Vec<Saved>>,
    /// Directories of saved entries that no pattern matches, with the newest change of each.
    directories: HashMap<PathBuf, Timestamp>,
    /// Links of this scan whose rotated files were looked for.
    followed: HashSet<PathBuf>,
    /// Links whose rotated files could not be looked for, with the newest change that was seen before: the next
    /// scan tries again.
    again: BTreeMap<PathBuf, Timestamp>,
    /// When the last scan began.
    last_scan: Option<Timestamp>,
}

struct Rotated {
    /// The path that its events carry.
    link: Arc<Path>,
    since: Monotonic,
    /// It is a pin: its saved entry names the file that it was.
    pin: bool,
}

struct Saved {
    device: u64,
    inode: u64,
    updated: Timestamp,
}

/// What a link led to before: the newest change that was certainly seen of it.
struct Before {
    seen: Timestamp,
}

impl Beside {
    /// Remembers a saved entry.
    pub(super) fn consider(&mut self, settings: &FilestreamSettings, entry: &Entry) {
        if !settings.scan.symlinks || !settings.identity.is_content() {
            return;
        }
        let path = &entry.meta.source;
        if let Some(directory) = path.parent().filter(|_| !settings.scan.covers(path)) {
            let updated = self.directories.entry(directory.to_path_buf()).or_default();
            *updated = entry.updated.max(*updated);
        }
        let saved =
            Saved { device: entry.meta.device, inode: entry.meta.inode, updated: entry.updated };
        self.saved.entry(Arc::clone(&entry.meta.source)).or_default().push(saved);
    }

    /// The start is over.
    pub(super) fn clear_saved(&mut self) {
        self.saved = HashMap::new();
        self.directories = HashMap::new();
    }

    /// Whether a file is here because a link led to it.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// Whether a file was rotated away from the target of a link.
    pub(super) fn is_rotated(&self, path: &Path) -> bool {
        self.files.get(path).is_some_and(|rotated| !rotated.pin)
    }

    /// The file that a pin keeps; nothing if it is none.
    pub(super) fn pinned(&self, path: &Path) -> Option<&Arc<Path>> {
        self.files.get(path).filter(|rotated| rotated.pin).map(|rotated| &rotated.link)
    }

    /// From now on, the pin of a file that is gone is looked at.
    pub(super) fn add_pin(&mut self, pin: Arc<Path>, of: Arc<Path>, since: Monotonic) {
        self.files.entry(pin).or_insert(Rotated { link: of, since, pin: true });
    }

    /// A pin is removed.
    pub(super) fn remove_pin(&mut self, pin: &Path) {
        self.files.remove(pin);
    }

    /// All pins that are looked at, and since when.
    pub(super) fn pins(&self) -> Vec<(Arc<Path>, Monotonic)> {
        let pins = self.files.iter().filter(|(_, rotated)| rotated.pin);
        pins.map(|(path, rotated)| (Arc::clone(path), rotated.since)).collect()
    }

    /// The path that events of a file carry, if it is not its own.
    pub(super) fn link_of(&self, path: &Path) -> Option<Arc<Path>> {
        self.files.get(path).map(|rotated| Arc::clone(&rotated.link))
    }
}

impl Catalog {
    /// Adds rotated files beside the targets of links to what a scan found; call it when sources whose paths
    /// are gone have lost their places.
    pub(super) fn add_rotated(&mut self, fresh: Vec<Found>, now: Now) -> Vec<Found> {
        let settings = &self.input.settings;
        if !settings.scan.symlinks || !settings.identity.is_content() {
            return fresh;
        }
        let mut all = Vec::with_capacity(fresh.len());
        let mut loose: Option<HashSet<Arc<Path>>> = None;
        self.beside.followed.clear();
        let mut again = std::mem::take(&mut self.beside.again);
        for found in fresh {
            let seen = self.before(&found, &mut loose).map(|before| before.seen);
            let failed = again.remove(&found.path);
            if let Some(seen) = failed.into_iter().chain(seen).min() {
                self.follow(&found, &Before { seen }, now, &mut all);
            }
            all.push(found);
        }
        for (path, seen) in again {
            match self.input.fs.metadata(&path) {
                Ok(metadata) => {
                    self.follow(&Found { path, metadata }, &Before { seen }, now, &mut all);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => {
                    self.beside.again.insert(path, seen);
                }
            }
        }
        all
    }

    /// The same for links whose inode is used again, so that only the content tells that they lead to another
    /// file: the candidates that are none of the files they were.
    pub(super) fn add_rotated_late(
        &mut self,
        candidates: &[Candidate],
        now: Now,
    ) -> Vec<Candidate> {
        if !self.input.settings.scan.symlinks {
            return Vec::new();
        }
        let mut all = Vec::new();
        for candidate in candidates {
            let was = matches!(candidate.before, Some(Holds::Source(_)));
            let seen = match self.beside.saved.get(&*candidate.path) {
                None if was => self.beside.last_scan,
                Some(saved) if !self.is_saved(candidate) => {
                    saved.iter().map(|saved| saved.updated).max()
                }
                _ => None,
            };
            if let Some(seen) = seen
                && self.is_link(&candidate.path)
            {
                self.follow(&candidate.found, &Before { seen }, now, &mut all);
            }
        }
        if !self.brief {
            self.beside.last_scan = Some(now.wall);
        }
        let all = self.displace(all);
        self.read_heads(all, now)
    }

    /// Whether the registry has something under the key of a file's beginning.
    fn is_saved(&self, candidate: &Candidate) -> bool {
        let key = self.input.settings.key(&candidate.head.print().hex());
        self.input.cursors.saved(&key).is_ok_and(|saved| saved.is_some())
    }

    fn is_link(&self, path: &Path) -> bool {
        self.input.settings.scan.symlinks
            && self.input.fs.symlink_metadata(path).is_ok_and(|link| link.kind == FileKind::Symlink)
    }

    /// What a path led to before it led to this file; nothing if it did not, or is no link.
    fn before(&self, found: &Found, loose: &mut Option<HashSet<Arc<Path>>>) -> Option<Before> {
        let meta = &found.metadata;
        let here = (meta.device, meta.inode);
        let mut seen = None;
        if let Some(place) = self.places.get(&*found.path) {
            if (place.device, place.inode) == here && meta.size >= place.size {
                return None;
            }
            seen = Some(place.modified);
        } else if let Some(saved) = self.beside.saved.get(&*found.path) {
            let others = saved.iter().filter(|saved| (saved.device, saved.inode) != here);
            seen = others.map(|saved| saved.updated).max();
        }
        if seen.is_none() && !self.beside.directories.is_empty() {
            let target = self.input.fs.canonicalize(&found.path).ok()?;
            seen = self.beside.directories.get(target.parent()?).copied();
        }
        if seen.is_none() {
            let paths = loose.get_or_insert_with(|| {
                let gone = self.sources.values().filter(|known| !known.placed);
                gone.map(|known| Arc::clone(&known.path)).collect()
            });
            // The link was gone for a moment, or it is new: then its log began after the last scan.
            let is_new = !self.beside.saved.contains_key(&*found.path);
            seen = (paths.contains(&*found.path) || is_new).then_some(self.beside.last_scan?);
        }
        self.is_link(&found.path).then_some(Before { seen: seen? })
    }

    fn follow(&mut self, found: &Found, before: &Before, now: Now, out: &mut Vec<Found>) {
        if !self.beside.followed.insert(found.path.clone()) {
            return;
        }
        if let Err(error) = self.look_around(found, before, now, out)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %found.path.display(), %error,
                "cannot look for rotated files beside the target of a link; trying again with the next scan");
            self.beside.again.insert(found.path.clone(), before.seen);
        }
    }

    /// Looks through the directory of a link's target: what is known there, and what is newer than that.
    fn look_around(
        &mut self,
        found: &Found,
        before: &Before,
        now: Now,
        out: &mut Vec<Found>,
    ) -> io::Result<()> {
        let target = self.input.fs.canonicalize(&found.path)?;
        let mut passed_known = false;
        let mut wanted = Vec::new();
        let mut unknown = Vec::new();
        // From the newest to the oldest.
        for sibling in self.rotated_from(&target)?.into_iter().rev() {
            if self.beside.has(&sibling.path) {
                passed_known = true;
            } else if self.is_known(&sibling) {
                passed_known = true;
                wanted.push(sibling);
            } else if !passed_known {
                unknown.push(sibling);
            }
        }
        if !passed_known {
            // What was before is gone, or was never seen: what was written since is not read yet.
            unknown.retain(|sibling| sibling.metadata.modified >= before.seen);
        }
        wanted.extend(unknown);
        let link: Arc<Path> = Arc::from(found.path.as_path());
        wanted.sort_by_cached_key(|sibling| age(&sibling.path));
        for sibling in wanted {
            tracing::debug!(link = %link.display(), path = %sibling.path.display(),
                "a rotated file is read as what the link led to before");
            let path: Arc<Path> = Arc::from(sibling.path.as_path());
            let since = now.monotonic;
            let rotated = Rotated { link: Arc::clone(&link), since, pin: false };
            self.beside.files.insert(path, rotated);
            out.push(sibling);
        }
        Ok(())
    }

    /// Files that were rotated away from a path, the oldest first, without those that a pattern matches.
    fn rotated_from(&self, target: &Path) -> io::Result<Vec<Found>> {
        let mut siblings = Vec::new();
        let (Some(directory), Some(name)) = (target.parent(), target.file_name()) else {
            return Ok(siblings);
        };
        let scan = &self.input.settings.scan;
        self.input.fs.scan_dir(
            directory,
            &mut |other| {
                let path = directory.join(other);
                other != name && (is_related(target, &path) || is_of_earlier_run(target, &path))
            },
            &mut |other, metadata| {
                let path = directory.join(other);
                let taken = scan.covers(&path) || scan.excludes(&path);
                if metadata.kind == FileKind::Regular && metadata.size > 0 && !taken {
                    siblings.push(Found { path, metadata });
                }
            },
        )?;
        siblings.sort_by_cached_key(|sibling| age(&sibling.path));
        Ok(siblings)
    }

    /// Whether a source or a saved entry says that a file was read before, at least in part.
    fn is_known(&mut self, sibling: &Found) -> bool {
        let Ok(Some(head)) = self.head_as(sibling, Compression::Auto) else { return false };
        let print = Fingerprint::of(&head.bytes);
        let path = Arc::from(sibling.path.as_path());
        let candidate = Candidate {
            found: sibling.clone(),
            path,
            head,
            before: None,
            touched: false,
            claim: None,
            copy_of: None,
        };
        !self.alike(&candidate).is_empty() || self.has_claim(&candidate, &print)
    }

    /// Looks at the rotated files that are followed, as a scan does at those that match; lets go of those
    /// that are read.
    pub(super) fn look_beside(&mut self, now: Monotonic) -> Vec<Found> {
        let mut found = Vec::new();
        let paths: Vec<Arc<Path>> = self.beside.files.keys().map(Arc::clone).collect();
        for path in paths {
            if self.is_done_beside(&path, now) {
                self.beside.files.remove(&path);
                self.lose_place(&path);
                continue;
            }
            match self.input.fs.symlink_metadata(&path) {
                Ok(metadata) if metadata.kind == FileKind::Regular => {
                    if !self.is_unchanged(&path, &metadata) {
                        found.push(Found { path: path.to_path_buf(), metadata });
                    }
                }
                Ok(_) => self.vanish_beside(&path, now, &mut found),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.vanish_beside(&path, now, &mut found);
                }
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "cannot look at a rotated file");
                    if let Some(place) = self.places.get_mut(&path) {
                        place.scan = self.scans;
                    }
                }
            }
        }
        found.sort_by_cached_key(|found| age(&found.path));
        found
    }

    /// Whether a rotated file was read, and has rested for a while.
    fn is_done_beside(&self, path: &Path, now: Monotonic) -> bool {
        let Some(rotated) = self.beside.files.get(path) else { return true };
        if rotated.pin {
            return false;
        }
        let rested = now.since(rotated.since) >= MISSING_GRACE;
        rested
            && match self.places.get(path).map(|place| &place.holds) {
                Some(Holds::Source(id)) => self.is_done(*id),
                Some(Holds::Twin(twin)) => twin.comparison.is_none(),
                Some(Holds::Nothing) => false,
                None => true,
            }
    }

    /// A rotated file has another name now: what it was compressed to is followed instead.
    fn vanish_beside(&mut self, path: &Arc<Path>, now: Monotonic, out: &mut Vec<Found>) {
        let Some(mut gone) = self.beside.files.remove(path) else { return };
        self.lose_place(path);
        if gone.pin {
            return;
        }
        let suffix = rotated_suffix(path);
        let siblings = match self.rotated_from(path) {
            Ok(siblings) => siblings,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error,
                    "cannot look for what a rotated file was compressed to; trying again with the next scan");
                gone.since = now;
                self.beside.files.insert(Arc::clone(path), gone);
                return;
            }
        };
        for sibling in siblings {
            if rotated_suffix(&sibling.path) == suffix && !self.beside.has(&sibling.path) {
                let link = Arc::clone(&gone.link);
                let rotated = Rotated { link, since: now, pin: false };
                self.beside.files.insert(Arc::from(sibling.path.as_path()), rotated);
                out.push(sibling);
            }
        }
    }

    pub(super) fn lose_place(&mut self, path: &Path) {
        if let Some(place) = self.places.remove(path)
            && let Holds::Source(id) = place.holds
        {
            self.unplace(id);
        }
    }
}

/// Sorts rotated files: those of earlier runs of a container first, numbers grow with age, dates with youth, and
/// what was not rotated at all is the newest.
fn age(path: &Path) -> (Option<u64>, bool, Reverse<u64>, Vec<u8>) {
    let suffix = rotated_suffix(path);
    let text = std::str::from_utf8(suffix).unwrap_or_default();
    let (number, rest) = match text.parse::<u64>() {
        Ok(number) if text.len() < 8 => (Reverse(number), Vec::new()),
        _ => (Reverse(0), suffix.to_vec()),
    };
    (run_of(path), suffix.is_empty(), number, rest)
}

/// The run of a container whose log this is: the kubelet calls it `0.log`, and `1.log` after the container has
/// started again.
fn run_of(path: &Path) -> Option<u64> {
    let (run, rest) = path.file_name()?.to_str()?.split_once('.')?;
    let is_log = rest == "log" || rest.starts_with("log.");
    run.parse().ok().filter(|_| is_log)
}

/// Whether a file is the log of an earlier run of the container whose log `target` is, or was rotated from it.
fn is_of_earlier_run(target: &Path, other: &Path) -> bool {
    match (run_of(target), run_of(other)) {
        (Some(run), Some(earlier)) => earlier < run,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
