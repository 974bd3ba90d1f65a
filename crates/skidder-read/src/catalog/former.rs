//! Former sources: the content of a file before it was truncated or rewritten.
//!
//! The bytes are not in their place any more, but the renamed file, a copy of it or a compressed one may
//! appear a little later. So a source whose file was rewritten is not restarted. It becomes a *former* source
//! without a place, under a key of its own, and keeps its cursor, which verdicts for lines in flight still
//! move. The new content of the file becomes a source with the next generation under the old key. A file that
//! begins like the former source, and has the same bytes before its cursor, takes the former source over;
//! otherwise it is forgotten like every file that is gone.

use super::saved::SavedState;
use super::{Candidate, Catalog, Content};
use crate::Now;
use crate::fingerprint::Fingerprint;
use crate::readers::ReaderState;
use skidder_event::SourceId;
use skidder_registry::Cursor;
use std::path::Path;
use std::sync::Arc;

/// Between the old key and a number, in the key of a former source.
pub(super) const MARK: &str = ".former.";

/// The key that a former source had before it was rewritten; `None` for any other key.
pub(super) fn of_former(key: &str) -> Option<&str> {
    let (key, number) = key.rsplit_once(MARK)?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(key)
}

/// Whether a file may have the content of a former source: not the file that has taken its place, and only if
/// more was read than both begin with.
pub(super) fn may_be_former(
    path: &Path,
    former: &Path,
    same_inode: bool,
    offset: u64,
    print: &Fingerprint,
) -> bool {
    same_inode || (path != former && offset > u64::from(print.len))
}

impl Catalog {
    /// A file takes the place of a source: a new generation that is read from zero.
    pub(super) fn replace_rewritten(&mut self, candidate: Candidate, id: SourceId, now: Now) {
        let Some(look) = self.files.readers.look(id) else { return };
        let Some(source) = self.files.sources.get(id) else { return };
        let before = source.fingerprint;
        let usual = candidate.head.print();
        let generation = look.generation + 1;
        self.log_rewritten(&candidate, generation, look.offset);
        self.files.make_former(id, &candidate);
        let longer = before.len < self.files.input.settings.fingerprint.length
            && self.files.sources.holders(&usual).is_empty();
        let fingerprint = if longer { usual } else { before };
        let key = self.files.input.settings.key(&fingerprint.hex());
        let cursor = Cursor { generation, ..Cursor::default() };
        let saved = SavedState { key: key.clone(), fingerprint: None, cursor };
        let path = Arc::clone(&candidate.path);
        self.add_source(candidate, fingerprint, key, Some(saved), now);
        // Whatever its modification time, the new content has just appeared.
        if let Some(Content::Source(id)) = self.files.places.get(&path).map(|place| &place.content)
        {
            self.files.readers.wake(*id);
        }
    }

    /// A source is read again from zero: its file was touched, or the name says that it is the same source.
    pub(super) fn restart(&mut self, candidate: Candidate, id: SourceId) {
        let Some(look) = self.files.readers.look(id) else { return };
        if look.state == ReaderState::Reading && look.trouble.is_none() {
            // The reader reads the open file to its end first.
            let Candidate { found, path, before, .. } = candidate;
            let content = before.filter(|content| !matches!(content, Content::Source(_)));
            self.put_place(path, &found, content.unwrap_or(Content::Nothing), true);
            return;
        }
        let generation = look.generation + 1;
        if candidate.touched {
            tracing::info!(path = %candidate.path.display(), generation,
                "a file was touched; reading it from the start");
        } else {
            self.log_rewritten(&candidate, generation, look.offset);
        }
        self.files.sources.clear_skipped(id);
        self.files.input.cursors.restart(id, generation);
        self.files.readers.restart(id, generation);
        self.keep_source(candidate, id, true);
    }

    fn log_rewritten(&self, candidate: &Candidate, generation: u32, read: u64) {
        self.files.input.metrics.files_truncated.add(1);
        tracing::info!(path = %candidate.path.display(), generation, read,
            size = candidate.found.metadata.size,
            "a file was truncated or rewritten; reading it from the start");
    }
}

#[cfg(test)]
mod tests;
