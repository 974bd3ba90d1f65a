//! `add_fields`: merges constant fields over the event, objects deeply, everything else replaced.
//!
//! A key `@metadata` goes to what is said about the event. `@timestamp` is left alone: a
//! configuration can give it no time, and Filebeat ignores anything else.

use crate::constants::Constants;
use crate::footprint::Footprint;
use crate::processor::{Failure, Outcome, Processor};
use skidder_event::{EventMut, Map, Value};

/// Merges fields over every event.
#[derive(Clone, Debug)]
pub struct AddFields {
    fields: Map,
    metadata: Map,
}

impl AddFields {
    /// Where the fields go if nothing is said.
    pub const TARGET: &'static str = "fields";

    /// Puts `fields` under `target`; at the root if it is empty.
    pub fn new(target: &str, fields: &Map) -> Self {
        let mut rooted = Map::new();
        if target.is_empty() {
            rooted.merge(fields);
        } else {
            rooted.insert_path(target, fields.clone());
        }
        let metadata = match rooted.get("@metadata") {
            Some(Value::Map(metadata)) => metadata.clone(),
            _ => Map::new(),
        };
        rooted.remove_path("@metadata");
        rooted.remove_path("@timestamp");
        Self { fields: rooted, metadata }
    }
}

impl Processor for AddFields {
    fn name(&self) -> &'static str {
        "add_fields"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        if !self.fields.is_empty() {
            event.merge(&self.fields);
        }
        if !self.metadata.is_empty() {
            event.merge_metadata(&self.metadata);
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, constants: &Constants) -> Footprint {
        let below = (constants.fields(), constants.metadata());
        Footprint::of_merge(&self.fields, &self.metadata, below)
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        constants.merge(&self.fields, &self.metadata);
        true
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        let keys = self.fields.iter().map(|(key, _)| key.to_owned());
        let about = self.metadata.iter().map(|(key, _)| format!("@metadata.{key}"));
        format!("add_fields {}", keys.chain(about).collect::<Vec<_>>().join(", "))
    }
}
