//! The messages that servers answer with, as far as they are needed.
//!
//! <https://github.com/open-telemetry/opentelemetry-proto>: `collector/logs/v1`. The status of a refusal is
//! `skidder_grpc::RpcStatus`.

use prost::Message;
use serde::Deserialize;

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
