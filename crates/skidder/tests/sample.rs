//! `process`, `explain` and `diff`: a configuration tried on sample lines.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::gzip;
use common::program::{Ended, Program, command};
use serde_json::{Value as Json, json};
use std::path::Path;

const CONFIG: &str = "\
filebeat.inputs:
- type: filestream
  id: web
  paths: [/var/log/web/*.log]
  parsers:
  - multiline: {pattern: '^ ', negate: false, match: after}
  tags: [web]
processors:
- drop_event.when.contains.message: DEBUG
- rename: {fields: [{from: message, to: event.original}]}
- rename: {fields: [{from: nope, to: x}]}
output.elasticsearch.hosts: ['http://127.0.0.1:1']
";

const LINES: &str = "one\n two\nDEBUG three\nfour";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        Program::run(command(arguments).current_dir(self.0.path()))
    }

    /// Nothing but what was put there.
    fn names(&self) -> Vec<String> {
        names(self.0.path())
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn events(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn sample_lines_are_printed_as_the_events_that_would_be_delivered() {
    let folder = Folder::new(&[("f.yml", CONFIG), ("a.log", LINES)]);
    let ended = folder.run(&["process", "-c", "f.yml", "a.log"]);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let events = events(&ended.out);
    let originals: Vec<_> = events.iter().map(|event| &event["event"]["original"]).collect();
    assert_eq!(originals, ["one\n two", "four"]);
    assert_eq!(events[0]["tags"], json!(["web"]));
    assert_eq!(events[0]["log"]["flags"], json!(["multiline"]));
    assert!(events[0]["log"]["file"]["path"].as_str().unwrap().ends_with("/a.log"));
    let error = events[1]["error"]["message"].as_str().unwrap();
    assert!(error.contains("could not fetch value for key: nope"), "{error}");
    assert!(ended.log.contains("3 events read, 2 delivered, 1 dropped"), "{}", ended.log);
    assert!(ended.log.contains("`rename` failed on 2 events"), "{}", ended.log);
    assert_eq!(folder.names(), ["a.log", "f.yml"], "nothing is left behind");
}

#[test]
fn lines_of_the_standard_input_and_of_compressed_files_go_the_same_way() {
    let folder = Folder::new(&[("f.yml", CONFIG)]);
    std::fs::write(folder.0.path().join("a.log.gz"), gzip(LINES.as_bytes())).unwrap();
    let path = ["--path", "/var/log/web/x.log"];
    let compressed = folder.run(&[&["process", "-c", "f.yml", "a.log.gz"], &path[..]].concat());

    let mut piped = command([&["process", "-c", "f.yml"], &path[..]].concat());
    piped.current_dir(folder.0.path()).stdin(folder.open("lines", LINES));
    let output = piped.output().unwrap();
    let piped = Ended {
        status: output.status,
        out: String::from_utf8(output.stdout).unwrap(),
        log: String::from_utf8(output.stderr).unwrap(),
    };
    for ended in [&compressed, &piped] {
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        let events = events(&ended.out);
        assert_eq!(events.len(), 2);
        assert_eq!(events[0]["log"]["file"]["path"], "/var/log/web/x.log");
        assert_eq!(events[0]["event"]["original"], "one\n two");
    }
}

impl Folder {
    fn open(&self, name: &str, text: &str) -> std::fs::File {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::File::open(path).unwrap()
    }
}

#[test]
fn an_input_must_be_chosen_if_there_are_several() {
    let two = CONFIG.replace(
        "filebeat.inputs:\n",
        "filebeat.inputs:\n- {type: filestream, id: other, paths: [/x]}\n",
    );
    let folder = Folder::new(&[("f.yml", &two), ("a.log", LINES)]);
    let ended = folder.run(&["process", "-c", "f.yml", "a.log"]);
    assert_eq!(ended.code(), Some(1));
    let wanted = "error: there are several inputs (`other`, `web`); choose one with `--input ID`";
    assert!(ended.log.contains(wanted), "{}", ended.log);
    let ended = folder.run(&["process", "-c", "f.yml", "a.log", "--input", "web"]);
    assert_eq!(events(&ended.out).len(), 2);
    let ended = folder.run(&["process", "-c", "f.yml", "a.log", "--input", "weg"]);
    let wanted = "error: no input that is enabled is called `weg`; there is `other`, `web`";
    assert!(ended.log.contains(wanted), "{}", ended.log);
    let ended = folder.run(&["process", "-c", "f.yml", "no.log", "--input", "web"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("no.log` is no file"), "{}", ended.log);
}

#[test]
fn explain_tells_what_is_done_once_and_what_each_event_costs() {
    let config = CONFIG
        .replace("  parsers:\n  - multiline: {pattern: '^ ', negate: false, match: after}\n", "");
    let folder = Folder::new(&[("f.yml", &config), ("a.log", LINES)]);
    let ended = folder.run(&["explain", "-c", "f.yml"]);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let text = &ended.out;
    assert!(text.contains("input `web` (filestream)"), "{text}");
    assert!(text.contains("once per source  agent.build.original"), "{text}");
    assert!(text.contains("per event        rename message to event.original"), "{text}");

    let ended = folder.run(&["explain", "-c", "f.yml", "--sample", "a.log"]);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let text = &ended.out;
    let row = |step: &str| {
        let line = text.lines().find(|line| line.contains(step));
        let line = line.unwrap_or_else(|| panic!("no {step} in {text}"));
        line.trim_start_matches("per event")
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let drop = row("drop_event when");
    assert_eq!(drop[2..5], ["4", "0", "1"], "events, failed, dropped: {text}");
    let rename = row("rename message to");
    assert_eq!(rename[2..5], ["3", "0", "0"], "{text}");
    let failing = row("rename nope to x");
    assert_eq!(failing[2..5], ["3", "3", "0"], "{text}");
    assert!(failing[1].parse::<f64>().unwrap() >= 1.0, "a failure makes a text: {text}");
    assert!(rename[0].parse::<f64>().unwrap() > 0.0, "{text}");
    assert!(text.contains("4 events; all steps together"), "{text}");
}

#[test]
fn diff_shows_what_a_new_configuration_makes_different() {
    let new = CONFIG
        .replace(
            "- rename: {fields: [{from: nope, to: x}]}\n",
            "- add_fields: {fields: {env: prod}}\n",
        )
        .replace("DEBUG", "four")
        .replace("tags: [web]", "tags: [www]");
    let folder = Folder::new(&[("old.yml", CONFIG), ("new.yml", &new), ("a.log", LINES)]);
    let ended = folder.run(&["diff", "-c", "old.yml", "-c", "new.yml", "--sample", "a.log"]);
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let text = &ended.out;
    for wanted in [
        "event at byte 0: one  two\n",
        "  - error: {\"message\":",
        "  + fields: {\"env\":\"prod\"}\n",
        "  ~ tags: [\"web\"] → [\"www\"]\n",
        "event at byte 9: DEBUG three\n  + the event is delivered now\n",
        "event at byte 21: four\n  - the event is no longer delivered\n",
        "3 of 3 events differ\n",
        "old.yml: 3 events read, 2 delivered, 1 dropped, `rename` failed 2 times\n",
        "new.yml: 3 events read, 2 delivered, 1 dropped, no failures\n",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    let counted = text.lines().find(|line| line.ends_with("  tags")).unwrap();
    assert_eq!(counted.split_whitespace().collect::<Vec<_>>(), ["0", "0", "1", "tags"]);

    let ended = folder.run(&["diff", "-c", "old.yml", "-c", "old.yml", "--sample", "a.log"]);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.out.contains("0 of 2 events differ\n"), "{}", ended.out);

    let ended = folder.run(&["diff", "-c", "old.yml", "--sample", "a.log"]);
    assert_eq!(ended.code(), Some(2), "trouble has a code of its own");
    assert!(ended.log.contains("two configurations"), "{}", ended.log);
}

#[test]
fn a_trial_writes_nothing_that_lasts() {
    let config = CONFIG.replace(
        "processors:\n",
        "path.data: data\nprocessors:\n- cache: {backend: {file.id: seen}, put: {key_field: message, value_field: message, ttl: 1h}}\n",
    );
    let folder = Folder::new(&[("f.yml", &config), ("a.log", LINES)]);
    for arguments in [
        &["process", "-c", "f.yml", "a.log"][..],
        &["explain", "-c", "f.yml", "--sample", "a.log"],
        &["diff", "-c", "f.yml", "-c", "f.yml", "--sample", "a.log"],
    ] {
        let ended = folder.run(arguments);
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        assert_eq!(folder.names(), ["a.log", "f.yml"], "{arguments:?}");
    }
}

#[test]
fn inputs_that_read_no_files_take_each_line_of_a_sample_as_a_message() {
    let config = |input: &str, tag: &str| {
        format!(
            "filebeat.inputs:\n- {input}\nprocessors:\n- add_tags: {{tags: [{tag}]}}\n\
             output.elasticsearch.hosts: ['http://127.0.0.1:1']\n"
        )
    };
    let syslog = "{type: syslog, format: auto, protocol.udp.host: ':5514'}";
    let stdin = "{type: stdin, multiline: {pattern: '^ ', match: after}}";
    let folder = Folder::new(&[
        ("syslog.yml", &config(syslog, "a")),
        ("other.yml", &config(syslog, "b")),
        ("tcp.yml", &config("{type: tcp, host: ':5514'}", "a")),
        ("stdin.yml", &config(stdin, "a")),
        ("a.log", "<13>1 2026-10-11T22:14:15Z host app 1 id - hello\r\n two\nthree"),
    ]);
    std::fs::write(folder.0.path().join("a.gz"), gzip(b"a\n")).unwrap();
    let process = |name: &str| {
        let ended = folder.run(&["process", "-c", name, "a.log"]);
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        let messages = |event: &Json| event["message"].as_str().unwrap().to_owned();
        let all = events(&ended.out);
        (all.iter().map(messages).collect::<Vec<_>>(), all)
    };
    let (messages, all) = process("syslog.yml");
    assert_eq!(messages, ["hello", " two", "three"]);
    assert_eq!((&all[0]["hostname"], &all[0]["tags"]), (&json!("host"), &json!(["a"])));
    assert_eq!(all[0]["@metadata"]["truncated"], json!(false));
    assert_eq!(all[0]["input"]["type"], "syslog");
    assert!(all[0]["log"]["file"].is_null(), "{}", all[0]);
    let (messages, _) = process("tcp.yml");
    assert_eq!(messages[1..], [" two", "three"]);
    let (messages, _) = process("stdin.yml");
    assert_eq!(messages.len(), 2, "{messages:?}");
    let ended = folder.run(&["explain", "-c", "syslog.yml", "--sample", "a.log"]);
    assert!(ended.out.contains("add_tags"), "{ended:?}");
    let ended = folder.run(&["diff", "-c", "syslog.yml", "-c", "other.yml", "--sample", "a.log"]);
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert!(ended.out.contains("event 2:  two\n"), "{}", ended.out);
    let ended = folder.run(&["process", "-c", "tcp.yml", "a.gz"]);
    assert!(
        ended.log.contains("is compressed, which inputs of type `tcp` do not read"),
        "{ended:?}"
    );
}
