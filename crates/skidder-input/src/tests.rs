//! What an input meets at its edges.

use crate::intake::Shared;
use crate::{Intake, Lane, OpenError};
use skidder_event::{Batch, DropReason, Map, Progress, SourcePart, Unprocessed};
use skidder_os::{Clock, Fs};
use skidder_pipeline::{Queue, QueueLimits, Settle};
use skidder_registry::{Options, Registry};
use skidder_testkit::{SimClock, SimFs};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// An intake of so many outputs, with room for ten events each.
fn intake(outputs: usize) -> (Intake, Vec<Queue>) {
    let clock = SimClock::new();
    let fs = SimFs::new(&clock);
    let lane = |slot: usize| {
        let (fs, clock): (Arc<dyn Fs>, Arc<dyn Clock>) =
            (Arc::new(fs.clone()), Arc::new(clock.clone()));
        let place = format!("/data/{slot}");
        let opened = Registry::open(fs, clock, Path::new(&place), Options::default());
        let limits = QueueLimits { events: 10, ..QueueLimits::default() };
        Lane {
            slot,
            queue: Queue::new(limits, Settle::new()),
            bind: Unprocessed::bind(),
            registry: Arc::new(opened.expect("an empty disk").0),
        }
    };
    let lanes: Vec<Lane> = (0..outputs).map(lane).collect();
    let queues = lanes.iter().map(|lane| lane.queue.clone()).collect();
    let shared = Shared {
        kind: "test",
        id: "id".into(),
        run: "run".into(),
        lanes,
        clock: Arc::new(clock.clone()),
        metrics: Arc::default(),
        stop: watch::channel(false).1,
        end: tokio::sync::watch::channel(false).1,
        once: false,
        opened: std::sync::atomic::AtomicU64::new(0),
        backlogs: std::sync::OnceLock::new(),
        task: std::sync::Weak::new(),
    };
    (Intake { shared: Arc::new(shared) }, queues)
}

fn events(source: &mut crate::Source, count: usize) -> Batch {
    let mut batch = source.batch(Vec::new(), 0);
    for number in 0..count {
        let text = batch.append(format!("line {number}").as_bytes());
        source.push(&mut batch, text, 10, 0);
    }
    batch
}

#[test]
fn a_datagram_for_which_one_output_has_no_room_is_dropped_there_and_counted() {
    let (intake, queues) = intake(2);
    let mut source = intake.open("peer", Map::new());
    let batch = events(&mut source, 8);
    assert!(source.offer(batch, Progress::Nothing(80)));
    let mut taken = Vec::new();
    queues[0].try_take(skidder_pipeline::TakeLimits { events: 0, bytes: 1 << 20 }, &mut taken);
    for of in &taken {
        of.ticket.delivered(of.len() as u32);
    }
    let batch = events(&mut source, 5);
    assert!(!source.offer(batch, Progress::Nothing(50)), "the second output is full");
    let dropped = |at: usize| queues[at].settle().total().dropped().get(DropReason::QueueFull);
    assert_eq!((dropped(0), dropped(1)), (0, 5));
    for queue in &queues {
        let total = queue.settle().total();
        assert!(total.adds_up() && total.read() == 13, "{total:?}");
        assert_eq!(total.read_bytes(), 130);
    }
    assert_eq!(intake.metrics().refused.get(), 5);
}

#[tokio::test]
async fn what_a_task_had_when_it_was_dropped_is_counted() {
    let (intake, queues) = intake(2);
    let mut source = intake.open("peer", Map::new());
    let batch = events(&mut source, 10);
    source.send(batch, Progress::Nothing(100)).await.expect("there is room");
    let batch = events(&mut source, 3);
    let wait = std::time::Duration::from_millis(20);
    let sent = tokio::time::timeout(wait, source.send(batch, Progress::Nothing(30))).await;
    assert!(sent.is_err(), "there is no room");
    for queue in &queues {
        let total = queue.settle().total();
        assert!(total.adds_up(), "{total:?}");
        assert_eq!((total.read(), total.dropped().get(DropReason::Stopped)), (13, 3));
    }
}

#[tokio::test]
async fn a_batch_counts_as_waiting_as_long_as_there_is_no_room_for_it() {
    let (intake, queues) = intake(2);
    let mut source = intake.open("peer", Map::new());
    let waiting = || intake.metrics().waiting.get();
    let batch = events(&mut source, 10);
    source.send(batch, Progress::Nothing(100)).await.expect("there is room");
    assert_eq!(waiting(), 0);
    let batch = events(&mut source, 3);
    let mut sending = source.send(batch, Progress::Nothing(30));
    let wait = std::time::Duration::from_millis(20);
    assert!(tokio::time::timeout(wait, &mut sending).await.is_err(), "there is no room");
    assert_eq!(waiting(), 2, "one for each output");
    let mut taken = Vec::new();
    queues[0].try_take(skidder_pipeline::TakeLimits { events: 0, bytes: 1 << 20 }, &mut taken);
    for of in &taken {
        of.ticket.delivered(of.len() as u32);
    }
    assert!(tokio::time::timeout(wait, &mut sending).await.is_err(), "one has no room yet");
    assert_eq!(waiting(), 1);
    drop(sending);
    assert_eq!(waiting(), 0, "it was given up");
}

#[tokio::test]
async fn a_cursor_that_the_registry_cannot_keep_is_refused_where_it_is_made() {
    let (intake, _) = intake(1);
    let name = "n".repeat(5000);
    assert!(matches!(intake.open_at_cursor(&name, Map::new()), Err(OpenError::LongName { .. })));
    let mut source = intake.open_at_cursor("j", Map::new()).expect("it can be opened");
    assert!(source.saved().is_none());
    let batch = events(&mut source, 1);
    let part = SourcePart { version: 1, cursor: "c".repeat(100_000).into(), bytes: 10 };
    let send = async move { source.send(batch, Progress::Cursor(part)).await };
    assert!(tokio::spawn(send).await.expect_err("it panics").is_panic());
}

#[test]
fn a_source_with_a_cursor_feeds_one_output() {
    let (intake, _) = intake(2);
    let opened = intake.open_at_cursor("j", Map::new());
    assert!(matches!(opened, Err(OpenError::Shared { outputs: 2, .. })));
}

#[test]
fn a_row_is_shown_as_long_as_it_is_there() {
    let (intake, _) = intake(1);
    let metrics = intake.metrics();
    let row = intake.row("logs/a");
    row.set_size(10);
    row.set_position(7);
    row.received(2, 7);
    row.failed("broken");
    let all = metrics.sources.all(intake.clock().monotonic());
    let status = &all[0];
    assert_eq!((&*status.name, status.events, status.bytes), ("logs/a", 2, 7));
    assert_eq!((status.position, status.size), (Some(7), Some(10)));
    assert_eq!((status.last_error.as_deref(), metrics.errors.get()), (Some("broken"), 0));
    assert_eq!((metrics.open.get(), metrics.opened.get()), (1, 1));
    drop(row);
    assert_eq!((metrics.open.get(), metrics.opened.get()), (0, 1));
    assert!(metrics.sources.all(intake.clock().monotonic()).is_empty());
}
