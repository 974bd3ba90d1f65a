//! The status that a call ends with: its code, what the server says, and details for programs.
//!
//! <https://github.com/grpc/grpc/blob/master/doc/statuscodes.md>; <https://github.com/googleapis/googleapis>:
//! `google/rpc/status.proto`, `google/rpc/error_details.proto`.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use http::HeaderMap;
use prost::Message;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Names of the codes.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The name of a code; the number of one that has none.
pub fn code_name(code: u16) -> String {
    CODES.get(usize::from(code)).map_or_else(|| code.to_string(), ToString::to_string)
}

/// A code that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Code {
    /// All went well.
    Ok = 0,
    /// The call was cancelled.
    Cancelled = 1,
    /// The server knows no better one.
    Unknown = 2,
    /// The request can never succeed.
    InvalidArgument = 3,
    /// It took too long.
    DeadlineExceeded = 4,
    /// There is no such thing.
    NotFound = 5,
    /// There is one already.
    AlreadyExists = 6,
    /// The caller is known, and may not do that.
    PermissionDenied = 7,
    /// A quota is used up.
    ResourceExhausted = 8,
    /// The thing is not in a state for that.
    FailedPrecondition = 9,
    /// Another call was in the way.
    Aborted = 10,
    /// Behind the end.
    OutOfRange = 11,
    /// The server has no such method.
    Unimplemented = 12,
    /// The server is broken.
    Internal = 13,
    /// The server is not there for now.
    Unavailable = 14,
    /// Data is lost for good.
    DataLoss = 15,
    /// The caller is not known.
    Unauthenticated = 16,
}

impl Code {
    const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// The code of a number; one that is not known is [`Code::Unknown`], as the protocol says.
    pub fn of(number: u16) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Unknown)
    }

    /// Whether the same call may succeed a moment later, without anybody's help.
    pub fn passes(self) -> bool {
        matches!(
            self,
            Self::Cancelled
                | Self::Unknown
                | Self::DeadlineExceeded
                | Self::ResourceExhausted
                | Self::Aborted
                | Self::Internal
                | Self::Unavailable
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(CODES[*self as usize])
    }
}

/// The status of a call that was refused or broken off.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// What went wrong.
    pub code: Code,
    /// What the server says, without secrets of the call; may be empty.
    pub message: String,
    /// For programs; empty if there are none, or they cannot be read.
    pub details: RpcStatus,
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            return self.code.fmt(out);
        }
        write!(out, "{}: {}", self.code, self.message)
    }
}

impl Status {
    /// The status in trailers, or in headers without a body; `None` if it is in neither. The texts of the server are cut to
    /// `bytes_max` bytes.
    pub(crate) fn read(
        headers: &HeaderMap,
        trailers: &HeaderMap,
        bytes_max: usize,
    ) -> Option<Self> {
        let field = |name| {
            let value = trailers.get(name).or_else(|| headers.get(name));
            value.and_then(|value| value.to_str().ok())
        };
        let code = Code::of(field("grpc-status")?.parse().unwrap_or(u16::MAX));
        let said = decode_percent(field("grpc-message").unwrap_or_default());
        let message = skidder_net::excerpt(&said, bytes_max);
        let details = field("grpc-status-details-bin").and_then(RpcStatus::from_header);
        Some(Self { code, message, details: details.unwrap_or_default() })
    }
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub struct RpcStatus {
    /// The number of the code.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// For people.
    #[prost(string, tag = "2")]
    pub message: String,
    /// For programs.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub struct Detail {
    /// What it is.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The message.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
pub struct RetryInfo {
    /// The pause that the server asks for.
    #[prost(message, optional, tag = "1")]
    pub retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
pub struct Delay {
    /// Whole seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds besides.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, Message)]
pub struct ErrorInfo {
    /// Why, as a constant: `SERVICE_DISABLED`.
    #[prost(string, tag = "1")]
    pub reason: String,
    /// Of which service.
    #[prost(string, tag = "2")]
    pub domain: String,
    /// More about it.
    #[prost(btree_map = "string, string", tag = "3")]
    pub metadata: BTreeMap<String, String>,
}

impl RpcStatus {
    /// Reads the value of `grpc-status-details-bin`: base64, with or without its padding.
    pub fn from_header(text: &str) -> Option<Self> {
        let text = text.trim();
        let bytes = STANDARD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text)).ok()?;
        Self::decode(&*bytes).ok()
    }

    fn detail<M: Message + Default>(&self, name: &str) -> Option<M> {
        let is_it = |detail: &&Detail| detail.type_url.rsplit('/').next() == Some(name);
        let detail = self.details.iter().find(is_it)?;
        M::decode(&*detail.value).ok()
    }

    /// The pause that the server requests, if the request can be sent again.
    pub fn retry_delay(&self) -> Option<Duration> {
        let info: RetryInfo = self.detail("google.rpc.RetryInfo")?;
        let delay = info.retry_delay.unwrap_or_default();
        let seconds = Duration::from_secs(u64::try_from(delay.seconds).unwrap_or(0));
        Some(seconds + Duration::from_nanos(u64::try_from(delay.nanos).unwrap_or(0)))
    }

    /// The reason for programs, if there is one.
    pub fn error_info(&self) -> Option<ErrorInfo> {
        self.detail("google.rpc.ErrorInfo")
    }
}

/// `grpc-message`, in which unprintable characters are percent-encoded.
pub fn decode_percent(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn map(fields: &[(&'static str, &str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &str)| {
            (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn a_status_stands_in_trailers_or_in_headers_alone() {
        let empty = HeaderMap::new();
        let fields = map(&[("grpc-status", "5"), ("grpc-message", "no%20such%0Athing")]);
        for status in [Status::read(&fields, &empty, 99), Status::read(&empty, &fields, 99)] {
            let status = status.unwrap();
            assert_eq!(status.code, Code::NotFound);
            assert!(status.to_string().starts_with("NOT_FOUND: no such"), "{status}");
        }
        assert_eq!(Status::read(&empty, &empty, 99), None);
        for (text, expected) in [
            ("0", Code::Ok),
            ("16", Code::Unauthenticated),
            ("17", Code::Unknown),
            ("x", Code::Unknown),
        ] {
            let status = Status::read(&map(&[("grpc-status", text)]), &empty, 99).unwrap();
            assert_eq!((status.code, status.message.as_str()), (expected, ""), "{text}");
        }
        assert_eq!((code_name(14), code_name(99)), ("UNAVAILABLE".to_owned(), "99".to_owned()));
    }

    #[test]
    fn details_are_read_by_their_type() {
        let info = ErrorInfo {
            reason: "EXACTLY_ONCE_ACKID_FAILURE".to_owned(),
            domain: "pubsub.googleapis.com".to_owned(),
            metadata: BTreeMap::from([("id".to_owned(), "TRANSIENT_FAILURE".to_owned())]),
        };
        let retry = RetryInfo { retry_delay: Some(Delay { seconds: 1, nanos: 500_000_000 }) };
        let detail = |name: &str, value: Vec<u8>| Detail {
            type_url: format!("type.googleapis.com/google.rpc.{name}"),
            value,
        };
        let details = vec![
            detail("RetryInfo", retry.encode_to_vec()),
            detail("ErrorInfo", info.encode_to_vec()),
        ];
        let status = RpcStatus { code: 14, message: String::new(), details };
        let text = STANDARD.encode(status.encode_to_vec());
        let fields =
            map(&[("grpc-status", "14"), ("grpc-status-details-bin", text.trim_end_matches('='))]);
        let read = Status::read(&HeaderMap::new(), &fields, 99).unwrap();
        assert_eq!(read.details.retry_delay(), Some(Duration::from_millis(1500)));
        assert_eq!(read.details.error_info(), Some(info));
        assert_eq!(RpcStatus::default().error_info(), None);
        assert_eq!(RpcStatus::from_header("!"), None);
    }
}
