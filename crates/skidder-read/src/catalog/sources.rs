//! The sources of an input, and what each can be found with.
//!
//! Only this module changes a source, so that the indices are always right.

use super::SourceIds;
use super::index::Index;
use super::prefixes::Trace;
use super::rejected::RejectedFiles;
use crate::fingerprint::Fingerprint;
use crate::reader::{ShownPrint, Target};
use crate::settings::FilestreamSettings;
use foldhash::HashMap;
use skidder_event::SourceId;
use skidder_os::{FileId, Metadata, Monotonic};
use skidder_registry::Meta;
use std::path::Path;
use std::sync::Arc;

/// The known sources.
pub(super) struct Sources {
    /// Boxed: the map of an input with one file has room for four.
    all: HashMap<SourceId, Box<Source>>,
    index: Index,
    /// By their keys, if files are identified by name.
    by_key: Option<HashMap<Arc<str>, SourceId>>,
    /// Sources that lost their places in this scan, or reaction, in that order.
    displaced: Vec<SourceId>,
    ids: Arc<SourceIds>,
    /// The number of the input.
    input: usize,
    /// Name of the file identity, for registry entries.
    identity: Arc<str>,
    /// Usual length of a fingerprint, in bytes.
    usual: u32,
}

/// A file whose content is read once, wherever it is.
pub(super) struct Source {
    pub(super) fingerprint: Fingerprint,
    /// The hash of the usual length, which another source shares, if the fingerprint is longer than usual.
    pub(super) shared: Option<Box<[u8; 32]>>,
    /// A cheap hash of the bytes of a fingerprint that is not longer than usual, if it is known.
    pub(super) trace: Option<u64>,
    /// In the registry; shared with the reader and the settle.
    pub(super) key: Arc<str>,
    pub(super) path: Arc<Path>,
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) compressed: bool,
    /// Its file was rewritten: the new content has its place and its key.
    pub(super) former: bool,
    /// Where it ended when it was saved, if it is looked at once more nevertheless: a compressed file.
    pub(super) ended_at: Option<u64>,
    /// Compressed files that its reader found to hold something else.
    pub(super) rejected: RejectedFiles,
    /// Its reader and its registry entry do not have `path` yet.
    pub(super) unpublished: bool,
    /// Its file is at `path`.
    pub(super) placed: bool,
    /// Some of it was skipped because the file was ignored when it was found.
    pub(super) skipped: bool,
    /// It was skipped because it was rotated away too long before the first look.
    pub(super) rotated_before: bool,
    /// When it was found to have no place.
    pub(super) missing_since: Option<Monotonic>,
}

/// How a file is identified by its content from now on.
pub(super) struct Identity {
    fingerprint: Fingerprint,
    shared: Option<Box<[u8; 32]>>,
    trace: Option<u64>,
}

impl Identity {
    /// `head` is the beginning of the file, `usual` the usual length of a fingerprint.
    pub(super) fn new(fingerprint: Fingerprint, head: &[u8], usual: u32) -> Self {
        let unusual = fingerprint.len > usual || fingerprint.whole;
        let shared = head.get(..usual as usize).filter(|_| unusual);
        let shared = shared.map(|head| Box::new(Fingerprint::of(head).hash));
        // Nothing looks for the others by it.
        let trace = if fingerprint.whole || fingerprint.len >= usual {
            Some(0)
        } else {
            head.get(..fingerprint.len as usize).map(Trace::of)
        };
        Self { fingerprint, shared, trace }
    }
}

/// A file in which a source was found.
pub(super) struct SourceFile {
    pub(super) path: Arc<Path>,
    pub(super) metadata: Metadata,
    pub(super) compressed: bool,
}

/// What changed when a source was found in a file.
pub(super) struct Relocation {
    /// It was at another path before.
    pub(super) from: Option<Arc<Path>>,
    /// It has another inode.
    pub(super) rewritten: bool,
    /// It has another inode, or another size.
    pub(super) changed: bool,
    /// Its reader and its registry entry must get the new state.
    pub(super) unpublished: bool,
}

impl Source {
    /// A source that was just found in `file`.
    pub(super) fn new(identity: Identity, key: Arc<str>, file: SourceFile, skipped: bool) -> Self {
        let SourceFile { path, metadata, compressed } = file;
        Self {
            fingerprint: identity.fingerprint,
            shared: identity.shared,
            trace: identity.trace,
            key,
            path,
            device: metadata.device,
            inode: metadata.inode,
            size: metadata.size,
            compressed,
            former: false,
            ended_at: None,
            rejected: RejectedFiles::default(),
            unpublished: false,
            placed: true,
            skipped,
            rotated_before: false,
            missing_since: None,
        }
    }

    pub(super) fn file_id(&self) -> FileId {
        FileId { device: self.device, inode: self.inode }
    }

    /// Whether its fingerprint, or the usual length of a longer one, has this hash.
    pub(super) fn has_hash(&self, hash: &[u8; 32]) -> bool {
        self.fingerprint.hash == *hash || self.shared.as_deref() == Some(hash)
    }

    /// What its reader opens; `shown` is the path that its events carry, if that is another.
    pub(super) fn target(&self, usual: u32, shown: Option<Arc<Path>>) -> Target {
        let is_complete = self.fingerprint.len >= usual;
        Target {
            path: Arc::clone(&self.path),
            shown,
            device: self.device,
            inode: self.inode,
            compressed: self.compressed,
            print: self.fingerprint,
            shown_print: if is_complete { ShownPrint::OfTarget } else { ShownPrint::None },
        }
    }
}

impl Sources {
    pub(super) fn new(ids: Arc<SourceIds>, settings: &FilestreamSettings) -> Self {
        Self {
            all: HashMap::default(),
            index: Index::default(),
            by_key: (!settings.identity.is_content()).then(HashMap::default),
            displaced: Vec::new(),
            ids,
            input: 0,
            identity: Arc::from(settings.identity.name()),
            usual: settings.fingerprint.length,
        }
    }

    /// Sets the number of the input, which is part of the ids of its sources.
    pub(super) fn set_input(&mut self, number: usize) {
        self.input = number;
    }

    /// A scan, or a reaction, begins.
    pub(super) fn begin_scan(&mut self) {
        self.displaced.clear();
    }

    /// Makes room for this many more sources.
    pub(super) fn reserve(&mut self, sources: usize) {
        self.all.reserve(sources);
        self.index.reserve(sources);
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, id: SourceId) -> Option<&Source> {
        self.all.get(&id).map(|source| &**source)
    }

    pub(super) fn contains(&self, id: SourceId) -> bool {
        self.all.contains_key(&id)
    }

    /// All sources, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SourceId, &Source)> {
        self.all.iter().map(|(id, source)| (*id, &**source))
    }

    /// The ids of all sources, in order: the simulated world replays the operations on the disk.
    pub(super) fn ids_in_order(&self) -> Vec<SourceId> {
        let mut ids: Vec<SourceId> = self.all.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    /// Sources with exactly this fingerprint, and the key that goes with it.
    pub(super) fn holders(&self, print: &Fingerprint) -> Vec<SourceId> {
        let mut ids = self.with_print(print);
        ids.retain(|id| self.get(*id).is_some_and(|source| !source.former));
        ids
    }

    /// Sources with exactly this fingerprint, including former ones.
    pub(super) fn with_print(&self, print: &Fingerprint) -> Vec<SourceId> {
        let ids = self.index.with_hash(&print.hash).iter().copied();
        ids.filter(|id| self.get(*id).is_some_and(|source| source.fingerprint == *print)).collect()
    }

    /// Whether the fingerprint of a source, or the usual length of a longer one, has this hash.
    pub(super) fn has_hash(&self, id: SourceId, hash: &[u8; 32]) -> bool {
        self.get(id).is_some_and(|source| source.has_hash(hash))
    }

    /// The source with this key, if files are identified by name.
    pub(super) fn with_key(&self, key: &str) -> Option<SourceId> {
        self.by_key.as_ref()?.get(key).copied()
    }

    /// Whether a former source has this key.
    pub(super) fn is_former_key(&self, key: &str) -> bool {
        self.all.values().any(|source| source.former && *source.key == *key)
    }

    /// Whether a source is known and its file is not in its place.
    pub(super) fn is_displaced(&self, id: SourceId) -> bool {
        self.get(id).is_some_and(|source| !source.placed)
    }

    /// Whether the file of any source is not in its place.
    pub(super) fn has_displaced(&self) -> bool {
        self.all.values().any(|source| !source.placed)
    }

    /// The registry entry of a source; `path` is the path that it names.
    pub(super) fn meta(&self, source: &Source, path: Arc<Path>) -> Meta {
        let len = source.fingerprint.len;
        let is_unusual = len != self.usual || source.fingerprint.whole;
        Meta {
            source: path,
            identifier_name: Arc::clone(&self.identity),
            fingerprint_len: (self.by_key.is_none() && is_unusual)
                .then(|| source.fingerprint.saved_len()),
            device: source.device,
            inode: source.inode,
        }
    }

    /// An id that no source had before.
    pub(super) fn next_id(&self) -> SourceId {
        self.ids.next(self.input)
    }

    /// Claims a key for a source, which an input with the same keys may have. Returns whether the source has it now.
    pub(super) fn claim_key(&self, key: &str, id: SourceId) -> bool {
        self.ids.claim(key, id)
    }

    pub(super) fn add(&mut self, id: SourceId, source: Source) {
        self.index.insert(id, &source);
        if let Some(by_key) = &mut self.by_key {
            by_key.insert(Arc::clone(&source.key), id);
        }
        self.all.insert(id, Box::new(source));
    }

    /// Removes a source and releases its key.
    pub(super) fn remove(&mut self, id: SourceId) -> Option<Source> {
        let source = self.all.remove(&id)?;
        self.index.remove(id, &source);
        if let Some(by_key) = &mut self.by_key {
            by_key.remove(&source.key);
        }
        self.ids.release(&source.key, id);
        Some(*source)
    }

    /// A source was found in a file, with a `grown` fingerprint, and its key if that changes with it, or the one it had.
    pub(super) fn relocate(
        &mut self,
        id: SourceId,
        file: SourceFile,
        grown: Option<(Identity, Option<Arc<str>>)>,
    ) -> Option<Relocation> {
        let source = self.all.get_mut(&id)?;
        self.index.remove(id, source);
        let has_grown = grown.is_some();
        if let Some((identity, key)) = grown {
            source.fingerprint = identity.fingerprint;
            source.shared = identity.shared;
            source.trace = identity.trace;
            source.former = false;
            if let Some(key) = key {
                self.ids.release(&source.key, id);
                source.key = key;
            }
        }
        let meta = &file.metadata;
        let rewritten = source.file_id() != meta.id();
        let changed = source.size != meta.size || rewritten;
        let from = (source.path != file.path).then(|| Arc::clone(&source.path));
        source.path = file.path;
        (source.device, source.inode, source.size) = (meta.device, meta.inode, meta.size);
        source.compressed = file.compressed;
        source.placed = true;
        source.missing_since = None;
        self.index.insert(id, source);
        let was_unpublished = std::mem::take(&mut source.unpublished);
        let unpublished = was_unpublished || from.is_some() || rewritten || has_grown;
        Some(Relocation { from, rewritten, changed, unpublished })
    }

    /// The file of a source is not in its place any more.
    pub(super) fn displace(&mut self, id: SourceId) {
        if let Some(source) = self.all.get_mut(&id) {
            source.placed = false;
            self.displaced.push(id);
        }
    }

    /// Sources that were displaced since the scan began.
    pub(super) fn take_displaced(&mut self) -> Vec<SourceId> {
        std::mem::take(&mut self.displaced)
    }

    /// A source loses its key and its place to what is in its file now.
    pub(super) fn make_former(&mut self, id: SourceId, key: Arc<str>) {
        let Some(source) = self.all.get_mut(&id) else { return };
        self.index.remove(id, source);
        self.ids.release(&source.key, id);
        source.key = key;
        source.former = true;
        self.index.insert(id, source);
        self.displace(id);
    }

    /// The inode of a source belongs to other content now.
    pub(super) fn clear_inode(&mut self, id: SourceId) {
        let Some(source) = self.all.get_mut(&id) else { return };
        self.index.remove(id, source);
        (source.device, source.inode) = (0, 0);
        self.index.insert(id, source);
    }

    /// The file of a source has changed: where it ended before is not its end any more.
    pub(super) fn forget_end(&mut self, id: SourceId) {
        if let Some(source) = self.all.get_mut(&id) {
            source.ended_at = None;
        }
    }

    /// A source without a place is missing since `now`. Returns whether that is new.
    pub(super) fn set_missing(&mut self, id: SourceId, now: Monotonic) -> bool {
        match self.all.get_mut(&id) {
            Some(source) if !source.placed && source.missing_since.is_none() => {
                source.missing_since = Some(now);
                true
            }
            _ => false,
        }
    }

    /// A source that is missing was last seen now: its last duplicate was there until now.
    pub(super) fn extend_missing(&mut self, id: SourceId, now: Monotonic) {
        if let Some(source) = self.all.get_mut(&id)
            && !source.placed
        {
            source.missing_since = source.missing_since.map(|_| now);
        }
    }

    /// A source is read from its beginning: nothing of it is skipped.
    pub(super) fn clear_skipped(&mut self, id: SourceId) {
        if let Some(source) = self.all.get_mut(&id) {
            source.skipped = false;
        }
    }

    /// A source is known by another name of its file. Its reader and its registry entry get that when it is found again.
    pub(super) fn rename(&mut self, id: SourceId, path: Arc<Path>) {
        if let Some(source) = self.all.get_mut(&id) {
            source.path = path;
            source.unpublished = true;
        }
    }

    /// The reader of a source found that its file holds something else.
    pub(super) fn reject_file(&mut self, id: SourceId) {
        if let Some(source) = self.all.get_mut(&id) {
            source.rejected.add(source.file_id(), source.size);
        }
    }

    /// The keys of all sources, and where they are claimed.
    pub(super) fn into_keys(self) -> (Arc<SourceIds>, Vec<(SourceId, Arc<str>)>) {
        let keys = self.all.into_iter().map(|(id, source)| (id, source.key));
        (self.ids, keys.collect())
    }
}

#[cfg(test)]
mod tests;
