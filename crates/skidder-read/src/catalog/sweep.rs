//! Forgetting: sources whose files are gone, and what the registry keeps of such.

use super::{Catalog, MISSING_GRACE};
use crate::Now;
use crate::readers::ReaderState;
use skidder_os::Monotonic;
use std::io;

impl Catalog {
    /// Sources without a place are read to the end if they are open, and forgotten after a while.
    pub(super) fn retire_missing(&mut self, now: Monotonic) {
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
            let missing = now.since(since);
            let settings = &self.input.settings;
            let forgettable = settings.clean_removed
                || settings.clean_inactive.is_some_and(|limit| missing >= limit);
            if missing >= MISSING_GRACE
                && forgettable
                && look.state == ReaderState::Closed
                && self.input.cursors.is_settled(id)
            {
                gone.push((id, look));
            }
        }
        gone.sort_unstable_by_key(|(id, _)| *id);
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

    /// Once, a while after the start: entries of files that are no longer there are forgotten; and, with
    /// `clean_inactive`, entries that nobody updated for so long.
    pub(super) fn sweep_registry(&mut self, now: Now) {
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
