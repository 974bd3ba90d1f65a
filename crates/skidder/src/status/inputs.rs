//! The inputs, as they are shown.

use super::look::per_second;
use super::text::span;
use crate::plain::plain;
use crate::table::or_dash;
use serde::Serialize;
use serde_json::Value;
use skidder_observe::{bytes_text, grouped};

/// The head of [`InputLook::row`].
pub(crate) const INPUT_HEAD: [&str; 9] =
    ["INPUT", "STATE", "BEHIND", "OLDEST", "READ", "DELIVERED", "DROPPED", "DEAD", "IN FLIGHT"];

/// The head of [`InputLook::received_row`].
pub(crate) const RECEIVED_HEAD: [&str; 13] = [
    "INPUT",
    "STATE",
    "SOURCES",
    "EVENTS/S",
    "BYTES/S",
    "READ",
    "DELIVERED",
    "DROPPED",
    "DEAD",
    "IN FLIGHT",
    "ERRORS",
    "LOST BEFORE",
    "TROUBLE",
];

/// One input, or pair of input and output.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct InputLook {
    pub(crate) id: String,
    /// Its name for people.
    pub(crate) name: String,
    /// Its number in the configuration.
    pub(crate) number: u64,
    pub(crate) kind: String,
    pub(crate) output: Option<String>,
    /// `reading`, `waiting`, `idle`, `blocked`, `ended`; nothing if that could not be had in time.
    pub(crate) state: Option<String>,
    pub(crate) blocked_on: Option<String>,
    pub(crate) blocked_ms: Option<u64>,
    pub(crate) last_error: Option<String>,
    /// How long ago that was, in milliseconds.
    pub(crate) last_error_ms: Option<u64>,
    /// The client, partition or file that had it.
    pub(crate) last_error_of: Option<String>,
    /// As in `/inputs/`.
    pub(crate) ledger: Value,
    pub(crate) lag: Value,
    /// If it reads no files.
    pub(crate) received: Option<ReceivedLook>,
}

/// What an input that reads no files receives.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReceivedLook {
    /// Connections, peers and the like that are open.
    pub(crate) sources_open: u64,
    /// Events and bytes a second since the look before.
    pub(crate) events_rate: f64,
    pub(crate) bytes_rate: f64,
    pub(crate) errors: u64,
    /// Dropped because an output had no room.
    pub(crate) refused: u64,
    /// Thrown away by the system.
    pub(crate) lost_before: u64,
    /// What keeps it from its work.
    pub(crate) trouble: Option<String>,
}

impl InputLook {
    /// Of two answers of `/inputs/`; the one that is most behind first.
    pub(super) fn all(before: &Value, now: &Value, seconds: f64) -> Vec<Self> {
        let list = |inputs: &Value| inputs.as_array().cloned().unwrap_or_default();
        let before = list(before);
        let of = |input: &Value| {
            let number =
                |input: &Value| (input["skidder"]["number"].as_u64(), input["output"].clone());
            let is_same = |other: &&Value| number(other) == number(input);
            Self::of(before.iter().find(is_same).unwrap_or(&Value::Null), input, seconds)
        };
        let mut all: Vec<Self> = list(now).iter().map(of).collect();
        all.sort_by_key(|input| std::cmp::Reverse(input.lag["behind_bytes"].as_u64()));
        all
    }

    fn of(before: &Value, input: &Value, seconds: f64) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let ours = &input["skidder"];
        let (id, kind) =
            (text(&input["id"]).unwrap_or_default(), text(&input["input"]).unwrap_or_default());
        let number = |name: &str| ours[name].as_u64().unwrap_or(0);
        let rate = |name: &str| {
            // An input that is not the one of the look before began at zero; so did one of another process.
            let then = before["skidder"][name].as_u64().unwrap_or(0);
            per_second(number(name).saturating_sub(then), seconds)
        };
        let received = ours["sources_open"].as_u64().map(|sources_open| ReceivedLook {
            sources_open,
            events_rate: rate("events_total"),
            bytes_rate: rate("bytes_total"),
            errors: number("errors_total"),
            refused: number("refused_total"),
            lost_before: number("lost_before_total"),
            trouble: text(&ours["trouble"]),
        });
        Self {
            received,
            name: text(&ours["name"])
                .unwrap_or_else(|| if id.is_empty() { kind.clone() } else { id.clone() }),
            number: number("number"),
            id,
            kind,
            output: text(&input["output"]),
            state: text(&ours["state"]),
            blocked_on: text(&ours["blocked_on"]),
            blocked_ms: ours["blocked_ms"].as_u64(),
            last_error: text(&ours["last_error"]["text"]),
            last_error_ms: ours["last_error"]["ms"].as_u64(),
            last_error_of: text(&ours["last_error"]["source"]).filter(|name| !name.is_empty()),
            ledger: ours["ledger"].clone(),
            lag: ours["lag"].clone(),
        }
    }

    /// Its name, and the output that it feeds here.
    fn shown_name(&self) -> String {
        match &self.output {
            Some(output) => format!("{} → {output}", self.name),
            None => self.name.clone(),
        }
    }

    fn shown_state(&self) -> String {
        match (&self.blocked_on, self.blocked_ms) {
            (Some(output), Some(since)) => format!("blocked on {output} {}", span(since)),
            _ => or_dash(self.state.as_ref()),
        }
    }

    /// A line about the last error of one that reads no files.
    pub(crate) fn last_error_line(&self) -> Option<String> {
        self.received.as_ref()?;
        let (error, ago) = (self.last_error.as_deref()?, span(self.last_error_ms?));
        let of = self.last_error_of.as_deref().map(|of| format!(", of {of}")).unwrap_or_default();
        let name = self.shown_name();
        Some(format!("last error of `{name}`, {ago} ago{}: {}", plain(&of), plain(error)))
    }

    /// The cells of one that reads no files.
    pub(crate) fn received_row(&self) -> Option<[String; 13]> {
        let received = self.received.as_ref()?;
        let count = |name: &str| grouped(self.ledger[name].as_u64().unwrap_or(0));
        Some([
            self.shown_name(),
            self.shown_state(),
            grouped(received.sources_open),
            format!("{:.0}", received.events_rate),
            bytes_text(received.bytes_rate),
            count("read"),
            count("delivered"),
            count("dropped"),
            count("dead_lettered"),
            count("in_flight"),
            grouped(received.errors),
            grouped(received.lost_before),
            or_dash(received.trouble.as_ref()),
        ])
    }

    /// The cells of one that reads files.
    pub(crate) fn row(&self) -> Option<[String; 9]> {
        if self.received.is_some() {
            return None;
        }
        let count = |name: &str| grouped(self.ledger[name].as_u64().unwrap_or(0));
        Some([
            self.shown_name(),
            self.shown_state(),
            or_dash(self.lag["behind_bytes"].as_u64().map(|bytes| bytes_text(bytes as f64))),
            or_dash(self.lag["behind_ms"].as_u64().map(span)),
            count("read"),
            count("delivered"),
            count("dropped"),
            count("dead_lettered"),
            count("in_flight"),
        ])
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
        let all = InputLook::all(&json!([]), &inputs, 1.0);
        let rows: Vec<String> =
            all.iter().filter_map(InputLook::row).map(|row| row.join("|")).collect();
        assert_eq!(
            rows,
            [
                "b → main|blocked on main 12 s|2.0 KiB|1 m 1 s|1,234|1,000|4|0|230",
                "a|-|-|-|1,234|1,000|4|0|230",
            ]
        );
    }

    #[test]
    fn the_last_error_of_an_input_that_reads_no_files_is_a_line_with_its_time_and_source() {
        let error = json!({"source": "10.0.0.1:7", "text": "Invalid\u{7} token", "ms": 61_000});
        let inputs = json!([
            {"id": "a", "input": "http_endpoint", "skidder": {"sources_open": 0, "name": "a", "last_error": error}},
            {"id": "b", "input": "http_endpoint", "skidder": {"sources_open": 0, "name": "b", "last_error": null}},
            {"id": "c", "input": "filestream", "skidder": {"name": "c", "last_error": {"path": "/c", "text": "t", "ms": 1}}},
        ]);
        let all = InputLook::all(&json!([]), &inputs, 1.0);
        let lines: Vec<String> = all.iter().filter_map(InputLook::last_error_line).collect();
        assert_eq!(lines, ["last error of `a`, 1 m 1 s ago, of 10.0.0.1:7: Invalid\\u0007 token"]);
    }

    #[test]
    fn an_input_without_files_shows_what_it_receives_and_what_is_wrong() {
        let ledger = json!({"read": 1234, "delivered": 1000, "dropped": 4, "dead_lettered": 0, "in_flight": 230});
        let input = |number: u64, events: u64| {
            json!({"id": "", "input": "udp", "output": "main", "skidder": {
                "name": "udp :9001", "number": number, "ledger": ledger, "state": "waiting",
                "sources_open": 3, "events_total": events, "bytes_total": events * 1024, "errors_total": 7,
                "refused_total": 4, "lost_before_total": 9, "trouble": "cannot listen on :9001"}})
        };
        let (before, now) = (json!([input(1, 500), input(0, 0)]), json!([input(0, 20)]));
        let all = InputLook::all(&before, &now, 2.0);
        assert_eq!(
            all[0].received_row().expect("it reads no files").join("|"),
            "udp :9001 → main|waiting|3|10|10.0 KiB|1,234|1,000|4|0|230|7|9|cannot listen on :9001"
        );
        assert!(all[0].row().is_none());
        // One that began meanwhile, and one that counts from zero again.
        let fresh = InputLook::all(&json!([]), &now, 2.0).remove(0).received;
        let again = InputLook::all(&json!([input(0, 500)]), &now, 2.0).remove(0).received;
        assert_eq!(fresh.map(|of| of.events_rate), Some(10.0));
        assert_eq!(again.map(|of| of.events_rate), Some(0.0));
    }
}
