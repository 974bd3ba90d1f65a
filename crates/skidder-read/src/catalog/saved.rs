//! What the registry knows from an earlier run.

use super::adopt::is_of_input;
use super::former::{may_be_former, of_former};
use super::matching::{PROOF_BYTES, is_related};
use super::saved_prints::{SavedPrint, SavedPrints};
use super::{Candidate, Catalog, Holds, MISSING_GRACE};
use crate::compare::{PartCrc, Side, crc_of, fingerprint_of};
use crate::cursors::CursorsError;
use crate::fingerprint::Fingerprint;
use crate::scan::Found;
use skidder_event::Tail;
use skidder_os::{Monotonic, open_same};
use skidder_registry::{Cursor, FileEntry as Entry};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Bytes read at once for an unusual fingerprint.
const PRINT_SCRATCH_BYTES: usize = 16 << 10;

/// How far a compressed file that begins as another one is decoded to see whether it is the one of an entry: some tenths of
/// a second. Beyond that its lines come again.
const READ_BYTES_DECODED_MAX: u64 = 32 << 20;

/// A saved entry that may be a file's.
pub(super) struct Claim {
    key: String,
    /// Its place among the entries with unusual fingerprints.
    pub(super) odd: Option<usize>,
    entry: Entry,
    pub(super) rank: Rank,
}

/// How well a saved entry fits a file; the smaller the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// The bytes before the cursor are others.
    misfit: bool,
    /// It is of another file; if little is known of that, also if it had another path: an inode is used again.
    elsewhere: bool,
    /// Other files may begin with all that is known.
    weak: bool,
    other_file: bool,
    /// Nothing was read that could prove anything, or it was not looked at.
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

    /// Whether an entry is of the very file at its path: no other file has a better claim to it.
    pub(super) fn is_in_place(self) -> bool {
        !self.misfit && !self.other_file && !self.other_path
    }
}

/// What the registry says of a file.
pub(super) struct SavedState {
    pub(super) key: String,
    /// Of the entry, if it is shorter or longer than usual.
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) cursor: Cursor,
}

/// A new generation of a file that does not hold any more what was read.
fn restarted(candidate: &Candidate, cursor: Cursor) -> Cursor {
    tracing::info!(path = %candidate.path.display(), read = cursor.offset,
        size = candidate.found.metadata.size,
        "a file was truncated or rewritten while skidder was not running; reading it from the start");
    Cursor { offset: 0, generation: cursor.generation + 1, eof: false, tail: None }
}

impl Catalog {
    /// Remembers saved entries that cannot be found by the usual key.
    pub(super) fn load_saved(&mut self, now: Monotonic) {
        let settings = &self.input.settings;
        let usual = settings.fingerprint.length;
        let mut saved = Vec::new();
        let mut has_saved = false;
        let mut forgotten = Vec::new();
        self.adoptable.clear();
        self.beside.clear_saved();
        let (adoptable, beside) = (&mut self.adoptable, &mut self.beside);
        let loaded = self.input.cursors.for_each_saved(&mut |key, entry| {
            if settings.forget_at_start && is_of_input(settings, key) {
                forgotten.push(key.to_owned());
                return;
            }
            has_saved |= is_of_input(settings, key);
            adoptable.consider(settings, key, entry);
            if settings.value_in(key).is_some() {
                beside.consider(settings, entry);
            }
            let former = of_former(key);
            let len = entry.meta.fingerprint_len.or(former.map(|_| usual));
            if let Some(len) = len
                && settings.identity.is_content()
                && let Some(hex) = settings.value_in(former.unwrap_or(key))
                && let Some(fingerprint) = Fingerprint::from_hex(hex, len)
            {
                let path = Arc::clone(&entry.meta.source);
                saved.push(SavedPrint { fingerprint, key: key.to_owned(), path });
            }
        });
        if let Err(error) = &loaded {
            tracing::error!(%error, "what was saved of files cannot be had; they wait for the next scan");
            return;
        }
        self.has_saved = has_saved;
        self.saved = SavedPrints::new(saved, usual, settings.pin.directory.as_deref());
        self.saved.set_loaded(self.scans);
        if !forgotten.is_empty() {
            tracing::warn!(
                entries = forgotten.len(),
                "`clean_inactive: 0` with `legacy_clean_inactive`: all files are read from the start"
            );
            self.input.cursors.forget_saved(forgotten);
        }
        self.load_pins(now);
    }

    /// Without what was saved nothing can be told of files: they are looked at again. Gives none of them.
    pub(super) fn put_off(&mut self, fresh: Vec<Found>) -> Vec<Found> {
        self.postponed += fresh.len();
        for found in fresh {
            self.put_place(Arc::from(found.path.as_path()), &found, Holds::Nothing, true);
        }
        Vec::new()
    }

    /// What is saved under a key, unless everything saved is to be forgotten.
    pub(super) fn entry(&self, key: &str) -> Result<Option<Entry>, CursorsError> {
        if self.input.settings.forget_at_start { Ok(None) } else { self.input.cursors.saved(key) }
    }

    /// Files that begin alike compete for what the registry knows of one of them: those that prove it come
    /// first.
    pub(super) fn order_by_proof(&mut self, candidates: &mut Vec<Candidate>) {
        let mut heads: HashMap<[u8; 32], usize> = HashMap::new();
        let prints: Vec<Fingerprint> =
            candidates.iter().map(|candidate| candidate.head.print()).collect();
        for print in &prints {
            *heads.entry(print.hash).or_default() += 1;
        }
        let mut ranked = Vec::with_capacity(candidates.len());
        for (candidate, print) in std::mem::take(candidates).into_iter().zip(prints) {
            let alone = self.saved.is_empty() && heads.get(&print.hash) == Some(&1);
            let claim = if alone { Ok(None) } else { self.claim(&candidate, &print) };
            // What the registry does not tell now is asked again when the file begins.
            let rank = claim.ok().flatten().map_or(Rank::NONE, |claim| claim.rank);
            ranked.push((rank, candidate));
        }
        // A name in the directory of the pins is no name as long as the file has another.
        let inode = |candidate: &Candidate| {
            (candidate.found.metadata.device, candidate.found.metadata.inode)
        };
        let named: HashSet<(u64, u64)> = ranked
            .iter()
            .filter(|(_, candidate)| !self.is_pin(&candidate.path))
            .map(|(_, candidate)| inode(candidate))
            .collect();
        let is_second = |candidate: &Candidate| {
            self.is_pin(&candidate.path) && named.contains(&inode(candidate))
        };
        ranked.sort_by_cached_key(|(rank, candidate)| (is_second(candidate), *rank));
        candidates.extend(ranked.into_iter().map(|(_, candidate)| candidate));
    }

    /// The saved entry that fits a file best.
    pub(super) fn claim(
        &mut self,
        candidate: &Candidate,
        fingerprint: &Fingerprint,
    ) -> Result<Option<Claim>, CursorsError> {
        if !self.has_saved {
            return Ok(None);
        }
        let mut best: Option<Claim> = None;
        let mut odd = self.saved_prints(candidate);
        odd.sort_by_key(|&at| self.saved.get(at).map(|saved| Reverse(saved.fingerprint.len)));
        let usual = self.input.settings.key(&fingerprint.hex());
        // What begins as several files did is looked into.
        let doubtful = !odd.is_empty();
        let odd = odd
            .into_iter()
            .filter_map(|at| self.saved.get(at).map(|saved| (saved.key.clone(), Some(at))));
        for (key, odd) in odd.collect::<Vec<_>>().into_iter().chain([(usual, None)]) {
            let Some(entry) = self.entry(&key)? else { continue };
            let rank = self.rank(candidate, &entry, doubtful);
            if let Some(saved) = odd.and_then(|at| self.saved.get(at))
                && of_former(&key).is_some()
            {
                let (path, print) = (&entry.meta.source, &saved.fingerprint);
                let (same_inode, offset) = (!rank.other_file, entry.cursor.offset);
                if rank.misfit || !may_be_former(&candidate.path, path, same_inode, offset, print) {
                    continue;
                }
            }
            // Without a name, only the file itself can be known by a few bytes.
            let of_pin = rank.other_file && !self.is_pin(&candidate.path);
            if of_pin && odd.is_some_and(|at| self.saved.pinned().contains(&at)) {
                continue;
            }
            // What begins as a short file did, and is another one, does not take its entry.
            if rank.misfit
                && rank.other_file
                && let Some(saved) = odd.and_then(|at| self.saved.get(at))
                && saved.fingerprint.len
                    < fingerprint.len.min(self.input.settings.fingerprint.length)
            {
                continue;
            }
            if best.as_ref().is_none_or(|best| rank < best.rank) {
                best = Some(Claim { key, odd, entry, rank });
            }
        }
        Ok(best)
    }

    /// Whether what is saved under a fingerprint is this file's.
    pub(super) fn is_claimed(&mut self, candidate: &Candidate, fingerprint: &Fingerprint) -> bool {
        let Some(claim) = self.claim(candidate, fingerprint).ok().flatten() else { return false };
        if claim.odd.is_some() || claim.rank.misfit {
            return false;
        }
        !claim.rank.unproved
            || !claim.rank.other_file
            || self.has_read_bytes(candidate, &claim.entry.cursor)
    }

    /// Whether a compressed file is seen to have the bytes before a cursor. It begins as another file does, so that its
    /// beginning does not show that it is the file of the cursor.
    fn has_read_bytes(&self, candidate: &Candidate, cursor: &Cursor) -> bool {
        let Some(tail) = cursor.tail.filter(|tail| tail.len > 0) else { return false };
        let Some(start) = cursor.offset.checked_sub(tail.len.into()) else { return false };
        if !candidate.head.compressed || cursor.offset > READ_BYTES_DECODED_MAX {
            return false;
        }
        let side = self.side_of(candidate);
        let crc =
            side.and_then(|side| crc_of(side, start, tail.len, &mut vec![0; PRINT_SCRATCH_BYTES]));
        matches!(crc, Ok(PartCrc::Is(crc)) if crc == tail.crc)
    }

    /// Where a file was when its entry was saved.
    pub(super) fn claimed_path(
        &mut self,
        candidate: &Candidate,
        fingerprint: &Fingerprint,
    ) -> Option<Arc<Path>> {
        let claim = self.claim(candidate, fingerprint).ok()??;
        (!claim.rank.misfit).then_some(claim.entry.meta.source)
    }

    /// Whether the registry knows a file by its content; if so, whether that is certain.
    pub(super) fn claims(
        &mut self,
        candidate: &Candidate,
        fingerprint: &Fingerprint,
    ) -> Option<bool> {
        let claim = self.claim(candidate, fingerprint).ok()?.filter(|claim| !claim.rank.misfit)?;
        let usual = self.input.settings.fingerprint.length;
        let len = claim.entry.meta.fingerprint_len.map_or(usual, Fingerprint::bytes_of_saved);
        Some(len >= usual || claim.entry.cursor.offset >= PROOF_BYTES)
    }

    /// The length of the fingerprint under which the registry knows a file that no source has, and which has the bytes
    /// before the cursor.
    pub(super) fn proved_by_saved(&mut self, candidate: &Candidate) -> Option<u32> {
        let print = candidate.head.print();
        if !self.holders(&print).is_empty() {
            return None;
        }
        let claim = self.claim(candidate, &print).ok()??;
        let is_proved = !claim.rank.misfit && !claim.rank.unproved;
        let len = claim.entry.meta.fingerprint_len.map(Fingerprint::bytes_of_saved);
        is_proved.then(|| len.unwrap_or(self.input.settings.fingerprint.length))
    }

    fn rank(&self, candidate: &Candidate, entry: &Entry, doubtful: bool) -> Rank {
        let meta = &candidate.found.metadata;
        let cursor = &entry.cursor;
        let tail = cursor.tail.map(|tail| Tail { len: tail.len, crc: tail.crc });
        let (fits, is_proved) = if candidate.head.compressed {
            let doubtful = doubtful || entry.meta.fingerprint_len.is_some();
            let fits = self.compressed_fits(candidate, doubtful, cursor.offset, tail);
            (fits != Some(false), fits == Some(true))
        } else {
            (self.tail_fits(&candidate.path, meta, cursor.offset, tail), cursor.offset > 0)
        };
        let other_file = (entry.meta.device, entry.meta.inode) != (meta.device, meta.inode);
        let other_path = entry.meta.source != candidate.path;
        let usual = self.input.settings.fingerprint.length;
        let len = entry.meta.fingerprint_len.map_or(usual, Fingerprint::bytes_of_saved);
        let weak = len < usual && cursor.offset.saturating_sub(len.into()) < PROOF_BYTES;
        let elsewhere = other_file || (weak && other_path);
        Rank { misfit: !fits, elsewhere, weak, other_file, unproved: !is_proved, other_path }
    }

    /// What was saved of a file: its key, its fingerprint if that is an unusual one, and its cursor if it
    /// still proves right.
    pub(super) fn saved_state(
        &mut self,
        candidate: &mut Candidate,
        fingerprint: &Fingerprint,
    ) -> Result<Option<SavedState>, CursorsError> {
        let known = candidate.claim.take().filter(|_| *fingerprint == candidate.head.print());
        let claim = match known {
            Some(claim) => Some(*claim),
            None => self.claim(candidate, fingerprint)?,
        };
        let Some(claim) = claim else { return self.adopt(candidate) };
        let Claim { key, odd, entry, rank } = claim;
        let fingerprint = odd.and_then(|at| self.saved.take(at)).map(|saved| saved.fingerprint);
        let mut cursor = entry.cursor;
        let short = entry
            .meta
            .fingerprint_len
            .is_some_and(|len| len < self.input.settings.fingerprint.length);
        if short && rank.other_file && !self.is_near(&entry.meta.source, &candidate.path) {
            // Another file with the same few bytes.
            let generation = cursor.generation + 1;
            let cursor = Cursor { generation, ..Cursor::default() };
            return Ok(Some(SavedState { key, fingerprint, cursor }));
        }
        if rank.misfit {
            cursor = restarted(candidate, cursor);
        }
        // A cursor at the verified end of a compressed file says nothing about a plain one, and a file
        // that was found compressed only now must be looked at to its end once.
        // So must one that was written to since, or shortly before: it may have grown.
        let rested = entry.updated.since(candidate.found.metadata.modified);
        cursor.eof &= candidate.head.compressed && !rank.other_file && rested > MISSING_GRACE;
        Ok(Some(SavedState { key, fingerprint, cursor }))
    }

    /// The cursor of an entry that is a file's, or that of a new generation if the file does not hold any
    /// more what was read of it.
    pub(super) fn proven_cursor(&self, candidate: &Candidate, entry: &Entry) -> Cursor {
        let mut cursor = entry.cursor;
        let rank = self.rank(candidate, entry, false);
        if rank.misfit {
            cursor = restarted(candidate, cursor);
        }
        let rested = entry.updated.since(candidate.found.metadata.modified);
        cursor.eof &= candidate.head.compressed && !rank.other_file && rested > MISSING_GRACE;
        cursor
    }

    /// Whether what was saved of one path may well be of the file at another: the same name but for what a rotation
    /// changes, a file that was rotated away from what a link led to, or a pin, which may have had any name.
    fn is_near(&self, saved: &Path, path: &Path) -> bool {
        saved == path
            || is_related(saved, path)
            || self.is_pin(path)
            || self.beside.link_of(path).is_some_and(|link| *link == *saved)
    }

    /// The saved entries with unusual fingerprints that fit.
    fn saved_prints(&self, candidate: &Candidate) -> Vec<usize> {
        if self.saved.is_empty() {
            return Vec::new();
        }
        let mut found = self.short_near(&candidate.path);
        found.retain(|&at| {
            let print = self.saved.get(at).map(|saved| saved.fingerprint);
            print.is_some_and(|print| self.print_as(candidate, &print) == Some(print))
        });
        for like in self.saved.other_lengths() {
            if let Some(print) = self.print_as(candidate, &like) {
                found.extend_from_slice(self.saved.others_like(&print));
            }
        }
        found.sort_unstable();
        found
    }

    /// The saved entries with fingerprints shorter than usual that are near to a path: those that [`Catalog::is_near`]
    /// takes.
    fn short_near(&self, path: &Path) -> Vec<usize> {
        let is_pin = self.is_pin(path);
        let mut near: Vec<usize> = if is_pin {
            self.saved.short().collect()
        } else {
            self.saved.short_near(path).collect()
        };
        near.extend_from_slice(self.saved.pinned());
        if !is_pin && let Some(link) = self.beside.link_of(path) {
            let of_link = |at: &usize| self.saved.get(*at).is_some_and(|print| print.path == link);
            near.extend(self.saved.short_near(&link).filter(of_link));
        }
        near.sort_unstable();
        near.dedup();
        near
    }

    /// The fingerprint of a file over the bytes that another one covers; nothing if it is too short.
    fn print_as(&self, candidate: &Candidate, like: &Fingerprint) -> Option<Fingerprint> {
        let head = &candidate.head;
        if !head.compressed && candidate.found.metadata.size < u64::from(like.len) {
            return None;
        }
        match head.print_of_first(like.len) {
            Some(print) if !like.whole => Some(print),
            _ => self.print_like(candidate, like).ok().flatten(),
        }
    }

    pub(super) fn print_of(
        &mut self,
        candidate: &Candidate,
        len: u32,
    ) -> io::Result<Option<Fingerprint>> {
        let side = self.side_of(candidate)?;
        fingerprint_of(side, self.input.settings.fingerprint.offset, len, &mut self.scratch)
    }

    /// A found file, opened to be compared.
    pub(super) fn side_of(&self, candidate: &Candidate) -> io::Result<Side> {
        let file = open_same(&*self.input.fs, &candidate.path, candidate.found.metadata.id())?;
        Ok(Side::new(file, candidate.head.compressed, &self.input.decoders))
    }

    /// The fingerprint of a file over the bytes that another one covers.
    pub(super) fn print_like(
        &self,
        candidate: &Candidate,
        like: &Fingerprint,
    ) -> io::Result<Option<Fingerprint>> {
        let side = self.side_of(candidate)?;
        let offset = if like.whole { 0 } else { self.input.settings.fingerprint.offset };
        let mut scratch = vec![0; PRINT_SCRATCH_BYTES];
        let print = fingerprint_of(side, offset, like.len, &mut scratch)?;
        Ok(print.map(|print| Fingerprint { whole: like.whole, ..print }))
    }
}
