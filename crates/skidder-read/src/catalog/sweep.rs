//! Forgetting: sources whose files are gone, and their registry entries.

use super::adopt::is_of_input;
use super::former::of_former;
use super::inventory::Inventory;
use super::pins::unread_bytes;
use super::rotated::RotatedFiles;
use super::{MISSING_GRACE, Place};
use crate::Now;
use crate::readers::{ReaderLook, ReaderState, Trouble};
use crate::settings::FilestreamSettings;
use skidder_event::SourceId;
use skidder_os::{FileKind, Monotonic, Timestamp};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often the registry is searched for entries that `clean_inactive` removes, as in Filebeat.
const CLEAN_EVERY: Duration = Duration::from_mins(5);

/// When the registry is swept.
#[derive(Default)]
pub(super) struct Sweeps {
    /// When the first scan began.
    started: Option<Monotonic>,
    /// When the registry was swept last.
    swept: Option<Monotonic>,
}

/// Which entries a sweep of the registry forgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sweep {
    /// Entries of files that are gone since the last run, and inactive ones.
    First,
    /// Entries that were not updated for `clean_inactive`.
    Inactive,
}

/// A source that was forgotten because its file is gone.
pub(super) struct Retired {
    pub(super) path: Arc<Path>,
    /// When the file was found to be gone.
    pub(super) at: Timestamp,
}

impl Sweeps {
    /// The first scan begins.
    pub(super) fn start(&mut self, now: Monotonic) {
        self.started.get_or_insert(now);
    }

    /// Whether the first scan has begun.
    pub(super) fn has_started(&self) -> bool {
        self.started.is_some()
    }

    /// The sweep that is due: one a while after the start, and with `clean_inactive` one now and then.
    pub(super) fn due(&mut self, settings: &FilestreamSettings, now: Monotonic) -> Option<Sweep> {
        if now.since(self.started?) < MISSING_GRACE {
            return None;
        }
        let first = self.swept.is_none();
        let since = self.swept.map_or(Duration::MAX, |at| now.since(at));
        if since < CLEAN_EVERY || (!first && settings.clean_inactive.is_none()) {
            return None;
        }
        self.swept = Some(now);
        Some(if first { Sweep::First } else { Sweep::Inactive })
    }
}

impl Sweep {
    /// Forgets registry entries of files that are gone, and of files that are inactive.
    pub(super) fn run(self, files: &Inventory, rotated: &RotatedFiles, now: Now) {
        let settings = &files.input.settings;
        let first = self == Self::First;
        let sources: HashMap<&str, SourceId> =
            files.sources.iter().map(|(id, source)| (&*source.key, id)).collect();
        let mut stale = Vec::new();
        let mut idle = Vec::new();
        let swept = files.input.cursors.for_each_saved(&mut |key, entry| {
            let path = &entry.meta.source;
            if !is_of_input(settings, key) || (settings.shares_keys && !settings.scan.covers(path))
            {
                return;
            }
            let inactive =
                settings.clean_inactive.is_some_and(|limit| now.wall.since(entry.updated) > limit);
            let former = of_former(key).is_some();
            match sources.get(key) {
                Some(&id) if inactive => idle.push(id),
                Some(_) => {}
                None if inactive || (first && (former || settings.clean_removed)) => {
                    stale.push((key.to_owned(), Arc::clone(path), inactive || former));
                }
                None => {}
            }
        });
        if let Err(error) = swept {
            tracing::warn!(%error, "the registry cannot be swept of files that are gone");
            return;
        }
        forget_stale(files, rotated, stale);
        for id in idle {
            if files.is_done(id) {
                files.input.cursors.unsave(id);
            }
        }
    }
}

impl Inventory {
    /// Readers of sources without a place read their open files to the end. Sources that are missing for a while are
    /// forgotten, and returned unless skidder deletes files itself or they were rewritten.
    pub(super) fn retire_missing(&mut self, now: Now) -> Vec<Retired> {
        let (mut gone, mut lost) = (Vec::new(), Vec::new());
        let has_failed = |look: &ReaderLook| look.trouble == Some(Trouble::Failed);
        let displaced = self.sources.iter().filter(|(_, source)| !source.placed);
        let displaced: Vec<SourceId> = displaced.map(|(id, _)| id).collect();
        for id in displaced {
            if self.sources.set_missing(id, now.monotonic) {
                lost.push(id);
            }
            let Some(source) = self.sources.get(id) else { continue };
            let Some(since) = source.missing_since else { continue };
            let Some(look) = self.readers.look(id) else { continue };
            if look.open && has_failed(&look) {
                lost.push(id);
            }
            let missing = now.monotonic.since(since);
            let settings = &self.input.settings;
            let forgettable = settings.clean_removed
                || source.former
                || settings.clean_inactive.is_some_and(|limit| missing >= limit);
            if missing >= MISSING_GRACE
                && forgettable
                && look.state == ReaderState::Closed
                && self.input.cursors.is_settled(id)
            {
                gone.push((id, look));
            }
        }
        // Not in the order of a hash map: the simulated world replays what happened.
        lost.sort_unstable();
        lost.dedup();
        for id in lost {
            self.readers.set_watched(id, None);
            self.readers.wake_if_open(id);
        }
        gone.sort_unstable_by_key(|(id, _)| *id);
        if self.places.may_have_duplicates() && !gone.is_empty() {
            // Duplicates that wait for the reader of a source are matched by the next scan.
            let held = self.places.duplicates().map(|(_, _, duplicate)| duplicate.of);
            let held: HashSet<SourceId> = held.collect();
            gone.retain(|(id, _)| !held.contains(id));
        }
        let mut retired = Vec::new();
        for (id, look) in gone {
            let Some(source) = self.sources.remove(id) else { continue };
            self.places.recheck_duplicates_of(id);
            let unread = unread_bytes(&source, &look);
            if unread > 0 {
                self.input.metrics.files_lost.add(1);
                self.input.metrics.bytes_lost.add(unread);
                tracing::warn!(path = %source.path.display(), read = look.offset, size = source.size,
                    "a file vanished before it was read to the end");
            }
            if !source.former && self.input.settings.delete.is_none() {
                let since = source.missing_since.unwrap_or(now.monotonic);
                let at = now.wall.earlier_by(now.monotonic.since(since));
                retired.push(Retired { path: Arc::clone(&source.path), at });
            }
            self.input.metrics.last_errors.forget(id);
            self.readers.remove(id);
            self.input.cursors.remove(id);
        }
        retired
    }
}

fn forget_stale(
    files: &Inventory,
    rotated: &RotatedFiles,
    mut stale: Vec<(String, Arc<Path>, bool)>,
) {
    let is_gone = |path: &Path| match files.input.fs.symlink_metadata(path) {
        Ok(meta) => meta.kind == FileKind::Symlink && leads_elsewhere(files, rotated, path),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    stale.retain(|(_, path, at_once)| *at_once || is_gone(path));
    if !stale.is_empty() {
        tracing::info!(entries = stale.len(), "forgetting files that are gone or inactive");
        let keys = stale.into_iter().map(|(key, _, _)| key).collect();
        files.input.cursors.forget_saved(keys);
    }
}

/// Whether a link leads to a file with another entry, and all files that were rotated away from it before are
/// followed: then every other file with an entry under this path is gone. Until this is known, the entry
/// shows since when there may be rotated files that no scan has seen.
fn leads_elsewhere(files: &Inventory, rotated: &RotatedFiles, link: &Path) -> bool {
    let is_source = |place: &Place| place.is_source() && !place.recheck;
    let is_taken_in = |path: &Arc<Path>| files.places.get(path).is_some_and(is_source);
    files.follows_rotated()
        && files.places.get(link).is_some_and(is_source)
        && rotated.is_complete(link)
        && files.followed.shown_as(link).all(is_taken_in)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::settings;

    #[test]
    fn the_registry_is_swept_a_minute_after_the_start_and_every_five_minutes_if_asked() {
        let at = |seconds| Monotonic::default() + Duration::from_secs(seconds);
        let mut inactive = settings();
        inactive.clean_inactive = Some(Duration::from_hours(1));
        for (settings, later) in [(settings(), None), (inactive, Some(Sweep::Inactive))] {
            let mut sweeps = Sweeps::default();
            assert_eq!(sweeps.due(&settings, at(100)), None, "no scan has begun");
            sweeps.start(at(100));
            sweeps.start(at(150));
            assert!(sweeps.has_started());
            assert_eq!(sweeps.due(&settings, at(159)), None);
            assert_eq!(sweeps.due(&settings, at(160)), Some(Sweep::First));
            assert_eq!(sweeps.due(&settings, at(459)), None);
            assert_eq!(sweeps.due(&settings, at(460)), later);
        }
    }
}
