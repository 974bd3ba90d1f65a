//! What the last scan saw at each path.

use crate::compare::{Comparison, Longer};
use crate::scan::ScanProblem;
use foldhash::HashMap;
use skidder_event::SourceId;
use skidder_os::{FileId, FileKind, Metadata, Timestamp};
use std::path::Path;
use std::sync::Arc;

/// The paths of an input, with what was at each of them at the last scan that looked there.
#[derive(Default)]
pub(super) struct Places {
    all: HashMap<Arc<Path>, Place>,
    /// The number of the current scan, or reaction.
    scan: u64,
    /// Paths that this scan has found again.
    found_again: usize,
    /// Paths with duplicates, at most: exact after [`Places::count_duplicates`], counted up in between.
    duplicates: usize,
}

/// A path as the last scan saw it.
pub(super) struct Place {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    pub(super) modified: Timestamp,
    /// The last scan that found it.
    scan: u64,
    pub(super) content: Content,
    /// The next scan processes it even if it does not change.
    pub(super) recheck: bool,
}

/// The content at a path.
pub(super) enum Content {
    Source(SourceId),
    /// The same content as another source, as far as is known.
    Duplicate(Box<Duplicate>),
    /// Nothing that can be read yet: too short, damaged, or permission denied.
    Nothing,
}

/// A file that is held back because it has, or may have, the content of a source.
pub(super) struct Duplicate {
    pub(super) of: SourceId,
    /// The comparison in progress; `None` when they were compared, or need not be.
    pub(super) comparison: Option<Comparison>,
    /// Sources to compare with after this one.
    pub(super) rivals: Vec<SourceId>,
    /// Where the file differs from all sources that it was compared with.
    pub(super) difference: FirstDifference,
    /// It was logged that the file is held back.
    pub(super) logged: bool,
}

/// The first byte in which two files differ, and which one is longer if the other ends there.
pub(super) type FirstDifference = Option<(u64, Option<Longer>)>;

impl Duplicate {
    pub(super) fn of(of: SourceId) -> Self {
        Self { of, comparison: None, rivals: Vec::new(), difference: None, logged: false }
    }

    /// A duplicate that is not logged, because it soon becomes something else.
    pub(super) fn silent(of: SourceId) -> Self {
        Self { logged: true, ..Self::of(of) }
    }
}

impl Place {
    /// Whether the metadata shows no change since the last look.
    pub(super) fn is_as_seen(&self, now: &Metadata) -> bool {
        (self.device, self.inode, self.size, self.modified)
            == (now.device, now.inode, now.size, now.modified)
    }

    /// Whether only the modification time has changed.
    pub(super) fn is_touched(&self, now: &Metadata) -> bool {
        self.id() == now.id() && self.size == now.size && self.modified != now.modified
    }

    /// The source that a file was found to be a duplicate of, if it did not change since.
    pub(super) fn duplicate_of(&self, now: &Metadata) -> Option<SourceId> {
        match &self.content {
            Content::Duplicate(duplicate)
                if self.is_as_seen(now) && !self.recheck && duplicate.comparison.is_none() =>
            {
                Some(duplicate.of)
            }
            _ => None,
        }
    }

    pub(super) fn id(&self) -> FileId {
        FileId { device: self.device, inode: self.inode }
    }

    /// The remembered part of the metadata.
    pub(super) fn metadata(&self) -> Metadata {
        Metadata {
            kind: FileKind::Regular,
            size: self.size,
            modified: self.modified,
            device: self.device,
            inode: self.inode,
            links: 1,
            mode: 0,
            uid: 0,
            gid: 0,
        }
    }

    pub(super) fn is_source(&self) -> bool {
        matches!(self.content, Content::Source(_))
    }
}

impl Places {
    /// A scan, or a reaction, begins.
    pub(super) fn begin_scan(&mut self) {
        self.scan += 1;
        self.found_again = 0;
    }

    /// The number of the current scan.
    pub(super) fn scan(&self) -> u64 {
        self.scan
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, path: &Path) -> Option<&Place> {
        self.all.get(path)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<Path>, &Place)> {
        self.all.iter()
    }

    /// Makes room for this many more paths.
    pub(super) fn reserve(&mut self, paths: usize) {
        self.all.reserve(paths);
    }

    /// The scan found a file. Returns whether the path still has what it had at the last scan, so that there is nothing to
    /// do about it.
    pub(super) fn is_unchanged(&mut self, path: &Path, meta: &Metadata) -> bool {
        let Some(place) = self.all.get_mut(path) else { return false };
        if place.scan != self.scan {
            place.scan = self.scan;
            self.found_again += 1;
        }
        place.is_as_seen(meta) && !place.recheck
    }

    /// Whether a path has something else than at the last scan.
    pub(super) fn has_changed(&self, path: &Path, meta: &Metadata) -> bool {
        self.all.get(path).is_none_or(|place| !place.is_as_seen(meta))
    }

    /// Keeps a path that could not be looked at in this scan.
    pub(super) fn keep(&mut self, path: &Path) {
        if let Some(place) = self.all.get_mut(path) {
            place.scan = self.scan;
        }
    }

    /// Keeps all paths that this scan could not see because of these problems.
    pub(super) fn keep_unseen(&mut self, problems: &[ScanProblem]) {
        for (path, place) in &mut self.all {
            let unseen = problems.iter().any(|problem| path.starts_with(&problem.path));
            if place.scan != self.scan && unseen {
                place.scan = self.scan;
                self.found_again += 1;
            }
        }
    }

    /// Removes the paths that this scan did not find, and returns them.
    pub(super) fn remove_vanished(&mut self) -> Vec<(Arc<Path>, Place)> {
        if self.found_again >= self.all.len() { Vec::new() } else { self.remove_unless(|_| false) }
    }

    /// Removes the paths that this scan did not find, unless `is_kept`, and returns them.
    pub(super) fn remove_unless(
        &mut self,
        is_kept: impl Fn(&Path) -> bool,
    ) -> Vec<(Arc<Path>, Place)> {
        let scan = self.scan;
        self.all.extract_if(|path, place| place.scan != scan && !is_kept(path)).collect()
    }

    pub(super) fn remove(&mut self, path: &Path) -> Option<(Arc<Path>, Place)> {
        self.all.remove_entry(path)
    }

    /// Sets the content at a path.
    pub(super) fn put(
        &mut self,
        path: Arc<Path>,
        metadata: &Metadata,
        content: Content,
        recheck: bool,
    ) {
        self.duplicates += usize::from(matches!(content, Content::Duplicate(_)));
        let place = Place {
            device: metadata.device,
            inode: metadata.inode,
            size: metadata.size,
            modified: metadata.modified,
            scan: self.scan,
            content,
            recheck,
        };
        self.all.insert(path, place);
    }

    /// The file at a path is a duplicate now, and the next scan checks that.
    pub(super) fn make_duplicate(&mut self, path: &Path, duplicate: Duplicate) {
        if let Some(place) = self.all.get_mut(path) {
            place.content = Content::Duplicate(Box::new(duplicate));
            place.recheck = true;
            self.duplicates += 1;
        }
    }

    /// The next scan processes a path even if it does not change. Returns whether the path is known.
    pub(super) fn recheck(&mut self, path: &Path) -> bool {
        let Some(place) = self.all.get_mut(path) else { return false };
        place.recheck = true;
        true
    }

    /// The next scan processes all duplicates of a source.
    pub(super) fn recheck_duplicates_of(&mut self, id: SourceId) {
        for place in self.all.values_mut() {
            if matches!(&place.content, Content::Duplicate(duplicate) if duplicate.of == id) {
                place.recheck = true;
            }
        }
    }

    /// Whether there may be duplicates: looking for them costs a walk over all paths.
    pub(super) fn may_have_duplicates(&self) -> bool {
        self.duplicates > 0
    }

    /// How many duplicates there are at most.
    pub(super) fn duplicates_max(&self) -> usize {
        self.duplicates
    }

    pub(super) fn duplicates(&self) -> impl Iterator<Item = (&Arc<Path>, &Place, &Duplicate)> {
        self.all.iter().filter_map(|(path, place)| match &place.content {
            Content::Duplicate(duplicate) => Some((path, place, &**duplicate)),
            _ => None,
        })
    }

    /// Counts the duplicates, and those of them whose comparison continues.
    pub(super) fn count_duplicates(&mut self) -> (usize, usize) {
        let (mut held, mut undecided) = (0, 0);
        if self.duplicates > 0 {
            for (_, _, duplicate) in self.duplicates() {
                held += 1;
                undecided += usize::from(duplicate.comparison.is_some());
            }
            self.duplicates = held;
        }
        (held, undecided)
    }
}

#[cfg(test)]
mod tests;
