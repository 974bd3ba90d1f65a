//! Matching: which source is in a file, by what is known of the file and of the sources.
//!
//! Nothing here reads a file or changes anything: [`Facts`] answers questions, and the outcome is a [`Decision`] that the
//! catalog applies. It is called once for each file and pass, because each decision changes the facts for the next file.

mod facts;
mod names;
mod weak;

use super::Candidate;
use super::former::may_be_former;
use super::places::{Content, Places};
use super::prefixes::Trace;
use super::sources::{Source, Sources};
use crate::catalog::MISSING_GRACE;
use crate::fingerprint::Fingerprint;
use crate::readers::{ReaderLook, ReaderState, Trouble};
use crate::settings::FingerprintSettings;
pub(super) use facts::CatalogFacts;
pub(crate) use names::is_related;
pub(super) use names::{rotated_suffix, stem};
use skidder_event::{SourceId, Tail};
use skidder_os::Monotonic;
use skidder_os::sabotage::{self, Sabotage};
use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes read behind a short fingerprint that prove as much as a long one.
pub(super) const PROOF_BYTES: u64 = 128;

/// The facts that matching needs. The answers do not change while one decision is made.
pub(super) trait Facts {
    fn fingerprints(&self) -> &FingerprintSettings;
    fn sources(&self) -> &Sources;
    fn places(&self) -> &Places;
    /// When the scan began.
    fn now(&self) -> Monotonic;
    /// Whether this is a reaction to notifications: only some paths are looked at.
    fn is_reaction(&self) -> bool;
    /// The reader of a source.
    fn reader(&self, id: SourceId) -> Option<ReaderLook>;
    /// The path that events of a file carry, if it is not its own.
    fn shown(&self, path: &Path) -> Option<Arc<Path>>;
    /// The fingerprint of the first `len` bytes that fingerprints cover; `None` if it cannot be made.
    fn print_of(&self, candidate: &Candidate, len: u32) -> Option<Fingerprint>;
    /// The fingerprint of the bytes that the fingerprint `like` covers; `None` if it cannot be made.
    fn print_like(&self, candidate: &Candidate, like: &Fingerprint) -> Option<Fingerprint>;
    /// Whether a plain file is long enough for a reader, and has the right bytes before its offset.
    fn plain_fits(&self, candidate: &Candidate, reader: &ReaderLook) -> bool;
    /// Whether a compressed file has the bytes that were read before `offset`; `None` if this was not checked.
    fn compressed_fits(
        &self,
        candidate: &Candidate,
        doubtful: bool,
        offset: u64,
        tail: Option<Tail>,
    ) -> Option<bool>;
    /// Whether the file of a source still has what its reader has read. A file that is not at its path any more, or cannot be
    /// looked at, counts as having it.
    fn is_as_read(&self, source: &Source, reader: &ReaderLook) -> bool;
    /// The length of the fingerprint of a registry entry that no source has, if the bytes before its cursor are those of the
    /// file.
    fn saved_print_len(&self, candidate: &Candidate) -> Option<u32>;
}

/// What to do about a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is the file of this source, perhaps under another name.
    Keep(SourceId),
    /// This source continues in it: the file that it was read from is gone.
    Continue(SourceId),
    /// This source may continue in it later: its reader still reads the file before, or a better copy is expected.
    Wait(SourceId),
    /// This source is read again from the beginning.
    Restart(SourceId),
    /// It has the place of this source, with other content: a new generation.
    Replace(SourceId),
    /// It is another name of the file of this source.
    Hold(SourceId),
    /// It is none of the sources.
    New,
}

/// What to do about a file that no earlier pass has matched.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LastDecision {
    Decided(Decision),
    /// Compare it with these sources, which begin with the same bytes; the last one first.
    Compare(Vec<SourceId>),
}

/// Decides by facts.
pub(super) struct Matcher<F>(pub(super) F);

impl<F: Facts> Matcher<F> {
    /// First pass: the same inode with the same content at the same path.
    pub(super) fn in_place(&self, candidate: &Candidate) -> Option<Decision> {
        let id = self.same_file(candidate, true)?;
        Some(if candidate.touched { Decision::Restart(id) } else { Decision::Keep(id) })
    }

    /// First pass, for files that are not in place: the same inode with the same content.
    pub(super) fn renamed(&self, candidate: &Candidate) -> Option<Decision> {
        self.same_file(candidate, false).map(Decision::Keep)
    }

    /// Second pass: the content of a source that is not in its place any more.
    pub(super) fn moved(&self, candidate: &Candidate) -> Option<Decision> {
        if self.other_name_of(candidate).is_some() {
            return None;
        }
        let mut ids = self.sources_like(candidate);
        ids.retain(|&id| self.is_displaced(id) && self.is_plausible(candidate, id));
        ids.retain(|&id| !self.is_of_other_log(candidate, id));
        // If other sources in their places begin with the same bytes, it must be compared first.
        let id = ids.first().filter(|_| self.rivals(candidate).is_empty())?;
        Some(self.continues(candidate, *id))
    }

    /// Third pass: the same file or the same name, rewritten.
    pub(super) fn rewritten(&self, candidate: &Candidate) -> Option<Decision> {
        let alone = self.other_name_of(candidate).is_none() && self.rivals(candidate).is_empty();
        let id = self.rewritten_source(candidate).filter(|_| alone)?;
        (!self.is_of_other_log(candidate, id)).then_some(Decision::Replace(id))
    }

    /// Last pass: a duplicate of a file that is elsewhere, a file that the registry knows, or a new one.
    pub(super) fn last(&self, candidate: &Candidate) -> LastDecision {
        if let Some(of) = self.other_name_of(candidate) {
            let source = self.sources().get(of);
            let is_its_name = source.is_some_and(|source| source.path == candidate.path);
            let decision = if is_its_name { Decision::Keep(of) } else { Decision::Hold(of) };
            return LastDecision::Decided(decision);
        }
        let alike = self.sources_like(candidate);
        let mut rivals: Vec<SourceId> =
            alike.iter().copied().filter(|&id| !self.is_displaced(id)).collect();
        for id in self.rivals(candidate) {
            if !rivals.contains(&id) {
                rivals.push(id);
            }
        }
        if !rivals.is_empty() {
            rivals.reverse();
            return LastDecision::Compare(rivals);
        }
        // A source that only begins with the same bytes keeps its place for what it was.
        let print = candidate.head.print();
        let has_print = |source: &Source| !source.former && source.fingerprint == print;
        let gone = alike.iter().find(|id| self.sources().get(**id).is_some_and(has_print));
        // The file with this fingerprint is gone, and this is another one.
        LastDecision::Decided(gone.map_or(Decision::New, |id| Decision::Replace(*id)))
    }

    /// After it differed from all sources that it was compared with.
    pub(super) fn after_comparisons(&self, candidate: &Candidate) -> Decision {
        let mut displaced = self.sources_like(candidate);
        displaced.retain(|&id| self.is_displaced(id) && self.is_plausible(candidate, id));
        match displaced.first() {
            Some(&id) => self.continues(candidate, id),
            None => self.rewritten_source(candidate).map_or(Decision::New, Decision::Replace),
        }
    }

    /// For a file that has the name of a source, where files are identified by name.
    pub(super) fn named(&self, candidate: &Candidate, id: SourceId) -> Decision {
        if !self.is_displaced(id) {
            // Another link to the same file.
            return Decision::Hold(id);
        }
        let source = self.sources().get(id);
        let same_file =
            source.is_some_and(|source| source.file_id() == candidate.found.metadata.id());
        let fits = self.0.reader(id).is_none_or(|reader| self.0.plain_fits(candidate, &reader));
        if !same_file && self.is_still_read(id) {
            // Another file has the path; the reader reads the open file to its end first.
            Decision::Wait(id)
        } else if !fits || candidate.touched {
            Decision::Restart(id)
        } else if same_file {
            Decision::Keep(id)
        } else {
            Decision::Continue(id)
        }
    }

    /// Whether a source that was found in a compressed file is rather read from this plain one, which the compressed file was
    /// made from, judging by the names.
    pub(super) fn is_compressed_to(&self, candidate: &Candidate, id: SourceId) -> bool {
        let Some(source) = self.sources().get(id) else { return false };
        let is_named = || {
            let name = source.path.as_os_str().as_bytes();
            let end = name.strip_prefix(candidate.path.as_os_str().as_bytes());
            end.is_some_and(|end| end.starts_with(b".") && !end.contains(&b'/'))
        };
        source.compressed
            && !candidate.head.compressed
            && is_named()
            && self.is_plausible(candidate, id)
    }

    /// Whether the file of a source, which differs from another file at byte `at`, has changed since it was listed: it has
    /// another beginning, or other bytes before the cursor.
    pub(super) fn has_changed(&self, id: SourceId, at: u64) -> bool {
        let Some(source) = self.sources().get(id) else { return false };
        if self.shared_bytes(source).contains(&at) {
            return true;
        }
        let Some(reader) = self.0.reader(id).filter(|_| !source.compressed) else { return false };
        // What it was when the current turn read it is known after the turn.
        (reader.in_turn && reader.offset <= at) || !self.0.is_as_read(source, &reader)
    }

    /// Whether a source that lost its place has its file open and may not have read all of it.
    pub(super) fn is_still_read(&self, id: SourceId) -> bool {
        let missing = self.sources().get(id).and_then(|source| source.missing_since);
        self.0.reader(id).is_some_and(|reader| {
            // If it certainly continues elsewhere, the lines that wait are there too.
            let waits = reader.group_waits && !self.is_certain(id);
            // Reading may succeed the next time, or never.
            let failed = reader.trouble == Some(Trouble::Failed)
                && missing.is_none_or(|since| self.0.now().since(since) < MISSING_GRACE);
            let reads = reader.state == ReaderState::Reading || waits || failed;
            reader.open && (reader.trouble.is_none() || failed) && (missing.is_none() || reads)
        })
    }

    /// Whether a file that begins like a source, and has the same bytes before the cursor, certainly is that source.
    pub(super) fn is_certain(&self, id: SourceId) -> bool {
        let len = self.sources().get(id).map_or(0, |source| source.fingerprint.len);
        len >= self.0.fingerprints().length
            || self.0.reader(id).is_some_and(|reader| reader.offset >= PROOF_BYTES)
    }

    /// Whether a compressed file does not have all bytes yet that were read of a source, or this was not checked: it may be
    /// another file with the same beginning, as its reader will find out.
    pub(super) fn is_behind(&self, candidate: &Candidate, id: SourceId) -> bool {
        self.0.reader(id).is_some_and(|reader| {
            let fits = || self.0.compressed_fits(candidate, true, reader.offset, reader.tail);
            reader.offset > 0 && fits() != Some(true)
        })
    }

    /// Whether a source lost its place long ago and sleeps, perhaps with its file open: it keeps what it has read, but not
    /// the fingerprint, if another file begins with the same bytes.
    pub(super) fn is_long_gone(&self, id: SourceId) -> bool {
        let missing = self.sources().get(id).and_then(|source| source.missing_since);
        let rests = self.0.reader(id).is_some_and(|reader| reader.state != ReaderState::Reading);
        rests && missing.is_some_and(|since| self.0.now().since(since) >= MISSING_GRACE)
    }

    /// Sources that begin like a file, the longest fingerprint first, the one at its path before others.
    pub(super) fn sources_like(&self, candidate: &Candidate) -> Vec<SourceId> {
        let (sources, index) = (self.sources(), self.sources().index());
        let usual = self.0.fingerprints().length;
        let head = &candidate.head.bytes;
        let mut ids = Vec::new();
        let mut trace = Trace::new();
        for len in index.lengths() {
            if len > usual || len as usize > head.len() {
                break;
            }
            // The fingerprint of the whole head is made anyway; that of a part of it only if it may help.
            let is_known = len as usize == head.len() || !index.is_fully_traced() || {
                trace.extend(head, len as usize);
                index.has_prefix(trace.number())
            };
            if is_known && let Some(print) = candidate.head.print_of_first(len) {
                ids.extend(sources.with_print(&print));
            }
        }
        // Only a file that shares the usual fingerprint can have a longer one.
        let mut longer = BTreeSet::new();
        if let Some(shared) = candidate.head.print_of_first(usual) {
            for id in index.with_hash(&shared.hash) {
                let source = sources.get(*id).filter(|source| source.has_hash(&shared.hash));
                let print = source.map(|source| source.fingerprint);
                longer.extend(print.filter(|print| !print.whole).map(|print| print.len));
            }
        }
        for len in longer.into_iter().filter(|len| *len > usual) {
            if let Some(print) = self.0.print_of(candidate, len) {
                ids.extend(sources.with_print(&print));
            }
        }
        for len in index.whole_lengths() {
            let like = Fingerprint { hash: [0; 32], len, whole: true };
            if let Some(print) = self.0.print_like(candidate, &like) {
                ids.extend(sources.with_print(&print));
            }
        }
        if ids.iter().any(|&id| self.is_weak(id))
            && let Some(saved) = self.0.saved_print_len(candidate)
        {
            let len = |id: &SourceId| sources.get(*id).map_or(0, |source| source.fingerprint.len);
            ids.retain(|id| len(id) >= saved || !self.is_weak(*id));
        }
        ids.sort_by_key(|id| {
            let source = sources.get(*id);
            let len = source.map_or(0, |source| source.fingerprint.len);
            let same_path = source.is_some_and(|source| source.path == candidate.path);
            (std::cmp::Reverse(len), !same_path)
        });
        ids
    }

    /// Whether nothing speaks against a file being this source: a plain file is as long as what was read, and has the same
    /// bytes before the cursor. A compressed file is checked by its reader.
    ///
    /// A short fingerprint proves little, because many files begin with the same line. Then the inode must be the same, or
    /// the name must be that of a rotated file, or more must have been read, or the file was compared with the source
    /// before that lost its place.
    pub(super) fn is_plausible(&self, candidate: &Candidate, id: SourceId) -> bool {
        let Some(reader) = self.0.reader(id) else { return false };
        let Some(source) = self.sources().get(id) else { return false };
        let meta = &candidate.found.metadata;
        let same_inode = source.file_id() == meta.id();
        let print = &source.fingerprint;
        if source.former
            && candidate.duplicate_of != Some(id)
            && !may_be_former(&candidate.path, &source.path, same_inode, reader.offset, print)
        {
            return false;
        }
        let read_beyond = reader.offset.saturating_sub(u64::from(print.len));
        if print.len < self.0.fingerprints().length
            && read_beyond < PROOF_BYTES
            && !same_inode
            && !self.is_one_log(&source.path, &candidate.path)
            && candidate.duplicate_of != Some(id)
        {
            return false;
        }
        if candidate.head.compressed {
            let doubtful = self.is_shared(print);
            let fits = || self.0.compressed_fits(candidate, doubtful, reader.offset, reader.tail);
            return !source.rejected.has(meta) && fits() != Some(false);
        }
        self.0.plain_fits(candidate, &reader)
    }

    fn sources(&self) -> &Sources {
        self.0.sources()
    }

    fn is_displaced(&self, id: SourceId) -> bool {
        self.sources().is_displaced(id)
    }

    /// The source in a file that has its inode and its content.
    fn same_file(&self, candidate: &Candidate, same_path: bool) -> Option<SourceId> {
        let meta = &candidate.found.metadata;
        let mut ids = self.sources().index().with_inode((meta.device, meta.inode)).iter().copied();
        ids.find(|&id| {
            // The compressed copy of a plain file is another file, even if it has the inode: it is matched as a copy.
            let is_alike = |source: &Source| {
                source.compressed == candidate.head.compressed
                    && (!same_path || source.path == candidate.path)
            };
            self.is_displaced(id)
                && self.sources().get(id).is_some_and(is_alike)
                && (sabotage::is_on(Sabotage::InodeIsIdentity)
                    || (self.has_beginning_of(candidate, id)
                        && self.is_plausible(candidate, id)
                        && self.is_proof_sufficient(candidate, id)
                        && !self.has_better_match(candidate, id)))
        })
    }

    /// Whether the bytes before the cursor prove more than a beginning that several files share. If not, the whole
    /// fingerprint must be right.
    fn is_proof_sufficient(&self, candidate: &Candidate, id: SourceId) -> bool {
        let Some(source) = self.sources().get(id) else { return false };
        let print = source.fingerprint;
        let offset = self.0.reader(id).map_or(0, |reader| reader.offset);
        // In a compressed file these bytes are not always checked here.
        let is_checked = offset > u64::from(print.len) && !candidate.head.compressed;
        source.shared.is_none() || is_checked || self.0.print_like(candidate, &print) == Some(print)
    }

    /// A source that lost its place continues in a file, now or later.
    fn continues(&self, candidate: &Candidate, id: SourceId) -> Decision {
        if self.is_still_read(id) || self.has_plain_copy(candidate, id) {
            Decision::Wait(id)
        } else {
            Decision::Continue(id)
        }
    }

    /// Whether a plain file that may be a copy of a source waits for the next scan, while this compressed one was
    /// reported in between.
    fn has_plain_copy(&self, candidate: &Candidate, id: SourceId) -> bool {
        self.0.is_reaction()
            && candidate.head.compressed
            && self.0.places().iter().any(|(path, place)| match &place.content {
                Content::Duplicate(duplicate) => duplicate.of == id,
                Content::Nothing => place.recheck && is_related(path, &candidate.path),
                Content::Source(_) => false,
            })
    }

    /// Sources in their places that share the usual fingerprint with a file.
    fn rivals(&self, candidate: &Candidate) -> Vec<SourceId> {
        let usual = self.0.fingerprints().length;
        let Some(print) = candidate.head.print_of_first(usual) else { return Vec::new() };
        let ids = self.sources().index().with_hash(&print.hash).iter().copied();
        ids.filter(|&id| !self.is_displaced(id) && self.sources().has_hash(id, &print.hash))
            .collect()
    }

    /// The source that has its place at another name of this file.
    fn other_name_of(&self, candidate: &Candidate) -> Option<SourceId> {
        let meta = &candidate.found.metadata;
        let ids = self.sources().index().with_inode((meta.device, meta.inode));
        let mut ids = ids.iter().copied();
        ids.find(|&id| !self.is_displaced(id) && self.has_beginning_of(candidate, id))
    }

    /// The source that lost its place to this file: it had the name or the inode of the file, and its beginning.
    fn rewritten_source(&self, candidate: &Candidate) -> Option<SourceId> {
        let here = candidate.found.metadata.id();
        self.sources_like(candidate).into_iter().find(|&id| {
            self.is_displaced(id)
                && self.sources().get(id).is_some_and(|source| {
                    let same = source.path == candidate.path;
                    !source.former && (same || source.file_id() == here)
                })
        })
    }

    fn has_beginning_of(&self, candidate: &Candidate, id: SourceId) -> bool {
        let Some(source) = self.sources().get(id) else { return false };
        // Of a longer fingerprint only the usual length is checked. The inode and the bytes before the cursor, which are
        // checked too, stand in for the rest.
        match &source.shared {
            Some(shared) => {
                let len = self.0.fingerprints().length;
                candidate.head.matches(&Fingerprint { hash: **shared, len, whole: false })
            }
            None if source.fingerprint.whole => {
                self.0.print_like(candidate, &source.fingerprint) == Some(source.fingerprint)
            }
            None => candidate.head.matches(&source.fingerprint),
        }
    }

    /// Whether the names say that a file is what a source was: rotated from it, or from what the link with that name
    /// led to. A pin has the name of its file.
    fn is_one_log(&self, of_source: &Path, path: &Path) -> bool {
        let (shown_of_source, shown) = (self.0.shown(of_source), self.0.shown(path));
        is_related(of_source, path)
            || is_related(
                shown_of_source.as_deref().unwrap_or(of_source),
                shown.as_deref().unwrap_or(path),
            )
    }

    /// Whether other files may begin with the bytes of this fingerprint, as far as is known: it is short, or just long
    /// enough to differ from other files, or several sources begin with these bytes.
    fn is_shared(&self, print: &Fingerprint) -> bool {
        print.whole
            || print.len != self.0.fingerprints().length
            || self.sources().index().with_hash(&print.hash).len() > 1
    }

    /// The bytes that a file must share with a source to be compared with it.
    fn shared_bytes(&self, source: &Source) -> Range<u64> {
        let settings = self.0.fingerprints();
        let len = match &source.fingerprint {
            print if print.whole && source.shared.is_none() => 0,
            print if print.whole => settings.length,
            print => print.len.min(settings.length),
        };
        settings.offset..settings.offset + u64::from(len)
    }
}

#[cfg(test)]
mod tests;
