//! Faces: what an input is to clients that know another server. A face is a decoder of its bodies, and its answers;
//! listener, login, limits and decompression are those of the input (docs/decisions/0036).
//!
//! The answer to a request that brings events waits for their verdicts, unless the protocol of the face has
//! acknowledgements of its own.

mod bulk;
mod deliver;
mod elasticsearch;
mod respond;

use super::answer::Answer;
use super::body::BodyError;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Response, StatusCode};
use serde_json::json;
use std::time::Duration;

/// What an input is to its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// `_bulk` of Elasticsearch.
    Elasticsearch,
}

/// The names in the settings.
pub(super) const NAMES: [(&str, Face); 1] = [("elasticsearch", Face::Elasticsearch)];

/// The settings of faces.
#[derive(Debug, Default)]
pub(super) struct FaceSettings {
    /// Empty: plain JSON.
    pub(super) faces: Vec<Face>,
    /// How long a request waits for room in the queue and for its verdicts.
    pub(super) completion_timeout: Duration,
}

/// What a request wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Documents, and the index of those that name none.
    Bulk(Option<String>),
    /// Something else that Elasticsearch knows: the path.
    Elasticsearch(String),
}

impl Call {
    pub(super) fn face(&self) -> Face {
        match self {
            Self::Bulk(_) | Self::Elasticsearch(_) => Face::Elasticsearch,
        }
    }

    /// Whether it has a body to read.
    pub(super) fn has_body(&self) -> bool {
        matches!(self, Self::Bulk(_))
    }
}

/// Finds what a request to a path below the input's own wants.
///
/// # Errors
/// The answer to a request that no face knows.
pub(super) fn call(faces: &[Face], method: &Method, path: &str) -> Result<Call, Box<Answer>> {
    let has = |face| faces.contains(&face);
    if has(Face::Elasticsearch)
        && let Some(call) = elasticsearch::call(method, path)
    {
        return Ok(call);
    }
    let body = json!({"error": format!("no handler found for [{path}] and method [{method}]")});
    Err(Box::new(json_of(StatusCode::NOT_FOUND, &body)))
}

/// Why a request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The client may send it again as it is.
    Busy,
    /// It is wrong.
    Wrong(StatusCode),
}

impl Face {
    /// The answer to a request that is refused as a whole.
    pub(super) fn refuse(self, refusal: Refusal, message: &str, retry_after: u64) -> Answer {
        let status = match refusal {
            Refusal::Busy => StatusCode::TOO_MANY_REQUESTS,
            Refusal::Wrong(status) => status,
        };
        let mut answer = match self {
            Self::Elasticsearch => elasticsearch::error(status, message),
        };
        if refusal == Refusal::Busy {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after));
        }
        answer
    }
}

/// The refusal and its message.
pub(super) fn of_body(error: BodyError) -> (Refusal, String) {
    match error {
        BodyError::Refused(status, message) => (Refusal::Wrong(status), message),
        BodyError::InFlight(max, bytes) => {
            (Refusal::Busy, format!("{bytes} bytes are in flight, max_in_flight_bytes is {max}"))
        }
    }
}

fn answer(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
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
