//! Faces: what an input is to clients that know another server. A face is a decoder of its bodies, and its answers;
//! listener, login, limits and decompression are those of the input (docs/decisions/0036).
//!
//! The answer to a request that brings events waits for their verdicts, unless the protocol of the face has
//! acknowledgements of its own.

mod acks;
mod bulk;
mod deliver;
mod elasticsearch;
mod events;
mod grpc;
mod hec;
mod json_tree;
mod loki;
mod otlp;
mod otlp_json;
mod respond;
mod wire;

#[cfg(test)]
pub(super) use wire::testing;

use super::answer::Answer;
use super::body::BodyError;
use super::in_flight::Over;
use super::payload::Payload;
use super::routes::shown;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::http::request;
use hyper::{Method, Response, StatusCode};
use serde_json::json;
use skidder_config::Secret;
use std::time::Duration;

/// What an input is to its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// `_bulk` of Elasticsearch.
    Elasticsearch,
    /// Splunk's HTTP Event Collector.
    SplunkHec,
    /// Loki's push.
    Loki,
    /// Logs of OpenTelemetry.
    Otlp,
}

/// The names in the settings.
pub(super) const NAMES: [(&str, Face); 4] = [
    ("elasticsearch", Face::Elasticsearch),
    ("splunk_hec", Face::SplunkHec),
    ("loki", Face::Loki),
    ("otlp", Face::Otlp),
];

/// The settings of faces.
#[derive(Debug, Default)]
pub(super) struct FaceSettings {
    /// Empty: plain JSON.
    pub(super) faces: Vec<Face>,
    /// How long a request waits for room in the queue and for its verdicts.
    pub(super) completion_timeout: Duration,
    /// The token that requests of Splunk's clients need.
    pub(super) token: Option<Secret>,
    /// Splunk's clients ask later whether their events have their verdicts.
    pub(super) use_ack: bool,
}

/// What the faces of an input keep.
#[derive(Debug)]
pub(super) struct FaceState {
    acks: acks::Acks,
    hec: hec::Paths,
}

impl FaceState {
    /// Of an input that starts at this time, in nanoseconds since 1970.
    pub(super) fn new(start: i64) -> Self {
        Self { acks: acks::Acks::new(start), hec: hec::Paths::default() }
    }
}

/// What a request wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Documents, and the index of those that name none.
    Bulk(Option<String>),
    /// Something else that Elasticsearch knows: the path.
    Elasticsearch(String),
    /// Events of Splunk's clients.
    HecEvents,
    /// Lines of these.
    HecRaw,
    /// Which requests have their verdicts.
    HecAck,
    HecHealth,
    /// Whether in JSON.
    LokiPush(bool),
    LokiReady,
    /// Whether in JSON.
    Otlp(bool),
    OtlpGrpc,
}

impl Call {
    pub(super) fn face(&self) -> Face {
        match self {
            Self::Bulk(_) | Self::Elasticsearch(_) => Face::Elasticsearch,
            Self::HecEvents | Self::HecRaw | Self::HecAck | Self::HecHealth => Face::SplunkHec,
            Self::LokiPush(_) | Self::LokiReady => Face::Loki,
            Self::Otlp(_) | Self::OtlpGrpc => Face::Otlp,
        }
    }

    /// Whether it has a body to read.
    pub(super) fn has_body(&self) -> bool {
        !matches!(self, Self::Elasticsearch(_) | Self::HecHealth | Self::LokiReady)
    }

    /// The answer to a request that is refused as a whole.
    pub(super) fn refuse(&self, refusal: Refusal, message: &str, retry_after: u64) -> Answer {
        let status = match refusal {
            Refusal::Busy => StatusCode::TOO_MANY_REQUESTS,
            Refusal::Wrong(status) => status,
        };
        let mut refused = match self {
            Self::Bulk(_) | Self::Elasticsearch(_) => elasticsearch::error(status, message),
            Self::HecEvents | Self::HecRaw | Self::HecAck | Self::HecHealth => match refusal {
                Refusal::Busy => hec::Code::Busy.answer(),
                Refusal::Wrong(_) => json_of(
                    status,
                    &json!({"text": message, "code": hec::Code::InvalidFormat as u8}),
                ),
            },
            Self::LokiPush(_) | Self::LokiReady => {
                answer(status, "text/plain; charset=utf-8", format!("{message}\n"))
            }
            Self::Otlp(is_json) => otlp_error(status, message, *is_json),
            Self::OtlpGrpc => return grpc::refuse(refusal, message, retry_after),
        };
        if refusal == Refusal::Busy {
            refused.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after));
        }
        refused
    }
}

/// `google.rpc.Status`.
fn otlp_error(status: StatusCode, message: &str, is_json: bool) -> Answer {
    let code: u8 = match status {
        StatusCode::UNAUTHORIZED => 16,
        StatusCode::TOO_MANY_REQUESTS => 14,
        _ => 3,
    };
    if is_json {
        return json_of(status, &json!({"code": code, "message": message}));
    }
    let mut body = vec![1 << 3, code];
    wire::write_bytes(&mut body, 2, message.as_bytes());
    answer(status, PROTOBUF, body)
}

/// What records that are left out are said to be.
const LEFT_OUT: &str = "malformed records are left out";

/// The answer to records of OpenTelemetry that were taken, but for so many.
fn otlp_accepted(rejected: u64, is_json: bool) -> Answer {
    if is_json {
        let partial = json!({"partialSuccess": {"rejectedLogRecords": rejected.to_string(), "errorMessage": LEFT_OUT}});
        return json_of(StatusCode::OK, if rejected > 0 { &partial } else { &EMPTY });
    }
    answer(StatusCode::OK, PROTOBUF, accepted_message(rejected))
}

/// `ExportLogsServiceResponse`.
fn accepted_message(rejected: u64) -> Vec<u8> {
    let mut body = Vec::new();
    if rejected > 0 {
        let mut partial = vec![1 << 3];
        wire::write_varint(&mut partial, rejected);
        wire::write_bytes(&mut partial, 2, LEFT_OUT.as_bytes());
        wire::write_bytes(&mut body, 1, &partial);
    }
    body
}

const PROTOBUF: &str = "application/x-protobuf";

static EMPTY: std::sync::LazyLock<serde_json::Value> = std::sync::LazyLock::new(|| json!({}));

/// A request that no face knows.
#[derive(Debug)]
pub(super) struct Unknown {
    pub(super) answer: Answer,
    pub(super) why: String,
}

/// Finds what a request to a path below the input's own wants.
///
/// # Errors
/// No face knows it.
pub(super) fn call(
    faces: &[Face],
    head: &request::Parts,
    path: &str,
) -> Result<Call, Box<Unknown>> {
    let (method, headers) = (&head.method, &head.headers);
    let has = |face| faces.contains(&face);
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = kind == "application/json";
    if has(Face::Otlp) && (path == grpc::EXPORT || grpc::is_grpc(&kind)) {
        return grpc::call(head.version, method, path, &kind);
    }
    let (get, post) = (Method::GET, Method::POST);
    let of_collector = path.strip_prefix("/services/collector").filter(|_| has(Face::SplunkHec));
    let of_loki = path.strip_prefix("/loki/api/v1").filter(|_| has(Face::Loki));
    let (call, wanted) = match (of_collector, of_loki, path) {
        (Some("" | "/" | "/event" | "/event/1.0"), ..) => (Call::HecEvents, post),
        (Some("/raw" | "/raw/1.0"), ..) => (Call::HecRaw, post),
        (Some("/ack"), ..) => (Call::HecAck, post),
        (Some("/health" | "/health/1.0"), ..) => (Call::HecHealth, get),
        (_, Some("/push"), _) => (Call::LokiPush(is_json), post),
        (_, _, "/ready") if has(Face::Loki) => (Call::LokiReady, get),
        (_, _, "/v1/logs") if has(Face::Otlp) => {
            if *method == post && !is_json && kind != PROTOBUF {
                let wrong = Refusal::Wrong(StatusCode::UNSUPPORTED_MEDIA_TYPE);
                let message = format!("expected Content-Type {PROTOBUF} or application/json");
                let answer = Call::Otlp(true).refuse(wrong, &message, 0);
                return Err(Box::new(Unknown { answer, why: message }));
            }
            (Call::Otlp(is_json), post)
        }
        _ => {
            let known = has(Face::Elasticsearch).then(|| elasticsearch::call(method, path));
            return known.flatten().ok_or_else(|| {
                let error = format!("no handler found for [{path}] and method [{method}]");
                let answer = json_of(StatusCode::NOT_FOUND, &json!({ "error": error }));
                let why = format!("no face has {method} {:?}", shown(path));
                Box::new(Unknown { answer, why })
            });
        }
    };
    if *method == wanted {
        return Ok(call);
    }
    let wrong = Refusal::Wrong(StatusCode::METHOD_NOT_ALLOWED);
    let why = format!("only {wanted} requests are allowed");
    let answer = call.refuse(wrong, &why, 0);
    Err(Box::new(Unknown { answer, why: format!("{}: {why}", shown(path)) }))
}

/// Why a request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The client may send it again as it is.
    Busy,
    /// It is wrong.
    Wrong(StatusCode),
}

/// The refusal and its message.
pub(super) fn of_body(error: BodyError) -> (Refusal, String) {
    match error {
        // Filebeat's for a body that is no gzip; other servers say that the request is wrong, and clients give it up.
        BodyError::Refused(StatusCode::INTERNAL_SERVER_ERROR, message) => {
            (Refusal::Wrong(StatusCode::BAD_REQUEST), message)
        }
        // A client would give up what is refused with 408; only its connection was slow.
        BodyError::Refused(StatusCode::REQUEST_TIMEOUT, message) => (Refusal::Busy, message),
        BodyError::Refused(status, message) => (Refusal::Wrong(status), message),
        BodyError::Contradiction(message) => {
            (Refusal::Wrong(StatusCode::INTERNAL_SERVER_ERROR), message)
        }
        BodyError::Damaged(position, why) => {
            let message = format!("the body is damaged behind {position} bytes: {why}");
            (Refusal::Wrong(StatusCode::BAD_REQUEST), message)
        }
        // Sent again it would be too long again.
        BodyError::InFlight(Over { max, is_alone: true, .. }) => {
            let message = format!("the body is longer than max_in_flight_bytes, {max} bytes");
            (Refusal::Wrong(StatusCode::PAYLOAD_TOO_LARGE), message)
        }
        BodyError::InFlight(Over { max, all, .. }) => {
            (Refusal::Busy, format!("{all} bytes are in flight, max_in_flight_bytes is {max}"))
        }
    }
}

fn answer(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Payload::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn json_of(status: StatusCode, body: &serde_json::Value) -> Answer {
    answer(status, "application/json", body.to_string())
}

/// A parameter of a query, decoded.
pub(super) fn parameter(query: Option<&str>, wanted: &str) -> Option<String> {
    let parts = query?.split('&');
    let mut values = parts.filter_map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (name == wanted).then(|| super::paths::decoded(&value.replace('+', " ")))
    });
    values.next().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_does_not_come_is_to_be_sent_again() {
        let slow = || BodyError::Refused(StatusCode::REQUEST_TIMEOUT, "slow".to_owned());
        let answer_of = |call: Call| {
            let (refusal, message) = of_body(slow());
            assert_eq!((refusal, &*message), (Refusal::Busy, "slow"));
            let answer = call.refuse(refusal, &message, 3);
            assert_eq!(answer.headers()[RETRY_AFTER], "3", "{call:?}");
            answer.status().as_u16()
        };
        for call in [Call::Bulk(None), Call::LokiPush(false), Call::Otlp(true)] {
            assert_eq!(answer_of(call), 429);
        }
        assert_eq!(answer_of(Call::HecEvents), 503, "as Splunk");
        let (refusal, _) = of_body(slow());
        let grpc = Call::OtlpGrpc.refuse(refusal, "slow", 3);
        assert_eq!(grpc.headers()["grpc-status"], "14");
    }
}
