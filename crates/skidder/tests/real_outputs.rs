//! The program against the servers of the other outputs: Elastic's Lumberjack library, Camel's, Redis, the
//! receiver of the OpenTelemetry Collector.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{gzip, judge, lines};
use common::program::{Program, command};
use common::{Place, accept};
use serde_json::Value;
use skidder_testkit::servers::Server;
use std::process::Command;

const LOGS: [(&str, usize); 2] = [("a", 5000), ("b", 4000)];

fn write_logs(place: &Place) {
    place.write("a.log", &lines("a", 0..5000));
    place.write("b.log.1.gz", &gzip(&lines("b", 0..4000)));
}

fn messages(events: &str) -> Vec<String> {
    let message = |event: &str| {
        let event: Value = serde_json::from_str(event).unwrap();
        assert_eq!(event["@metadata"]["beat"], "filebeat", "{event}");
        assert_eq!(event["agent"]["type"], "filebeat", "{event}");
        event["message"].as_str().unwrap().to_owned()
    };
    events.lines().filter(|line| !line.is_empty()).map(message).collect()
}

fn tested(place: &Place) {
    let config = place.path().join("filebeat.yml");
    let mut test = command(["-c", config.to_str().unwrap(), "test", "output"]);
    let ended = Program::run(test.current_dir(place.path())).succeeded();
    assert!(ended.out.contains("talk to server... OK"), "{}", ended.out);
}

fn delivers_to_lumberjack(name: &str, server: &Server) {
    let place = Place::with_output(&format!(
        "output.logstash: {{hosts: ['127.0.0.1:{}'], bulk_max_size: 300}}\n",
        server.port()
    ));
    write_logs(&place);
    tested(&place);
    let ledger = place.once(&[]).succeeded().ledger();
    assert_eq!((ledger.read, ledger.delivered), (9000, 9000));
    let events = std::fs::read_to_string(server.file("events.ndjson")).unwrap();
    accept(&format!("{name}, plain and gzip"), judge(&LOGS, &messages(&events)), 0);
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn elastics_lumberjack_server_gets_every_line_of_files_once() {
    delivers_to_lumberjack("go-lumber", &Server::own_lumberjack(false, "").unwrap());
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn camels_lumberjack_server_gets_every_line_of_files_once() {
    delivers_to_lumberjack("Camel", &Server::own_camel_lumberjack().unwrap());
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_killed_program_loses_no_line_on_the_way_to_lumberjack() {
    let server = Server::own_lumberjack(false, "-delay 5ms").unwrap();
    let place = Place::with_output(&format!(
        "output.logstash: {{hosts: ['127.0.0.1:{}'], bulk_max_size: 50}}\n",
        server.port()
    ));
    write_logs(&place);
    let file = server.file("events.ndjson");
    let count = || std::fs::read_to_string(&file).unwrap_or_default().lines().count();
    for share in [1000, 3000, 5000] {
        let mut program = place.start(&[]);
        program.await_that("some lines are there", || count() >= share);
        assert!(program.kill().was_killed());
    }
    place.once(&[]).succeeded();
    let events = std::fs::read_to_string(&file).unwrap();
    // What was in flight or not saved yet comes again.
    let bound = 3 * 2000;
    accept("killed three times", judge(&LOGS, &messages(&events)), bound);
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn redis_gets_every_line_of_files_once() {
    let server = Server::own_redis(false, "").unwrap();
    let place = Place::with_output(&format!(
        "output.redis:\n  hosts: ['127.0.0.1:{}']\n  password: secret\n  key: rest\n  \
         keys: [{{key: packed, when.regexp.log.file.path: 'gz$'}}]\n",
        server.port()
    ));
    write_logs(&place);
    tested(&place);
    let ledger = place.once(&[]).succeeded().ledger();
    assert_eq!((ledger.read, ledger.delivered), (9000, 9000));
    let mut found = Vec::new();
    for (key, count) in [("rest", 5000), ("packed", 4000)] {
        let port = server.port().to_string();
        let mut cli = Command::new("redis-cli");
        cli.args(["-p", &port, "-a", "secret", "--no-auth-warning", "--raw"]);
        let output = cli.args(["LRANGE", key, "0", "-1"]).output().unwrap();
        let listed = messages(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(listed.len(), count, "{key}");
        found.extend(listed);
    }
    accept("Redis, plain and gzip", judge(&LOGS, &found), 0);
}

/// The lines in what a collector wrote down, with the resource of each.
fn logs(server: &Server) -> Vec<(Value, String)> {
    let text = std::fs::read_to_string(server.file("logs.ndjson")).unwrap_or_default();
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        // Of a line that is being written the end may not be there.
        let Ok(request) = serde_json::from_str::<Value>(line) else { continue };
        for group in list(&request, "resourceLogs") {
            for scope in list(&group, "scopeLogs") {
                for record in list(&scope, "logRecords") {
                    let body = record["body"]["stringValue"].as_str().unwrap().to_owned();
                    found.push((group["resource"].clone(), body));
                }
            }
        }
    }
    found
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_collector_gets_every_line_of_files_once() {
    for (protocol, settings) in [("grpc", ""), ("http/protobuf", "-http")] {
        let server = Server::own_otelcol(false, settings).unwrap();
        let place = Place::with_output(&format!(
            "output.otlp: {{hosts: ['127.0.0.1:{}'], protocol: {protocol}, bulk_max_size: 300}}\n",
            server.port()
        ));
        write_logs(&place);
        tested(&place);
        let ledger = place.once(&[]).succeeded().ledger();
        assert_eq!((ledger.read, ledger.delivered), (9000, 9000));
        let (resources, lines): (Vec<Value>, Vec<String>) = logs(&server).into_iter().unzip();
        accept(&format!("OTLP, {protocol}"), judge(&LOGS, &lines), 0);
        let text = resources[0].to_string();
        for name in ["agent.type", "agent.version", "host.name"] {
            assert!(text.contains(&format!("\"{name}\"")), "{text}");
        }
    }
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_killed_program_loses_no_line_on_the_way_to_a_collector() {
    let server = Server::own_otelcol(false, "").unwrap();
    let place = Place::with_output(&format!(
        "output.otlp: {{hosts: ['127.0.0.1:{}'], bulk_max_size: 20}}\n",
        server.port()
    ));
    write_logs(&place);
    for share in [1000, 3000, 5000] {
        let mut program = place.start(&[]);
        program.await_that("some lines are there", || logs(&server).len() >= share);
        assert!(program.kill().was_killed());
    }
    place.once(&[]).succeeded();
    let lines: Vec<String> = logs(&server).into_iter().map(|(_, line)| line).collect();
    // What was in flight or not saved yet comes again.
    accept("killed three times", judge(&LOGS, &lines), 3 * 2000);
}
