//! What Filebeat 9.6 makes of frames, and what this input makes of them.
//!
//! `testdata/lumberjack/filebeat.ndjson` has a case a line: the bytes that were sent over a connection of their own, and
//! what Filebeat's input did with them: `events` (the field `lumberjack` of each), `answers`, and whether it `closed` the
//! connection. `here` is there if this input differs on purpose: docs/filebeat-differences.md says why.

use super::tests::input;
use crate::testing::{Bench, free_address};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const CASES: &str = include_str!("../../testdata/lumberjack/filebeat.ndjson");

fn from_hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().expect("a text");
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal digits");
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Go decodes all numbers as floating-point; here they stay what they are.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value)| other.get(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_give_the_events_and_answers_of_filebeat() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    let (mut cases, mut differ) = (0, 0);
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let expected = case.get("here").unwrap_or(&case["filebeat"]);
        let (about, answers) = (&case["about"], from_hex(&expected["answers"]));
        let events = expected["events"].as_array().unwrap();
        bench.events.clear();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let peer = stream.local_addr().unwrap().to_string();
        stream.write_all(&from_hex(&case["sent"])).await.unwrap();
        let reading = async {
            let mut answered = vec![0; answers.len()];
            stream.read_exact(&mut answered).await.unwrap();
            if expected["closed"] == true {
                stream.read_to_end(&mut answered).await.unwrap();
            }
            answered
        };
        let (answered, ()) = tokio::join!(reading, bench.events(events.len()));
        assert_eq!(answered, answers, "{about}");
        assert_eq!(bench.events.len(), events.len(), "{about}");
        for (event, expected) in bench.events.iter().zip(events) {
            assert_eq!(event["source"], json!({"address": peer}), "{about}");
            assert_eq!(event["input"], json!({"type": "lumberjack"}), "{about}");
            let found = match event.get("lumberjack") {
                Some(found) => found.clone(),
                None => json!({"message": event["message"], "error": event["error"]}),
            };
            assert!(same(&found, expected), "{about}: {found} instead of {expected}");
        }
        cases += 1;
        differ += u32::from(case.get("here").is_some());
    }
    assert_eq!((cases, differ), (49, 12));
    bench.stop().await;
}
