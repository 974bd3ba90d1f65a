//! The verdict in an answer to a request.
//!
//! <https://opentelemetry.io/docs/specs/otlp/>, "Failures". If the protocol forbids to send a request again,
//! its events go to the dead letters; but what a user has to fix (credentials, a wrong port) is tried until
//! that is done, as with every output.

use super::body::unframe;
use super::messages::{ExportResponse, JsonResponse, PartialSuccess};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use prost::Message as _;
use skidder_grpc::{RpcStatus, code_name, decode_percent};
use skidder_net::{Http2Answer, excerpt, retry_after};
use std::time::Duration;

/// Bytes of an answer that a message shows.
const SHOWN_BYTES_MAX: usize = 512;
/// Longest pause that a server can request.
const WAIT_MAX: Duration = Duration::from_mins(10);

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is there.
    Taken {
        /// The server's remark.
        remark: String,
    },
    /// So many were refused, and it is unknown which.
    Partly { refused: u64, why: String },
    /// Fewer at once, or for a single event: never. If it is not `sure` that the size is the trouble, a single event
    /// is tried again.
    TooLarge { status: u16, why: String, sure: bool },
    /// None of them can ever be taken.
    Refused { status: u16, kind: String, why: String },
    /// Again, not before `wait` if the server sets one.
    Later { why: String, wait: Option<Duration>, too_many: bool },
    /// The answer is none of the protocol: again.
    Unreadable { why: String },
}

impl Verdict {
    fn later(why: String) -> Self {
        Self::Later { why, wait: None, too_many: false }
    }
}

/// The verdict of an answer over HTTP.
pub(crate) fn of_http(answer: &Http2Answer) -> Verdict {
    let Http2Answer { status, headers, body, .. } = answer;
    let is_kind = |kind| {
        let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.trim_start().starts_with(kind))
    };
    if (200..300).contains(status) {
        let response = if body.is_empty() {
            // As many servers answer, also without a type; but those pages are no servers of OTLP.
            (!is_kind("text/html")).then(ExportResponse::default)
        } else if is_kind("application/json") {
            serde_json::from_slice(body).ok().and_then(JsonResponse::message)
        } else if headers.contains_key(CONTENT_TYPE) && !is_kind("application/x-protobuf") {
            None
        } else {
            ExportResponse::decode(&**body).ok()
        };
        return match response {
            Some(response) => taken(response.partial_success),
            None => unreadable(*status, body),
        };
    }
    let said = match RpcStatus::decode(&**body) {
        Ok(said) if is_kind("application/x-protobuf") => shown(said.message.as_bytes()),
        _ => shown(body),
    };
    let name = StatusCode::from_u16(*status).ok().and_then(|status| status.canonical_reason());
    let kind = format!("{status} {}", name.unwrap_or_default()).trim_end().to_owned();
    let text = |hint: &str| join(&format!("the server answered {kind}"), &said, hint);
    match status {
        413 => Verdict::TooLarge { status: *status, why: text(""), sure: true },
        // The Collector's wording (0.155, `http: request body too large`).
        400 if is_about_size(&said) => {
            Verdict::TooLarge { status: *status, why: text(""), sure: true }
        }
        429 | 502 | 503 | 504 => {
            let wait = retry_after(headers).map(|wait| wait.min(WAIT_MAX));
            Verdict::Later { why: text(""), wait, too_many: *status == 429 }
        }
        401 | 403 | 407 => Verdict::later(text("see `headers` and `ssl.certificate`")),
        404 | 405 => Verdict::later(text("is this the port of a receiver of OTLP over HTTP?")),
        415 => Verdict::later(text("see `compression`")),
        ..=199 | 300..=399 | 408 => Verdict::later(text("")),
        _ => Verdict::Refused { status: *status, kind, why: said },
    }
}

/// The verdict of an answer over gRPC.
pub(crate) fn of_grpc(answer: &Http2Answer) -> Verdict {
    // Without a body the trailers are the headers.
    let field = |name| {
        let value = answer.trailers.get(name).or_else(|| answer.headers.get(name));
        value.and_then(|value| value.to_str().ok())
    };
    let code = field("grpc-status").and_then(|text| text.parse::<u16>().ok());
    let Some(code) = code else { return no_grpc(answer) };
    if code == 0 {
        let encoding = answer.headers.get("grpc-encoding").and_then(|value| value.to_str().ok());
        let message = unframe(&answer.body, encoding);
        let response = message.map(|message| ExportResponse::decode(&*message));
        return match response {
            Some(Ok(response)) => taken(response.partial_success),
            _ => unreadable(answer.status, &answer.body),
        };
    }
    let said = shown(&decode_percent(field("grpc-message").unwrap_or_default()));
    let kind = code_name(code);
    let details = field("grpc-status-details-bin").and_then(RpcStatus::from_header);
    let wait = details.and_then(|details| details.retry_delay());
    let text = |hint: &str| join(&format!("the server answered {kind}"), &said, hint);
    match (code, wait) {
        // Not all servers call it RESOURCE_EXHAUSTED.
        (8 | 11, None) if is_about_size(&said) => {
            Verdict::TooLarge { status: code, why: text(""), sure: true }
        }
        (8, None) => Verdict::TooLarge { status: code, why: text(""), sure: false },
        (1 | 4 | 8 | 10 | 11 | 14 | 15, wait) => {
            let wait = wait.map(|wait| wait.min(WAIT_MAX));
            Verdict::Later { why: text(""), wait, too_many: code == 8 }
        }
        (7 | 16, _) => Verdict::later(text("see `headers` and `ssl.certificate`")),
        (5 | 12, _) => Verdict::later(text(
            "is this the port of a receiver of OTLP over gRPC that takes logs, and does it know the `compression`?",
        )),
        _ => Verdict::Refused { status: code, kind, why: said },
    }
}

/// An answer of a server without gRPC, or of a proxy.
fn no_grpc(answer: &Http2Answer) -> Verdict {
    let why = format!("the server answered {} without a status of gRPC", answer.status);
    let why = join(&why, &shown(&answer.body), "is this a port for gRPC?");
    match answer.status {
        413 => Verdict::TooLarge { status: 413, why, sure: true },
        200 => Verdict::Unreadable { why },
        status => Verdict::Later { why, wait: None, too_many: status == 429 },
    }
}

fn taken(partial: Option<PartialSuccess>) -> Verdict {
    let partial = partial.unwrap_or_default();
    let why = shown(partial.error_message.as_bytes());
    match u64::try_from(partial.rejected_log_records) {
        Ok(refused @ 1..) => Verdict::Partly { refused, why },
        Ok(0) => Verdict::Taken { remark: why },
        Err(_) => Verdict::Unreadable {
            why: format!("the server says that it refused {} events", partial.rejected_log_records),
        },
    }
}

fn unreadable(status: u16, body: &[u8]) -> Verdict {
    let why = format!("the server answered {status}, but with no answer of OTLP");
    Verdict::Unreadable { why: join(&why, &shown(body), "") }
}

/// Servers' errors for a message that is too large: Go's, C's (and its descendants'), Java's, .NET's, tonic.
fn is_about_size(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    ["larger than max", "exceeds max", "exceeds the max", "too large"]
        .iter()
        .any(|words| said.contains(words))
}

fn shown(text: &[u8]) -> String {
    excerpt(text, SHOWN_BYTES_MAX)
}

fn join(what: &str, said: &str, hint: &str) -> String {
    let mut text = what.to_owned();
    for (between, more) in [(": ", said), ("; ", hint)] {
        if !more.is_empty() {
            text.push_str(between);
            text.push_str(more);
        }
    }
    text
}

#[cfg(test)]
mod tests;
