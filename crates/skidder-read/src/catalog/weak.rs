//! Sources of which only a beginning is known, with which other files may begin as well.

use super::matching::PROOF_BYTES;
use super::{Candidate, Catalog};
use skidder_event::SourceId;

impl Catalog {
    /// Whether a source lost its place before more was known of it than a beginning that several files may share.
    pub(super) fn is_weak(&self, id: SourceId) -> bool {
        let Some(source) = self.files.sources.get(id).filter(|source| !source.placed) else {
            return false;
        };
        let offset = self.files.readers.look(id).map_or(0, |look| look.offset);
        source.fingerprint.len < self.files.input.settings.fingerprint.length
            && offset.saturating_sub(source.fingerprint.len.into()) < PROOF_BYTES
    }

    /// Whether a plain file has to be compared with the source of another log, in its place, before it may be what had its
    /// inode, of which only a beginning is known.
    pub(super) fn is_of_other_log(&self, candidate: &Candidate, id: SourceId) -> bool {
        !candidate.head.compressed && self.is_weak(id) && self.is_of_other_name(candidate, id)
    }

    /// Whether a file is rather another source that lost its place, or what the registry knows: of the one that had its
    /// inode only a beginning is known with which it begins as well.
    pub(super) fn has_better_match(&self, candidate: &Candidate, id: SourceId) -> bool {
        if !self.is_weak(id) {
            return false;
        }
        if !candidate.head.compressed {
            return self.is_of_other_name(candidate, id);
        }
        let sources_like = self.sources_like(candidate);
        let is_other = |other: &&SourceId| **other != id && !self.is_weak(**other);
        // What is in its place is compared first.
        let is_better = |other: &SourceId| {
            !self.files.is_displaced(*other) || self.is_plausible(candidate, *other)
        };
        !sources_like.contains(&id) || sources_like.iter().filter(is_other).any(is_better)
    }

    /// Whether the name of a file is that of another source of which more is known: one in its place, with which it is
    /// compared, or, if nothing was read of this one, one that lost it.
    fn is_of_other_name(&self, candidate: &Candidate, id: SourceId) -> bool {
        let Some(source) = self.files.sources.get(id) else { return false };
        let len = source.fingerprint.len;
        let is_unread = self.files.readers.look(id).is_some_and(|look| look.offset == 0);
        if self.is_one_log(&source.path, &candidate.path) {
            return false;
        }
        let mut sources_like = self.sources_like(candidate);
        sources_like
            .retain(|other| *other != id && (is_unread || !self.files.is_displaced(*other)));
        let is_named = |other: &SourceId| {
            self.files.sources.get(*other).is_some_and(|source| {
                source.fingerprint.len >= len && self.is_one_log(&source.path, &candidate.path)
            })
        };
        let is_better = |other: &SourceId| {
            !self.files.is_displaced(*other) || self.is_plausible(candidate, *other)
        };
        sources_like.iter().filter(|other| is_named(other)).any(is_better)
    }
}
