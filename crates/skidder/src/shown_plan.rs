//! The compiled plan of an input, for people: `skidder explain` prints it and the page shows it.

use crate::input_plan::InputPlan;
use crate::inputs::Input;
use skidder_event::Map;
use skidder_observe::{Describe, Step};
use skidder_processors::StepNote;
use std::sync::Arc;

/// The plan for a file that does not exist yet.
#[derive(Debug)]
pub(crate) struct ShownPlan {
    plan: Arc<InputPlan>,
    /// The path of the file, if the input reads files.
    path: Option<Box<str>>,
    kind: &'static str,
}

impl ShownPlan {
    /// For a file at `path`; without one the first pattern is its name. Or for any source, if the input reads
    /// no files.
    pub(crate) fn of(input: &Input, path: Option<&str>) -> Self {
        let path = input.files().map(|settings| {
            let first = settings.scan.patterns.first().map(skidder_read::glob::Pattern::as_str);
            path.or(first).unwrap_or_default().into()
        });
        Self { plan: Arc::clone(&input.plan), path, kind: input.kind() }
    }

    /// The fields of the file.
    fn fields(&self) -> Map {
        let mut fields = Map::new();
        if let Some(path) = &self.path {
            fields.insert_path("log.file.path", &**path);
        }
        fields.insert_path("input.type", self.kind);
        fields
    }
}

impl Describe for ShownPlan {
    fn steps(&self) -> Vec<Step> {
        let notes = self.plan.describe(&self.fields());
        // The condition of the output is behind them, and is not timed.
        let conditions = usize::from(self.plan.condition().is_some());
        let left = notes.iter().filter(|note| note.fate.is_left()).count() - conditions;
        let costs = self.plan.times().of(left).unwrap_or_default();
        let mut costs = costs.into_iter();
        let step = |note: StepNote| Step {
            cost: if note.fate.is_left() { costs.next() } else { None },
            when: note.fate.to_string(),
            step: note.step,
        };
        notes.into_iter().map(step).collect()
    }

    fn measure(&self) {
        self.plan.times().ask();
    }
}
