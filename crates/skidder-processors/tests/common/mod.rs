//! Batches and documents for the tests of this crate.

#![allow(dead_code, unused_imports, reason = "every test program uses a part of it")]

pub(crate) mod tree;

pub(crate) use skidder_golden::{TIME, batch, document, map, path, value_of};

use serde_json::{Value as Json, json};

/// The fields of a source as an input gives them.
pub(crate) fn source_fields() -> Json {
    json!({
        "log": {"file": {"path": "/var/log/a.log"}},
        "input": {"type": "filestream"},
    })
}
