//! The watchdog: no file with unread bytes stays without a reader unless a reason is on record.
//!
//! It trusts none of what wakes readers: now and then it compares the size of every file with how far it
//! was looked at. A source that is behind, sleeps, and has no reason for it is woken after a while, with an
//! error in the log and a count: it is a bug of ours, made visible and repaired.

use super::{Catalog, Source};
use crate::Now;
use crate::readers::{ReaderLook, ReaderState};
use skidder_event::SourceId;
use skidder_os::Monotonic;
use std::collections::HashMap;
use std::time::Duration;

/// How often all sources are looked at: it costs about 100 ns a source.
const EVERY: Duration = Duration::from_secs(30);

/// How long a source may be behind without a reason, at least.
const GRACE: Duration = Duration::from_mins(1);

/// Sources that were behind without a reason when they were looked at last, and since when.
#[derive(Default)]
pub(super) struct Watchdog {
    looked: Option<Monotonic>,
    suspects: HashMap<SourceId, Monotonic>,
}

/// Whether a file has bytes that were not looked at.
pub(super) fn is_behind(source: &Source, look: &ReaderLook) -> bool {
    if source.compressed {
        !look.finished && look.stored_seen < source.size
    } else {
        look.stored_seen.max(look.offset) < source.size
    }
}

impl Catalog {
    /// Looks for sources that nobody reads, and wakes those that were found before.
    pub(super) fn check_stalled(&mut self, now: Now) {
        let monotonic = now.monotonic;
        if self.watchdog.looked.is_some_and(|at| monotonic.since(at) < EVERY) {
            return;
        }
        self.watchdog.looked = Some(monotonic);
        let before = std::mem::take(&mut self.watchdog.suspects);
        let mut suspects = HashMap::new();
        let mut suspect = |id: SourceId| {
            suspects.insert(id, before.get(&id).copied().unwrap_or(monotonic));
        };
        self.files.readers.look_each(self.files.sources.iter().map(|(id, _)| id), |id, look| {
            let asleep = matches!(look.state, ReaderState::Closed | ReaderState::Idle);
            if asleep
                && look.trouble.is_none()
                && let Some(source) = self.files.sources.get(id)
                && source.placed
                && is_behind(source, &look)
            {
                suspect(id);
            }
        });
        let lost = self.files.readers.lost();
        lost.into_iter().filter(|id| self.files.sources.contains(*id)).for_each(suspect);
        let settings = &self.files.input.settings;
        let grace = GRACE + settings.close.backoff_max + 2 * settings.check_interval;
        let mut found = Vec::new();
        for (&id, &since) in &suspects {
            if monotonic.since(since) >= grace && !self.files.is_ignored_source(id, now) {
                found.push((id, monotonic.since(since)));
            }
        }
        found.sort_unstable();
        for (id, span) in found {
            suspects.remove(&id);
            self.rescue(id, span);
        }
        self.watchdog.suspects = suspects;
    }

    fn rescue(&self, id: SourceId, span: Duration) {
        let Some(source) = self.files.sources.get(id) else { return };
        let read = self.files.readers.look(id).map_or(0, |look| look.offset);
        self.files.input.metrics.files_stalled.add(1);
        tracing::error!(path = %source.path.display(), read, size = source.size, stalled = ?span,
            "a file was behind and nobody read it; it is read now. This is a bug in skidder");
        self.files.readers.rescue(id);
    }
}
