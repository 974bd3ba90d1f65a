//! The metrics of each input: of the pair of input and output, if there are several.

use super::{Kind, LABEL_OUTCOME, LABEL_REASON, LABEL_STATE, Series, Value};
use crate::lag::LagNumbers;
use crate::numbers::{InputNumbers, SourceNumbers};
use crate::states::InputState;
use skidder_event::{Counter, DropReason, Gauge};
use skidder_input::{Flows, HubCounts, ObjectNumbers, QueueNumbers, Subscribed};
use std::time::Duration;

const LINES: &str = "skidder_input_lines_total";
const LINES_HELP: &str =
    "Lines with a verdict, or that went to the disk queue: read = all of these + in flight.";
const STATE: &str = "skidder_input_state";
const STATE_HELP: &str = "1 for what the input is doing, 0 for the others.";

/// One number of an input, in `/metrics`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputMetric {
    pub(crate) series: Series,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
    pub(crate) read: fn(&InputNumbers) -> Option<Value>,
}

const fn metric(
    kind: Kind,
    name: &'static str,
    help: &'static str,
    read: fn(&InputNumbers) -> Option<Value>,
) -> InputMetric {
    InputMetric { series: Series { name, labels: &[] }, kind, help, read }
}

const fn lines(
    labels: &'static [(&'static str, &'static str)],
    read: fn(&InputNumbers) -> Option<Value>,
) -> InputMetric {
    let series = Series { name: LINES, labels };
    InputMetric { series, kind: Kind::Counter, help: LINES_HELP, read }
}

const fn state(
    labels: &'static [(&'static str, &'static str)],
    read: fn(&InputNumbers) -> Option<Value>,
) -> InputMetric {
    let series = Series { name: STATE, labels };
    InputMetric { series, kind: Kind::Gauge, help: STATE_HELP, read }
}

#[expect(clippy::unnecessary_wraps, reason = "what the table's functions return")]
fn count(number: u64) -> Option<Value> {
    Some(Value::Count(number))
}

fn dropped(input: &InputNumbers, reason: DropReason) -> Option<Value> {
    count(input.ledger.dropped().get(reason))
}

fn is(input: &InputNumbers, state: InputState) -> Option<Value> {
    input.state.map(|now| Value::Count(u64::from(now == state)))
}

fn lag(input: &InputNumbers, number: fn(&LagNumbers) -> u64) -> Option<Value> {
    input.lag.as_ref().map(|lag| Value::Count(number(lag)))
}

/// Of an input that is a task.
fn source(input: &InputNumbers, number: fn(&SourceNumbers) -> u64) -> Option<Value> {
    input.task.as_ref().map(|_| Value::Count(number(&input.read.sources)))
}

/// Of an input that receives flows.
fn flows(input: &InputNumbers, number: fn(&Flows) -> &Gauge) -> Option<Value> {
    let flows = input.task.as_ref()?.metrics().listens()?.flows.get()?;
    Some(Value::Count(number(flows).get()))
}

/// Of an input that acknowledges messages of a subscription.
fn subscribed(input: &InputNumbers, number: fn(&Subscribed) -> &Counter) -> Option<Value> {
    let subscribed = input.task.as_ref()?.metrics().subscribes()?;
    Some(Value::Count(number(subscribed).get()))
}

/// The messages of a subscription that are held.
fn held(input: &InputNumbers) -> Option<(u64, Option<i64>)> {
    Some(input.task.as_ref()?.metrics().subscribes()?.held())
}

/// Of an input that reads objects of buckets.
fn objects(input: &InputNumbers, number: fn(&ObjectNumbers) -> u64) -> Option<Value> {
    let objects = input.task.as_ref()?.metrics().reads_objects()?;
    Some(Value::Count(number(objects)))
}

/// Of an input that reads a queue of messages.
fn queue(input: &InputNumbers, number: fn(&QueueNumbers) -> Option<Value>) -> Option<Value> {
    number(input.task.as_ref()?.metrics().reads_queue()?)
}

/// Of an input that reads an event hub.
fn hub(input: &InputNumbers, number: fn(&HubCounts) -> &Counter) -> Option<Value> {
    let hub = input.task.as_ref()?.metrics().reads_hub()?;
    Some(Value::Count(number(hub).get()))
}

fn seconds(input: &InputNumbers, span: fn(&LagNumbers) -> Option<Duration>) -> Option<Value> {
    let span = input.lag.as_ref().and_then(span)?;
    Some(Value::Real(span.as_secs_f64()))
}

/// All of them; those of a family follow each other.
pub(crate) const METRICS: &[InputMetric] = &[
    metric(Kind::Counter, "skidder_input_read_lines_total", "Lines taken from its files.", |i| {
        count(i.ledger.read())
    }),
    metric(
        Kind::Counter,
        "skidder_input_read_bytes_total",
        "Decompressed bytes of these lines, terminators included.",
        |i| count(i.ledger.read_bytes()),
    ),
    lines(&[(LABEL_OUTCOME, "delivered"), (LABEL_REASON, "")], |i| count(i.ledger.delivered())),
    lines(&[(LABEL_OUTCOME, "dead_lettered"), (LABEL_REASON, "")], |i| {
        count(i.ledger.dead_lettered())
    }),
    lines(&[(LABEL_OUTCOME, "stored"), (LABEL_REASON, "")], |i| count(i.ledger.stored())),
    lines(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "empty_line")], |i| {
        dropped(i, DropReason::Empty)
    }),
    lines(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "line_filter")], |i| {
        dropped(i, DropReason::LineFilter)
    }),
    lines(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "parser")], |i| {
        dropped(i, DropReason::Parser)
    }),
    lines(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "drop_event")], |i| {
        dropped(i, DropReason::Processor)
    }),
    lines(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "line_too_long")], |i| {
        dropped(i, DropReason::LineTooLong)
    }),
    lines(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "rejected")], |i| {
        dropped(i, DropReason::Rejected)
    }),
    lines(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "not_for_output")], |i| {
        dropped(i, DropReason::NotForOutput)
    }),
    // Not `queue_damaged`: the disk queue does not know whose events they were.
    lines(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "queue_full")], |i| {
        dropped(i, DropReason::QueueFull)
    }),
    lines(&[(LABEL_OUTCOME, "dropped"), (LABEL_REASON, "stopped")], |i| {
        dropped(i, DropReason::Stopped)
    }),
    metric(
        Kind::Gauge,
        "skidder_input_in_flight_lines",
        "Its lines that have no verdict yet, and are not in the disk queue.",
        |i| count(i.ledger.in_flight()),
    ),
    metric(
        Kind::Counter,
        "skidder_input_errors_total",
        "Failures to open, read or decode one of its files.",
        |i| count(i.read.errors + i.read.gzip_errors),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_last_error_timestamp_seconds",
        "When the last of them was, or the last error of an input that reads no files, in seconds since 1970-01-01 UTC.",
        |i| i.error.as_ref().map(|error| Value::Real(error.at().0 as f64 / 1e9)),
    ),
    metric(Kind::Gauge, "skidder_input_files", "Its files.", |i| lag(i, |lag| lag.files)),
    state(&[(LABEL_STATE, "reading")], |i| is(i, InputState::Reading)),
    state(&[(LABEL_STATE, "waiting")], |i| is(i, InputState::Waiting)),
    state(&[(LABEL_STATE, "idle")], |i| is(i, InputState::Idle)),
    state(&[(LABEL_STATE, "blocked")], |i| is(i, InputState::Blocked)),
    state(&[(LABEL_STATE, "ended")], |i| is(i, InputState::Ended)),
    metric(
        Kind::Gauge,
        "skidder_input_blocked_seconds",
        "For so long it has been blocked on its output; 0 if it is not.",
        |i| {
            i.state?;
            let blocked = i.blocked.as_ref().map_or(Duration::ZERO, |(_, span)| *span);
            Some(Value::Real(blocked.as_secs_f64()))
        },
    ),
    metric(
        Kind::Gauge,
        "skidder_input_behind_bytes",
        "Bytes of its files, read or not, without a verdict.",
        |i| lag(i, |lag| lag.behind_bytes),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_behind_files",
        "Its files with bytes that have no verdict.",
        |i| lag(i, |lag| lag.behind_files),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_unknown_files",
        "Its compressed files that are not finished: nobody knows how many bytes they have.",
        |i| lag(i, |lag| lag.unknown),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_behind_seconds",
        "Its oldest line without a verdict is at least so old.",
        |i| seconds(i, |lag| Some(lag.behind_for)),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_catch_up_seconds",
        "Time until nothing of it is behind, at the rate since the look before.",
        |i| seconds(i, LagNumbers::catch_up),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_deleted_in_seconds",
        "Time until rotation deletes the first of its files that has something without a verdict.",
        |i| seconds(i, |lag| lag.deleted_in),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_sources_open",
        "Connections, peers and the like that are open.",
        |i| source(i, |of| of.open),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_behind_events",
        "Records of all its partitions from the offset that is committed next to the end at the last look.",
        |i| {
            let behind = i.task.as_ref()?.metrics().sources.behind();
            (!behind.is_empty())
                .then(|| Value::Count(behind.iter().map(|(_, events)| events).sum()))
        },
    ),
    metric(
        Kind::Counter,
        "skidder_input_received_events_total",
        "Events received, before they went to any output.",
        |i| source(i, |of| of.events),
    ),
    metric(
        Kind::Counter,
        "skidder_input_received_bytes_total",
        "Bytes received, as the far side sent them.",
        |i| source(i, |of| of.bytes),
    ),
    metric(
        Kind::Counter,
        "skidder_input_lost_before_total",
        "Events that the system threw away before skidder saw them, because its receive buffer was full.",
        |i| i.task.as_ref().map(|task| Value::Count(task.metrics().lost_before.total())),
    ),
    metric(
        Kind::Counter,
        "skidder_input_refused_total",
        "Events for which an output had no room, dropped as `queue_full`.",
        |i| source(i, |of| of.refused),
    ),
    metric(
        Kind::Counter,
        "skidder_input_network_errors_total",
        "What could not be read or taken, and errors of the network.",
        |i| source(i, |of| of.errors),
    ),
    metric(
        Kind::Counter,
        "skidder_input_subscription_received_messages_total",
        "Messages of a subscription that were received, those that came again included.",
        |i| subscribed(i, |of| &of.received),
    ),
    metric(
        Kind::Counter,
        "skidder_input_subscription_acked_messages_total",
        "Messages of a subscription whose acknowledgement the server has taken.",
        |i| subscribed(i, |of| &of.acknowledged),
    ),
    metric(
        Kind::Counter,
        "skidder_input_subscription_failed_acks_total",
        "Acknowledgements of messages that came too late.",
        |i| subscribed(i, |of| &of.failed),
    ),
    metric(
        Kind::Counter,
        "skidder_input_subscription_nacked_messages_total",
        "Messages of a subscription that were given back.",
        |i| subscribed(i, |of| &of.returned),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_subscription_held_messages",
        "Messages of a subscription that are not acknowledged yet.",
        |i| held(i).map(|(held, _)| Value::Count(held)),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_subscription_oldest_held_timestamp_seconds",
        "When the oldest of these messages was published, in seconds since 1970.",
        |i| held(i)?.1.map(|time| Value::Real(time as f64 / 1e9)),
    ),
    metric(
        Kind::Counter,
        "skidder_input_objects_sent_total",
        "Objects of buckets that were sent on to their end.",
        |i| objects(i, |of| of.sent.get()),
    ),
    metric(
        Kind::Counter,
        "skidder_input_objects_acked_total",
        "Of these, objects whose events all have their verdict.",
        |i| objects(i, ObjectNumbers::acknowledged),
    ),
    metric(
        Kind::Counter,
        "skidder_input_objects_failed_total",
        "Objects that could not be read to their end; each time that is tried.",
        |i| objects(i, |of| of.failed.get()),
    ),
    metric(
        Kind::Counter,
        "skidder_input_objects_read_bytes_total",
        "Bytes of objects that were read, as they are stored.",
        |i| objects(i, |of| of.bytes.get()),
    ),
    metric(Kind::Gauge, "skidder_input_objects_open", "Objects that are being read.", |i| {
        objects(i, |of| of.in_flight.get())
    }),
    metric(
        Kind::Counter,
        "skidder_input_queue_received_messages_total",
        "Messages of a queue that were received, those that came again included.",
        |i| queue(i, |of| count(of.received.get())),
    ),
    metric(
        Kind::Counter,
        "skidder_input_queue_deleted_messages_total",
        "Messages of a queue that the server has deleted.",
        |i| queue(i, |of| count(of.deleted.get())),
    ),
    metric(
        Kind::Counter,
        "skidder_input_queue_returned_messages_total",
        "Messages of a queue that were left to it, to come again.",
        |i| queue(i, |of| count(of.returned.get())),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_queue_held_messages",
        "Messages of a queue that were received and are not deleted yet.",
        |i| queue(i, |of| count(of.held().0)),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_queue_oldest_held_timestamp_seconds",
        "When the oldest of these messages was sent, in seconds since 1970.",
        |i| queue(i, |of| of.held().1.map(|time| Value::Real(time.0 as f64 / 1e9))),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_queue_worker_utilization",
        "0 if all workers of a queue were idle in the last 5 seconds, 1 if none was.",
        |i| queue(i, |of| Some(Value::Real(of.utilization()))),
    ),
    metric(
        Kind::Counter,
        "skidder_input_hub_received_messages_total",
        "Messages of an event hub that were received.",
        |i| hub(i, |of| &of.messages),
    ),
    metric(
        Kind::Counter,
        "skidder_input_hub_processed_messages_total",
        "Of these, messages all of whose events the queue took.",
        |i| hub(i, |of| &of.processed),
    ),
    metric(
        Kind::Counter,
        "skidder_input_hub_decode_errors_total",
        "Of these, messages that are no JSON, and were sent as they are.",
        |i| hub(i, |of| &of.decode_errors),
    ),
    metric(
        Kind::Counter,
        "skidder_input_hub_restarts_total",
        "How often partitions of an event hub could not be claimed, and it was tried again.",
        |i| hub(i, |of| &of.restarts),
    ),
    metric(
        Kind::Counter,
        "skidder_input_netflow_packets_total",
        "Packets of flows that were decoded to their end.",
        |i| flows(i, |of| &of.packets),
    ),
    metric(
        Kind::Counter,
        "skidder_input_netflow_flows_total",
        "Flows, records of options, and counters of interfaces in these packets.",
        |i| flows(i, |of| &of.flows),
    ),
    metric(
        Kind::Counter,
        "skidder_input_netflow_decode_errors_total",
        "Packets of flows that were damaged, or of a protocol that is not configured.",
        |i| flows(i, |of| &of.errors),
    ),
    metric(
        Kind::Gauge,
        "skidder_input_netflow_exporters",
        "Sources of exporters whose templates are known, and agents of sFlow.",
        |i| flows(i, |of| &of.sources),
    ),
    metric(
        Kind::Counter,
        "skidder_input_netflow_sets_without_template_total",
        "Sets of data that came before their template.",
        |i| flows(i, |of| &of.without_template),
    ),
    metric(
        Kind::Counter,
        "skidder_input_netflow_sets_decoded_later_total",
        "Of these, sets that were decoded when their template came.",
        |i| flows(i, |of| &of.decoded_later),
    ),
    metric(
        Kind::Counter,
        "skidder_input_netflow_sets_given_up_total",
        "Of these, sets that were given up.",
        |i| flows(i, |of| &of.given_up),
    ),
    metric(
        Kind::Counter,
        "skidder_input_netflow_templates_refused_total",
        "Templates for which there was no room.",
        |i| flows(i, |of| &of.templates_refused),
    ),
    metric(
        Kind::Counter,
        "skidder_input_netflow_templates_forgotten_total",
        "Templates that were forgotten.",
        |i| flows(i, |of| &of.templates_forgotten),
    ),
    metric(
        Kind::Counter,
        "skidder_input_netflow_sequence_resets_total",
        "How often an exporter began to count anew.",
        |i| flows(i, |of| &of.resets),
    ),
    metric(
        Kind::Counter,
        "skidder_input_netflow_sflow_formats_skipped_total",
        "Samples, records and packets of sFlow in a format that is not decoded.",
        |i| flows(i, |of| &of.skipped),
    ),
    metric(
        Kind::Counter,
        "skidder_input_netflow_sflow_datagrams_lost_total",
        "Datagrams of sFlow that are missing in the numbers of their agent.",
        |i| flows(i, |of| &of.lost),
    ),
];
