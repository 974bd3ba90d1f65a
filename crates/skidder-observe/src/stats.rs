//! The JSON documents of the HTTP endpoint: `/`, `/stats`, `/state` and `/inputs/`.
//!
//! Names and shapes are Filebeat's; see <https://www.elastic.co/docs/reference/beats/filebeat/http-endpoint>.

use crate::clouds;
use crate::files::{error_json, ledger_json, millis, time_text};
use crate::inputs::InputError;
use crate::lag::totals_json;
use crate::names::{Metric, Value, metrics, output_metrics};
use crate::numbers::{InputNumbers, ReadNumbers, SourceNumbers};
use crate::process::user_name;
use crate::snapshot::{Program, Snapshot};
use serde_json::{Map, Number, Value as Json, json};
use skidder_event::Summary;
use skidder_input::{Flows, HubCounts, InputTask, LastError, Listening, Subscribed};
use skidder_os::{Fs, Timestamp};

/// The document of `/stats`: all metrics, nested at the dots of their names. Of several outputs these are the
/// sums, and `skidder.outputs` has each by its id.
pub fn stats(snapshot: &Snapshot) -> Json {
    let mut document = nested(metrics().filter_map(|metric| entry(metric, snapshot)));
    for (id, one) in &snapshot.outputs {
        let own = nested(output_metrics().filter_map(|metric| entry(metric, one)));
        document["skidder"]["outputs"][id] = own;
    }
    document
}

/// The document of `/`: the program.
pub fn info(program: &Program, fs: &dyn Fs) -> Json {
    let uid = rustix::process::getuid().as_raw();
    let mut info = json!({
        "beat": program.beat,
        "binary_arch": architecture(),
        "elastic_licensed": false,
        "ephemeral_id": program.ephemeral_id,
        "gid": rustix::process::getgid().as_raw().to_string(),
        "hostname": program.hostname,
        "name": program.name,
        "uid": uid.to_string(),
        "uuid": program.uuid,
        "version": program.version,
    });
    info_part(&mut info, "build_commit", program.build_commit.as_deref());
    info_part(&mut info, "build_time", program.build_time.as_deref());
    info_part(&mut info, "username", user_name(fs, uid).as_deref());
    info
}

/// The document of `/state`: the configuration.
pub fn state(snapshot: &Snapshot) -> Json {
    let program = &snapshot.program;
    let mut names: Vec<&str> = snapshot.inputs.iter().map(|input| &*input.kind).collect();
    names.sort_unstable();
    names.dedup();
    let mut state = json!({
        "beat": { "name": program.name },
        "host": { "architecture": std::env::consts::ARCH, "hostname": program.hostname },
        "input": { "count": snapshot.inputs_count(), "names": names },
        "management": { "enabled": false },
        "module": { "count": 0, "names": [] },
        "output": { "name": program.output },
        "queue": { "name": if snapshot.queue.disk.is_some() { "disk" } else { "mem" } },
        "service": { "id": program.uuid, "name": program.beat, "version": program.version },
    });
    if let Some(reload) = snapshot.reloads.state() {
        state["skidder"]["reload"] = reload;
    }
    for (id, one) in &snapshot.outputs {
        state["skidder"]["outputs"][id] = json!({ "name": one.program.output });
    }
    state
}

/// The document of `/inputs/`: an array of the inputs, or of those of one type. With several outputs an input has an
/// entry for each that it feeds.
pub fn inputs(snapshot: &Snapshot, kind: Option<&str>) -> Json {
    let wanted = |input: &&InputNumbers| kind.is_none_or(|kind| input.kind == kind);
    let entry = |input: &InputNumbers| input_entry(input, snapshot);
    snapshot.inputs.iter().filter(wanted).map(entry).collect()
}

fn input_entry(input: &InputNumbers, snapshot: &Snapshot) -> Json {
    let mut entry = match &input.task {
        Some(task) => task_entry(input, task),
        None => file_entry(input),
    };
    entry["skidder"]["name"] = input.title.as_str().into();
    entry["skidder"]["number"] = input.number.into();
    entry["skidder"]["last_error"] = last_error_json(input.error.as_ref(), snapshot);
    add_state(&mut entry["skidder"], input, snapshot);
    if let Some(output) = &input.output {
        entry["output"] = Json::from(&**output);
    }
    entry
}

/// The last error of an input, and how long ago it was.
fn last_error_json(error: Option<&InputError>, snapshot: &Snapshot) -> Json {
    let mut json = match error {
        None => return Json::Null,
        Some(InputError::OfFile(error)) => error_json(error),
        Some(InputError::OfSource(LastError { at, source, text })) => {
            json!({ "at": time_text(*at), "source": &**source, "text": text })
        }
    };
    let ago = error.map_or(0, |error| (snapshot.time.0 - error.at().0) / 1_000_000);
    json["ms"] = ago.max(0).into();
    json
}

/// An input that is a task; those that listen have Filebeat's names, others have those of its `benchmark`.
fn task_entry(input: &InputNumbers, task: &InputTask) -> Json {
    let SourceNumbers { opened, open, bytes, events, published, refused, lost_before: _, errors } =
        input.read.sources;
    let metrics = task.metrics();
    let lost_before = metrics.lost_before.total();
    let mut entry = json!({
        "id": input.id,
        "input": input.kind,
        "skidder": {
            "sources_opened_total": opened,
            "sources_open": open,
            "events_total": events,
            "bytes_total": bytes,
            "refused_total": refused,
            "lost_before_total": lost_before,
            "errors_total": errors,
            "trouble": metrics.trouble().as_deref(),
            "ledger": ledger_json(&input.ledger),
        },
    });
    let behind = metrics.sources.behind();
    if !behind.is_empty() {
        let events: u64 = behind.iter().map(|(_, events)| events).sum();
        entry["skidder"]["behind_events"] = events.into();
    }
    if let Some(subscribed) = metrics.subscribes() {
        add_subscribed(&mut entry, subscribed);
    }
    clouds::add(&mut entry, &input.kind, metrics);
    if let Some(counts) = metrics.reads_hub() {
        add_hub(&mut entry, counts);
    }
    let listens = metrics.listens().and_then(|it| Some((it, it.device.get()?)));
    let Some((listening, device)) = listens else {
        entry["events_published_total"] = published.into();
        return entry;
    };
    if let Some(address) = listening.batches.address.get() {
        add_batches(&mut entry, address, listening);
        return entry;
    }
    let is_path = input.kind == "unix";
    entry[if is_path { "path" } else { "device" }] = device.as_str().into();
    entry["received_events_total"] = events.into();
    entry["received_bytes_total"] = listening.message_bytes.get().into();
    entry["published_events_total"] = published.into();
    if let Some(length) = listening.receive_queue_length() {
        entry["receive_queue_length"] = length.into();
    }
    if let Some(flows) = listening.flows.get() {
        add_flows(&mut entry, flows, refused);
    }
    if matches!(&*input.kind, "udp" | "netflow") {
        entry["system_packet_drops"] = lost_before.into();
        entry["udp_read_buffer_length_gauge"] = listening.read_buffer.get().into();
    }
    entry["arrival_period"] = histogram(&listening.arrival_period.summary());
    entry["processing_time"] = histogram(&listening.processing_time.summary());
    entry
}

/// The names of Filebeat's `azure-eventhub`.
fn add_hub(entry: &mut Json, counts: &HubCounts) {
    entry["received_messages_total"] = counts.messages.get().into();
    entry["received_bytes_total"] = counts.bytes.get().into();
    entry["invalid_json_messages_total"] = counts.invalid.get().into();
    entry["sanitized_messages_total"] = counts.sanitized.get().into();
    entry["processed_messages_total"] = counts.processed.get().into();
    entry["received_events_total"] = counts.events.get().into();
    entry["sent_events_total"] = counts.sent.get().into();
    entry["decode_errors_total"] = counts.decode_errors.get().into();
    entry["processor_restarts_total"] = counts.restarts.get().into();
    entry["processing_time"] = histogram(&counts.processing_time.summary());
}

/// The names of Filebeat's `gcp-pubsub`, and what only we count.
fn add_subscribed(entry: &mut Json, subscribed: &Subscribed) {
    entry["acked_message_total"] = subscribed.acknowledged.get().into();
    entry["failed_acked_message_total"] = subscribed.failed.get().into();
    entry["nacked_message_total"] = subscribed.returned.get().into();
    entry["bytes_processed_total"] = subscribed.bytes.get().into();
    entry["processing_time"] = histogram(&subscribed.processing_time.summary());
    let (held, oldest) = subscribed.held();
    entry["skidder"]["subscription"] = json!({
        "received_messages_total": subscribed.received.get(),
        "again_messages_total": subscribed.again.get(),
        "held_messages": held,
        "oldest_held": oldest.map(|time| time_text(Timestamp(time))),
    });
}

/// The names of Filebeat's `netflow`, and what only we count.
fn add_flows(entry: &mut Json, flows: &Flows, refused: u64) {
    entry["flows_total"] = flows.flows.get().into();
    entry["decode_errors_total"] = flows.errors.get().into();
    entry["open_connections"] = flows.sources.get().into();
    entry["discarded_events_total"] = refused.into();
    entry["skidder"]["netflow"] = json!({
        "packets_total": flows.packets.get(),
        "sets_without_template_total": flows.without_template.get(),
        "sets_decoded_later_total": flows.decoded_later.get(),
        "sets_given_up_total": flows.given_up.get(),
        "templates_refused_total": flows.templates_refused.get(),
        "templates_forgotten_total": flows.templates_forgotten.get(),
        "sequence_resets_total": flows.resets.get(),
        "sflow_formats_skipped_total": flows.skipped.get(),
        "sflow_datagrams_lost_total": flows.lost.get(),
    });
}

/// The names of Filebeat's `lumberjack`.
fn add_batches(entry: &mut Json, address: &str, listening: &Listening) {
    let batches = &listening.batches;
    entry["bind_address"] = address.into();
    entry["batches_received_total"] = batches.received.get().into();
    entry["batches_acked_total"] = batches.acknowledged.get().into();
    entry["messages_received_total"] = batches.messages.get().into();
    entry["batch_processing_time"] = histogram(&batches.processing_time.summary());
    if let Some(length) = listening.receive_queue_length() {
        entry["skidder"]["receive_queue_length"] = length.into();
    }
}

/// A sample as Filebeat shows it.
pub(crate) fn histogram(summary: &Summary) -> Json {
    let Summary { count, min, max, mean, stddev, median, p75, p95, p99, p999 } = *summary;
    json!({ "histogram": {
        "count": count, "min": min, "max": max, "mean": mean, "stddev": stddev, "median": median,
        "p75": p75, "p95": p95, "p99": p99, "p999": p999,
    }})
}

/// An input that reads files.
fn file_entry(input: &InputNumbers) -> Json {
    let ReadNumbers {
        opened,
        closed,
        open,
        gzip_opened,
        bytes,
        lines,
        truncated,
        raw_lines,
        lines_discarded,
        parse_errors,
        errors,
        gzip_errors,
        files_truncated,
        files_renamed,
        resume_skipped_bytes,
        files_matched,
        files_held,
        files_rotated_before,
        logs_unseen,
        files_lost,
        bytes_lost,
        pinned_files,
        pinned_bytes,
        pins_given_up,
        files_stalled,
        sources: _,
    } = input.read;
    json!({
        "id": input.id,
        "input": input.kind,
        "files_opened_total": opened,
        "files_closed_total": closed,
        "files_active": open,
        "messages_read_total": lines,
        "messages_truncated_total": truncated,
        "bytes_processed_total": bytes,
        "events_processed_total": input.events(),
        "processing_errors_total": errors,
        "gzip_files_opened_total": gzip_opened,
        "gzip_processing_errors_total": gzip_errors,
        "skidder": {
            "files_matched": files_matched,
            "files_held": files_held,
            "files_rotated_before_total": files_rotated_before,
            "logs_unseen_total": logs_unseen,
            "files_lost_total": files_lost,
            "bytes_lost_total": bytes_lost,
            "pinned_files": pinned_files,
            "pinned_bytes": pinned_bytes,
            "pins_given_up_total": pins_given_up,
            "files_stalled_total": files_stalled,
            "raw_lines_total": raw_lines,
            "lines_discarded_total": lines_discarded,
            "parse_errors_total": parse_errors,
            "files_renamed_total": files_renamed,
            "files_truncated_total": files_truncated,
            "resume_skipped_bytes_total": resume_skipped_bytes,
            "ledger": ledger_json(&input.ledger),
        },
    })
}

/// Adds what an input is doing and how far behind it is, if measured.
fn add_state(ours: &mut Json, input: &InputNumbers, snapshot: &Snapshot) {
    let Some(state) = input.state else { return };
    ours["state"] = state.name().into();
    if let Some(lag) = &input.lag {
        ours["lag"] = totals_json(lag);
        ours["lag"]["age_ms"] = millis(lag.age).into();
    }
    if let Some((output, span)) = &input.blocked {
        ours["blocked_on"] = output.as_str().into();
        ours["blocked_ms"] = millis(*span).into();
        ours["blocked_since"] = time_text(snapshot.time.earlier_by(*span)).into();
    }
}

/// Builds one document of dotted names.
pub(crate) fn nested(values: impl Iterator<Item = (&'static str, Value)>) -> Json {
    let mut root = Map::new();
    for (name, value) in values {
        insert(&mut root, name, value);
    }
    Json::Object(root)
}

/// Whether the value belongs into a line of non-zero metrics.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Count(number) => *number == 0,
        Value::Real(number) => *number == 0.0,
        Value::Text(text) => text.is_empty(),
    }
}

/// Name and value of a metric in `/stats`.
pub(crate) fn entry(metric: &Metric, snapshot: &Snapshot) -> Option<(&'static str, Value)> {
    Some((metric.stats?, metric.value(snapshot)?))
}

fn insert(map: &mut Map<String, Json>, name: &str, value: Value) {
    let Some((group, rest)) = name.split_once('.') else {
        map.insert(name.to_owned(), to_json(value));
        return;
    };
    let inner = map.entry(group).or_insert_with(|| Json::Object(Map::new()));
    // The table's test makes sure that no name is both a group and a number.
    if let Json::Object(inner) = inner {
        insert(inner, rest, value);
    }
}

fn to_json(value: Value) -> Json {
    match value {
        Value::Count(number) => Json::from(number),
        // Not a number cannot be said in JSON.
        Value::Real(number) => Number::from_f64(number).map_or(Json::Null, Json::Number),
        Value::Text(text) => Json::String(text),
    }
}

fn info_part(info: &mut Json, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        info[key] = Json::from(text);
    }
}

/// Go's name of the processor, which Filebeat shows here.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
