//! The messages that servers answer with, as far as they are needed.
//!
//! <https://github.com/open-telemetry/opentelemetry-proto>: `collector/logs/v1`;
//! <https://github.com/googleapis/googleapis>: `google/rpc/status.proto`, `google/rpc/error_details.proto`.

use prost::Message;
use serde::Deserialize;
use std::time::Duration;

/// `ExportLogsServiceResponse`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) partial_success: Option<PartialSuccess>,
}

/// `ExportLogsPartialSuccess`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(crate) rejected_log_records: i64,
    #[prost(string, tag = "2")]
    pub(crate) error_message: String,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Detail {
    #[prost(string, tag = "1")]
    pub(crate) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    pub(crate) retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Delay {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

impl Status {
    /// The pause that the server requests, if the request can be sent again.
    pub(crate) fn retry_delay(&self) -> Option<Duration> {
        let is_retry = |detail: &&Detail| detail.type_url.ends_with("/google.rpc.RetryInfo");
        let detail = self.details.iter().find(is_retry)?;
        let info = RetryInfo::decode(&*detail.value).ok()?;
        let delay = info.retry_delay.unwrap_or_default();
        let seconds = Duration::from_secs(u64::try_from(delay.seconds).unwrap_or(0));
        Some(seconds + Duration::from_nanos(u64::try_from(delay.nanos).unwrap_or(0)))
    }
}

/// `ExportLogsServiceResponse` in JSON, which some servers answer to any encoding. With anything else in it, it
/// is the JSON of a server that does not know the request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JsonResponse {
    #[serde(rename = "partialSuccess", alias = "partial_success")]
    partial_success: Option<JsonPartialSuccess>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonPartialSuccess {
    /// A number of 64 bits is a text in this JSON; not all that write it know that.
    #[serde(alias = "rejected_log_records")]
    rejected_log_records: Option<serde_json::Value>,
    #[serde(default, alias = "error_message")]
    error_message: String,
}

impl JsonResponse {
    /// The same as it would be in Protocol Buffers; nothing if a number is none.
    pub(crate) fn message(self) -> Option<ExportResponse> {
        let Some(partial) = self.partial_success else { return Some(ExportResponse::default()) };
        let rejected_log_records = match partial.rejected_log_records {
            None => 0,
            Some(serde_json::Value::String(text)) => text.parse().ok()?,
            Some(number) => number.as_i64()?,
        };
        let error_message = partial.error_message;
        let partial_success = Some(PartialSuccess { rejected_log_records, error_message });
        Some(ExportResponse { partial_success })
    }
}
