//! Problems of outputs, and of the disk under the data.

use super::{Problem, Problems};
use crate::snapshot::{OutputSource, Sources};
use crate::states::OutputState;
use crate::summary::{bytes_text, grouped};
use skidder_event::DropReason;
use skidder_os::Timestamp;
use skidder_pipeline::{Failing, Ledger, Missing};
use std::time::Duration;

/// Events that are refused and lost are a problem for so long.
const REFUSED_FOR: Duration = Duration::from_hours(1);

/// The remedy for an output that takes nothing, if no better one is known.
const TEST_OUTPUT: &str = "`skidder test output` tries the way to it, step by step";

impl Problems {
    /// Problems of the outputs and of the data; sends no requests.
    pub fn of_outputs(&self, sources: &Sources) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut total = Ledger::default();
        for output in &sources.outputs {
            let ledger = output.settle.total();
            total.add(&ledger);
            let look =
                OutputProblems { sources, output, ledger: &ledger, now: sources.clock.wall() };
            let found =
                [look.data(), look.disk_queue(), look.takes_nothing(self.failing), look.refused()];
            let found = found.into_iter().flatten().chain(look.missing());
            problems.extend(found.map(|problem| look.of_output(problem)));
        }
        if !total.adds_up() {
            let what = "the ledger does not add up: a bug in skidder".to_owned();
            problems.push(Problem::error("ledger", what).remedy("please report it, with the log"));
        }
        if let Some((at, Some(error))) = sources.reloads.numbers().last {
            let what = "the changed configuration was refused; the one before goes on".to_owned();
            let problem =
                Problem::error("reload", what).because(error).since(at, sources.clock.wall());
            problems.push(problem.remedy("`skidder test config` shows all mistakes"));
        }
        problems
    }
}

/// One output, while its problems are looked for.
struct OutputProblems<'a> {
    sources: &'a Sources,
    output: &'a OutputSource,
    ledger: &'a Ledger,
    now: Timestamp,
}

impl OutputProblems<'_> {
    fn of_output(&self, problem: Problem) -> Problem {
        let several = self.sources.outputs.len() > 1;
        Problem { output: self.output.id.clone().filter(|_| several), ..problem }
    }

    /// Its name for people.
    fn name(&self) -> String {
        let kind = &self.output.kind;
        match &self.output.id {
            Some(id) => format!("{id} ({kind})"),
            None => kind.clone(),
        }
    }

    /// It has ended, is blocked, or has failed for at least `failing`.
    fn takes_nothing(&self, failing: Duration) -> Option<Problem> {
        let (sources, name) = (self.sources, self.name());
        let (state, blocked) = OutputState::of(self.output, self.ledger, sources.clock.monotonic());
        let metrics = &self.output.metrics;
        let failure = metrics.last_failure();
        let lasting = failure.clone().filter(|_| metrics.is_failing());
        let problem = match state {
            // With `--once` an output ends when all is delivered.
            OutputState::Ended if self.ledger.in_flight() + self.ledger.stored() == 0 => {
                return None;
            }
            OutputState::Ended => {
                let what = format!("the output {name} has ended by itself");
                let problem = Problem::error("output_ended", what)
                    .remedy("what it has not taken stays in the files: start skidder again");
                return Some(self.with_failure(problem, failure.as_ref()));
            }
            OutputState::Blocked => {
                Problem::error("output_blocked", format!("the output {name} is blocked"))
            }
            OutputState::Failing => {
                lasting.as_ref().filter(|lasting| self.now.since(lasting.since) >= failing)?;
                Problem::error("output_failing", format!("the output {name} delivers nothing"))
            }
            OutputState::Delivering | OutputState::Idle => return None,
        };
        let blocked_since = blocked.map(|span| self.now.earlier_by(span));
        let since = match (blocked_since, lasting.as_ref().map(|lasting| lasting.since)) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let problem = since.map_or(problem.clone(), |since| problem.since(since, self.now));
        let problem = match &lasting {
            Some(_) => self.with_failure(problem, lasting.as_ref()),
            None => problem.because(self.silence()),
        };
        Some(if problem.remedy.is_some() { problem } else { problem.remedy(TEST_OUTPUT) })
    }

    fn with_failure(&self, problem: Problem, failure: Option<&Failing>) -> Problem {
        let Some(Failing { place, error, times, remedy, .. }) = failure else { return problem };
        let times =
            if *times > 1 { format!(" ({} times)", grouped(*times)) } else { String::new() };
        let problem = problem.because(format!("{place}: {error}{times}"));
        match remedy {
            Some(remedy) => problem.remedy(remedy.as_str()),
            None => problem,
        }
    }

    /// Why an output is blocked that has met no error.
    fn silence(&self) -> String {
        let active = self.output.metrics.active.get();
        match (active, &self.output.disk) {
            (1.., _) => format!("no answer yet to {} events that were sent", grouped(active)),
            (0, Some(disk)) => {
                let limit = bytes_text(disk.settings().max_size as f64);
                format!("its queue on the disk is full ({limit})")
            }
            (0, None) => "its queue is full, and nothing of it is sent".to_owned(),
        }
    }

    /// The registry cannot be written.
    fn data(&self) -> Option<Problem> {
        let failing = self.output.registrar.as_ref()?.failure.get()?;
        let what = "the positions in the files cannot be saved, and a restart would repeat lines";
        Some(self.with_failure(
            Problem::error("registry", what.to_owned()).since(failing.since, self.now),
            Some(&failing),
        ))
    }

    fn disk_queue(&self) -> Option<Problem> {
        let failing = self.output.disk.as_ref()?.metrics().failure.get()?;
        let what = format!("the queue on the disk of the output {} does not work", self.name());
        Some(self.with_failure(
            Problem::error("disk_queue", what).since(failing.since, self.now),
            Some(&failing),
        ))
    }

    /// The server lacks something that events of some inputs name, so that it refuses them.
    fn missing(&self) -> Vec<Problem> {
        let problem = |missing: Missing| {
            let needs: Vec<_> = missing.needs.iter().map(|need| need.about.as_str()).collect();
            let what = format!(
                "the output {} lacks {}, and refuses the events of {}",
                self.name(),
                missing.what,
                needs.join(", ")
            );
            let remedy = "give it what is missing, which is tried again; \
                          then `skidder deadletters redrive` sends the refused events again";
            Problem::error("pipelines_missing", what)
                .because(missing.error)
                .remedy(remedy)
                .since(missing.since, self.now)
        };
        self.output.metrics.missing().into_iter().map(problem).collect()
    }

    /// The server refused events for good: they are in the dead letters until the user removes them, or lost.
    fn refused(&self) -> Option<Problem> {
        let refusals = self.output.metrics.refusals()?;
        let lost = self.ledger.dropped().get(DropReason::Rejected);
        let has_letters = self.output.dead_letters.as_ref().is_some_and(|path| {
            self.sources.fs.metadata(path).is_ok_and(|metadata| metadata.size > 0)
        });
        if !has_letters && self.now.since(refusals.last) >= REFUSED_FOR {
            return None;
        }
        let events = if refusals.events == 1 { "event" } else { "events" };
        let what =
            format!("the output {} refused {} {events}", self.name(), grouped(refusals.events));
        let fate = match lost {
            0 => String::new(),
            lost => format!("; {} of them are lost", grouped(lost)),
        };
        let problem = Problem::error(super::REFUSED, what + &fate)
            .because(format!("the first: {}", refusals.reason));
        let remedy = match (has_letters, lost) {
            (true, _) => {
                "`skidder deadletters list` shows them, `skidder deadletters redrive` sends them again"
            }
            (false, 0) => "they went to the dead-letter index",
            (false, _) => "`dead_letters.enabled: true` keeps them",
        };
        Some(problem.remedy(remedy).since(refusals.first, self.now))
    }
}
