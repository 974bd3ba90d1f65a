//! The compiled plan of an input, for people: `skidder explain` prints it and the page shows it.

use crate::assemble::Input;
use crate::input_plan::InputPlan;
use skidder_event::Map;
use skidder_observe::Describe;
use std::sync::Arc;

/// The plan for a file that nobody has seen.
#[derive(Debug)]
pub(crate) struct ShownPlan {
    plan: Arc<InputPlan>,
    fields: Map,
}

impl ShownPlan {
    /// For a file at `path`; without one the first pattern stands for its name.
    pub(crate) fn of(input: &Input, path: Option<&str>) -> Self {
        let first = input.settings.scan.patterns.first().map(skidder_read::glob::Pattern::as_str);
        let mut fields = Map::new();
        fields.insert_path("log.file.path", path.or(first).unwrap_or_default());
        fields.insert_path("input.type", input.settings.kind.name());
        Self { plan: Arc::clone(&input.plan), fields }
    }
}

impl Describe for ShownPlan {
    fn steps(&self) -> Vec<(String, String)> {
        let notes = self.plan.describe(&self.fields);
        notes.into_iter().map(|note| (note.fate.to_string(), note.step)).collect()
    }
}
