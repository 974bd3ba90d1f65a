//! Files that are identified by name instead of content: `native`, `inode_marker` and `path`.
//!
//! The name says which source a file is. The size and the bytes before the cursor say whether the file still
//! has what was read. If not, it was rewritten or its name was reused: a new generation from zero.

use super::saved::{self, SavedState};
use super::{Candidate, Catalog, Content};
use crate::Now;
use crate::cursors::CursorsError;

impl Catalog {
    /// Finds the source of each file by its name. Files that keep their path come first: of several links to
    /// a file, the known one stays.
    pub(super) fn match_by_name(&mut self, mut candidates: Vec<Candidate>, now: Now) {
        candidates.sort_by_key(|candidate| !matches!(candidate.before, Some(Content::Source(_))));
        for candidate in candidates {
            let Some(key) = self.name_key(&candidate) else {
                // There is no marker yet, which is logged elsewhere.
                self.put_place(candidate.path, &candidate.found, Content::Nothing, true);
                continue;
            };
            match self.files.sources.with_key(&key) {
                Some(id) => {
                    let decision = self.matcher().named(&candidate, id);
                    self.apply_decision(candidate, decision, None, now);
                }
                None => self.begin_named(candidate, key, now),
            }
        }
    }

    /// The registry key of a file.
    fn name_key(&self, candidate: &Candidate) -> Option<String> {
        let settings = &self.files.input.settings;
        let marker = match &settings.identity {
            crate::FileIdentity::InodeMarker(_) => self.marker.text()?,
            _ => "",
        };
        let name = settings.identity.name_of(&candidate.path, &candidate.found.metadata, marker);
        name.map(|name| settings.key(&name))
    }

    /// A file whose name no source has: one from the registry, or a new one.
    fn begin_named(&mut self, candidate: Candidate, key: String, now: Now) {
        let saved = match self.saved_under(&candidate, &key) {
            Ok(saved) => saved,
            Err(error) => {
                tracing::error!(path = %candidate.path.display(), %error,
                    "the state of a file cannot be had; trying again with the next scan");
                self.put_place(candidate.path, &candidate.found, Content::Nothing, true);
                return;
            }
        };
        let print = self.files.probe.print_shown(&candidate);
        self.add_source(candidate, print, key, saved, now);
    }

    fn saved_under(
        &mut self,
        candidate: &Candidate,
        key: &str,
    ) -> Result<Option<SavedState>, CursorsError> {
        let Some(entry) = saved::entry(&self.files, key)? else {
            return self.saved.adopt(&self.files, candidate);
        };
        let cursor = saved::proven_cursor(&self.files, candidate, &entry);
        Ok(Some(SavedState { key: key.to_owned(), fingerprint: None, cursor }))
    }
}
