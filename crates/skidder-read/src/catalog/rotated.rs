//! Rotated files beside the targets of links.
//!
//! `/var/log/containers/*.log` are links to the `0.log` of a container. The kubelet renames that to
//! `0.log.20261121-101112`, compresses it later and creates a new `0.log`; only the name of the link matches
//! a pattern (kubelet: pkg/kubelet/logs/container_log_manager.go). The link, and the files that it led to
//! before, are one log. When a link leads to another file, the directory of its target is searched for the
//! file before, and for files in between that no scan has seen. These files are followed as if a pattern
//! matched them, oldest first, as long as they exist; they are never deleted. Their events carry the path of
//! the link.

mod age;
mod classify;
mod revisit;

use super::inventory::Inventory;
use super::matching::{CatalogFacts, Matcher, is_related};
use super::saved::SavedEntries;
use super::{Candidate, Content, MISSING_GRACE, Place};
use crate::Now;
use crate::fingerprint::{Fingerprint, HeadError};
use crate::scan::Found;
use crate::settings::{Compression, FilestreamSettings};
pub(super) use age::age;
use age::{is_of_earlier_run, is_rotated_after};
use classify::Classified;
use skidder_os::sabotage::{self, Sabotage};
use skidder_os::{FileId, FileKind, Metadata, Monotonic, Timestamp};
use skidder_registry::FileEntry;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The longest time after a scan until its findings are saved, besides the time until the next scan.
const SAVED_LATE: Duration = Duration::from_mins(1);

/// How long the catalog remembers what a broken link led to.
const GONE_KEPT: Duration = Duration::from_hours(1);

/// Facts about files beside the targets of links.
#[derive(Default)]
pub(super) struct RotatedFiles {
    /// Saved entries of this input, by their paths, until the start is over.
    saved: HashMap<Arc<Path>, Vec<Saved>>,
    /// Directories of saved entries that no pattern matches, with the newest change of each.
    directories: HashMap<PathBuf, Timestamp>,
    /// Links whose rotated files this scan has searched for.
    searched: HashSet<PathBuf>,
    /// Links whose search failed, or was incomplete: the next scan tries again.
    failed: BTreeMap<PathBuf, FailedSearch>,
    /// The files that this scan has found.
    fresh: Vec<FileId>,
    /// See [`RotatedFiles::others`]; of this scan.
    others: OnceCell<HashSet<FileId>>,
    /// When the last scan began.
    last_scan: Option<Timestamp>,
    /// Paths without a file: the last scan that saw one, and since when it is gone. Files that were rotated
    /// away since were written since.
    gone: HashMap<Arc<Path>, (Timestamp, Monotonic)>,
}

struct Saved {
    device: u64,
    inode: u64,
    /// Its size in bytes, at least, unless it is compressed.
    bytes: u64,
    updated: Timestamp,
}

impl Saved {
    /// Whether a file may be this one, judging by its metadata: an inode may be reused.
    fn may_be(&self, meta: &Metadata) -> bool {
        (self.device, self.inode) == (meta.device, meta.inode) && self.bytes <= meta.size
    }
}

/// The newest change that a scan has certainly seen in what a link led to before.
#[derive(Clone, Copy)]
enum LastSeen {
    At(Timestamp),
    /// The newest change in the directory that the link leads to, if the registry has one, or else this.
    InDirectory(Option<Timestamp>),
}

/// A search that failed, since when.
struct FailedSearch {
    seen: LastSeen,
    since: Monotonic,
}

/// What a search for rotated files needs. The search follows the files that it finds.
pub(super) struct LinkScan<'a> {
    pub(super) files: &'a mut Inventory,
    pub(super) saved: &'a SavedEntries,
    pub(super) now: Now,
    /// Whether this is a reaction to notifications.
    pub(super) is_reaction: bool,
}

impl LinkScan<'_> {
    fn matcher(&self) -> Matcher<CatalogFacts<'_>> {
        Matcher(CatalogFacts {
            files: self.files,
            saved: self.saved,
            now: self.now.monotonic,
            is_reaction: self.is_reaction,
        })
    }
}

impl RotatedFiles {
    /// Remembers a saved entry.
    pub(super) fn consider(&mut self, settings: &FilestreamSettings, entry: &FileEntry) {
        if !settings.follows_rotated() {
            return;
        }
        let path = &entry.meta.source;
        if let Some(directory) = path.parent().filter(|_| !settings.scan.covers(path)) {
            let updated = self.directories.entry(directory.to_path_buf()).or_default();
            *updated = entry.updated.max(*updated);
        }
        let print = entry.meta.fingerprint_len.unwrap_or(settings.fingerprint.length);
        let saved = Saved {
            device: entry.meta.device,
            inode: entry.meta.inode,
            bytes: entry.cursor.offset.max(Fingerprint::bytes_of_saved(print).into()),
            updated: entry.updated,
        };
        self.saved.entry(Arc::clone(&entry.meta.source)).or_default().push(saved);
    }

    /// The start is over.
    pub(super) fn clear_saved(&mut self) {
        self.saved = HashMap::new();
        self.directories = HashMap::new();
    }

    /// Whether a saved entry names this file, or the file that it was compressed from.
    fn has_saved(&self, path: &Path) -> bool {
        let original = path.extension().filter(|end| *end == "gz").map(|_| path.with_extension(""));
        self.saved.contains_key(path)
            || original.is_some_and(|original| self.saved.contains_key(&*original))
    }

    /// Whether a saved entry names a file that was rotated away before this one. Then this one was found too,
    /// or would have been, and must be read, even if the other one is gone.
    fn is_after_saved(&self, path: &Path) -> bool {
        self.saved.keys().any(|saved| is_rotated_after(path, saved))
    }

    /// A path has lost its file.
    pub(super) fn note_lost(&mut self, path: &Arc<Path>, place: &Place, now: Monotonic) {
        if let Some(seen) = self.last_scan {
            // A file that was not processed yet will not be recognised elsewhere.
            let waits = match &place.content {
                Content::Source(_) => false,
                Content::Duplicate(duplicate) => duplicate.comparison.is_some(),
                Content::Nothing => place.size > 0,
            };
            let seen = if waits { seen.min(place.modified) } else { seen };
            self.gone.insert(Arc::clone(path), (seen, now));
        }
    }

    /// Whether the last search for files that were rotated away from a link was complete.
    pub(super) fn is_complete(&self, link: &Path) -> bool {
        !self.failed.contains_key(link)
    }

    /// Adds rotated files beside the targets of links to the files that a scan found. Call it after the
    /// sources of vanished paths are displaced.
    pub(super) fn search(&mut self, scan: &mut LinkScan<'_>, fresh: Vec<Found>) -> Vec<Found> {
        if !scan.files.follows_rotated() {
            return fresh;
        }
        let mut all = Vec::with_capacity(fresh.len());
        let mut loose: Option<HashSet<Arc<Path>>> = None;
        self.searched.clear();
        self.fresh.clear();
        self.others.take();
        if scan.files.input.settings.rotated_since.is_some() {
            self.fresh.extend(fresh.iter().map(|found| found.metadata.id()));
        }
        self.gone.retain(|_, (_, since)| scan.now.monotonic.since(*since) < GONE_KEPT);
        let mut failed = std::mem::take(&mut self.failed);
        for found in fresh {
            let before = self.before(scan, &found, &mut loose);
            // The failed search goes further back.
            let first = || before.map(|seen| FailedSearch { seen, since: scan.now.monotonic });
            if let Some(wanted) = failed.remove(&found.path).or_else(first) {
                self.follow(scan, &found, wanted, &mut all);
            }
            all.push(found);
        }
        for (path, failed) in failed {
            match scan.files.input.fs.metadata(&path) {
                Ok(metadata) => self.follow(scan, &Found { path, metadata }, failed, &mut all),
                // It may come back.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && scan.now.monotonic.since(failed.since) >= MISSING_GRACE => {}
                Err(_) => {
                    self.failed.insert(path, failed);
                }
            }
        }
        all
    }

    /// The same for links whose inode is reused, so that only the content shows that they lead to another
    /// file: candidates that are not the file that was at their path.
    pub(super) fn search_late(
        &mut self,
        scan: &mut LinkScan<'_>,
        candidates: &[Candidate],
    ) -> Vec<Found> {
        if !scan.files.follows_rotated() {
            return Vec::new();
        }
        let mut all = Vec::new();
        for candidate in candidates {
            let was = matches!(candidate.before, Some(Content::Source(_)));
            let seen = match self.saved.get(&*candidate.path) {
                None if was => self.last_scan,
                Some(saved) if !is_saved(scan.files, candidate) => {
                    let updated = saved.iter().map(|saved| saved.updated).max();
                    updated.map(|updated| seen_before(scan.files, updated))
                }
                _ => None,
            };
            if let Some(seen) = seen {
                let failed = FailedSearch { seen: LastSeen::At(seen), since: scan.now.monotonic };
                self.follow(scan, &candidate.found, failed, &mut all);
            }
        }
        if !scan.is_reaction {
            self.last_scan = Some(scan.now.wall);
        }
        all
    }

    /// The newest change that was seen in the file that a path led to before; `None` if it led to no other
    /// file.
    fn before(
        &self,
        scan: &LinkScan<'_>,
        found: &Found,
        loose: &mut Option<HashSet<Arc<Path>>>,
    ) -> Option<LastSeen> {
        let meta = &found.metadata;
        if let Some(place) = scan.files.places.get(&found.path) {
            // A file that was empty and is not any more, or has changed and is empty again, may be another
            // file with the same inode; so may a file with only a few known bytes.
            let is_unproved = match &place.content {
                Content::Source(id) => !scan.matcher().is_certain(*id),
                _ => place.size == 0,
            };
            let may_be_other =
                is_unproved && (meta.size, meta.modified) != (place.size, place.modified);
            let is_same = place.id() == meta.id() && meta.size >= place.size;
            return (!is_same || may_be_other).then_some(LastSeen::At(place.modified));
        }
        if let Some((seen, _)) = self.gone.get(&*found.path) {
            return Some(LastSeen::At(*seen));
        }
        if let Some(saved) = self.saved.get(&*found.path) {
            let others = saved.iter().filter(|saved| !saved.may_be(meta));
            if let Some(updated) = others.map(|saved| saved.updated).max() {
                return Some(LastSeen::At(seen_before(scan.files, updated)));
            }
        }
        let paths = loose.get_or_insert_with(|| {
            let gone = scan.files.sources.iter().filter(|(_, source)| !source.placed);
            gone.map(|(_, source)| Arc::clone(&source.path)).collect()
        });
        // The link was gone for a moment, or is new: then its log began after the last scan.
        let is_new = !self.saved.contains_key(&*found.path);
        let seen = self.last_scan.filter(|_| is_new || paths.contains(&*found.path));
        let is_first_look = scan.files.input.settings.rotated_since.is_some();
        let is_asked = seen.is_some() || !self.directories.is_empty() || is_first_look;
        is_asked.then_some(LastSeen::InDirectory(seen))
    }

    /// Searches for rotated files beside the target of what may be a link.
    fn follow(
        &mut self,
        scan: &mut LinkScan<'_>,
        found: &Found,
        failed: FailedSearch,
        out: &mut Vec<Found>,
    ) {
        if self.searched.contains(&found.path) || sabotage::is_on(Sabotage::LinksUnfollowed) {
            return;
        }
        match self.look_around(scan, found, &failed, out) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                if failed.since == scan.now.monotonic {
                    tracing::warn!(path = %found.path.display(), %error,
                        "cannot look for rotated files beside the target of a link; trying again with each scan");
                }
                self.searched.insert(found.path.clone());
                self.failed.insert(found.path.clone(), failed);
            }
        }
    }

    /// Searches the directory of a link's target for files that are known, and for newer ones. An error means
    /// that the search was incomplete.
    fn look_around(
        &mut self,
        scan: &mut LinkScan<'_>,
        found: &Found,
        search: &FailedSearch,
        out: &mut Vec<Found>,
    ) -> io::Result<()> {
        let Some(target) = target_of(scan.files, &found.path)? else { return Ok(()) };
        let seen = match search.seen {
            LastSeen::At(seen) => Some(seen),
            LastSeen::InDirectory(otherwise) => {
                let saved = target.parent().and_then(|parent| self.directories.get(parent));
                saved.map(|updated| seen_before(scan.files, *updated)).or(otherwise)
            }
        };
        let reads_unseen = scan.files.input.settings.rotated_since.is_some()
            && !sabotage::is_on(Sabotage::FirstLookShort);
        // Its content may still show that it leads to another file.
        if seen.is_none() && !reads_unseen {
            return Ok(());
        }
        self.searched.insert(found.path.clone());
        let link: Arc<Path> = Arc::from(found.path.as_path());
        // Files that are known by now may be newer than the files that could not be seen before.
        let is_retry = search.since < scan.now.monotonic;
        let mut siblings = rotated_from(scan.files, &target)?;
        if seen.is_none() {
            // Each earlier run of a container has a link of its own.
            siblings.retain(|sibling| is_related(&target, &sibling.path));
        }
        // Files that were rotated away before the first look: those that are too old become sources as well, so
        // that they are known under their later names, but are skipped.
        let may_be_unseen = reads_unseen && !siblings.is_empty();
        let others = may_be_unseen.then(|| self.others.get_or_init(|| self.others(scan)));
        let is_unseen = |sibling: &Found| {
            others.is_some_and(|others| !others.contains(&sibling.metadata.id()))
                && is_related(&target, &sibling.path)
        };
        let Classified { mut wanted, mut unknown, passed_known, mut first_looks, failed } =
            self.classify(scan, siblings, &link, is_retry, &is_unseen);
        if !passed_known || is_retry {
            // The file before is gone, or was never seen: files that were written since are not read yet.
            unknown.retain(|sibling| {
                // It may have been rewritten before it was rotated.
                let is_after = seen.is_some_and(|seen| sibling.metadata.modified >= seen)
                    || self.was_target(sibling, &link)
                    || self.is_after_saved(&sibling.path);
                let is_wanted = is_after || is_unseen(sibling);
                if is_wanted && !is_after {
                    first_looks.push(sibling.path.clone());
                }
                is_wanted
            });
        }
        // A file that cannot be looked at may be the known one: wait for it, for a while.
        let waited = scan.now.monotonic.since(search.since) >= MISSING_GRACE;
        if failed.is_none() || passed_known || waited {
            wanted.extend(unknown);
        }
        wanted.sort_by_cached_key(|sibling| age(&sibling.path));
        add_all(scan, &link, wanted, &first_looks, out);
        failed.map_or(Ok(()), Err)
    }

    /// The files at paths that patterns match. What another link leads to is no rotated file, whatever its name.
    fn others(&self, scan: &LinkScan<'_>) -> HashSet<FileId> {
        let places = scan.files.places.iter();
        let own = places.filter(|(path, _)| !scan.files.followed.has(path));
        own.map(|(_, place)| place.id()).chain(self.fresh.iter().copied()).collect()
    }

    /// Whether a saved entry says that a link led to this file, or to one that had its inode.
    fn was_target(&self, sibling: &Found, link: &Path) -> bool {
        let meta = &sibling.metadata;
        let mut saved = self.saved.get(link).into_iter().flatten();
        saved.any(|saved| (saved.device, saved.inode) == (meta.device, meta.inode))
    }

    /// Whether a source or a saved entry shows that a file was read before, at least in part, and if so,
    /// whether that is certain: if little is known of a file, others begin with the same bytes.
    fn is_known(
        &self,
        scan: &mut LinkScan<'_>,
        sibling: &Found,
        link: &Arc<Path>,
    ) -> io::Result<Option<bool>> {
        if self.has_saved(&sibling.path) {
            // Too little may have been read to recognise it by its content.
            return Ok(Some(true));
        }
        let head = match scan.files.probe.head(sibling, Compression::Auto) {
            Ok(Some(head)) => head,
            Ok(None) | Err(HeadError::NotOf(_) | HeadError::Damaged(_)) => return Ok(None),
            Err(HeadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(HeadError::Io(error)) => return Err(error),
        };
        let print = Fingerprint::of(&head.bytes);
        let path: Arc<Path> = Arc::from(sibling.path.as_path());
        let candidate = Candidate::new(sibling.clone(), Arc::clone(&path), head);
        // The source of what the link led to has the path of the link. Matching must see that for a moment.
        scan.files.followed.add_rotated(&path, link, scan.now.monotonic);
        let (matcher, alike) = (scan.matcher(), scan.matcher().sources_like(&candidate));
        let by_source = alike.into_iter().map(|id| matcher.is_certain(id)).max();
        let is_known = by_source.max(scan.saved.claims(scan.files, &candidate, &print));
        scan.files.followed.remove(&path);
        Ok(is_known)
    }
}

/// Follows files that were rotated away from what a link led to. To some nothing but the first look leads.
fn add_all(
    scan: &mut LinkScan<'_>,
    link: &Arc<Path>,
    wanted: Vec<Found>,
    first_looks: &[PathBuf],
    out: &mut Vec<Found>,
) {
    for sibling in wanted {
        tracing::debug!(link = %link.display(), path = %sibling.path.display(),
                "a rotated file is read as what the link led to before");
        scan.files.followed.add_rotated(&sibling.path, link, scan.now.monotonic);
        if first_looks.contains(&sibling.path) {
            scan.files.followed.mark_first_look(&sibling.path);
        }
        out.push(sibling);
    }
}

/// Whether the registry has an entry for the beginning of a file.
fn is_saved(files: &Inventory, candidate: &Candidate) -> bool {
    let key = files.input.settings.key(&candidate.head.print().hex());
    files.input.cursors.saved(&key).is_ok_and(|saved| saved.is_some())
}

/// The newest change that a scan has certainly seen if an entry was saved at this time: cursors move on after
/// the last scan, while the link may lead to another file already.
fn seen_before(files: &Inventory, updated: Timestamp) -> Timestamp {
    let late = SAVED_LATE + files.input.settings.check_interval;
    Timestamp(updated.0.saturating_sub(i64::try_from(late.as_nanos()).unwrap_or(i64::MAX)))
}

/// The file whose rotated files may have to be read: what a link leads to, or the log of a container itself.
fn target_of(files: &Inventory, path: &Path) -> io::Result<Option<PathBuf>> {
    let is_link = files.input.fs.symlink_metadata(path)?.kind == FileKind::Symlink;
    if is_link {
        return files.input.fs.canonicalize(path).map(Some);
    }
    let is_log = files.input.settings.follows_containers() && !files.followed.has(path);
    Ok(is_log.then(|| path.to_path_buf()))
}

/// Files that were rotated away from a path, the oldest first, except those that match a pattern.
fn rotated_from(files: &Inventory, target: &Path) -> io::Result<Vec<Found>> {
    let mut siblings = Vec::new();
    let (Some(directory), Some(name)) = (target.parent(), target.file_name()) else {
        return Ok(siblings);
    };
    let settings = &files.input.settings.scan;
    files.input.fs.scan_dir(
        directory,
        &mut |other| {
            let path = directory.join(other);
            other != name && (is_related(target, &path) || is_of_earlier_run(target, &path))
        },
        &mut |other, metadata| {
            let path = directory.join(other);
            let taken = settings.covers(&path) || settings.excludes(&path);
            if metadata.kind == FileKind::Regular && metadata.size > 0 && !taken {
                siblings.push(Found { path, metadata });
            }
        },
    )?;
    siblings.sort_by_cached_key(|sibling| age(&sibling.path));
    Ok(siblings)
}

#[cfg(test)]
mod tests;
