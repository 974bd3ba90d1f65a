//! Rotated files beside the target of a link.
//!
//! `/var/log/containers/*.log` are links to `0.log` of a container; the kubelet renames that to
//! `0.log.20261121-101112`, compresses it later and makes a new `0.log`, and no pattern matches any of these names
//! but the link (kubelet: pkg/kubelet/logs/container_log_manager.go). The link and what it led to before are one log:
//! when it leads to another file, its directory is looked through for the file before and for those in between
//! that no scan has seen. These are taken as though a pattern matched them, oldest first, as long as they are there, but
//! never deleted. Their events carry the path of the link.

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
use skidder_os::{FileKind, Metadata, Monotonic, Timestamp};
use skidder_registry::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long after a scan what it has found is saved, at most, besides the time until the next scan.
const SAVED_LATE: Duration = Duration::from_mins(1);

/// How long it is remembered what a link led to that leads nowhere.
const GONE_KEPT: Duration = Duration::from_hours(1);

/// All that is known of files beside the targets of links.
#[derive(Default)]
pub(super) struct RotatedFiles {
    /// Saved entries of this input, by their paths, until the start is over.
    saved: HashMap<Arc<Path>, Vec<Saved>>,
    /// Directories of saved entries that no pattern matches, with the newest change of each.
    directories: HashMap<PathBuf, Timestamp>,
    /// Links of this scan whose rotated files were looked for.
    searched: HashSet<PathBuf>,
    /// Links whose rotated files could not be looked for, or only in part: the next scan tries again.
    again: BTreeMap<PathBuf, Again>,
    /// When the last scan began.
    last_scan: Option<Timestamp>,
    /// Paths that lead nowhere any more: the last scan that saw what they led to, and since when they are gone. What was
    /// rotated away from them since was written since.
    gone: HashMap<Arc<Path>, (Timestamp, Monotonic)>,
}

struct Saved {
    device: u64,
    inode: u64,
    /// It has at least so many bytes, unless it is compressed.
    bytes: u64,
    updated: Timestamp,
}

impl Saved {
    /// Whether a file may be this one, as far as its metadata tells: an inode may be used again.
    fn may_be(&self, meta: &Metadata) -> bool {
        (self.device, self.inode) == (meta.device, meta.inode) && self.bytes <= meta.size
    }
}

/// The newest change that was certainly seen of what a link led to before.
#[derive(Clone, Copy)]
enum Extent {
    At(Timestamp),
    /// That of the directory that the link leads to, if the registry knows one, or else this.
    InDirectory(Option<Timestamp>),
}

/// What could not be looked for, since when.
struct Again {
    seen: Extent,
    since: Monotonic,
}

/// What a search for rotated files works with. It follows the files that it finds.
pub(super) struct LinkScan<'a> {
    pub(super) files: &'a mut Inventory,
    pub(super) saved: &'a SavedEntries,
    pub(super) now: Now,
    /// Only some names are looked at.
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
    pub(super) fn consider(&mut self, settings: &FilestreamSettings, entry: &Entry) {
        if !settings.scan.symlinks || !settings.identity.is_content() {
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

    /// Whether a saved entry names this file, or the one that it was compressed from.
    fn has_saved(&self, path: &Path) -> bool {
        let original = path.extension().filter(|end| *end == "gz").map(|_| path.with_extension(""));
        self.saved.contains_key(path)
            || original.is_some_and(|original| self.saved.contains_key(&*original))
    }

    /// Whether a saved entry names a file that was rotated away before this one: then this one was found too, or would
    /// have been, and is to be read, even if that one is gone.
    fn is_after_saved(&self, path: &Path) -> bool {
        self.saved.keys().any(|saved| is_rotated_after(path, saved))
    }

    /// What was at a path is gone.
    pub(super) fn note_lost(&mut self, path: &Arc<Path>, place: &Place, now: Monotonic) {
        if let Some(seen) = self.last_scan {
            // What waited to be taken in is not known wherever it is now.
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
        !self.again.contains_key(link)
    }

    /// Adds rotated files beside the targets of links to what a scan found; call it when sources whose paths
    /// are gone have lost their places.
    pub(super) fn search(&mut self, scan: &mut LinkScan<'_>, fresh: Vec<Found>) -> Vec<Found> {
        if !scan.files.follows_links() {
            return fresh;
        }
        let mut all = Vec::with_capacity(fresh.len());
        let mut loose: Option<HashSet<Arc<Path>>> = None;
        self.searched.clear();
        self.gone.retain(|_, (_, since)| scan.now.monotonic.since(*since) < GONE_KEPT);
        let mut again = std::mem::take(&mut self.again);
        for found in fresh {
            let before = self.before(scan, &found, &mut loose);
            // What failed before goes further back.
            let first = || before.map(|seen| Again { seen, since: scan.now.monotonic });
            if let Some(wanted) = again.remove(&found.path).or_else(first) {
                self.follow(scan, &found, wanted, &mut all);
            }
            all.push(found);
        }
        for (path, failed) in again {
            match scan.files.input.fs.metadata(&path) {
                Ok(metadata) => self.follow(scan, &Found { path, metadata }, failed, &mut all),
                // It may come back.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && scan.now.monotonic.since(failed.since) >= MISSING_GRACE => {}
                Err(_) => {
                    self.again.insert(path, failed);
                }
            }
        }
        all
    }

    /// The same for links whose inode is used again, so that only the content tells that they lead to another
    /// file: the candidates that are none of the files they were.
    pub(super) fn search_late(
        &mut self,
        scan: &mut LinkScan<'_>,
        candidates: &[Candidate],
    ) -> Vec<Found> {
        if !scan.files.input.settings.scan.symlinks {
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
                let again = Again { seen: Extent::At(seen), since: scan.now.monotonic };
                self.follow(scan, &candidate.found, again, &mut all);
            }
        }
        if !scan.is_reaction {
            self.last_scan = Some(scan.now.wall);
        }
        all
    }

    /// What was seen of what a path led to before it led to this file; nothing if it led to no other.
    fn before(
        &self,
        scan: &LinkScan<'_>,
        found: &Found,
        loose: &mut Option<HashSet<Arc<Path>>>,
    ) -> Option<Extent> {
        let meta = &found.metadata;
        if let Some(place) = scan.files.places.get(&found.path) {
            // What was empty and is not any more, or has been written to and is empty again, may be another file with the
            // same inode; and so may one of which a few bytes were known.
            let is_unproved = match &place.content {
                Content::Source(id) => !scan.matcher().is_certain(*id),
                _ => place.size == 0,
            };
            let may_be_other =
                is_unproved && (meta.size, meta.modified) != (place.size, place.modified);
            let is_same = place.id() == meta.id() && meta.size >= place.size;
            return (!is_same || may_be_other).then_some(Extent::At(place.modified));
        }
        if let Some((seen, _)) = self.gone.get(&*found.path) {
            return Some(Extent::At(*seen));
        }
        if let Some(saved) = self.saved.get(&*found.path) {
            let others = saved.iter().filter(|saved| !saved.may_be(meta));
            if let Some(updated) = others.map(|saved| saved.updated).max() {
                return Some(Extent::At(seen_before(scan.files, updated)));
            }
        }
        let paths = loose.get_or_insert_with(|| {
            let gone = scan.files.sources.iter().filter(|(_, source)| !source.placed);
            gone.map(|(_, source)| Arc::clone(&source.path)).collect()
        });
        // The link was gone for a moment, or it is new: then its log began after the last scan.
        let is_new = !self.saved.contains_key(&*found.path);
        let seen = self.last_scan.filter(|_| is_new || paths.contains(&*found.path));
        let is_asked = seen.is_some() || !self.directories.is_empty();
        is_asked.then_some(Extent::InDirectory(seen))
    }

    /// Looks for rotated files beside the target of what may be a link.
    fn follow(
        &mut self,
        scan: &mut LinkScan<'_>,
        found: &Found,
        again: Again,
        out: &mut Vec<Found>,
    ) {
        if self.searched.contains(&found.path) || sabotage::is_on(Sabotage::LinksUnfollowed) {
            return;
        }
        match self.look_around(scan, found, &again, out) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                if again.since == scan.now.monotonic {
                    tracing::warn!(path = %found.path.display(), %error,
                        "cannot look for rotated files beside the target of a link; trying again with each scan");
                }
                self.searched.insert(found.path.clone());
                self.again.insert(found.path.clone(), again);
            }
        }
    }

    /// Looks through the directory of a link's target: what is known there, and what is newer than that. An error
    /// means that not all of it was seen.
    fn look_around(
        &mut self,
        scan: &mut LinkScan<'_>,
        found: &Found,
        again: &Again,
        out: &mut Vec<Found>,
    ) -> io::Result<()> {
        if scan.files.input.fs.symlink_metadata(&found.path)?.kind != FileKind::Symlink {
            return Ok(());
        }
        let target = scan.files.input.fs.canonicalize(&found.path)?;
        let seen = match again.seen {
            Extent::At(seen) => Some(seen),
            Extent::InDirectory(otherwise) => {
                let saved = target.parent().and_then(|parent| self.directories.get(parent));
                saved.map(|updated| seen_before(scan.files, *updated)).or(otherwise)
            }
        };
        // Its content may still tell that it leads to another file.
        let Some(seen) = seen else { return Ok(()) };
        self.searched.insert(found.path.clone());
        let link: Arc<Path> = Arc::from(found.path.as_path());
        // What is known by now may be newer than what could not be seen before.
        let is_retry = again.since < scan.now.monotonic;
        let siblings = rotated_from(scan.files, &target)?;
        let Classified { mut wanted, mut unknown, passed_known, failed } =
            self.classify(scan, siblings, &link, is_retry);
        if !passed_known || is_retry {
            // What was before is gone, or was never seen: what was written since is not read yet.
            unknown.retain(|sibling| {
                // It may have been written anew before it was rotated.
                sibling.metadata.modified >= seen
                    || self.was_target(sibling, &link)
                    || self.is_after_saved(&sibling.path)
            });
        }
        // What cannot be looked at may be what was known: it is waited for, a while.
        let waited = scan.now.monotonic.since(again.since) >= MISSING_GRACE;
        if failed.is_none() || passed_known || waited {
            wanted.extend(unknown);
        }
        wanted.sort_by_cached_key(|sibling| age(&sibling.path));
        for sibling in wanted {
            tracing::debug!(link = %link.display(), path = %sibling.path.display(),
                "a rotated file is read as what the link led to before");
            scan.files.followed.add_rotated(&sibling.path, &link, scan.now.monotonic);
            out.push(sibling);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Whether a saved entry says that a link led to this file, or to one that had its inode.
    fn was_target(&self, sibling: &Found, link: &Path) -> bool {
        let meta = &sibling.metadata;
        let mut saved = self.saved.get(link).into_iter().flatten();
        saved.any(|saved| (saved.device, saved.inode) == (meta.device, meta.inode))
    }

    /// Whether a source or a saved entry says that a file was read before, at least in part, and if so, whether that is
    /// certain: where little is known of a file, others begin as it did.
    fn is_known(
        &self,
        scan: &mut LinkScan<'_>,
        sibling: &Found,
        link: &Arc<Path>,
    ) -> io::Result<Option<bool>> {
        if self.has_saved(&sibling.path) {
            // Too little may have been read of it to tell by what it holds.
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
        // What the link led to is known by the path of the link.
        scan.files.followed.add_rotated(&path, link, scan.now.monotonic);
        let sources_like = scan
            .matcher()
            .sources_like(&candidate)
            .into_iter()
            .map(|id| scan.matcher().is_certain(id));
        let source = sources_like.reduce(|one, other| one || other);
        let source = source.max(scan.saved.claims(scan.files, &candidate, &print));
        scan.files.followed.remove(&path);
        Ok(source)
    }
}

/// Whether the registry has something under the key of a file's beginning.
fn is_saved(files: &Inventory, candidate: &Candidate) -> bool {
    let key = files.input.settings.key(&candidate.head.print().hex());
    files.input.cursors.saved(&key).is_ok_and(|saved| saved.is_some())
}

/// A change that a scan has certainly seen if an entry was saved at this time: cursors move on after the last scan,
/// while the link may lead to another file already.
fn seen_before(files: &Inventory, updated: Timestamp) -> Timestamp {
    let late = SAVED_LATE + files.input.settings.check_interval;
    Timestamp(updated.0.saturating_sub(i64::try_from(late.as_nanos()).unwrap_or(i64::MAX)))
}

/// Files that were rotated away from a path, the oldest first, without those that a pattern matches.
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
