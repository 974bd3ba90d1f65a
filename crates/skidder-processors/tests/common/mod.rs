//! Batches and documents for the tests of this crate.

#![allow(dead_code, unused_imports, reason = "every test program uses a part of it")]

pub(crate) mod tree;

pub(crate) use skidder_golden::{TIME, batch, document, map, path, value_of};

use serde_json::{Value as Json, json};
use skidder_event::Map;
use skidder_processors::{Plan, Shape};

/// The fields of a source as an input gives them.
pub(crate) fn source_fields() -> Json {
    json!({
        "log": {"file": {"path": "/var/log/a.log"}},
        "input": {"type": "filestream"},
    })
}

/// What a plan does with each of its steps, a line for each.
pub(crate) fn describe(plan: &Plan, fields: &Map, metadata: &Map, shape: Shape) -> String {
    let notes = plan.describe(fields, metadata, shape);
    notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
