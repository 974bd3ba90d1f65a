//! Conditions on facts: the same as those on events.

use crate::json::to_map;
use serde_json::Value as Json;
use skidder_event::{Base, Batch, Map, Provenance, Row, SourceId, Text};
use skidder_processors::Condition;
use std::sync::Arc;

/// Facts as the fields of one event.
#[derive(Debug)]
pub(crate) struct View(Batch);

impl View {
    pub(crate) fn new(facts: &Json) -> Self {
        let base = Arc::new(Base::new(&to_map(facts), &Map::new()));
        let provenance = Provenance::new(SourceId(0), 0..0);
        let mut batch = Batch::new(Vec::new(), true, base, provenance);
        batch.push(Row::numbered(0, 0, Text { start: 0, len: 0 }, 0));
        Self(batch)
    }

    /// Whether the condition holds; without one, it does.
    pub(crate) fn meets(&self, condition: Option<&Condition>) -> bool {
        condition.is_none_or(|condition| condition.check(self.0.event(0)))
    }
}
