//! Batches of a request and their verdicts.

use super::super::answer::{OfRequest, Verdicts};
use skidder_event::{Acknowledgement, Batch, Progress};
use skidder_input::{Intake, Source};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// Every event has its verdict.
    Taken,
    /// Its events have no verdict yet: sent again, they may come twice.
    Late,
    /// There was no room in the queue: no output has it.
    Full,
    /// The program ends.
    Stopped,
}

impl Outcome {
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Late => "no verdict within completion_timeout",
            Self::Full => "the queue is full",
            Self::Stopped => "the program ends",
        }
    }
}

/// Sends batches on and waits for their verdicts, at most so long, for which outputs hurry. What is not in a queue when this is dropped is given up:
/// the client sends it again.
pub(super) async fn deliver(
    batches: Vec<(Batch, u64)>,
    source: &mut Source,
    intake: &Intake,
    patience: Duration,
) -> Vec<Outcome> {
    let end = Instant::now() + patience;
    let mut outcomes = vec![Outcome::Taken; batches.len()];
    let mut verdicts = Vec::with_capacity(batches.len());
    let mut hindrance = None;
    for ((batch, bytes), outcome) in batches.into_iter().zip(&mut outcomes) {
        if let Some(hindrance) = hindrance {
            // Behind a batch that has no room none goes in: the order stays.
            *outcome = hindrance;
            continue;
        }
        let of_batch = Arc::new(Verdicts::of(1));
        let owed = Acknowledgement::new(OfRequest(Arc::clone(&of_batch)));
        let sending = source.send(batch, Progress::Acknowledge(owed, bytes));
        match timeout_at(end, sending).await {
            Ok(Ok(())) => verdicts.push(of_batch),
            Ok(Err(_)) => hindrance = Some(Outcome::Stopped),
            Err(_) => hindrance = Some(Outcome::Full),
        }
        if let Some(hindrance) = hindrance {
            *outcome = hindrance;
        }
    }
    for (of_batch, outcome) in verdicts.into_iter().zip(&mut outcomes) {
        *outcome = match timeout_at(end, intake.await_verdicts(of_batch.all())).await {
            Ok(true) => Outcome::Taken,
            Ok(false) => Outcome::Stopped,
            Err(_) => Outcome::Late,
        };
    }
    outcomes
}

/// Sends batches on whose verdicts something else waits for, within so long.
pub(super) async fn enter(
    batches: Vec<(Batch, u64)>,
    source: &mut Source,
    patience: Duration,
    verdicts: &Arc<Verdicts>,
) -> Outcome {
    let end = Instant::now() + patience;
    for (batch, bytes) in batches {
        let owed = Acknowledgement::new(OfRequest(Arc::clone(verdicts)));
        match timeout_at(end, source.send(batch, Progress::Acknowledge(owed, bytes))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Outcome::Stopped,
            Err(_) => return Outcome::Full,
        }
    }
    Outcome::Taken
}

/// The worst of them; that of no batch is [`Outcome::Taken`].
pub(super) fn worst(outcomes: &[Outcome]) -> Outcome {
    outcomes.iter().copied().max().unwrap_or(Outcome::Taken)
}
