//! Problems of inputs that read no files, in the log: each trouble once when it begins and once when it
//! is over, each loss when it begins, and from time to time while it grows.

use crate::problems;
use skidder_observe::{Loss, Problem, Problems, Sources};
use skidder_os::Monotonic;
use std::collections::BTreeMap;
use std::time::Duration;

/// The kind of problem that the input itself logs when it ends.
const FAILED: &str = "input_failed";

/// How often a loss that grows is logged.
const LOSS_EVERY: Duration = Duration::from_mins(1);

/// What was logged.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// Troubles that last.
    troubles: Vec<Problem>,
    /// Losses: how many events there were, and when.
    losses: BTreeMap<String, (u64, Monotonic)>,
}

impl Reports {
    /// How often to look.
    pub(super) const EVERY: Duration = Duration::from_secs(5);

    /// Looks at the inputs, and logs what is new.
    pub(super) fn look(&mut self, sources: &Sources, now: Monotonic) {
        let troubles = Problems::of_tasks(sources);
        self.begun(&troubles).for_each(warn);
        self.over(&troubles).for_each(|of| tracing::info!("over: {}", of.what));
        self.troubles = troubles;
        let losses = Problems::losses(sources);
        self.grown(&losses, Some(now)).for_each(|loss| warn(&loss.problem));
        self.note(&losses, now);
    }

    /// Logs at the end what has come since the last look.
    pub(super) fn look_last(&self, sources: &Sources) {
        self.begun(&Problems::of_tasks(sources)).for_each(warn);
        self.grown(&Problems::losses(sources), None).for_each(|loss| warn(&loss.problem));
    }

    /// Those of the troubles that were not there before.
    fn begun<'a>(&self, troubles: &'a [Problem]) -> impl Iterator<Item = &'a Problem> {
        let is_new = move |one: &&Problem| one.kind != FAILED && !has(&self.troubles, one);
        troubles.iter().filter(is_new)
    }

    /// Troubles that are no longer among these.
    fn over(&self, troubles: &[Problem]) -> impl Iterator<Item = &Problem> {
        self.troubles.iter().filter(move |before| before.kind != FAILED && !has(troubles, before))
    }

    /// Those of the losses that are to be logged at `now`; at the end all that have grown.
    fn grown<'a>(
        &self,
        losses: &'a [Loss],
        now: Option<Monotonic>,
    ) -> impl Iterator<Item = &'a Loss> {
        losses.iter().filter(move |loss| {
            // Losses of an input that has ended were logged while it ran.
            loss.problem.input.is_some()
                && self.losses.get(&loss.place).is_none_or(|(events, at)| {
                    let is_due = now.is_none_or(|now| now.since(*at) >= LOSS_EVERY);
                    is_due && loss.events != *events
                })
        })
    }

    /// Notes the losses that [`Self::grown`] finds, and forgets those of inputs that have ended.
    fn note(&mut self, losses: &[Loss], now: Monotonic) {
        let logged: Vec<_> =
            self.grown(losses, Some(now)).map(|loss| (loss.place.clone(), loss.events)).collect();
        self.losses.retain(|place, _| losses.iter().any(|loss| loss.place == *place));
        self.losses.extend(logged.into_iter().map(|(place, events)| (place, (events, now))));
    }
}

/// Whether a trouble is among these; its cause may have changed.
fn has(troubles: &[Problem], one: &Problem) -> bool {
    troubles.iter().any(|other| (&other.kind, &other.what) == (&one.kind, &one.what))
}

/// Logs a problem with its cause, and what to do.
fn warn(problem: &Problem) {
    let remedy = problem.remedy.as_deref();
    let text = problems::line(&Problem { since: None, since_ms: None, ..problem.clone() });
    tracing::warn!(remedy, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Monotonic {
        Monotonic(Duration::from_secs(second))
    }

    #[test]
    fn a_trouble_that_comes_later_begins_once_and_ends_once() {
        let trouble = |what: &str, cause: &str| {
            Problem::error("input_trouble", what.to_owned()).because(cause)
        };
        let failed = Problem::error(FAILED, "input `x` has ended".to_owned());
        let mut reports = Reports::default();
        let mut look = |troubles: Vec<Problem>| {
            let whats = |all: Vec<&Problem>| -> Vec<String> {
                all.into_iter().map(|one| one.what.clone()).collect()
            };
            let begun = whats(reports.begun(&troubles).collect());
            let over = whats(reports.over(&troubles).collect());
            reports.troubles = troubles;
            (begun, over)
        };
        let none = Vec::<String>::new;
        assert_eq!(look(vec![failed.clone()]), (none(), none()), "its input logs it");
        let begun = look(vec![failed, trouble("a", "away"), trouble("b", "away")]);
        assert_eq!(begun, (vec!["a".to_owned(), "b".to_owned()], none()));
        let same = look(vec![trouble("a", "refused"), trouble("b", "away")]);
        assert_eq!(same, (none(), none()), "the same trouble");
        let changed = look(vec![trouble("b", "away"), trouble("c", "away")]);
        assert_eq!(changed, (vec!["c".to_owned()], vec!["a".to_owned()]));
    }

    #[test]
    fn a_loss_is_logged_at_once_and_then_once_a_minute_while_it_grows() {
        let loss = |place: &str, events: u64| {
            let problem = Problem::warning("queue_full", format!("{events} events"));
            let problem = Problem { input: Some(place.to_owned()), ..problem };
            Loss { events, place: place.to_owned(), problem }
        };
        let mut reports = Reports::default();
        let mut look = |second: u64, losses: Vec<Loss>| -> Vec<u64> {
            let logged = reports.grown(&losses, Some(at(second))).map(|loss| loss.events).collect();
            reports.note(&losses, at(second));
            logged
        };
        assert_eq!(look(5, vec![loss("a", 10)]), [10]);
        assert_eq!(look(10, vec![loss("a", 20), loss("b", 1)]), [1], "another input");
        assert_eq!(look(64, vec![loss("a", 30), loss("b", 1)]), [0_u64; 0]);
        assert_eq!(look(65, vec![loss("a", 40), loss("b", 1)]), [40]);
        assert_eq!(look(200, vec![loss("a", 40), loss("b", 1)]), [0_u64; 0], "it does not grow");
        assert_eq!(look(205, vec![loss("a", 41)]), [41]);
        let of_ended = Problem::warning("queue_full", String::new());
        let ended = Loss { events: 9, place: "ended".to_owned(), problem: of_ended };
        assert_eq!(look(300, vec![ended]), [0_u64; 0], "they were logged while it ran");
        assert_eq!(look(305, vec![loss("a", 2)]), [2], "a new input of this name");
        let last = [loss("a", 3), loss("b", 1)];
        let at_end: Vec<u64> = reports.grown(&last, None).map(|loss| loss.events).collect();
        assert_eq!(at_end, [3, 1], "nothing is left out at the end");
    }
}
