//! How a run ended.

use super::span_of;
use skidder_event::DropReason;
use skidder_pipeline::Settle;
use std::sync::Arc;

/// How a run ended.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// All that was read has its verdict.
    pub(crate) settled: bool,
    /// All cursors are durable.
    pub(crate) saved: bool,
    /// Why inputs had ended by themselves, for people.
    pub(super) failed: Vec<String>,
    /// What inputs have lost, for people.
    pub(super) lost: Vec<String>,
    /// What each output has not delivered.
    pub(super) undelivered: Vec<Undelivered>,
}

/// What an output has not delivered at the end.
#[derive(Clone, Debug)]
pub(super) struct Undelivered {
    /// The id of the output, if there are several.
    output: Option<String>,
    /// Events that cannot be sent again, in the queue or before it: they are dropped.
    lost: u64,
    /// Events that the next start reads again, or the far side sends again.
    in_flight: u64,
}

/// The outputs by their ids, each with the verdicts on its events.
pub(super) type Settles = Vec<(Option<String>, Arc<Settle>)>;

/// Logs what outputs have not delivered when the program ends at once.
pub(super) fn log_given_up<'a>(outputs: impl Iterator<Item = &'a (Option<String>, Arc<Settle>)>) {
    for (id, settle) in outputs {
        Undelivered::of(id.clone(), settle).log();
    }
}

impl Undelivered {
    /// Of an output that has ended.
    pub(super) fn of(output: Option<String>, settle: &Settle) -> Self {
        settle.give_up_unrepeatable();
        let lost = settle.total().dropped().get(DropReason::Stopped);
        Self { output, lost, in_flight: settle.in_flight() }
    }

    fn log(&self) {
        let _in = span_of(self.output.as_deref()).entered();
        let Self { lost, in_flight, .. } = *self;
        if lost > 0 {
            tracing::warn!(
                lost,
                "ended before everything was delivered; these events came from inputs that cannot be read again \
                 and count as dropped (`stopped`), although the server may have some of them: `queue.disk` would keep them"
            );
        }
        if in_flight > 0 {
            tracing::warn!(
                in_flight,
                "ended before everything was delivered; the next start repeats it"
            );
        }
    }
}

impl Outcome {
    /// Logs undelivered events.
    pub(super) fn log_undelivered(&self) {
        self.undelivered.iter().for_each(Undelivered::log);
    }
}
