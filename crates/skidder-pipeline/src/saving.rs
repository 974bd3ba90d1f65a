//! The registrar's thread: when cursors are committed.
//!
//! Every `registry.flush`; earlier when [`COMMIT_ROWS`] events have their verdict, so that a crash repeats a bounded number
//! of them however fast they are delivered; and at once on request.

use crate::commits::Commits;
use crate::disk::DiskQueue;
use crate::registrar::Registrar;
use crate::settle::Settle;
use skidder_os::{Clock, Monotonic};
use std::time::Duration;

/// Events with a verdict that no commit has saved yet, after which there is a commit before its time: about what a crash
/// repeats at most.
pub(crate) const COMMIT_ROWS: u64 = 50_000;

/// Commits before their time take at most one part in so many of the time.
const EARLY_SHARE: u32 = 100;

/// No commit is before its time within this of the one before, however cheap that was.
const EARLY_PAUSE_MIN: Duration = Duration::from_millis(10);

/// When the next commit may be before its time, after one that took `took` and is over `now`.
fn early_after(now: Monotonic, took: Duration) -> Monotonic {
    now + took.saturating_mul(EARLY_SHARE - 1).max(EARLY_PAUSE_MIN)
}

/// Saves cursors until the pipeline ends; hands the registrar back for the last flush.
pub(crate) fn save(
    mut registrar: Registrar,
    disk: Option<&DiskQueue>,
    every: Duration,
    commits: &Commits,
    settle: &Settle,
    clock: &dyn Clock,
) -> Registrar {
    let every = every.max(Duration::from_millis(10));
    let mut tried = 0;
    let mut early = Monotonic::default();
    registrar.note_pace(clock);
    loop {
        let began = clock.monotonic();
        let is_early = !commits.wait_due(every, tried) && settle.is_commit_due();
        if is_early {
            let now = clock.monotonic();
            let left = every.saturating_sub(now.since(began));
            commits.wait_requested(early.since(now).min(left), tried);
        }
        if commits.is_finished() {
            return registrar;
        }
        // Commits before their time are too many to remember each.
        if !is_early {
            registrar.note_pace(clock);
        }
        let requested = commits.requested();
        let is_requested = requested > tried;
        tried = requested;
        let began = clock.monotonic();
        let saved = if is_requested { registrar.flush_last(clock) } else { registrar.flush(clock) };
        let now = clock.monotonic();
        early = early_after(now, now.since(began));
        if saved {
            commits.done(requested);
        }
        if let Some(disk) = disk {
            disk.maintain();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_before_their_time_take_a_hundredth_of_it() {
        let now = Monotonic(Duration::from_secs(5));
        let pause = |took| early_after(now, took).since(now);
        assert_eq!(pause(Duration::from_millis(3)), Duration::from_millis(297));
        assert_eq!(pause(Duration::ZERO), EARLY_PAUSE_MIN);
    }
}
