//! What readers have met that only the catalog can resolve.

use super::Catalog;
use crate::readers::Trouble;
use skidder_os::Metadata;
use std::path::PathBuf;

/// Files that are remembered for a source, at most: there are rarely two that begin as it does.
const REFUSED_MAX: usize = 16;

/// A file as a scan saw it: its device, inode and stored size in bytes.
type Extent = (u64, u64, u64);

/// Compressed files that were taken for a source, and of which its reader has found that they hold something else
/// before its cursor. They are not taken for it again, until they change; otherwise two sources would change places
/// for ever, each with the file that the other's reader has refused.
#[derive(Default)]
#[expect(clippy::box_collection, reason = "most sources have none")]
pub(super) struct RejectedFiles(Option<Box<Vec<Extent>>>);

impl RejectedFiles {
    fn add(&mut self, seen: Extent) {
        let all = self.0.get_or_insert_default();
        if !all.contains(&seen) {
            if all.len() == REFUSED_MAX {
                all.remove(0);
            }
            all.push(seen);
        }
    }

    pub(super) fn has(&self, meta: &Metadata) -> bool {
        let seen = (meta.device, meta.inode, meta.size);
        self.0.as_ref().is_some_and(|all| all.contains(&seen))
    }
}

impl Catalog {
    /// Readers that met something unexpected have their places looked at again. Gives the paths at which that should
    /// be at once: their readers found the file rewritten or replaced. To the others trying again at once would be no
    /// help.
    pub(super) fn take_troubled(&mut self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for id in self.readers.take_troubled(|id| self.sources.contains_key(&id)) {
            let Some(source) = self.sources.get_mut(&id) else { continue };
            let trouble = self.readers.look(id).and_then(|look| look.trouble);
            if source.compressed && trouble == Some(Trouble::Rewritten) {
                source.rejected.add((source.device, source.inode, source.size));
            }
            if let Some(place) = self.places.get_mut(&source.path)
                && trouble != Some(Trouble::Damaged)
            {
                place.recheck = true;
                if matches!(trouble, Some(Trouble::Rewritten | Trouble::Displaced)) {
                    paths.push(source.path.to_path_buf());
                }
            }
        }
        paths
    }
}
