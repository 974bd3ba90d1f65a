//! The watchdog: no file with unread bytes stays without a reader unless there is a reason.
//!
//! It trusts nothing that wakes readers. Now and then it compares the size of every file with the position of its reader.
//! A source that is behind, asleep, and has no reason for it is woken after a while, with an error in the log and a
//! count: this is a bug in skidder, made visible and repaired.

use super::Source;
use super::inventory::Inventory;
use crate::Now;
use crate::readers::{ReaderLook, ReaderState};
use skidder_event::SourceId;
use skidder_os::Monotonic;
use std::collections::HashMap;
use std::time::Duration;

/// How often all sources are checked: it costs about 100 ns a source.
const EVERY: Duration = Duration::from_secs(30);

/// The shortest time for which a source may be behind without a reason.
const GRACE: Duration = Duration::from_mins(1);

/// Sources that were behind without a reason at the last check, and since when.
#[derive(Default)]
pub(super) struct Watchdog {
    checked: Option<Monotonic>,
    suspects: HashMap<SourceId, Monotonic>,
}

/// A source that was behind without a reason for too long.
pub(super) struct Stalled {
    pub(super) id: SourceId,
    pub(super) span: Duration,
}

/// Whether a file has bytes that its reader has not seen.
pub(super) fn is_behind(source: &Source, look: &ReaderLook) -> bool {
    if source.compressed {
        !look.finished && look.stored_seen < source.size
    } else {
        look.stored_seen.max(look.offset) < source.size
    }
}

impl Watchdog {
    /// Checks all sources, if it is time. Returns those to wake, in order.
    pub(super) fn check(&mut self, files: &Inventory, now: Now) -> Vec<Stalled> {
        if self.checked.is_some_and(|at| now.monotonic.since(at) < EVERY) {
            return Vec::new();
        }
        self.checked = Some(now.monotonic);
        self.update(suspects(files), now.monotonic);
        let settings = &files.input.settings;
        let grace = GRACE + settings.close.backoff_max + 2 * settings.check_interval;
        let is_overdue = |_: &SourceId, since: &mut Monotonic| now.monotonic.since(*since) >= grace;
        let overdue = self.suspects.extract_if(is_overdue);
        let (stalled, ignored): (Vec<_>, Vec<_>) =
            overdue.partition(|(id, _)| !files.is_ignored_source(*id, now));
        self.suspects.extend(ignored);
        let mut stalled: Vec<Stalled> = stalled
            .into_iter()
            .map(|(id, since)| Stalled { id, span: now.monotonic.since(since) })
            .collect();
        stalled.sort_unstable_by_key(|stalled| stalled.id);
        stalled
    }

    /// Takes the sources that are behind without a reason now. Those that were already keep their time.
    fn update(&mut self, suspects: Vec<SourceId>, now: Monotonic) {
        let before = std::mem::take(&mut self.suspects);
        let since = |id| (id, before.get(&id).copied().unwrap_or(now));
        self.suspects = suspects.into_iter().map(since).collect();
    }
}

/// Sources that are behind and asleep without a reason.
fn suspects(files: &Inventory) -> Vec<SourceId> {
    let mut suspects = Vec::new();
    files.readers.look_each(files.sources.iter().map(|(id, _)| id), |id, look| {
        let asleep = matches!(look.state, ReaderState::Closed | ReaderState::Idle);
        if asleep
            && look.trouble.is_none()
            && let Some(source) = files.sources.get(id)
            && source.placed
            && is_behind(source, &look)
        {
            suspects.push(id);
        }
    });
    let lost = files.readers.lost();
    suspects.extend(lost.into_iter().filter(|id| files.sources.contains(*id)));
    suspects
}

/// Wakes a source that was behind without a reason.
pub(super) fn rescue(files: &Inventory, stalled: &Stalled) {
    let Some(source) = files.sources.get(stalled.id) else { return };
    let read = files.readers.look(stalled.id).map_or(0, |look| look.offset);
    files.input.metrics.files_stalled.add(1);
    tracing::error!(path = %source.path.display(), read, size = source.size, stalled = ?stalled.span,
        "a file was behind and nobody read it; it is read now. This is a bug in skidder");
    files.readers.rescue(stalled.id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_suspected_since_the_first_check_in_a_row_that_found_it_behind() {
        let at = |seconds| Monotonic::default() + Duration::from_secs(seconds);
        let (one, other) = (SourceId(1), SourceId(2));
        let mut watchdog = Watchdog::default();
        watchdog.update(vec![one, other], at(1));
        watchdog.update(vec![one], at(2));
        watchdog.update(vec![one, other], at(3));
        assert_eq!(watchdog.suspects, HashMap::from([(one, at(1)), (other, at(3))]));
    }
}
