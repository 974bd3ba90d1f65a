//! Queue, output and registrar.

use super::{LABEL_RESULT, LABEL_STATE, Metric, Value, count, counter, gauge, text};
use crate::numbers::DiskNumbers;
use crate::snapshot::Snapshot;
use crate::states::OutputState;
use std::time::Duration;

const EVENTS: &str = "skidder_output_events_total";
const EVENTS_HELP: &str = "Events that came back from the output; failed ones are sent again.";

const STATE: &str = "skidder_output_state";
const STATE_HELP: &str = "1 for what the output is doing, 0 for the others.";

fn is(snapshot: &Snapshot, state: OutputState) -> Option<Value> {
    snapshot.state.map(|(now, _)| Value::Count(u64::from(now == state)))
}

fn blocked(snapshot: &Snapshot) -> Option<Duration> {
    snapshot.state.map(|(_, blocked)| blocked.unwrap_or_default())
}

/// A number that is there with `queue.disk` only.
fn disk(snapshot: &Snapshot, number: fn(&DiskNumbers) -> u64) -> Option<Value> {
    snapshot.queue.disk.as_ref().map(|disk| Value::Count(number(disk)))
}

pub(super) const METRICS: &[Metric] = &[
    gauge(
        "libbeat.pipeline.queue.max_events",
        "skidder_queue_events_max",
        "Most events the queue holds, those in flight included.",
        |s| count(s.queue.events_max),
    ),
    gauge(
        "libbeat.pipeline.queue.max_bytes",
        "skidder_queue_bytes_max",
        "Most bytes the queue holds, those in flight included.",
        |s| count(s.queue.bytes_max),
    ),
    gauge(
        "libbeat.pipeline.queue.filled.events",
        "skidder_queue_events",
        "Events queued and in flight.",
        |s| count(s.queue.events),
    ),
    gauge(
        "libbeat.pipeline.queue.filled.bytes",
        "skidder_queue_bytes",
        "Bytes queued and in flight.",
        |s| count(s.queue.bytes),
    ),
    gauge("libbeat.pipeline.queue.filled.pct", "", "", |s| {
        // A queue without room for an event would be refused at the start.
        let (filled, max) = match s.queue.disk {
            None => (s.queue.events, s.queue.events_max),
            Some(_) => (s.queue.bytes, s.queue.bytes_max),
        };
        Some(Value::Real(filled as f64 / max.max(1) as f64))
    }),
    counter(
        "libbeat.pipeline.queue.added.events",
        "skidder_queue_events_added_total",
        "Events put into the queue.",
        |s| count(s.queue.added),
    ),
    counter(
        "libbeat.pipeline.queue.consumed.events",
        "skidder_queue_events_consumed_total",
        "Events that output workers took.",
        |s| count(s.queue.consumed),
    ),
    counter(
        "libbeat.pipeline.queue.removed.events",
        "skidder_queue_events_removed_total",
        "Events settled, whose room is free again.",
        |s| count(s.queue.removed),
    ),
    counter("libbeat.pipeline.queue.acked", "", "", |s| count(s.queue.removed)),
    gauge(
        "skidder.queue.disk.segments",
        "skidder_queue_disk_segments",
        "Files of the disk queue.",
        |s| disk(s, |disk| disk.segments),
    ),
    counter(
        "skidder.queue.disk.written_bytes",
        "skidder_queue_disk_written_bytes_total",
        "Bytes made durable in the disk queue.",
        |s| disk(s, |disk| disk.written_bytes),
    ),
    counter(
        "skidder.queue.disk.write_errors",
        "skidder_queue_disk_write_errors_total",
        "Times that the disk queue could not be written; it is tried again.",
        |s| disk(s, |disk| disk.write_errors),
    ),
    counter(
        "skidder.queue.disk.read_errors",
        "skidder_queue_disk_read_errors_total",
        "Times that the disk queue could not be read; it is tried again.",
        |s| disk(s, |disk| disk.read_errors),
    ),
    counter(
        "skidder.queue.disk.damaged",
        "skidder_queue_disk_damaged_total",
        "Damaged places in the disk queue; their events are dropped as queue_damaged.",
        |s| disk(s, |disk| disk.damaged),
    ),
    counter(
        "skidder.queue.disk.torn_bytes",
        "skidder_queue_disk_torn_bytes_total",
        "Bytes of an unfinished write found at the start; its lines are read again.",
        |s| disk(s, |disk| disk.torn_bytes),
    ),
    gauge(
        "skidder.output.working",
        "skidder_output_working",
        "Of several outputs: 1, or 0 if this one has ended by itself.",
        |s| s.working.map(|working| Value::Count(u64::from(working))),
    ),
    text("skidder.output.state", |s| {
        s.state.map(|(state, _)| Value::Text(state.name().to_owned()))
    }),
    gauge("", STATE, STATE_HELP, |s| is(s, OutputState::Delivering))
        .labels(&[(LABEL_STATE, "delivering")]),
    gauge("", STATE, STATE_HELP, |s| is(s, OutputState::Idle)).labels(&[(LABEL_STATE, "idle")]),
    gauge("", STATE, STATE_HELP, |s| is(s, OutputState::Blocked))
        .labels(&[(LABEL_STATE, "blocked")]),
    gauge("", STATE, STATE_HELP, |s| is(s, OutputState::Failing))
        .labels(&[(LABEL_STATE, "failing")]),
    gauge("", STATE, STATE_HELP, |s| is(s, OutputState::Ended)).labels(&[(LABEL_STATE, "ended")]),
    gauge("skidder.output.blocked_ms", "", "", |s| {
        blocked(s).map(|span| Value::Count(span.as_millis() as u64))
    }),
    gauge(
        "",
        "skidder_output_blocked_seconds",
        "For so long the queue has been full and nothing of it got a verdict; 0 if that is not so.",
        |s| blocked(s).map(|span| Value::Real(span.as_secs_f64())),
    ),
    text("libbeat.output.type", |s| Some(Value::Text(s.program.output.clone()))),
    counter(
        "libbeat.output.events.total",
        "skidder_output_events_sent_total",
        "Events handed to the output, retries included.",
        |s| count(s.output.total),
    ),
    gauge(
        "libbeat.output.events.active",
        "skidder_output_events_active",
        "Events in requests under way.",
        |s| count(s.output.active),
    ),
    counter("libbeat.output.events.acked", EVENTS, EVENTS_HELP, |s| count(s.output.acked))
        .labels(&[(LABEL_RESULT, "acked")]),
    counter("libbeat.output.events.failed", EVENTS, EVENTS_HELP, |s| count(s.output.failed))
        .labels(&[(LABEL_RESULT, "failed")]),
    counter("libbeat.output.events.dropped", EVENTS, EVENTS_HELP, |s| count(s.output.dropped))
        .labels(&[(LABEL_RESULT, "dropped")]),
    counter("libbeat.output.events.duplicates", EVENTS, EVENTS_HELP, |s| {
        count(s.output.duplicates)
    })
    .labels(&[(LABEL_RESULT, "duplicate")]),
    counter("libbeat.output.events.dead_letter", EVENTS, EVENTS_HELP, |s| {
        count(s.output.dead_letter)
    })
    .labels(&[(LABEL_RESULT, "dead_letter")]),
    counter(
        "libbeat.output.events.toomany",
        "skidder_output_events_too_many_total",
        "Events refused with 429; they are among the failed ones.",
        |s| count(s.output.too_many),
    ),
    counter(
        "libbeat.output.events.batches",
        "skidder_output_requests_total",
        "Requests sent, retries included.",
        |s| count(s.output.batches),
    ),
    counter(
        "libbeat.output.batches.split",
        "skidder_output_requests_split_total",
        "Requests cut in two after a 413.",
        |s| count(s.output.split),
    ),
    counter("skidder.output.request_ns", "", "", |s| count(s.output.latency_ns)),
    counter(
        "",
        "skidder_output_request_seconds_total",
        "Time from request to answer, summed over the requests.",
        |s| Some(Value::Real(s.output.latency_ns as f64 / 1e9)),
    ),
    counter(
        "libbeat.output.write.bytes",
        "skidder_output_write_bytes_total",
        "Bytes written by the output, as sent.",
        |s| count(s.output.write_bytes),
    ),
    counter(
        "libbeat.output.write.errors",
        "skidder_output_write_errors_total",
        "Requests that failed.",
        |s| count(s.output.write_errors),
    ),
    counter(
        "libbeat.output.read.bytes",
        "skidder_output_read_bytes_total",
        "Bytes of answers.",
        |s| count(s.output.read_bytes),
    ),
    counter(
        "libbeat.output.read.errors",
        "skidder_output_read_errors_total",
        "Answers that could not be read.",
        |s| count(s.output.read_errors),
    ),
    counter("registrar.writes.total", "", "", |s| {
        s.registrar.map(|writes| Value::Count(writes.succeeded + writes.failed))
    }),
    counter(
        "registrar.writes.success",
        "skidder_registry_commits_total",
        "Commits of cursors to the registry that are durable.",
        |s| s.registrar.map(|writes| Value::Count(writes.succeeded)),
    ),
    counter(
        "registrar.writes.fail",
        "skidder_registry_commit_errors_total",
        "Commits of cursors to the registry that failed.",
        |s| s.registrar.map(|writes| Value::Count(writes.failed)),
    ),
];
