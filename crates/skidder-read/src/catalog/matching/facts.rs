//! The facts that matching decides by, from the inventory, the registry and the files.

use super::Facts;
use crate::catalog::Candidate;
use crate::catalog::inventory::Inventory;
use crate::catalog::places::Places;
use crate::catalog::saved::SavedEntries;
use crate::catalog::sources::{Source, Sources};
use crate::fingerprint::Fingerprint;
use crate::readers::ReaderLook;
use crate::settings::FingerprintSettings;
use skidder_event::{SourceId, Tail};
use skidder_os::Monotonic;
use std::path::Path;
use std::sync::Arc;

/// The state of a catalog during a scan.
pub(in crate::catalog) struct CatalogFacts<'a> {
    pub(in crate::catalog) files: &'a Inventory,
    pub(in crate::catalog) saved: &'a SavedEntries,
    pub(in crate::catalog) now: Monotonic,
    pub(in crate::catalog) is_reaction: bool,
}

impl Facts for CatalogFacts<'_> {
    fn fingerprints(&self) -> &FingerprintSettings {
        &self.files.input.settings.fingerprint
    }

    fn sources(&self) -> &Sources {
        &self.files.sources
    }

    fn places(&self) -> &Places {
        &self.files.places
    }

    fn now(&self) -> Monotonic {
        self.now
    }

    fn is_reaction(&self) -> bool {
        self.is_reaction
    }

    fn reader(&self, id: SourceId) -> Option<ReaderLook> {
        self.files.readers.look(id)
    }

    fn shown(&self, path: &Path) -> Option<Arc<Path>> {
        self.files.followed.shown(path)
    }

    fn print_of(&self, candidate: &Candidate, len: u32) -> Option<Fingerprint> {
        self.files.probe.print_of(candidate, len).ok().flatten()
    }

    fn print_like(&self, candidate: &Candidate, like: &Fingerprint) -> Option<Fingerprint> {
        self.files.probe.print_like(candidate, like).ok().flatten()
    }

    fn plain_fits(&self, candidate: &Candidate, reader: &ReaderLook) -> bool {
        self.files.probe.look_fits(candidate, reader)
    }

    fn compressed_fits(
        &self,
        candidate: &Candidate,
        doubtful: bool,
        offset: u64,
        tail: Option<Tail>,
    ) -> Option<bool> {
        self.files.probe.compressed_fits(candidate, doubtful, offset, tail)
    }

    fn is_as_read(&self, source: &Source, reader: &ReaderLook) -> bool {
        let as_read = self.files.input.fs.metadata(&source.path).and_then(|meta| {
            let probe = &self.files.probe;
            let fits = || probe.is_as_read(&source.path, &meta, reader.offset, reader.tail);
            Ok(meta.id() != source.file_id() || fits()?)
        });
        // An error disproves nothing.
        as_read.unwrap_or(true)
    }

    fn saved_print_len(&self, candidate: &Candidate) -> Option<u32> {
        self.saved.proved_by_saved(self.files, candidate)
    }
}
