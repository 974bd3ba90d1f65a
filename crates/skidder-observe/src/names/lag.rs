//! How far behind the files are, if measured.

use super::{Metric, Value, count, gauge};
use crate::lag::LagNumbers;
use crate::snapshot::Snapshot;
use crate::states::InputState;
use skidder_read::FileState;
use std::time::Duration;

fn lag(snapshot: &Snapshot, number: fn(&LagNumbers) -> u64) -> Option<Value> {
    snapshot.lag.as_ref().map(|lag| Value::Count(number(lag)))
}

fn span(snapshot: &Snapshot, span: fn(&LagNumbers) -> Option<Duration>) -> Option<Duration> {
    snapshot.lag.as_ref().and_then(span)
}

fn seconds(span: Option<Duration>) -> Option<Value> {
    span.map(|span| Value::Real(span.as_secs_f64()))
}

fn milliseconds(span: Option<Duration>) -> Option<Value> {
    span.map(|span| Value::Count(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
}

/// Inputs in this state, for all outputs together.
fn inputs(snapshot: &Snapshot, state: InputState) -> Option<Value> {
    snapshot.lag.as_ref()?;
    count(snapshot.inputs.iter().filter(|input| input.state == Some(state)).count() as u64)
}

/// `filebeat.filestream` has Filebeat's gauges. Of ingested files it counts plain ones that are open.
pub(super) const METRICS: &[Metric] = &[
    gauge(
        "skidder.lag.behind_bytes",
        "skidder_lag_behind_bytes",
        "Bytes of files, read or not, without a verdict; those of unfinished compressed files are not known.",
        |s| lag(s, |lag| lag.behind_bytes),
    ),
    gauge(
        "skidder.lag.behind_files",
        "skidder_lag_behind_files",
        "Files with bytes that have no verdict.",
        |s| lag(s, |lag| lag.behind_files),
    ),
    gauge(
        "skidder.lag.unknown_files",
        "skidder_lag_unknown_files",
        "Compressed files that are not finished: nobody knows how many bytes they have.",
        |s| lag(s, |lag| lag.unknown),
    ),
    gauge("skidder.lag.behind_ms", "", "", |s| milliseconds(span(s, |lag| Some(lag.behind_for)))),
    gauge(
        "",
        "skidder_lag_behind_seconds",
        "The oldest line without a verdict is at least so old.",
        |s| seconds(span(s, |lag| Some(lag.behind_for))),
    ),
    gauge(
        "skidder.lag.bytes_per_second",
        "skidder_lag_bytes_per_second",
        "Bytes of files that got their verdict, a second since the look before.",
        |s| s.lag.as_ref().map(|lag| Value::Real(lag.rate)),
    ),
    gauge("skidder.lag.catch_up_ms", "", "", |s| milliseconds(span(s, LagNumbers::catch_up))),
    gauge("", "skidder_lag_catch_up_seconds", "Time until nothing is behind, at this rate.", |s| {
        seconds(span(s, LagNumbers::catch_up))
    }),
    gauge("skidder.lag.deleted_in_ms", "", "", |s| milliseconds(span(s, |lag| lag.deleted_in))),
    gauge(
        "",
        "skidder_lag_deleted_in_seconds",
        "Time until rotation deletes the first file that has something without a verdict.",
        |s| seconds(span(s, |lag| lag.deleted_in)),
    ),
    gauge("skidder.lag.age_ms", "", "", |s| milliseconds(span(s, |lag| Some(lag.age)))),
    gauge("", "skidder_lag_age_seconds", "How long ago the files were looked at.", |s| {
        seconds(span(s, |lag| Some(lag.age)))
    }),
    gauge("skidder.inputs.reading", "", "", |s| inputs(s, InputState::Reading)),
    gauge("skidder.inputs.waiting", "", "", |s| inputs(s, InputState::Waiting)),
    gauge("skidder.inputs.idle", "", "", |s| inputs(s, InputState::Idle)),
    gauge("skidder.inputs.blocked", "", "", |s| inputs(s, InputState::Blocked)),
    gauge("skidder.inputs.ended", "", "", |s| inputs(s, InputState::Ended)),
    gauge("filebeat.filestream.files_empty", "", "", |s| lag(s, |lag| lag.empty)),
    gauge("filebeat.filestream.files_ignored", "", "", |s| {
        lag(s, |lag| lag.of_state(FileState::Ignored))
    }),
    gauge("filebeat.filestream.files_no_ingest_target", "", "", |s| lag(s, |lag| lag.unreadable)),
    gauge("filebeat.filestream.files_unique", "", "", |s| {
        lag(s, |lag| {
            let others =
                [FileState::Held, FileState::Ignored, FileState::Empty, FileState::Unreadable];
            let others: u64 = others.into_iter().map(|state| lag.of_state(state)).sum();
            lag.files - others - lag.of_state(FileState::Gone)
        })
    }),
    gauge("filebeat.filestream.files_ingested_percent_100", "", "", |s| {
        lag(s, |lag| lag.ingested[0])
    }),
    gauge("filebeat.filestream.files_ingested_percent_95_99", "", "", |s| {
        lag(s, |lag| lag.ingested[1])
    }),
    gauge("filebeat.filestream.files_ingested_percent_lt_95", "", "", |s| {
        lag(s, |lag| lag.ingested[2])
    }),
];
