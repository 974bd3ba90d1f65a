//! Forgetting: sources whose files are gone, and what the registry keeps of such.

use super::adopt::is_of_input;
use super::former::of_former;
use super::pins::unread_bytes;
use super::{Catalog, MISSING_GRACE, Place};
use crate::Now;
use crate::readers::{ReaderLook, ReaderState, Trouble};
use skidder_event::SourceId;
use skidder_os::FileKind;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often the registry is looked through for what `clean_inactive` lets go, as in Filebeat.
const CLEAN_EVERY: Duration = Duration::from_mins(5);

impl Catalog {
    /// Sources without a place are read to the end if they are open, and forgotten after a while.
    pub(super) fn retire_missing(&mut self, now: Now) {
        let (mut gone, mut lost) = (Vec::new(), Vec::new());
        let has_failed = |look: &ReaderLook| look.trouble == Some(Trouble::Failed);
        let displaced = self.files.sources.iter().filter(|(_, source)| !source.placed);
        let displaced: Vec<SourceId> = displaced.map(|(id, _)| id).collect();
        for id in displaced {
            if self.files.sources.set_missing(id, now.monotonic) {
                lost.push(id);
            }
            let Some(source) = self.files.sources.get(id) else { continue };
            let Some(since) = source.missing_since else { continue };
            let Some(look) = self.files.readers.look(id) else { continue };
            if look.open && has_failed(&look) {
                lost.push(id);
            }
            let missing = now.monotonic.since(since);
            let settings = &self.files.input.settings;
            let forgettable = settings.clean_removed
                || source.former
                || settings.clean_inactive.is_some_and(|limit| missing >= limit);
            if missing >= MISSING_GRACE
                && forgettable
                && look.state == ReaderState::Closed
                && self.files.input.cursors.is_settled(id)
            {
                gone.push((id, look));
            }
        }
        // In an order that does not come from a hash map: the simulated world replays what happened.
        lost.sort_unstable();
        lost.dedup();
        for id in lost {
            self.files.readers.set_teller(id, None);
            self.files.readers.wake_if_open(id);
        }
        gone.sort_unstable_by_key(|(id, _)| *id);
        if self.files.places.may_have_duplicates() && !gone.is_empty() {
            // What had to wait for its reader continues with the next scan.
            let held = self.files.places.duplicates().map(|(_, _, duplicate)| duplicate.of);
            let held: HashSet<SourceId> = held.collect();
            gone.retain(|(id, _)| !held.contains(id));
        }
        for (id, look) in gone {
            let Some(source) = self.files.sources.remove(id) else { continue };
            self.files.places.recheck_duplicates_of(id);
            let unread = unread_bytes(&source, &look);
            if unread > 0 {
                self.files.input.metrics.files_lost.add(1);
                self.files.input.metrics.bytes_lost.add(unread);
                tracing::warn!(path = %source.path.display(), read = look.offset, size = source.size,
                    "a file vanished before it was read to the end");
            }
            if !source.former && self.files.input.settings.delete.is_none() {
                let since = source.missing_since.unwrap_or(now.monotonic);
                let at = now.wall.earlier_by(now.monotonic.since(since));
                self.forecast.note_deleted(&source.path, at);
            }
            self.files.input.metrics.last_errors.forget(id);
            self.files.readers.remove(id);
            self.files.input.cursors.remove(id);
        }
    }

    /// A while after the start, once: entries of files that are no longer there are forgotten. With
    /// `clean_inactive`, now and then: entries that nobody updated for so long.
    pub(super) fn sweep_registry(&mut self, now: Now) {
        let Some(started) = self.started else { return };
        if now.monotonic.since(started) < MISSING_GRACE {
            return;
        }
        let settings = &self.files.input.settings;
        let first = self.swept.is_none();
        let since = self.swept.map_or(Duration::MAX, |at| now.monotonic.since(at));
        if since < CLEAN_EVERY || (!first && settings.clean_inactive.is_none()) {
            return;
        }
        self.swept = Some(now.monotonic);
        if first {
            self.saved.end_adoption();
            self.rotated.clear_saved();
        }
        let sources: HashMap<&str, SourceId> =
            self.files.sources.iter().map(|(id, source)| (&*source.key, id)).collect();
        let mut stale = Vec::new();
        let mut idle = Vec::new();
        let swept = self.files.input.cursors.for_each_saved(&mut |key, entry| {
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
        self.forget_stale(stale);
        for id in idle {
            if self.files.is_done(id) {
                self.files.input.cursors.unsave(id);
            }
        }
    }

    fn forget_stale(&self, mut stale: Vec<(String, Arc<Path>, bool)>) {
        let is_gone = |path: &Path| match self.files.input.fs.symlink_metadata(path) {
            Ok(meta) => meta.kind == FileKind::Symlink && self.leads_elsewhere(path),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        stale.retain(|(_, path, at_once)| *at_once || is_gone(path));
        if !stale.is_empty() {
            tracing::info!(entries = stale.len(), "forgetting files that are gone or inactive");
            let keys = stale.into_iter().map(|(key, _, _)| key).collect();
            self.files.input.cursors.forget_saved(keys);
        }
    }

    /// Whether a link leads to a file that has another entry, and all that was rotated away from it before was taken in:
    /// what else was saved under its path is gone. As long as that is known, it says since when there may be rotated files
    /// that nobody has seen.
    fn leads_elsewhere(&self, link: &Path) -> bool {
        let is_source = |place: &Place| place.is_source() && !place.recheck;
        let is_taken_in = |path: &Arc<Path>| self.files.places.get(path).is_some_and(is_source);
        self.files.follows_links()
            && self.files.places.get(link).is_some_and(is_source)
            && self.rotated.is_complete(link)
            && self.files.followed.shown_as(link).all(is_taken_in)
    }
}
