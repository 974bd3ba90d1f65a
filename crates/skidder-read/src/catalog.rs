//! The catalog: which found file is which source.
//!
//! A name proves nothing. Each scan matches the files that are new or changed against the known sources,
//! best evidence first:
//!
//! 1. same inode, same beginning, same bytes before the cursor: the file it was, perhaps renamed;
//! 2. same beginning as a source whose file is gone from its place, and the same bytes before its cursor:
//!    the file was copied, moved or compressed, and is read on from the cursor;
//! 3. same inode and beginning, but shorter than what was read or with other bytes before the cursor: it
//!    was rewritten, a new generation from zero;
//! 4. same beginning as a source that is still in its place: compared to the end. What is the same is held
//!    back as a copy; what differs is a source of its own with a longer fingerprint;
//! 5. nothing of the kind: what the registry knows of it, or a new source.

use crate::compare::{Comparison, Longer, Side, Verdict, fingerprint_of};
use crate::fingerprint::{Fingerprint, Head, HeadError, read_head, read_up_to};
use crate::reader::{InputContext, Reader, Target};
use crate::readers::{ReaderLook, ReaderState, Readers, Trouble};
use crate::scan::Found;
use skidder_event::{SourceId, Tail};
use skidder_os::{FileKind, Metadata, Monotonic, Timestamp};
use skidder_registry::{Cursor, Meta};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long the state of a vanished file is kept: its compressed copy may appear a little later.
pub const MISSING_GRACE: Duration = Duration::from_mins(1);

/// Bytes that all comparisons of one scan may take together.
const COMPARE_BYTES_PER_SCAN: u64 = 64 << 20;

/// Names sources over all inputs of a process.
#[derive(Debug, Default)]
pub struct SourceIds(AtomicU64);

impl SourceIds {
    /// A name that no source had before.
    pub fn next(&self) -> SourceId {
        SourceId(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// All files of one input.
pub struct Catalog {
    input: Arc<InputContext>,
    readers: Arc<Readers>,
    ids: Arc<SourceIds>,
    places: HashMap<Arc<Path>, Place>,
    sources: HashMap<SourceId, Known>,
    index: Index,
    /// Saved entries whose fingerprints are shorter or longer than usual and that no source has yet.
    saved: Vec<SavedPrint>,
    scans: u64,
    started: Option<Monotonic>,
    swept: bool,
    scratch: Vec<u8>,
}

/// Sources by what they can be found with.
#[derive(Default)]
struct Index {
    by_print: HashMap<[u8; 32], Vec<SourceId>>,
    by_inode: HashMap<(u64, u64), Vec<SourceId>>,
    /// Lengths of fingerprints in use, with the number of sources.
    lengths: HashMap<u32, usize>,
}

/// A path as the last scan saw it.
struct Place {
    device: u64,
    inode: u64,
    size: u64,
    modified: Timestamp,
    scan: u64,
    holds: Holds,
    /// To be looked at again although it did not change.
    recheck: bool,
}

/// What is at a path.
enum Holds {
    Source(SourceId),
    /// The same content as another source, as far as is known.
    Twin(Box<Twin>),
    /// Nothing that can be read yet: too short, damaged, not permitted.
    Nothing,
}

struct Twin {
    of: SourceId,
    comparison: Option<Comparison>,
    told: bool,
}

struct Known {
    fingerprint: Fingerprint,
    key: String,
    path: Arc<Path>,
    device: u64,
    inode: u64,
    size: u64,
    compressed: bool,
    placed: bool,
    missing_since: Option<Monotonic>,
}

struct SavedPrint {
    fingerprint: Fingerprint,
    key: String,
    path: std::path::PathBuf,
}

/// A found file that must be matched, with its beginning.
struct Candidate {
    found: Found,
    path: Arc<Path>,
    head: Head,
    /// What the place held before.
    before: Option<Holds>,
}

/// Time as a scan needs it.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Wall clock, for `ignore_older`.
    pub wall: Timestamp,
    /// Monotonic clock, for everything else.
    pub monotonic: Monotonic,
}

/// Counts of one scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanSummary {
    /// Files that match.
    pub matched: usize,
    /// Files held back as copies of others.
    pub held: usize,
    /// Of those, files whose comparison goes on with the next scan.
    pub undecided: usize,
    /// Files with a source.
    pub sources: usize,
}

impl Catalog {
    /// An empty catalog.
    pub fn new(input: Arc<InputContext>, readers: Arc<Readers>, ids: Arc<SourceIds>) -> Self {
        Self {
            input,
            readers,
            ids,
            places: HashMap::new(),
            sources: HashMap::new(),
            index: Index::default(),
            saved: Vec::new(),
            scans: 0,
            started: None,
            swept: false,
            scratch: vec![0; 64 << 10],
        }
    }

    /// Takes in what a scan found. Starts, moves, restarts and forgets readers accordingly.
    pub fn apply(&mut self, found: Vec<Found>, now: Now) -> ScanSummary {
        self.scans += 1;
        if self.started.is_none() {
            self.started = Some(now.monotonic);
            self.load_saved();
        }
        self.recheck_troubled();
        let matched = found.len();
        let fresh = self.sort_out(found);
        self.drop_vanished();
        let mut candidates = self.read_heads(fresh);
        candidates = self.match_inodes(candidates);
        candidates.extend(self.awaken_twins());
        candidates = self.match_content(candidates);
        candidates = self.match_rewritten(candidates);
        let mut budget = COMPARE_BYTES_PER_SCAN;
        for candidate in candidates {
            self.match_others(candidate, now, &mut budget);
        }
        self.compare_twins(now, &mut budget);
        self.retire_missing(now.monotonic);
        self.sweep_registry(now);
        let (mut held, mut undecided) = (0, 0);
        for place in self.places.values() {
            if let Holds::Twin(twin) = &place.holds {
                held += 1;
                undecided += usize::from(twin.comparison.is_some());
            }
        }
        self.input.metrics.files_matched.set(matched as u64);
        self.input.metrics.files_held.set(held as u64);
        ScanSummary { matched, held, undecided, sources: self.sources.len() }
    }

    /// Remembers saved entries that cannot be found by the usual key.
    fn load_saved(&mut self) {
        let prefix = self.input.settings.key_prefix();
        let mut saved = Vec::new();
        let loaded = self.input.cursors.for_each_saved(&mut |key, entry| {
            if let Some(len) = entry.meta.fingerprint_len
                && let Some(hex) = key.strip_prefix(&prefix)
                && let Some(fingerprint) = Fingerprint::from_hex(hex, len)
            {
                let path = entry.meta.source.clone();
                saved.push(SavedPrint { fingerprint, key: key.to_owned(), path });
            }
        });
        if let Err(error) = loaded {
            tracing::error!(%error, "files that were short when they were saved are read from the start");
        }
        self.saved = saved;
    }

    /// Readers that met something unexpected have their places looked at again.
    fn recheck_troubled(&mut self) {
        for id in self.readers.take_troubled() {
            let Some(known) = self.sources.get(&id) else { continue };
            let trouble = self.readers.look(id).and_then(|look| look.trouble);
            if trouble != Some(Trouble::Damaged)
                && let Some(place) = self.places.get_mut(&known.path)
            {
                place.recheck = true;
            }
        }
    }

    /// Puts aside what has not changed since the last scan; what is left must be matched.
    fn sort_out(&mut self, found: Vec<Found>) -> Vec<Found> {
        let scan = self.scans;
        let mut fresh = Vec::new();
        for file in found {
            let meta = &file.metadata;
            if let Some(place) = self.places.get_mut(&*file.path) {
                place.scan = scan;
                let unchanged = (place.device, place.inode) == (meta.device, meta.inode)
                    && (place.size, place.modified) == (meta.size, meta.modified);
                if unchanged && !place.recheck {
                    continue;
                }
            }
            fresh.push(file);
        }
        fresh
    }

    /// Sources whose paths are gone lose their place.
    fn drop_vanished(&mut self) {
        let scan = self.scans;
        let sources = &mut self.sources;
        self.places.retain(|_, place| {
            if place.scan == scan {
                return true;
            }
            if let Holds::Source(id) = place.holds
                && let Some(known) = sources.get_mut(&id)
            {
                known.placed = false;
            }
            false
        });
    }

    /// Reads the beginning of each changed file; those that cannot be read now are put aside.
    fn read_heads(&mut self, fresh: Vec<Found>) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for found in fresh {
            let path: Arc<Path> = match self.places.get_key_value(&*found.path) {
                Some((path, _)) => Arc::clone(path),
                None => Arc::from(found.path.as_path()),
            };
            let before = self.places.remove(&path).map(|place| place.holds);
            if let Some(Holds::Source(id)) = before
                && let Some(known) = self.sources.get_mut(&id)
            {
                known.placed = false;
            }
            match self.head(&found) {
                Ok(Some(head)) => candidates.push(Candidate { found, path, head, before }),
                Ok(None) => self.put_place(path, &found, Holds::Nothing, false),
                Err(error) => {
                    if !matches!(before, Some(Holds::Nothing)) {
                        self.input.metrics.errors.add(1);
                        tracing::error!(path = %path.display(), %error,
                            "a file cannot be read; it is looked at again when it changes");
                    }
                    // What the system refused may be granted later without a change of the file.
                    let recheck = matches!(error, HeadError::Io(_));
                    self.put_place(path, &found, Holds::Nothing, recheck);
                }
            }
        }
        candidates
    }

    /// The beginning of a file; nothing while it is too short to be told from others.
    fn head(&mut self, found: &Found) -> Result<Option<Head>, HeadError> {
        let settings = &self.input.settings;
        if found.metadata.size == 0 {
            return Ok(None);
        }
        let file = match self.input.fs.open(&found.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let length = settings.fingerprint.length as usize;
        let head = read_head(
            &*file,
            settings.compression,
            &settings.fingerprint,
            length,
            &self.input.inflates,
            &mut self.scratch,
        )?;
        let enough = if settings.fingerprint.growing { 1 } else { length };
        Ok((head.bytes.len() >= enough).then_some(head))
    }

    /// First pass: the same inode with the same content.
    fn match_inodes(&mut self, candidates: Vec<Candidate>) -> Vec<Candidate> {
        let mut left = Vec::new();
        for candidate in candidates {
            let meta = &candidate.found.metadata;
            let ids = self.index.by_inode.get(&(meta.device, meta.inode));
            let ids = ids.cloned().unwrap_or_default();
            let same = ids.into_iter().find(|&id| {
                self.is_loose(id)
                    && self.begins_alike(&candidate, id)
                    && self.proves(&candidate, id)
            });
            match same {
                Some(id) => self.settle(candidate, id, false),
                None => left.push(candidate),
            }
        }
        left
    }

    /// Copies of a source that has lost its place may be where it goes on.
    fn awaken_twins(&mut self) -> Vec<Candidate> {
        let mut fresh = Vec::new();
        for (path, place) in &self.places {
            if let Holds::Twin(twin) = &place.holds
                && self.is_loose(twin.of)
            {
                fresh.push(Found { path: path.to_path_buf(), metadata: place.metadata() });
            }
        }
        self.read_heads(fresh)
    }

    /// Second pass: the content of a source that is no longer in its place.
    fn match_content(&mut self, candidates: Vec<Candidate>) -> Vec<Candidate> {
        let mut left = Vec::new();
        for candidate in candidates {
            let mut ids = self.alike(&candidate);
            ids.retain(|&id| self.is_loose(id) && self.proves(&candidate, id));
            match ids.first() {
                Some(&id) => self.settle(candidate, id, true),
                None => left.push(candidate),
            }
        }
        left
    }

    /// Third pass: the same file, rewritten.
    fn match_rewritten(&mut self, candidates: Vec<Candidate>) -> Vec<Candidate> {
        let mut left = Vec::new();
        for candidate in candidates {
            let loose: Vec<SourceId> =
                self.alike(&candidate).into_iter().filter(|&id| self.is_loose(id)).collect();
            let Some(&id) = loose.first() else {
                left.push(candidate);
                continue;
            };
            let Some(look) = self.readers.look(id) else { continue };
            if look.state == ReaderState::Reading && look.trouble.is_none() {
                // The old file is open and not yet read to its end; it comes first.
                let Candidate { found, path, before, .. } = candidate;
                let holds = before.filter(|holds| !matches!(holds, Holds::Source(_)));
                self.put_place(path, &found, holds.unwrap_or(Holds::Nothing), true);
                continue;
            }
            let generation = look.generation + 1;
            self.input.metrics.files_truncated.add(1);
            tracing::info!(path = %candidate.path.display(), generation, read = look.offset,
                size = candidate.found.metadata.size,
                "a file was truncated or rewritten; reading it from the start");
            self.input.cursors.restart(id, generation);
            self.readers.restart(id, generation);
            self.settle(candidate, id, true);
        }
        left
    }

    /// Last passes: a copy of what is elsewhere, something the registry knows, or something new.
    fn match_others(&mut self, candidate: Candidate, now: Now, budget: &mut u64) {
        let meta = &candidate.found.metadata;
        if let Some(ids) = self.index.by_inode.get(&(meta.device, meta.inode))
            && let Some(&of) = ids.iter().find(|&&id| self.begins_alike(&candidate, id))
        {
            // Another name of the same file.
            let twin = Twin { of, comparison: None, told: false };
            self.hold(candidate.path, &candidate.found, twin);
            return;
        }
        let Some(&of) = self.alike(&candidate).first() else {
            self.begin(candidate, None, now);
            return;
        };
        match self.compare(&candidate, of) {
            Ok(comparison) => {
                let twin = Twin { of, comparison: Some(comparison), told: false };
                self.judge(candidate.path, candidate.found, candidate.head, twin, now, budget);
            }
            Err(error) => {
                tracing::warn!(path = %candidate.path.display(), %error,
                    "a file cannot be compared with another that begins alike; trying again");
                self.put_place(candidate.path, &candidate.found, Holds::Nothing, true);
            }
        }
    }

    /// Goes on with a comparison and acts on its outcome.
    fn judge(
        &mut self,
        path: Arc<Path>,
        found: Found,
        head: Head,
        mut twin: Twin,
        now: Now,
        budget: &mut u64,
    ) {
        let Some(mut comparison) = twin.comparison.take() else {
            self.hold(path, &found, twin);
            return;
        };
        let differs_at = match comparison.step(&mut self.scratch, budget) {
            Ok(Verdict::Undecided) => {
                twin.comparison = Some(comparison);
                self.hold(path, &found, twin);
                return;
            }
            // Shorter than the other: being copied, or compressed just now.
            Ok(Verdict::Same | Verdict::Differ { longer: Some(Longer::Other), .. }) => {
                self.hold(path, &found, twin);
                return;
            }
            Ok(Verdict::Differ { at, .. }) => at,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error,
                    "a file cannot be compared with another that begins alike; trying again");
                self.put_place(path, &found, Holds::Nothing, true);
                return;
            }
        };
        let candidate = Candidate { found, path, head, before: None };
        self.begin(candidate, Some(differs_at), now);
    }

    /// Goes on with the comparisons that were not decided in one scan.
    fn compare_twins(&mut self, now: Now, budget: &mut u64) {
        let undecided: Vec<Arc<Path>> = self
            .places
            .iter()
            .filter(
                |(_, place)| matches!(&place.holds, Holds::Twin(twin) if twin.comparison.is_some()),
            )
            .map(|(path, _)| Arc::clone(path))
            .collect();
        for path in undecided {
            if *budget == 0 {
                return;
            }
            let Some(place) = self.places.remove(&path) else { continue };
            let metadata = place.metadata();
            let found = Found { path: path.to_path_buf(), metadata };
            let Holds::Twin(twin) = place.holds else { continue };
            match self.head(&found) {
                Ok(Some(head)) => self.judge(path, found, head, *twin, now, budget),
                _ => self.put_place(path, &found, Holds::Nothing, true),
            }
        }
    }

    fn compare(&self, candidate: &Candidate, of: SourceId) -> io::Result<Comparison> {
        let known = self.sources.get(&of).ok_or(io::ErrorKind::NotFound)?;
        let fs = &self.input.fs;
        let pool = &self.input.inflates;
        let one = Side::new(fs.open(&candidate.path)?, candidate.head.compressed, pool);
        let other = Side::new(fs.open(&known.path)?, known.compressed, pool);
        Ok(Comparison::new(one, other))
    }

    fn hold(&mut self, path: Arc<Path>, found: &Found, mut twin: Twin) {
        if twin.comparison.is_none() && !twin.told {
            twin.told = true;
            if let Some(known) = self.sources.get(&twin.of) {
                tracing::info!(path = %path.display(), same_as = %known.path.display(),
                    "a file has the same content as another and is not read twice");
            }
        }
        self.put_place(path, found, Holds::Twin(Box::new(twin)), false);
    }

    /// A found file is a source that is known.
    fn settle(&mut self, candidate: Candidate, id: SourceId, reopen: bool) {
        let Candidate { found, path, head, .. } = candidate;
        let look = self.readers.look(id);
        let settings = &self.input.settings;
        let Some(known) = self.sources.get_mut(&id) else { return };
        let meta = &found.metadata;
        let moved = known.path != path;
        let rewritten = (known.device, known.inode) != (meta.device, meta.inode);
        if moved {
            self.input.metrics.files_renamed.add(1);
            tracing::debug!(from = %known.path.display(), to = %path.display(), "a file was renamed");
        }
        let usual = settings.fingerprint.length;
        let grown =
            known.fingerprint.len < usual && head.bytes.len() as u32 > known.fingerprint.len;
        self.index.remove(id, known);
        if grown {
            known.fingerprint = Fingerprint::of(&head.bytes);
            known.key = format!("{}{}", settings.key_prefix(), known.fingerprint.hex());
        }
        let changed = known.size != meta.size || rewritten;
        known.path = Arc::clone(&path);
        (known.device, known.inode, known.size) = (meta.device, meta.inode, meta.size);
        known.compressed = head.compressed;
        known.placed = true;
        known.missing_since = None;
        self.index.insert(id, known);
        if moved || rewritten || grown {
            let meta = known.meta(usual);
            self.input.cursors.update(id, &known.key, meta);
            let target = known.target(usual);
            self.readers.place(id, target, known.key.clone(), reopen && rewritten);
        }
        let unread = look.is_some_and(|look| {
            if head.compressed {
                !look.finished || changed || look.trouble.is_some()
            } else {
                meta.size > look.offset || look.trouble.is_some()
            }
        });
        if unread {
            self.readers.wake(id);
        }
        self.put_place(path, &found, Holds::Source(id), false);
    }

    /// A found file becomes a source: one that the registry knows, or a new one. `differs_at` is the first
    /// byte in which it differs from another source that begins alike.
    fn begin(&mut self, candidate: Candidate, differs_at: Option<u64>, now: Now) {
        let fingerprint = match self.fingerprint(&candidate, differs_at) {
            Ok(fingerprint) => fingerprint,
            Err(error) => {
                tracing::error!(path = %candidate.path.display(), %error,
                    "a file cannot be read; trying again with the next scan");
                self.put_place(candidate.path, &candidate.found, Holds::Nothing, true);
                return;
            }
        };
        let prefix = self.input.settings.key_prefix();
        let (key, cursor) = match self.saved_state(&candidate, &fingerprint, &prefix) {
            Ok(saved) => saved,
            Err(error) => {
                tracing::error!(path = %candidate.path.display(), %error,
                    "the state of a file cannot be had; trying again with the next scan");
                self.put_place(candidate.path, &candidate.found, Holds::Nothing, true);
                return;
            }
        };
        let Candidate { found, path, head, .. } = candidate;
        let id = self.ids.next();
        let meta = &found.metadata;
        let known = Known {
            fingerprint,
            key: format!("{prefix}{}", fingerprint.hex()),
            path: Arc::clone(&path),
            device: meta.device,
            inode: meta.inode,
            size: meta.size,
            compressed: head.compressed,
            placed: true,
            missing_since: None,
        };
        let usual = self.input.settings.fingerprint.length;
        let ignored = self.is_too_old(meta.modified, now.wall);
        let is_new = cursor.is_none();
        let mut cursor = cursor.unwrap_or_default();
        if ignored && is_new && !head.compressed {
            cursor.offset = meta.size;
        }
        if let Some(old) = key.filter(|old| *old != known.key) {
            // Saved under the shorter fingerprint that the file had then.
            self.input.cursors.forget_saved(vec![old]);
        }
        self.input.cursors.begin(id, &known.key, known.meta(usual), cursor, true);
        let tail = cursor.tail.map(|tail| Tail { len: tail.len, crc: tail.crc });
        let mut reader = Reader::new(
            id,
            known.key.clone(),
            cursor.generation,
            known.target(usual),
            cursor.offset,
            tail,
        );
        reader.finished = cursor.eof;
        self.readers.add(&self.input, reader);
        let unread = if head.compressed { !cursor.eof } else { meta.size > cursor.offset };
        if unread && !ignored {
            self.readers.wake(id);
        }
        self.index.insert(id, &known);
        self.sources.insert(id, known);
        self.put_place(path, &found, Holds::Source(id), false);
    }

    /// The fingerprint of a new source: the usual one, or as long as it takes to differ from another.
    fn fingerprint(
        &mut self,
        candidate: &Candidate,
        differs_at: Option<u64>,
    ) -> io::Result<Fingerprint> {
        let settings = &self.input.settings.fingerprint;
        let have = candidate.head.bytes.len() as u64;
        let needed = differs_at.map_or(0, |at| (at + 1).saturating_sub(settings.offset));
        if needed <= have {
            return Ok(Fingerprint::of(&candidate.head.bytes));
        }
        let len = u32::try_from(needed).unwrap_or(u32::MAX);
        let print = self.print_of(&candidate.path, candidate.head.compressed, len)?;
        print.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// The key under which a file was saved, and its cursor if it still proves right.
    fn saved_state(
        &mut self,
        candidate: &Candidate,
        fingerprint: &Fingerprint,
        prefix: &str,
    ) -> Result<(Option<String>, Option<Cursor>), crate::cursors::CursorsError> {
        let mut key = format!("{prefix}{}", fingerprint.hex());
        let odd = self.saved_print(candidate);
        if let Some(at) = odd {
            key = self.saved.swap_remove(at).key;
        }
        let Some(entry) = self.input.cursors.saved(&key)? else { return Ok((None, None)) };
        let mut cursor = entry.cursor;
        let meta = &candidate.found.metadata;
        let same_file = (entry.meta.device, entry.meta.inode) == (meta.device, meta.inode);
        let short = entry
            .meta
            .fingerprint_len
            .is_some_and(|len| len < self.input.settings.fingerprint.length);
        if short && !same_file && !is_related(&entry.meta.source, &candidate.path) {
            // Another file with the same few bytes.
            let generation = cursor.generation + 1;
            let cursor = Cursor { generation, ..Cursor::default() };
            return Ok((Some(key), Some(cursor)));
        }
        let size = candidate.found.metadata.size;
        let tail = cursor.tail.map(|tail| Tail { len: tail.len, crc: tail.crc });
        if !candidate.head.compressed && !self.tail_fits(&candidate.path, size, cursor.offset, tail)
        {
            tracing::info!(path = %candidate.path.display(), read = cursor.offset, size,
                "a file was truncated or rewritten while skidder was not running; reading it from \
                 the start");
            cursor =
                Cursor { offset: 0, generation: cursor.generation + 1, eof: false, tail: None };
        }
        // A cursor at the verified end of a compressed file says nothing about a plain one, and a file
        // that was found compressed only now must be looked at to its end once.
        cursor.eof &= candidate.head.compressed && same_file;
        Ok((Some(key), Some(cursor)))
    }

    /// The saved entry with an unusual fingerprint that fits, the longest one.
    fn saved_print(&mut self, candidate: &Candidate) -> Option<usize> {
        let mut best: Option<(u32, usize)> = None;
        // Prefixes of the beginning are hashed once for each length.
        let mut hashes: HashMap<u32, Option<Fingerprint>> = HashMap::new();
        for at in 0..self.saved.len() {
            let print = self.saved[at].fingerprint;
            let same_path = self.saved[at].path == *candidate.path;
            let short = print.len as usize <= candidate.head.bytes.len();
            let usual = self.input.settings.fingerprint.length;
            if print.len < usual && !same_path && !is_related(&self.saved[at].path, &candidate.path)
            {
                continue;
            }
            let of_file = match hashes.get(&print.len) {
                Some(hash) => *hash,
                None => {
                    let hash = if short {
                        let len = print.len as usize;
                        Some(Fingerprint::of(&candidate.head.bytes[..len]))
                    } else {
                        self.print_of(&candidate.path, candidate.head.compressed, print.len)
                            .ok()
                            .flatten()
                    };
                    hashes.insert(print.len, hash);
                    hash
                }
            };
            if of_file == Some(print) && best.is_none_or(|(len, _)| print.len > len) {
                best = Some((print.len, at));
            }
        }
        best.map(|(_, at)| at)
    }

    fn print_of(
        &mut self,
        path: &Path,
        compressed: bool,
        len: u32,
    ) -> io::Result<Option<Fingerprint>> {
        let file = self.input.fs.open(path)?;
        let side = Side::new(file, compressed, &self.input.inflates);
        fingerprint_of(side, self.input.settings.fingerprint.offset, len, &mut self.scratch)
    }

    /// Sources that begin as this file does, the longest fingerprint first, its own path before others.
    fn alike(&mut self, candidate: &Candidate) -> Vec<SourceId> {
        let lengths: BTreeSet<u32> = self.index.lengths.keys().copied().collect();
        let mut ids = Vec::new();
        let mut usual = false;
        for len in lengths {
            let print = if len as usize <= candidate.head.bytes.len() {
                Fingerprint::of(&candidate.head.bytes[..len as usize])
            } else if usual {
                // Only a file that shares the usual fingerprint can have a longer one.
                match self.print_of(&candidate.path, candidate.head.compressed, len) {
                    Ok(Some(print)) => print,
                    _ => continue,
                }
            } else {
                continue;
            };
            let with_print = self.index.by_print.get(&print.hash);
            let same = with_print.into_iter().flatten().copied().filter(|id| {
                self.sources.get(id).is_some_and(|known| known.fingerprint.len == len)
            });
            let before = ids.len();
            ids.extend(same);
            usual |= ids.len() > before && len == self.input.settings.fingerprint.length;
        }
        ids.sort_by_key(|id| {
            let known = self.sources.get(id);
            let len = known.map_or(0, |known| known.fingerprint.len);
            let same_path = known.is_some_and(|known| known.path == candidate.path);
            (std::cmp::Reverse(len), !same_path)
        });
        ids
    }

    fn begins_alike(&self, candidate: &Candidate, id: SourceId) -> bool {
        let Some(known) = self.sources.get(&id) else { return false };
        let usual = self.input.settings.fingerprint.length;
        // A longer fingerprint begins with the usual one; the inode and the bytes before the cursor,
        // which are checked besides, stand in for the rest.
        known.fingerprint.len > usual || candidate.head.matches(&known.fingerprint)
    }

    fn is_loose(&self, id: SourceId) -> bool {
        self.sources.get(&id).is_some_and(|known| !known.placed)
    }

    /// Whether nothing speaks against a file being this source: a plain one is as long as what was read,
    /// and has the same bytes before the cursor. A compressed one is checked by its reader.
    ///
    /// A short fingerprint proves little: many files begin with the same line. Then the inode must be the
    /// same, or the name that of a rotated file.
    fn proves(&self, candidate: &Candidate, id: SourceId) -> bool {
        let Some(look) = self.readers.look(id) else { return false };
        let Some(known) = self.sources.get(&id) else { return false };
        let meta = &candidate.found.metadata;
        if known.fingerprint.len < self.input.settings.fingerprint.length
            && (known.device, known.inode) != (meta.device, meta.inode)
            && !is_related(&known.path, &candidate.path)
        {
            return false;
        }
        if candidate.head.compressed {
            return look.trouble != Some(Trouble::Rewritten);
        }
        self.look_fits(candidate, &look)
    }

    fn look_fits(&self, candidate: &Candidate, look: &ReaderLook) -> bool {
        self.tail_fits(&candidate.path, candidate.found.metadata.size, look.offset, look.tail)
    }

    fn tail_fits(&self, path: &Path, size: u64, offset: u64, tail: Option<Tail>) -> bool {
        if size < offset {
            return false;
        }
        let Some(tail) = tail else { return true };
        let mut bytes = vec![0; tail.len as usize];
        let start = offset.saturating_sub(u64::from(tail.len));
        let read = self.input.fs.open(path).and_then(|file| read_up_to(&*file, &mut bytes, start));
        // An error is not a proof of anything; the reader will meet it.
        read.map_or(true, |count| count == bytes.len() && crc32fast::hash(&bytes) == tail.crc)
    }

    fn is_too_old(&self, modified: Timestamp, now: Timestamp) -> bool {
        self.input.settings.ignore_older.is_some_and(|limit| now.since(modified) > limit)
    }

    fn put_place(&mut self, path: Arc<Path>, found: &Found, holds: Holds, recheck: bool) {
        let meta = &found.metadata;
        let place = Place {
            device: meta.device,
            inode: meta.inode,
            size: meta.size,
            modified: meta.modified,
            scan: self.scans,
            holds,
            recheck,
        };
        self.places.insert(path, place);
    }

    /// Sources without a place are read to the end if they are open, and forgotten after a while.
    fn retire_missing(&mut self, now: Monotonic) {
        let mut gone = Vec::new();
        for (&id, known) in &mut self.sources {
            if known.placed {
                continue;
            }
            if known.missing_since.is_none() {
                known.missing_since = Some(now);
                self.readers.wake_if_open(id);
            }
            let Some(since) = known.missing_since else { continue };
            let Some(look) = self.readers.look(id) else { continue };
            let over = now.since(since) >= MISSING_GRACE;
            if over
                && self.input.settings.clean_removed
                && look.state == ReaderState::Closed
                && self.input.cursors.is_settled(id)
            {
                gone.push((id, look));
            }
        }
        for (id, look) in gone {
            let Some(known) = self.sources.remove(&id) else { continue };
            self.index.remove(id, &known);
            self.release_twins_of(id);
            let unread = if known.compressed { !look.finished } else { look.offset < known.size };
            if unread {
                self.input.metrics.files_lost.add(1);
                tracing::warn!(path = %known.path.display(), read = look.offset, size = known.size,
                    "a file vanished before it was read to the end");
            }
            self.readers.remove(id);
            self.input.cursors.remove(id);
        }
    }

    /// Copies of a source that is gone are looked at again.
    fn release_twins_of(&mut self, id: SourceId) {
        for place in self.places.values_mut() {
            if matches!(&place.holds, Holds::Twin(twin) if twin.of == id) {
                place.recheck = true;
            }
        }
    }

    /// Once, a while after the start: entries of files that are no longer there are forgotten; and, with
    /// `clean_inactive`, entries that nobody updated for so long.
    fn sweep_registry(&mut self, now: Now) {
        let settings = &self.input.settings;
        let due = self.started.is_some_and(|at| now.monotonic.since(at) >= MISSING_GRACE);
        if self.swept || !due {
            return;
        }
        self.swept = true;
        let prefix = settings.key_prefix();
        let mut stale = Vec::new();
        let known: std::collections::HashSet<&str> =
            self.sources.values().map(|known| known.key.as_str()).collect();
        let swept = self.input.cursors.for_each_saved(&mut |key, entry| {
            if !key.starts_with(&prefix) || known.contains(key) {
                return;
            }
            let inactive =
                settings.clean_inactive.is_some_and(|limit| now.wall.since(entry.updated) > limit);
            if inactive || settings.clean_removed {
                stale.push((key.to_owned(), entry.meta.source.clone(), inactive));
            }
        });
        if let Err(error) = swept {
            tracing::warn!(%error, "the registry cannot be swept of files that are gone");
            return;
        }
        stale.retain(|(_, path, inactive)| {
            *inactive
                || self
                    .input
                    .fs
                    .symlink_metadata(path)
                    .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        });
        if !stale.is_empty() {
            tracing::info!(entries = stale.len(), "forgetting files that are gone");
            let keys = stale.into_iter().map(|(key, _, _)| key).collect();
            self.input.cursors.forget_saved(keys);
        }
    }
}

impl Place {
    /// As much of the metadata as is remembered.
    fn metadata(&self) -> Metadata {
        Metadata {
            kind: FileKind::Regular,
            size: self.size,
            modified: self.modified,
            device: self.device,
            inode: self.inode,
            links: 1,
            mode: 0,
            uid: 0,
            gid: 0,
        }
    }
}

impl Index {
    fn insert(&mut self, id: SourceId, known: &Known) {
        self.by_print.entry(known.fingerprint.hash).or_default().push(id);
        self.by_inode.entry((known.device, known.inode)).or_default().push(id);
        *self.lengths.entry(known.fingerprint.len).or_default() += 1;
    }

    fn remove(&mut self, id: SourceId, known: &Known) {
        forget(&mut self.by_print, &known.fingerprint.hash, id);
        forget(&mut self.by_inode, &(known.device, known.inode), id);
        if let Some(count) = self.lengths.get_mut(&known.fingerprint.len) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&known.fingerprint.len);
            }
        }
    }
}

/// Whether two paths look like those of one file before and after a rotation: the same directory, and
/// the same name but for numbers, dates and `.gz` at the end.
fn is_related(one: &Path, other: &Path) -> bool {
    one.parent() == other.parent() && stem(one) == stem(other)
}

fn stem(path: &Path) -> &[u8] {
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

fn forget<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Vec<SourceId>>, key: &K, id: SourceId) {
    if let Some(ids) = map.get_mut(key) {
        ids.retain(|have| *have != id);
        if ids.is_empty() {
            map.remove(key);
        }
    }
}

impl Known {
    fn meta(&self, usual: u32) -> Meta {
        Meta {
            source: self.path.to_path_buf(),
            identifier_name: "fingerprint".to_owned(),
            fingerprint_len: (self.fingerprint.len != usual).then_some(self.fingerprint.len),
            device: self.device,
            inode: self.inode,
        }
    }

    fn target(&self, usual: u32) -> Target {
        let complete = self.fingerprint.len >= usual;
        Target {
            path: Arc::clone(&self.path),
            device: self.device,
            inode: self.inode,
            compressed: self.compressed,
            fingerprint: complete.then(|| Arc::from(self.fingerprint.hex())),
        }
    }
}
