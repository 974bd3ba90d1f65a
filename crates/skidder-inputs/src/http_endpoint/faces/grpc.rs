//! Logs of OpenTelemetry over gRPC: the frame around a message, and the status of an answer.
//!
//! <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>,
//! <https://opentelemetry.io/docs/specs/otlp/#otlpgrpc>. The message is that of OTLP over HTTP.

use super::super::answer::Answer;
use super::super::body::{BodyError, Coding};
use super::super::payload::Payload;
use super::super::routes::shown;
use super::{Call, Refusal, Unknown, accepted_message, answer, wire};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode, Version};

/// The path of the only method that is there.
pub(super) const EXPORT: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// The type of requests and answers.
const GRPC: &str = "application/grpc";

/// Bytes before a message: whether it is compressed, and its length.
const FRAME_BYTES: usize = 5;

/// Codings of messages, for a client that has another one.
const CODINGS: &str = "identity,gzip,zstd";

/// Bytes of a message about an error; headers of clients have limits.
const ERROR_BYTES_MAX: usize = 1024;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Codes of gRPC, <https://github.com/grpc/grpc/blob/master/doc/statuscodes.md>. Clients of OTLP send again what is
/// unavailable, and drop what has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Ok = 0,
    InvalidArgument = 3,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl Code {
    fn of(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Busy => Self::Unavailable,
            Refusal::Wrong(StatusCode::UNAUTHORIZED) => Self::Unauthenticated,
            Refusal::Wrong(StatusCode::PAYLOAD_TOO_LARGE) => Self::ResourceExhausted,
            Refusal::Wrong(StatusCode::UNSUPPORTED_MEDIA_TYPE) => Self::Unimplemented,
            Refusal::Wrong(StatusCode::INTERNAL_SERVER_ERROR) => Self::Internal,
            Refusal::Wrong(_) => Self::InvalidArgument,
        }
    }
}

/// Whether a type, in lower case, is one of gRPC.
pub(super) fn is_grpc(kind: &str) -> bool {
    kind.strip_prefix(GRPC).is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
}

/// Checks the form of a request.
///
/// # Errors
/// The answer to one that is none of gRPC, or to a method that is not there.
pub(super) fn call(
    version: Version,
    method: &Method,
    path: &str,
    kind: &str,
) -> Result<Call, Box<Unknown>> {
    let text = |status, message: &str| {
        let answer = answer(status, "text/plain; charset=utf-8", format!("{message}\n"));
        Err(Box::new(Unknown { answer, why: message.to_owned() }))
    };
    if version != Version::HTTP_2 {
        return text(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "gRPC needs HTTP/2");
    }
    if *method != Method::POST {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only POST requests are allowed");
    }
    if !matches!(kind.strip_prefix(GRPC), Some("" | "+proto")) {
        let message = format!("expected Content-Type {GRPC}");
        return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, &message);
    }
    if path != EXPORT {
        let message = format!("{path} is not there: only logs are taken, at {EXPORT}");
        let answer = error(Code::Unimplemented, &message, None);
        let why =
            format!("grpc-status {}: {:?} is not there", Code::Unimplemented as u8, shown(path));
        return Err(Box::new(Unknown { answer, why }));
    }
    Ok(Call::OtlpGrpc)
}

/// The only message of a request, and how it is packed.
///
/// # Errors
/// It is incomplete, there is another one, or its packing is not known.
pub(super) fn unframe<'a>(
    headers: &HeaderMap,
    body: &'a [u8],
) -> Result<(Coding, &'a [u8]), BodyError> {
    let wrong = |message: &str| {
        Err(BodyError::Refused(
            StatusCode::BAD_REQUEST,
            format!("malformed frame of gRPC: {message}"),
        ))
    };
    let Some((head, message)) = body.split_at_checked(FRAME_BYTES) else {
        return wrong("its head is incomplete");
    };
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if message.len() < length {
        return wrong("it is incomplete");
    }
    if message.len() > length {
        return wrong("there is more behind it");
    }
    match (head[0], coding(headers)?) {
        (0, _) => Ok((Coding::Plain, message)),
        // Which status that has is in <https://github.com/grpc/grpc/blob/master/doc/compression.md>.
        (1, Coding::Plain) => Err(BodyError::Contradiction(
            "malformed frame of gRPC: it is compressed, and grpc-encoding names no compression"
                .to_owned(),
        )),
        (1, coding) => Ok((coding, message)),
        _ => wrong("its flags are not known"),
    }
}

/// How messages of a request are packed.
///
/// # Errors
/// It is none of those that are known.
pub(super) fn coding(headers: &HeaderMap) -> Result<Coding, BodyError> {
    let name = headers.get(ENCODING).map_or(&b""[..], HeaderValue::as_bytes);
    match &*name.to_ascii_lowercase() {
        b"" | b"identity" => Ok(Coding::Plain),
        b"gzip" => Ok(Coding::Gzip),
        b"zstd" => Ok(Coding::Zstd),
        other => {
            let name = String::from_utf8_lossy(other);
            let message = format!("grpc-encoding {name:?} is not supported; use {CODINGS}");
            Err(BodyError::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
        }
    }
}

/// The answer to records that were taken, but for so many.
pub(super) fn accepted(rejected: u64) -> Answer {
    let message = accepted_message(rejected);
    let mut body = Vec::with_capacity(FRAME_BYTES + message.len());
    body.push(0);
    body.extend_from_slice(&(message.len() as u32).to_be_bytes());
    body.extend(message);
    let mut trailers = HeaderMap::new();
    trailers.insert(STATUS, HeaderValue::from(Code::Ok as u16));
    let mut answer = Response::new(Payload::with_trailers(Bytes::from(body), trailers));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    answer
}

/// The answer to a request that is refused.
pub(super) fn refuse(refusal: Refusal, message: &str, retry_after: u64) -> Answer {
    let wait = (refusal == Refusal::Busy).then_some(retry_after);
    error(Code::of(refusal), message, wait)
}

/// An error without a message behind it: its trailers are the headers. `wait`: the seconds until the client may send again.
fn error(code: Code, message: &str, wait: Option<u64>) -> Answer {
    let message = &message[..message.floor_char_boundary(ERROR_BYTES_MAX)];
    let mut answer = Response::new(Payload::default());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    headers.insert(STATUS, HeaderValue::from(code as u16));
    if let Ok(message) = HeaderValue::try_from(percent_encoded(message)) {
        headers.insert(MESSAGE, message);
    }
    if code == Code::Unimplemented {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(CODINGS));
    }
    if let Some(seconds) = wait
        && let Ok(details) = HeaderValue::try_from(retry_info(code, message, seconds))
    {
        headers.insert(DETAILS, details);
    }
    answer
}

/// `google.rpc.Status` with a `RetryInfo`, in base64.
fn retry_info(code: Code, message: &str, seconds: u64) -> String {
    const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
    let mut delay = Vec::new();
    if seconds > 0 {
        delay.push(1 << 3);
        wire::write_varint(&mut delay, seconds);
    }
    let mut info = Vec::new();
    wire::write_bytes(&mut info, 1, &delay);
    let mut any = Vec::new();
    wire::write_bytes(&mut any, 1, RETRY_INFO.as_bytes());
    wire::write_bytes(&mut any, 2, &info);
    let mut status = vec![1 << 3, code as u8];
    wire::write_bytes(&mut status, 2, message.as_bytes());
    wire::write_bytes(&mut status, 3, &any);
    STANDARD_NO_PAD.encode(status)
}

/// As `grpc-message` needs it.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(encoding: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if !encoding.is_empty() {
            headers.insert(ENCODING, HeaderValue::from_static(encoding));
        }
        headers
    }

    #[test]
    fn a_request_is_one_whole_message() {
        for (encoding, body, expected) in [
            ("", &b"\0\0\0\0\x02ab"[..], Ok((Coding::Plain, &b"ab"[..]))),
            ("identity", b"\0\0\0\0\0", Ok((Coding::Plain, b""))),
            ("gzip", b"\0\0\0\0\x01a", Ok((Coding::Plain, b"a"))),
            ("gzip", b"\x01\0\0\0\x01a", Ok((Coding::Gzip, b"a"))),
            ("", b"\x01\0\0\0\x01a", Err((500, "grpc-encoding names no compression"))),
            ("identity", b"\x01\0\0\0\x01a", Err((500, "grpc-encoding names no compression"))),
            ("", b"\x02\0\0\0\x01a", Err((400, "flags"))),
            ("", b"", Err((400, "head is incomplete"))),
            ("", b"\0\0\0\0", Err((400, "head is incomplete"))),
            ("", b"\0\0\0\0\x02a", Err((400, "it is incomplete"))),
            ("", b"\0\xff\xff\xff\xffa", Err((400, "it is incomplete"))),
            ("", b"\0\0\0\0\x01ab", Err((400, "there is more"))),
            ("br", b"\x01\0\0\0\x01a", Err((415, "use identity,gzip,zstd"))),
        ] {
            let found = unframe(&headers(encoding), body);
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(BodyError::Refused(status, message)), Err((expected, words))) => {
                    assert_eq!(status.as_u16(), expected, "{message}");
                    assert!(message.contains(words), "{message}");
                }
                (Err(BodyError::Contradiction(message)), Err((500, words))) => {
                    assert!(message.contains(words), "{message}");
                }
                (found, _) => panic!("{encoding} {body:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn messages_about_errors_are_short_and_pass_as_headers() {
        assert_eq!(percent_encoded("50 % é\n"), "50 %25 %C3%A9%0A");
        let answer = error(Code::InvalidArgument, &"é".repeat(ERROR_BYTES_MAX), None);
        assert_eq!(answer.headers()[MESSAGE].len(), ERROR_BYTES_MAX * 3);
        assert!(!answer.headers().contains_key(DETAILS));
    }
}
