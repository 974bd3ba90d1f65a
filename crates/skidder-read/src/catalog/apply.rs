//! Applies decisions: a found file becomes a source, or is found to be one.

use super::matching::{CatalogFacts, Decision, Matcher};
use super::saved::SavedState;
use super::sources::{Identity, Relocation};
use super::{Candidate, Catalog, Content, Duplicate, FirstDifference, Source, SourceFile};
use crate::Now;
use crate::compare::Verdict;
use crate::fingerprint::Fingerprint;
use crate::reader::Reader;
use crate::scan::Found;
use skidder_event::{SourceId, Tail};
use skidder_os::Timestamp;
use skidder_registry::Cursor;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are compared at once to distinguish a file that has grown from another with the same beginning.
const GROWN_COMPARE_BYTES: u64 = 1 << 20;

impl Catalog {
    /// Matching, with what is known now.
    pub(super) fn matcher(&self) -> Matcher<CatalogFacts<'_>> {
        Matcher(CatalogFacts {
            files: &self.files,
            saved: &self.saved,
            now: self.pass.now,
            is_reaction: self.pass.is_reaction,
        })
    }

    /// Applies a decision about a file. `difference` is the first byte in which it differs from other sources
    /// that begin with the same bytes.
    pub(super) fn apply_decision(
        &mut self,
        candidate: Candidate,
        decision: Decision,
        difference: FirstDifference,
        now: Now,
    ) {
        match decision {
            Decision::Keep(id) => self.keep_source(candidate, id, false),
            Decision::Continue(id) => self.keep_source(candidate, id, true),
            Decision::Wait(id) => {
                let duplicate = Content::Duplicate(Box::new(Duplicate::silent(id)));
                self.put_place(candidate.path, &candidate.found, duplicate, true);
            }
            Decision::Restart(id) => self.restart(candidate, id),
            Decision::Replace(id) => self.replace_rewritten(candidate, id, now),
            Decision::Hold(id) => {
                self.hold_back(candidate.path, &candidate.found, Duplicate::of(id));
            }
            Decision::New => self.add_new(candidate, difference, now),
        }
    }

    /// The registry could not be read, so that nothing can be decided: the next scan processes these files
    /// again. Returns an empty list.
    pub(super) fn postpone(&mut self, fresh: Vec<Found>) -> Vec<Found> {
        self.pass.postponed += fresh.len();
        for found in fresh {
            self.put_place(Arc::from(found.path.as_path()), &found, Content::Nothing, true);
        }
        Vec::new()
    }

    /// A source was found in a file.
    pub(super) fn keep_source(&mut self, candidate: Candidate, id: SourceId, reopen: bool) {
        let look = self.files.readers.look(id);
        // The current turn of the reader may have read other content. The file was truncated then, and is
        // shorter than what was read.
        let is_read_now = look.as_ref().is_some_and(|look| look.in_turn);
        let grown = if is_read_now { None } else { self.grown(&candidate, id) };
        let Candidate { found, path, head, .. } = candidate;
        let settings = &self.files.input.settings;
        let (by_content, usual) = (settings.identity.is_content(), settings.fingerprint.length);
        let grown = grown.and_then(|print| {
            let key = by_content.then(|| Arc::from(settings.key(&print.hex())));
            let is_taken = settings.shares_keys
                && key.as_ref().is_some_and(|key| !self.files.sources.claim_key(key, id));
            (!is_taken).then(|| (Identity::new(print, &head.bytes, usual), key))
        });
        let meta = &found.metadata;
        let (path_of, compressed) = (Arc::clone(&path), head.compressed);
        let file = SourceFile { path: path_of, metadata: *meta, compressed };
        let Some(relocation) = self.files.sources.relocate(id, file, grown) else { return };
        let Relocation { from, rewritten, changed, unpublished } = relocation;
        if let Some(from) = from {
            self.files.input.metrics.files_renamed.add(1);
            tracing::debug!(source = id.0, from = %from.display(), to = %path.display(),
                "a file was renamed");
        }
        if unpublished {
            self.files.publish(id, reopen && rewritten);
        }
        let is_short =
            self.files.sources.get(id).is_some_and(|source| source.fingerprint.len < usual);
        let unread = look.is_some_and(|look| {
            if head.compressed {
                !look.finished || changed || look.trouble.is_some()
            } else {
                meta.size > look.offset || look.trouble.is_some()
            }
        });
        if unread {
            if head.compressed && changed {
                self.files.sources.forget_end(id);
                self.files.input.cursors.doubt_end(id);
            }
            self.files.readers.wake(id);
        }
        let may_grow = is_read_now && is_short;
        self.put_place(path, &found, Content::Source(id), may_grow);
        if changed {
            self.files.recheck_duplicates_of(id);
        }
    }

    /// The longer fingerprint of a short file that has grown, or of a former source that was found again.
    /// `None` if another source cannot be distinguished by it.
    fn grown(&self, candidate: &Candidate, id: SourceId) -> Option<Fingerprint> {
        let source = self.files.sources.get(id)?;
        if !self.files.input.settings.identity.is_content() {
            let print = self.files.probe.print_shown(candidate);
            return (print != source.fingerprint).then_some(print);
        }
        let usual = self.files.input.settings.fingerprint.length;
        let have = candidate.head.bytes.len() as u32;
        let before = source.fingerprint;
        let has_grown = !before.whole
            && before.len < usual
            && have > before.len
            && !(candidate.head.compressed && self.matcher().is_behind(candidate, id));
        if !source.former && !has_grown {
            return None;
        }
        let fingerprint =
            if before.len > usual || before.whole { before } else { candidate.head.print() };
        let Some(&other) = self.files.sources.holders(&fingerprint).first() else {
            return Some(fingerprint);
        };
        let mut comparison =
            self.files.probe.compare(candidate, self.files.sources.get(other)?).ok()?;
        let mut budget = GROWN_COMPARE_BYTES;
        match self.files.probe.step(&mut comparison, &mut budget) {
            Ok(Verdict::Differ { at, longer }) => {
                let fingerprint = self.files.probe.new_print(candidate, Some((at, longer))).ok()?;
                self.files.sources.holders(&fingerprint).is_empty().then_some(fingerprint)
            }
            // A later scan decides, when there are more bytes.
            Ok(Verdict::Same | Verdict::Undecided) | Err(_) => None,
        }
    }

    /// A found file becomes a source: one from the registry, or a new one. `differs_at` is the first byte in
    /// which it differs from another source with the same beginning.
    pub(super) fn add_new(
        &mut self,
        mut candidate: Candidate,
        differs_at: FirstDifference,
        now: Now,
    ) {
        if self.files.input.settings.identity.is_content()
            && !self.files.has_inode_for_itself(&candidate)
        {
            self.put_place(candidate.path, &candidate.found, Content::Nothing, true);
            self.pass.postponed += 1;
            return;
        }
        // The registry entry under the usual fingerprint is still valid, unless another source has taken it.
        let usual_print = candidate.head.print();
        let keeps = differs_at.is_some()
            && self.files.sources.holders(&usual_print).is_empty()
            && self.saved.is_claimed(&self.files, &candidate, &usual_print);
        let differs_at = differs_at.filter(|_| !keeps);
        let fingerprint = match self.files.probe.new_print(&candidate, differs_at) {
            Ok(fingerprint) => fingerprint,
            Err(error) => {
                tracing::error!(path = %candidate.path.display(), %error,
                    "a file cannot be read; trying again with the next scan");
                self.put_place(candidate.path, &candidate.found, Content::Nothing, true);
                return;
            }
        };
        let saved = match self.saved.saved_state(&self.files, &mut candidate, &fingerprint) {
            Ok(saved) => saved,
            Err(error) => {
                tracing::error!(path = %candidate.path.display(), %error,
                    "the state of a file cannot be had; trying again with the next scan");
                self.put_place(candidate.path, &candidate.found, Content::Nothing, true);
                return;
            }
        };
        let usual = self.files.input.settings.fingerprint.length;
        // A longer fingerprint from an earlier run still distinguishes the file from the other one.
        let fingerprint = match saved.as_ref().and_then(|saved| saved.fingerprint) {
            Some(longer) if longer.whole || longer.len > usual.max(fingerprint.len) => longer,
            _ => fingerprint,
        };
        if let Some(&other) = self.files.sources.holders(&fingerprint).first() {
            if self.matcher().is_long_gone(other) && !self.matcher().is_plausible(&candidate, other)
            {
                self.replace_rewritten(candidate, other, now);
                return;
            }
            // It cannot be distinguished from another source yet.
            tracing::debug!(path = %candidate.path.display(), other = other.0, len = fingerprint.len,
                ?differs_at, "a file cannot be told from another yet");
            self.put_place(candidate.path, &candidate.found, Content::Nothing, true);
            return;
        }
        let key = self.files.input.settings.key(&fingerprint.hex());
        self.add_source(candidate, fingerprint, key, saved, now);
    }

    /// Where a saved source ended, if it goes on as one that may have more.
    fn end_of(&self, saved: &SavedState) -> Option<u64> {
        let resumes = !saved.cursor.eof && saved.cursor.offset > 0;
        let entry = if resumes { self.files.input.cursors.saved(&saved.key).ok()? } else { None };
        let ended = entry.map(|entry| entry.cursor).filter(|cursor| cursor.eof)?;
        (ended.offset == saved.cursor.offset).then_some(ended.offset)
    }

    /// Whether a compressed file was skipped in an earlier run, because it was rotated away before the first look.
    fn was_skipped(&self, saved: &SavedState) -> bool {
        let entry = self.files.input.cursors.saved(&saved.key).ok().flatten();
        entry.is_some_and(|entry| entry.cursor.eof && entry.cursor.offset == 0)
    }

    /// Whether a file was rotated away from its log too long before the first look. One that comes after a known file has
    /// lines that were not read, however old it is.
    fn is_too_old(&self, path: &Path, modified: Timestamp, saved: Option<&SavedState>) -> bool {
        self.files.is_rotated_before(path, modified)
            && match saved {
                Some(saved) => self.was_skipped(saved),
                None => self.files.followed.is_first_look(path),
            }
    }

    /// Adds a source. It is read from its saved cursor, or from the beginning.
    pub(super) fn add_source(
        &mut self,
        candidate: Candidate,
        fingerprint: Fingerprint,
        key: String,
        saved: Option<SavedState>,
        now: Now,
    ) {
        let usual = self.files.input.settings.fingerprint.length;
        let Candidate { found, path, head, before, .. } = candidate;
        let id = self.files.sources.next_id();
        let key: Arc<str> = key.into();
        if self.files.input.settings.shares_keys && !self.files.sources.claim_key(&key, id) {
            if !matches!(before, Some(Content::Nothing)) {
                tracing::warn!(path = %path.display(), input = self.files.input.settings.id, key = &*key,
                    "another input reads this file and has the same key for it, so that it is not read twice; \
                     two inputs of type `filestream` with an `id` each can read it");
            }
            self.put_place(path, &found, Content::Nothing, true);
            return;
        }
        let meta = &found.metadata;
        let is_new = saved.is_none();
        let too_old = self.is_too_old(&path, meta.modified, saved.as_ref());
        let ignored = too_old || self.files.is_ignored(meta.modified, now.wall);
        let skips = ignored
            || (self.files.input.settings.start_at_end
                && self.saved.is_loaded_in(self.files.places.scan()));
        let file = SourceFile {
            path: Arc::clone(&path),
            metadata: found.metadata,
            compressed: head.compressed,
        };
        let identity = Identity::new(fingerprint, &head.bytes, usual);
        let mut source = Source::new(identity, key, file, skips);
        source.rotated_before = too_old;
        if head.compressed {
            source.ended_at = saved.as_ref().and_then(|saved| self.end_of(saved));
        }
        let hurries = !is_new || skips || self.remembers_names();
        let (key, cursor) = saved.map(|saved| (saved.key, saved.cursor)).unzip();
        let mut cursor = cursor.unwrap_or_default();
        if skips && is_new && !head.compressed {
            cursor.offset = meta.size;
            cursor.tail = self.files.probe.tail_at(&path, meta);
        }
        if too_old {
            // A compressed file counts as read to its end, so that a new name does not wake its reader.
            cursor.eof = head.compressed;
            self.files.input.metrics.files_rotated_before.add(u64::from(is_new));
        }
        if let Some(old) = key.filter(|old| **old != *source.key) {
            // The entry has the key of the shorter fingerprint that the file had then.
            self.files.input.cursors.forget_saved(vec![old]);
        }
        let entry = self.files.sources.meta(&source, self.files.followed.saved_path(&path));
        self.files.input.cursors.begin(id, &source.key, entry, cursor, hurries);
        let unread = if head.compressed { !cursor.eof } else { meta.size > cursor.offset };
        self.add_reader(id, &source, cursor, unread && !ignored);
        if unread && ignored && !is_new {
            tracing::warn!(path = %path.display(), read = cursor.offset, size = meta.size,
                "a file with something to read is older than `ignore_older` or `ignore_inactive` allow; \
                 it is read when it changes");
        }
        tracing::debug!(source = id.0, path = %path.display(), len = fingerprint.len, "a source");
        self.files.sources.add(id, source);
        self.fill_place(path, &found, Content::Source(id), false);
    }

    /// Whether the name of a new file must be saved at once, because of links or pins. Everything else about
    /// a new file can be found again.
    fn remembers_names(&self) -> bool {
        let settings = &self.files.input.settings;
        settings.pin.max_bytes.is_some() || settings.follows_rotated()
    }

    fn add_reader(&self, id: SourceId, source: &Source, cursor: Cursor, wake: bool) {
        let tail = cursor.tail.map(|tail| Tail { len: tail.len, crc: tail.crc });
        let usual = self.files.input.settings.fingerprint.length;
        let target = source.target(usual, self.files.followed.shown(&source.path));
        let (key, generation) = (Arc::clone(&source.key), cursor.generation);
        let mut reader = Reader::new(id, key, generation, target, cursor.offset, tail);
        reader.finished = cursor.eof;
        let watched = self.watches.watched_flag(&source.path);
        self.files.readers.begin(&self.files.input, reader, watched, wake);
    }
}
