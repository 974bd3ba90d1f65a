//! The plan: all processors of an input, in Filebeat's order, ready to be bound to its sources.
//!
//! The order is: the input's processors; `agent.*`, `ecs.version`, `host.name` where they are
//! missing; the global processors.

mod bind;
mod bound;
mod compiled;
mod constants;
mod failure;
mod footprint;
mod forms;
mod join;
mod measure;
mod note;
mod processor;
mod rehearse;
mod shared;
mod template;

pub use bound::{BoundPlan, Watch};
pub use compiled::{Compiled, FailureCount};
pub use constants::Constants;
pub use failure::Failure;
pub use footprint::Footprint;
pub use measure::{Meter, StepCounts};
pub use note::{Fate, StepNote};
pub use processor::{Outcome, Processor};
pub use template::Template;

pub(crate) use failure::{ERROR_MESSAGE, LOG_FLAGS, add_error, append, message_if};
pub(crate) use rehearse::{is_owned_as, owned, rehearse};

use bind::Binder;
use forms::Forms;
use skidder_event::{EventMut, Map, Path, Value};
use std::sync::Arc;
use std::time::Duration;

/// What events have beyond the fields that their source gives to all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `message`, `@timestamp`, `log.offset` and perhaps `log.flags` and `@metadata._id`.
    Lines,
    /// Whatever a parser found.
    Any,
}

/// The processors of an input. Shared by all its sources.
#[derive(Debug)]
pub struct Plan {
    steps: Vec<Compiled>,
    /// Those that look at more than the event.
    outside: Vec<Arc<dyn Processor>>,
    /// Those of them that may have to know something about a source first.
    holding: Vec<Arc<dyn Processor>>,
    forms: Forms,
}

impl Plan {
    /// Puts the lists together. `builtin` holds `agent.*`, `ecs.version` and `host.name`.
    pub fn compile(
        input_processors: &[Compiled],
        builtin: &Map,
        global_processors: &[Compiled],
    ) -> Self {
        let builtin = (!builtin.is_empty()).then(|| Self::builtin(builtin));
        Self::of_lists([input_processors, builtin.as_slice(), global_processors])
    }

    /// The step that adds fields that are missing. Plans share it, see [`Plan::of_lists`].
    pub fn builtin(fields: &Map) -> Compiled {
        Compiled::new(Builtin::new(fields), None)
    }

    /// Puts the lists of an input together: its processors, what is [builtin](Plan::builtin), and those of all inputs.
    pub fn of_lists(lists: [&[Compiled]; 3]) -> Self {
        let steps = lists.concat();
        let looks_outside = |processor: &&Arc<dyn Processor>| processor.looks_outside();
        let all = processors(&steps);
        let outside = all.iter().map(|(processor, _)| *processor).filter(looks_outside);
        let outside: Vec<Arc<dyn Processor>> = outside.cloned().collect();
        let holding = outside.iter().filter(|processor| processor.can_hold()).cloned().collect();
        Self { steps, outside, holding, forms: Forms::default() }
    }

    /// Does the work that is the same for all events of a source once. `fields` are those that the input
    /// gives to all of them before processors run (`log.file.*`, `input.type`, `fields`, `tags`),
    /// `metadata` is what it says about them.
    pub fn bind(&self, fields: &Map, metadata: &Map, shape: Shape) -> BoundPlan {
        let mut binder = Binder::new(Constants::new(fields, metadata), shape);
        binder.add_all(&self.steps);
        binder.finish(&self.forms).0
    }

    /// What [`Plan::bind`] would do with each step. Those that are left are the steps of the bound plan, in
    /// this order.
    pub fn describe(&self, fields: &Map, metadata: &Map, shape: Shape) -> Vec<StepNote> {
        let mut binder = Binder::new(Constants::new(fields, metadata), shape).with_notes();
        binder.add_all(&self.steps);
        binder.finish(&self.forms).1
    }

    /// Whether [`Plan::hold`] can ever return a time.
    pub fn can_hold(&self) -> bool {
        !self.holding.is_empty()
    }

    /// How long to wait before calling this again, if a processor needs to know something about a
    /// source before its lines are read.
    pub fn hold(&self, fields: &Map, metadata: &Map) -> Option<Duration> {
        if !self.can_hold() {
            return None;
        }
        let constants = Constants::new(fields, metadata);
        self.holding.iter().filter_map(|processor| processor.hold(&constants)).min()
    }

    /// A number that grows when an outside input of binding has changed, such as the addresses of
    /// the host. A bound plan must be bound again then. May read files when a cache has expired.
    pub fn epoch(&self) -> u64 {
        self.outside.iter().map(|processor| processor.epoch()).sum()
    }

    /// The failures of every processor that can fail, in the order of the list.
    pub fn failures(&self) -> Vec<Arc<FailureCount>> {
        let all = processors(&self.steps);
        let failing = all.iter().filter(|(processor, _)| processor.can_fail());
        failing.map(|(_, failures)| Arc::clone(failures)).collect()
    }
}

fn processors(steps: &[Compiled]) -> Vec<(&Arc<dyn Processor>, &Arc<FailureCount>)> {
    let mut all = Vec::new();
    for step in steps {
        step.collect(&mut all);
    }
    all
}

/// Adds fields that are missing. Filebeat's own merge replaces a value by an object of the same
/// name (`agent: x` by `agent: {name: …}`); here nothing of the event is ever lost to it.
#[derive(Debug)]
struct Builtin {
    fields: Map,
    leaves: Vec<(Path, Value)>,
}

impl Builtin {
    fn new(fields: &Map) -> Self {
        let mut leaves = Vec::new();
        collect(fields, "", &mut leaves);
        Self { fields: fields.clone(), leaves }
    }
}

fn collect(map: &Map, prefix: &str, out: &mut Vec<(Path, Value)>) {
    for (key, value) in map.iter() {
        let name = format!("{prefix}{key}");
        match value {
            Value::Map(inner) => collect(inner, &format!("{name}."), out),
            value => {
                let path = Path::parse(&name).expect("the program's own field names are paths");
                out.push((path, value.clone()));
            }
        }
    }
}

impl Processor for Builtin {
    fn name(&self) -> &'static str {
        "builtin"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        for (path, value) in &self.leaves {
            if !event.as_ref().has(path) {
                let mark = event.mark();
                if event.put(path, value).is_err() {
                    // A value that is not an object has the name: it stays.
                    event.rollback(mark);
                }
            }
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let writes = self.leaves.iter().map(|(path, _)| path.clone()).collect();
        Footprint { writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        constants.merge_missing(&self.fields);
        true
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        let names: Vec<_> = self.leaves.iter().map(|(path, _)| path.as_str()).collect();
        format!("{} where missing", names.join(", "))
    }
}
