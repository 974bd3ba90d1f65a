//! Answers that are no success: what to do next, and the remedy.
//!
//! Errors are named by `Code` in a body of XML
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>), or by `__type` in JSON, which may have a
//! namespace before `#` and more behind `:`
//! (<https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html#operation-error-serialization>).

use http::HeaderMap;
use serde_json::Value;
use skidder_net::cloud::{Refusal, show_refusal, text_of};
use skidder_net::excerpt;
use std::fmt;

/// Bytes of an answer that a message shows.
const SHOWN_BYTES_MAX: usize = 300;
/// The header with the region of a bucket, also without a body.
const REGION: &str = "x-amz-bucket-region";

/// Errors of a server that wants fewer requests, also with status 400. Those that Amazon's own programs take for such
/// (<https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html>).
const THROTTLED: [&str; 14] = [
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "LimitExceededException",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionInProgressException",
];

/// An answer that is no success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The HTTP status.
    pub status: u16,
    /// The name of the error, as `AccessDenied`; empty, if the server did not send it.
    pub code: String,
    /// The region of the bucket, if the server names one; empty if not.
    pub region: String,
    message: String,
    /// The remedy; empty, if waiting is all.
    advice: String,
}

impl Refused {
    /// Reads an answer.
    pub fn read(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = |element| text_of(body, element).unwrap_or_default();
        let (code, message) = of_json(body).unwrap_or_else(|| (text("Code"), text("Message")));
        let message = match message {
            message if !message.is_empty() => message,
            _ if code.is_empty() => excerpt(body, SHOWN_BYTES_MAX),
            _ => String::new(),
        };
        let region = headers.get(REGION).and_then(|region| region.to_str().ok());
        let region = region.map_or_else(|| text("Region"), str::to_owned);
        let hints = Hints { region, endpoint: text("Endpoint"), time: text("ServerTime") };
        let advice = advice(status, &code, &hints);
        Self { status, code, region: hints.region, message, advice }
    }

    /// The same with the remedy of a caller that knows more of the request, unless that is empty.
    pub fn advised(mut self, advice: String) -> Self {
        if !advice.is_empty() {
            self.advice = advice;
        }
        self
    }

    /// Whether other credentials would do.
    pub fn is_about_credentials(&self) -> bool {
        matches!(
            &*self.code,
            "ExpiredToken"
                | "ExpiredTokenException"
                | "TokenRefreshRequired"
                | "InvalidToken"
                | "InvalidAccessKeyId"
                | "InvalidClientTokenId"
                | "UnrecognizedClientException"
        )
    }

    /// Whether the object is not there, or this version of it. Also if the server cannot say more, as behind `HEAD`.
    pub fn is_missing(&self) -> bool {
        matches!(&*self.code, "NoSuchKey" | "NoSuchVersion")
            || self.status == 404 && matches!(&*self.code, "" | "NotFound")
    }

    /// Whether the object is another one than the request had named by `if-match`.
    pub fn is_changed(&self) -> bool {
        self.status == 412
    }

    /// Whether the requested part begins at the end of the object, or behind it.
    pub fn is_behind_the_end(&self) -> bool {
        self.status == 416
    }

    /// Whether the server wants fewer requests.
    pub fn is_throttled(&self) -> bool {
        matches!(self.status, 429 | 503) || THROTTLED.contains(&&*self.code)
    }
}

impl Refusal for Refused {
    fn may_pass(&self) -> bool {
        self.status >= 500
            || self.status == 408
            || self.is_throttled()
            || self.is_about_credentials()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_refusal(out, self.status, &self.code, &self.message, &self.advice)
    }
}

/// Details of an error, for the advice.
struct Hints {
    region: String,
    endpoint: String,
    time: String,
}

fn advice(status: u16, code: &str, hints: &Hints) -> String {
    match code {
        "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "AuthFailure"
        | "InvalidClientTokenId"
        | "UnrecognizedClientException"
        | "IncompleteSignature" => "see `access_key_id` and `secret_access_key`".to_owned(),
        "InvalidSignatureException" => {
            "see `access_key_id` and `secret_access_key`, and the clock of this machine".to_owned()
        }
        "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" | "InvalidToken" => {
            "the credentials have run out: they are used until there are new ones".to_owned()
        }
        "RequestTimeTooSkewed" => {
            let theirs = if hints.time.is_empty() {
                String::new()
            } else {
                format!(" (there it is {})", hints.time)
            };
            format!("the clock of this machine or of the server is wrong{theirs}; correct it")
        }
        "QueueDoesNotExist" | "AWS.SimpleQueueService.NonExistentQueue" => {
            "see `queue_url`: its region, account and name".to_owned()
        }
        "PermanentRedirect"
        | "TemporaryRedirect"
        | "AuthorizationHeaderMalformed"
        | "IllegalLocationConstraintException" => elsewhere(hints),
        _ if matches!(status, 301 | 302 | 307 | 308) => elsewhere(hints),
        _ => String::new(),
    }
}

/// Code and message of an error in JSON.
fn of_json(body: &[u8]) -> Option<(String, String)> {
    let error: Value = serde_json::from_slice(body).ok()?;
    let text = |name: &str| error.get(name)?.as_str();
    let kind = text("__type").or_else(|| text("code"))?;
    let kind = kind.rsplit('#').next().unwrap_or_default();
    let code = kind.split(':').next().unwrap_or_default();
    let message = text("message").or_else(|| text("Message")).unwrap_or_default();
    Some((code.to_owned(), message.to_owned()))
}

fn elsewhere(hints: &Hints) -> String {
    if !hints.region.is_empty() {
        return format!("the bucket is in another region: set `region: {}`", hints.region);
    }
    if !hints.endpoint.is_empty() {
        return format!("the bucket is at `{}`: set `region` or `endpoint`", hints.endpoint);
    }
    "the bucket is elsewhere: see `region` and `endpoint`".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: &str, more: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message>{more}</Error>"
        )
    }

    fn read(status: u16, region: Option<&'static str>, body: &str) -> Refused {
        let mut headers = HeaderMap::new();
        if let Some(region) = region {
            headers.insert(REGION, http::HeaderValue::from_static(region));
        }
        Refused::read(status, &headers, body.as_bytes())
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let skewed = "<RequestTime>x</RequestTime><ServerTime>2026-01-02T03:04:05Z</ServerTime>";
        let table = [
            (403, None, error("InvalidAccessKeyId", ""), "see `access_key_id`"),
            (403, None, error("SignatureDoesNotMatch", ""), "`secret_access_key`"),
            (400, None, error("ExpiredToken", ""), "the credentials have run out"),
            (403, None, error("RequestTimeTooSkewed", skewed), "there it is 2026-01-02T03:04:05Z"),
            (301, Some("eu-west-1"), error("PermanentRedirect", ""), "set `region: eu-west-1`"),
            (
                307,
                None,
                error("TemporaryRedirect", "<Endpoint>b.s3-x.aws</Endpoint>"),
                "`b.s3-x.aws`",
            ),
            (301, Some("eu-west-1"), String::new(), "set `region: eu-west-1`"),
            (
                400,
                None,
                r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist"}"#.to_owned(),
                "see `queue_url`",
            ),
            (
                400,
                None,
                error("AuthorizationHeaderMalformed", "<Region>eu-central-1</Region>"),
                "set `region: eu-central-1`",
            ),
            (502, None, "<html>Bad\n Gateway".to_owned(), "502: <html>Bad Gateway"),
        ];
        for (status, region, body, expected) in table {
            let shown = read(status, region, &body).to_string();
            assert!(shown.contains(expected), "{shown}, expected {expected}");
        }
        let advised = read(404, None, &error("NoSuchBucket", "")).advised("make it".to_owned());
        assert_eq!(advised.to_string(), "the server answered 404 `NoSuchBucket`: no; make it");
        let kept = read(400, None, &error("ExpiredToken", "")).advised(String::new());
        assert!(kept.to_string().contains("have run out"), "{kept}");
    }

    #[test]
    fn an_object_that_is_missing_and_one_that_changed_are_told_apart() {
        let table = [
            (404, error("NoSuchKey", ""), (true, false)),
            (404, String::new(), (true, false)),
            (404, error("NoSuchVersion", ""), (true, false)),
            (404, error("NoSuchBucket", ""), (false, false)),
            (412, error("PreconditionFailed", ""), (false, true)),
            (403, String::new(), (false, false)),
        ];
        for (status, body, expected) in table {
            let refused = read(status, None, &body);
            assert_eq!((refused.is_missing(), refused.is_changed()), expected, "{refused}");
        }
    }

    #[test]
    fn a_server_that_wants_fewer_requests_is_understood() {
        let table = [
            (503, error("SlowDown", ""), true),
            (503, String::new(), true),
            (429, String::new(), true),
            (500, error("InternalError", ""), false),
            (403, error("AccessDenied", ""), false),
            (400, "{\"__type\":\"ThrottlingException\"}".to_owned(), true),
            (400, "{\"__type\":\"AccessDeniedException\"}".to_owned(), false),
        ];
        for (status, body, expected) in table {
            assert_eq!(read(status, None, &body).is_throttled(), expected, "{status} {body}");
        }
    }
}
