//! The passes of matching, and how very many files go through them in portions, so that not all of their
//! beginnings are in memory at once.
//!
//! The passes go from the best evidence to the weakest, over all files. A portion may go through all passes
//! alone if no file of a later portion could have better evidence. So files that are in their places are
//! matched first, in any order. If no source has lost its place then, the rest are duplicates, files that the
//! registry knows and new files. Of these, the files with the best possible match in the registry go first,
//! as they would among all files.

use super::candidate::ChangedFile;
use super::matching::{CatalogFacts, Decision, Matcher};
use super::rotated::LinkScan;
use super::saved::Rank;
use super::{COMPARE_BYTES_PER_SCAN, Candidate, Catalog, RESERVE_FILES_MIN};
use crate::Now;

/// Bytes of beginnings that are in memory at once while no source has lost its place.
pub(crate) const HEADS_BYTES_MAX: usize = 8 << 20;

/// Files in a portion if the portions do not depend on each other. Readers can start with them while the next
/// portion is processed, and the beginnings are still in the cache when they are matched.
const PORTION_MAX: usize = 64;

impl Catalog {
    /// Number of files whose beginnings are in memory at once.
    fn portion(&self) -> usize {
        let settings = &self.files.input.settings;
        (settings.heads_bytes_max / (settings.fingerprint.length as usize).max(1)).max(1)
    }

    /// Matches changed files by their content.
    pub(super) fn match_by_content(&mut self, fresh: Vec<ChangedFile>, now: Now) {
        let portion = self.portion();
        if fresh.len() <= portion {
            let candidates = self.read_heads(fresh, now);
            return self.match_together(candidates, now);
        }
        let fresh = self.match_in_place(fresh, portion, now);
        if fresh.len() <= portion || !self.is_divisible() {
            let candidates = self.read_heads(fresh, now);
            return self.match_together(candidates, now);
        }
        self.match_apart(fresh, portion, now);
    }

    /// Matches changed files by their content, all of them in each pass.
    fn match_together(&mut self, candidates: Vec<Candidate>, now: Now) {
        let mut candidates = self.match_inodes(candidates, now);
        let (files, saved, is_reaction) = (&mut self.files, &self.saved, self.pass.is_reaction);
        let mut scan = LinkScan { files, saved, now, is_reaction };
        let rotated = self.rotated.search_late(&mut scan, &candidates);
        let rotated = self.vacate(rotated);
        let rotated = self.read_heads(rotated, now);
        candidates.extend(self.match_inodes(rotated, now));
        let awakened = self.reopen_duplicates(now);
        candidates.extend(self.match_inodes(awakened, now));
        // The check of a plain copy is final; a compressed one may still be growing.
        candidates.sort_by_key(|candidate| candidate.head.compressed);
        // These passes are about displaced sources. At a start there are none, and very many files.
        if candidates.len() < RESERVE_FILES_MIN || self.files.sources.has_displaced() {
            candidates = self.run_pass(candidates, now, |matcher, file| matcher.moved(file));
            candidates = self.run_pass(candidates, now, |matcher, file| matcher.rewritten(file));
        }
        self.saved.order_by_proof(&self.files, &mut candidates);
        let mut budget = COMPARE_BYTES_PER_SCAN;
        for candidate in candidates {
            self.match_others(candidate, now, &mut budget);
        }
        self.resume_comparisons(now, &mut budget);
    }

    /// Takes files through one pass. Returns those that it did not decide about.
    fn run_pass(
        &mut self,
        candidates: Vec<Candidate>,
        now: Now,
        decide: impl Fn(&Matcher<CatalogFacts<'_>>, &Candidate) -> Option<Decision>,
    ) -> Vec<Candidate> {
        let mut left = Vec::new();
        for candidate in candidates {
            match decide(&self.matcher(), &candidate) {
                Some(decision) => self.apply_decision(candidate, decision, None, now),
                None => left.push(candidate),
            }
        }
        left
    }

    /// Files with the inode of a source. Of several names, the name of the source comes first.
    fn match_inodes(&mut self, candidates: Vec<Candidate>, now: Now) -> Vec<Candidate> {
        let elsewhere = self.run_pass(candidates, now, |matcher, file| matcher.in_place(file));
        self.run_pass(elsewhere, now, |matcher, file| matcher.renamed(file))
    }

    /// Matches changed files by their names. Files that keep their path come first: of several links to a
    /// file, the known one stays.
    pub(super) fn match_names(&mut self, mut fresh: Vec<ChangedFile>, now: Now) {
        fresh.sort_by_key(|fresh| !fresh.was_source());
        let mut fresh = fresh.into_iter();
        while fresh.len() > 0 {
            let candidates = self.read_heads(fresh.by_ref().take(self.portion()), now);
            self.match_by_name(candidates, now);
        }
    }

    /// Matches files that are in their places: the same inode at the same path. Returns the others.
    fn match_in_place(
        &mut self,
        fresh: Vec<ChangedFile>,
        portion: usize,
        now: Now,
    ) -> Vec<ChangedFile> {
        let (mut here, mut left) = (Vec::new(), Vec::with_capacity(fresh.len()));
        for fresh in fresh {
            if !self.may_be_in_place(&fresh) {
                left.push(fresh);
                continue;
            }
            here.push(fresh);
            if here.len() == portion {
                self.match_portion_in_place(std::mem::take(&mut here), &mut left, now);
            }
        }
        self.match_portion_in_place(here, &mut left, now);
        left
    }

    fn match_portion_in_place(
        &mut self,
        fresh: Vec<ChangedFile>,
        left: &mut Vec<ChangedFile>,
        now: Now,
    ) {
        let candidates = self.read_heads(fresh, now);
        let elsewhere = self.run_pass(candidates, now, |matcher, file| matcher.in_place(file));
        left.extend(elsewhere.into_iter().map(ChangedFile::from));
    }

    fn may_be_in_place(&self, fresh: &ChangedFile) -> bool {
        let meta = &fresh.found.metadata;
        let ids = self.files.sources.index().with_inode((meta.device, meta.inode));
        ids.iter().any(|id| {
            self.files
                .sources
                .get(*id)
                .is_some_and(|source| !source.placed && source.path == fresh.path)
        })
    }

    /// Whether no pass looks beyond one file, the sources in their places, and the registry.
    fn is_divisible(&self) -> bool {
        !self.files.follows_rotated() && !self.files.sources.has_displaced()
    }

    /// Portion by portion: first the files that no other file can have a better match than, then the others.
    fn match_apart(&mut self, fresh: Vec<ChangedFile>, portion: usize, now: Now) {
        let mut budget = COMPARE_BYTES_PER_SCAN;
        let mut later = Vec::new();
        let portion = portion.min(PORTION_MAX);
        let mut fresh = fresh.into_iter();
        while fresh.len() > 0 {
            for mut candidate in self.read_heads(fresh.by_ref().take(portion), now) {
                let rank = self.rank_alone(&mut candidate);
                let compressed = candidate.head.compressed;
                let is_first =
                    if self.saved.may_have_any() { rank.is_in_place() } else { !compressed };
                if is_first {
                    self.match_others(candidate, now, &mut budget);
                } else {
                    later.push(((rank, compressed), ChangedFile::from(candidate)));
                }
            }
        }
        later.sort_by_key(|(order, _)| *order);
        let mut later = later.into_iter().map(|(_, fresh)| fresh);
        while later.len() > 0 {
            for candidate in self.read_heads(later.by_ref().take(portion), now) {
                self.match_others(candidate, now, &mut budget);
            }
        }
        self.resume_comparisons(now, &mut budget);
    }

    fn rank_alone(&self, candidate: &mut Candidate) -> Rank {
        if !self.saved.may_have_any() {
            return Rank::NONE;
        }
        let print = candidate.head.print();
        // An error is ignored here: the registry is read again when the file becomes a source.
        let claim = self.saved.claim(&self.files, candidate, &print).ok().flatten();
        let rank = claim.as_ref().map_or(Rank::NONE, |claim| claim.rank);
        // The number of an unusual entry may change before it is used.
        candidate.claim = claim.filter(|claim| claim.odd.is_none()).map(Box::new);
        rank
    }
}
