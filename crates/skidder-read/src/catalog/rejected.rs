//! Compressed files that turned out to be something else.

use skidder_os::{FileId, Metadata};

/// Number of files that are remembered for a source: more than two with the same beginning are rare.
const REFUSED_MAX: usize = 16;

/// A file as a scan saw it, with its stored size in bytes.
type SeenFile = (FileId, u64);

/// Compressed files that were matched with a source, and whose reader found other bytes before the cursor.
/// They are not matched with it again until they change. Otherwise two sources would swap files for ever,
/// each with the file that the other's reader rejected.
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
