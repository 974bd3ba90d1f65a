//! Events that inputs have lost: nothing sends them again.

use super::{Problem, Problems};
use crate::inputs::InputList;
use crate::snapshot::{InputSource, OutputSource, Sources};
use crate::summary::grouped;
use skidder_event::DropReason;
use skidder_input::InputTask;
use skidder_pipeline::{Ledger, Settle};
use std::collections::BTreeSet;

/// The remedy where a queue was full.
const MORE_ROOM: &str = "raise `queue.mem.events`, keep the queue on the disk (`queue.disk`), \
                         or make the output faster: more workers, or another host";

/// Events that an input has lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// How many there are.
    pub events: u64,
    /// Which input lost them where; stays the same while the number grows.
    pub place: String,
    /// The same for people, with what to do.
    pub problem: Problem,
}

impl Problems {
    /// What the inputs have lost. Costs little, and more only if there is something.
    pub fn losses(sources: &Sources) -> Vec<Loss> {
        let mut seen = BTreeSet::new();
        let mut losses = Vec::new();
        for output in &sources.outputs {
            let list = output.inputs.list();
            let fresh = list.iter().filter(|input| seen.insert(input.number));
            losses.extend(fresh.filter_map(|input| lost_before(input.counts.task()?)));
            losses.extend(queue_full_of(output));
        }
        if sources.outputs.len() == 1 {
            for loss in &mut losses {
                loss.problem.output = None;
            }
        }
        losses
    }
}

/// Events that the system dropped before an input saw them, if there are any.
pub fn lost_before(task: &InputTask) -> Option<Loss> {
    let events = task.metrics().lost_before.total();
    (events > 0).then(|| {
        let (name, lost) = (task.name(), grouped(events));
        let what =
            format!("input `{name}`: the system threw away {lost} events before skidder saw them");
        let remedy = "raise `read_buffer`, and `sysctl net.core.rmem_max` to at least as much";
        let problem = Problem::warning("lost_before", what).remedy(remedy);
        let problem = Problem { input: Some(task.id().to_owned()), ..problem };
        Loss { events, place: format!("before {name}"), problem }
    })
}

fn queue_full_of(output: &OutputSource) -> Vec<Loss> {
    queue_full(output.id.as_deref(), &output.inputs, &output.settle)
}

/// Events that inputs had to drop because the queue of an output was full: of each input, and of all
/// that have ended. `output` is the id of the output, if it has one.
pub fn queue_full(output: Option<&str>, inputs: &InputList, settle: &Settle) -> Vec<Loss> {
    if dropped(&settle.total()) == 0 {
        return Vec::new();
    }
    let (total, of_inputs) = settle.ledgers();
    let mut rest = dropped(&total);
    let queue = match output {
        Some(id) => format!("the queue of the output `{id}`"),
        None => "the queue".to_owned(),
    };
    let loss = |who: String, input: Option<&InputSource>, events: u64| {
        let noun = if events == 1 { "event" } else { "events" };
        let what = format!("{who} dropped {} {noun}", grouped(events));
        let problem = Problem::warning("queue_full", what)
            .because(format!("{queue} was full, and nothing sends such events again"))
            .remedy(MORE_ROOM);
        let (output, input) = (output.map(str::to_owned), input.map(|input| input.id.clone()));
        Loss {
            events,
            place: format!("{queue} {who}"),
            problem: Problem { output, input, ..problem },
        }
    };
    let mut losses = Vec::new();
    for input in inputs.list().iter() {
        let events = of_inputs.get(&input.slot).map_or(0, dropped);
        rest = rest.saturating_sub(events);
        if events > 0 {
            let name = input.counts.task().map_or(&*input.title, |task| task.name());
            losses.push(loss(format!("input `{name}`"), Some(input), events));
        }
    }
    if rest > 0 {
        losses.push(loss("inputs that have ended".to_owned(), None, rest));
    }
    losses
}

fn dropped(ledger: &Ledger) -> u64 {
    ledger.dropped().get(DropReason::QueueFull)
}
