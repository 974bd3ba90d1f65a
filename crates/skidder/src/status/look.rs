//! Two answers of a running skidder compared, and whether all is well.

use super::inputs::InputLook;
use super::sources::SourceLook;
use crate::endpoint;
use crate::plain::plain;
use crate::status::text::span;
use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;
use skidder_observe::{HttpConfig, Problem};
use std::time::Duration;

/// Maximum files to check for a backlog.
const FILES_LOOKED_AT: usize = 1000;

/// Maximum open sources to read, the fastest first.
const SOURCES_LOOKED_AT: usize = 1000;

/// Maximum age of the state of the files.
const AGE_MAX: Duration = Duration::from_secs(1);

/// The answers of the program at one moment.
pub(crate) struct Sample {
    live: Value,
    lag: Value,
    inputs: Value,
    sources: Value,
    problems: Vec<Problem>,
}

impl Sample {
    /// Of these answers.
    #[cfg(test)]
    pub(crate) fn new(live: Value, lag: Value, inputs: Value, problems: Vec<Problem>) -> Self {
        Self { live, lag, inputs, sources: Value::Null, problems }
    }

    /// The same with these open sources.
    #[cfg(test)]
    pub(crate) fn with_sources(self, sources: Value) -> Self {
        Self { sources, ..self }
    }

    /// Queries the program; the state of the files is no older than `age`, if scanning them does not take too long. A
    /// file is behind after `behind`.
    pub(crate) fn ask(http: &HttpConfig, age: Duration, behind: Duration) -> Result<Self> {
        let age = age.min(AGE_MAX).as_millis();
        let lag = format!("/lag?sort=behind_ms&order=desc&limit={FILES_LOOKED_AT}&age_ms={age}");
        let lag = endpoint::get(http, &lag)?;
        let inputs = endpoint::get(http, "/inputs/")?;
        let sources = format!("/sources?sort=rate&order=desc&limit={SOURCES_LOOKED_AT}");
        let sources = endpoint::get(http, &sources)?;
        let behind = behind.as_millis();
        let mut problems = endpoint::get(http, &format!("/problems?behind_ms={behind}"))?;
        let problems = serde_json::from_value(problems["problems"].take())
            .context("the running skidder is of another version")?;
        Ok(Self { live: endpoint::get(http, "/ui/live")?, lag, inputs, sources, problems })
    }
}

/// The state of the program.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Look {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) version: String,
    pub(crate) uptime_ms: u64,
    /// Problems; empty if all is well.
    pub(crate) problems: Vec<Problem>,
    /// Lines and bytes a second that were read, lines that were delivered.
    pub(crate) read_rate: f64,
    pub(crate) read_bytes_rate: f64,
    pub(crate) delivered_rate: f64,
    /// As in `/ui/live`.
    pub(crate) ledger: Value,
    pub(crate) outputs: Vec<OutputLook>,
    /// Those that are most behind first.
    pub(crate) inputs: Vec<InputLook>,
    /// The totals, as in `/lag`.
    pub(crate) lag: Value,
    /// The files that are most behind first.
    pub(crate) files: Vec<FileLook>,
    /// Connections, peers and the like that are open.
    pub(crate) sources_open: u64,
    /// Of these the ones that send the most.
    pub(crate) sources: Vec<SourceLook>,
    pub(crate) resident_bytes: u64,
}

/// One output.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OutputLook {
    pub(crate) id: Option<String>,
    pub(crate) kind: String,
    /// `delivering`, `idle`, `blocked`, `failing`, `ended`.
    pub(crate) state: String,
    pub(crate) blocked_ms: Option<u64>,
    /// Events a second that it took.
    pub(crate) rate: f64,
    /// Mean time of a request, of those since the look before.
    pub(crate) latency_ms: Option<f64>,
    pub(crate) in_flight: u64,
    /// As in `/ui/live`.
    pub(crate) ledger: Value,
    pub(crate) retried: u64,
    pub(crate) errors: u64,
    /// Of these, since the look before.
    pub(crate) errors_now: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) queue_events: u64,
    pub(crate) queue_events_max: u64,
}

/// One file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FileLook {
    pub(crate) path: String,
    pub(crate) output: Option<String>,
    pub(crate) state: String,
    pub(crate) reason: Option<String>,
    pub(crate) behind: Option<u64>,
    pub(crate) behind_ms: u64,
    /// Bytes a second.
    pub(crate) rate: Option<f64>,
    pub(crate) catch_up_ms: Option<u64>,
    /// Until rotation deletes it, if that is known.
    pub(crate) deleted_in_ms: Option<u64>,
    /// The last error that was met with it.
    pub(crate) error: Option<String>,
}

impl Look {
    /// The changes between two samples.
    pub(crate) fn of(before: &Sample, now: &Sample) -> Self {
        let (old, new) = (&before.live, &now.live);
        let seconds =
            number(new, "uptime_ms").saturating_sub(number(old, "uptime_ms")) as f64 / 1e3;
        let rate = |name: &str| {
            let of_output = |output: &Value| output["rates"][name].as_f64();
            let outputs = new["outputs"].as_array().map_or(&[][..], Vec::as_slice);
            if outputs.iter().any(|output| of_output(output).is_some()) {
                return outputs.iter().filter_map(of_output).sum();
            }
            let more = number(&new["ledger"], name).saturating_sub(number(&old["ledger"], name));
            per_second(more, seconds)
        };
        let all = new["outputs"].as_array().map_or(&[][..], Vec::as_slice);
        let outputs = all.iter().enumerate();
        let files = now.lag["files"].as_array().map_or(&[][..], Vec::as_slice);
        Self {
            name: text(new, "name"),
            host: text(new, "host"),
            version: text(new, "version"),
            uptime_ms: number(new, "uptime_ms"),
            problems: now.problems.clone(),
            read_rate: rate("read"),
            read_bytes_rate: rate("read_bytes"),
            delivered_rate: rate("delivered"),
            ledger: new["ledger"].clone(),
            outputs: outputs
                .map(|(at, output)| OutputLook::of(&old["outputs"][at], output, seconds))
                .collect(),
            inputs: InputLook::all(&before.inputs, &now.inputs, seconds),
            lag: now.lag["totals"].clone(),
            files: files.iter().map(FileLook::of).collect(),
            sources_open: number(&now.sources, "open"),
            sources: SourceLook::all(&now.sources),
            resident_bytes: number(&new["process"], "resident_bytes"),
        }
    }
}

impl Look {
    /// Whether an input reads files; also if there is none at all.
    pub(crate) fn reads_files(&self) -> bool {
        self.inputs.is_empty() || self.inputs.iter().any(|input| input.received.is_none())
    }

    /// When nothing is behind any more, to go on a sentence; nothing if nothing is behind, or that is not known.
    pub(crate) fn catch_up(&self) -> String {
        match (self.lag["never"].as_str(), self.lag["catch_up_ms"].as_u64()) {
            (Some(why), _) => format!(", never caught up: {why}"),
            (None, Some(left)) => format!(", caught up in {}", span(left)),
            (None, None) => String::new(),
        }
    }
}

impl OutputLook {
    fn of(old: &Value, new: &Value, seconds: f64) -> Self {
        let more = |name: &str| number(new, name).saturating_sub(number(old, name));
        let requests = more("requests");
        Self {
            id: new["id"].as_str().map(str::to_owned),
            kind: text(new, "kind"),
            state: text(new, "state"),
            blocked_ms: new["blocked_ms"].as_u64(),
            rate: new["rates"]["delivered"]
                .as_f64()
                .unwrap_or_else(|| per_second(more("acked"), seconds)),
            latency_ms: (requests > 0).then(|| more("latency_ns") as f64 / requests as f64 / 1e6),
            in_flight: number(&new["ledger"], "in_flight"),
            ledger: new["ledger"].clone(),
            retried: number(new, "retried"),
            errors: number(new, "errors"),
            errors_now: more("errors"),
            dead_lettered: number(&new["ledger"], "dead_lettered"),
            queue_events: number(&new["queue"], "events"),
            queue_events_max: number(&new["queue"], "events_max"),
        }
    }

    /// Its name for people.
    pub(crate) fn name(&self) -> String {
        match &self.id {
            Some(id) => format!("{id} ({})", self.kind),
            None => self.kind.clone(),
        }
    }
}

impl FileLook {
    fn of(file: &Value) -> Self {
        let within_line = |value: &Value| value.as_str().map(|text| plain(text).into_owned());
        Self {
            path: within_line(&file["path"]).unwrap_or_default(),
            output: within_line(&file["output"]),
            state: text(file, "state"),
            reason: within_line(&file["reason"]),
            behind: file["behind"].as_u64(),
            behind_ms: number(file, "behind_ms"),
            rate: file["rate"].as_f64(),
            catch_up_ms: file["catch_up_ms"].as_u64(),
            deleted_in_ms: file["deleted_in_ms"].as_u64(),
            error: within_line(&file["error"]["text"]),
        }
    }
}

pub(super) fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(0)
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample(uptime: u64, acked: u64, output: &Value, files: &Value) -> Sample {
        let mut output = output.clone();
        output["acked"] = acked.into();
        output["ledger"] = json!({"in_flight": 3});
        let ledger = json!({"read": acked + 3, "delivered": acked, "read_bytes": acked * 100, "adds_up": true});
        Sample {
            live: json!({"uptime_ms": uptime, "ledger": ledger, "outputs": [output]}),
            lag: json!({"files": files, "totals": {}}),
            inputs: json!([]),
            sources: json!({}),
            problems: Vec::new(),
        }
    }

    #[test]
    fn rates_are_of_the_time_between_two_answers() {
        let output = |requests: u64, latency: u64| json!({"kind": "k", "requests": requests, "latency_ns": latency});
        let before = sample(1000, 100, &output(1, 0), &json!([]));
        let now = sample(3000, 300, &output(5, 8_000_000), &json!([]));
        let look = Look::of(&before, &now);
        assert_eq!(
            (look.read_rate, look.read_bytes_rate, look.delivered_rate),
            (100.0, 1e4, 100.0)
        );
        assert_eq!((look.outputs[0].rate, look.outputs[0].latency_ms), (100.0, Some(2.0)));
        // Another process, which counts from zero again, is no flood.
        let again = Look::of(&now, &sample(100, 5, &output(1, 1), &json!([])));
        assert_eq!((again.read_rate, again.outputs[0].rate), (0.0, 0.0));
    }
}
