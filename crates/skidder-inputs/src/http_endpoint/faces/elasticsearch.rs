//! What clients of Elasticsearch ask beside `_bulk`: the version, the licence, and whether templates are there.
//!
//! <https://www.elastic.co/docs/api/doc/elasticsearch/>

use super::{Answer, Call, answer};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

/// Clients refuse a server that is older than they are.
const VERSION: &str = "9.6.0";

/// Clients of Elastic refuse a server without it.
const PRODUCT: HeaderName = HeaderName::from_static("x-elastic-product");

/// Paths of what a client sets up before it sends: it is said to be there, so that the client goes on.
const SETUP: [&str; 6] =
    ["_index_template", "_template", "_component_template", "_ilm", "_ingest", "_data_stream"];

/// What a request wants; `None` if this is no path of Elasticsearch.
pub(super) fn call(method: &Method, path: &str) -> Option<Call> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let is_sent = *method == Method::POST || *method == Method::PUT;
    match *parts {
        ["_bulk"] if is_sent => Some(Call::Bulk(None)),
        [index, "_bulk"] if is_sent => Some(Call::Bulk(Some(index.to_owned()))),
        _ if *method == Method::HEAD => Some(Call::Elasticsearch(path.to_owned())),
        [] | ["_license" | "_xpack" | "_cluster" | "_nodes", ..] if *method == Method::GET => {
            Some(Call::Elasticsearch(path.to_owned()))
        }
        [first, ..] if SETUP.contains(&first) && (is_sent || *method == Method::GET) => {
            Some(Call::Elasticsearch(path.to_owned()))
        }
        _ => None,
    }
}

/// Whether a request wants to change something that is not kept here.
pub(super) fn is_setup(method: &Method) -> bool {
    *method == Method::POST || *method == Method::PUT
}

/// The answer to what brings no events.
pub(super) fn respond(method: &Method, path: &str) -> Answer {
    let license = json!({"status": "active", "uid": "00000000-0000-4000-8000-000000000000", "type": "basic", "mode": "basic"});
    let first = path.split('/').find(|part| !part.is_empty()).unwrap_or_default();
    let body = match first {
        "" => json!({
            "name": "skidder", "cluster_name": "skidder", "cluster_uuid": "skidder",
            "version": {
                "number": VERSION, "build_flavor": "default", "lucene_version": "10.0.0",
                "minimum_wire_compatibility_version": "8.19.0", "minimum_index_compatibility_version": "8.0.0",
            },
            "tagline": "You Know, for Search",
        }),
        "_license" => json!({ "license": license }),
        "_xpack" => {
            json!({"license": license, "features": {"ilm": {"available": true, "enabled": true}}})
        }
        "_cluster" => json!({"cluster_name": "skidder", "status": "green", "timed_out": false}),
        "_nodes" => json!({"cluster_name": "skidder", "nodes": {}}),
        _ if is_setup(method) => json!({"acknowledged": true}),
        _ => json!({}),
    };
    json_of(StatusCode::OK, &body)
}

/// The answer to a request that is refused as a whole.
pub(super) fn error(status: StatusCode, message: &str) -> Answer {
    let error = error_of(status, message);
    let body = json!({"error": {
        "root_cause": [error], "type": error["type"], "reason": error["reason"],
    }, "status": status.as_u16()});
    json_of(status, &body)
}

/// What is wrong with a request or a document.
pub(super) fn error_of(status: StatusCode, message: &str) -> Value {
    let kind = match status {
        StatusCode::UNAUTHORIZED => "security_exception",
        StatusCode::TOO_MANY_REQUESTS => "es_rejected_execution_exception",
        StatusCode::BAD_REQUEST => "illegal_argument_exception",
        _ => "status_exception",
    };
    json!({"type": kind, "reason": message})
}

/// What is wrong with a document that cannot be read.
pub(super) fn unparsed(message: &str) -> Value {
    json!({"type": "document_parsing_exception", "reason": message})
}

fn json_of(status: StatusCode, body: &Value) -> Answer {
    with_product(super::json_of(status, body))
}

pub(super) fn text(status: StatusCode, body: String) -> Answer {
    with_product(answer(status, "application/json", body))
}

fn with_product(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(PRODUCT, HeaderValue::from_static("Elasticsearch"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_elasticsearch() {
        let bulk = |index: Option<&str>| Some(Call::Bulk(index.map(str::to_owned)));
        let other = |path: &str| Some(Call::Elasticsearch(path.to_owned()));
        for (method, path, expected) in [
            (Method::POST, "/_bulk", bulk(None)),
            (Method::PUT, "/logs/_bulk", bulk(Some("logs"))),
            (Method::GET, "/_bulk", None),
            (Method::GET, "/", other("/")),
            (Method::HEAD, "/", other("/")),
            (Method::HEAD, "/an-alias", other("/an-alias")),
            (Method::GET, "/_license", other("/_license")),
            (Method::PUT, "/_index_template/a", other("/_index_template/a")),
            (Method::DELETE, "/_index_template/a", None),
            (Method::POST, "/", None),
            (Method::POST, "/logs/_doc", None),
            (Method::GET, "/logs/_search", None),
        ] {
            assert_eq!(call(&method, path), expected, "{method} {path}");
        }
    }
}
