//! Events of the input `stdin`: `cases/stdin.json`.
//!
//! A case is as in the other files, for a `stdin` input, each in a process of its own, and the events are there with `log.file`, and
//! with `@metadata` as far as the input sets it; `no host`: there is no `host`. With `parts` instead of `text`, Filebeat had a
//! pause of seconds between them; here, each comes after as many events as `after`. `code` is the exit code of skidder, if it
//! is not 0.

use super::common::Place;
use super::common::program::Program;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

/// Bytes as text, or as code points.
fn bytes(text: &Value, is_latin1: bool) -> Vec<u8> {
    let text = text.as_str().unwrap();
    if is_latin1 {
        return text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect();
    }
    text.as_bytes().to_vec()
}

/// The events of a case.
fn read(case: &Value) -> Vec<Value> {
    let place = Place::with_output("");
    let mut input = case["input"].clone();
    input["type"] = json!("stdin");
    let configuration = json!({
        "filebeat.inputs": [input],
        "output.console.enabled": true,
        "queue.mem.flush.timeout": "0s",
        "logging.metrics.enabled": false,
    });
    place.configure(&configuration.to_string());
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut command = place.command(&["--once"]);
    let mut program = Program::start_with(&mut command, reader.into(), Stdio::piped());
    // It has the end that is read.
    drop(command);
    let parts = match case.get("parts") {
        Some(parts) => parts.as_array().unwrap().iter().map(|part| bytes(part, false)).collect(),
        None => match case.get("latin1") {
            Some(text) => vec![bytes(text, true)],
            None => vec![bytes(&case["text"], false)],
        },
    };
    for (at, part) in parts.iter().enumerate() {
        writer.write_all(part).unwrap();
        let Some(after) = case["after"].get(at).and_then(Value::as_u64) else { continue };
        program.await_out(usize::try_from(after).unwrap());
    }
    drop(writer);
    let ended = program.end();
    let code = case["code"].as_i64().unwrap_or(0);
    assert_eq!(ended.code().map(i64::from), Some(code), "{case}: {}", ended.log);
    ended.ledger();
    ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).map(bare).collect()
}

/// An event as the cases have it.
fn bare(mut event: Value) -> Value {
    let fields = event.as_object_mut().unwrap();
    fields.remove("agent");
    fields.remove("ecs");
    if fields.remove("host").is_none() {
        fields.insert("no host".to_owned(), json!(true));
    }
    let mut metadata = fields.remove("@metadata").unwrap();
    for own in ["beat", "type", "version"] {
        metadata.as_object_mut().unwrap().remove(own);
    }
    if metadata != json!({}) {
        fields.insert("@metadata".to_owned(), metadata);
    }
    if let Some(error) = fields.get_mut("error") {
        *error = json!(true);
    }
    // Those of the cases are of January, or the time of reading.
    if !fields["@timestamp"].as_str().unwrap().starts_with("2026-01-02") {
        fields.remove("@timestamp");
    }
    event
}

#[test]
fn the_standard_input_makes_the_events_that_filebeat_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filebeat/cases/stdin.json");
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(cases.len() > 25);
    let mut wrong = Vec::new();
    for case in &cases {
        assert_eq!(case["ours"].is_array(), case["differs"].is_string(), "{case}");
        let expected = if case["ours"].is_array() { &case["ours"] } else { &case["events"] };
        let found = Value::from(read(case));
        if &found != expected {
            wrong.push(format!("{}: {}\n  {found}\n  {expected}", case["name"], case["input"]));
        } else if case["ours"].is_array() && found == case["events"] {
            wrong.push(format!("{}: does not differ any more", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
