//! Events of Filebeat 9.6 for inputs of our own, and ours: the cases in `cases/`.
//!
//! Each file is a list of cases. A case has a `name`, the settings of a `filestream` input (`input`), what is in its file (`text`, or
//! `latin1`: the bytes as code points), and the `events` that Filebeat made of it, in the order of their offsets. An event is there
//! without `agent`, `host`, `ecs`, `@metadata` and `log.file`; without `@timestamp` if that is the time of reading; and of `error` only
//! that it is there. Where skidder differs, `differs` has the reason, `ours` has its events, and
//! `docs/filebeat-differences.md` has a line about it. Inputs of `refused.json` are those that Filebeat does not start with.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

#[path = "../common/mod.rs"]
mod common;
mod stdin;

use common::Place;
use serde_json::{Map, Value, json};
use std::path::Path;

/// One case of a file.
struct Case {
    name: String,
    input: Value,
    bytes: Vec<u8>,
    /// Those of Filebeat.
    events: Vec<Value>,
    /// Those of skidder, where they are others.
    ours: Option<Vec<Value>>,
}

impl Case {
    fn read(case: &Value) -> Self {
        let events = |key: &str| case[key].as_array().cloned();
        let bytes = match (&case["text"], &case["latin1"]) {
            (Value::String(text), Value::Null) => text.clone().into_bytes(),
            (Value::Null, Value::String(text)) => {
                text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect()
            }
            _ => panic!("a case has either `text` or `latin1`: {case}"),
        };
        let ours = events("ours");
        assert_eq!(ours.is_some(), case["differs"].is_string(), "`ours` and `differs`: {case}");
        Self {
            name: case["name"].as_str().unwrap().to_owned(),
            input: case["input"].clone(),
            bytes,
            events: events("events").unwrap(),
            ours,
        }
    }
}

/// The cases of a file.
fn cases(file: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filebeat/cases").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(!cases.is_empty(), "{file} has no cases");
    cases.iter().map(Case::read).collect()
}

/// Puts settings over others, objects inside each other.
fn merge(settings: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (settings.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(over)) => merge(below, over),
            _ => {
                settings.insert(key.clone(), value.clone());
            }
        }
    }
}

/// An input of a case; its events carry the name of the pipeline.
fn input(case: &Case, number: usize, file: &Path) -> Value {
    let mut input = json!({
        "type": "filestream",
        "id": format!("case-{number}"),
        "paths": [file],
        "pipeline": format!("case-{number}"),
        "file_identity": {"native": null},
        "close": {"reader": {"on_eof": true}},
        "prospector": {"scanner": {"fingerprint": {"enabled": false}}},
    });
    merge(input.as_object_mut().unwrap(), case.input.as_object().unwrap());
    input
}

/// The events of all cases, read by one program.
fn read(cases: &[Case]) -> Vec<Vec<Value>> {
    let place = Place::with_output("");
    let write = |(number, case): (usize, &Case)| {
        let file = place.write(&format!("{number}.log"), &case.bytes);
        input(case, number, &file)
    };
    let inputs: Vec<Value> = cases.iter().enumerate().map(write).collect();
    let configuration = json!({
        "filebeat.inputs": inputs,
        "output.console.enabled": true,
        "logging.metrics.enabled": false,
    });
    place.configure(&configuration.to_string());
    let ended = place.once(&[]).succeeded();
    let mut events = vec![Vec::new(); cases.len()];
    for line in ended.out.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let pipeline = event["@metadata"]["pipeline"].as_str().unwrap();
        let number: usize = pipeline.strip_prefix("case-").unwrap().parse().unwrap();
        events[number].push(event);
    }
    events
}

/// An event as the cases have it, beside one of theirs.
fn bare(event: &Value, like: Option<&Value>) -> Value {
    let mut event = event.clone();
    let fields = event.as_object_mut().unwrap();
    for key in ["agent", "host", "ecs", "@metadata"] {
        fields.remove(key);
    }
    if like.is_none_or(|like| like.get("@timestamp").is_none()) {
        fields.remove("@timestamp");
    }
    if let Some(error) = fields.get_mut("error") {
        *error = json!(true);
    }
    if let Some(Value::Object(log)) = fields.get_mut("log") {
        log.remove("file");
        if log.is_empty() {
            fields.remove("log");
        }
    }
    event
}

/// Reads the files of all cases, and reports events that are not as expected.
fn check(file: &str) {
    let cases = cases(file);
    let mut wrong = Vec::new();
    for (case, events) in cases.iter().zip(read(&cases)) {
        let expected = case.ours.as_ref().unwrap_or(&case.events);
        let found: Vec<Value> =
            events.iter().enumerate().map(|(at, event)| bare(event, expected.get(at))).collect();
        if &found != expected {
            let show = |events: &[Value]| Value::from(events).to_string();
            let (found, expected) = (show(&found), show(expected));
            wrong.push(format!("{}: {}\n  {found}\n  {expected}", case.name, case.input));
        } else if found == case.events && case.ours.is_some() {
            wrong.push(format!("{}: does not differ any more", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn keys_with_dots_are_found_as_filebeat_finds_them() {
    check("dotted.json");
}

#[test]
fn lines_are_cut_filtered_and_decoded_as_filebeat_does_it() {
    check("lines.json");
    check("encoding.json");
}

#[test]
fn parsers_make_the_events_that_filebeat_makes() {
    check("parsers.json");
}

#[test]
fn processors_make_the_events_that_filebeat_makes() {
    check("processors.json");
}

#[test]
fn inputs_that_filebeat_refuses_are_refused() {
    for case in cases("refused.json") {
        let place = Place::with_output("");
        let file = place.write("a.log", &case.bytes);
        let configuration = json!({
            "filebeat.inputs": [input(&case, 0, &file)],
            "output.console.enabled": true,
        });
        place.configure(&configuration.to_string());
        let ended = place.once(&[]);
        assert_eq!(ended.status.code(), Some(1), "{}: {}", case.name, case.input);
    }
}
