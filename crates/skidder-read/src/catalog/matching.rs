//! The first passes: candidates against the sources that are known.

use super::former::may_be_former;
use super::prefixes::Trace;
use super::{Candidate, Catalog, Content, Duplicate, MISSING_GRACE, Source};
use crate::Now;
use crate::fingerprint::Fingerprint;
use crate::readers::{ReaderState, Trouble};
use skidder_event::SourceId;
use skidder_os::sabotage::{self, Sabotage};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes read behind a short fingerprint that prove as much as a long one.
pub(super) const PROOF_BYTES: u64 = 128;

impl Catalog {
    /// First pass: the same inode with the same content. Of several names the one it had comes first.
    pub(super) fn match_inodes(&mut self, candidates: Vec<Candidate>) -> Vec<Candidate> {
        let mut elsewhere = Vec::new();
        for candidate in candidates {
            elsewhere.extend(self.try_in_place(candidate).err());
        }
        let mut left = Vec::new();
        for candidate in elsewhere {
            match self.same_file(&candidate, false) {
                Some(id) => self.keep_source(candidate, id, false),
                None => left.push(candidate),
            }
        }
        left
    }

    /// The same inode with the same content at the same path; gives back what is not.
    #[expect(clippy::result_large_err, reason = "one move a file that has changed")]
    pub(super) fn try_in_place(&mut self, candidate: Candidate) -> Result<(), Candidate> {
        match self.same_file(&candidate, true) {
            Some(id) if candidate.touched => self.restart(candidate, id),
            Some(id) => self.keep_source(candidate, id, false),
            None => return Err(candidate),
        }
        Ok(())
    }

    fn same_file(&self, candidate: &Candidate, same_path: bool) -> Option<SourceId> {
        let meta = &candidate.found.metadata;
        let ids = self.files.sources.index().with_inode((meta.device, meta.inode)).to_vec();
        ids.into_iter().find(|&id| {
            // A compressed copy of a plain file is never that file: its inode is used again. It is a copy like others.
            let is_alike = |source: &Source| {
                source.compressed == candidate.head.compressed
                    && (!same_path || source.path == candidate.path)
            };
            self.files.is_displaced(id)
                && self.files.sources.get(id).is_some_and(is_alike)
                && (sabotage::is_on(Sabotage::InodeIsIdentity)
                    || (self.has_beginning_of(candidate, id)
                        && self.is_plausible(candidate, id)
                        && self.is_proof_sufficient(candidate, id)
                        && !self.has_better_match(candidate, id)))
        })
    }

    /// Whether the bytes before the cursor tell more than the beginning that several files share; if not,
    /// the whole fingerprint must be right.
    fn is_proof_sufficient(&self, candidate: &Candidate, id: SourceId) -> bool {
        let Some(source) = self.files.sources.get(id) else { return false };
        let print = source.fingerprint;
        let offset = self.files.readers.look(id).map_or(0, |look| look.offset);
        // Of a compressed file these bytes are not always looked at here.
        let is_told = offset > u64::from(print.len) && !candidate.head.compressed;
        source.shared.is_none()
            || is_told
            || self
                .files
                .probe
                .print_like(candidate, &print)
                .is_ok_and(|of_file| of_file == Some(print))
    }

    /// Second pass: the content of a source that is no longer in its place.
    pub(super) fn match_content(&mut self, candidates: Vec<Candidate>) -> Vec<Candidate> {
        let mut left = Vec::new();
        for candidate in candidates {
            if self.other_name_of(&candidate).is_some() {
                left.push(candidate);
                continue;
            }
            let mut ids = self.sources_like(&candidate);
            ids.retain(|&id| self.files.is_displaced(id) && self.is_plausible(&candidate, id));
            ids.retain(|&id| !self.is_of_other_log(&candidate, id));
            match ids.first() {
                // With rivals in their places it must be compared first.
                Some(&id) if self.rivals(&candidate).is_empty() => self.take_over(candidate, id),
                _ => left.push(candidate),
            }
        }
        left
    }

    /// A file is where a source goes on that has lost its place.
    pub(super) fn take_over(&mut self, candidate: Candidate, id: SourceId) {
        if self.is_still_read(id) || self.has_plain_duplicate(&candidate, id) {
            // Its open file comes first, to the end; this one takes over with a later scan.
            let duplicate = Duplicate { logged: true, ..Duplicate::of(id) };
            let Candidate { found, path, .. } = candidate;
            self.put_place(path, &found, Content::Duplicate(Box::new(duplicate)), true);
        } else {
            self.keep_source(candidate, id, true);
        }
    }

    /// Whether a plain file waits for the next scan that may be the copy of a source, while this compressed one was told
    /// of in between.
    fn has_plain_duplicate(&self, candidate: &Candidate, id: SourceId) -> bool {
        self.brief
            && candidate.head.compressed
            && self.files.places.iter().any(|(path, place)| match &place.content {
                Content::Duplicate(duplicate) => duplicate.of == id,
                Content::Nothing => place.recheck && is_related(path, &candidate.path),
                Content::Source(_) => false,
            })
    }

    /// Sources in their places that share the usual fingerprint with a file.
    pub(super) fn rivals(&self, candidate: &Candidate) -> Vec<SourceId> {
        let usual = self.files.input.settings.fingerprint.length;
        let Some(print) = candidate.head.print_of_first(usual) else { return Vec::new() };
        let ids = self.files.sources.index().with_hash(&print.hash).iter().copied();
        ids.filter(|&id| {
            !self.files.is_displaced(id) && self.files.sources.has_hash(id, &print.hash)
        })
        .collect()
    }

    /// Whether a source that lost its place has its file open and may not have read all of it.
    pub(super) fn is_still_read(&self, id: SourceId) -> bool {
        let missing = self.files.sources.get(id).and_then(|source| source.missing_since);
        self.files.readers.look(id).is_some_and(|look| {
            // What goes on elsewhere has the lines that wait, if it is the same for certain.
            let waits = look.group_waits && !self.is_certain(id);
            // What could not be read may be had the next time, or not at all.
            let failed = look.trouble == Some(Trouble::Failed)
                && missing.is_none_or(|since| self.now.since(since) < MISSING_GRACE);
            let reads = look.state == ReaderState::Reading || waits || failed;
            look.open && (look.trouble.is_none() || failed) && (missing.is_none() || reads)
        })
    }

    /// Whether what begins as a source did, and has the same bytes before its cursor, is the same for certain.
    pub(super) fn is_certain(&self, id: SourceId) -> bool {
        let len = self.files.sources.get(id).map_or(0, |source| source.fingerprint.len);
        len >= self.files.input.settings.fingerprint.length
            || self.files.readers.look(id).is_some_and(|look| look.offset >= PROOF_BYTES)
    }

    /// The source that has its place at another name of this file.
    pub(super) fn other_name_of(&self, candidate: &Candidate) -> Option<SourceId> {
        let meta = &candidate.found.metadata;
        let ids = self.files.sources.index().with_inode((meta.device, meta.inode));
        ids.iter()
            .copied()
            .find(|&id| !self.files.is_displaced(id) && self.has_beginning_of(candidate, id))
    }

    /// Third pass: the same file or the same name, rewritten.
    pub(super) fn match_rewritten(
        &mut self,
        candidates: Vec<Candidate>,
        now: Now,
    ) -> Vec<Candidate> {
        let mut left = Vec::new();
        for candidate in candidates {
            // With rivals in their places it must be compared first.
            let alone =
                self.other_name_of(&candidate).is_none() && self.rivals(&candidate).is_empty();
            let rewritten = self.rewritten(&candidate).filter(|_| alone);
            match rewritten.filter(|id| !self.is_of_other_log(&candidate, *id)) {
                Some(id) => self.replace_rewritten(candidate, id, now),
                None => left.push(candidate),
            }
        }
        left
    }

    /// The source that lost its place to this file: it had its name or its inode, and its beginning.
    pub(super) fn rewritten(&self, candidate: &Candidate) -> Option<SourceId> {
        let meta = &candidate.found.metadata;
        let here = (meta.device, meta.inode);
        self.sources_like(candidate).into_iter().find(|&id| {
            self.files.is_displaced(id)
                && self.files.sources.get(id).is_some_and(|source| {
                    let same = source.path == candidate.path;
                    !source.former && (same || (source.device, source.inode) == here)
                })
        })
    }

    /// Sources that begin as this file does, the longest fingerprint first, its own path before others.
    pub(super) fn sources_like(&self, candidate: &Candidate) -> Vec<SourceId> {
        let usual = self.files.input.settings.fingerprint.length;
        let head = &candidate.head.bytes;
        let mut ids = Vec::new();
        let mut trace = Trace::new();
        for &len in self.files.sources.index().lengths.keys() {
            if len > usual || len as usize > head.len() {
                break;
            }
            // The fingerprint of all of it is made in any case; that of a part only if it may help.
            let is_known =
                len as usize == head.len() || self.files.sources.index().untraced > 0 || {
                    trace.extend(head, len as usize);
                    self.files.sources.index().prefixes.has(trace.number())
                };
            if is_known && let Some(print) = candidate.head.print_of_first(len) {
                ids.extend(self.files.sources.with_print(&print));
            }
        }
        // Only a file that shares the usual fingerprint can have a longer one.
        let mut longer = BTreeSet::new();
        if let Some(shared) = candidate.head.print_of_first(usual) {
            for id in self.files.sources.index().with_hash(&shared.hash) {
                let source =
                    self.files.sources.get(*id).filter(|source| source.has_hash(&shared.hash));
                let print = source.map(|source| source.fingerprint);
                longer.extend(print.filter(|print| !print.whole).map(|print| print.len));
            }
        }
        for len in longer.into_iter().filter(|len| *len > usual) {
            let print = self.files.probe.print_of(candidate, len);
            if let Ok(Some(print)) = print {
                ids.extend(self.files.sources.with_print(&print));
            }
        }
        let whole: BTreeSet<u32> = self.files.sources.index().whole.keys().copied().collect();
        for len in whole {
            let wanted = Fingerprint { hash: [0; 32], len, whole: true };
            let print = self.files.probe.print_like(candidate, &wanted);
            if let Ok(Some(print)) = print {
                ids.extend(self.files.sources.with_print(&print));
            }
        }
        if ids.iter().any(|&id| self.is_weak(id))
            && let Some(saved) = self.saved.proved_by_saved(&self.files, candidate)
        {
            let len = |id: &SourceId| {
                self.files.sources.get(*id).map_or(0, |source| source.fingerprint.len)
            };
            ids.retain(|id| len(id) >= saved || !self.is_weak(*id));
        }
        ids.sort_by_key(|id| {
            let source = self.files.sources.get(*id);
            let len = source.map_or(0, |source| source.fingerprint.len);
            let same_path = source.is_some_and(|source| source.path == candidate.path);
            (std::cmp::Reverse(len), !same_path)
        });
        ids
    }

    pub(super) fn has_beginning_of(&self, candidate: &Candidate, id: SourceId) -> bool {
        let Some(source) = self.files.sources.get(id) else { return false };
        // Of a longer fingerprint only the usual length is looked at; the inode and the bytes before the
        // cursor, which are checked besides, stand in for the rest.
        match &source.shared {
            Some(shared) => {
                let len = self.files.input.settings.fingerprint.length;
                candidate.head.matches(&Fingerprint { hash: **shared, len, whole: false })
            }
            None if source.fingerprint.whole => self
                .files
                .probe
                .print_like(candidate, &source.fingerprint)
                .is_ok_and(|print| print == Some(source.fingerprint)),
            None => candidate.head.matches(&source.fingerprint),
        }
    }

    /// Whether the names say that a file is what a source was: rotated from it, or from what the link of that name
    /// led to. A pin goes by the name of its file.
    pub(super) fn is_one_log(&self, source: &Path, path: &Path) -> bool {
        let (of_known, of_path) =
            (self.files.followed.shown(source), self.files.followed.shown(path));
        is_related(source, path)
            || is_related(of_known.as_deref().unwrap_or(source), of_path.as_deref().unwrap_or(path))
    }

    /// Whether nothing speaks against a file being this source: a plain one is as long as what was read,
    /// and has the same bytes before the cursor. A compressed one is checked by its reader.
    ///
    /// A short fingerprint proves little: many files begin with the same line. Then the inode must be the
    /// same, or the name that of a rotated file, or more must have been read, or the file was compared with the
    /// source when that had its place.
    pub(super) fn is_plausible(&self, candidate: &Candidate, id: SourceId) -> bool {
        let Some(look) = self.files.readers.look(id) else { return false };
        let Some(source) = self.files.sources.get(id) else { return false };
        let meta = &candidate.found.metadata;
        let same_inode = (source.device, source.inode) == (meta.device, meta.inode);
        let print = &source.fingerprint;
        if source.former
            && candidate.duplicate_of != Some(id)
            && !may_be_former(&candidate.path, &source.path, same_inode, look.offset, print)
        {
            return false;
        }
        let read_beyond = look.offset.saturating_sub(u64::from(source.fingerprint.len));
        if source.fingerprint.len < self.files.input.settings.fingerprint.length
            && read_beyond < PROOF_BYTES
            && !same_inode
            && !self.is_one_log(&source.path, &candidate.path)
            && candidate.duplicate_of != Some(id)
        {
            return false;
        }
        if candidate.head.compressed {
            let doubtful = self.is_shared(print);
            return !source.rejected.has(meta)
                && self.files.probe.compressed_fits(candidate, doubtful, look.offset, look.tail)
                    != Some(false);
        }
        self.files.probe.look_fits(candidate, &look)
    }

    /// Whether other files may begin with what this fingerprint covers, as far as is known: it is short, or as long
    /// as it takes to tell a file from those that were there, or several sources begin so.
    fn is_shared(&self, print: &Fingerprint) -> bool {
        print.whole
            || print.len != self.files.input.settings.fingerprint.length
            || self.files.sources.index().with_hash(&print.hash).len() > 1
    }
}

/// Whether two paths look like those of one file before and after a rotation: the same directory, and
/// the same name but for numbers, dates and `.gz` at the end.
pub(crate) fn is_related(one: &Path, other: &Path) -> bool {
    one.parent() == other.parent() && stem(one) == stem(other)
}

/// What a rotation has put behind the name of a file, without `.gz`.
pub(super) fn rotated_suffix(path: &Path) -> &[u8] {
    let name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
    let name = name.strip_suffix(b".gz").unwrap_or(name);
    let suffix = name.strip_prefix(stem(path)).unwrap_or_default();
    suffix.strip_prefix(b".").or(suffix.strip_prefix(b"-")).unwrap_or(suffix)
}

pub(super) fn stem(path: &Path) -> &[u8] {
    let mut name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
    name = name.strip_suffix(b".gz").unwrap_or(name);
    loop {
        let digits = name
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'T' | b':' | b'-' | b'_'))
            .count();
        let rest = &name[..name.len() - digits];
        match rest.strip_suffix(b".") {
            Some(rest) if digits > 0 => name = rest,
            _ if digits > 0 && !rest.is_empty() => return rest,
            _ => return name,
        }
    }
}
