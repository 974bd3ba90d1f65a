//! What readers have met that only the catalog can resolve.

use super::Catalog;
use crate::readers::Trouble;
use skidder_os::{FileId, Metadata};
use std::path::PathBuf;
use std::sync::Arc;

/// Files that are remembered for a source, at most: there are rarely two that begin as it does.
const REFUSED_MAX: usize = 16;

/// A file as a scan saw it, with its stored size in bytes.
type SeenFile = (FileId, u64);

/// Compressed files that were taken for a source, and of which its reader has found that they hold something else
/// before its cursor. They are not taken for it again, until they change; otherwise two sources would change places
/// for ever, each with the file that the other's reader has refused.
#[derive(Default)]
#[expect(clippy::box_collection, reason = "most sources have none")]
pub(super) struct RejectedFiles(Option<Box<Vec<SeenFile>>>);

impl RejectedFiles {
    pub(super) fn add(&mut self, file: FileId, size: u64) {
        let seen = (file, size);
        let all = self.0.get_or_insert_default();
        if !all.contains(&seen) {
            if all.len() == REFUSED_MAX {
                all.remove(0);
            }
            all.push(seen);
        }
    }

    pub(super) fn has(&self, meta: &Metadata) -> bool {
        let seen = (meta.id(), meta.size);
        self.0.as_ref().is_some_and(|all| all.contains(&seen))
    }
}

impl Catalog {
    /// Readers that met something unexpected have their places looked at again. Gives the paths at which that should
    /// be at once: their readers found the file rewritten or replaced. To the others trying again at once would be no
    /// help.
    pub(super) fn take_troubled(&mut self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for id in self.files.readers.take_troubled(|id| self.files.sources.contains(id)) {
            let Some(source) = self.files.sources.get(id) else { continue };
            let (path, compressed) = (Arc::clone(&source.path), source.compressed);
            let trouble = self.files.readers.look(id).and_then(|look| look.trouble);
            if compressed && trouble == Some(Trouble::Rewritten) {
                self.files.sources.reject_file(id);
            }
            if trouble != Some(Trouble::Damaged)
                && self.files.places.recheck(&path)
                && matches!(trouble, Some(Trouble::Rewritten | Trouble::Displaced))
            {
                paths.push(path.to_path_buf());
            }
        }
        paths
    }
}
