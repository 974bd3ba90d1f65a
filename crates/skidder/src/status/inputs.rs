//! The inputs, as they are shown.

use super::text::span;
use crate::table::or_dash;
use serde::Serialize;
use serde_json::Value;
use skidder_observe::{bytes_text, grouped};

/// The head of [`InputLook::row`].
pub(crate) const INPUT_HEAD: [&str; 9] =
    ["INPUT", "STATE", "BEHIND", "OLDEST", "READ", "DELIVERED", "DROPPED", "DEAD", "IN FLIGHT"];

/// One input, or pair of input and output.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct InputLook {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) output: Option<String>,
    /// `reading`, `waiting`, `idle`, `blocked`, `ended`; nothing if that could not be had in time.
    pub(crate) state: Option<String>,
    pub(crate) blocked_on: Option<String>,
    pub(crate) blocked_ms: Option<u64>,
    pub(crate) last_error: Option<String>,
    /// As `/inputs/` tells them.
    pub(crate) ledger: Value,
    pub(crate) lag: Value,
}

impl InputLook {
    /// Of the answer of `/inputs/`; the one that is most behind first.
    pub(super) fn all(inputs: &Value) -> Vec<Self> {
        let inputs = inputs.as_array().map_or(&[][..], Vec::as_slice);
        let mut all: Vec<Self> = inputs.iter().map(Self::of).collect();
        all.sort_by_key(|input| std::cmp::Reverse(input.lag["behind_bytes"].as_u64()));
        all
    }

    fn of(input: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let ours = &input["skidder"];
        Self {
            id: text(&input["id"]).unwrap_or_default(),
            kind: text(&input["input"]).unwrap_or_default(),
            output: text(&input["output"]),
            state: text(&ours["state"]),
            blocked_on: text(&ours["blocked_on"]),
            blocked_ms: ours["blocked_ms"].as_u64(),
            last_error: text(&ours["last_error"]["text"]),
            ledger: ours["ledger"].clone(),
            lag: ours["lag"].clone(),
        }
    }

    /// The cells of it.
    pub(crate) fn row(&self) -> [String; 9] {
        let name = if self.id.is_empty() { &self.kind } else { &self.id };
        let name = match &self.output {
            Some(output) => format!("{name} → {output}"),
            None => name.clone(),
        };
        let state = match (&self.blocked_on, self.blocked_ms) {
            (Some(output), Some(since)) => format!("blocked on {output} {}", span(since)),
            _ => or_dash(self.state.as_ref()),
        };
        let count = |name: &str| grouped(self.ledger[name].as_u64().unwrap_or(0));
        [
            name,
            state,
            or_dash(self.lag["behind_bytes"].as_u64().map(|bytes| bytes_text(bytes as f64))),
            or_dash(self.lag["behind_ms"].as_u64().map(span)),
            count("read"),
            count("delivered"),
            count("dropped"),
            count("dead_lettered"),
            count("in_flight"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_input_that_is_most_behind_comes_first_and_says_what_it_is_blocked_on() {
        let ledger = json!({"read": 1234, "delivered": 1000, "dropped": 4, "dead_lettered": 0, "in_flight": 230});
        let behind = json!({"behind_bytes": 2048, "behind_ms": 61_000});
        let inputs = json!([
            {"id": "a", "input": "filestream", "skidder": {"ledger": ledger, "last_error": null}},
            {"id": "b", "input": "filestream", "output": "main", "skidder": {
                "ledger": ledger, "lag": behind, "state": "blocked", "blocked_on": "main", "blocked_ms": 12_000}},
        ]);
        let rows: Vec<String> =
            InputLook::all(&inputs).iter().map(|input| input.row().join("|")).collect();
        assert_eq!(
            rows,
            [
                "b → main|blocked on main 12 s|2.0 KiB|1 m 1 s|1,234|1,000|4|0|230",
                "a|-|-|-|1,234|1,000|4|0|230",
            ]
        );
    }
}
