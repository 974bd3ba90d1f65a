//! New sources without a delivered event: they are saved a little later than others, because nearly always
//! their cursors have moved by then, so that one change is saved instead of two.

use skidder_event::SourceId;
use skidder_os::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

/// After this time a new source is saved, even without a delivered event. A crash before that finds its source as new
/// again.
const SAVED_AFTER: Duration = Duration::from_secs(5);

/// New sources in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Newcomers {
    /// By the time of the first commit after they came.
    seen: VecDeque<(Timestamp, Vec<SourceId>)>,
    /// Those since the last commit.
    unseen: Vec<SourceId>,
    /// All are due: it is the last commit.
    hurried: bool,
}

impl Newcomers {
    /// A source came.
    pub(super) fn add(&mut self, source: SourceId) {
        self.unseen.push(source);
    }

    /// All that have come, and come from now on, are due with the next commit.
    pub(super) fn hurry(&mut self) {
        self.hurried = true;
    }

    /// Those that are due with the commit that is made now.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<SourceId> {
        let unseen = std::mem::take(&mut self.unseen);
        if !unseen.is_empty() {
            self.seen.push_back((now, unseen));
        }
        let mut due = Vec::new();
        // A clock that was set back does not keep them for ever.
        let is_due = |at: Timestamp| self.hurried || now < at || now.since(at) >= SAVED_AFTER;
        while let Some((_, sources)) = self.seen.pop_front_if(|(at, _)| is_due(*at)) {
            due.extend(sources);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1_000_000_000)
    }

    #[test]
    fn new_sources_are_due_a_while_after_the_commit_that_saw_them() {
        let mut newcomers = Newcomers::default();
        newcomers.add(SourceId(1));
        assert_eq!(newcomers.take_due(at(10)), []);
        newcomers.add(SourceId(2));
        assert_eq!(newcomers.take_due(at(12)), []);
        assert_eq!(newcomers.take_due(at(15)), [SourceId(1)]);
        assert_eq!(newcomers.take_due(at(16)), []);
        assert_eq!(newcomers.take_due(at(11)), [SourceId(2)], "the clock was set back");
        newcomers.add(SourceId(3));
        newcomers.hurry();
        newcomers.add(SourceId(4));
        assert_eq!(newcomers.take_due(at(11)), [SourceId(3), SourceId(4)]);
    }
}
