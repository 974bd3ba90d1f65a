//! Former contents: what was in a file before it was truncated or rewritten.
//!
//! The bytes have left their place, but the renamed file, a copy of it or a compressed one may turn up a
//! little later. So a source whose file was rewritten is not restarted: it keeps its cursor, and what is
//! on its way keeps moving it, as a *former* source without a place, under a key of its own. What is in
//! the file now becomes a source with the next generation under the old key. A file that begins as the
//! former one did, and has the same bytes before its cursor, takes it over; otherwise it is forgotten
//! as every file that is gone.

use super::saved::SavedState;
use super::{Candidate, Catalog, Content};
use crate::Now;
use crate::fingerprint::Fingerprint;
use crate::readers::ReaderState;
use skidder_event::SourceId;
use skidder_registry::Cursor;
use std::path::Path;
use std::sync::Arc;

/// What follows the old key in that of a former source; a number follows it.
const MARK: &str = ".former.";

/// The part of a key that it has in common with the source that took its place, if it is a former one's.
pub(super) fn of_former(key: &str) -> Option<&str> {
    let (key, number) = key.rsplit_once(MARK)?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(key)
}

/// Whether a file may be what was in a file before: not what has taken its place there, and only if
/// something was read that the new content need not begin with.
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
    /// A file takes the place of what a source was: a new generation from zero.
    pub(super) fn replace_rewritten(&mut self, candidate: Candidate, id: SourceId, now: Now) {
        let Some(look) = self.readers.look(id) else { return };
        let Some(source) = self.sources.get(id) else { return };
        let before = source.fingerprint;
        let usual = candidate.head.print();
        let generation = look.generation + 1;
        self.log_rewritten(&candidate, generation, look.offset);
        self.make_former(id, &candidate);
        let longer =
            before.len < self.input.settings.fingerprint.length && self.holders(&usual).is_empty();
        let fingerprint = if longer { usual } else { before };
        let key = self.input.settings.key(&fingerprint.hex());
        let cursor = Cursor { generation, ..Cursor::default() };
        let saved = SavedState { key: key.clone(), fingerprint: None, cursor };
        let path = Arc::clone(&candidate.path);
        self.add_source(candidate, fingerprint, key, Some(saved), now);
        // Whatever time of change the new content has: it has just appeared.
        if let Some(Content::Source(id)) = self.places.get(&path).map(|place| &place.content) {
            self.readers.wake(*id);
        }
    }

    /// A file is read again from zero as the same source: it was touched, or its name says that it is the
    /// one it was.
    pub(super) fn restart(&mut self, candidate: Candidate, id: SourceId) {
        let Some(look) = self.readers.look(id) else { return };
        if look.state == ReaderState::Reading && look.trouble.is_none() {
            // The old file is open and not yet read to its end; it comes first.
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
        self.sources.clear_skipped(id);
        self.input.cursors.restart(id, generation);
        self.readers.restart(id, generation);
        self.keep_source(candidate, id, true);
    }

    fn log_rewritten(&self, candidate: &Candidate, generation: u32, read: u64) {
        self.input.metrics.files_truncated.add(1);
        tracing::info!(path = %candidate.path.display(), generation, read,
            size = candidate.found.metadata.size,
            "a file was truncated or rewritten; reading it from the start");
    }

    /// A source loses its key and its place to what is in its file now.
    fn make_former(&mut self, id: SourceId, candidate: &Candidate) {
        let key = self.former_key(id);
        let Some(source) = self.sources.get(id) else { return };
        let in_place = source.file_id() == candidate.found.metadata.id();
        tracing::debug!(source = id.0, key, "what a source was has lost its place");
        self.sources.make_former(id, key.into());
        if in_place {
            self.lose_inode(id);
        } else {
            self.publish(id, false);
        }
    }

    /// A file that is none of those that are known has its inode for itself: sources that lost their places and had it
    /// do not read on in what it holds now. Says whether that is so; while one of them has a turn it cannot be told what
    /// that has read, and the file has to wait for it. What was rotated away from a link does not: the program could end
    /// meanwhile, and nothing would be known of it. Some of its lines may come twice then.
    pub(super) fn has_inode_for_itself(&mut self, candidate: &Candidate) -> bool {
        let meta = &candidate.found.metadata;
        let mut ids = self.sources.index().with_inode((meta.device, meta.inode)).to_vec();
        ids.retain(|&id| self.is_displaced(id));
        let may_wait = !self.rotated.is_rotated(&candidate.path);
        let reads = |id: &SourceId| self.readers.look(*id).is_some_and(|look| look.in_turn);
        if may_wait && ids.iter().any(reads) {
            return false;
        }
        for id in ids {
            self.lose_inode(id);
        }
        true
    }

    /// The inode of a source holds something else now.
    fn lose_inode(&mut self, id: SourceId) {
        self.sources.clear_inode(id);
        self.publish(id, false);
        self.readers.close(id);
    }

    /// Sends the state of a source to the registry and to its reader, which opens the file again if `reopen`.
    pub(super) fn publish(&self, id: SourceId, reopen: bool) {
        let Some(source) = self.sources.get(id) else { return };
        let meta = self.sources.meta(source, self.saved_path(&source.path));
        self.input.cursors.update(id, &source.key, meta);
        let usual = self.input.settings.fingerprint.length;
        let target = source.target(usual, self.rotated.link_of(&source.path));
        self.readers.place(id, target, Arc::clone(&source.key), reopen);
    }

    /// The path that the registry entry of a file names.
    pub(super) fn saved_path(&self, path: &Arc<Path>) -> Arc<Path> {
        Arc::clone(self.rotated.pinned(path).unwrap_or(path))
    }

    /// A key that no source has.
    fn former_key(&self, id: SourceId) -> String {
        let Some(source) = self.sources.get(id) else { return String::new() };
        let key = of_former(&source.key).unwrap_or(&source.key);
        let mut number = self.readers.look(id).map_or(0, |look| look.generation);
        loop {
            let former = format!("{key}{MARK}{number}");
            let taken = self.sources.is_former_key(&former)
                || !matches!(self.input.cursors.saved(&former), Ok(None) | Err(_));
            if !taken {
                return former;
            }
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests;
