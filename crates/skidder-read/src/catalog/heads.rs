//! The beginnings of files that are new or have changed.

use super::{Candidate, Catalog, Content, MISSING_GRACE};
use crate::Now;
use crate::fingerprint::{Head, HeadError};
use crate::scan::Found;
use crate::settings::Compression;
use skidder_event::SourceId;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file that is new or has changed. Its place is taken from what was there; its beginning is not read yet.
pub(super) struct Fresh {
    pub(super) found: Found,
    pub(super) path: Arc<Path>,
    /// What the place held before.
    before: Option<Content>,
    touched: bool,
    duplicate_of: Option<SourceId>,
}

impl Fresh {
    pub(super) fn was_source(&self) -> bool {
        matches!(self.before, Some(Content::Source(_)))
    }
}

impl From<Candidate> for Fresh {
    /// Lets go of the beginning.
    fn from(candidate: Candidate) -> Self {
        let Candidate { found, path, before, touched, duplicate_of, .. } = candidate;
        Self { found, path, before, touched, duplicate_of }
    }
}

impl Catalog {
    /// Takes the places of changed files from what was there.
    pub(super) fn vacate(&mut self, changed: Vec<Found>) -> Vec<Fresh> {
        let mut all = Vec::with_capacity(changed.len());
        for found in changed {
            let (path, place) = match self.files.places.remove(&found.path) {
                Some((path, place)) => (path, Some(place)),
                None => (Arc::from(found.path.as_path()), None),
            };
            let touched = self.files.input.settings.resend_on_touch
                && place.as_ref().is_some_and(|place| place.is_touched(&found.metadata));
            let duplicate_of = place.as_ref().and_then(|place| place.duplicate_of(&found.metadata));
            if let Some(place) = place.as_ref().filter(|place| !place.is_as_seen(&found.metadata)) {
                self.files.forget_duplicate(&place.content, self.now);
            }
            let before = place.map(|place| place.content);
            if let Some(Content::Source(id)) = before {
                self.files.sources.displace(id);
            }
            all.push(Fresh { found, path, before, touched, duplicate_of });
        }
        all
    }

    /// Reads the beginning of each changed file; those that cannot be read now are put aside.
    pub(super) fn read_heads(
        &mut self,
        fresh: impl IntoIterator<Item = Fresh>,
        now: Now,
    ) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for fresh in fresh {
            let Fresh { found, path, before, touched, duplicate_of } = fresh;
            match self.head(&found) {
                // A copy in the making looks like nothing that is known. If it stays as it is, it is read.
                Ok(Some(head))
                    if head.growing && now.wall.since(found.metadata.modified) < MISSING_GRACE =>
                {
                    self.put_place(path, &found, Content::Nothing, true);
                }
                Ok(Some(head)) => candidates.push(Candidate {
                    found,
                    path,
                    head,
                    before,
                    touched,
                    claim: None,
                    duplicate_of,
                }),
                Ok(None) => self.put_place(path, &found, Content::Nothing, false),
                // Gone since it was listed. It may come back as it was.
                Err(HeadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                    self.put_place(path, &found, Content::Nothing, true);
                }
                Err(error) => {
                    if !matches!(before, Some(Content::Nothing)) {
                        self.files.input.metrics.errors.add(1);
                        self.files.input.metrics.last_errors.note(
                            None,
                            &path,
                            error.to_string(),
                            now.wall,
                        );
                        tracing::error!(path = %path.display(), %error,
                            "a file cannot be read; it is looked at again when it changes");
                    }
                    // What the system refused may be granted later without a change of the file.
                    let recheck = matches!(error, HeadError::Io(_));
                    self.put_place(path, &found, Content::Nothing, recheck);
                }
            }
        }
        candidates
    }

    /// The beginning of a file; nothing while it is too short to be told from others.
    pub(super) fn head(&mut self, found: &Found) -> Result<Option<Head>, HeadError> {
        // What is rotated away from a link may be compressed where nothing that matches is.
        let is_beside = self.files.followed.is_rotated(&found.path);
        let settings = self.files.input.settings.compression;
        self.files.probe.head(found, if is_beside { Compression::Auto } else { settings })
    }
}
