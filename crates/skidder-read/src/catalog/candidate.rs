//! Files that are new or have changed, and their beginnings.

use super::saved::Claim;
use super::{Catalog, Content, MISSING_GRACE};
use crate::Now;
use crate::fingerprint::{Head, HeadError};
use crate::scan::Found;
use skidder_event::SourceId;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file that is new or has changed, with its beginning: it must be matched with the sources.
pub(super) struct Candidate {
    pub(super) found: Found,
    pub(super) path: Arc<Path>,
    pub(super) head: Head,
    /// What was at the path before.
    pub(super) before: Option<Content>,
    /// The file was touched, and `resend_on_touch` has it read again.
    pub(super) touched: bool,
    /// The registry entry that fits best, if it was looked for already.
    pub(super) claim: Option<Box<Claim>>,
    /// The source with which it was compared and found equal, if it has not changed since.
    pub(super) duplicate_of: Option<SourceId>,
}

impl Candidate {
    /// A file of which nothing is known.
    pub(super) fn new(found: Found, path: Arc<Path>, head: Head) -> Self {
        let (before, touched, claim, duplicate_of) = (None, false, None, None);
        Self { found, path, head, before, touched, claim, duplicate_of }
    }
}

/// A file that is new or has changed, before its beginning is read. Nothing is at its path meanwhile.
pub(super) struct ChangedFile {
    pub(super) found: Found,
    pub(super) path: Arc<Path>,
    /// What was at the path before.
    before: Option<Content>,
    touched: bool,
    duplicate_of: Option<SourceId>,
}

impl ChangedFile {
    pub(super) fn was_source(&self) -> bool {
        matches!(self.before, Some(Content::Source(_)))
    }
}

impl From<Candidate> for ChangedFile {
    /// Drops the beginning.
    fn from(candidate: Candidate) -> Self {
        let Candidate { found, path, before, touched, duplicate_of, .. } = candidate;
        Self { found, path, before, touched, duplicate_of }
    }
}

impl Catalog {
    /// Removes what was at the paths of changed files.
    pub(super) fn vacate(&mut self, changed: Vec<Found>) -> Vec<ChangedFile> {
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
                self.files.forget_duplicate(&place.content, self.pass.now);
            }
            let before = place.map(|place| place.content);
            if let Some(Content::Source(id)) = before {
                self.files.sources.displace(id);
            }
            all.push(ChangedFile { found, path, before, touched, duplicate_of });
        }
        all
    }

    /// Reads the beginning of each changed file. Files that cannot be read now stay without content.
    pub(super) fn read_heads(
        &mut self,
        fresh: impl IntoIterator<Item = ChangedFile>,
        now: Now,
    ) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for fresh in fresh {
            let ChangedFile { found, path, before, touched, duplicate_of } = fresh;
            match self.files.head(&found) {
                // A copy that is not complete looks like a new file. It is read if it stays as it is.
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
                // Gone since it was listed. It may come back unchanged.
                Err(HeadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                    self.put_place(path, &found, Content::Nothing, true);
                }
                Err(error) => {
                    // The system may allow later what it refused now, without a change of the file.
                    let recheck = matches!(error, HeadError::Io(_));
                    if !matches!(before, Some(Content::Nothing)) {
                        self.files.input.metrics.errors.add(1);
                        self.files.input.metrics.last_errors.note(
                            None,
                            &path,
                            error.to_string(),
                            now.wall,
                        );
                        let again = if recheck { "with the next scan" } else { "when it changes" };
                        tracing::error!(path = %path.display(), %error, again,
                            "a file cannot be read; it is tried again");
                    }
                    self.put_place(path, &found, Content::Nothing, recheck);
                }
            }
        }
        candidates
    }
}
