//! The last failure of work that is retried, for people: where, the error, since when, how often.

use skidder_os::{Timestamp, is_out_of_descriptors};
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a text that are kept.
const TEXT_BYTES_MAX: usize = 1024;

/// Failures in a row of one piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The first of them.
    pub since: Timestamp,
    /// The last of them.
    pub last: Timestamp,
    /// How many.
    pub times: u64,
    /// The host, path or topic of the last one.
    pub place: String,
    /// The text of the last error.
    pub error: String,
    /// What to do about it, if that is known.
    pub remedy: Option<String>,
}

/// Keeps the last failure. Memory: one place and one error, each at most 1 KiB.
#[derive(Debug, Default)]
pub struct LastFailure(Mutex<Option<Failing>>);

impl LastFailure {
    /// Records a failure at `place`. `again`: nothing worked since the one before, so that it is the same row of failures.
    pub fn failed(
        &self,
        now: Timestamp,
        place: &dyn Display,
        error: &dyn Display,
        remedy: Option<&str>,
        again: bool,
    ) {
        let (place, error) = (short(place.to_string()), short(error.to_string()));
        let mut kept = self.lock();
        let before = kept.as_ref().filter(|_| again);
        let (since, times) = before.map_or((now, 1), |row| (row.since, row.times + 1));
        let remedy = remedy.map(str::to_owned);
        *kept = Some(Failing { since, last: now, times, place, error, remedy });
    }

    /// Records a failure of the disk at `path`.
    pub fn failed_on_disk(&self, now: Timestamp, path: &Path, error: &io::Error) {
        self.failed(now, &path.display(), error, disk_remedy(error), true);
    }

    /// It works again.
    pub fn worked(&self) {
        self.lock().take();
    }

    /// The last failure, if there is one.
    pub fn get(&self) -> Option<Failing> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Failing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to do about an error of the disk under the data.
pub fn disk_remedy(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull => Some("the disk is full: make room on it"),
        io::ErrorKind::QuotaExceeded => {
            Some("the quota of the disk is used up: raise it, or make room")
        }
        io::ErrorKind::PermissionDenied => {
            Some("give the user of skidder the right to write there")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            Some("the file system is read-only: see `dmesg` for why, and remount it")
        }
        _ if is_out_of_descriptors(error) => {
            Some("raise the limit on open files (`ulimit -n`, `LimitNOFILE`)")
        }
        _ => None,
    }
}

fn short(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_count_from_the_first_and_show_the_last() {
        let failure = LastFailure::default();
        assert_eq!(failure.get(), None);
        for (second, again, since, times) in [(1, true, 1, 1), (5, true, 1, 2), (9, false, 9, 1)] {
            failure.failed(
                Timestamp(second),
                &"host:1",
                &format_args!("error {second}"),
                None,
                again,
            );
            let kept = failure.get().unwrap();
            assert_eq!((kept.since.0, kept.last.0, kept.times), (since, second, times));
            assert_eq!((&*kept.place, &*kept.error), ("host:1", &*format!("error {second}")));
        }
        failure.failed(Timestamp(10), &"h", &"é".repeat(5000), Some("x"), true);
        assert_eq!(failure.get().unwrap().error.len(), TEXT_BYTES_MAX);
        failure.worked();
        assert_eq!(failure.get(), None);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        failure.failed_on_disk(Timestamp(11), Path::new("/data"), &full);
        let kept = failure.get().unwrap();
        assert_eq!(
            (&*kept.place, kept.remedy),
            ("/data", Some("the disk is full: make room on it".to_owned()))
        );
    }
}
