//! Compressed files that are not what they were taken for.

use skidder_os::{FileId, Metadata};

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
