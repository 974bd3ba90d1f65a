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

use super::matching::is_related;
use super::{Candidate, Catalog, Content, MISSING_GRACE, Place};
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
}

impl Catalog {
    /// Adds rotated files beside the targets of links to what a scan found; call it when sources whose paths
    /// are gone have lost their places.
    pub(super) fn add_rotated(&mut self, fresh: Vec<Found>, now: Now) -> Vec<Found> {
        if !self.follows_links() {
            return fresh;
        }
        let mut all = Vec::with_capacity(fresh.len());
        let mut loose: Option<HashSet<Arc<Path>>> = None;
        self.rotated.searched.clear();
        self.rotated.gone.retain(|_, (_, since)| now.monotonic.since(*since) < GONE_KEPT);
        let mut again = std::mem::take(&mut self.rotated.again);
        for found in fresh {
            let before = self.before(&found, &mut loose);
            // What failed before goes further back.
            let first = || before.map(|seen| Again { seen, since: now.monotonic });
            if let Some(wanted) = again.remove(&found.path).or_else(first) {
                self.follow(&found, wanted, now, &mut all);
            }
            all.push(found);
        }
        for (path, failed) in again {
            match self.files.input.fs.metadata(&path) {
                Ok(metadata) => self.follow(&Found { path, metadata }, failed, now, &mut all),
                // It may come back.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && now.monotonic.since(failed.since) >= MISSING_GRACE => {}
                Err(_) => {
                    self.rotated.again.insert(path, failed);
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
        if !self.files.input.settings.scan.symlinks {
            return Vec::new();
        }
        let mut all = Vec::new();
        for candidate in candidates {
            let was = matches!(candidate.before, Some(Content::Source(_)));
            let seen = match self.rotated.saved.get(&*candidate.path) {
                None if was => self.rotated.last_scan,
                Some(saved) if !self.is_saved(candidate) => {
                    let updated = saved.iter().map(|saved| saved.updated).max();
                    updated.map(|updated| self.seen_before(updated))
                }
                _ => None,
            };
            if let Some(seen) = seen {
                let again = Again { seen: Extent::At(seen), since: now.monotonic };
                self.follow(&candidate.found, again, now, &mut all);
            }
        }
        if !self.brief {
            self.rotated.last_scan = Some(now.wall);
        }
        let all = self.vacate(all);
        self.read_heads(all, now)
    }

    /// Whether the registry has something under the key of a file's beginning.
    fn is_saved(&self, candidate: &Candidate) -> bool {
        let key = self.files.input.settings.key(&candidate.head.print().hex());
        self.files.input.cursors.saved(&key).is_ok_and(|saved| saved.is_some())
    }

    /// What was seen of what a path led to before it led to this file; nothing if it led to no other.
    fn before(&self, found: &Found, loose: &mut Option<HashSet<Arc<Path>>>) -> Option<Extent> {
        let meta = &found.metadata;
        if let Some(place) = self.files.places.get(&found.path) {
            // What was empty and is not any more, or has been written to and is empty again, may be another file with the
            // same inode; and so may one of which a few bytes were known.
            let is_unproved = match &place.content {
                Content::Source(id) => !self.matcher().is_certain(*id),
                _ => place.size == 0,
            };
            let may_be_other =
                is_unproved && (meta.size, meta.modified) != (place.size, place.modified);
            let is_same = place.id() == meta.id() && meta.size >= place.size;
            return (!is_same || may_be_other).then_some(Extent::At(place.modified));
        }
        if let Some((seen, _)) = self.rotated.gone.get(&*found.path) {
            return Some(Extent::At(*seen));
        }
        if let Some(saved) = self.rotated.saved.get(&*found.path) {
            let others = saved.iter().filter(|saved| !saved.may_be(meta));
            if let Some(updated) = others.map(|saved| saved.updated).max() {
                return Some(Extent::At(self.seen_before(updated)));
            }
        }
        let paths = loose.get_or_insert_with(|| {
            let gone = self.files.sources.iter().filter(|(_, source)| !source.placed);
            gone.map(|(_, source)| Arc::clone(&source.path)).collect()
        });
        // The link was gone for a moment, or it is new: then its log began after the last scan.
        let is_new = !self.rotated.saved.contains_key(&*found.path);
        let seen = self.rotated.last_scan.filter(|_| is_new || paths.contains(&*found.path));
        let is_asked = seen.is_some() || !self.rotated.directories.is_empty();
        is_asked.then_some(Extent::InDirectory(seen))
    }

    /// A change that a scan has certainly seen if an entry was saved at this time: cursors move on after the last scan,
    /// while the link may lead to another file already.
    fn seen_before(&self, updated: Timestamp) -> Timestamp {
        let late = SAVED_LATE + self.files.input.settings.check_interval;
        Timestamp(updated.0.saturating_sub(i64::try_from(late.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// Looks for rotated files beside the target of what may be a link.
    fn follow(&mut self, found: &Found, again: Again, now: Now, out: &mut Vec<Found>) {
        if self.rotated.searched.contains(&found.path) || sabotage::is_on(Sabotage::LinksUnfollowed)
        {
            return;
        }
        match self.look_around(found, &again, now, out) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                if again.since == now.monotonic {
                    tracing::warn!(path = %found.path.display(), %error,
                        "cannot look for rotated files beside the target of a link; trying again with each scan");
                }
                self.rotated.searched.insert(found.path.clone());
                self.rotated.again.insert(found.path.clone(), again);
            }
        }
    }

    /// Looks through the directory of a link's target: what is known there, and what is newer than that. An error
    /// means that not all of it was seen.
    fn look_around(
        &mut self,
        found: &Found,
        again: &Again,
        now: Now,
        out: &mut Vec<Found>,
    ) -> io::Result<()> {
        if self.files.input.fs.symlink_metadata(&found.path)?.kind != FileKind::Symlink {
            return Ok(());
        }
        let target = self.files.input.fs.canonicalize(&found.path)?;
        let seen = match again.seen {
            Extent::At(seen) => Some(seen),
            Extent::InDirectory(otherwise) => {
                let saved = target.parent().and_then(|parent| self.rotated.directories.get(parent));
                saved.map(|updated| self.seen_before(*updated)).or(otherwise)
            }
        };
        // Its content may still tell that it leads to another file.
        let Some(seen) = seen else { return Ok(()) };
        self.rotated.searched.insert(found.path.clone());
        let link: Arc<Path> = Arc::from(found.path.as_path());
        // What is known by now may be newer than what could not be seen before.
        let is_retry = again.since < now.monotonic;
        let siblings = self.rotated_from(&target)?;
        let Classified { mut wanted, mut unknown, passed_known, failed } =
            self.classify(siblings, &link, is_retry, now.monotonic);
        if !passed_known || is_retry {
            // What was before is gone, or was never seen: what was written since is not read yet.
            unknown.retain(|sibling| {
                // It may have been written anew before it was rotated.
                sibling.metadata.modified >= seen
                    || self.was_target(sibling, &link)
                    || self.rotated.is_after_saved(&sibling.path)
            });
        }
        // What cannot be looked at may be what was known: it is waited for, a while.
        let waited = now.monotonic.since(again.since) >= MISSING_GRACE;
        if failed.is_none() || passed_known || waited {
            wanted.extend(unknown);
        }
        wanted.sort_by_cached_key(|sibling| age(&sibling.path));
        for sibling in wanted {
            tracing::debug!(link = %link.display(), path = %sibling.path.display(),
                "a rotated file is read as what the link led to before");
            self.files.followed.add_rotated(&sibling.path, &link, now.monotonic);
            out.push(sibling);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Files that were rotated away from a path, the oldest first, without those that a pattern matches.
    fn rotated_from(&self, target: &Path) -> io::Result<Vec<Found>> {
        let mut siblings = Vec::new();
        let (Some(directory), Some(name)) = (target.parent(), target.file_name()) else {
            return Ok(siblings);
        };
        let scan = &self.files.input.settings.scan;
        self.files.input.fs.scan_dir(
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

    /// Whether a saved entry says that a link led to this file, or to one that had its inode.
    fn was_target(&self, sibling: &Found, link: &Path) -> bool {
        let meta = &sibling.metadata;
        let mut saved = self.rotated.saved.get(link).into_iter().flatten();
        saved.any(|saved| (saved.device, saved.inode) == (meta.device, meta.inode))
    }

    /// Whether a source or a saved entry says that a file was read before, at least in part, and if so, whether that is
    /// certain: where little is known of a file, others begin as it did.
    fn is_known(
        &mut self,
        sibling: &Found,
        link: &Arc<Path>,
        now: Monotonic,
    ) -> io::Result<Option<bool>> {
        if self.rotated.has_saved(&sibling.path) {
            // Too little may have been read of it to tell by what it holds.
            return Ok(Some(true));
        }
        let head = match self.files.probe.head(sibling, Compression::Auto) {
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
        self.files.followed.add_rotated(&path, link, now);
        let sources_like = self
            .matcher()
            .sources_like(&candidate)
            .into_iter()
            .map(|id| self.matcher().is_certain(id));
        let source = sources_like.reduce(|one, other| one || other);
        let source = source.max(self.saved.claims(&self.files, &candidate, &print));
        self.files.followed.remove(&path);
        Ok(source)
    }
}

#[cfg(test)]
mod tests;
