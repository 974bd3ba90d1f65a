//! When rotation will delete a file, as far as that can be predicted.
//!
//! The rotated files of a log are in one directory, and their modification times are the times of the
//! rotations. Once one of them has disappeared while the program was running, it is known that each rotation
//! deletes the oldest; before, there is no prediction. Only such deletions are stored. Everything else is
//! derived from the existing files when a prediction is needed.

use super::matching::stem;
use super::places::Places;
use super::rotated::age;
use skidder_os::{Monotonic, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Logs whose deletions are stored; beyond that the log with the oldest deletion is forgotten.
const LOGS_MAX: usize = 1000;

/// How long a prediction is cached: it costs a walk over all paths.
const ANSWER_KEPT: Duration = Duration::from_secs(10);

/// Number of intervals between rotations that count, the newest ones.
const INTERVALS_MAX: usize = 5;

/// Number of intervals without a rotation after which the pace is unknown.
const SILENT_INTERVALS_MAX: u32 = 3;

/// Directory and name of a log, without what rotation appends.
type Log = (PathBuf, Vec<u8>);

/// The age of a rotated file, by its name; the oldest is the least.
type Age = (Option<u64>, bool, std::cmp::Reverse<u64>, Vec<u8>);

/// The files of each log, by their ages, with their modification times.
type Files = HashMap<Log, BTreeMap<Age, Timestamp>>;

/// Facts about files that rotation has deleted.
#[derive(Default)]
pub(super) struct DeletionForecast {
    deleted: HashMap<Log, Deleted>,
    /// The files of these logs, and when they were looked at.
    seen: Option<(Monotonic, Files)>,
}

/// The deleted files of a log.
struct Deleted {
    /// The one that was deleted last.
    age: Age,
    first: Timestamp,
    last: Timestamp,
    count: u32,
}

fn log_of(path: &Path) -> Log {
    (path.parent().unwrap_or(path).to_path_buf(), stem(path).to_vec())
}

impl DeletionForecast {
    /// Another program has deleted a file, or renamed it to a name that does not match.
    pub(super) fn note_deleted(&mut self, path: &Path, at: Timestamp) {
        let log = log_of(path);
        let deleted = self.deleted.entry(log).or_insert_with(|| Deleted {
            age: age(path),
            first: at,
            last: at,
            count: 0,
        });
        deleted.age = age(path);
        deleted.last = deleted.last.max(at);
        deleted.count += 1;
        self.seen = None;
        if self.deleted.len() > LOGS_MAX {
            let oldest = self.deleted.iter().min_by_key(|(log, deleted)| (deleted.last, *log));
            let oldest = oldest.map(|(log, _)| log.clone());
            self.deleted.retain(|log, _| Some(log) != oldest.as_ref());
        }
    }

    /// Looks at the files of logs whose rotation deletes files.
    pub(super) fn look(&mut self, places: &Places, now: Monotonic) {
        let is_fresh = self.seen.as_ref().is_some_and(|(at, _)| now.since(*at) < ANSWER_KEPT);
        if is_fresh || self.deleted.is_empty() {
            return;
        }
        let mut all = Files::new();
        for (path, place) in places.iter() {
            let log = log_of(path);
            if self.deleted.contains_key(&log) {
                // A file and its compressed copy are one generation.
                let at = all.entry(log).or_default().entry(age(path)).or_insert(place.modified);
                *at = (*at).min(place.modified);
            }
        }
        self.seen = Some((now, all));
    }

    /// The time until rotation deletes the file at a path; `None` if that is unknown.
    pub(super) fn deleted_in(&self, path: &Path, now: Timestamp) -> Option<Duration> {
        let log = log_of(path);
        let deleted = self.deleted.get(&log)?;
        let (_, seen) = self.seen.as_ref()?;
        let files = seen.get(&log)?;
        // Another deletion was not the work of rotation.
        let (oldest, _) = files.first_key_value()?;
        if deleted.age > *oldest {
            return None;
        }
        let newer: Vec<Timestamp> = files.values().rev().copied().collect();
        // The newest is still written to.
        let rotated = newer.get(1..).unwrap_or_default();
        let interval = interval(rotated).or_else(|| deleted.interval())?;
        let last = rotated.first().copied().unwrap_or(deleted.last);
        if now.since(last) > interval * SILENT_INTERVALS_MAX {
            return None;
        }
        let next = interval.saturating_sub(now.since(last));
        let older = files.range(..age(path)).count();
        Some(next + interval.saturating_mul(u32::try_from(older).unwrap_or(u32::MAX)))
    }
}

impl Deleted {
    /// The mean time between two deletions.
    fn interval(&self) -> Option<Duration> {
        let span = self.last.since(self.first).checked_div(self.count.checked_sub(1)?)?;
        (span >= Duration::from_secs(1)).then_some(span)
    }
}

/// The median of the times between the newest rotations, which ended these files.
fn interval(rotated: &[Timestamp]) -> Option<Duration> {
    let pairs = rotated.windows(2).take(INTERVALS_MAX);
    let mut spans: Vec<Duration> = pairs.map(|pair| pair[0].since(pair[1])).collect();
    spans.sort_unstable();
    let median = spans.get(spans.len() / 2).copied()?;
    (median >= Duration::from_secs(1)).then_some(median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::places::Content;
    use skidder_os::{FileKind, Metadata};
    use std::sync::Arc;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1_000_000_000)
    }

    #[test]
    fn the_oldest_file_goes_with_the_next_rotation_once_one_was_seen_to_go() {
        let mut places = Places::default();
        for (path, modified) in [("/l/a", 100), ("/l/a.1", 90), ("/l/a.2", 80), ("/l/b.1", 80)] {
            let (kind, modified) = (FileKind::Regular, at(modified));
            let (device, inode, size, links, mode, uid, gid) = (1, 1, 1, 1, 0, 0, 0);
            let found = Metadata { kind, size, modified, device, inode, links, mode, uid, gid };
            places.put(Arc::from(Path::new(path)), &found, Content::Nothing, false);
        }
        let mut forecast = DeletionForecast::default();
        let asked = Monotonic::default();
        forecast.look(&places, asked);
        assert_eq!(forecast.deleted_in(Path::new("/l/a.2"), at(95)), None, "none was seen to go");
        forecast.note_deleted(Path::new("/l/a.3"), at(90));
        forecast.look(&places, asked);
        let seconds = |path: &str, now| {
            forecast.deleted_in(Path::new(path), at(now)).map(|span| span.as_secs())
        };
        assert_eq!(seconds("/l/a.2", 95), Some(5));
        assert_eq!(seconds("/l/a.1", 95), Some(15));
        assert_eq!(seconds("/l/b.1", 95), None, "another log");
        assert_eq!(seconds("/l/a.2", 121), None, "no rotation for three intervals");
    }
}
