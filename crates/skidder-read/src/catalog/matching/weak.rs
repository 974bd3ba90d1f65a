//! Weak sources: only a beginning is known of them, and other files may begin with the same bytes.

use super::{Facts, Matcher, PROOF_BYTES};
use crate::catalog::Candidate;
use skidder_event::SourceId;

impl<F: Facts> Matcher<F> {
    /// Whether a source lost its place before more was known of it than a beginning that several files may share.
    pub(super) fn is_weak(&self, id: SourceId) -> bool {
        let Some(source) = self.sources().get(id).filter(|source| !source.placed) else {
            return false;
        };
        let offset = self.0.reader(id).map_or(0, |reader| reader.offset);
        source.fingerprint.len < self.0.fingerprints().length
            && offset.saturating_sub(source.fingerprint.len.into()) < PROOF_BYTES
    }

    /// Whether a plain file must be compared with the source of another log, in its place, before it may be the weak source
    /// that had its inode.
    pub(super) fn is_of_other_log(&self, candidate: &Candidate, id: SourceId) -> bool {
        !candidate.head.compressed && self.is_weak(id) && self.is_of_other_name(candidate, id)
    }

    /// Whether a file is rather another source that lost its place, or what the registry knows, than the weak source
    /// that had its inode.
    pub(super) fn has_better_match(&self, candidate: &Candidate, id: SourceId) -> bool {
        if !self.is_weak(id) {
            return false;
        }
        if !candidate.head.compressed {
            return self.is_of_other_name(candidate, id);
        }
        let alike = self.sources_like(candidate);
        let is_other = |other: &&SourceId| **other != id && !self.is_weak(**other);
        !alike.contains(&id)
            || alike.iter().filter(is_other).any(|other| self.is_better(candidate, *other))
    }

    /// Whether the name of a file is that of another source of which more is known: one in its place, with which it is
    /// compared, or, if nothing was read of this one, one that lost its place.
    fn is_of_other_name(&self, candidate: &Candidate, id: SourceId) -> bool {
        let Some(source) = self.sources().get(id) else { return false };
        let len = source.fingerprint.len;
        let is_unread = self.0.reader(id).is_some_and(|reader| reader.offset == 0);
        if self.is_one_log(&source.path, &candidate.path) {
            return false;
        }
        let mut alike = self.sources_like(candidate);
        alike.retain(|other| *other != id && (is_unread || !self.is_displaced(*other)));
        let is_named = |other: &SourceId| {
            self.sources().get(*other).is_some_and(|source| {
                source.fingerprint.len >= len && self.is_one_log(&source.path, &candidate.path)
            })
        };
        let mut named = alike.iter().filter(|other| is_named(other));
        named.any(|other| self.is_better(candidate, *other))
    }

    /// Whether a source is preferred to a weak one: it is in its place, so that it is compared first, or plausible.
    fn is_better(&self, candidate: &Candidate, other: SourceId) -> bool {
        !self.is_displaced(other) || self.is_plausible(candidate, other)
    }
}
