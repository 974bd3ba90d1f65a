//! Entries of the registry from an earlier run.

use super::adopt::{Adoptable, is_of_input};
use super::former::{may_be_former, of_former};
use super::inventory::Inventory;
use super::matching::{PROOF_BYTES, is_related};
use super::rotated::RotatedFiles;
use super::saved_prints::{SavedPrint, SavedPrints};
use super::{Candidate, MISSING_GRACE};
use crate::cursors::CursorsError;
use crate::fingerprint::Fingerprint;
use crate::scan::Found;
use skidder_event::Tail;
use skidder_registry::{Cursor, FileEntry};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// The registry's entries of an input, as an earlier run left them.
pub(super) struct SavedEntries {
    /// Entries whose fingerprints are shorter or longer than usual and that no source has yet.
    prints: SavedPrints,
    /// Whether there are entries of this input, or may be.
    has_any: bool,
    /// Whether there were, when the registry was read.
    had_any: bool,
    /// Entries under other keys that files may continue from.
    adoptable: Adoptable,
    /// The scan in which the registry was read.
    loaded: Option<u64>,
}

impl Default for SavedEntries {
    fn default() -> Self {
        let (prints, adoptable) = (SavedPrints::default(), Adoptable::default());
        Self { prints, has_any: true, had_any: true, adoptable, loaded: None }
    }
}

/// A saved entry that may be a file's.
pub(super) struct Claim {
    key: String,
    /// Its number among the entries with unusual fingerprints.
    pub(super) odd: Option<usize>,
    entry: FileEntry,
    pub(super) rank: Rank,
}

/// How well a saved entry fits a file; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// Other bytes are before the cursor.
    misfit: bool,
    /// It is the entry of another file; or little is known of the file, and it had another path: an inode may
    /// be reused.
    elsewhere: bool,
    /// Other files may begin with all known bytes.
    weak: bool,
    other_file: bool,
    /// Nothing was read that could prove anything, or it was not checked.
    unproved: bool,
    other_path: bool,
}

impl Rank {
    pub(super) const NONE: Self = Self {
        misfit: true,
        elsewhere: true,
        weak: true,
        other_file: true,
        unproved: true,
        other_path: true,
    };

    /// Whether an entry belongs to the file at its path: no other file can fit better.
    pub(super) fn is_in_place(self) -> bool {
        !self.misfit && !self.other_file && !self.other_path
    }
}

/// The registry's entry for a file.
pub(super) struct SavedState {
    pub(super) key: String,
    /// The fingerprint of the entry, if it is shorter or longer than usual.
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) cursor: Cursor,
}

/// A new generation of a file that does not have any more what was read.
fn restarted(candidate: &Candidate, cursor: Cursor) -> Cursor {
    tracing::info!(path = %candidate.path.display(), read = cursor.offset,
        size = candidate.found.metadata.size,
        "a file was truncated or rewritten while skidder was not running; reading it from the start");
    Cursor { offset: 0, generation: cursor.generation + 1, eof: false, tail: None }
}

impl SavedEntries {
    /// Reads the registry. Returns whether that worked.
    pub(super) fn load(&mut self, files: &Inventory, rotated: &mut RotatedFiles) -> bool {
        let settings = &files.input.settings;
        let usual = settings.fingerprint.length;
        let mut prints = Vec::new();
        let mut has_any = false;
        let mut forgotten = Vec::new();
        self.adoptable.clear();
        rotated.clear_saved();
        let adoptable = &mut self.adoptable;
        let loaded = files.input.cursors.for_each_saved(&mut |key, entry| {
            if settings.forget_at_start && is_of_input(settings, key) {
                forgotten.push(key.to_owned());
                return;
            }
            has_any |= is_of_input(settings, key);
            adoptable.consider(settings, key, entry);
            if settings.value_in(key).is_some() {
                rotated.consider(settings, entry);
            }
            let former = of_former(key);
            let len = entry.meta.fingerprint_len.or(former.map(|_| usual));
            if let Some(len) = len
                && settings.identity.is_content()
                && let Some(hex) = settings.value_in(former.unwrap_or(key))
                && let Some(fingerprint) = Fingerprint::from_hex(hex, len)
            {
                let path = Arc::clone(&entry.meta.source);
                prints.push(SavedPrint { fingerprint, key: key.to_owned(), path });
            }
        });
        if let Err(error) = &loaded {
            tracing::error!(%error, "what was saved of files cannot be had; they wait for the next scan");
            return false;
        }
        (self.has_any, self.had_any) = (has_any, has_any);
        self.prints = SavedPrints::new(prints, usual, settings.pin.directory.as_deref());
        self.loaded = Some(files.places.scan());
        if !forgotten.is_empty() {
            tracing::warn!(
                entries = forgotten.len(),
                "`clean_inactive: 0` with `legacy_clean_inactive`: all files are read from the start"
            );
            files.input.cursors.forget_saved(forgotten);
        }
        true
    }

    /// Whether the registry was read.
    pub(super) fn is_loaded(&self) -> bool {
        self.loaded.is_some()
    }

    /// Whether that was in this scan: the first one that processes files.
    pub(super) fn is_loaded_in(&self, scan: u64) -> bool {
        self.loaded == Some(scan)
    }

    /// Whether the registry may have an entry of a file of this input.
    pub(super) fn may_have_any(&self) -> bool {
        self.has_any
    }

    /// Whether the registry had an entry of a file of this input, or may have had one.
    pub(super) fn may_have_had_any(&self) -> bool {
        self.had_any
    }

    /// Entries may have been added since the registry was read.
    pub(super) fn expect_new(&mut self) {
        self.has_any = true;
    }

    /// The state that was saved under another key.
    pub(super) fn adopt(
        &mut self,
        files: &Inventory,
        candidate: &Candidate,
    ) -> Result<Option<SavedState>, CursorsError> {
        self.adoptable.adopt(files, candidate)
    }

    /// The start is over: entries under other keys stay where they are.
    pub(super) fn end_adoption(&mut self) {
        self.adoptable.clear();
    }

    /// Sorts files that begin with the same bytes and compete for one entry: those that prove it come first.
    pub(super) fn order_by_proof(&self, files: &Inventory, candidates: &mut Vec<Candidate>) {
        let mut heads: HashMap<[u8; 32], usize> = HashMap::new();
        let prints: Vec<Fingerprint> =
            candidates.iter().map(|candidate| candidate.head.print()).collect();
        for print in &prints {
            *heads.entry(print.hash).or_default() += 1;
        }
        let mut ranked = Vec::with_capacity(candidates.len());
        for (candidate, print) in std::mem::take(candidates).into_iter().zip(prints) {
            let alone = self.prints.is_empty() && heads.get(&print.hash) == Some(&1);
            let claim = if alone { Ok(None) } else { self.claim(files, &candidate, &print) };
            // An error is ignored here: the registry is read again when the file becomes a source.
            let rank = claim.ok().flatten().map_or(Rank::NONE, |claim| claim.rank);
            ranked.push((rank, candidate));
        }
        // A pin does not count as a name as long as the file has another.
        let inode = |candidate: &Candidate| {
            (candidate.found.metadata.device, candidate.found.metadata.inode)
        };
        let named: HashSet<(u64, u64)> = ranked
            .iter()
            .filter(|(_, candidate)| !files.followed.is_pin_path(&candidate.path))
            .map(|(_, candidate)| inode(candidate))
            .collect();
        let is_second = |candidate: &Candidate| {
            files.followed.is_pin_path(&candidate.path) && named.contains(&inode(candidate))
        };
        ranked.sort_by_cached_key(|(rank, candidate)| (is_second(candidate), *rank));
        candidates.extend(ranked.into_iter().map(|(_, candidate)| candidate));
    }

    /// The saved entry that fits a file best.
    pub(super) fn claim(
        &self,
        files: &Inventory,
        candidate: &Candidate,
        fingerprint: &Fingerprint,
    ) -> Result<Option<Claim>, CursorsError> {
        if !self.has_any {
            return Ok(None);
        }
        let mut best: Option<Claim> = None;
        let mut odd = self.saved_prints(files, candidate);
        odd.sort_by_key(|&at| self.prints.get(at).map(|saved| Reverse(saved.fingerprint.len)));
        let usual = files.input.settings.key(&fingerprint.hex());
        // If several files begin with the same bytes, more bytes are checked.
        let doubtful = !odd.is_empty();
        let odd = odd
            .into_iter()
            .filter_map(|at| self.prints.get(at).map(|saved| (saved.key.clone(), Some(at))));
        for (key, odd) in odd.collect::<Vec<_>>().into_iter().chain([(usual, None)]) {
            let Some(entry) = entry(files, &key)? else { continue };
            let rank = rank(files, candidate, &entry, doubtful);
            if let Some(saved) = odd.and_then(|at| self.prints.get(at))
                && of_former(&key).is_some()
            {
                let (path, print) = (&entry.meta.source, &saved.fingerprint);
                let (same_inode, offset) = (!rank.other_file, entry.cursor.offset);
                if rank.misfit || !may_be_former(&candidate.path, path, same_inode, offset, print) {
                    continue;
                }
            }
            // Without a name, a few bytes identify only the file itself.
            let of_pin = rank.other_file && !files.followed.is_pin_path(&candidate.path);
            if of_pin && odd.is_some_and(|at| self.prints.pinned().contains(&at)) {
                continue;
            }
            // Another file that begins like a short one does not take its entry.
            if rank.misfit
                && rank.other_file
                && let Some(saved) = odd.and_then(|at| self.prints.get(at))
                && saved.fingerprint.len
                    < fingerprint.len.min(files.input.settings.fingerprint.length)
            {
                continue;
            }
            if best.as_ref().is_none_or(|best| rank < best.rank) {
                best = Some(Claim { key, odd, entry, rank });
            }
        }
        Ok(best)
    }

    /// Whether the entry under a fingerprint belongs to this file.
    pub(super) fn is_claimed(
        &self,
        files: &Inventory,
        candidate: &Candidate,
        fingerprint: &Fingerprint,
    ) -> bool {
        let Some(claim) = self.claim(files, candidate, fingerprint).ok().flatten() else {
            return false;
        };
        if claim.odd.is_some() || claim.rank.misfit {
            return false;
        }
        !claim.rank.unproved
            || !claim.rank.other_file
            || files.probe.has_read_bytes(candidate, &claim.entry.cursor)
    }

    /// The path of a file when its entry was saved.
    pub(super) fn claimed_path(
        &self,
        files: &Inventory,
        candidate: &Candidate,
        fingerprint: &Fingerprint,
    ) -> Option<Arc<Path>> {
        let claim = self.claim(files, candidate, fingerprint).ok()??;
        (!claim.rank.misfit).then_some(claim.entry.meta.source)
    }

    /// The path that the registry has for the content of a pin.
    pub(super) fn saved_path_of(&self, files: &Inventory, path: &Path) -> Option<Arc<Path>> {
        let metadata = files.input.fs.symlink_metadata(path).ok()?;
        let found = Found { path: path.to_path_buf(), metadata };
        let head = files.head(&found).ok()??;
        let print = Fingerprint::of(&head.bytes);
        let path = Arc::from(path);
        let candidate = Candidate::new(found, path, head);
        self.claimed_path(files, &candidate, &print).filter(|of| !files.followed.is_pin_path(of))
    }

    /// Whether the registry knows a file by its content, and if so, whether that is certain.
    pub(super) fn claims(
        &self,
        files: &Inventory,
        candidate: &Candidate,
        fingerprint: &Fingerprint,
    ) -> Option<bool> {
        let claim =
            self.claim(files, candidate, fingerprint).ok()?.filter(|claim| !claim.rank.misfit)?;
        let usual = files.input.settings.fingerprint.length;
        let len = claim.entry.meta.fingerprint_len.map_or(usual, Fingerprint::bytes_of_saved);
        Some(len >= usual || claim.entry.cursor.offset >= PROOF_BYTES)
    }

    /// The length of the fingerprint of an entry that no source has, if the file has the bytes before its
    /// cursor.
    pub(super) fn proved_by_saved(&self, files: &Inventory, candidate: &Candidate) -> Option<u32> {
        let print = candidate.head.print();
        if !files.sources.holders(&print).is_empty() {
            return None;
        }
        let claim = self.claim(files, candidate, &print).ok()??;
        let is_proved = !claim.rank.misfit && !claim.rank.unproved;
        let len = claim.entry.meta.fingerprint_len.map(Fingerprint::bytes_of_saved);
        is_proved.then(|| len.unwrap_or(files.input.settings.fingerprint.length))
    }

    /// The saved state of a file: its key, its fingerprint if it is an unusual one, and its cursor if the
    /// file still has the bytes before it.
    pub(super) fn saved_state(
        &mut self,
        files: &Inventory,
        candidate: &mut Candidate,
        fingerprint: &Fingerprint,
    ) -> Result<Option<SavedState>, CursorsError> {
        let source = candidate.claim.take().filter(|_| *fingerprint == candidate.head.print());
        let claim = match source {
            Some(claim) => Some(*claim),
            None => self.claim(files, candidate, fingerprint)?,
        };
        let Some(claim) = claim else { return self.adoptable.adopt(files, candidate) };
        let Claim { key, odd, entry, rank } = claim;
        let fingerprint = odd.and_then(|at| self.prints.take(at)).map(|saved| saved.fingerprint);
        let mut cursor = entry.cursor;
        let short = entry
            .meta
            .fingerprint_len
            .is_some_and(|len| len < files.input.settings.fingerprint.length);
        if short && rank.other_file && !is_near(files, &entry.meta.source, &candidate.path) {
            // Another file with the same few bytes.
            let generation = cursor.generation + 1;
            let cursor = Cursor { generation, ..Cursor::default() };
            return Ok(Some(SavedState { key, fingerprint, cursor }));
        }
        if rank.misfit {
            cursor = restarted(candidate, cursor);
        }
        // A cursor at the verified end of a compressed file does not apply to a plain one. A file that is
        // compressed now and was not before must be read to its end once, and so must a file that was written
        // to since or shortly before: it may have grown.
        let rested = entry.updated.since(candidate.found.metadata.modified);
        cursor.eof &= candidate.head.compressed && !rank.other_file && rested > MISSING_GRACE;
        Ok(Some(SavedState { key, fingerprint, cursor }))
    }

    /// The saved entries with unusual fingerprints that fit.
    fn saved_prints(&self, files: &Inventory, candidate: &Candidate) -> Vec<usize> {
        if self.prints.is_empty() {
            return Vec::new();
        }
        let mut found = self.short_near(files, &candidate.path);
        found.retain(|&at| {
            let print = self.prints.get(at).map(|saved| saved.fingerprint);
            print.is_some_and(|print| files.probe.print_as(candidate, &print) == Some(print))
        });
        for like in self.prints.other_lengths() {
            if let Some(print) = files.probe.print_as(candidate, &like) {
                found.extend_from_slice(self.prints.others_like(&print));
            }
        }
        found.sort_unstable();
        found
    }

    /// The saved entries with fingerprints shorter than usual that may belong to a file at this path.
    fn short_near(&self, files: &Inventory, path: &Path) -> Vec<usize> {
        let is_pin = files.followed.is_pin_path(path);
        let mut near: Vec<usize> = if is_pin {
            self.prints.short().collect()
        } else {
            self.prints.short_near(path).collect()
        };
        near.extend_from_slice(self.prints.pinned());
        if !is_pin && let Some(link) = files.followed.shown(path) {
            let of_link = |at: &usize| self.prints.get(*at).is_some_and(|print| print.path == link);
            near.extend(self.prints.short_near(&link).filter(of_link));
        }
        near.sort_unstable();
        near.dedup();
        near
    }
}

/// The entry under a key, unless all entries are ignored.
pub(super) fn entry(files: &Inventory, key: &str) -> Result<Option<FileEntry>, CursorsError> {
    if files.input.settings.forget_at_start { Ok(None) } else { files.input.cursors.saved(key) }
}

fn rank(files: &Inventory, candidate: &Candidate, entry: &FileEntry, doubtful: bool) -> Rank {
    let meta = &candidate.found.metadata;
    let cursor = &entry.cursor;
    let tail = cursor.tail.map(|tail| Tail { len: tail.len, crc: tail.crc });
    let (fits, is_proved) = if candidate.head.compressed {
        let doubtful = doubtful || entry.meta.fingerprint_len.is_some();
        let fits = files.probe.compressed_fits(candidate, doubtful, cursor.offset, tail);
        (fits != Some(false), fits == Some(true))
    } else {
        (files.probe.tail_fits(&candidate.path, meta, cursor.offset, tail), cursor.offset > 0)
    };
    let other_file = (entry.meta.device, entry.meta.inode) != (meta.device, meta.inode);
    let other_path = entry.meta.source != candidate.path;
    let usual = files.input.settings.fingerprint.length;
    let len = entry.meta.fingerprint_len.map_or(usual, Fingerprint::bytes_of_saved);
    let weak = len < usual && cursor.offset.saturating_sub(len.into()) < PROOF_BYTES;
    let elsewhere = other_file || (weak && other_path);
    Rank { misfit: !fits, elsewhere, weak, other_file, unproved: !is_proved, other_path }
}

/// The cursor of an entry that belongs to a file, or that of a new generation if the file does not have any
/// more what was read.
pub(super) fn proven_cursor(files: &Inventory, candidate: &Candidate, entry: &FileEntry) -> Cursor {
    let mut cursor = entry.cursor;
    let rank = rank(files, candidate, entry, false);
    if rank.misfit {
        cursor = restarted(candidate, cursor);
    }
    let rested = entry.updated.since(candidate.found.metadata.modified);
    cursor.eof &= candidate.head.compressed && !rank.other_file && rested > MISSING_GRACE;
    cursor
}

/// Whether the entry of one path may belong to the file at another: the same name except for what rotation
/// changes, a file that was rotated away from a link, or a pin, which may have had any name.
fn is_near(files: &Inventory, saved: &Path, path: &Path) -> bool {
    saved == path
        || is_related(saved, path)
        || files.followed.is_pin_path(path)
        || files.followed.shown(path).is_some_and(|link| *link == *saved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_before_the_cursor_count_more_than_the_file_and_that_more_than_the_path() {
        let best = Rank {
            misfit: false,
            elsewhere: false,
            weak: false,
            other_file: false,
            unproved: false,
            other_path: false,
        };
        let renamed = Rank { other_path: true, ..best };
        let unread = Rank { unproved: true, ..best };
        let copied = Rank { other_file: true, elsewhere: true, ..best };
        let rewritten = Rank { misfit: true, ..best };
        let ranks = [best, renamed, unread, copied, rewritten, Rank::NONE];
        assert!(ranks.is_sorted() && best.is_in_place() && unread.is_in_place());
        assert!(![renamed, copied, rewritten].iter().any(|rank| rank.is_in_place()));
    }
}
