//! Adjacent steps that run on every event and become one.
//!
//! Two processors decide themselves whether one of them can do the work of both, with the same failures. Those that
//! count failures of their own, or undo all they did when a part fails, stay apart: what the one did must not
//! be undone with the other.

use super::compiled::Compiled;
use super::constants::Constants;
use super::failure::Failure;
use super::footprint::Footprint;
use super::processor::{Outcome, Processor};
use skidder_event::EventMut;
use std::any::Any;
use std::sync::Arc;

/// One step that does what both do, the second right behind the first. `in_branch`: in an `if`, where a step
/// that is incomplete keeps the rest of the list from running.
pub(crate) fn join(first: &Compiled, second: &Compiled, in_branch: bool) -> Option<Compiled> {
    let Compiled::Run { when: None, processor: first, failures } = first else { return None };
    let Compiled::Run { when: None, processor: second, .. } = second else { return None };
    let joined = first.join(&**second, in_branch)?;
    let many = (&*joined as &dyn Any).is::<Joined>();
    let processor = if many { joined } else { Arc::new(Joined { all: joined, steps: 2 }) };
    Some(Compiled::Run { when: None, processor, failures: Arc::clone(failures) })
}

/// Whether a step does the same to an event over the one layer as over the other.
pub(crate) fn is_same_over(step: &Compiled, one: &Constants, other: &Constants) -> bool {
    let Compiled::Run { processor, .. } = step else { return false };
    let Some(paths) = one.differences(other) else { return false };
    let footprint = processor.footprint(one);
    let touches = |path| {
        footprint.everything
            || footprint.reads.iter().chain(&footprint.writes).any(|own| own.overlaps(path))
    };
    !paths.iter().any(touches)
}

/// The step with adjacent ones in its branches joined.
pub(crate) fn join_inside(step: Compiled) -> Compiled {
    match step {
        Compiled::Choose { condition, then, otherwise } => {
            Compiled::Choose { condition, then: join_list(&then), otherwise: join_list(&otherwise) }
        }
        Compiled::Branch(list) => Compiled::Branch(join_list(&list)),
        run @ Compiled::Run { .. } => run,
    }
}

fn join_list(list: &[Compiled]) -> Arc<[Compiled]> {
    let mut out: Vec<Compiled> = Vec::with_capacity(list.len());
    for step in list {
        let step = join_inside(step.clone());
        match out.last().and_then(|last| join(last, &step, true)) {
            Some(joined) => {
                out.pop();
                out.push(joined);
            }
            None => out.push(step),
        }
    }
    out.into()
}

/// A processor that does the work of several.
#[derive(Debug)]
struct Joined {
    all: Arc<dyn Processor>,
    steps: usize,
}

impl Processor for Joined {
    fn name(&self) -> &'static str {
        self.all.name()
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.all.run(event)
    }

    fn footprint(&self, constants: &Constants) -> Footprint {
        self.all.footprint(constants)
    }

    fn can_fail(&self) -> bool {
        self.all.can_fail()
    }

    fn can_stop(&self) -> bool {
        self.all.can_stop()
    }

    fn join(&self, next: &dyn Processor, in_branch: bool) -> Option<Arc<dyn Processor>> {
        let all = self.all.join(next, in_branch)?;
        Some(Arc::new(Self { all, steps: self.steps + 1 }))
    }

    fn describe(&self) -> String {
        format!("{} ({} steps in one pass)", self.all.describe(), self.steps)
    }
}
