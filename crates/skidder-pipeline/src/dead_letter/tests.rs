//! Dead letters: what is in them, their bound, and what a full disk leaves.

use super::*;
use crate::queue::{Queue, QueueLimits, TakeLimits};
use crate::settle::Settle;
use crate::testing::{at_zero, batch, meta, numbered};
use skidder_event::{Batch, SourceId};
use skidder_registry::SourceAbout;
use skidder_testkit::{SimClock, SimFs};

fn letters(fs: &SimFs, bytes: u64) -> DeadLetters {
    // The registry has made the data directory durable before.
    fs.create_dir_as_other("/data");
    let clock = SimClock::new();
    let limits = DeadLettersLimits { bytes };
    DeadLetters::new(Arc::new(fs.clone()), Arc::new(clock), Path::new("/data"), limits)
}

fn delivery(rows: u32) -> Delivery {
    let settle = Settle::new();
    settle.begin(SourceId(1), "one".to_owned(), meta("/logs/\"one\".log"), at_zero(), false);
    delivery_of(settle, batch(1, 3, 70, rows))
}

fn delivery_of(settle: Arc<Settle>, batch: Batch) -> Delivery {
    let queue = Queue::new(QueueLimits::default(), settle);
    queue.try_push(batch).expect("there is room");
    let mut out = Vec::new();
    queue.try_take(TakeLimits { events: 0, bytes: usize::MAX }, &mut out);
    out.remove(0)
}

fn rows(delivery: &Delivery, count: u32) -> Vec<DeadLetter<'_>> {
    let reason = b"{\"type\":\"mapper\"}";
    (0..count).map(|row| DeadLetter { delivery, row, status: 400, reason, id: None }).collect()
}

fn content(fs: &SimFs) -> String {
    String::from_utf8(fs.peek("/data/dead_letters.ndjson").expect("it is there")).expect("text")
}

#[test]
fn a_letter_names_its_source_its_place_and_the_reason() {
    let fs = SimFs::new(&SimClock::new());
    let delivery = delivery(2);
    assert_eq!(letters(&fs, 1 << 20).write(&rows(&delivery, 2)).expect("there is room"), 2);
    let text = content(&fs);
    assert_eq!(text.lines().count(), 2);
    for part in [
        "\"version\":2,\"status\":400",
        "\"reason\":\"{\\\"type\\\":\\\"mapper\\\"}\"",
        "\"source\":\"/logs/\\\"one\\\".log\"",
        "\"generation\":3,\"offset\":80,\"event\":{",
        "\"message\":\"123456789\"",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_letter_of_a_source_that_is_no_file_names_it_and_its_number_there() {
    let fs = SimFs::new(&SimClock::new());
    let settle = Settle::new();
    let about = SourceAbout { input: "tcp".into(), name: "10.0.0.7:4711".into() };
    settle.begin_unsaved(SourceId(1), "tcp::a::1".into(), about);
    let delivery = delivery_of(settle, numbered(1, 41, 1));
    letters(&fs, 1 << 20).write(&rows(&delivery, 1)).expect("there is room");
    let text = content(&fs);
    let part =
        r#""source":"10.0.0.7:4711","input":"tcp","identity":"tcp::a::1","number":41,"event":{"#;
    assert!(text.contains(part), "{text}");
}

#[test]
fn beyond_the_bound_nothing_is_added() {
    let fs = SimFs::new(&SimClock::new());
    let delivery = delivery(5);
    let one = letters(&fs, 1 << 20).write(&rows(&delivery, 1)).map(|_| content(&fs).len());
    let one = one.expect("there is room") as u64;
    fs.remove_as_other("/data/dead_letters.ndjson");
    let letters = letters(&fs, one * 7 / 2);
    assert_eq!(letters.write(&rows(&delivery, 5)).expect("room for some"), 3);
    assert!(matches!(letters.write(&rows(&delivery, 1)), Err(DeadLetterError::Full { .. })));
    assert_eq!(content(&fs).len() as u64, one * 3);
}

#[test]
fn half_a_letter_left_by_a_crash_is_cut_off() {
    let fs = SimFs::new(&SimClock::new());
    let long = "x".repeat(10_000);
    fs.write_as_other("/data/dead_letters.ndjson", format!("{{}}\n{{\"half{long}").as_bytes());
    let delivery = delivery(1);
    letters(&fs, 1 << 20).write(&rows(&delivery, 1)).expect("there is room");
    let text = content(&fs);
    assert!(text.starts_with("{}\n{\"@timestamp\"") && text.ends_with("}\n"), "{text}");
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn what_was_written_survives_a_crash_of_the_machine() {
    let fs = SimFs::new(&SimClock::new());
    let delivery = delivery(2);
    letters(&fs, 1 << 20).write(&rows(&delivery, 2)).expect("there is room");
    fs.crash();
    assert_eq!(content(&fs).lines().count(), 2);
}

#[test]
fn a_full_disk_is_told_and_leaves_nothing_half_done() {
    let fs = SimFs::new(&SimClock::new());
    let letters = letters(&fs, 1 << 30);
    let delivery = delivery(100);
    letters.write(&rows(&delivery, 1)).expect("there is room");
    fs.set_capacity(Some(8192));
    assert!(matches!(letters.write(&rows(&delivery, 100)), Err(DeadLetterError::Write { .. })));
    fs.set_capacity(None);
    assert_eq!(letters.write(&rows(&delivery, 100)).expect("there is room again"), 100);
    let text = content(&fs);
    assert_eq!(text.lines().count(), 101);
    assert!(text.lines().all(|line| line.starts_with("{\"@timestamp\"") && line.ends_with('}')));
}
