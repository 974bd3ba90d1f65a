//! The names of Filebeat's inputs of clouds under `/inputs/`: `aws-s3`, `azure-blob-storage`, `gcs`, `aws-cloudwatch`.

use crate::files::time_text;
use crate::stats::histogram;
use serde_json::{Value as Json, json};
use skidder_input::{GroupNumbers, InputMetrics, ObjectNumbers, QueueNumbers};

/// Adds what an input of this type counts.
pub(crate) fn add(entry: &mut Json, kind: &str, metrics: &InputMetrics) {
    let queue = metrics.reads_queue();
    if let Some(queue) = queue {
        add_queue(entry, queue);
    }
    if let Some(objects) = metrics.reads_objects() {
        match kind {
            "aws-s3" => add_s3(entry, objects, queue.is_none()),
            "azure-blob-storage" => add_blobs(entry, objects, metrics),
            _ => add_gcs(entry, objects, metrics),
        }
    }
    if let Some(groups) = metrics.reads_groups() {
        add_groups(entry, groups);
    }
}

/// The names of a queue of `aws-s3`, and what only we count.
fn add_queue(entry: &mut Json, queue: &QueueNumbers) {
    let (held, oldest) = queue.held();
    entry["sqs_messages_received_total"] = queue.received.get().into();
    entry["sqs_messages_processed_total"] = queue.processed.get().into();
    entry["sqs_visibility_timeout_extensions_total"] = queue.extended.get().into();
    entry["sqs_messages_inflight_gauge"] = held.into();
    entry["sqs_messages_returned_total"] = queue.returned.get().into();
    entry["sqs_messages_deleted_total"] = queue.deleted.get().into();
    entry["sqs_messages_waiting_gauge"] = queue.waiting().map_or_else(|| (-1).into(), Json::from);
    // Three digits, as in Filebeat.
    entry["sqs_worker_utilization"] = ((queue.utilization() * 1000.0).round() / 1000.0).into();
    entry["sqs_message_processing_time"] = histogram(&queue.processing_time.summary());
    entry["sqs_lag_time"] = histogram(&queue.lag.summary());
    entry["skidder"]["queue"] = json!({ "oldest_held": oldest.map(time_text) });
}

/// Its objects. Only a bucket `is_listed`.
fn add_s3(entry: &mut Json, objects: &ObjectNumbers, is_listed: bool) {
    entry["s3_objects_requested_total"] = objects.requested.get().into();
    entry["s3_objects_acked_total"] = objects.acknowledged().into();
    if is_listed {
        entry["s3_objects_listed_total"] = objects.listed.get().into();
    }
    entry["s3_objects_processed_total"] = objects.selected.get().into();
    entry["s3_bytes_processed_total"] = objects.bytes.get().into();
    entry["s3_events_created_total"] = objects.events.get().into();
    entry["s3_objects_inflight_gauge"] = objects.in_flight.get().into();
    entry["s3_object_processing_time"] = histogram(&objects.processing_time.summary());
    add_ours(entry, objects, is_listed);
}

/// The names of `azure-blob-storage`.
fn add_blobs(entry: &mut Json, objects: &ObjectNumbers, metrics: &InputMetrics) {
    add_errors(entry, objects, metrics);
    entry["abs_blobs_tracked_gauge"] = objects.tracked.get().into();
    entry["abs_blobs_requested_total"] = objects.requested.get().into();
    entry["abs_blobs_published_total"] = objects.sent.get().into();
    entry["abs_blobs_listed_total"] = objects.listed.get().into();
    entry["abs_bytes_processed_total"] = objects.bytes.get().into();
    entry["abs_events_created_total"] = objects.events.get().into();
    entry["abs_blobs_inflight_gauge"] = objects.in_flight.get().into();
    entry["abs_blob_processing_time"] = histogram(&objects.processing_time.summary());
    entry["abs_blob_size_in_bytes"] = histogram(&objects.size.summary());
    entry["abs_events_per_blob"] = histogram(&objects.events_per_object.summary());
    entry["abs_jobs_scheduled_after_validation"] = histogram(&objects.scheduled.summary());
    entry["source_lag_time"] = histogram(&objects.lag.summary());
    add_ours(entry, objects, false);
}

/// The names of `gcs`.
fn add_gcs(entry: &mut Json, objects: &ObjectNumbers, metrics: &InputMetrics) {
    add_errors(entry, objects, metrics);
    entry["gcs_objects_tracked_gauge"] = objects.tracked.get().into();
    entry["gcs_objects_requested_total"] = objects.requested.get().into();
    entry["gcs_objects_published_total"] = objects.sent.get().into();
    entry["gcs_objects_listed_total"] = objects.listed.get().into();
    entry["gcs_bytes_processed_total"] = objects.bytes.get().into();
    entry["gcs_events_created_total"] = objects.events.get().into();
    entry["gcs_failed_jobs_total"] = objects.failed.get().into();
    entry["gcs_objects_inflight_gauge"] = objects.in_flight.get().into();
    entry["gcs_object_processing_time"] = histogram(&objects.processing_time.summary());
    entry["gcs_object_size_in_bytes"] = histogram(&objects.size.summary());
    entry["gcs_events_per_object"] = histogram(&objects.events_per_object.summary());
    entry["gcs_jobs_scheduled_after_validation"] = histogram(&objects.scheduled.summary());
    entry["source_lag_time"] = histogram(&objects.lag.summary());
    add_ours(entry, objects, false);
}

fn add_errors(entry: &mut Json, objects: &ObjectNumbers, metrics: &InputMetrics) {
    if let Some(url) = objects.url.get() {
        entry["url"] = url.as_str().into();
    }
    entry["errors_total"] = metrics.errors.get().into();
    entry["decode_errors_total"] = objects.damaged.get().into();
}

/// What Filebeat does not count.
fn add_ours(entry: &mut Json, objects: &ObjectNumbers, is_listed: bool) {
    let mut ours = json!({
        "sent_total": objects.sent.get(),
        "acked_total": objects.acknowledged(),
        "failed_total": objects.failed.get(),
        "damaged_total": objects.damaged.get(),
    });
    if is_listed {
        ours["tracked"] = objects.tracked.get().into();
        ours["lag_time"] = histogram(&objects.lag.summary());
    }
    entry["skidder"]["objects"] = ours;
}

/// The names of `aws-cloudwatch`.
fn add_groups(entry: &mut Json, groups: &GroupNumbers) {
    entry["log_events_received_total"] = groups.received.get().into();
    entry["log_groups_total"] = groups.groups.get().into();
    entry["cloudwatch_events_created_total"] = groups.created.get().into();
    entry["api_calls_total"] = groups.calls.get().into();
}
