//! One snapshot in all its renderings: golden files, well-formedness, and the ledger in each of them.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Run, assert_golden, batch};
use serde_json::{Value as Json, json};
use skidder_event::{DropReason, SourceId};
use skidder_observe::{
    InputList, InputSource, SummaryLine, info, inputs, ledger_line, ledger_table, prometheus,
    state, stats,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A number at a dotted name.
fn number(document: &Json, name: &str) -> u64 {
    name.split('.').fold(document, |inner, key| &inner[key]).as_u64().unwrap()
}

/// `(read, all fates together)` of a document of `/stats`.
fn ledger_of_stats(document: &Json) -> (u64, u64) {
    let ledger = &document["skidder"]["ledger"];
    let dropped = ledger["dropped"].as_object().unwrap();
    let dropped: u64 = dropped.values().map(|count| count.as_u64().unwrap()).sum();
    let fates = ["delivered", "dead_lettered", "in_flight"];
    let others: u64 = fates.iter().map(|fate| ledger[fate].as_u64().unwrap()).sum();
    (ledger["read"].as_u64().unwrap(), dropped + others)
}

/// `(read, all fates together)` of the text of `/metrics`.
fn ledger_of_prometheus(samples: &BTreeMap<String, f64>) -> (f64, f64) {
    let settled =
        samples.iter().filter(|(name, _)| name.starts_with("skidder_ledger_lines_total{"));
    let settled: f64 = settled.map(|(_, value)| value).sum();
    let read = samples["skidder_ledger_read_lines_total"];
    (read, settled + samples["skidder_ledger_in_flight_lines"])
}

#[test]
fn stats_state_inputs_and_metrics_are_as_they_were() {
    let snapshot = Run::busy().snapshot();
    assert_golden("stats.json", &format!("{:#}\n", stats(&snapshot)));
    let mut state = state(&snapshot);
    assert!(state["host"]["architecture"].take().is_string());
    assert_golden("state.json", &format!("{state:#}\n"));
    assert_golden("inputs.json", &format!("{:#}\n", inputs(&snapshot, None)));
    assert_golden("metrics.txt", &prometheus(&snapshot));
    let table = ledger_table(&snapshot.ledger, Some(3), Duration::from_millis(250));
    assert_golden("ledger.txt", &(ledger_line(&snapshot.ledger, Some(3)) + "\n\n" + &table));
}

#[test]
fn how_far_behind_the_files_are_is_told_with_the_states() {
    let run = Run::busy();
    let snapshot = run.behind();
    assert_golden("behind-stats.json", &format!("{:#}\n", stats(&snapshot)));
    assert_golden("behind-inputs.json", &format!("{:#}\n", inputs(&snapshot, None)));
    let text = prometheus(&snapshot);
    assert_golden("behind-metrics.txt", &text);
    let samples = parse(&text);
    assert_eq!(samples["skidder_lag_behind_bytes"], 1500.0);
    assert_eq!(samples[r#"skidder_input_state{input="pipe",state="blocked"}"#], 1.0);
    assert_eq!(samples[r#"skidder_input_blocked_seconds{input="pipe"}"#], 12.5);
    let document = inputs(&snapshot, Some("stdin"));
    let ours = &document[0]["skidder"];
    assert_eq!((&ours["state"], &ours["blocked_on"]), (&"blocked".into(), &"elasticsearch".into()));
    assert_eq!(ours["blocked_since"], "2026-01-01T00:01:17.500Z");
    // Without a measurement, nothing is shown of it.
    let text = prometheus(&run.snapshot());
    assert!(!text.contains("skidder_lag_") && !text.contains("skidder_input_state"), "{text}");
}

#[test]
fn the_ledger_of_each_input_adds_up_to_that_of_all() {
    let run = Run::busy();
    for (input, lines) in [(0, 3), (1, 4)] {
        let mut batch = batch(SourceId::of_input(input, 9).0, lines);
        batch.count_dropped(DropReason::Empty, 1);
        run.sources.outputs[0].queue.push(batch).unwrap();
        run.take().ticket.delivered(2);
    }
    let snapshot = run.snapshot();
    let of = |at: usize| snapshot.inputs[at].ledger;
    assert!(of(0).adds_up() && of(1).adds_up());
    assert_eq!((of(0).read(), of(1).read()), (20 + 4, 5));
    assert_eq!((of(0).in_flight(), of(1).in_flight()), (2, 2));
    assert_eq!((of(1).delivered(), of(1).dropped().total()), (2, 1));
    assert_eq!(snapshot.ledger.read(), of(0).read() + of(1).read());
    let document = inputs(&snapshot, None);
    assert_eq!(document[1]["events_processed_total"], 4);
    assert_eq!(document[1]["skidder"]["ledger"]["adds_up"], true);
    let samples = parse(&prometheus(&snapshot));
    let settled = samples.iter().filter(|(name, _)| {
        name.starts_with("skidder_input_lines_total{") && name.contains("pipe")
    });
    let settled: f64 = settled.map(|(_, count)| count).sum();
    let in_flight = samples[r#"skidder_input_in_flight_lines{input="pipe"}"#];
    assert_eq!(samples[r#"skidder_input_read_lines_total{input="pipe"}"#], settled + in_flight);
    run.sources.outputs[0].settle.forget_inputs(&[1]);
    assert_eq!(run.snapshot().inputs[1].ledger.read(), 0);
}

#[test]
fn the_lines_of_an_input_add_up_whatever_they_were_dropped_for() {
    // Of events in a damaged place of the disk queue it is not known which input had them.
    let reasons = DropReason::ALL.into_iter().filter(|of| *of != DropReason::QueueDamaged);
    let run = Run::idle();
    for (at, reason) in reasons.enumerate() {
        let source = SourceId::of_input(1, at as u64);
        run.sources.outputs[0].queue.push(batch(source.0, 30)).unwrap();
        let delivery = run.take();
        delivery.ticket.delivered(5);
        delivery.ticket.dropped(reason, 25);
        let samples = parse(&prometheus(&run.snapshot()));
        let lines = samples.iter().filter(|(name, _)| {
            name.starts_with("skidder_input_lines_total{") && name.contains("pipe")
        });
        let sum: f64 = lines.map(|(_, count)| count).sum();
        let of = |name: &str| samples[&format!(r#"skidder_input_{name}{{input="pipe"}}"#)];
        let read = 30.0 * (at as f64 + 1.0);
        assert_eq!(of("read_lines_total"), read);
        assert_eq!(sum + of("in_flight_lines"), read, "{}", reason.name());
    }
}

#[test]
fn inputs_without_a_name_of_their_own_have_their_number() {
    let mut sources = (*Run::busy().sources).clone();
    let mut list = sources.outputs[0].inputs.list().to_vec();
    for (input, id) in list.iter_mut().zip(["same", "same"]) {
        id.clone_into(&mut input.id);
    }
    list.push(InputSource { id: String::new(), number: 2, slot: 2, ..list[0].clone() });
    sources.outputs[0].inputs = InputList::new(list);
    let snapshot = sources.snapshot();
    let names: Vec<&str> = snapshot.inputs.iter().map(|input| &*input.name).collect();
    assert_eq!(names, ["same#0", "same#1", "#2"]);
    parse(&prometheus(&snapshot));
}

#[test]
fn info_names_the_program_and_its_user() {
    let run = Run::idle();
    let info = info(&run.sources.program, &skidder_os::RealFs);
    for key in ["beat", "binary_arch", "ephemeral_id", "gid", "hostname", "name", "uid", "uuid"] {
        assert!(info[key].is_string(), "{key}: {info}");
    }
    assert_eq!(info["version"], "9.5.0");
    assert_eq!(info["elastic_licensed"], false);
    assert!(info.get("build_commit").is_none(), "what is not known is left out");
}

#[test]
fn every_output_tells_the_same_ledger_and_it_adds_up() {
    let snapshot = Run::busy().snapshot();
    let document = stats(&snapshot);
    assert_eq!(ledger_of_stats(&document), (20, 20));
    assert_eq!(ledger_of_prometheus(&parse(&prometheus(&snapshot))), (20.0, 20.0));
    assert_eq!(
        ledger_line(&snapshot.ledger, Some(1)),
        "ledger: read 20 lines (130 B) in 1 file = delivered 9 + dropped 8 (empty_line: 2, \
         line_filter: 1, drop_event: 4, rejected: 1) + dead-lettered 2 + in flight 1"
    );
    let events = |name: &str| number(&document["libbeat"]["pipeline"]["events"], name);
    assert_eq!(events("total"), events("published") + events("filtered"));
    assert_eq!((events("total"), events("filtered"), events("active")), (17, 4, 1));
    let filebeat = |name: &str| number(&document["filebeat"]["events"], name);
    assert_eq!(filebeat("added"), filebeat("done") + filebeat("active"));
    let output = |name: &str| number(&document["libbeat"]["output"]["events"], name);
    let parts = ["acked", "failed", "dropped", "duplicates", "dead_letter", "active"];
    assert_eq!(output("total"), parts.iter().map(|name| output(name)).sum::<u64>());
}

#[test]
fn the_ledger_adds_up_in_every_snapshot_taken_while_lines_flow() {
    let run = Arc::new(Run::idle());
    let done = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (run, done) = (Arc::clone(&run), Arc::clone(&done));
        move || {
            for round in 0..3000 {
                let mut batch = batch(round, 5);
                batch.count_dropped(DropReason::Empty, 1);
                run.sources.outputs[0].queue.push(batch).unwrap();
                let delivery = run.take();
                delivery.ticket.delivered(3);
                delivery.ticket.dead_lettered(1);
                delivery.ticket.dropped(DropReason::Rejected, 1);
            }
            done.store(true, Ordering::Release);
        }
    });
    loop {
        let last = done.load(Ordering::Acquire);
        let snapshot = run.sources.snapshot();
        let (read, fates) = ledger_of_stats(&stats(&snapshot));
        assert_eq!(read, fates);
        let (read, fates) = ledger_of_prometheus(&parse(&prometheus(&snapshot)));
        assert_eq!(read, fates);
        if last {
            assert_eq!(read, 18_000.0);
            break;
        }
    }
    writer.join().unwrap();
}

#[test]
fn inputs_that_share_counters_are_counted_once() {
    let run = Run::busy();
    let mut sources = (*run.sources).clone();
    let mut inputs = sources.outputs[0].inputs.list().to_vec();
    inputs.push(inputs[0].clone());
    sources.outputs[0].inputs = InputList::new(inputs);
    let snapshot = sources.snapshot();
    assert_eq!(snapshot.read.lines, 20);
    assert_eq!(snapshot.inputs.iter().map(|input| input.read.lines).sum::<u64>(), 38);
}

#[test]
fn the_periodic_line_shows_growth_of_counters_and_gauges_as_they_are() {
    let run = Run::busy();
    let mut line = SummaryLine::new(SummaryLine::PERIOD);
    let first = line.next(run.snapshot());
    assert_eq!(first.message, "Non-zero metrics in the last 30s");
    assert_eq!(number(&first.metrics, "skidder.ledger.delivered"), 9);
    assert_eq!(first.metrics["libbeat"]["output"]["type"], "elasticsearch");
    assert!(first.metrics["libbeat"].get("config").is_none(), "zeros are left out");

    common::files(&run.sources.outputs[0].inputs.list()[0]).lines.add(4);
    run.sources.outputs[0].queue.push(batch(9, 4)).unwrap();
    run.take().ticket.delivered(4);
    let second = line.next(run.snapshot()).metrics;
    assert_eq!(
        second["skidder"]["ledger"],
        json!({
            "read": 4, "read_bytes": 40, "delivered": 4, "in_flight": 1
        })
    );
    assert_eq!(second["skidder"]["reader"], json!({ "files_held": 1, "lines": 4 }));
    assert_eq!(second["filebeat"]["harvester"], json!({ "open_files": 2, "running": 2 }));
    assert_eq!(second["beat"]["cpu"]["user"], json!({ "ticks": 1500 }), "no time was used");
    assert!(second["libbeat"]["output"].get("type").is_none(), "it did not change");
}

#[test]
fn the_line_at_the_end_has_everything() {
    let snapshot = Run::busy().snapshot();
    let total = SummaryLine::total(&snapshot);
    assert_eq!(total.message, "Total metrics");
    assert_eq!(total.metrics, stats(&snapshot));
}

#[test]
fn a_registrar_that_is_not_there_has_no_numbers() {
    let mut sources = (*Run::busy().sources).clone();
    sources.outputs[0].registrar = None;
    let snapshot = sources.snapshot();
    assert!(stats(&snapshot).get("registrar").is_none());
    assert!(!prometheus(&snapshot).contains("registry_commits"));
}

#[test]
fn the_table_of_an_empty_run_is_all_zeros() {
    let ledger = Run::idle().sources.outputs[0].settle.total();
    let expected = "read             0  lines, 0 B in 0 files\n\
                    = delivered      0\n\
                    + dropped        0\n\
                    + dead-lettered  0\n\
                    + in flight      0\n";
    assert_eq!(ledger_table(&ledger, Some(0), Duration::ZERO), expected);
}

#[test]
fn the_text_for_prometheus_is_well_formed_and_says_what_the_json_says() {
    let snapshot = Run::busy().snapshot();
    let text = prometheus(&snapshot);
    let samples = parse(&text);
    assert_eq!(
        samples[r#"skidder_ledger_lines_total{outcome="dropped",reason="drop_event"}"#],
        4.0
    );
    assert_eq!(samples[r#"skidder_output_events_total{result="acked"}"#], 9.0);
    assert_eq!(samples["skidder_output_request_seconds_total"], 0.25);
    assert_eq!(samples["process_cpu_seconds_total"], 2.0);
    assert_eq!(samples["process_start_time_seconds"], 1_767_225_600.0);
    assert_eq!(samples["process_max_fds"], 1024.0);
    assert!(samples.contains_key(r#"skidder_build_info{output="elasticsearch",version="9.5.0"}"#));
}

/// A small parser of the exposition format, stricter than Prometheus: every family has HELP and TYPE
/// before its samples and stands together, no sample comes twice, names and labels are legal.
fn parse(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with('\n'));
    let mut samples = BTreeMap::new();
    let mut families = BTreeSet::new();
    let (mut helped, mut family) = (String::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(families.insert(name.to_owned()), "{name} comes twice");
            assert!(!help.is_empty());
            name.clone_into(&mut helped);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, helped);
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            assert!(matches!(kind, "counter" | "gauge"), "{line}");
            name.clone_into(&mut family);
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            assert_eq!(name, family, "{line}");
            assert!(is_name(name), "{line}");
            parse_labels(labels);
            let value: f64 = value.parse().unwrap();
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(samples.insert(series.to_owned(), value).is_none(), "{line}");
        }
    }
    samples
}

/// `a="b",c="d"}`.
fn parse_labels(text: &str) {
    let mut rest = text;
    let mut seen = BTreeSet::new();
    while rest != "}" {
        let (name, after) = rest.split_once("=\"").unwrap();
        let name = name.strip_prefix(',').unwrap_or(name);
        assert!(is_name(name) && seen.insert(name.to_owned()), "{text}");
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => assert!(matches!(characters.next().unwrap().1, '\\' | '"' | 'n')),
                _ => {}
            }
        };
        rest = &after[end + 1..];
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
