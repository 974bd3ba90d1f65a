//! A found file becomes a source, or is found to be one.

use super::prefixes::Trace;
use super::rejected::RejectedFiles;
use super::rotated::RotatedFiles;
use super::saved::SavedState;
use super::{Candidate, Catalog, Content, FirstDifference, MISSING_GRACE, Source};
use crate::Now;
use crate::compare::Verdict;
use crate::fingerprint::Fingerprint;
use crate::reader::{Reader, ShownPrint, Target};
use crate::readers::ReaderState;
use crate::settings::FilestreamSettings;
use skidder_event::{SourceId, Tail};
use skidder_os::Timestamp;
use skidder_registry::{Cursor, Meta};
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
    pub(super) fn keep_source(&mut self, candidate: Candidate, id: SourceId, reopen: bool) {
        let look = self.readers.look(id);
        // What a turn that is not over has read may have been something else: it is truncated then, and shorter than that.
        let is_read_now = look.as_ref().is_some_and(|look| look.in_turn);
        let grown = if is_read_now { None } else { self.grown(&candidate, id) };
        let Candidate { found, path, head, .. } = candidate;
        let settings = &self.input.settings;
        let Some(source) = self.sources.get_mut(&id) else { return };
        let grown = grown.filter(|print| {
            !settings.shares_keys
                || !settings.identity.is_content()
                || self.ids.claim(&settings.key(&print.hex()), id)
        });
        let meta = &found.metadata;
        let moved = source.path != path;
        let rewritten = (source.device, source.inode) != (meta.device, meta.inode);
        if moved {
            self.input.metrics.files_renamed.add(1);
            tracing::debug!(source = id.0, from = %source.path.display(), to = %path.display(),
                "a file was renamed");
        }
        let usual = settings.fingerprint.length;
        self.index.remove(id, source);
        if let Some(fingerprint) = grown {
            source.fingerprint = fingerprint;
            source.shared = shared(&fingerprint, &head.bytes, usual);
            source.trace = trace(&fingerprint, &head.bytes, usual);
            source.former = false;
            if settings.identity.is_content() {
                self.ids.release(&source.key, id);
                source.key = settings.key(&source.fingerprint.hex()).into();
            }
        }
        let changed = source.size != meta.size || rewritten;
        source.path = Arc::clone(&path);
        (source.device, source.inode, source.size) = (meta.device, meta.inode, meta.size);
        source.compressed = head.compressed;
        source.placed = true;
        source.missing_since = None;
        self.index.insert(id, source);
        if std::mem::take(&mut source.unpublished) || moved || rewritten || grown.is_some() {
            let meta = source.meta(settings, &self.identity, &self.rotated);
            self.input.cursors.update(id, &source.key, meta);
            let target = source.target(usual, &self.rotated);
            self.readers.place(id, target, Arc::clone(&source.key), reopen && rewritten);
        }
        let known_is_short = source.fingerprint.len < usual;
        let unread = look.is_some_and(|look| {
            if head.compressed {
                !look.finished || changed || look.trouble.is_some()
            } else {
                meta.size > look.offset || look.trouble.is_some()
            }
        });
        if unread {
            if head.compressed && changed {
                self.input.cursors.doubt_end(id);
            }
            self.readers.wake(id);
        }
        let may_grow = is_read_now && known_is_short;
        self.put_place(path, &found, Content::Source(id), may_grow);
        if changed {
            self.recheck_duplicates_of(id);
        }
    }

    /// The longer fingerprint of a short file that has grown, or of a former source that was found
    /// again, unless it cannot be told from another source with it.
    fn grown(&mut self, candidate: &Candidate, id: SourceId) -> Option<Fingerprint> {
        let source = self.sources.get(&id)?;
        if !self.input.settings.identity.is_content() {
            let print = self.probe.print_shown(candidate);
            return (print != source.fingerprint).then_some(print);
        }
        let usual = self.input.settings.fingerprint.length;
        let have = candidate.head.bytes.len() as u32;
        let before = source.fingerprint;
        let has_grown = !before.whole
            && before.len < usual
            && have > before.len
            && !(candidate.head.compressed && self.is_behind(candidate, id));
        if !source.former && !has_grown {
            return None;
        }
        let fingerprint =
            if before.len > usual || before.whole { before } else { candidate.head.print() };
        let Some(&other) = self.holders(&fingerprint).first() else { return Some(fingerprint) };
        let mut comparison = self.probe.compare(candidate, self.sources.get(&other)?).ok()?;
        let mut budget = GROWN_COMPARE_BYTES;
        match self.probe.step(&mut comparison, &mut budget) {
            Ok(Verdict::Differ { at, longer }) => {
                let fingerprint = self.probe.new_print(candidate, Some((at, longer))).ok()?;
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
                && self.probe.compressed_fits(candidate, true, look.offset, look.tail) != Some(true)
        })
    }

    /// A found file becomes a source: one that the registry knows, or a new one. `differs_at` is the first
    /// byte in which it differs from another source that begins alike.
    pub(super) fn add_new(
        &mut self,
        mut candidate: Candidate,
        differs_at: FirstDifference,
        now: Now,
    ) {
        if self.input.settings.identity.is_content() && !self.has_inode_for_itself(&candidate) {
            self.put_place(candidate.path, &candidate.found, Content::Nothing, true);
            self.postponed += 1;
            return;
        }
        // What was saved under the usual fingerprint still is, if no other source has taken it.
        let usual_print = candidate.head.print();
        let keeps = differs_at.is_some()
            && self.holders(&usual_print).is_empty()
            && self.is_claimed(&candidate, &usual_print);
        let differs_at = differs_at.filter(|_| !keeps);
        let fingerprint = match self.probe.new_print(&candidate, differs_at) {
            Ok(fingerprint) => fingerprint,
            Err(error) => {
                tracing::error!(path = %candidate.path.display(), %error,
                    "a file cannot be read; trying again with the next scan");
                self.put_place(candidate.path, &candidate.found, Content::Nothing, true);
                return;
            }
        };
        let saved = match self.saved_state(&mut candidate, &fingerprint) {
            Ok(saved) => saved,
            Err(error) => {
                tracing::error!(path = %candidate.path.display(), %error,
                    "the state of a file cannot be had; trying again with the next scan");
                self.put_place(candidate.path, &candidate.found, Content::Nothing, true);
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
            if self.is_long_gone(other, now) && !self.is_plausible(&candidate, other) {
                self.replace_rewritten(candidate, other, now);
                return;
            }
            // Cannot be told from another source yet.
            tracing::debug!(path = %candidate.path.display(), other = other.0, len = fingerprint.len,
                ?differs_at, "a file cannot be told from another yet");
            self.put_place(candidate.path, &candidate.found, Content::Nothing, true);
            return;
        }
        let key = self.input.settings.key(&fingerprint.hex());
        self.add_source(candidate, fingerprint, key, saved, now);
    }

    /// Whether a source lost its place long ago and sleeps, with its file perhaps still open: it keeps what
    /// it has read, but not the fingerprint from a file that begins as it did.
    fn is_long_gone(&self, id: SourceId, now: Now) -> bool {
        let missing = self.sources.get(&id).and_then(|source| source.missing_since);
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
        let id = self.ids.next(self.number);
        let key: Arc<str> = key.into();
        if self.input.settings.shares_keys && !self.ids.claim(&key, id) {
            if !matches!(before, Some(Content::Nothing)) {
                tracing::info!(path = %path.display(), key = &*key,
                    "another input reads this file and has the same key for it; it is not read twice");
            }
            self.put_place(path, &found, Content::Nothing, true);
            return;
        }
        let meta = &found.metadata;
        let ignored = self.is_ignored(meta.modified, now.wall);
        let is_new = saved.is_none();
        let skips =
            ignored || (self.input.settings.start_at_end && self.saved.is_loaded_in(self.scans));
        let source = Source {
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
            rejected: RejectedFiles::default(),
            unpublished: false,
            placed: true,
            skipped: skips,
            missing_since: None,
        };
        let hurries = !is_new || skips || self.remembers_names();
        let (key, cursor) = saved.map(|saved| (saved.key, saved.cursor)).unzip();
        let mut cursor = cursor.unwrap_or_default();
        if skips && is_new && !head.compressed {
            cursor.offset = meta.size;
            cursor.tail = self.probe.tail_at(&path, meta);
        }
        if let Some(old) = key.filter(|old| **old != *source.key) {
            // Saved under the shorter fingerprint that the file had then.
            self.input.cursors.forget_saved(vec![old]);
        }
        let entry = source.meta(&self.input.settings, &self.identity, &self.rotated);
        self.input.cursors.begin(id, &source.key, entry, cursor, hurries);
        let unread = if head.compressed { !cursor.eof } else { meta.size > cursor.offset };
        self.add_reader(id, &source, cursor, unread && !ignored);
        if unread && ignored && !is_new {
            tracing::warn!(path = %path.display(), read = cursor.offset, size = meta.size,
                "a file with something to read is older than `ignore_older` or `ignore_inactive` allow; \
                 it is read when it changes");
        }
        tracing::debug!(source = id.0, path = %path.display(), len = fingerprint.len, "a source");
        self.index.insert(id, &source);
        if !self.input.settings.identity.is_content() {
            self.names.insert(Arc::clone(&source.key), id);
        }
        self.sources.insert(id, source);
        self.fill_place(path, &found, Content::Source(id), false);
    }

    /// Whether the name that a new file has is to be remembered at once, because of links or pins. Everything else about
    /// it can be found as new again.
    fn remembers_names(&self) -> bool {
        let settings = &self.input.settings;
        settings.pin.max_bytes.is_some() || settings.scan.symlinks
    }

    fn add_reader(&self, id: SourceId, source: &Source, cursor: Cursor, wake: bool) {
        let tail = cursor.tail.map(|tail| Tail { len: tail.len, crc: tail.crc });
        let target = source.target(self.input.settings.fingerprint.length, &self.rotated);
        let (key, generation) = (Arc::clone(&source.key), cursor.generation);
        let mut reader = Reader::new(id, key, generation, target, cursor.offset, tail);
        reader.finished = cursor.eof;
        let teller = self.directories.tells_of(&source.path);
        self.readers.begin(&self.input, reader, teller, wake);
    }

    /// Whether a file is too old to be read, by `ignore_older` or `ignore_inactive`.
    pub(super) fn is_ignored(&self, modified: Timestamp, now: Timestamp) -> bool {
        let settings = &self.input.settings;
        settings.ignore_older.is_some_and(|limit| now.since(modified) > limit)
            || settings.ignore_before.is_some_and(|before| modified <= before)
    }
}

impl Source {
    /// Whether its fingerprint has this hash, or of a longer one the usual length.
    pub(super) fn has_hash(&self, hash: &[u8; 32]) -> bool {
        self.fingerprint.hash == *hash || self.shared.as_deref() == Some(hash)
    }

    pub(super) fn meta(
        &self,
        settings: &FilestreamSettings,
        identity: &Arc<str>,
        rotated: &RotatedFiles,
    ) -> Meta {
        let usual = settings.fingerprint.length;
        let len = self.fingerprint.len;
        Meta {
            source: Arc::clone(rotated.pinned(&self.path).unwrap_or(&self.path)),
            identifier_name: Arc::clone(identity),
            fingerprint_len: (settings.identity.is_content()
                && (len != usual || self.fingerprint.whole))
                .then(|| self.fingerprint.saved_len()),
            device: self.device,
            inode: self.inode,
        }
    }

    pub(super) fn target(&self, usual: u32, rotated: &RotatedFiles) -> Target {
        Target {
            path: Arc::clone(&self.path),
            shown: rotated.link_of(&self.path),
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
