//! The states of inputs and outputs, in one word.

use crate::lag::LagNumbers;
use crate::snapshot::OutputSource;
use skidder_input::InputState as TaskState;
use skidder_os::Monotonic;
use skidder_pipeline::Ledger;
use skidder_read::FileState;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// So long the oldest batch must wait for room until an output is called blocked: one that works at its limit has
/// batches that wait, too, but not for long.
const BLOCKED_AFTER: Duration = Duration::from_secs(2);

/// The state of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputState {
    /// Events are on their way.
    Delivering,
    /// There is nothing to do.
    Idle,
    /// Its queue is full, and nothing of it gets a verdict.
    Blocked,
    /// Events are to be on their way, and nothing of them got a verdict since a request failed.
    Failing,
    /// It has ended by itself.
    Ended,
}

/// The state of an input, seen from an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputState {
    /// It reads.
    Reading,
    /// There is something to read, and every file that has some waits for a place or for metadata.
    Waiting,
    /// Its files are read to their ends.
    Idle,
    /// There is something to read, and the queue of its output is full.
    Blocked,
    /// Its output has ended by itself.
    Ended,
}

impl OutputState {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Delivering, Self::Idle, Self::Blocked, Self::Failing, Self::Ended];

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivering => "delivering",
            Self::Idle => "idle",
            Self::Blocked => "blocked",
            Self::Failing => "failing",
            Self::Ended => "ended",
        }
    }

    /// The state of an output, and for how long it has been blocked if it is.
    pub(crate) fn of(
        output: &OutputSource,
        ledger: &Ledger,
        now: Monotonic,
    ) -> (Self, Option<Duration>) {
        let blocked = output.queue.blocked_since().map(|since| now.since(since));
        let blocked = blocked.filter(|span| *span >= BLOCKED_AFTER);
        let state = match () {
            () if output.ended.load(Ordering::Relaxed) => Self::Ended,
            () if blocked.is_some() => Self::Blocked,
            () if ledger.in_flight() + ledger.stored() == 0 => Self::Idle,
            () if output.metrics.is_failing() => Self::Failing,
            () => Self::Delivering,
        };
        (state, blocked.filter(|_| state == Self::Blocked))
    }
}

impl InputState {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Reading, Self::Waiting, Self::Idle, Self::Blocked, Self::Ended];

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
            Self::Blocked => "blocked",
            Self::Ended => "ended",
        }
    }

    /// The state of an input whose files are so far behind, for an output in this state.
    pub(crate) fn of(lag: &LagNumbers, output: OutputState) -> Self {
        let reading = lag.of_state(FileState::Reading);
        let waiting = lag.of_state(FileState::Waiting);
        match output {
            OutputState::Ended => Self::Ended,
            _ if reading + waiting == 0 => Self::Idle,
            OutputState::Blocked => Self::Blocked,
            _ if reading > 0 => Self::Reading,
            _ => Self::Waiting,
        }
    }

    /// The state of an input that is a task, for an output in this state. Whether its far side has more is not known.
    /// One in trouble cannot ask it. `has_events`: events of it wait for an output.
    pub(crate) fn of_task(
        task: &TaskState,
        in_trouble: bool,
        has_events: bool,
        output: OutputState,
    ) -> Self {
        match (task, output) {
            (_, OutputState::Ended) | (TaskState::Ended | TaskState::Failed(_), _) => Self::Ended,
            (_, OutputState::Blocked) if has_events => Self::Blocked,
            (TaskState::Waiting | TaskState::Finishing, _) => Self::Waiting,
            (TaskState::Running, _) if in_trouble => Self::Waiting,
            (TaskState::Running, _) => Self::Reading,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_blocked_only_if_it_has_something_to_read() {
        let with = |states: &[(&'static str, u64)]| LagNumbers {
            states: states.iter().copied().collect(),
            ..LagNumbers::default()
        };
        let (reads, waits) =
            (with(&[("reading", 1), ("idle", 9), ("waiting", 1)]), with(&[("waiting", 2)]));
        let (rests, works) = (with(&[("idle", 3), ("closed", 2)]), OutputState::Delivering);
        let states = [
            (&reads, works, InputState::Reading),
            (&waits, works, InputState::Waiting),
            (&rests, works, InputState::Idle),
            (&reads, OutputState::Blocked, InputState::Blocked),
            (&waits, OutputState::Blocked, InputState::Blocked),
            (&rests, OutputState::Blocked, InputState::Idle),
            (&rests, OutputState::Ended, InputState::Ended),
        ];
        for (lag, output, expected) in states {
            assert_eq!(InputState::of(lag, output), expected, "{lag:?} {output:?}");
        }
    }

    #[test]
    fn an_input_that_is_a_task_reads_as_long_as_it_and_its_output_run() {
        let (running, works) = (TaskState::Running, OutputState::Idle);
        for (task, in_trouble, output, expected) in [
            (&running, false, works, InputState::Reading),
            (&running, true, works, InputState::Waiting),
            (&running, false, OutputState::Blocked, InputState::Blocked),
            (&running, false, OutputState::Ended, InputState::Ended),
            (&TaskState::Ended, false, works, InputState::Ended),
            (&TaskState::Waiting, false, works, InputState::Waiting),
            (&TaskState::Finishing, false, works, InputState::Waiting),
        ] {
            let state = InputState::of_task(task, in_trouble, true, output);
            assert_eq!(state, expected, "{task:?} {in_trouble} {output:?}");
        }
    }

    #[test]
    fn an_input_that_is_a_task_is_blocked_only_if_events_of_it_wait() {
        for (task, in_trouble, has_events, expected) in [
            (TaskState::Running, true, false, InputState::Waiting),
            (TaskState::Running, true, true, InputState::Blocked),
            (TaskState::Running, false, false, InputState::Reading),
            (TaskState::Finishing, false, true, InputState::Blocked),
            (TaskState::Waiting, false, false, InputState::Waiting),
        ] {
            let state = InputState::of_task(&task, in_trouble, has_events, OutputState::Blocked);
            assert_eq!(state, expected, "{task:?} {in_trouble} {has_events}");
        }
    }
}
