//! What two answers of a running skidder say, and whether all is well.

use super::inputs::InputLook;
use crate::endpoint;
use crate::status::text::span;
use anyhow::Result;
use serde::Serialize;
use serde_json::Value;
use skidder_observe::{HttpConfig, bytes_text};
use std::time::Duration;

/// Files that are looked at for whether they are behind.
const FILES_LOOKED_AT: usize = 1000;

/// Files that are named when something is wrong with them.
const FILES_NAMED: usize = 3;

/// What is said of the files is no older than this.
const AGE_MAX: Duration = Duration::from_secs(1);

/// The beginning of the reason of a file whose last line is not complete: nobody can deliver it yet.
const NO_END_YET: &str = "the last line or event has no end yet";

/// What the program said at one moment.
pub(crate) struct Sample {
    live: Value,
    lag: Value,
    inputs: Value,
}

impl Sample {
    /// Of these answers.
    #[cfg(test)]
    pub(crate) fn new(live: Value, lag: Value, inputs: Value) -> Self {
        Self { live, lag, inputs }
    }

    /// Asks for it; what is said of the files is no older than `age`, if looking at them does not take too long.
    pub(crate) fn ask(http: &HttpConfig, age: Duration) -> Result<Self> {
        let age = age.min(AGE_MAX).as_millis();
        let lag = format!("/lag?sort=behind_ms&order=desc&limit={FILES_LOOKED_AT}&age_ms={age}");
        let lag = endpoint::get(http, &lag)?;
        let inputs = endpoint::get(http, "/inputs/")?;
        Ok(Self { live: endpoint::get(http, "/ui/live")?, lag, inputs })
    }
}

/// How it stands.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Look {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) version: String,
    pub(crate) uptime_ms: u64,
    /// What is wrong; nothing if all is well.
    pub(crate) problems: Vec<String>,
    /// Lines and bytes a second that were read, lines that were delivered.
    pub(crate) read_rate: f64,
    pub(crate) read_bytes_rate: f64,
    pub(crate) delivered_rate: f64,
    /// As `/ui/live` tells it.
    pub(crate) ledger: Value,
    pub(crate) outputs: Vec<OutputLook>,
    /// Those that are most behind first.
    pub(crate) inputs: Vec<InputLook>,
    /// The totals as `/lag` tells them.
    pub(crate) lag: Value,
    /// The files that are most behind first.
    pub(crate) files: Vec<FileLook>,
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
    pub(crate) retried: u64,
    pub(crate) errors: u64,
    /// Of these, since the look before.
    pub(crate) errors_now: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) queue_events: u64,
    pub(crate) queue_events_max: u64,
}

/// When a file is called behind: a line of it is older than this, and the program has run for so long. A line that was
/// written before the start is late, but not by a fault of now.
#[derive(Clone, Copy)]
struct Limit {
    line_ms: u128,
    uptime_ms: u128,
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
    /// What has happened between two samples. A file is behind after `limit`.
    pub(crate) fn of(before: &Sample, now: &Sample, limit: Duration) -> Self {
        let (old, new) = (&before.live, &now.live);
        let seconds =
            number(new, "uptime_ms").saturating_sub(number(old, "uptime_ms")) as f64 / 1e3;
        let rate = |name: &str| {
            let more = number(&new["ledger"], name).saturating_sub(number(&old["ledger"], name));
            per_second(more, seconds)
        };
        let all = new["outputs"].as_array().map_or(&[][..], Vec::as_slice);
        let outputs = all.iter().enumerate();
        let files = now.lag["files"].as_array().map_or(&[][..], Vec::as_slice);
        let mut look = Self {
            name: text(new, "name"),
            host: text(new, "host"),
            version: text(new, "version"),
            uptime_ms: number(new, "uptime_ms"),
            problems: Vec::new(),
            read_rate: rate("read"),
            read_bytes_rate: rate("read_bytes"),
            delivered_rate: rate("delivered"),
            ledger: new["ledger"].clone(),
            outputs: outputs
                .map(|(at, output)| OutputLook::of(&old["outputs"][at], output, seconds))
                .collect(),
            inputs: InputLook::all(&now.inputs),
            lag: now.lag["totals"].clone(),
            files: files.iter().map(FileLook::of).collect(),
            resident_bytes: number(&new["process"], "resident_bytes"),
        };
        look.find_problems(limit);
        look
    }

    fn find_problems(&mut self, limit: Duration) {
        let mut problems = Vec::new();
        let limit = Limit { line_ms: limit.as_millis(), uptime_ms: self.uptime_ms.into() };
        if self.ledger["adds_up"] == false {
            problems.push("the ledger does not add up: a bug, please report it".to_owned());
        }
        problems.extend(self.outputs.iter().filter_map(OutputLook::problem));
        let behind: Vec<&FileLook> =
            self.files.iter().filter(|file| file.is_behind(limit)).collect();
        for file in behind.iter().take(FILES_NAMED) {
            problems.push(file.problem());
        }
        let soon = self.files.iter().filter_map(|file| file.deleted_too_early(limit));
        problems.extend(soon.take(FILES_NAMED));
        if behind.len() > FILES_NAMED {
            problems.push(format!("{} more files are behind", behind.len() - FILES_NAMED));
        }
        self.problems = problems;
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
            rate: per_second(more("acked"), seconds),
            latency_ms: (requests > 0).then(|| more("latency_ns") as f64 / requests as f64 / 1e6),
            in_flight: number(&new["ledger"], "in_flight"),
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

    fn problem(&self) -> Option<String> {
        let name = self.name();
        if self.state == "ended" {
            return Some(format!("the output {name} has ended by itself"));
        }
        if let Some(blocked) = self.blocked_ms {
            let since = span(blocked);
            return Some(format!("the output {name} is blocked for {since}: its queue is full"));
        }
        // Where one of several hosts is away, others have taken something meanwhile.
        (self.state == "failing" && self.rate <= 0.0).then(|| {
            format!("the output {name} fails: nothing was taken since an error, of {}", self.errors)
        })
    }
}

impl FileLook {
    fn of(file: &Value) -> Self {
        Self {
            path: text(file, "path"),
            output: file["output"].as_str().map(str::to_owned),
            state: text(file, "state"),
            reason: file["reason"].as_str().map(str::to_owned),
            behind: file["behind"].as_u64(),
            behind_ms: number(file, "behind_ms"),
            rate: file["rate"].as_f64(),
            catch_up_ms: file["catch_up_ms"].as_u64(),
            deleted_in_ms: file["deleted_in_ms"].as_u64(),
            error: file["error"]["text"].as_str().map(str::to_owned),
        }
    }

    /// Whether it has lines that should have been delivered by now.
    fn is_behind(&self, limit: Limit) -> bool {
        let has_end = !self.reason.as_ref().is_some_and(|reason| reason.starts_with(NO_END_YET));
        has_end && u128::from(self.behind_ms).min(limit.uptime_ms) >= limit.line_ms
    }

    /// What is wrong if rotation deletes it before it is delivered.
    fn deleted_too_early(&self, limit: Limit) -> Option<String> {
        let deleted = self.deleted_in_ms.filter(|_| self.behind.is_some_and(|bytes| bytes > 0))?;
        let is_late = match self.catch_up_ms {
            Some(catch_up) => catch_up > deleted,
            None => self.is_behind(limit),
        };
        let (path, span) = (&self.path, span(deleted));
        is_late.then(|| format!("{path} is deleted by rotation in {span}, before it is delivered"))
    }

    fn problem(&self) -> String {
        let Self { path, behind, behind_ms, reason, .. } = self;
        let bytes = bytes_text(behind.unwrap_or(0) as f64);
        let why = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        let age = span(*behind_ms);
        format!("{path} is {bytes} behind, its oldest undelivered line is {age} old{why}")
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
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
        }
    }

    fn problems(old: &Value, new: &Value, acked: u64, files: &Value) -> Vec<String> {
        let before = sample(60_000, 100, old, files);
        let now = sample(62_000, acked, new, files);
        Look::of(&before, &now, Duration::from_mins(1)).problems
    }

    #[test]
    fn lines_from_before_the_start_are_no_trouble_of_a_fresh_start() {
        let output = json!({"kind": "k", "state": "idle"});
        let file = json!({"path": "/a", "state": "idle", "behind": 2048, "behind_ms": 2_280_000,
                          "deleted_in_ms": 300_000});
        let look = |uptime: u64| {
            let of = |uptime| sample(uptime, 100, &output, &json!([file]));
            Look::of(&of(uptime - 1000), &of(uptime), Duration::from_mins(1))
        };
        assert_eq!(look(59_999).problems, Vec::<String>::new());
        assert_eq!(look(60_000).problems.len(), 2);
    }

    #[test]
    fn rates_are_of_the_time_between_two_answers() {
        let output = |requests: u64, latency: u64| json!({"kind": "k", "requests": requests, "latency_ns": latency});
        let before = sample(1000, 100, &output(1, 0), &json!([]));
        let now = sample(3000, 300, &output(5, 8_000_000), &json!([]));
        let look = Look::of(&before, &now, Duration::from_mins(1));
        assert_eq!(
            (look.read_rate, look.read_bytes_rate, look.delivered_rate),
            (100.0, 1e4, 100.0)
        );
        assert_eq!((look.outputs[0].rate, look.outputs[0].latency_ms), (100.0, Some(2.0)));
        assert!(look.problems.is_empty());
        // Another process, which counts from zero again, is no flood.
        let again = Look::of(&now, &sample(100, 5, &output(1, 1), &json!([])), Duration::ZERO);
        assert_eq!((again.read_rate, again.outputs[0].rate), (0.0, 0.0));
    }

    #[test]
    fn what_is_wrong_with_an_output_is_told() {
        let of = |state: &str, errors: u64| json!({"id": "main", "kind": "elasticsearch", "state": state, "errors": errors});
        let none = json!([]);
        assert!(problems(&of("delivering", 0), &of("delivering", 0), 100, &none).is_empty());
        // The errors may have been before the first look.
        let fails = problems(&of("failing", 2), &of("failing", 2), 100, &none);
        let told = "the output main (elasticsearch) fails: nothing was taken since an error, of 2";
        assert_eq!(fails, [told]);
        let mut blocked = of("blocked", 0);
        blocked["blocked_ms"] = 75_000.into();
        let told = problems(&of("delivering", 0), &blocked, 100, &none);
        assert_eq!(
            told,
            ["the output main (elasticsearch) is blocked for 1 m 15 s: its queue is full"]
        );
        let ended = problems(&of("delivering", 0), &of("ended", 0), 100, &none);
        assert_eq!(ended, ["the output main (elasticsearch) has ended by itself"]);
    }

    #[test]
    fn files_with_lines_that_should_be_there_by_now_are_named() {
        let file = |path: &str, ms: u64, reason: &str| json!({"path": path, "state": "idle", "behind": 2048, "behind_ms": ms, "reason": reason});
        let output = json!({"kind": "k", "state": "idle"});
        let mut files = vec![
            file("/a", 61_000, "output is full"),
            file("/b", 59_000, "at its end"),
            file("/c", 900_000, "the last line or event has no end yet"),
        ];
        let told = problems(&output, &output, 100, &Value::from(files.clone()));
        assert_eq!(
            told,
            ["/a is 2.0 KiB behind, its oldest undelivered line is 1 m 1 s old: output is full"]
        );
        let mut soon = file("/e", 61_000, "x");
        (soon["deleted_in_ms"], soon["catch_up_ms"]) = (120_000.into(), 119_000.into());
        let told = |soon: &Value| problems(&output, &output, 100, &json!([soon])).pop();
        assert_eq!(
            told(&soon).as_deref(),
            Some("/e is 2.0 KiB behind, its oldest undelivered line is 1 m 1 s old: x")
        );
        let early = "/e is deleted by rotation in 2 m 0 s, before it is delivered";
        soon["catch_up_ms"] = 121_000.into();
        assert_eq!(told(&soon).as_deref(), Some(early));
        soon["catch_up_ms"] = Value::Null;
        assert_eq!(told(&soon).as_deref(), Some(early));
        files.extend((0..4).map(|_| file("/d", 61_000, "x")));
        let told = problems(&output, &output, 100, &Value::from(files));
        assert_eq!((told.len(), &*told[3]), (4, "2 more files are behind"));
    }
}
