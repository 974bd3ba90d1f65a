//! Inputs of clouds in `/inputs/` and `/metrics`: Filebeat's names, and no others.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Run;
use serde_json::{Value as Json, json};
use skidder_input::{Input, InputFuture, InputMetrics, InputTask, Intake, Setup};
use skidder_observe::{Counts, InputList, InputSource, Sources, inputs, prometheus};
use skidder_os::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// An input that does nothing: its numbers are what the test makes them.
struct Still(&'static str);

impl Input for Still {
    fn kind(&self) -> &'static str {
        self.0
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            intake.stopped().await;
            Ok(())
        })
    }
}

/// The entry of an input with these numbers, and the text of `/metrics`.
fn entry(kind: &'static str, count: impl Fn(&InputMetrics)) -> (Json, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let run = Run::idle();
    let clock = Arc::new(run.clock.clone());
    let (id, name) = ("it".into(), "it".into());
    let setup = Setup { id, name, run: "run".into(), once: false, clock };
    let task = InputTask::new(Box::new(Still(kind)), setup, 1, runtime.handle().clone());
    count(task.metrics());
    let mut sources = Sources::clone(&run.sources);
    let (id, kind) = ("it".to_owned(), kind.to_owned());
    let counts = Counts::Task { task, is_counted: true };
    let title = id.clone();
    let input =
        InputSource { id, title, kind, number: 0, slot: 0, counts, plan: None, survey: None };
    sources.outputs[0].inputs = InputList::new(vec![input]);
    let snapshot = sources.snapshot();
    (inputs(&snapshot, None)[0].take(), prometheus(&snapshot))
}

/// The names of an entry, but for those of every input.
fn names(entry: &Json) -> BTreeSet<&str> {
    let all = entry.as_object().unwrap().keys().map(String::as_str);
    all.filter(|name| !["id", "input", "skidder", "events_published_total"].contains(name))
        .collect()
}

#[test]
fn a_queue_and_its_objects_have_the_names_of_filebeat() {
    let (entry, metrics) = entry("aws-s3", |metrics| {
        let (queue, objects) = (metrics.queue(), metrics.objects());
        queue.received.add(5);
        queue.set_waiting(Some(7));
        queue.set_held(|| (2, Some(Timestamp(1_500_000_000))));
        queue.lag.add(1000, 1);
        objects.selected.add(3);
        objects.events.add(9);
    });
    let expected = BTreeSet::from([
        "s3_bytes_processed_total",
        "s3_events_created_total",
        "s3_object_processing_time",
        "s3_objects_acked_total",
        "s3_objects_inflight_gauge",
        "s3_objects_processed_total",
        "s3_objects_requested_total",
        "sqs_lag_time",
        "sqs_message_processing_time",
        "sqs_messages_deleted_total",
        "sqs_messages_inflight_gauge",
        "sqs_messages_processed_total",
        "sqs_messages_received_total",
        "sqs_messages_returned_total",
        "sqs_messages_waiting_gauge",
        "sqs_visibility_timeout_extensions_total",
        "sqs_worker_utilization",
    ]);
    assert_eq!(names(&entry), expected);
    assert_eq!(entry["sqs_messages_received_total"], 5);
    assert_eq!(entry["sqs_messages_waiting_gauge"], 7);
    assert_eq!(entry["sqs_messages_inflight_gauge"], 2);
    assert_eq!(entry["sqs_lag_time"]["histogram"]["max"], 1000);
    assert_eq!(
        (&entry["s3_objects_processed_total"], &entry["s3_events_created_total"]),
        (&json!(3), &json!(9))
    );
    assert_eq!(entry["skidder"]["queue"]["oldest_held"], "1970-01-01T00:00:01.500Z");
    for line in [
        "skidder_input_queue_received_messages_total{input=\"it\"} 5\n",
        "skidder_input_queue_oldest_held_timestamp_seconds{input=\"it\"} 1.5\n",
        "skidder_input_objects_sent_total{input=\"it\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[test]
fn a_bucket_has_no_numbers_of_a_queue() {
    let (entry, metrics) = entry("aws-s3", |metrics| metrics.objects().listed.add(4));
    assert!(names(&entry).iter().all(|name| name.starts_with("s3_")), "{entry}");
    assert_eq!(entry["s3_objects_listed_total"], 4);
    assert!(!metrics.contains("skidder_input_queue_"));
}

#[test]
fn containers_and_buckets_have_the_names_of_filebeat() {
    let count = |metrics: &InputMetrics| {
        let objects = metrics.objects();
        objects.url.set("https://account/container".to_owned()).unwrap();
        objects.listed.add(4);
        objects.size.add(100, 1);
        objects.failed.add(1);
        metrics.failed("a", "broken");
    };
    let (blobs, _) = entry("azure-blob-storage", count);
    let of_blobs = BTreeSet::from([
        "abs_blob_processing_time",
        "abs_blob_size_in_bytes",
        "abs_blobs_inflight_gauge",
        "abs_blobs_listed_total",
        "abs_blobs_published_total",
        "abs_blobs_requested_total",
        "abs_blobs_tracked_gauge",
        "abs_bytes_processed_total",
        "abs_events_created_total",
        "abs_events_per_blob",
        "abs_jobs_scheduled_after_validation",
        "decode_errors_total",
        "errors_total",
        "source_lag_time",
        "url",
    ]);
    assert_eq!(names(&blobs), of_blobs);
    assert_eq!((&blobs["abs_blobs_listed_total"], &blobs["errors_total"]), (&json!(4), &json!(1)));
    assert_eq!(blobs["url"], "https://account/container");
    let (objects, _) = entry("gcs", count);
    let of_objects = BTreeSet::from([
        "decode_errors_total",
        "errors_total",
        "gcs_bytes_processed_total",
        "gcs_events_created_total",
        "gcs_events_per_object",
        "gcs_failed_jobs_total",
        "gcs_jobs_scheduled_after_validation",
        "gcs_object_processing_time",
        "gcs_object_size_in_bytes",
        "gcs_objects_inflight_gauge",
        "gcs_objects_listed_total",
        "gcs_objects_published_total",
        "gcs_objects_requested_total",
        "gcs_objects_tracked_gauge",
        "source_lag_time",
        "url",
    ]);
    assert_eq!(names(&objects), of_objects);
    assert_eq!(objects["gcs_object_size_in_bytes"]["histogram"]["count"], 1);
    assert_eq!(objects["gcs_failed_jobs_total"], 1);
}

#[test]
fn log_groups_have_the_names_of_filebeat() {
    let (entry, _) = entry("aws-cloudwatch", |metrics| {
        let groups = metrics.groups();
        groups.received.add(10);
        groups.created.add(8);
        groups.groups.set(2);
        groups.calls.add(3);
    });
    let names = names(&entry);
    let values = [
        "log_events_received_total",
        "cloudwatch_events_created_total",
        "log_groups_total",
        "api_calls_total",
    ]
    .map(|name| entry[name].as_u64());
    assert_eq!((names.len(), values), (4, [Some(10), Some(8), Some(2), Some(3)]));
}

#[test]
fn an_event_hub_has_the_names_of_filebeat() {
    let (entry, metrics) = entry("azure-eventhub", |metrics| {
        let hub = metrics.hub();
        hub.messages.add(6);
        hub.processed.add(5);
        hub.decode_errors.add(1);
        hub.restarts.add(2);
    });
    assert_eq!(
        (&entry["received_messages_total"], &entry["processed_messages_total"]),
        (&json!(6), &json!(5))
    );
    for line in [
        "skidder_input_hub_received_messages_total{input=\"it\"} 6\n",
        "skidder_input_hub_processed_messages_total{input=\"it\"} 5\n",
        "skidder_input_hub_decode_errors_total{input=\"it\"} 1\n",
        "skidder_input_hub_restarts_total{input=\"it\"} 2\n",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}
