//! Parsers, encodings and terminators in the built program; groups of lines that are cut by kills and rotations.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::program::Program;
use common::server::BulkServer;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write as _;

/// The events of a file, read once by an input with these options.
fn read_once(kind: &str, options: &str, content: &[u8]) -> Vec<Value> {
    let place = Place::with_output("");
    place.write("a.log", content);
    let logs = place.logs().display().to_string();
    let options = options.replace('\n', "\n  ");
    place.configure(&format!(
        "filebeat.inputs:\n- type: {kind}\n  id: test\n  paths: ['{logs}/*']\n  {options}\n\
         output.console.enabled: true\nlogging.metrics.enabled: false\n"
    ));
    let ended = place.once(&[]).succeeded();
    ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn messages(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["message"].as_str().unwrap_or("-")).collect()
}

const TIME: &str = "2026-11-21T20:52:57.123456789Z";

#[test]
fn records_of_a_container_become_events_with_fields() {
    let content = format!(
        "{TIME} stdout F {{\"msg\":\"first\",\"n\":1}}\n{TIME} stderr F Exception\n\
         {TIME} stdout P {{\"msg\":\"sec\n{TIME} stderr F \tat a\n{TIME} stdout F ond\"}}\n"
    );
    let options = "parsers:\n- container: {stream: stdout, format: cri}\n\
                   - ndjson: {target: app, message_key: msg}\n";
    let events = read_once("filestream", options, content.as_bytes());
    assert_eq!(messages(&events), ["first", "second"]);
    assert_eq!(events[0]["app"], serde_json::json!({"msg": "first", "n": 1}));
    assert_eq!(events[0]["@timestamp"], "2026-11-21T20:52:57.123Z");
    let options = "parsers:\n- container: {stream: stderr}\n\
                   - multiline: {pattern: '^\\s', match: after}\n";
    let events = read_once("filestream", options, content.as_bytes());
    assert_eq!(messages(&events), ["Exception\n\tat a"]);
    assert_eq!(events[0]["stream"], "stderr");
    assert_eq!(events[0]["log"]["flags"], serde_json::json!(["multiline"]));
    let file = events[0]["log"]["file"]["path"].as_str().unwrap();
    assert!(file.ends_with("logs/a.log"), "{file}");
    let options = "allow_deprecated_use: true\nmultiline: {pattern: '^\\s', match: after}";
    let events = read_once("container", options, content.as_bytes());
    let mut found = messages(&events);
    found.sort_unstable();
    assert_eq!(found, ["Exception\n\tat a", "{\"msg\":\"first\",\"n\":1}", "{\"msg\":\"second\"}"]);
}

#[test]
fn other_encodings_and_terminators_become_utf8() {
    let text: Vec<u8> =
        "\u{feff}caf\u{e9}\r\nna\u{ef}ve\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let events = read_once("filestream", "encoding: utf-16-bom", &text);
    assert_eq!(messages(&events), ["caf\u{e9}", "na\u{ef}ve"]);
    let events = read_once(
        "filestream",
        "encoding: windows1252\nline_terminator: null_terminator",
        b"\x80 1\n2\0\x80 3\0",
    );
    assert_eq!(messages(&events), ["\u{20ac} 1\n2", "\u{20ac} 3"]);
    assert_eq!(events[1]["log"]["offset"], 6);
}

#[test]
fn syslog_and_audit_records_are_read() {
    let line = b"<13>1 2026-11-21T20:52:57Z web app 7 - - it works\n";
    let events = read_once("filestream", "parsers: [{syslog: {format: rfc5424}}]", line);
    assert_eq!(messages(&events), ["it works"]);
    assert_eq!(events[0]["log"]["syslog"]["appname"], "app");
    let line = b"type=SYSCALL msg=audit(1488862769.030:19): arch=c000003e syscall=59\n";
    let events = read_once("filestream", "parsers: [{auditd: ~}]", line);
    assert_eq!(events[0]["auditd"]["log"]["syscall"], "execve");
}

/// Event `number` of a log: a line and those that belong to it.
fn event(number: usize) -> String {
    (0..number % 4).fold(format!("event {number}\n"), |text, line| {
        text + &format!("\tline {line} of {number}\n")
    })
}

fn append(place: &Place, name: &str, text: &str) {
    let path = place.logs().join(name);
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// How often each message came.
fn arrived(server: &BulkServer) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for message in server.documents() {
        *counts.entry(message).or_default() += 1;
    }
    counts
}

fn await_event(program: &mut Program, server: &BulkServer, number: usize) {
    let wanted = event(number).trim_end().to_owned();
    program.await_that("an event", || arrived(server).contains_key(&wanted));
}

#[test]
fn a_group_is_neither_cut_nor_repeated_by_kills_and_rotations_in_its_middle() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let config = std::fs::read_to_string(place.path().join("filebeat.yml")).unwrap();
    // Nothing is given out because of the time that these tests take.
    place.configure(&config.replace(
        "  compression: auto\n",
        "  compression: auto\n  parsers: [{multiline: {pattern: '^event', negate: true, match: after, \
         timeout: 1h}}]\n",
    ));
    let mut next = 0;
    for round in 0..8 {
        let mut program = place.start(&[]);
        // Whole events, and the beginning of one.
        let whole: String = (next..next + 40).map(event).collect();
        append(&place, "a.log", &whole);
        let cut = event(next + 43);
        let half = cut.len() / 2 / 2 * 2;
        let half = cut[..half].rfind('\n').map_or(half, |at| at + 1);
        let between: String = (next + 40..next + 43).map(event).collect();
        append(&place, "a.log", &(between + &cut[..half]));
        await_event(&mut program, &server, next + 42);
        if round % 2 == 0 {
            assert!(program.kill().was_killed());
        } else {
            program.terminate().succeeded();
        }
        let old = format!("a.log.{round}");
        std::fs::rename(place.logs().join("a.log"), place.logs().join(&old)).unwrap();
        append(&place, &old, &cut[half..]);
        if round % 3 == 0 {
            let bytes = std::fs::read(place.logs().join(&old)).unwrap();
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&bytes).unwrap();
            place.write(&format!("{old}.gz"), &encoder.finish().unwrap());
            std::fs::remove_file(place.logs().join(&old)).unwrap();
        }
        next += 44;
    }
    place.once(&[]).succeeded();
    let counts = arrived(&server);
    for number in 0..next {
        let whole = event(number).trim_end().to_owned();
        assert!(counts.contains_key(&whole), "event {number} is missing or cut");
    }
    assert_eq!(counts.len(), next, "nothing else came");
    // What was in flight at a kill may come again. A group that was only begun was not.
    let repeated: usize = counts.values().map(|count| count - 1).sum();
    assert!(repeated <= 4 * 44, "{repeated}");
    for round in (0..8).step_by(2) {
        let begun = event(round * 44 + 43).trim_end().to_owned();
        assert_eq!(counts[&begun], 1, "{begun}");
    }
}

#[test]
fn fields_of_a_line_are_not_lost_to_those_that_the_program_adds() {
    let line = b"{\"host\":{\"name\":\"from-the-line\"},\"agent\":{\"extra\":1},\"n\":7}\n";
    let parsers = "parsers: [{ndjson: {target: '', overwrite_keys: true}}]";
    let events = read_once("filestream", parsers, line);
    assert_eq!(events[0]["host"]["name"], "from-the-line");
    assert_eq!(events[0]["agent"]["extra"], 1);
    assert_eq!(events[0]["agent"]["type"], "filebeat");
    // A condition on a parsed field is decided by the event.
    let dropping = format!("{parsers}\nprocessors: [{{drop_event: {{when.equals.n: 7}}}}]");
    assert!(read_once("filestream", &dropping, line).is_empty());
}

/// As in Filebeat: the parser comes first, then the tags and fields of the configuration.
#[test]
fn configured_tags_and_fields_come_over_those_of_a_line() {
    let options = "parsers: [{ndjson: {target: ''}}]\ntags: [mine]\n\
                   fields: {env: prod, fields: {team: shop}}\nfields_under_root: true";
    let line = br#"{"tags":["theirs"],"env":"dev","fields":{"x":1,"team":"y"},"message":"hello"}"#;
    let plain = b"\n{\"message\":\"none of its own\"}\n";
    let events = read_once("filestream", options, &[&line[..], plain].concat());
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["tags"], serde_json::json!(["theirs", "mine"]));
    assert_eq!(events[0]["env"], "prod");
    assert_eq!(events[0]["fields"], serde_json::json!({"x": 1, "team": "shop"}));
    assert_eq!(events[1]["tags"], serde_json::json!(["mine"]));
    assert_eq!(events[1]["env"], "prod");
}
