//! A log that rotates while it is written, as logrotate does it.

use super::faults::{gzip, open};
use crate::measure;
use anyhow::{Context, Result};
use skidder_os::{Clock, SystemClock};
use skidder_workload::Workload;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Lines are written so often.
const TICK: Duration = Duration::from_millis(10);
/// With copytruncate, a pause of writing before the copy: lines written between copy and truncation are lost
/// by every reader.
const STILL: Duration = Duration::from_millis(1);

/// How it rotates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    Rename,
    /// `compress` with `delaycompress`.
    RenameGzip,
    Copytruncate,
}

/// `app.log` and its predecessors `app.log.1`, `app.log.2` …
#[derive(Debug)]
pub(super) struct Log {
    folder: PathBuf,
    habit: Habit,
    /// Predecessors that are kept.
    keep: u32,
    workload: Workload,
    file: File,
}

impl Log {
    pub(super) fn new(folder: &Path, habit: Habit, keep: u32, seed: u64) -> Result<Self> {
        let file = open(folder)?;
        Ok(Self { folder: folder.to_owned(), habit, keep, workload: Workload::new(seed, 0), file })
    }

    /// Writes `lines` lines at `rate` a second and rotates after each `each` of them.
    pub(super) fn write(&mut self, lines: u64, rate: u64, each: u64) -> Result<()> {
        let clock = SystemClock::new();
        let began = clock.monotonic();
        let mut text = Vec::new();
        let mut next = began + TICK;
        let mut written = 0;
        while written < lines {
            measure::pause(next.since(clock.monotonic()));
            next = next + TICK;
            let passed = clock.monotonic().since(began).as_secs_f64();
            let due = ((passed * rate as f64) as u64).min(lines);
            while written < due {
                let piece = (due - written).min(each - written % each);
                text.clear();
                for _ in 0..piece {
                    self.workload.line(&mut text);
                }
                self.file.write_all(&text).context("cannot write a log")?;
                written += piece;
                if written.is_multiple_of(each) && written < lines {
                    self.rotate()?;
                }
            }
        }
        Ok(())
    }

    fn rotate(&mut self) -> Result<()> {
        let named =
            |number: u32, suffix: &str| self.folder.join(format!("app.log.{number}{suffix}"));
        for suffix in ["", ".gz"] {
            for number in (1..=self.keep).rev() {
                let from = named(number, suffix);
                if from.metadata().is_err() {
                    continue;
                }
                if number == self.keep {
                    fs::remove_file(&from)?;
                } else {
                    fs::rename(&from, named(number + 1, suffix))?;
                }
            }
        }
        let log = self.folder.join("app.log");
        if self.habit == Habit::Copytruncate {
            measure::pause(STILL);
            fs::copy(&log, named(1, ""))?;
            return self.file.set_len(0).context("cannot truncate a log");
        }
        fs::rename(&log, named(1, ""))?;
        self.file = open(&self.folder)?;
        let second = named(2, "");
        if self.habit == Habit::RenameGzip && second.metadata().is_ok() {
            gzip(&second)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::MultiGzDecoder;
    use skidder_workload::sequence_of;
    use std::io::Read;

    fn numbers(path: &Path) -> Vec<u64> {
        let bytes = fs::read(path).unwrap();
        let mut text = Vec::new();
        if path.extension().is_some_and(|extension| extension == "gz") {
            MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text).unwrap();
        } else {
            text = bytes;
        }
        text.split(|&byte| byte == b'\n').filter_map(sequence_of).collect()
    }

    #[test]
    fn each_habit_leaves_the_newest_lines_in_files_of_one_size() {
        for (habit, suffix) in
            [(Habit::Rename, ""), (Habit::RenameGzip, ".gz"), (Habit::Copytruncate, "")]
        {
            let folder = tempfile::tempdir().unwrap();
            Log::new(folder.path(), habit, 3, 1).unwrap().write(95, 10_000, 10).unwrap();
            let file = |name: String| numbers(&folder.path().join(name));
            assert_eq!(file("app.log".to_owned()), (90..95).collect::<Vec<u64>>(), "{habit:?}");
            assert_eq!(file("app.log.1".to_owned()), (80..90).collect::<Vec<u64>>(), "{habit:?}");
            assert_eq!(file(format!("app.log.3{suffix}")), (60..70).collect::<Vec<u64>>());
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "{habit:?}");
        }
    }
}
