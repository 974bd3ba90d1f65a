//! Followed files are looked at by each scan, as long as they exist.

use super::age::age;
use super::rotated_from;
use crate::catalog::inventory::Inventory;
use crate::catalog::matching::{is_related, rotated_suffix};
use crate::scan::Found;
use skidder_os::{FileKind, Monotonic};
use std::io;
use std::path::Path;
use std::sync::Arc;

impl Inventory {
    /// Adds followed files that have changed to the files that a scan found. Rotated files come first. Pins
    /// come last, so that a file with another name is known by that.
    pub(in crate::catalog) fn add_followed(
        &mut self,
        fresh: Vec<Found>,
        now: Monotonic,
    ) -> Vec<Found> {
        let mut all = self.changed_followed(self.followed.paths(), now);
        let pins: Vec<Found> =
            all.extract_if(.., |found| self.followed.pinned(&found.path).is_some()).collect();
        all.extend(fresh);
        all.extend(pins);
        all
    }

    /// The same for a reaction, of the files that were rotated away from what it looks at: what has the name of one of
    /// them may be another file by now, which the next rotations delete before the next scan.
    pub(in crate::catalog) fn add_rotated(
        &mut self,
        rotated: Vec<Arc<Path>>,
        fresh: Vec<Found>,
        now: Monotonic,
    ) -> Vec<Found> {
        let mut all = self.changed_followed(rotated, now);
        // A reader may have asked for a look at one of them.
        all.retain(|file| fresh.iter().all(|found| found.path != file.path));
        all.extend(fresh);
        all
    }

    /// Looks at followed files as a scan looks at files that match. They are followed as long as they exist:
    /// a known file is distinguished from a new one, and found again when it is compressed.
    fn changed_followed(&mut self, paths: Vec<Arc<Path>>, now: Monotonic) -> Vec<Found> {
        let mut found = Vec::new();
        for path in paths {
            match self.input.fs.symlink_metadata(&path) {
                Ok(metadata) if metadata.kind == FileKind::Regular => {
                    if !self.places.is_unchanged(&path, &metadata) {
                        found.push(Found { path: path.to_path_buf(), metadata });
                    }
                }
                Ok(_) => self.follow_compressed(&path, now, &mut found),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.follow_compressed(&path, now, &mut found);
                }
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "cannot look at a rotated file");
                    self.places.keep(&path);
                }
            }
        }
        found.sort_by_cached_key(|found| age(&found.path));
        found
    }

    /// A rotated file is gone from its path: the file that it was compressed to is followed instead.
    fn follow_compressed(&mut self, path: &Arc<Path>, now: Monotonic, out: &mut Vec<Found>) {
        let Some(mut gone) = self.followed.remove(path) else { return };
        self.lose_place(path, now);
        if gone.is_pin {
            return;
        }
        let suffix = rotated_suffix(path);
        let siblings = match rotated_from(self, path) {
            Ok(siblings) => siblings,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error,
                    "cannot look for what a rotated file was compressed to; trying again with the next scan");
                gone.since = now;
                self.followed.put_back(path, gone);
                return;
            }
        };
        for sibling in siblings {
            let is_same =
                is_related(path, &sibling.path) && rotated_suffix(&sibling.path) == suffix;
            if is_same && !self.followed.has(&sibling.path) {
                self.followed.add_rotated(&sibling.path, &gone.shown, now);
                out.push(sibling);
            }
        }
    }
}
