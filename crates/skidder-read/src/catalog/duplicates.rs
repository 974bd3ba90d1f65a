//! Files that begin like a source: duplicates are held back, others become sources of their own.

use super::matching::LastDecision;
use super::{Candidate, Catalog, Content, Duplicate, FirstDifference};
use crate::Now;
use crate::compare::{Longer, Verdict};
use crate::fingerprint::Head;
use crate::scan::Found;
use skidder_event::SourceId;
use skidder_os::sabotage::{self, Sabotage};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Whether an error is what each rotation leads to: one of two files is at another path since the scan, which the next
/// scan learns.
fn is_of_a_move(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::Interrupted)
}

impl Catalog {
    /// Duplicates of displaced sources: a source may continue in one of them.
    pub(super) fn reopen_duplicates(&mut self, now: Now) -> Vec<Candidate> {
        if !self.files.places.may_have_duplicates()
            || self.pass.is_reaction
            || sabotage::is_on(Sabotage::TwinsForgotten)
        {
            return Vec::new();
        }
        let displaced = |of| self.files.sources.is_displaced(of);
        let duplicates = self.files.places.duplicates();
        let mut fresh: Vec<Found> = duplicates
            .filter(|(_, _, duplicate)| displaced(duplicate.of))
            .map(|(path, place, _)| Found { path: path.to_path_buf(), metadata: place.metadata() })
            .collect();
        fresh.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let fresh = self.vacate(fresh);
        self.read_heads(fresh, now)
    }

    /// Last pass: a duplicate of a file that is elsewhere, a file that the registry knows, or a new one.
    pub(super) fn match_others(&mut self, candidate: Candidate, now: Now, budget: &mut u64) {
        match self.matcher().last(&candidate) {
            LastDecision::Decided(decision) => self.apply_decision(candidate, decision, None, now),
            LastDecision::Compare(rivals) => {
                self.compare_next(candidate, rivals, None, now, budget);
            }
        }
    }

    /// Compares a file with the last of `rivals`, and with the others if they differ.
    fn compare_next(
        &mut self,
        candidate: Candidate,
        mut rivals: Vec<SourceId>,
        difference: FirstDifference,
        now: Now,
        budget: &mut u64,
    ) {
        let Some(of) = rivals.pop() else {
            let decision = self.matcher().after_comparisons(&candidate);
            self.apply_decision(candidate, decision, difference, now);
            return;
        };
        if *budget == 0 {
            // Each comparison has two files open; this one begins with a later scan.
            self.put_place(candidate.path, &candidate.found, Content::Nothing, true);
            self.pass.postponed += 1;
            return;
        }
        let Some(source) = self.files.sources.get(of) else {
            let gone = io::ErrorKind::NotFound.into();
            return self.cannot_compare(candidate.path, &candidate.found, &gone);
        };
        match self.files.probe.compare(&candidate, source) {
            Ok(comparison) => {
                let comparison = Some(comparison);
                let duplicate = Duplicate { comparison, rivals, difference, ..Duplicate::of(of) };
                self.continue_comparison(
                    candidate.path,
                    candidate.found,
                    candidate.head,
                    duplicate,
                    now,
                    budget,
                );
            }
            Err(error) => self.cannot_compare(candidate.path, &candidate.found, &error),
        }
    }

    fn cannot_compare(&mut self, path: Arc<Path>, found: &Found, error: &io::Error) {
        let path_shown = path.display();
        if is_of_a_move(error) {
            tracing::debug!(path = %path_shown, %error,
                "a file was moved while it was to be compared with another that begins alike; trying again");
        } else {
            tracing::warn!(path = %path_shown, %error,
                "a file cannot be compared with another that begins alike; trying again");
        }
        self.put_place(path, found, Content::Nothing, true);
    }

    /// Continues a comparison and acts on its outcome.
    pub(super) fn continue_comparison(
        &mut self,
        path: Arc<Path>,
        found: Found,
        head: Head,
        mut duplicate: Duplicate,
        now: Now,
        budget: &mut u64,
    ) {
        let Some(mut comparison) = duplicate.comparison.take() else {
            self.hold_back(path, &found, duplicate);
            return;
        };
        let difference = match self.files.probe.step(&mut comparison, budget) {
            Ok(Verdict::Undecided) => {
                duplicate.comparison = Some(comparison);
                self.hold_back(path, &found, duplicate);
                return;
            }
            Ok(Verdict::Same) => {
                self.name_pin(duplicate.of, &path);
                self.hold_back(path, &found, duplicate);
                return;
            }
            // Shorter than the other: it is just being copied or compressed.
            Ok(Verdict::Differ { longer: Some(Longer::Other), .. }) => {
                self.hold_back(path, &found, duplicate);
                return;
            }
            Ok(Verdict::Differ { at, longer }) => (at, longer),
            Err(error) => {
                self.cannot_compare(path, &found, &error);
                return;
            }
        };
        let is_cut = difference.1 == Some(Longer::One) && comparison.is_other_cut();
        drop(comparison);
        let candidate = Candidate::new(found, path, head);
        if is_cut && self.matcher().is_compressed_to(&candidate, duplicate.of) {
            self.reclaim(candidate, duplicate.of);
            return;
        }
        if self.matcher().has_changed(duplicate.of, difference.0) {
            // Both had the same beginning when this scan listed them, so the other was rewritten since. This
            // file may be the copy of what it was; the next scan decides.
            self.files.recheck_source(duplicate.of);
            self.put_place(candidate.path, &candidate.found, Content::Nothing, true);
            self.pass.postponed += 1;
            return;
        }
        let difference = match duplicate.difference {
            Some(before) if before.0 >= difference.0 => before,
            _ => difference,
        };
        self.compare_next(candidate, duplicate.rivals, Some(difference), now, budget);
    }

    /// A source continues in the plain file that its compressed file is just being made from. The plain file
    /// has all bytes of the compressed one: a reaction between two scans may have seen the compressed file
    /// first.
    fn reclaim(&mut self, candidate: Candidate, id: SourceId) {
        let compressed = self.files.sources.get(id).map(|source| Arc::clone(&source.path));
        self.keep_source(candidate, id, true);
        if let Some(path) = compressed {
            // It is a duplicate as soon as it is complete.
            self.files.places.make_duplicate(&path, Duplicate::silent(id));
        }
    }

    /// Continues the comparisons that one scan did not decide.
    pub(super) fn resume_comparisons(&mut self, now: Now, budget: &mut u64) {
        if !self.files.places.may_have_duplicates() || self.pass.is_reaction {
            return;
        }
        let duplicates = self.files.places.duplicates();
        let mut undecided: Vec<Arc<Path>> = duplicates
            .filter(|(_, _, duplicate)| duplicate.comparison.is_some())
            .map(|(path, _, _)| Arc::clone(path))
            .collect();
        undecided.sort_unstable();
        for path in undecided {
            if *budget == 0 {
                return;
            }
            let Some((path, place)) = self.files.places.remove(&path) else { continue };
            let metadata = place.metadata();
            let found = Found { path: path.to_path_buf(), metadata };
            let Content::Duplicate(duplicate) = place.content else { continue };
            match self.files.head(&found) {
                Ok(Some(head)) => {
                    self.continue_comparison(path, found, head, *duplicate, now, budget);
                }
                _ => self.put_place(path, &found, Content::Nothing, true),
            }
        }
    }

    pub(super) fn hold_back(&mut self, path: Arc<Path>, found: &Found, mut duplicate: Duplicate) {
        if duplicate.comparison.is_none() && !duplicate.logged {
            duplicate.logged = true;
            if let Some(source) = self.files.sources.get(duplicate.of) {
                tracing::info!(path = %path.display(), same_as = %source.path.display(),
                    "a file has the same content as another and is not read twice");
            }
        }
        self.put_place(path, found, Content::Duplicate(Box::new(duplicate)), false);
    }
}
