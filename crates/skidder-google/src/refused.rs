//! Answers that are no success: what to do next, and the remedy
//! (<https://cloud.google.com/storage/docs/json_api/v1/status-codes>).

use http::HeaderMap;
use serde_json::Value;
use skidder_net::cloud::{Refusal, show_refusal};
use skidder_net::{excerpt, retry_after};
use std::fmt;
use std::time::Duration;

/// Bytes of an answer that a message shows.
const SHOWN_BYTES_MAX: usize = 300;

/// An answer that is no success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The HTTP status.
    pub status: u16,
    /// The name of the error, as `notFound` or `PERMISSION_DENIED`; empty, if the server did not send it.
    pub reason: String,
    /// The pause that the server wants before the next try.
    pub pause: Option<Duration>,
    message: String,
    /// The remedy; empty, if there is none.
    advice: String,
}

impl Refused {
    /// Reads an answer.
    pub fn read(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let json: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = json.get("error").unwrap_or(&Value::Null);
        let text = |value: Option<&Value>| {
            value.and_then(Value::as_str).unwrap_or_default().trim().to_owned()
        };
        let first = error.pointer("/errors/0/reason").or_else(|| error.get("status"));
        let message = match text(error.get("message")) {
            message if message.is_empty() => excerpt(body, SHOWN_BYTES_MAX),
            message => message,
        };
        let (reason, pause) = (text(first), retry_after(headers));
        Self { status, reason, pause, message, advice: String::new() }
    }

    /// Whether there is nothing of this name, or in this version.
    pub fn is_missing(&self) -> bool {
        self.status == 404
    }

    /// Whether there is another object than the one that the condition names.
    pub fn is_changed(&self) -> bool {
        self.status == 412
    }

    /// Whether the token is not accepted.
    pub fn is_about_credentials(&self) -> bool {
        self.status == 401
    }

    /// The same with a remedy, unless that is empty.
    #[must_use]
    pub fn advised(self, advice: String) -> Self {
        if advice.is_empty() { self } else { Self { advice, ..self } }
    }
}

impl Refusal for Refused {
    fn may_pass(&self) -> bool {
        matches!(self.status, 408 | 429) || self.status >= 500 || self.is_about_credentials()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_refusal(out, self.status, &self.reason, &self.message, &self.advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> Refused {
        Refused::read(status, &HeaderMap::new(), body.as_bytes())
    }

    #[test]
    fn errors_are_shown_in_each_form() {
        let table = [
            (
                404,
                r#"{"error": {"code": 404, "message": "No such bucket.", "errors": [{"reason": "notFound"}]}}"#,
                "the server answered 404 `notFound`: No such bucket.",
            ),
            (
                403,
                r#"{"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}}"#,
                "the server answered 403 `PERMISSION_DENIED`: no",
            ),
            (404, "No such object: a/b", "the server answered 404: No such object: a/b"),
            (502, "<html>Bad\n Gateway", "the server answered 502: <html>Bad Gateway"),
            (503, "", "the server answered 503"),
        ];
        for (status, body, expected) in table {
            assert_eq!(read(status, body).to_string(), expected);
        }
        let advised = read(503, "").advised("wait".to_owned());
        assert_eq!(advised.to_string(), "the server answered 503; wait");
        assert_eq!(read(503, "").advised(String::new()).to_string(), "the server answered 503");
    }

    #[test]
    fn what_may_pass_is_told_from_what_does_not() {
        for (status, expected) in
            [(408, true), (429, true), (500, true), (503, true), (400, false), (403, false)]
        {
            assert_eq!(read(status, "").may_pass(), expected, "{status}");
        }
        let (missing, changed) = (read(404, ""), read(412, ""));
        assert!(missing.is_missing() && !missing.is_changed());
        assert!(changed.is_changed() && !changed.is_missing());
    }
}
