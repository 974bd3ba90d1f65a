//! The beginnings of files that are new or have changed.

use super::{Candidate, Catalog, Holds, MISSING_GRACE};
use crate::Now;
use crate::fingerprint::{Head, HeadError, read_head};
use crate::scan::Found;
use crate::settings::Compression;
use skidder_event::SourceId;
use skidder_os::{is_out_of_descriptors, open_same};
use std::cell::OnceCell;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file that is new or has changed. Its place is taken from what was there; its beginning is not read yet.
pub(super) struct Fresh {
    pub(super) found: Found,
    pub(super) path: Arc<Path>,
    /// What the place held before.
    before: Option<Holds>,
    touched: bool,
    copy_of: Option<SourceId>,
}

impl Fresh {
    pub(super) fn was_source(&self) -> bool {
        matches!(self.before, Some(Holds::Source(_)))
    }
}

impl From<Candidate> for Fresh {
    /// Lets go of the beginning.
    fn from(candidate: Candidate) -> Self {
        let Candidate { found, path, before, touched, copy_of, .. } = candidate;
        Self { found, path, before, touched, copy_of }
    }
}

impl Catalog {
    /// Takes the places of changed files from what was there.
    pub(super) fn displace(&mut self, changed: Vec<Found>) -> Vec<Fresh> {
        let mut all = Vec::with_capacity(changed.len());
        for found in changed {
            let path: Arc<Path> = match self.places.get_key_value(&*found.path) {
                Some((path, _)) => Arc::clone(path),
                None => Arc::from(found.path.as_path()),
            };
            let place = self.places.remove(&path);
            let touched = self.input.settings.resend_on_touch
                && place.as_ref().is_some_and(|place| place.is_touched(&found.metadata));
            let copy_of = place.as_ref().and_then(|place| place.copied_from(&found.metadata));
            if let Some(place) = place.as_ref().filter(|place| !place.is_as_seen(&found.metadata)) {
                self.lose_twin(&place.holds, self.now);
            }
            let before = place.map(|place| place.holds);
            if let Some(Holds::Source(id)) = before
                && let Some(known) = self.sources.get_mut(&id)
            {
                known.placed = false;
                self.lost.push(id);
            }
            all.push(Fresh { found, path, before, touched, copy_of });
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
            let Fresh { found, path, before, touched, copy_of } = fresh;
            match self.head(&found) {
                // A copy in the making looks like nothing that is known. If it stays as it is, it is read.
                Ok(Some(head))
                    if head.growing && now.wall.since(found.metadata.modified) < MISSING_GRACE =>
                {
                    self.put_place(path, &found, Holds::Nothing, true);
                }
                Ok(Some(head)) => candidates.push(Candidate {
                    found,
                    path,
                    head,
                    before,
                    touched,
                    claim: None,
                    copy_of,
                }),
                Ok(None) => self.put_place(path, &found, Holds::Nothing, false),
                // Gone since it was listed. It may come back as it was.
                Err(HeadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                    self.put_place(path, &found, Holds::Nothing, true);
                }
                Err(error) => {
                    // What the system refused may be granted later without a change of the file.
                    let recheck = matches!(error, HeadError::Io(_));
                    if !matches!(before, Some(Holds::Nothing)) {
                        self.input.metrics.errors.add(1);
                        self.input.metrics.last_errors.note(
                            None,
                            &path,
                            error.to_string(),
                            now.wall,
                        );
                        let again = if recheck { "with the next scan" } else { "when it changes" };
                        tracing::error!(path = %path.display(), %error, again,
                            "a file cannot be read; it is tried again");
                    }
                    self.put_place(path, &found, Holds::Nothing, recheck);
                }
            }
        }
        candidates
    }

    /// The beginning of a file; nothing while it is too short to be told from others.
    pub(super) fn head(&mut self, found: &Found) -> Result<Option<Head>, HeadError> {
        // What is rotated away from a link may be compressed where nothing that matches is.
        let is_beside = self.beside.is_rotated(&found.path);
        let settings = self.input.settings.compression;
        self.head_as(found, if is_beside { Compression::Auto } else { settings })
    }

    pub(super) fn head_as(
        &mut self,
        found: &Found,
        compression: Compression,
    ) -> Result<Option<Head>, HeadError> {
        if found.metadata.size == 0 {
            return Ok(None);
        }
        let head = self.any_head(found, compression)?;
        let settings = &self.input.settings;
        let enough = match settings.fingerprint.growing {
            _ if !settings.identity.is_content() => 0,
            true => 1,
            false => settings.fingerprint.length as usize,
        };
        Ok((head.bytes.len() >= enough).then_some(head))
    }

    /// The beginning of a file, however short.
    pub(super) fn any_head(
        &mut self,
        found: &Found,
        compression: Compression,
    ) -> Result<Head, HeadError> {
        let settings = &self.input.settings;
        let by_content = settings.identity.is_content();
        if !by_content && !settings.fingerprint.enabled {
            let head = Head {
                bytes: Vec::new(),
                compressed: false,
                growing: false,
                print: OnceCell::new(),
            };
            return Ok(head);
        }
        let (fs, id) = (&*self.input.fs, found.metadata.id());
        let file = match open_same(fs, &found.path, id) {
            Err(error) if is_out_of_descriptors(&error) && self.readers.give_way() => {
                open_same(fs, &found.path, id)?
            }
            opened => opened?,
        };
        let length = settings.fingerprint.length as usize;
        read_head(
            &*file,
            compression,
            &settings.fingerprint,
            length,
            &self.input.decoders,
            &mut self.scratch,
        )
    }
}
