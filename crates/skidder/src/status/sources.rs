//! Open sources of inputs that read no files, as they are shown.

use super::text::span;
use crate::plain::plain;
use crate::table::or_dash;
use serde::Serialize;
use serde_json::Value;
use skidder_observe::{bytes_text, grouped};

/// The head of [`SourceLook::row`].
pub(crate) const SOURCE_HEAD: [&str; 8] =
    ["EVENTS/S", "BYTES/S", "EVENTS", "BYTES", "LAST", "OPEN FOR", "INPUT", "SOURCE"];

/// One open source: a connection, a peer.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SourceLook {
    pub(crate) name: String,
    /// What its input is called, and its number in the configuration.
    pub(crate) input: String,
    pub(crate) input_number: u64,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    /// Events and bytes a second, if it is open for a second.
    pub(crate) events_rate: Option<f64>,
    pub(crate) bytes_rate: Option<f64>,
    /// Since it was opened, and since it sent events last.
    pub(crate) open_ms: Option<u64>,
    pub(crate) silent_ms: Option<u64>,
    pub(crate) last_error: Option<String>,
    /// How long ago that was.
    pub(crate) last_error_ms: Option<u64>,
    /// Records of a partition that have no verdict.
    pub(crate) behind: Option<u64>,
    /// How old the newest thing is that was read or seen, and the oldest that is not done.
    pub(crate) newest_ms: Option<u64>,
    pub(crate) oldest_ms: Option<u64>,
    /// Of an object that is being read: where its reader is, and its bytes.
    pub(crate) position: Option<u64>,
    pub(crate) size: Option<u64>,
}

impl SourceLook {
    /// Of the answer of `/sources`.
    pub(crate) fn all(answer: &Value) -> Vec<Self> {
        let sources = answer["sources"].as_array().map_or(&[][..], Vec::as_slice);
        sources.iter().map(Self::of).collect()
    }

    /// One of them.
    pub(crate) fn of(source: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(|text| plain(text).into_owned());
        let number = |name: &str| source[name].as_u64().unwrap_or(0);
        Self {
            name: text(&source["name"]).unwrap_or_default(),
            input: text(&source["input_name"]).unwrap_or_default(),
            input_number: number("input_number"),
            events: number("events"),
            bytes: number("bytes"),
            events_rate: source["events_rate"].as_f64(),
            bytes_rate: source["bytes_rate"].as_f64(),
            open_ms: source["open_ms"].as_u64(),
            silent_ms: source["silent_ms"].as_u64(),
            last_error: text(&source["last_error"]),
            last_error_ms: source["last_error_ms"].as_u64(),
            behind: source["behind"].as_u64(),
            newest_ms: source["newest_ms"].as_u64(),
            oldest_ms: source["oldest_ms"].as_u64(),
            position: source["position"].as_u64(),
            size: source["size"].as_u64(),
        }
    }

    /// Its cells; after its name how far it is behind, and an error.
    pub(crate) fn row(&self) -> [String; 8] {
        let mut name = self.name.clone();
        if let Some(behind) = self.behind.filter(|behind| *behind > 0) {
            name.push_str(&format!("; {} behind", grouped(behind)));
        }
        if let Some(position) = self.position {
            name.push_str(&format!("; {} read", bytes_text(position as f64)));
            if let Some(size) = self.size {
                name.push_str(&format!(" of {}", bytes_text(size as f64)));
            }
        }
        if let Some(oldest) = self.oldest_ms {
            name.push_str(&format!("; oldest {} ago", span(oldest)));
        }
        if let Some(newest) = self.newest_ms {
            name.push_str(&format!("; newest {} ago", span(newest)));
        }
        if let Some(error) = &self.last_error {
            let ago = self.last_error_ms.map(|ago| format!(" {} ago", span(ago)));
            name.push_str(&format!("; last error{}: {error}", ago.unwrap_or_default()));
        }
        [
            or_dash(self.events_rate.map(|rate| format!("{rate:.0}"))),
            or_dash(self.bytes_rate.map(bytes_text)),
            grouped(self.events),
            bytes_text(self.bytes as f64),
            or_dash(self.silent_ms.map(|silent| format!("{} ago", span(silent)))),
            or_dash(self.open_ms.map(span)),
            self.input.clone(),
            name,
        ]
    }
}
