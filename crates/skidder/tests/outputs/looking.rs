//! What a running program, and what it has left, say of each output.

use crate::common::Place;
use crate::common::lines::lines;
use crate::common::program::{Program, patiently};
use crate::common::server::BulkServer;
use crate::{LINES, two};
use serde_json::Value;
use std::fmt::Write as _;

fn json(place: &Place, target: &str) -> Value {
    serde_json::from_str(&place.get(target)).unwrap()
}

/// A running program of which `archive` holds what it was given and `main` has everything.
fn running() -> (BulkServer, BulkServer, Place, Program) {
    let (main, archive, place) = two();
    place.open_endpoint();
    place.write("a", &lines("a", 0..LINES));
    archive.hold();
    let mut program = place.start(&[]);
    program
        .await_that("one has all, the other holds", || main.count() >= LINES && archive.held() > 0);
    (main, archive, place, program)
}

#[test]
fn the_endpoint_tells_of_all_outputs_together_and_of_each() {
    let (_main, archive, place, program) = running();
    let stats = patiently("all verdicts are counted", || {
        let stats = json(&place, "/stats");
        let main = &stats["skidder"]["outputs"]["main"];
        (main["skidder"]["ledger"]["in_flight"] == 0).then_some(stats)
    });
    let outputs = &stats["skidder"]["outputs"];
    assert_eq!(outputs["main"]["libbeat"]["output"]["events"]["acked"], LINES);
    assert_eq!(outputs["archive"]["libbeat"]["output"]["events"]["acked"], 0);
    assert_eq!(outputs["archive"]["skidder"]["output"]["working"], 1);
    assert!(outputs["archive"]["skidder"]["ledger"]["in_flight"].as_u64().unwrap() > 0);
    assert!(outputs["main"]["beat"].is_null(), "the process is reported once");
    assert_eq!(stats["libbeat"]["output"]["events"]["acked"], LINES);
    assert_eq!(stats["libbeat"]["output"]["type"], "elasticsearch,elasticsearch");
    let inputs = json(&place, "/inputs/");
    let ids: Vec<_> = inputs.as_array().unwrap().iter().map(|input| &input["output"]).collect();
    assert_eq!(ids, ["main", "archive"]);
    let state = json(&place, "/state");
    assert_eq!(state["input"]["count"], 1);
    assert_eq!(state["skidder"]["outputs"]["archive"]["name"], "elasticsearch");
    let metrics = place.get("/metrics");
    let series = r#"skidder_output_events_total{result="acked",output="main"} "#;
    assert!(metrics.contains(&format!("{series}{LINES}\n")), "{metrics}");
    assert!(metrics.contains(r#"skidder_ledger_in_flight_lines{output="archive"} "#), "{metrics}");
    assert_eq!(metrics.matches("\nprocess_resident_memory_bytes ").count(), 1, "{metrics}");
    let mut types: Vec<&str> = metrics.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let all = types.len();
    types.sort_unstable();
    types.dedup();
    assert_eq!(types.len(), all, "each family stands together");
    archive.release();
    program.terminate().succeeded();
}

#[test]
fn files_are_told_for_each_output() {
    let (_main, archive, place, program) = running();
    let rows = |arguments: &[&str]| {
        let ended = place.run(&[&["files", "--json", "--sort", "path"], arguments].concat());
        let answer: Value = serde_json::from_str(&ended.succeeded().out).unwrap();
        let files = answer["files"].as_array().unwrap().clone();
        let behind = |file: &Value| file["behind"].as_u64().unwrap() > 0;
        let row = |file: &Value| (file["output"].as_str().unwrap().to_owned(), behind(file));
        let mut rows: Vec<_> = files.iter().map(row).collect();
        rows.sort();
        rows
    };
    let expected = [("archive".to_owned(), true), ("main".to_owned(), false)];
    patiently("the cursor of the last lines has moved", || (rows(&[]) == expected).then_some(()));
    assert_eq!(rows(&["--output", "archive"]), expected[..1]);
    let table = place.run(&["files"]).succeeded().out;
    assert!(table.contains("OUTPUT") && table.contains("archive"), "{table}");
    let ended = place.run(&["files", "--output", "x"]);
    assert!(ended.log.contains("there is `main`, `archive`"), "{}", ended.log);
    program.kill();
    // The same from the registries.
    assert_eq!(rows(&["--output", "archive"]).len(), 1);
    assert_eq!(rows(&[]).len(), 2);
    archive.release();
}

#[test]
fn each_output_has_a_registry_to_look_at_and_to_change() {
    let (main, archive, place) = two();
    let path = place.write("a", &lines("a", 0..LINES));
    let path = path.to_str().unwrap();
    place.once(&[]).succeeded();
    let list = |arguments: &[&str]| {
        let ended = place.run(&[&["registry", "list", "--json"], arguments].concat()).succeeded();
        let answer: Value = serde_json::from_str(&ended.out).unwrap();
        let entries = answer["entries"].as_array().unwrap().clone();
        entries.iter().map(|entry| entry["output"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list(&[]), ["main", "archive"]);
    let ended = place.run(&["registry", "list"]).succeeded();
    assert!(ended.out.contains("output `archive`\n"), "{}", ended.out);
    let ended = place.run(&["registry", "show", path, "--output", "archive"]).succeeded();
    assert!(ended.out.contains("archive") && !ended.out.contains("main"), "{}", ended.out);
    let ended = place.run(&["registry", "forget", path]);
    assert!(ended.log.contains("choose one with `--output ID`"), "{}", ended.log);
    let ended = place.run(&["registry", "forget", path, "--output", "nobody"]);
    assert!(ended.log.contains("there is no output `nobody`"), "{}", ended.log);
    place.run(&["registry", "forget", path, "--output", "archive"]).succeeded();
    assert_eq!(list(&[]), ["main"]);
    place.once(&[]).succeeded();
    assert_eq!((main.count(), archive.count()), (LINES, 2 * LINES));
    let to = place.path().join("theirs");
    let to = to.to_str().unwrap();
    let ended = place.run(&["registry", "export", "--to", to, "--output", "archive"]).succeeded();
    assert!(ended.out.contains("1 entries written"), "{}", ended.out);
    // What is left of an output that is not configured any more can still be looked at.
    let text = place.configuration();
    place.configure(&text.replace("id: archive", "id: other"));
    assert_eq!(list(&["--output", "archive"]), ["archive"]);
}

#[test]
fn what_happens_in_an_output_is_told_with_its_id() {
    // No server answers here, as long as the port stays free.
    let port = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let kinds = ["elasticsearch", "logstash", "redis", "kafka"];
    let mut outputs = String::new();
    for kind in kinds {
        let more = match kind {
            "redis" => ", key: k",
            "kafka" => ", topic: t",
            _ => "",
        };
        writeln!(outputs, "- {{id: my-{kind}, {kind}: {{hosts: ['{}']{more}}}}}", port()).unwrap();
    }
    let place = Place::with_output(&format!("outputs:\n{outputs}"));
    place.write("a", &lines("a", 0..10));
    let program = place.start(&["-E", "filebeat.shutdown_timeout=0s"]);
    for kind in kinds {
        let has_crate = matches!(kind, "elasticsearch" | "kafka");
        let logger = format!("skidder_output{}{kind}", if has_crate { "_" } else { "s." });
        let line = program.await_log(&format!(r#""log.logger":"{logger}"#));
        assert!(line.contains(&format!(r#""output.id":"my-{kind}""#)), "{line}");
    }
    program.terminate();
}
