//! A found file becomes a source, or is found to be one.

use super::beside::Beside;
use super::prefixes::Trace;
use super::saved::SavedState;
use super::troubled::Refused;
use super::{Candidate, Catalog, Differs, Holds, Known, MISSING_GRACE};
use crate::Now;
use crate::compare::{Longer, Verdict};
use crate::fingerprint::{Fingerprint, read_up_to};
use crate::reader::{Reader, ShownPrint, TAIL_BYTES, Target};
use crate::readers::ReaderState;
use crate::settings::FilestreamSettings;
use skidder_event::{SourceId, Tail};
use skidder_os::{Metadata, Timestamp, open_same};
use skidder_registry::{Cursor, Meta};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are compared at once to tell a file that has grown from another that begins alike.
const GROWN_COMPARE_BYTES: u64 = 1 << 20;

/// The hash of the usual length, of a longer fingerprint.
fn shared(fingerprint: &Fingerprint, head: &[u8], usual: u32) -> Option<Box<[u8; 32]>> {
    let unusual = fingerprint.len > usual || fingerprint.whole;
    let head = head.get(..usual as usize).filter(|_| unusual)?;
    Some(Box::new(Fingerprint::of(head).hash))
}

/// The cheap number of what a fingerprint covers, if that is shorter than usual; zero for those that
/// nobody looks for by it, nothing if `head` is too short to tell.
fn trace(fingerprint: &Fingerprint, head: &[u8], usual: u32) -> Option<u64> {
    if fingerprint.whole || fingerprint.len >= usual {
        return Some(0);
    }
    head.get(..fingerprint.len as usize).map(Trace::of)
}

impl Catalog {
    /// A found file is a source that is known.
    pub(super) fn settle(&mut self, candidate: Candidate, id: SourceId, reopen: bool) {
        let look = self.readers.look(id);
        // What a turn that is not over has read may have been something else: it is truncated then, and shorter than that.
        let is_read_now = look.as_ref().is_some_and(|look| look.in_turn);
        let grown = if is_read_now { None } else { self.grown(&candidate, id) };
        let Candidate { found, path, head, .. } = candidate;
        let settings = &self.input.settings;
        let Some(known) = self.sources.get_mut(&id) else { return };
        let grown = grown.filter(|print| {
            !settings.shares_keys
                || !settings.identity.is_content()
                || self.ids.claim(&settings.key(&print.hex()), id)
        });
        let meta = &found.metadata;
        let moved = known.path != path;
        let rewritten = (known.device, known.inode) != (meta.device, meta.inode);
        if moved {
            self.input.metrics.files_renamed.add(1);
            tracing::debug!(source = id.0, from = %known.path.display(), to = %path.display(),
                "a file was renamed");
        }
        let usual = settings.fingerprint.length;
        self.index.remove(id, known);
        if let Some(fingerprint) = grown {
            known.fingerprint = fingerprint;
            known.shared = shared(&fingerprint, &head.bytes, usual);
            known.trace = trace(&fingerprint, &head.bytes, usual);
            known.former = false;
            if settings.identity.is_content() {
                self.ids.release(&known.key, id);
                known.key = settings.key(&known.fingerprint.hex()).into();
            }
        }
        let changed = known.size != meta.size || rewritten;
        known.path = Arc::clone(&path);
        (known.device, known.inode, known.size) = (meta.device, meta.inode, meta.size);
        known.compressed = head.compressed;
        known.placed = true;
        known.missing_since = None;
        self.index.insert(id, known);
        if std::mem::take(&mut known.untold) || moved || rewritten || grown.is_some() {
            let meta = known.meta(settings, &self.identity, &self.beside);
            self.input.cursors.update(id, &known.key, meta);
            let target = known.target(usual, &self.beside);
            self.readers.place(id, target, Arc::clone(&known.key), reopen && rewritten);
        }
        let known_is_short = known.fingerprint.len < usual;
        let unread = look.is_some_and(|look| {
            if head.compressed {
                !look.finished || changed || look.trouble.is_some()
            } else {
                meta.size > look.offset || look.trouble.is_some()
            }
        });
        if unread {
            if head.compressed && changed {
                known.ended_at = None;
                self.input.cursors.doubt_end(id);
            }
            self.readers.wake(id);
        }
        let may_grow = is_read_now && known_is_short;
        self.put_place(path, &found, Holds::Source(id), may_grow);
        if changed {
            self.doubt_twins_of(id);
        }
    }

    /// The longer fingerprint of a short file that has grown, or of a former source that was found
    /// again, unless it cannot be told from another source with it.
    fn grown(&mut self, candidate: &Candidate, id: SourceId) -> Option<Fingerprint> {
        let known = self.sources.get(&id)?;
        if !self.input.settings.identity.is_content() {
            let print = self.print_shown(candidate);
            return (print != known.fingerprint).then_some(print);
        }
        let usual = self.input.settings.fingerprint.length;
        let have = candidate.head.bytes.len() as u32;
        let before = known.fingerprint;
        let has_grown = !before.whole
            && before.len < usual
            && have > before.len
            && !(candidate.head.compressed && self.is_behind(candidate, id));
        if !known.former && !has_grown {
            return None;
        }
        let fingerprint =
            if before.len > usual || before.whole { before } else { candidate.head.print() };
        let Some(&other) = self.holders(&fingerprint).first() else { return Some(fingerprint) };
        let mut comparison = self.compare(candidate, other).ok()?;
        let mut budget = GROWN_COMPARE_BYTES;
        match comparison.step(&mut self.scratch, &mut budget) {
            Ok(Verdict::Differ { at, longer }) => {
                let fingerprint = self.fingerprint(candidate, Some((at, longer))).ok()?;
                self.holders(&fingerprint).is_empty().then_some(fingerprint)
            }
            // Told with a later scan, when there is more of them.
            Ok(Verdict::Same | Verdict::Undecided) | Err(_) => None,
        }
    }

    /// Whether a compressed file does not have yet what was read of a source, or it was not looked at: it may be another one
    /// with the same beginning, which its reader will know.
    fn is_behind(&self, candidate: &Candidate, id: SourceId) -> bool {
        self.readers.look(id).is_some_and(|look| {
            look.offset > 0
                && self.compressed_fits(candidate, true, look.offset, look.tail) != Some(true)
        })
    }

    /// A found file becomes a source: one that the registry knows, or a new one. `differs_at` is the first
    /// byte in which it differs from another source that begins alike.
    pub(super) fn begin(&mut self, mut candidate: Candidate, differs_at: Differs, now: Now) {
        if self.input.settings.identity.is_content() && !self.has_inode_for_itself(&candidate) {
            self.put_place(candidate.path, &candidate.found, Holds::Nothing, true);
            self.postponed += 1;
            return;
        }
        // What was saved under the usual fingerprint still is, if no other source has taken it.
        let usual_print = candidate.head.print();
        let keeps = differs_at.is_some()
            && self.holders(&usual_print).is_empty()
            && self.is_claimed(&candidate, &usual_print);
        let differs_at = differs_at.filter(|_| !keeps);
        let fingerprint = match self.fingerprint(&candidate, differs_at) {
            Ok(fingerprint) => fingerprint,
            Err(error) => {
                tracing::error!(path = %candidate.path.display(), %error,
                    "a file cannot be read; trying again with the next scan");
                self.put_place(candidate.path, &candidate.found, Holds::Nothing, true);
                return;
            }
        };
        let saved = match self.saved_state(&mut candidate, &fingerprint) {
            Ok(saved) => saved,
            Err(error) => {
                tracing::error!(path = %candidate.path.display(), %error,
                    "the state of a file cannot be had; trying again with the next scan");
                self.put_place(candidate.path, &candidate.found, Holds::Nothing, true);
                return;
            }
        };
        let usual = self.input.settings.fingerprint.length;
        // A longer fingerprint from an earlier run still tells the file from the other one.
        let fingerprint = match saved.as_ref().and_then(|saved| saved.fingerprint) {
            Some(longer) if longer.whole || longer.len > usual.max(fingerprint.len) => longer,
            _ => fingerprint,
        };
        if let Some(&other) = self.holders(&fingerprint).first() {
            if self.is_long_gone(other, now) && !self.proves(&candidate, other) {
                self.start_anew(candidate, other, now);
                return;
            }
            // Cannot be told from another source yet.
            tracing::debug!(path = %candidate.path.display(), other = other.0, len = fingerprint.len,
                ?differs_at, "a file cannot be told from another yet");
            self.put_place(candidate.path, &candidate.found, Holds::Nothing, true);
            return;
        }
        let key = self.input.settings.key(&fingerprint.hex());
        self.add_source(candidate, fingerprint, key, saved, now);
    }

    /// Whether a source lost its place long ago and sleeps, with its file perhaps still open: it keeps what
    /// it has read, but not the fingerprint from a file that begins as it did.
    fn is_long_gone(&self, id: SourceId, now: Now) -> bool {
        let missing = self.sources.get(&id).and_then(|known| known.missing_since);
        let rests = self.readers.look(id).is_some_and(|look| look.state != ReaderState::Reading);
        rests && missing.is_some_and(|since| now.monotonic.since(since) >= MISSING_GRACE)
    }

    /// Adds a source where its saved state says, or at the beginning.
    pub(super) fn add_source(
        &mut self,
        candidate: Candidate,
        fingerprint: Fingerprint,
        key: String,
        saved: Option<SavedState>,
        now: Now,
    ) {
        let usual = self.input.settings.fingerprint.length;
        let Candidate { found, path, head, before, .. } = candidate;
        let (id, key): (_, Arc<str>) = (self.ids.next(self.number), key.into());
        if self.input.settings.shares_keys && !self.ids.claim(&key, id) {
            if !matches!(before, Some(Holds::Nothing)) {
                tracing::info!(path = %path.display(), key = &*key,
                    "another input reads this file and has the same key for it; it is not read twice");
            }
            self.put_place(path, &found, Holds::Nothing, true);
            return;
        }
        let meta = &found.metadata;
        let ignored = self.is_ignored(meta.modified, now.wall);
        let is_new = saved.is_none();
        let skips =
            ignored || (self.input.settings.start_at_end && self.saved.is_loaded_in(self.scans));
        let known = Known {
            fingerprint,
            shared: shared(&fingerprint, &head.bytes, usual),
            trace: trace(&fingerprint, &head.bytes, usual),
            key,
            path: Arc::clone(&path),
            device: meta.device,
            inode: meta.inode,
            size: meta.size,
            compressed: head.compressed,
            former: false,
            ended_at: saved.as_ref().filter(|_| head.compressed).and_then(|it| self.end_of(it)),
            refused: Refused::default(),
            untold: false,
            placed: true,
            skipped: skips,
            missing_since: None,
        };
        let hurries = !is_new || skips || self.remembers_names();
        let (key, cursor) = saved.map(|saved| (saved.key, saved.cursor)).unzip();
        let mut cursor = cursor.unwrap_or_default();
        if skips && is_new && !head.compressed {
            cursor.offset = meta.size;
            cursor.tail = self.tail_at(&path, meta);
        }
        if let Some(old) = key.filter(|old| **old != *known.key) {
            // Saved under the shorter fingerprint that the file had then.
            self.input.cursors.forget_saved(vec![old]);
        }
        let entry = known.meta(&self.input.settings, &self.identity, &self.beside);
        self.input.cursors.begin(id, &known.key, entry, cursor, hurries);
        let unread = if head.compressed { !cursor.eof } else { meta.size > cursor.offset };
        self.add_reader(id, &known, cursor, unread && !ignored);
        if unread && ignored && !is_new {
            tracing::warn!(path = %path.display(), read = cursor.offset, size = meta.size,
                "a file with something to read is older than `ignore_older` or `ignore_inactive` allow; \
                 it is read when it changes");
        }
        tracing::debug!(source = id.0, path = %path.display(), len = fingerprint.len, "a source");
        self.index.insert(id, &known);
        if !self.input.settings.identity.is_content() {
            self.names.insert(Arc::clone(&known.key), id);
        }
        self.sources.insert(id, known);
        self.fill_place(path, &found, Holds::Source(id), false);
    }

    /// Where a saved source ended, if it goes on as one that may have more.
    fn end_of(&self, saved: &SavedState) -> Option<u64> {
        let resumes = !saved.cursor.eof && saved.cursor.offset > 0;
        let entry = if resumes { self.input.cursors.saved(&saved.key).ok()? } else { None };
        let ended = entry.map(|entry| entry.cursor).filter(|cursor| cursor.eof)?;
        (ended.offset == saved.cursor.offset).then_some(ended.offset)
    }

    /// Whether the name that a new file has is to be remembered at once, because of links or pins. Everything else about
    /// it can be found as new again.
    fn remembers_names(&self) -> bool {
        let settings = &self.input.settings;
        settings.pin.max_bytes.is_some() || settings.scan.symlinks
    }

    fn add_reader(&self, id: SourceId, known: &Known, cursor: Cursor, wake: bool) {
        let tail = cursor.tail.map(|tail| Tail { len: tail.len, crc: tail.crc });
        let target = known.target(self.input.settings.fingerprint.length, &self.beside);
        let (key, generation) = (Arc::clone(&known.key), cursor.generation);
        let mut reader = Reader::new(id, key, generation, target, cursor.offset, tail);
        reader.finished = cursor.eof;
        let teller = self.directories.tells_of(&known.path);
        self.readers.begin(&self.input, reader, teller, wake);
    }

    /// The fingerprint of a new source: the usual one, or as long as it takes to differ from another.
    fn fingerprint(
        &mut self,
        candidate: &Candidate,
        differs_at: Differs,
    ) -> io::Result<Fingerprint> {
        let settings = &self.input.settings.fingerprint;
        let have = candidate.head.bytes.len() as u64;
        if let Some((at, _)) = differs_at
            && at < settings.offset
        {
            let len = u32::try_from(settings.offset + have).unwrap_or(u32::MAX);
            let wanted = Fingerprint { hash: [0; 32], len, whole: true };
            let print = self.print_like(candidate, &wanted)?;
            return print.ok_or_else(|| io::ErrorKind::UnexpectedEof.into());
        }
        let mut needed = differs_at.map_or(0, |(at, _)| (at + 1).saturating_sub(settings.offset));
        if let Some((_, Some(Longer::One))) = differs_at
            && !candidate.head.compressed
        {
            // The other may still grow to be the same for a while: the more is covered, the better.
            let size = candidate.found.metadata.size.saturating_sub(settings.offset);
            needed = size.min(needed + u64::from(settings.length)).max(needed);
        }
        if needed <= have {
            return Ok(candidate.head.print());
        }
        let len = u32::try_from(needed).unwrap_or(u32::MAX);
        let print = self.print_of(candidate, len)?;
        print.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Whether a file is too old to be read, by `ignore_older` or `ignore_inactive`.
    pub(super) fn is_ignored(&self, modified: Timestamp, now: Timestamp) -> bool {
        let settings = &self.input.settings;
        settings.ignore_older.is_some_and(|limit| now.since(modified) > limit)
            || settings.ignore_before.is_some_and(|before| modified <= before)
    }

    /// The check value of the bytes at the end of a plain file that was not read: it must be the same file
    /// when it is read on from there.
    fn tail_at(&self, path: &Path, meta: &Metadata) -> Option<skidder_registry::Tail> {
        let mut bytes = [0; TAIL_BYTES];
        let len = (meta.size as usize).min(TAIL_BYTES);
        let file = open_same(&*self.input.fs, path, meta.id()).ok()?;
        let count = read_up_to(&*file, &mut bytes[..len], meta.size - len as u64).ok()?;
        (count == len).then(|| skidder_registry::Tail {
            len: len as u32,
            crc: crc32fast::hash(&bytes[..len]),
        })
    }
}

impl Known {
    /// Whether its fingerprint has this hash, or of a longer one the usual length.
    pub(super) fn has_hash(&self, hash: &[u8; 32]) -> bool {
        self.fingerprint.hash == *hash || self.shared.as_deref() == Some(hash)
    }

    pub(super) fn meta(
        &self,
        settings: &FilestreamSettings,
        identity: &Arc<str>,
        beside: &Beside,
    ) -> Meta {
        let usual = settings.fingerprint.length;
        let len = self.fingerprint.len;
        Meta {
            source: Arc::clone(beside.pinned(&self.path).unwrap_or(&self.path)),
            identifier_name: Arc::clone(identity),
            fingerprint_len: (settings.identity.is_content()
                && (len != usual || self.fingerprint.whole))
                .then(|| self.fingerprint.saved_len()),
            device: self.device,
            inode: self.inode,
        }
    }

    pub(super) fn target(&self, usual: u32, beside: &Beside) -> Target {
        Target {
            path: Arc::clone(&self.path),
            shown: beside.link_of(&self.path),
            device: self.device,
            inode: self.inode,
            compressed: self.compressed,
            print: self.fingerprint,
            shown_print: if self.fingerprint.len >= usual {
                ShownPrint::OfTarget
            } else {
                ShownPrint::None
            },
        }
    }
}
