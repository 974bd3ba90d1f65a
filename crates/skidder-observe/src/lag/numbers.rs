//! How far behind the files of an input, an output, or all of them are.

use skidder_read::{FileLook, FileState};
use std::collections::BTreeMap;
use std::time::Duration;

/// Sums over files, as a round of questions found them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LagNumbers {
    /// Files.
    pub files: u64,
    /// Files that are doing this.
    pub states: BTreeMap<&'static str, u64>,
    /// Files with bytes that have no verdict.
    pub behind_files: u64,
    /// These bytes.
    pub behind_bytes: u64,
    /// Compressed files that are not finished: how many bytes they have is unknown.
    pub unknown: u64,
    /// The oldest line without a verdict is at least so old.
    pub behind_for: Duration,
    /// Bytes a second that got their verdict since the round before.
    pub rate: f64,
    /// So soon rotation deletes the first file that has something without a verdict; nothing if it is not known of any.
    pub deleted_in: Option<Duration>,
    /// Files without a byte.
    pub empty: u64,
    /// Files that have nothing that can be read, though they are not empty.
    pub unreadable: u64,
    /// Plain files that are open: read to the end, to 95 percent at least, and less.
    pub ingested: [u64; 3],
    /// How long ago it was looked.
    pub age: Duration,
    /// Of several outputs: how many bytes each is behind, and its rate. The slowest decides when all have caught up.
    pub outputs: Vec<(u64, f64)>,
    /// Why nothing catches up as long as it stays so, if something is behind: `main is failing`.
    pub stuck: Option<String>,
}

/// One file, as a round sees it.
pub(super) struct Found<'a> {
    pub(super) look: &'a FileLook,
    pub(super) rate: Option<f64>,
    pub(super) behind_for: Duration,
}

impl LagNumbers {
    pub(super) fn add(&mut self, file: &Found<'_>) {
        let Found { look, rate, behind_for } = *file;
        self.files += 1;
        *self.states.entry(look.state.name()).or_default() += 1;
        self.rate += rate.unwrap_or(0.0);
        self.empty += u64::from(look.state == FileState::Empty);
        self.unreadable += u64::from(look.state == FileState::Unreadable);
        if !is_to_be_read(look) {
            return;
        }
        let is_open =
            matches!(look.state, FileState::Reading | FileState::Waiting | FileState::Idle);
        if is_open && !look.compressed {
            self.ingested[part_of(look.cursor, look.size)] += 1;
        }
        self.behind_for = self.behind_for.max(behind_for);
        match look.behind {
            None => self.unknown += 1,
            Some(0) => return,
            Some(bytes) => {
                self.behind_files += 1;
                self.behind_bytes += bytes;
            }
        }
        self.deleted_in = self.deleted_in.into_iter().chain(look.deleted_in).min();
    }

    /// Adds the sums over other files.
    pub(crate) fn add_all(&mut self, other: &Self) {
        // Taken apart, so that a new field cannot be forgotten.
        let Self {
            files,
            states,
            behind_files,
            behind_bytes,
            unknown,
            behind_for,
            rate,
            deleted_in,
            empty,
            unreadable,
            ingested,
            age,
            outputs,
            stuck,
        } = other;
        self.stuck = self.stuck.take().or_else(|| stuck.clone());
        self.outputs.extend(outputs);
        self.files += files;
        for (state, count) in states {
            *self.states.entry(state).or_default() += count;
        }
        self.behind_files += behind_files;
        self.behind_bytes += behind_bytes;
        self.unknown += unknown;
        self.behind_for = self.behind_for.max(*behind_for);
        self.rate += rate;
        self.deleted_in = self.deleted_in.into_iter().chain(*deleted_in).min();
        self.empty += empty;
        self.unreadable += unreadable;
        for (sum, more) in self.ingested.iter_mut().zip(ingested) {
            *sum += more;
        }
        self.age = self.age.max(*age);
    }

    /// Files in this state.
    pub fn of_state(&self, state: FileState) -> u64 {
        self.states.get(state.name()).copied().unwrap_or(0)
    }

    /// Adds the sums over the files of an output.
    pub(crate) fn add_output(&mut self, output: &Self) {
        self.add_all(output);
        self.outputs.push((output.behind_bytes, output.rate));
    }

    /// How long it takes at this rate until nothing is behind; nothing if nothing is, or nothing moves. Of several
    /// outputs the slowest decides. A rate is of the time before: it does not count for an output that is stuck.
    pub fn catch_up(&self) -> Option<Duration> {
        if self.stuck.is_some() {
            return None;
        }
        if self.outputs.is_empty() {
            return catch_up(self.behind_bytes, self.rate);
        }
        let behind = self.outputs.iter().filter(|(bytes, _)| *bytes > 0);
        behind
            .map(|(bytes, rate)| catch_up(*bytes, *rate))
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max()
    }
}

/// How long bytes take at a rate; nothing if there is nothing to do, or nothing moves.
pub(crate) fn catch_up(bytes: u64, rate: f64) -> Option<Duration> {
    let seconds = bytes as f64 / rate;
    (bytes > 0 && rate >= 1.0)
        .then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Whether the bytes behind its cursor are to be delivered.
pub(super) fn is_to_be_read(look: &FileLook) -> bool {
    !matches!(
        look.state,
        FileState::Ignored | FileState::Held | FileState::Empty | FileState::Unreadable
    )
}

/// Which of [`LagNumbers::ingested`] a file belongs to.
fn part_of(cursor: u64, size: u64) -> usize {
    match () {
        () if cursor >= size => 0,
        () if u128::from(cursor) * 100 >= u128::from(size) * 95 => 1,
        () => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_as_filebeat_cuts_them() {
        let parts = [(0, 0), (100, 100), (95, 100), (99, 100), (94, 100), (0, 1), (7, 5)];
        let found = parts.map(|(cursor, size)| part_of(cursor, size));
        assert_eq!(found, [0, 0, 1, 1, 2, 2, 0]);
    }

    #[test]
    fn the_slowest_output_decides_when_all_have_caught_up() {
        let of = |bytes, rate| LagNumbers { behind_bytes: bytes, rate, ..LagNumbers::default() };
        let mut total = LagNumbers::default();
        for (bytes, rate) in [(100, 50.0), (0, 0.0), (100, 10.0)] {
            total.add_output(&of(bytes, rate));
        }
        assert_eq!(total.catch_up(), Some(Duration::from_secs(10)));
        total.add_output(&of(1, 0.0));
        assert_eq!(total.catch_up(), None, "one is stuck");
    }

    #[test]
    fn what_is_stuck_has_no_time_whatever_its_rate() {
        let stuck = Some("main is failing".to_owned());
        let of_input = LagNumbers { behind_bytes: 100, rate: 50.0, stuck, ..LagNumbers::default() };
        let mut total = LagNumbers::default();
        total.add_output(&LagNumbers { behind_bytes: 100, rate: 50.0, ..LagNumbers::default() });
        assert_eq!(total.catch_up(), Some(Duration::from_secs(2)));
        total.add_output(&of_input);
        assert_eq!((of_input.catch_up(), total.catch_up()), (None, None));
        assert_eq!(total.stuck.as_deref(), Some("main is failing"));
    }

    #[test]
    fn catching_up_needs_a_pace_and_something_to_do() {
        assert_eq!(catch_up(100, 10.0), Some(Duration::from_secs(10)));
        assert_eq!(catch_up(0, 10.0), None);
        assert_eq!(catch_up(100, 0.5), None);
        assert_eq!(catch_up(u64::MAX, 1.0), Some(Duration::MAX));
    }
}
