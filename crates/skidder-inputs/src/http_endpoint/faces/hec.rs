//! Splunk's HTTP Event Collector: objects with an event and what is known of it, or raw lines.
//!
//! <https://help.splunk.com/en/splunk-enterprise/get-data-in/format-events-for-http-event-collector>. An event that is a
//! text is the message, an object goes where the setting `prefix` says.

use super::super::decode::Decoder;
use super::super::syntax::{members, skip_space, value_end};
use super::events::Events;
use super::{Answer, json_of, parameter};
use hyper::header::AUTHORIZATION;
use hyper::{HeaderMap, StatusCode};
use serde_json::json;
use skidder_config::Secret;
use skidder_event::{EventMut, Path, Text};
use skidder_parse::json_fields::{Dates, JsonFields};
use skidder_parse::ndjson::NdjsonError;
use subtle::ConstantTimeEq as _;

/// Codes of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Success = 0,
    TokenRequired = 2,
    InvalidAuthorization = 3,
    InvalidToken = 4,
    NoData = 5,
    InvalidFormat = 6,
    Busy = 9,
    ChannelMissing = 10,
    EventRequired = 12,
    EventBlank = 13,
    AckDisabled = 14,
    Healthy = 17,
    /// Splunk's is `InvalidFormat`; this one says where to look.
    InvalidTime = 255,
}

impl Code {
    fn of(self) -> (StatusCode, &'static str) {
        match self {
            Self::Success => (StatusCode::OK, "Success"),
            Self::TokenRequired => (StatusCode::UNAUTHORIZED, "Token is required"),
            Self::InvalidAuthorization => (StatusCode::UNAUTHORIZED, "Invalid authorization"),
            Self::InvalidToken => (StatusCode::FORBIDDEN, "Invalid token"),
            Self::NoData => (StatusCode::BAD_REQUEST, "No data"),
            Self::InvalidFormat => (StatusCode::BAD_REQUEST, "Invalid data format"),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "Server is busy"),
            Self::ChannelMissing => (StatusCode::BAD_REQUEST, "Data channel is missing"),
            Self::EventRequired => (StatusCode::BAD_REQUEST, "Event field is required"),
            Self::EventBlank => (StatusCode::BAD_REQUEST, "Event field cannot be blank"),
            Self::AckDisabled => (StatusCode::BAD_REQUEST, "ACK is disabled"),
            Self::Healthy => (StatusCode::OK, "HEC is healthy"),
            Self::InvalidTime => (
                StatusCode::BAD_REQUEST,
                "Invalid data format: `time` is no time since 1970 in seconds",
            ),
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::InvalidTime => Self::InvalidFormat as u8,
            code => code as u8,
        }
    }

    pub(super) fn text(self) -> &'static str {
        self.of().1
    }

    pub(super) fn answer(self) -> Answer {
        let (status, text) = self.of();
        json_of(status, &json!({"text": text, "code": self.number()}))
    }

    /// With the number of the event that is wrong.
    pub(super) fn answer_for(self, event: usize) -> Answer {
        let (status, text) = self.of();
        let body = json!({"text": text, "code": self.number(), "invalid-event-number": event});
        json_of(status, &body)
    }
}

/// The answer to a request that was taken, with its number.
pub(super) fn accepted(ack: u64) -> Answer {
    json_of(StatusCode::OK, &json!({"text": "Success", "code": 0, "ackId": ack}))
}

/// Checks the token: `Authorization: Splunk TOKEN`, or as the password of any user.
pub(super) fn check(headers: &HeaderMap, token: &Secret) -> Result<(), Code> {
    let Some(sent) = headers.get(AUTHORIZATION) else { return Err(Code::TokenRequired) };
    if skidder_net::is_authorized(headers, Some(token), None) {
        return Ok(());
    }
    let (scheme, rest) = sent.as_bytes().split_at(sent.len().min(b"Splunk ".len()));
    if !scheme.eq_ignore_ascii_case(b"Splunk ") {
        let is_basic = scheme.to_ascii_lowercase().starts_with(b"basic ");
        return Err(if is_basic { Code::InvalidToken } else { Code::InvalidAuthorization });
    }
    let is_right = bool::from(rest.trim_ascii().ct_eq(token.reveal().as_bytes()));
    if is_right { Ok(()) } else { Err(Code::InvalidToken) }
}

/// The channel of a request.
pub(super) fn channel(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    let header = headers.get("x-splunk-request-channel").and_then(|value| value.to_str().ok());
    let header = header.filter(|channel| !channel.is_empty()).map(str::to_owned);
    header.or_else(|| parameter(query, "channel"))
}

/// The numbers that a client asks for.
pub(super) fn asked(body: &[u8]) -> Option<Vec<u64>> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    body.get("acks")?.as_array()?.iter().map(serde_json::Value::as_u64).collect()
}

/// What is known of an event.
#[derive(Clone, Debug, Default)]
struct Meta {
    time: Option<i64>,
    host: Option<String>,
    source: Option<String>,
    sourcetype: Option<String>,
    index: Option<String>,
}

impl Meta {
    /// What the query says of all events of a request.
    fn of_query(query: Option<&str>) -> Self {
        Self {
            time: parameter(query, "time").and_then(|text| time(&text)),
            host: parameter(query, "host"),
            source: parameter(query, "source"),
            sourcetype: parameter(query, "sourcetype"),
            index: parameter(query, "index"),
        }
    }

    fn put(&self, event: &mut EventMut<'_>, paths: &Paths) {
        let texts = [
            (&paths.source, &self.source),
            (&paths.sourcetype, &self.sourcetype),
            (&paths.index, &self.index),
        ];
        for (path, text) in texts {
            if let Some(text) = text
                && let Err(error) = event.put_text(path, text.as_bytes())
            {
                tracing::debug!(%error, "a field of HEC has no place in its event");
            }
        }
        if let Some(host) = &self.host
            && event.put_text(&paths.host, host.as_bytes()).is_err()
        {
            // The event has a `host` of its own that is no object.
            let put = event.put_text(&paths.other_host, host.as_bytes());
            debug_assert!(put.is_ok() || event.as_ref().has(&paths.splunk), "`splunk` is free");
        }
    }
}

/// Fields of events.
#[derive(Debug)]
pub(in super::super) struct Paths {
    host: Path,
    other_host: Path,
    splunk: Path,
    source: Path,
    sourcetype: Path,
    index: Path,
    labels: Path,
}

impl Default for Paths {
    fn default() -> Self {
        let path = |name| Path::parse(name).expect("it is a path");
        Self {
            host: path("host.name"),
            other_host: path("splunk.host"),
            splunk: path("splunk"),
            source: path("splunk.source"),
            sourcetype: path("splunk.sourcetype"),
            index: path("splunk.index"),
            labels: path("labels"),
        }
    }
}

/// What raw lines and objects need.
pub(super) struct Reading<'a> {
    pub(super) decoder: &'a Decoder,
    pub(super) paths: &'a Paths,
    pub(super) json: &'a mut JsonFields,
    pub(super) query: Option<&'a str>,
    /// When the request came.
    pub(super) now: i64,
}

impl Reading<'_> {
    /// Each line is an event.
    pub(super) fn raw(&mut self, body: &[u8], events: &mut Events<'_>) -> Result<(), Code> {
        let meta = Meta::of_query(self.query);
        let mut is_empty = true;
        for line in body.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.trim_ascii().is_empty() {
                is_empty = false;
                let time = meta.time.unwrap_or(self.now);
                events.add(line, time, |event, _| meta.put(event, self.paths));
            }
        }
        if is_empty { Err(Code::NoData) } else { Ok(()) }
    }

    /// Objects, one behind the other.
    ///
    /// # Errors
    /// What is wrong with which event: nothing of the body is used.
    pub(super) fn objects(
        &mut self,
        body: &[u8],
        events: &mut Events<'_>,
    ) -> Result<(), (Code, usize)> {
        let defaults = Meta::of_query(self.query);
        let (mut at, mut number) = (skip_space(body, 0), 0);
        if at == body.len() {
            return Err((Code::NoData, 0));
        }
        while at < body.len() {
            let wrong = |code| (code, number);
            let end = value_end(body, at).map_err(|_| wrong(Code::InvalidFormat))?;
            if body[at] != b'{' {
                return Err(wrong(Code::InvalidFormat));
            }
            self.object(&body[at..end], defaults.clone(), events).map_err(wrong)?;
            at = skip_space(body, end);
            number += 1;
        }
        Ok(())
    }

    fn object(
        &mut self,
        object: &[u8],
        mut meta: Meta,
        events: &mut Events<'_>,
    ) -> Result<(), Code> {
        let (mut found, mut fields) = (None, None);
        for (name, span) in members(object, 0).map_err(|_| Code::InvalidFormat)? {
            let value = &object[span];
            let text = || text_of(value).map_err(|()| Code::InvalidFormat);
            match &*name {
                "event" => found = Some(value),
                "fields" => fields = Some(value).filter(|value| *value != b"null"),
                "time" => {
                    if let Some(text) = text().map_err(|_| Code::InvalidTime)? {
                        meta.time = Some(time(&text).ok_or(Code::InvalidTime)?);
                    }
                }
                "host" => meta.host = text()?.or(meta.host),
                "source" => meta.source = text()?.or(meta.source),
                "sourcetype" => meta.sourcetype = text()?.or(meta.sourcetype),
                "index" => meta.index = text()?.or(meta.index),
                _ => {}
            }
        }
        let value = found.filter(|value| *value != b"null").ok_or(Code::EventRequired)?;
        let is_object = value[0] == b'{';
        let message = match value[0] {
            b'"' => text_of(value).map_err(|()| Code::InvalidFormat)?.unwrap_or_default(),
            _ => String::from_utf8_lossy(value).into_owned(),
        };
        if message.is_empty() {
            return Err(Code::EventBlank);
        }
        let time = meta.time.unwrap_or(self.now);
        let target = self.decoder.target.as_ref();
        let left_out = events.add(message.as_bytes(), time, |event, text| {
            let mut left_out = None;
            if is_object {
                event.clear_message();
                left_out = self.decode(event, text, target)?;
            }
            meta.put(event, self.paths);
            if let Some(fields) = fields {
                let text = event.store_text(fields);
                self.decode(event, text, Some(&self.paths.labels))?;
            }
            Ok(left_out)
        })?;
        if let Some(left_out) = left_out {
            events.leave_out(&left_out);
        }
        Ok(())
    }

    fn decode(
        &mut self,
        event: &mut EventMut<'_>,
        text: Text,
        target: Option<&Path>,
    ) -> Result<Option<NdjsonError>, Code> {
        let decoded = self.json.decode_document(event, text, target, Dates::Rfc3339);
        decoded.map_err(|_| Code::InvalidFormat)
    }
}

/// A text or number as text; `None` for `null`.
fn text_of(value: &[u8]) -> Result<Option<String>, ()> {
    match serde_json::from_slice(value).map_err(|_| ())? {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::String(text) => Ok(Some(text)),
        serde_json::Value::Number(_) => Ok(Some(String::from_utf8_lossy(value).into_owned())),
        _ => Err(()),
    }
}

/// A time in seconds since 1970 with a fraction, in nanoseconds. As Splunk does, a number that would be
/// behind the year 2262 is taken as milliseconds, or else as microseconds or nanoseconds.
fn time(text: &str) -> Option<i64> {
    const SECOND: i64 = 1_000_000_000;
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let billionths: i64 = digits.parse().ok()?;
    [SECOND, 1_000_000, 1_000, 1].into_iter().find_map(|unit| {
        let fraction = billionths * unit / SECOND;
        whole.checked_mul(unit)?.checked_add(fraction)
    })
}

/// The answer to the question which requests have their verdicts.
pub(super) fn acks(found: &[(u64, bool)]) -> Answer {
    let acks: serde_json::Map<_, _> =
        found.iter().map(|(id, acked)| (id.to_string(), (*acked).into())).collect();
    json_of(StatusCode::OK, &json!({ "acks": acks }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_with_a_fraction() {
        for (text, expected) in [
            ("1426279439", Some(1_426_279_439_000_000_000)),
            ("1426279439.123", Some(1_426_279_439_123_000_000)),
            (" 1.0000000019 ", Some(1_000_000_001)),
            ("9223372036", Some(9_223_372_036_000_000_000)),
            // Milliseconds, microseconds and nanoseconds.
            ("9223372037", Some(9_223_372_037_000_000)),
            ("1767225600123", Some(1_767_225_600_123_000_000)),
            ("1767225600123.25", Some(1_767_225_600_123_250_000)),
            ("1767225600123456", Some(1_767_225_600_123_456_000)),
            ("1767225600123456789.9", Some(1_767_225_600_123_456_789)),
            ("-1", Some(-1_000_000_000)),
            ("", None),
            ("now", None),
            ("1.x", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(time(text), expected, "{text}");
        }
    }

    #[test]
    fn a_wrong_time_has_the_code_of_splunk_and_a_text_of_its_own() {
        let (status, text) = Code::InvalidTime.of();
        let format = Code::InvalidFormat;
        assert_eq!((status, Code::InvalidTime.number()), (format.of().0, format.number()));
        assert!(text.starts_with(format.text()) && text.contains("`time`"), "{text}");
        assert_eq!((format.number(), Code::Healthy.number()), (6, 17));
    }

    #[test]
    fn tokens_are_those_of_splunk() {
        let token = Secret::new("the-token");
        let check_of = |value: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(AUTHORIZATION, value.parse().unwrap());
            }
            check(&headers, &token)
        };
        assert_eq!(check_of(Some("Splunk the-token")), Ok(()));
        assert_eq!(check_of(Some("splunk the-token")), Ok(()));
        assert_eq!(check_of(Some("Basic eDp0aGUtdG9rZW4=")), Ok(()));
        assert_eq!(check_of(None), Err(Code::TokenRequired));
        assert_eq!(check_of(Some("Digest x")), Err(Code::InvalidAuthorization));
        assert_eq!(check_of(Some("S")), Err(Code::InvalidAuthorization));
        assert_eq!(check_of(Some("Splunk other")), Err(Code::InvalidToken));
        assert_eq!(check_of(Some("Basic eDp5")), Err(Code::InvalidToken));
    }
}
