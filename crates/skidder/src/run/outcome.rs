//! How a run ended.

use skidder_pipeline::Settle;

/// How a run ended.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// All that was read has its verdict.
    pub(crate) settled: bool,
    /// All cursors are durable.
    pub(crate) saved: bool,
    /// Why inputs had ended by themselves, for people.
    pub(super) failed: Vec<String>,
    /// What the system threw away before inputs saw it, for people.
    pub(super) lost: Vec<String>,
}

/// Logs what an output has not delivered at its end: what the next start repeats, and what is lost.
pub(super) fn log_left(settle: &Settle) {
    let lost = settle.give_up_unrepeatable();
    if lost > 0 {
        tracing::warn!(
            lost,
            "ended before everything was delivered; these events came from inputs that cannot be read again \
             and are dropped (`stopped`): `queue.disk` would keep them"
        );
    }
    let in_flight = settle.in_flight();
    if in_flight > 0 {
        tracing::warn!(
            in_flight,
            "ended before everything was delivered; the next start repeats it"
        );
    }
}
